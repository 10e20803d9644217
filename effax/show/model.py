"""The model of a picture of a program: boxes, arrays between them, and a rail for each reference.

Only this module depends on the semantics of programs; :mod:`effax.show.layout` knows boxes with
inputs and outputs, and :mod:`effax.show.drawing` coordinates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import count
from typing import Final

from effax.effects import Alloc, ArgIndex, Row, SideEffect
from effax.effects.row import effect_text
from effax.ir.dtypes import BOOL
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import (
    AddUpdate,
    BroadcastInDim,
    DotGeneral,
    ExpandDims,
    Get,
    Reshape,
    Squeeze,
    Swap,
    Transpose,
)
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.format import LABEL, fields_of, index_text, params_of, value_text
from effax.ir.text.names import VAR_NAMES
from effax.ir.text.paths import counted_groups
from effax.ir.text.printer import eqn_str
from effax.ir.types import ArrayType, RefType
from effax.show.boxes import Box, Frame, Program, Tap, counted
from effax.show.ends import input_boxes, named_inputs, result_boxes
from effax.show.heat import NO_SHADES, Shade, Shades, joined
from effax.show.marks import shortened
from effax.show.parts import EqnRun, runs_of
from effax.show.rails import (
    Key,
    Passed,
    RefUse,
    channels_of,
    hues_of,
    rails_of,
    refs_of,
)

DEPTH: Final = 8
"""The default depth to which subjaxprs are open."""

DEEPEST: Final = 64
"""The maximal depth to which subjaxprs are open."""


SIGNS: Final = {"read": "R", "write": "W", "accum": "+", "alloc": "new", "free": "end"}
"""The sign of a kind of effect on a rail; other kinds have their word."""


def sign_of(words: Sequence[str]) -> str:
    """Return the words as the text of a badge: ``R``, ``RW``, ``+``, ``new``, ``end``."""
    if "free" in words:
        return SIGNS["free"]
    return "".join([SIGNS.get(word, shortened(word, 6)) for word in words])


Fresh = Mapping[int, str]
"""Marks of a comparison, by position of the equation."""


class Runs(Enum):
    """The treatment of long programs: without runs of equations, with closed or open ones."""

    NONE = "none"
    CLOSED = "closed"
    OPEN = "open"


def model(
    jaxpr: Jaxpr,
    depth: int = DEPTH,
    fresh: Fresh | None = None,
    runs: Runs = Runs.NONE,
    shades: Shades = NO_SHADES,
) -> Program:
    """Return the model of ``jaxpr``; each subjaxpr is open once, at its first occurrence.

    Equations of long programs are in ``runs``.
    """
    depth = min(depth, DEEPEST)
    return _Modeller(count(), runs, shades).program(jaxpr, {}, depth, fresh or {}, outermost=True)


def _shaded(box: Box, shade: Shade | None) -> Box:
    """Return a box with its shade, and its cost in its detail; that of a run is kept."""
    if shade is None:
        return box
    detail = f"{box.detail} · {shade.text}" if box.kind == "run" else shade.text
    return replace(box, heat=shade.level, detail=detail)


class _Modeller:
    """The state of one run: colours in use, and subjaxprs that are open."""

    def __init__(self, hues: Iterator[int], runs: Runs, shades: Shades) -> None:
        self.hues = hues
        self.shades = shades
        self.runs = runs
        self.seen: set[Jaxpr] = set()

    def program(
        self,
        jaxpr: Jaxpr,
        given: Mapping[int, Passed],
        depth: int,
        fresh: Fresh,
        fed: frozenset[int] = frozenset(),
        feeding: frozenset[int] = frozenset(),
        outermost: bool = False,
    ) -> Program:
        """Return the model of a program.

        ``given`` has the binders that are references of an enclosing program, by position. ``fed``
        are the binders that are carries, ``feeding`` the results that are.
        """
        uses = Counter(a.id for e in jaxpr.eqns for a in e.ins if isinstance(a, Var))
        uses.update(a.id for a in jaxpr.outs if isinstance(a, Var))
        refs = refs_of(jaxpr, given)
        hues = hues_of(refs, self.hues)
        passed = {ref.var.id: Passed(hues[ref.var.id], ref.name) for ref in refs}
        names = {v.id: name for v, name in named_inputs(jaxpr, given)}
        inputs = input_boxes(jaxpr, uses, fed, outermost)
        results = result_boxes(jaxpr, feeding)
        eqns = [
            replace(
                self.equation(eqn, uses, passed, depth, fresh.get(i, "")),
                effects=_effects_text(eqn, names),
                named=_named_operands(eqn, names),
            )
            for i, eqn in enumerate(jaxpr.eqns)
        ]
        shades = [self.shades.get((id(jaxpr), i)) for i in range(len(eqns))]
        eqns = list(map(_shaded, eqns, shades))
        level = _Level(jaxpr, refs, hues, eqns, shades, self.runs is Runs.OPEN)
        runs = runs_of(jaxpr.eqns) if self.runs is not Runs.NONE else ()
        boxes = [level.run(run, uses) for run in runs] or eqns
        return level.program([*inputs, *boxes, *results], 0, len(eqns), bool(runs))

    def equation(
        self, eqn: Eqn, uses: Counter[int], passed: Mapping[int, Passed], depth: int, fresh: str
    ) -> Box:
        arrays = tuple([v for v in eqn.outs if not isinstance(v.type, RefType)])
        if isinstance(eqn.prim, Swap):
            arrays = tuple([v for v in arrays if uses[v.id]])
        frames, note = self.frames(eqn, passed, depth)
        shown, detail = box_text(eqn)
        return Box(
            "eqn",
            shown,
            f"{detail} {note}".strip(),
            _tone(eqn),
            tuple([a.id for a in eqn.ins if isinstance(a, Var) and isinstance(a.type, ArrayType)]),
            arrays,
            frozenset([v.id for v in arrays if not uses[v.id]]),
            taps(eqn),
            frames,
            eqn_str(eqn),
            eqn.source,
            fresh,
        )

    def frames(
        self, eqn: Eqn, passed: Mapping[int, Passed], depth: int
    ) -> tuple[tuple[Frame, ...], str]:
        """Return the subjaxprs to draw inside, or a note on those that are not drawn."""
        regions = eqn.prim.regions()
        if not regions:
            return (), ""
        size = counted(sum(len(r.jaxpr.eqns) for r in regions), "equation")
        if depth <= 0 or any(r.jaxpr in self.seen and not _is_short(r.jaxpr) for r in regions):
            return (), f"({size}{', drawn before' if depth > 0 else ''})"
        self.seen.update(r.jaxpr for r in regions)
        made = []
        for region, caption in zip(regions, captions(eqn, regions), strict=True):
            given = {
                i: passed[ref.id]
                for i, at in enumerate(region.args)
                if isinstance(ref := eqn.ins[at], Var) and ref.id in passed
            }
            feeding = frozenset([j for j, at in enumerate(region.carry_to) if at is not None])
            fed = frozenset(
                [i for i, at in enumerate(region.args) if at in region.carry_to and at is not None]
            )
            inner = self.program(region.jaxpr, given, depth - 1, {}, fed, feeding)
            made.append(Frame(caption, inner))
        return tuple(made), ""


class _Level:
    """The equations of one program, and the references that they access."""

    def __init__(
        self,
        jaxpr: Jaxpr,
        refs: Sequence[RefUse],
        hues: Mapping[int, int],
        eqns: Sequence[Box],
        shades: Sequence[Shade | None],
        is_open: bool,
    ) -> None:
        self.is_open = is_open
        self.shades = shades
        self.jaxpr = jaxpr
        self.refs = refs
        self.hues = hues
        self.eqns = eqns

    def run(self, run: EqnRun, uses: Counter[int]) -> Box:
        """Return the box of a run of equations: one with a frame, or the only equation."""
        start, stop = run.start, run.stop
        if stop - start == 1:
            return self.eqns[start]
        parts = run.parts if self.is_open else ()
        inner = [self.run(part, uses) for part in parts] or list(self.eqns[start:stop])
        own = self.eqns[start:stop]
        made = {v.id: v for box in own for v in box.outs}
        inside = Counter(v for box in own for v in box.ins)
        words: dict[Key, dict[str, None]] = {}
        for box in own:
            for tap in box.taps:
                words.setdefault(tap.rail, {}).update(dict.fromkeys(tap.words))
        box = Box(
            "run",
            shortened(run.title, 60),
            f"{counted(stop - start, 'equation')} · {run.detail}".removesuffix(" · "),
            ins=tuple([v for v in inside if v not in made]),
            outs=tuple([v for i, v in made.items() if uses[i] > inside[i]]),
            taps=tuple([Tap(key, tuple(found)) for key, found in words.items()]),
            frames=(Frame("", self.program(inner, start, stop, bool(run.parts))),)
            if self.is_open
            else (),
            full=f"{run.title}: {counted(stop - start, 'equation')}",
            effects=self.effects_text(words),
        )
        return _shaded(box, joined(self.shades[start:stop]))

    def effects_text(self, words: Mapping[Key, Mapping[str, None]]) -> str:
        """Return the effects of a run, those on the references of a subtree as one."""
        alike: dict[str, list[str]] = {}
        for ref in self.refs:
            if ref.var.id in words:
                alike.setdefault(",".join(words[ref.var.id]), []).append(ref.path)
        shown = [
            f"{found} {group}"
            for found, paths in alike.items()
            for group in counted_groups(paths, "ref", [ref.path for ref in self.refs])
        ]
        return ", ".join([*shown, *[key for key in words if isinstance(key, str)]])

    def program(self, boxes: Sequence[Box], start: int, stop: int, listed: bool) -> Program:
        """Return boxes with the rails that they access; all rails for the whole program."""
        whole = stop - start == len(self.eqns)
        used = Counter(tap.rail for box in boxes for tap in box.taps)
        # A list omits references that exist in one box only.
        refs = [
            ref
            for ref in self.refs
            if used[ref.var.id] > (listed and ref.at >= start) or (whole and ref.at < 0)
        ]
        rails, places = rails_of(refs, self.hues, start, stop)
        rails += channels_of(self.jaxpr.eqns[start:stop])
        known = {rail.key for rail in rails}
        moved = [
            replace(box, taps=_moved_taps(box.taps, places, known)) if box.taps else box
            for box in boxes
        ]
        return Program(tuple(moved), tuple(rails), listed)


def _effects_text(eqn: Eqn, names: Mapping[int, str]) -> str:
    """Return the effects of an equation: ``read a (state['w'])``."""
    shown = []
    for tap in taps(eqn):
        if isinstance(tap.rail, str):
            shown.append(tap.rail)
            continue
        name = f" ({names[tap.rail]})" if tap.rail in names else ""
        shown += [f"{word} {VAR_NAMES[tap.rail]}{name}" for word in tap.words]
    return ", ".join(shown)


def _named_operands(eqn: Eqn, names: Mapping[int, str]) -> str:
    """Return the operands that are inputs with names: ``b is params['w']``."""
    operands = dict.fromkeys([a.id for a in eqn.ins if isinstance(a, Var)])
    return ", ".join([f"{VAR_NAMES[i]} is {names[i]}" for i in operands if i in names])


def _moved_taps(
    found: Sequence[Tap], places: Mapping[int, Key], known: Container[Key]
) -> tuple[Tap, ...]:
    """Return the accesses by rail, those to references of one rail as one."""
    words: dict[Key, dict[str, None]] = {}
    for tap in found:
        key = places.get(tap.rail, tap.rail) if isinstance(tap.rail, int) else tap.rail
        if key in known:
            words.setdefault(key, {}).update(dict.fromkeys(tap.words))
    return tuple([Tap(key, tuple(found)) for key, found in words.items()])


def _is_short(jaxpr: Jaxpr) -> bool:
    """Return whether a program may be drawn again; with subjaxprs, pictures could explode."""
    return len(jaxpr.eqns) <= 4 and not any(eqn.prim.subjaxprs() for eqn in jaxpr.eqns)


def _ref(eqn: Eqn, index: int) -> Var:
    ref = eqn.ins[index]
    assert isinstance(ref, Var), "a reference is a variable"
    return ref


def taps(eqn: Eqn) -> tuple[Tap, ...]:
    """Return the accesses of an equation to references, and its side effects."""
    words: dict[Key, list[str]] = {}
    row: Row[ArgIndex] = eqn.effects
    for effect in row:
        if isinstance(effect, SideEffect):
            key: Key = effect_text(effect, None)
        elif isinstance(effect, Alloc):
            key = eqn.outs[effect.ref].id
        else:
            key = _ref(eqn, effect.ref).id
        words.setdefault(key, []).append(effect.word)
    return tuple([Tap(key, tuple(found)) for key, found in words.items()])


def box_text(eqn: Eqn) -> tuple[str, str]:
    """Return the text of an equation's box, and the smaller line under it."""
    prim = eqn.prim
    if isinstance(prim, Get | Swap | AddUpdate):
        return shortened(_reference_text(eqn, prim), 34), ""
    name = prim.name
    parameters = _parameters(prim)
    title = getattr(prim, LABEL, None)
    if prim.regions() and isinstance(title, str):
        name = f"{name} {title}"
    operands = ["·" if isinstance(a, Var) else repr(a.value) for a in eqn.ins]
    if any(isinstance(a, Lit) for a in eqn.ins) and not prim.subjaxprs():
        name = " ".join([name, *operands])
    return shortened(name, 34), shortened(" ".join(parameters), 34)


