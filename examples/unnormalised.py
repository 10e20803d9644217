"""Define a pass that removes the constant terms of a log-density.

Samplers and optimisers need a log-density only up to a constant. The pass removes terms of the
results that do not depend on the variables, also if linear operations are applied to the sum, and
dead code elimination removes their operands. Of a Gaussian, as a function of its location::

    -n·log(sigma) - n·log(2·pi)/2 - sum((x - mu)²)/(2·sigma²)

only the last term remains. Calls are inlined and references discharged first; branches and loops
are kept, with the constants in them. If a removed constant is infinite or nan, the log-density is
not finite for any value of the variables, but the result of the new program may be.

Run it with ``python examples/unnormalised.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from returns.pipeline import flow
from returns.pointfree import bind, map_
from returns.result import Failure, Result

import effax
import effax.numpy as jnp
from effax import Array
from effax.ir import (
    ArrayType,
    Atom,
    Builder,
    Eqn,
    Jaxpr,
    Lit,
    NotApplicable,
    TransformError,
    Var,
    is_inexact,
)
from effax.ir.prims import (
    Add,
    BroadcastInDim,
    ConvertElementType,
    Div,
    ExpandDims,
    Mul,
    Neg,
    ReduceSum,
    Reshape,
    Squeeze,
    Sub,
    Transpose,
)
from effax.transforms import Dce, Discharged, dce, discharge, inline, unwrap

LINEAR = (Neg, ReduceSum, BroadcastInDim, ExpandDims, Reshape, Squeeze, Transpose)
"""Linear primitives: a constant term of the operand is a constant term of the result."""


def unnormalised(jaxpr: Jaxpr, variables: Sequence[bool]) -> Result[Jaxpr, TransformError]:
    """Remove the terms of the results that do not depend on the variables.

    Args:
        jaxpr: a program that returns log-densities.
        variables: which inputs are the variables; the others are parameters and data.

    Returns:
        The program; or NotApplicable: it has effects, or ``variables`` lacks an entry for an input.
    """
    if jaxpr.effects or len(variables) != len(jaxpr.binders):
        return Failure(
            NotApplicable(
                "expected a log-density",
                expected="a program without effects, and one entry for each input",
                found=f"effects {jaxpr.effects}, {len(variables)} for {len(jaxpr.binders)} inputs",
            )
        )

    def pure(done: Discharged) -> Jaxpr:
        return done.jaxpr

    def fewer(flat: Jaxpr) -> Jaxpr:
        return without_constants(flat, variables)

    def live(made: Dce) -> Jaxpr:
        return made.jaxpr

    return flow(discharge(jaxpr), map_(pure), bind(inline), map_(fewer), bind(dce), map_(live))


def without_constants(jaxpr: Jaxpr, variables: Sequence[bool]) -> Jaxpr:
    """Remove the constant terms of the results; the equations that compute them become dead."""
    varying = _varying(jaxpr, variables)
    loose = _shift_invariant(jaxpr, varying)
    b = Builder(jaxpr.in_types)
    places: dict[int, Atom] = {v.id: w for v, w in zip(jaxpr.binders, b.binders, strict=True)}

    def value(atom: Atom) -> Atom:
        return atom if isinstance(atom, Lit) else places[atom.id]

    for eqn in jaxpr.eqns:
        ins = [value(a) for a in eqn.ins]
        term = _only_term(eqn, ins, varying) if loose.issuperset(v.id for v in eqn.outs) else None
        if term is not None:
            places[eqn.outs[0].id] = _as(b, eqn, term)
        else:
            made = b.emit(eqn.prim, ins, eqn.source)
            places.update(zip([v.id for v in eqn.outs], made, strict=True))
    return b.finish([value(a) for a in jaxpr.outs], jaxpr.n_consts, jaxpr.names)


def _varying(jaxpr: Jaxpr, variables: Sequence[bool]) -> set[int]:
    """Return the numbers of the values that depend on the variables."""
    found = {v.id for v, has in zip(jaxpr.binders, variables, strict=True) if has}
    for eqn in jaxpr.eqns:
        if any(isinstance(a, Var) and a.id in found for a in eqn.ins):
            found.update(v.id for v in eqn.outs)
    return found


def _shift_invariant(jaxpr: Jaxpr, varying: set[int]) -> set[int]:
    """Return the numbers of the values that matter only up to a constant.

    A constant added to such a value adds a constant to each result that depends on it.
    """
    fixed: set[int] = set()
    used: set[int] = {a.id for a in jaxpr.outs if isinstance(a, Var)}
    for eqn in reversed(jaxpr.eqns):
        made = [v.id for v in eqn.outs]
        is_free = len(made) == 1 and made[0] in used and made[0] not in fixed
        for i, a in enumerate(eqn.ins):
            if not isinstance(a, Var):
                continue
            used.add(a.id)
            if not (is_free and _passes_terms(eqn, i, varying)):
                fixed.add(a.id)
    return used - fixed


def _passes_terms(eqn: Eqn, position: int, varying: set[int]) -> bool:
    """Return whether a constant added to this operand adds a constant to the result."""
    if isinstance(eqn.prim, (Add, Sub, *LINEAR)):
        return True
    if isinstance(eqn.prim, ConvertElementType):
        # Conversion to integers truncates, so it does not commute with addition.
        return all(is_inexact(a.type) for a in (*eqn.ins, *eqn.outs))
    others = [a for i, a in enumerate(eqn.ins) if i != position]
    scales = all(isinstance(a, Lit) or a.id not in varying for a in others)
    return scales and (isinstance(eqn.prim, Mul) or (isinstance(eqn.prim, Div) and position == 0))


def _only_term(eqn: Eqn, ins: Sequence[Atom], varying: set[int]) -> tuple[Atom, bool] | None:
    """Return the varying term of a sum with a constant, and whether it is subtracted."""
    if not isinstance(eqn.prim, Add | Sub):
        return None
    varies = [isinstance(a, Var) and a.id in varying for a in eqn.ins]
    if varies == [True, False]:
        return ins[0], False
    if varies == [False, True]:
        return ins[1], isinstance(eqn.prim, Sub)
    return None


def _as(b: Builder, eqn: Eqn, term: tuple[Atom, bool]) -> Atom:
    """Convert the term to the type of the sum, which may broadcast a scalar."""
    (atom, negative), type_ = term, eqn.outs[0].type
    assert isinstance(type_, ArrayType)
    if negative:
        atom = b(Neg(), atom)
    if atom.type.shape != type_.shape:
        atom = b(BroadcastInDim(type_.shape, ()), atom)
    return atom if atom.type == type_ else b(ConvertElementType(type_.dtype, type_.weak), atom)


def gaussian(x: Array, mu: Array, sigma: Array) -> Array:
    """Return the log-density of independent Gaussians."""
    z = (x - mu) / sigma
    terms = -0.5 * z**2 - jnp.log(sigma) - 0.5 * math.log(2 * math.pi)
    return terms.sum()


def main() -> None:
    """Apply the pass to a Gaussian, as a function of its location."""
    x, sigma = jnp.arange(3.0), jnp.float32(2.0)
    program = effax.make_jaxpr(gaussian)(x, jnp.float32(0.5), sigma).jaxpr
    print(program, "\n")
    print(unwrap(unnormalised(program, (False, True, False))))


if __name__ == "__main__":
    main()
