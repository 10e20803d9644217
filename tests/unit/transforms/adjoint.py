"""The identity that a transposed program satisfies, for tests of transposition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from returns.pipeline import is_successful

from effax.effects import Accum
from effax.ir import prims
from effax.ir.build import Builder
from effax.ir.indexing import Pick, Span
from effax.ir.primitive import Value
from effax.ir.prims import BroadcastInDim, DotGeneral
from effax.ir.prims import refs as p
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import RefType
from effax.transforms.transpose.engine import (
    CotangentSpec,
    DontWant,
    GradRef,
    GradValue,
    NonLinear,
    ThreadedRef,
    Transposed,
    transpose,
)
from tests.unit.building import (
    F32,
    I32,
    add,
    assert_well_formed,
    f32,
    get,
    number,
    program,
    random_value,
    ref,
    run,
    swap,
    values,
)

DOT = DotGeneral((((1,), (0,)), ((), ())))

N, R, V, D, T = NonLinear(), GradRef(), GradValue(), DontWant(), ThreadedRef()


def transposed(
    jaxpr: Jaxpr, ct_specs: Sequence[CotangentSpec], cts: Sequence[bool] | None = None
) -> Transposed:
    found = transpose(jaxpr, ct_specs, cts)
    assert is_successful(found), found.failure()
    assert_well_formed(found.unwrap().jaxpr)
    return found.unwrap()


def dot(xs: Sequence[Value], ys: Sequence[Value]) -> float:
    assert [x.shape for x in xs] == [y.shape for y in ys]
    return float(sum(np.sum(np.asarray(x, np.float64) * y) for x, y in zip(xs, ys, strict=True)))


def check(
    jaxpr: Jaxpr,
    ct_specs: Sequence[CotangentSpec],
    cts: Sequence[bool] | None = None,
    seed: int = 0,
    fixed: Sequence[Value] | None = None,
) -> Transposed:
    """Check <ct of outputs and final contents, those> = <ct of inputs and initial contents, those>.

    The references that are bound hold something already; a GradRef is added to. The first inputs
    are ``fixed`` where they are given; the others are random.
    """
    made = transposed(jaxpr, ct_specs, cts)
    rng = np.random.default_rng(seed + 100)
    args = [
        np.zeros_like(x) if w == D else x
        for x, w in zip(values(jaxpr, seed), ct_specs, strict=True)
    ]
    if fixed is not None:
        args[: len(fixed)] = fixed
    outs, finals = run(jaxpr, args)
    has = [t.dtype.kind == "f" for t in jaxpr.out_types] if cts is None else cts
    given = [random_value(rng, t) for t, h in zip(jaxpr.out_types, has, strict=True) if h]
    linear = [(i, w) for i, w in enumerate(ct_specs) if w in (R, T)]
    bound = [random_value(rng, jaxpr.in_types[i]) for i, _ in linear]
    operands = [*[x for x, w in zip(args, ct_specs, strict=True) if w == N], *bound, *given]
    results, after = run(made.jaxpr, operands)
    after = after[len(after) - len(bound) :]

    lhs = dot(given, [y for y, h in zip(outs, has, strict=True) if h])
    is_ref = [i for i, t in enumerate(jaxpr.in_types) if isinstance(t, RefType)]
    final = dict(zip(is_ref, finals, strict=True))
    rhs = 0.0
    for (i, w), before, now in zip(linear, bound, after, strict=True):
        if w == T:
            lhs += dot([before], [final[i]])
            rhs += dot([now], [args[i]])
        else:
            rhs += dot([now - before], [args[i]])
    asked = [i for i, w in enumerate(ct_specs) if w == V]
    kept = [i for i, nonzero in zip(asked, made.nonzero, strict=True) if nonzero]
    rhs += dot(results, [args[i] for i in kept])
    double = any(t.dtype.name == "float64" for t in jaxpr.out_types)
    tolerance = 1e-9 if double else 2e-4
    np.testing.assert_allclose(rhs, lhs, rtol=tolerance, atol=tolerance / 10)
    return made


def refs_and_values_agree(jaxpr: Jaxpr, ct_specs: Sequence[CotangentSpec], seed: int = 0) -> None:
    """Check that a GradRef ends with its initial contents plus the GradValue result."""
    by_value = transposed(jaxpr, ct_specs)
    by_ref = transposed(jaxpr, [R if w == V else w for w in ct_specs])
    rng = np.random.default_rng(seed)
    fixed = [x for x, w in zip(values(jaxpr, seed), ct_specs, strict=True) if w == N]
    given = [random_value(rng, t) for t in jaxpr.out_types]
    asked = [t for t, w in zip(jaxpr.in_types, ct_specs, strict=True) if w == V]
    bound = [random_value(rng, t) for t in asked]
    results, _ = run(by_value.jaxpr, [*fixed, *given])
    _, after = run(by_ref.jaxpr, [*fixed, *bound, *given])
    grads = iter(results)
    for before, now, nonzero in zip(bound, after, by_value.nonzero, strict=True):
        np.testing.assert_allclose(now, before + (next(grads) if nonzero else 0), rtol=1e-4)


def only_accumulates(made: Transposed, position: int) -> bool:
    """Return whether accumulation is the only effect on an input."""
    return all(isinstance(e, Accum) for e in made.jaxpr.effects.on(position))  # type: ignore[arg-type]  # an ArgIndex is an int


def big_zeros(jaxpr: Jaxpr, size: int = 1000) -> int:
    several = [e.prim for e in jaxpr.eqns if isinstance(e.prim, BroadcastInDim)]
    own = sum(size in prim.shape for prim in several)
    return own + sum(big_zeros(h, size) for e in jaxpr.eqns for h in e.prim.subjaxprs())


def plumbed(b: Builder, c: Var, i: Var, r: Var, x: Var) -> Sequence[Atom]:
    """Apply every reference primitive to a linear reference argument and two local references."""
    old = swap(b, r, b(prims.Mul(), x, c), Pick(None), at=[i])
    s = b(p.NewRef(), old)
    add(b, s, b(prims.Mul(), get(b, r, Pick(0)), c))
    e = b(p.EmptyRef(f32(2)))
    swap(b, e, b(BroadcastInDim((2,), ()), number(0.0)))
    swap(b, e, x, Pick(1))
    add(b, r, get(b, e), Span(1, 2))
    add(b, r, x, Pick(1))
    b.emit(p.FreeRef(), [e])
    return [b(p.Freeze(), s), get(b, r), get(b, r, Span(2, 2, -1))]


PLUMBED = program([F32, I32, ref(4), F32], plumbed)