def _parameters(prim: Primitive) -> list[str]:
    """Return the parameters that neither types nor subjaxprs show."""
    if isinstance(prim, DotGeneral):
        (left, right), (batch, _) = prim.dimension_numbers
        parts = [f"contracts {_axes(left)}·{_axes(right)}"]
        return [*parts, f"batch {_axes(batch)}"] if batch else parts
    defaults = {f.name: f.default for f in fields_of(prim)}
    holds = bool(prim.subjaxprs())
    return [
        f"{SHORT.get(field, name)}={value_text(value, lambda _: '…')}"
        for name, field, value in params_of(prim)
        if not _is_program(value)
        and field != LABEL
        and field not in IN_TYPES
        and value is not False
        and value != defaults[field]
        and not (holds and field.startswith("n_"))
    ]


SHORT: Final = {"broadcast_dimensions": "dims", "dimension_numbers": "dims", "permutation": "axes"}
"""Shorter names of parameters, for boxes only."""

IN_TYPES: Final = frozenset({"shape", "new_sizes", "new_dtype", "weak"})
"""Parameters that the type of the result shows."""


def _axes(axes: Sequence[int]) -> str:
    return ",".join(map(str, axes)) or "∅"


def _is_program(value: object) -> bool:
    """Return whether a parameter is a subjaxpr, or several, which are drawn."""
    if isinstance(value, tuple) and value:
        return all(isinstance(v, Jaxpr) for v in value)
    return isinstance(value, Jaxpr)


