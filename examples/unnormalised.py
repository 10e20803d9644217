"""A pass of one's own: from a log-density to an unnormalised one.

Samplers and optimisers need a log-density up to a constant only. The pass removes the terms that do
not depend on the variable: what is added to a result, through whatever is linear, goes, and dead
code elimination takes what it was computed from. Of a Gaussian in its location::

    -n·log(sigma) - n·log(2·pi)/2 - sum((x - mu)²)/(2·sigma²)

only the last term is left. Calls are entered, and references inside of the program become values
first; branches and loops stay as they are, with the constants in them. A constant may be infinite
or nan: where the log-density is no number for any variable, the result no longer says so.

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
"""What maps a constant term to a constant term, whatever else it is given."""


def unnormalised(jaxpr: Jaxpr, variables: Sequence[bool]) -> Result[Jaxpr, TransformError]:
    """The program, its results up to terms that do not depend on the variables.

    Args:
        jaxpr: gives log-densities.
        variables: which inputs they are densities of; the others are parameters and data.

    Returns:
        The program; or why there is none: it has effects, or ``variables`` not one entry an input.
    """
    if jaxpr.effects or len(variables) != len(jaxpr.binders):
        return Failure(
            NotApplicable(
                "this is no log-density",
                expected="a program without effects, and one entry an input",
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
    """The program without the constant terms of its results; what they need is left, and dead."""
    varying = _varying(jaxpr, variables)
    loose = _loose(jaxpr, varying)
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
    """The numbers of what depends on the variables."""
    found = {v.id for v, has in zip(jaxpr.binders, variables, strict=True) if has}
    for eqn in jaxpr.eqns:
        if any(isinstance(a, Var) and a.id in found for a in eqn.ins):
            found.update(v.id for v in eqn.outs)
    return found


def _loose(jaxpr: Jaxpr, varying: set[int]) -> set[int]:
    """The numbers of what matters up to a constant only: whatever uses it passes terms on."""
    tight: set[int] = set()
    used: set[int] = {a.id for a in jaxpr.outs if isinstance(a, Var)}
    for eqn in reversed(jaxpr.eqns):
        made = [v.id for v in eqn.outs]
        free = len(made) == 1 and made[0] in used and made[0] not in tight
        for i, a in enumerate(eqn.ins):
            if not isinstance(a, Var):
                continue
            used.add(a.id)
            if not (free and _passes_terms(eqn, i, varying)):
                tight.add(a.id)
    return used - tight


def _passes_terms(eqn: Eqn, position: int, varying: set[int]) -> bool:
    """Whether a constant added to this operand adds a constant to the result."""
    if isinstance(eqn.prim, (Add, Sub, *LINEAR)):
        return True
    if isinstance(eqn.prim, ConvertElementType):
        # To integers floats are cut off, and what is added before is not what is added after.
        return all(is_inexact(a.type) for a in (*eqn.ins, *eqn.outs))
    others = [a for i, a in enumerate(eqn.ins) if i != position]
    fixed = all(isinstance(a, Lit) or a.id not in varying for a in others)
    return fixed and (isinstance(eqn.prim, Mul) or (isinstance(eqn.prim, Div) and position == 0))


def _only_term(eqn: Eqn, ins: Sequence[Atom], varying: set[int]) -> tuple[Atom, bool] | None:
    """Of a sum with a constant, the other term, and whether it is subtracted."""
    if not isinstance(eqn.prim, Add | Sub):
        return None
    moves = [isinstance(a, Var) and a.id in varying for a in eqn.ins]
    if moves == [True, False]:
        return ins[0], False
    if moves == [False, True]:
        return ins[1], isinstance(eqn.prim, Sub)
    return None


def _as(b: Builder, eqn: Eqn, term: tuple[Atom, bool]) -> Atom:
    """The term in the type of the sum: scalars go with arrays of any shape."""
    (atom, negative), type_ = term, eqn.outs[0].type
    assert isinstance(type_, ArrayType)
    if negative:
        atom = b(Neg(), atom)
    if atom.type.shape != type_.shape:
        atom = b(BroadcastInDim(type_.shape, ()), atom)
    return atom if atom.type == type_ else b(ConvertElementType(type_.dtype, type_.weak), atom)


def gaussian(x: Array, mu: Array, sigma: Array) -> Array:
    """The log-density of independent Gaussians."""
    z = (x - mu) / sigma
    terms = -0.5 * z**2 - jnp.log(sigma) - 0.5 * math.log(2 * math.pi)
    return terms.sum()


def main() -> None:
    """Show the pass on a Gaussian, as a density of its location."""
    x, sigma = jnp.arange(3.0), jnp.float32(2.0)
    program = effax.make_jaxpr(gaussian)(x, jnp.float32(0.5), sigma).jaxpr
    print(program, "\n")
    print(unwrap(unnormalised(program, (False, True, False))))


if __name__ == "__main__":
    main()
