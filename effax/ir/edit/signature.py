"""Edits of the inputs and results of programs, which renumber the variables.

Before, and after ``add_inputs(program, [f32])``, whose new input is ``b``::

    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    { lambda ; a:f32[] b:f32[]. let c:f32[] = sin a in (c,) }
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from effax.ir.argument_checks import check_atoms, check_type
from effax.ir.edit.operations import Edited, check_bound, check_unused
from effax.ir.edit.renumber import numbered
from effax.ir.errors import BadArgument
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import Type


def add_inputs(
    jaxpr: Jaxpr,
    types: Sequence[Type],
    at: int | None = None,
    names: Sequence[str] = (),
    constants: bool = False,
) -> Edited:
    """Return the program with more inputs, which are unused, and these inputs.

    >>> from effax.ir import add_inputs, array_type, parse
    >>> program = parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
    >>> more, (x,) = add_inputs(program, [array_type((), "float32")], at=0)
    >>> print(more, x)
    { lambda ; a:f32[] b:f32[]. let c:f32[] = sin b in (c,) } a

    Args:
        jaxpr: the program.
        types: the types of the new inputs.
        at: the position of the first one; by default they are the last, of constants or of inputs.
        names: the user's names for them.
        constants: whether they are captured constants, which come before the other inputs.

    Raises:
        BadArgument: the position is among the constants for an input, or out of range.
    """
    for type_ in types:
        check_type(type_)
    n, k = len(jaxpr.binders), jaxpr.n_consts
    least, most = (0, k) if constants else (k, n)
    place = most if at is None else at
    if place not in range(least, most + 1):
        raise BadArgument(
            "the position of new inputs is out of range",
            expected=f"from {least} to {most}, since constants come first",
            found=repr(at),
        )
    fresh = [Var(jaxpr.size + i, t) for i, t in enumerate(types)]
    binders = [*jaxpr.binders[:place], *fresh, *jaxpr.binders[place:]]
    old = [jaxpr.names[i] if i < len(jaxpr.names) else "" for i in range(n)]
    new = [names[i] if i < len(names) else "" for i in range(len(types))]
    shown = [*old[:place], *new, *old[place:]]
    made = numbered(
        binders,
        jaxpr.eqns,
        jaxpr.outs,
        jaxpr.size + len(types),
        k + (len(types) if constants else 0),
        shown if any(shown) else (),
    )
    return Edited(made, made.binders[place : place + len(types)])


def drop_inputs(jaxpr: Jaxpr, positions: Iterable[int]) -> Jaxpr:
    """Return the program without some inputs, constants included.

    >>> from effax.ir import drop_inputs, parse
    >>> print(drop_inputs(parse("{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin b in (c,) }"), [0]))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }

    Raises:
        BadArgument: a position is out of range, or an equation or result uses the input.
    """
    gone = checked_positions("inputs", positions, len(jaxpr.binders))
    check_unused(jaxpr, 0, [jaxpr.binders[i] for i in gone], "a dropped input")
    return _with_inputs(jaxpr, [i for i in range(len(jaxpr.binders)) if i not in gone])


def permute_inputs(jaxpr: Jaxpr, order: Sequence[int]) -> Jaxpr:
    """Return the program with its inputs in another order: new input ``i`` is old ``order[i]``.

    >>> from effax.ir import parse, permute_inputs
    >>> program = parse("{ lambda ; a:f32[] b:f32[]. let c:f32[] = sub a b in (c,) }")
    >>> print(permute_inputs(program, [1, 0]))
    { lambda ; a:f32[] b:f32[]. let c:f32[] = sub b a in (c,) }

    Raises:
        BadArgument: ``order`` is not a permutation, or moves a constant behind an input.
    """
    several = checked_order("inputs", order, len(jaxpr.binders))
    if any(i >= jaxpr.n_consts for i in several[: jaxpr.n_consts]):
        raise BadArgument(
            "constants come before the other inputs",
            expected=f"the positions 0 to {jaxpr.n_consts - 1} first",
            found=str(several),
        )
    return _with_inputs(jaxpr, several)


def add_results(jaxpr: Jaxpr, atoms: Sequence[Atom], at: int | None = None) -> Jaxpr:
    """Return the program with more results: atoms that are in scope at its end.

    >>> from effax.ir import add_results, parse
    >>> program = parse("{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = exp b in (c,) }")
    >>> print(add_results(program, program.eqns[0].outs))
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = exp b in (c, b) }

    Raises:
        BadArgument: an atom is not in scope, or the position is out of range.
        IllTyped: a variable has another type in the program.
    """
    check_atoms(atoms)
    scope = {v.id: v.type for v in jaxpr.binders}
    wanted = {a.id for a in atoms if isinstance(a, Var)}
    scope.update((v.id, v.type) for eqn in jaxpr.eqns for v in eqn.outs if v.id in wanted)
    for a in atoms:
        check_bound(a, scope, "the end")
    place = len(jaxpr.outs) if at is None else at
    if place not in range(len(jaxpr.outs) + 1):
        raise BadArgument(
            "the position of new results is out of range", f"0 to {len(jaxpr.outs)}", repr(at)
        )
    return jaxpr.replace(outs=[*jaxpr.outs[:place], *atoms, *jaxpr.outs[place:]])


def drop_results(jaxpr: Jaxpr, positions: Iterable[int]) -> Jaxpr:
    """Return the program without some results; the equations stay, and ``dce`` removes dead ones.

    >>> from effax.ir import drop_results, parse
    >>> print(drop_results(parse("{ lambda ; a:f32[] b:f32[]. let  in (a, b) }"), [0]))
    { lambda ; a:f32[] b:f32[]. let  in (b,) }

    Raises:
        BadArgument: a position is out of range.
    """
    gone = checked_positions("results", positions, len(jaxpr.outs))
    return jaxpr.replace(outs=[a for i, a in enumerate(jaxpr.outs) if i not in gone])


def permute_results(jaxpr: Jaxpr, order: Sequence[int]) -> Jaxpr:
    """Return the program with its results in another order: new result ``i`` is ``order[i]``.

    >>> from effax.ir import parse, permute_results
    >>> print(permute_results(parse("{ lambda ; a:f32[] b:f32[]. let  in (a, b) }"), [1, 0]))
    { lambda ; a:f32[] b:f32[]. let  in (b, a) }

    Raises:
        BadArgument: ``order`` is not a permutation.
    """
    return jaxpr.replace(
        outs=[jaxpr.outs[i] for i in checked_order("results", order, len(jaxpr.outs))]
    )


def _with_inputs(jaxpr: Jaxpr, order: Sequence[int]) -> Jaxpr:
    names = [jaxpr.names[i] if i < len(jaxpr.names) else "" for i in order]
    return numbered(
        [jaxpr.binders[i] for i in order],
        jaxpr.eqns,
        jaxpr.outs,
        jaxpr.size,
        sum(i < jaxpr.n_consts for i in order),
        names if any(names) else (),
    )


def checked_positions(what: str, positions: Iterable[int], n: int) -> frozenset[int]:
    """Return positions as a set; negative ones count from the end. Raises BadArgument."""
    found: set[int] = set()
    for i in positions:
        if i not in range(-n, n):
            raise BadArgument(
                f"the position among the {what} is out of range", f"{n} of them", repr(i)
            )
        found.add(i % n)
    return frozenset(found)


def checked_order(what: str, order: Sequence[int], n: int) -> list[int]:
    """Return an order of all positions. Raises BadArgument unless it is a permutation."""
    several = list(order)
    if sorted(several) != list(range(n)):
        raise BadArgument(
            f"this is not an order of the {what}",
            expected=f"each of 0 to {n - 1} once" if n else "no position",
            found=str(several),
        )
    return several
