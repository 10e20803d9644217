"""The boxes of inputs and results: those of a subtree in one, where there are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.text.format import lit_text
from effax.ir.text.names import VAR_NAMES
from effax.ir.text.paths import PathGroup, path_groups
from effax.ir.types import RefType
from effax.show.boxes import Box, counted
from effax.show.marks import shortened
from effax.show.rails import NOT_PASSED, Passed, bound, user_name


def named_inputs(jaxpr: Jaxpr, given: Mapping[int, Passed]) -> Iterator[tuple[Var, str]]:
    """Yield the inputs that have names, with these; ``given`` are references of the caller."""
    for i, v in enumerate(jaxpr.binders):
        name = user_name(jaxpr, i) or given.get(i, NOT_PASSED).name
        if name:
            yield v, name


def input_boxes(
    jaxpr: Jaxpr, uses: Counter[int], fed: frozenset[int], outermost: bool
) -> list[Box]:
    """Return the boxes of inputs that are arrays; ``fed`` are the positions of carries."""
    at = [i for i, v in enumerate(jaxpr.binders) if not isinstance(v.type, RefType)]
    names = [user_name(jaxpr, i) or VAR_NAMES[jaxpr.binders[i].id] for i in at]
    boxes = []
    for group in path_groups(names):
        members = [at[k] for k in group.members]
        own = [jaxpr.binders[i] for i in members]
        one = len(own) == 1
        const = outermost and all(i < jaxpr.n_consts for i in members)
        boxes.append(
            Box(
                "in",
                shortened(group.name, 30) + (" ↻" if fed.intersection(members) else ""),
                ("const" if const else "") if one else counted(len(own), "array"),
                outs=tuple(own) if one else (),
                unused=frozenset([v.id for v in own if one and not uses[v.id]]),
                full=f"input {bound(own[0])}" if one else _listed(names, group, own),
            )
        )
    return boxes


def _listed(names: list[str], group: PathGroup, own: list[Var]) -> str:
    """Return the members of a group, separated by commas."""
    return ", ".join([f"{names[k]} is {bound(v)}" for k, v in zip(group.members, own, strict=True)])


def result_boxes(jaxpr: Jaxpr, feeding: frozenset[int]) -> list[Box]:
    """Return the boxes of results; ``feeding`` are the positions of carries."""
    n = len(jaxpr.outs)
    named = len(jaxpr.out_names) == n
    names = jaxpr.out_names if named else ["result" if n == 1 else f"result {i}" for i in range(n)]
    boxes = []
    for group in path_groups(names):
        atoms = [jaxpr.outs[i] for i in group.members]
        carried = " ↻" if feeding.intersection(group.members) else ""
        if len(atoms) == 1:
            boxes.append(_result(atoms[0], group.name, carried))
            continue
        values = zip([names[i] for i in group.members], map(_value, atoms), strict=True)
        boxes.append(
            Box(
                "out",
                shortened(group.name, 30) + carried,
                counted(len(atoms), "result"),
                full=", ".join([f"{name}: {value}" for name, value in values]),
            )
        )
    return boxes


def _result(atom: Atom, name: str, carried: str) -> Box:
    value = _value(atom)
    return Box(
        "out",
        shortened(name, 30) + carried,
        value if isinstance(atom, Lit) else "",
        ins=() if isinstance(atom, Lit) else (atom.id,),
        full=f"{name}: {value}",
    )


def _value(atom: Atom) -> str:
    return lit_text(atom) if isinstance(atom, Lit) else VAR_NAMES[atom.id]
