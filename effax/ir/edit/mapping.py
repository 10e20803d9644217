"""Rewriting of programs in one walk: a function returns the replacement of each equation.

Before, and after ``map_eqns(doubled, program)``::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = add b b in (c,) }
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul 2.0:f32[] b in (c,) }

with ::

    def doubled(b, eqn):
        match eqn.prim, eqn.ins:
            case Add(), (x, y) if x == y:
                return b(Mul(), lit(2, x.type), x)
        return None
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from effax.ir.build import Builder
from effax.ir.edit.operations import check_change
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import BadArgument, EffaxError, IllTyped
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.printer import eqn_str
from effax.ir.types import Type

EqnChange = Callable[[Builder, Eqn], Atom | Sequence[Atom] | None]
"""The function that ``map_eqns`` applies."""


def map_eqns(change: EqnChange, jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with each equation replaced by the result of ``change``, in one walk.

    ``change(b, eqn)`` is called for each equation in order. Its arguments ``eqn.ins`` are those of
    the new program, in which ``b`` appends equations: ``b(prim, *ins)`` returns the one result,
    ``b.emit(prim, ins)`` a tuple of all, and ``b.equation_of(a)`` the equation that binds an
    argument. It returns

    - None: the equation stays, on these arguments;
    - an atom, or one for each result: these replace the results. ``()`` removes an equation without
      results.

    If every equation stays, the same object is returned. Appended equations have the source of the
    replaced one. Subjaxprs are not changed: ``everywhere(partial(map_eqns, change), jaxpr)`` maps
    over them too. The work is linear.

    Raises:
        IllTyped: a replacement has another type than the result.
        BadArgument: the number of replacements is wrong, or one is not an atom of the new program;
            or ``change`` is not a function, or ``jaxpr`` not a program.
    """
    check_change("map_eqns", change, jaxpr)
    made = Rewriter(jaxpr)
    b = made.b
    for old in jaxpr.eqns:
        ins = made.operands(old)
        outs = tuple([Var(b.next_id + i, v.type) for i, v in enumerate(old.outs)])
        eqn = old if (ins, outs) == (old.ins, old.outs) else old._replace(ins=ins, outs=outs)
        found: object = _changed(change, b, eqn)
        if found is None:
            made.keep(old, ins)
            b.eqns[-1] = eqn
        else:
            made.replace(old, _values(b, eqn, found))
    return made.finish()


def _changed(change: EqnChange, b: Builder, eqn: Eqn) -> object:
    """Return ``change(b, eqn)``; set the source of the equations that it appends."""
    start = len(b.eqns)
    try:
        found = change(b, eqn)
    except EffaxError as error:
        raise error.at(eqn_str(eqn), None if eqn.source is None else str(eqn.source)) from None
    if found is None and len(b.eqns) > start:
        raise BadArgument(
            "equations were appended for one that stays",
            expected="atoms for its results, or no appended equations",
            found=", ".join(map(eqn_str, b.eqns[start:])),
            remedy="`return` its replacement; or append it too, `b.emit(eqn.prim, eqn.ins)`",
            equation=eqn_str(eqn),
        )
    for i in range(start, len(b.eqns)):
        if b.eqns[i].source is None:
            b.eqns[i] = b.eqns[i]._replace(source=eqn.source)
    return found


def _values(b: Builder, eqn: Eqn, found: object) -> tuple[Atom, ...]:
    """Return the atoms that replace the results. Raises BadArgument or IllTyped."""
    single = isinstance(found, Var | Lit) or not isinstance(found, Sequence)
    several: tuple[object, ...] = (found,) if single else tuple(cast("Sequence[object]", found))
    for a in several:
        if not isinstance(a, Var | Lit) or (isinstance(a, Var) and a.id >= b.next_id):
            raise BadArgument(
                "the replacement of an equation is not an atom of the new program",
                expected="results of the builder, arguments of the equation, literals; or None",
                found=f"{a!r:.80}",
                remedy="`return b(prim, *eqn.ins)`, or None for an equation that stays",
                equation=eqn_str(eqn),
            )
    atoms = tuple([a for a in several if isinstance(a, Var | Lit)])
    wanted, types = [v.type for v in eqn.outs], [a.type for a in atoms]
    if len(wanted) != len(types):
        raise BadArgument(
            "an equation is replaced by one atom for each result",
            expected=f"{len(wanted)} of them",
            found=f"{len(types)}: {', '.join(map(str, atoms)) or 'none'}",
            remedy="`b.emit(prim, ins)` returns all results of an equation",
            equation=eqn_str(eqn),
        )
    if wanted != types:
        raise IllTyped(
            "the replacement of an equation has other types",
            expected=_types(wanted),
            found=_types(types),
            remedy="convert it: `b(ConvertElementType(dtype, weak_type), x)`",
            equation=eqn_str(eqn),
        )
    return atoms


def _types(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "none"
