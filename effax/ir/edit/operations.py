"""Edits of programs: each returns a new program that shares the unchanged parts.

Before::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }

After ``insert(program, 1, Neg(), [b])``, and after ``substitute`` of its result for ``b``::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = neg b; d:f32[] = mul c 2.0:f32[] in (d,) }

Effects follow from the typing of the primitives. Variables stay numbered in order of binding, so
equations after an insertion are renumbered, and equations before it are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from returns.result import Result

from effax.ir.argument_checks import check_atoms, check_parts
from effax.ir.build import typing_of
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.recursion import with_fresh_stack
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.format import MOST_VARIABLES
from effax.ir.types import Type

Where = Source | SavedSource | None


class Edited(NamedTuple):
    """An edited program, and the results of the inserted equations.

    Attributes:
        jaxpr: the program.
        outs: the results of the inserted equations, as atoms of that program.
    """

    jaxpr: Jaxpr
    outs: tuple[Atom, ...]


def equation(
    prim: Primitive, ins: Sequence[Atom], outs: Sequence[Var], source: Where = None
) -> Eqn:
    """Return an equation with the effects of its primitive.

    Raises:
        BadArgument: ``prim`` is not a primitive, or an argument is not an atom.
        IllTyped: the arguments have the wrong types, or ``outs`` do not have those of the results.
    """
    check_parts(prim, ins)
    typing = typing_of(prim, tuple([a.type for a in ins]))
    _check_types(prim.name, typing.outs, [v.type for v in outs])
    return Eqn(prim, tuple(ins), tuple(outs), typing.effects, source)


def with_prim(eqn: Eqn, prim: Primitive) -> Eqn:
    """Return the equation with another primitive on the same arguments, and its effects."""
    return eqn if prim is eqn.prim else equation(prim, eqn.ins, eqn.outs, eqn.source)


def replace_eqn(
    jaxpr: Jaxpr, index: int, prim: Primitive | None = None, ins: Sequence[Atom] | None = None
) -> Jaxpr:
    """Return the program with another primitive or other arguments in one equation.

    Args:
        jaxpr: the program.
        index: the position of the equation; negative ones count from the end.
        prim: the new primitive; None: unchanged.
        ins: the new arguments, in scope there; None: unchanged.

    Raises:
        BadArgument: the index is out of range, or an argument is not in scope.
        IllTyped: the results would have other types, or a variable has another type there.
    """
    index = _index(jaxpr, index, len(jaxpr.eqns))
    old = jaxpr.eqns[index]
    check_parts(old.prim if prim is None else prim, () if ins is None else ins)
    if ins is not None:
        _check_scope(jaxpr, index, ins)
    new = equation(
        old.prim if prim is None else prim,
        old.ins if ins is None else ins,
        old.outs,
        old.source,
    )
    return jaxpr.replace(eqns=jaxpr.eqns.set(index, new))


def insert(
    jaxpr: Jaxpr, index: int, prim: Primitive, ins: Sequence[Atom], source: Where = None
) -> Edited:
    """Return the program with one more equation, before equation ``index``; its results are unused.

    Raises:
        BadArgument: the index is out of range, or an argument is not in scope there.
        IllTyped: the arguments have the wrong types, or a variable has another type there.
    """
    index = _index(jaxpr, index, len(jaxpr.eqns) + 1)
    check_parts(prim, ins)
    _check_scope(jaxpr, index, ins)
    typing = typing_of(prim, tuple([a.type for a in ins]))
    first = _first_free(jaxpr, index)
    outs = tuple(Var(first + i, t) for i, t in enumerate(typing.outs))
    eqn = Eqn(prim, tuple(ins), outs, typing.effects, source)
    return Edited(_joined(jaxpr, index, index, [eqn], {}, first + len(outs)), outs)


def splice(
    jaxpr: Jaxpr, start: int, stop: int, body: Jaxpr, args: Sequence[Atom], results: bool = True
) -> Edited:
    """Return the program with the equations of ``body`` in the place of ``jaxpr.eqns[start:stop]``.

    Args:
        jaxpr: the program.
        start: the first equation that is removed.
        stop: the first later equation that stays; none is removed if ``start == stop``.
        body: the program whose equations are inserted.
        args: the atoms for its inputs, in scope before ``start``, of their types.
        results: whether its results replace all variables that the equations bound, in order.

    Raises:
        BadArgument: an index is out of range, or a result of a removed equation is still used.
        IllTyped: arguments or results have other types.
    """
    n = len(jaxpr.eqns)
    start, stop = _index(jaxpr, start, n + 1), _index(jaxpr, stop, n + 1)
    if stop < start:
        raise BadArgument(
            "splice takes equations in order",
            expected=f"a stop of at least {start}",
            found=str(stop),
            remedy="`insert(jaxpr, index, prim, ins)` adds an equation and removes none",
        )
    check_atoms(args)
    _check_scope(jaxpr, start, args)
    _check_types("the inserted program", body.in_types, [a.type for a in args])
    gone = [v for eqn in jaxpr.eqns[start:stop] for v in eqn.outs]
    first = _first_free(jaxpr, start)
    inside: dict[int, Atom] = {v.id: a for v, a in zip(body.binders, args, strict=True)}
    eqns, first = _renumbered(body.eqns, inside, first)
    outs = tuple(_value(inside, a) for a in body.outs)
    values: dict[int, Atom] = {}
    if results:
        wanted, found = [v.type for v in gone], [a.type for a in body.outs]
        _check_types("the replacement of equations", wanted, found, _KEEP)
        values = {v.id: a for v, a in zip(gone, outs, strict=True)}
    else:
        check_unused(jaxpr, stop, gone)
    return Edited(_joined(jaxpr, start, stop, eqns, values, first), outs)


def remove(jaxpr: Jaxpr, index: int) -> Jaxpr:
    """Return the program without one equation. Raises BadArgument where its results are used."""
    index = _index(jaxpr, index, len(jaxpr.eqns))
    check_unused(jaxpr, index + 1, jaxpr.eqns[index].outs)
    return jaxpr.replace(eqns=jaxpr.eqns.delete(index))


def rename(jaxpr: Jaxpr, numbers: Mapping[int, int] | Callable[[int], int]) -> Jaxpr:
    """Return the program with its variables renumbered; those of subjaxprs stay.

    Args:
        jaxpr: the program.
        numbers: the new number of each; those that are missing in a mapping stay.

    Raises:
        BadArgument: the numbers would not increase in order of binding, or are too large.
    """
    new: dict[int, int] = {}
    top = -1
    for v in [*jaxpr.binders, *(v for eqn in jaxpr.eqns for v in eqn.outs)]:
        number: object = numbers.get(v.id, v.id) if isinstance(numbers, Mapping) else numbers(v.id)
        if not isinstance(number, int) or number >= MOST_VARIABLES:
            raise BadArgument(
                "a variable cannot have this number",
                expected=f"an integer less than {MOST_VARIABLES}",
                found=repr(number),
                remedy="`renumbered(jaxpr)` numbers variables from 0",
            )
        if number <= top:
            raise BadArgument(
                "variables are numbered in order of binding",
                expected=f"a number of at least {top + 1} for variable {v.id}",
                found=str(number),
                remedy="`renumbered(jaxpr)` numbers them without gaps",
            )
        new[v.id] = top = number

    def named(v: Var) -> Var:
        return v if new[v.id] == v.id else Var(new[v.id], v.type)

    def used(a: Atom) -> Atom:
        return a if isinstance(a, Lit) else named(a)

    eqns = [
        e._replace(ins=tuple(map(used, e.ins)), outs=tuple(map(named, e.outs))) for e in jaxpr.eqns
    ]
    return jaxpr.replace(
        binders=[named(v) for v in jaxpr.binders], eqns=eqns, outs=[used(a) for a in jaxpr.outs]
    )


def substitute(jaxpr: Jaxpr, values: Mapping[Var, Atom]) -> Jaxpr:
    """Return the program with uses of variables replaced by other atoms.

    The equations that bind the variables stay (``dce`` removes dead ones). An atom must be in scope
    at all uses of the variable.

    Raises:
        BadArgument: an atom is not in scope at a use of the variable, or the program does not bind
            the variable.
        IllTyped: an atom has another type than the variable.
    """
    check_atoms([*values, *values.values()])
    for v, a in values.items():
        _check_types("a substitution", [v.type], [a.type])
    by_number = {v.id: a for v, a in values.items()}
    eqns = jaxpr.eqns
    scope = {v.id: v.type for v in jaxpr.binders}
    for i, eqn in enumerate(jaxpr.eqns):
        ins = tuple([_value(by_number, a) for a in eqn.ins])
        if ins != eqn.ins:
            for a in ins:
                check_bound(a, scope, f"equation {i}")
            eqns = eqns.set(i, eqn._replace(ins=ins))
        scope.update((v.id, v.type) for v in eqn.outs)
    outs = [_value(by_number, a) for a in jaxpr.outs]
    for a in [*values, *(a for a, old in zip(outs, jaxpr.outs, strict=True) if a != old)]:
        check_bound(a, scope, "the end")
    return jaxpr.replace(eqns=eqns, outs=outs)


def check_change(name: str, change: object, jaxpr: object) -> None:
    """Raise BadArgument unless ``change`` is a function and ``jaxpr`` a program."""
    if isinstance(jaxpr, Jaxpr) and callable(change):
        return
    wrong, what = (change, "change") if isinstance(jaxpr, Jaxpr) else (jaxpr, "jaxpr")
    remedy = None
    if isinstance(change, Jaxpr):
        remedy = f"the function comes first: `{name}(change, jaxpr)`"
    elif isinstance(jaxpr, Result):
        remedy = "`unwrap(...)` returns the program of a `Result`"
    elif isinstance(getattr(jaxpr, "jaxpr", None), Jaxpr):
        remedy = "its program is `.jaxpr`"
    raise BadArgument(
        f"{name} takes a function and a program",
        expected=f"`{name}(change, jaxpr)`: a function, and a `Jaxpr`",
        found=f"{what}={wrong!r:.80}",
        remedy=remedy,
    )


def map_subjaxprs(change: Callable[[Jaxpr], Jaxpr], jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with ``change`` applied to each subjaxpr of its equations.

    If none changes, the same object is returned; unchanged equations are shared. Effects are
    derived again. ``change`` must preserve the types of inputs and results.

    Raises:
        IllTyped: a changed subjaxpr does not match its primitive.
        BadArgument: ``change`` is not a function, or ``jaxpr`` not a program.
    """
    check_change("map_subjaxprs", change, jaxpr)
    eqns = jaxpr.eqns
    for i, eqn in enumerate(jaxpr.eqns):
        new = with_prim(eqn, map_prim_subjaxprs(change, eqn.prim))
        if new is not eqn:
            eqns = eqns.set(i, new)
    return jaxpr if eqns is jaxpr.eqns else jaxpr.replace(eqns=eqns)