def _reference_text(eqn: Eqn, prim: Get | Swap | AddUpdate) -> str:
    ref, *rest = eqn.ins
    value, operands = ("", rest) if isinstance(prim, Get) else (_operand(rest[0]), rest[1:])
    place = _operand(ref) + index_text(
        prim.indexer, ref.type.shape, [_operand(a) for a in operands]
    )
    if isinstance(prim, Get):
        return place
    return f"{place} {'+=' if isinstance(prim, AddUpdate) else '←'} {value}"


def _operand(atom: Atom) -> str:
    return str(atom).partition(":")[0] if isinstance(atom, Lit) else VAR_NAMES[atom.id]


def _tone(eqn: Eqn) -> str:
    if eqn.prim.subjaxprs():
        return "call"
    if isinstance(eqn.prim, DotGeneral):
        return "product"
    moves = isinstance(eqn.prim, BroadcastInDim | ExpandDims | Reshape | Squeeze | Transpose)
    return "shape" if moves else "plain"


def captions(eqn: Eqn, regions: Sequence[Region]) -> list[str]:
    """Return the caption of each region: its field or branch; empty for a single region."""
    prim, selector = eqn.prim, eqn.prim.selector()
    if len(regions) == 1:
        return [""]
    if selector is not None and len(regions) == 2 and eqn.ins[selector].type.dtype == BOOL:
        return ["false", "true"]
    names: dict[int, str] = {}
    for _, field, value in params_of(prim):
        if isinstance(value, Jaxpr):
            names.setdefault(id(value), field)
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                names.setdefault(id(item), f"{field}[{i}]")
    return [names.get(id(r.jaxpr), str(i)) for i, r in enumerate(regions)]
