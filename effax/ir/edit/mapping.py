"""Programs rewritten in one walk: a function says what comes in the place of each equation.

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

from effax.ir.build import Builder
from effax.ir.edit.operations import check_change
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import BadArgument, EffaxError, IllTyped
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.printer import eqn_str
from effax.ir.types import Type

EqnChange = Callable[[Builder, Eqn], Atom | Sequence[Atom] | None]
"""What ``map_eqns`` takes."""


def map_eqns(change: EqnChange, jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with each equation replaced by the result of ``change``, in one walk.

    ``change(b, eqn)`` is called for each equation in order. Its arguments ``eqn.ins`` are those of
    the new program, in which ``b`` appends equations: ``b(prim, *ins)`` gives the one result,
    ``b.emit(prim, ins)`` a tuple of all, and ``b.equation_of(a)`` the equation that made an
    argument. It gives

    - None: the equation stays, on these arguments;
    - an atom, or one for each result: these take the place of the results, whatever was appended.
      An equation without results goes where ``()`` is given.

    The very same program is given where every equation stays. What is appended is said to come from
    where the equation came from. Programs that equations hold are left alone:
    ``everywhere(partial(map_eqns, change), jaxpr)`` goes into them. The work is linear.

    Raises:
        IllTyped: what takes the place of a result has another type.
        BadArgument: there are too few or too many, or what is given is not in the new program; or
            ``change`` is no function, ``jaxpr`` no program.
    """
    check_change("map_eqns", change, jaxpr)
    made = Rewriter(jaxpr)
    b = made.b
    for old in jaxpr.eqns:
        ins = made.operands(old)
        outs = tuple([Var(b.next_id + i, v.type) for i, v in enumerate(old.outs)])
        eqn = old if (ins, outs) == (old.ins, old.outs) else old._replace(ins=ins, outs=outs)
        given: object = _asked(change, b, eqn)
        if given is None:
            made.keep(old, ins)
            b.eqns[-1] = eqn
        else:
            made.replace(old, _values(b, eqn, given))
    return made.finish()


def _asked(change: EqnChange, b: Builder, eqn: Eqn) -> object:
    """What is said of an equation; what was appended comes from where it came from."""
    start = len(b.eqns)
    try:
        given = change(b, eqn)
    except EffaxError as error:
        raise error.at(eqn_str(eqn), None if eqn.source is None else str(eqn.source)) from None
    if given is None and len(b.eqns) > start:
        raise BadArgument(
            "equations were appended in the place of one that stays",
            expected="atoms for its results, or nothing appended",
            found=", ".join(map(eqn_str, b.eqns[start:])),
            remedy="`return` what takes its place; or append it too, `b.emit(eqn.prim, eqn.ins)`",
            equation=eqn_str(eqn),
        )
    for i in range(start, len(b.eqns)):
        if b.eqns[i].source is None:
            b.eqns[i] = b.eqns[i]._replace(source=eqn.source)
    return given


def _values(b: Builder, eqn: Eqn, given: object) -> tuple[Atom, ...]:
    """Return the atoms that take the place of the results. Raises for what cannot."""
    several: tuple[object, ...] = (
        (given,)
        if isinstance(given, Var | Lit) or not isinstance(given, Sequence)
        else tuple(given)
    )
    for a in several:
        if not isinstance(a, Var | Lit) or (isinstance(a, Var) and a.id >= b.next_id):
            raise BadArgument(
                "what takes the place of an equation is nothing in the new program",
                expected="what the builder gave, arguments of the equation, literals; or None",
                found=f"{a!r:.80}",
                remedy="`return b(prim, *eqn.ins)`, or None for an equation that stays",
                equation=eqn_str(eqn),
            )
    atoms = tuple([a for a in several if isinstance(a, Var | Lit)])
    wanted, found = [v.type for v in eqn.outs], [a.type for a in atoms]
    if len(wanted) != len(found):
        raise BadArgument(
            "one atom takes the place of each result of an equation",
            expected=f"{len(wanted)} of them",
            found=f"{len(found)}: {', '.join(map(str, atoms)) or 'none'}",
            equation=eqn_str(eqn),
        )
    if wanted != found:
        raise IllTyped(
            "what takes the place of an equation has other types",
            expected=_types(wanted),
            found=_types(found),
            equation=eqn_str(eqn),
        )
    return atoms


def _types(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "none"