def map_prim_subjaxprs(change: Callable[[Jaxpr], Jaxpr], prim: Primitive) -> Primitive:
    """Return the primitive with ``change`` applied to its subjaxprs; itself if none changes."""
    before = prim.subjaxprs()
    if not before:
        return prim
    after = [change(program) for program in before]
    for made in after:
        if not isinstance(made, Jaxpr):
            raise BadArgument("a change returns a program", "a Jaxpr", repr(made))
    if all(new is old for new, old in zip(after, before, strict=True)):
        return prim
    return prim.with_subjaxprs(after)


def everywhere(change: Callable[[Jaxpr], Jaxpr], jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with ``change`` applied at every depth, innermost first.

    A shared subjaxpr is changed once. Raises BadArgument.
    """
    check_change("everywhere", change, jaxpr)
    done: dict[Jaxpr, Jaxpr] = {}

    @with_fresh_stack
    def visit(program: Jaxpr) -> Jaxpr:
        found = done.get(program)
        if found is None:
            found = done[program] = change(map_subjaxprs(visit, program))
        return found

    return visit(jaxpr)


def _index(jaxpr: Jaxpr, index: object, n: int) -> int:
    found = index + len(jaxpr.eqns) if isinstance(index, int) and index < 0 else index
    if not isinstance(found, int) or not 0 <= found < n:
        raise BadArgument(
            "equation index out of range",
            expected=f"a number less than {n}",
            found=repr(index),
            remedy="`walk(jaxpr)` yields the equations with their positions",
        )
    return found


def _first_free(jaxpr: Jaxpr, index: int) -> int:
    """Return the least free number for a result of an equation at ``index``."""
    for i in range(index - 1, -1, -1):
        if jaxpr.eqns[i].outs:
            return 1 + max(v.id for v in jaxpr.eqns[i].outs)
    return 1 + max((v.id for v in jaxpr.binders), default=-1)


def _joined(
    jaxpr: Jaxpr, start: int, stop: int, eqns: Sequence[Eqn], values: dict[int, Atom], first: int
) -> Jaxpr:
    """Return the program with these equations for those from ``start`` to ``stop``.

    Earlier equations are shared, later ones renumbered from ``first``. ``values`` maps removed
    variables to their replacements.
    """
    tail, _ = _renumbered(jaxpr.eqns[stop:], values, first)
    kept = jaxpr.eqns[:start]
    return jaxpr.replace(
        eqns=kept.extend([*eqns, *tail]), outs=[_value(values, a) for a in jaxpr.outs]
    )


def _renumbered(eqns: Sequence[Eqn], values: dict[int, Atom], first: int) -> tuple[list[Eqn], int]:
    """Return equations with results numbered from ``first``, and the next number; extend values."""
    made: list[Eqn] = []
    for eqn in eqns:
        ins = tuple([_value(values, a) for a in eqn.ins])
        outs = tuple(Var(first + i, v.type) for i, v in enumerate(eqn.outs))
        first += len(outs)
        for old, new in zip(eqn.outs, outs, strict=True):
            values[old.id] = new
        made.append(eqn._replace(ins=ins, outs=outs))
    return made, first


def _value(values: Mapping[int, Atom], atom: Atom) -> Atom:
    return values.get(atom.id, atom) if isinstance(atom, Var) else atom


_KEEP: Final = "`results=False` if the removed equations' results are not replaced"


def _check_types(
    what: str, wanted: Sequence[Type], found: Sequence[Type], remedy: str | None = None
) -> None:
    if list(wanted) != list(found):
        raise IllTyped(
            f"{what} has other types",
            expected=", ".join(map(str, wanted)) or "none",
            found=", ".join(map(str, found)) or "none",
            remedy=remedy,
        )


def _check_scope(jaxpr: Jaxpr, index: int, atoms: Sequence[Atom]) -> None:
    """Raise unless the atoms are in scope, at their types, before equation ``index``."""
    wanted = {a.id for a in atoms if isinstance(a, Var)}
    scope = {v.id: v.type for v in jaxpr.binders if v.id in wanted}
    # Search backward: in most edits the atoms are bound shortly before.
    at = index
    while at > 0 and len(scope) < len(wanted):
        at -= 1
        scope.update((v.id, v.type) for v in jaxpr.eqns[at].outs if v.id in wanted)
    for a in atoms:
        check_bound(a, scope, f"equation {index}")


def check_bound(a: Atom, scope: Mapping[int, Type], where: str) -> None:
    """Raise BadArgument if a variable is not in scope, IllTyped if it has another type."""
    if isinstance(a, Lit):
        return
    known = scope.get(a.id)
    if known is None:
        raise BadArgument(
            f"{a} is not in scope at {where}",
            expected="a variable that is bound before it",
            found=f"{a}:{a.type}",
            remedy="an edit renumbers what follows it: use the variables of its result, such as "
            "`edited.outs`, or `def_use(jaxpr)` to find them",
        )
    if known is not a.type:
        raise IllTyped(
            f"{a} has another type in the program",
            expected=str(known),
            found=str(a.type),
            remedy="use the variable that the binder or the equation has, with its type",
        )


def check_unused(
    jaxpr: Jaxpr, start: int, gone: Sequence[Var], what: str = "the result of a removed equation"
) -> None:
    """Raise BadArgument if an equation from ``start`` on, or a result, uses one of these."""
    numbers = {v.id for v in gone}
    rest = [a for eqn in jaxpr.eqns[start:] for a in eqn.ins] if numbers else []
    for a in [*rest, *jaxpr.outs]:
        if isinstance(a, Var) and a.id in numbers:
            raise BadArgument(
                f"{what} is used",
                expected="no use of it",
                found=str(a),
                remedy="`substitute` another atom for it first",
            )
