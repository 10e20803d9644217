"""Unrolling of loops with a known number of iterations.

Before::

    { lambda ; a:f32[] b:f32[1]. let
        c:f32[] = scan[
          jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }
          length=1
          n_carry=1
          n_consts=0
          reverse=False
          unroll=1
        ] a b
      in (c,) }

After::

    { lambda ; a:f32[] b:f32[1]. let
        c:f32[] = gather[indexer=[0]] b
        d:f32[] = mul a c
      in (d,) }

The trip count of a ``while`` loop is known if its predicate depends on literals only: the part of
the body that determines the predicate is evaluated. Unless growth is allowed, only loops
are unrolled that do not become larger by it: those of few iterations or short bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

from returns.result import Result

from effax.ir.analysis.dataflow import fixpoint
from effax.ir.analysis.queries import size
from effax.ir.build import lit
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import BadArgument, TransformError
from effax.ir.eval.numpy import evaluate, literal_value
from effax.ir.indexing import row
from effax.ir.prims import BroadcastInDim, Concatenate, Gather, Scan, While
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import RefType, Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rewriter import at_every_depth
from effax.transforms.framework.rules import NO_RULES
from effax.transforms.optimize.dce import dce
from effax.transforms.optimize.licm import terminates


def unroll(jaxpr: Jaxpr, growth: int = 0) -> Result[Jaxpr, TransformError]:
    """Unroll loops with a known number of iterations, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same; those of a loop of no iterations are removed.
    Laws:     tests/laws/test_simplify.py

    Args:
        jaxpr: the program.
        growth: the number of equations by which the program may grow for each loop.

    Raises:
        BadArgument: the growth is negative.
    """
    if growth < 0:
        raise BadArgument("the growth of unroll must not be negative", "at least 0", str(growth))

    def local(program: Jaxpr) -> Jaxpr:
        made = Rewriter(program)
        _equations(made, program, growth)
        return made.finish()

    return at_every_depth(local)(jaxpr)


def _equations(made: Rewriter, jaxpr: Jaxpr, growth: int) -> None:
    """Go over the equations of a program whose inputs have a value in ``made``."""
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        if isinstance(eqn.prim, Scan) and _is_small_scan(eqn, eqn.prim, ins, growth):
            _write_scan(made, eqn, eqn.prim, ins, growth)
            continue
        if isinstance(eqn.prim, While):
            trips = _trips(eqn, eqn.prim, ins, growth)
            if trips is not None:
                _write_while(made, eqn, eqn.prim, ins, trips, growth)
                continue
        made.keep(eqn, ins)


def _body(made: Rewriter, body: Jaxpr, args: Sequence[Atom], growth: int) -> list[Atom]:
    """Append one iteration; return its results."""
    inner = made.nested(body, args)
    _equations(inner, body, growth)
    return inner.results()


def _types(atoms: Sequence[Atom]) -> tuple[Type, ...]:
    return tuple([a.type for a in atoms])


def _is_small_scan(eqn: Eqn, scan: Scan, ins: Sequence[Atom], growth: int) -> bool:
    consts, carry, xs = scan.split(ins)
    body, n = scan.jaxpr, scan.length
    n_ys = len(body.outs) - scan.n_carry
    stacking = n_ys * (1 if n < 2 else n + 1)
    if n * (size(body) + len(xs)) + stacking > 1 + size(body) + growth:
        return False
    first = scan.n_consts + scan.n_carry
    return (
        not any(isinstance(x.type, RefType) for x in xs)
        and _types([*consts, *carry]) == body.in_types[:first]
        and _types(carry) == body.out_types[: scan.n_carry]
        and all(
            getattr(x.type, "weak", False) == getattr(t, "weak", False)
            for x, t in zip(xs, body.in_types[first:], strict=True)
        )
    )


def _write_scan(made: Rewriter, eqn: Eqn, scan: Scan, ins: Sequence[Atom], growth: int) -> None:
    consts, carry, xs = scan.split(ins)
    rows: list[list[Atom]] = []
    for i in range(scan.length - 1, -1, -1) if scan.reverse else range(scan.length):
        elements = [made.emit(eqn, Gather(row(x.type.shape, i)), [x])[0] for x in xs]
        outs = _body(made, scan.jaxpr, [*consts, *carry, *elements], growth)
        carry, ys = outs[: scan.n_carry], outs[scan.n_carry :]
        rows.append(ys)
    if scan.reverse:
        rows.reverse()
    y_types = scan.jaxpr.out_types[scan.n_carry :]
    stacked = [_stacked(made, eqn, [ys[k] for ys in rows], t) for k, t in enumerate(y_types)]
    made.replace(eqn, [*carry, *stacked])


def _stacked(made: Rewriter, eqn: Eqn, rows: Sequence[Atom], type_: Type) -> Atom:
    """Append the stack of values along a new leading axis."""
    shape = type_.shape
    axes = tuple(range(1, 1 + len(shape)))
    if not rows:
        zero = lit(0, type_)
        return made.emit(eqn, BroadcastInDim((0, *shape), ()), [zero])[0]
    parts = [made.emit(eqn, BroadcastInDim((1, *shape), axes), [y])[0] for y in rows]
    return parts[0] if len(parts) == 1 else made.emit(eqn, Concatenate(0), parts)[0]


def _write_while(
    made: Rewriter, eqn: Eqn, loop: While, ins: Sequence[Atom], trips: int, growth: int
) -> None:
    consts, carry = [*ins[: loop.n_consts]], [*ins[loop.n_consts :]]
    for _ in range(trips):
        carry = _body(made, loop.body, [*consts, *carry], growth)
    made.replace(eqn, carry)


def _trips(eqn: Eqn, loop: While, ins: Sequence[Atom], growth: int) -> int | None:
    """Return the trip count of a loop; None if it is unknown, or too large to unroll."""
    cond, body, n = loop.cond, loop.body, loop.n_consts
    if cond.effects.changes_state or _types(ins) != body.in_types:
        return None
    if body.out_types != body.in_types[n:]:
        return None
    most = (1 + size(cond) + size(body) + growth) // max(size(body), 1)
    used = _deciding(loop)
    if used is None or not all(isinstance(ins[i], Lit) for i in used):
        return None
    keep = tuple(i in used for i in range(len(ins)))
    carried = tuple(i + n in used for i in range(len(ins) - n))
    observed = (False,) * len(ins)
    test = dce.uncached(cond, (True,), observed, keep, NO_RULES).jaxpr
    step = dce.uncached(body, carried, observed, keep, NO_RULES).jaxpr
    if test.free_axes or step.free_axes:
        return None
    if (
        test.effects
        or step.effects
        or not all(terminates(e.prim) for e in (*test.eqns, *step.eqns))
    ):
        return None
    values = [literal_value(a) for i, a in enumerate(ins) if i in used and isinstance(a, Lit)]
    fixed = values[: sum(keep[:n])]
    rest = values[len(fixed) :]
    for count in range(most + 1):
        if not bool(evaluate(test, [*fixed, *rest])[0]):
            return count
        rest = evaluate(step, [*fixed, *rest])
    return None


def _deciding(loop: While) -> frozenset[int] | None:
    """Return the operands that determine the condition; None where a reference is among them."""
    n, total = loop.n_consts, len(loop.body.binders)

    def needed(program: Jaxpr, outs: Mask) -> frozenset[int]:
        nothing = (False,) * total
        used = dce.uncached(program, outs, nothing, nothing, NO_RULES).used_ins
        return frozenset([i for i, u in enumerate(used) if u])

    def grown(used: frozenset[int]) -> frozenset[int]:
        return used | needed(loop.body, tuple([i + n in used for i in range(total - n)]))

    used = fixpoint(grown, needed(loop.cond, (True,)))
    types = loop.body.in_types
    return None if any(isinstance(types[i], RefType) for i in used) else used
