"""The derivative of a program on values, by differences: for primitives from anywhere.

Whoever writes a primitive says what it is on real NumPy arrays, and need not think of complex
ones: ``abs(x)`` of a complex step gives no derivative, and no error. So programs with primitives
that are not the library's are run on real numbers, in double precision where they can. Each
element of a derivative is told with confidence, or not at all: with a kink, a jump or noise near
it, or where the numbers end, it is nan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from effax.ir.dtypes import as_dtype, is_complex, is_float, is_inexact_dtype
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import ConvertElementType, EmptyRef, Iota, StopGradient
from effax.ir.registry import own_primitives
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType, Type, ref_type
from effax.testing.generate.values import Outcome, contents_of, rounding, tolerance
from effax.testing.laws.retyped import retyped

STEPS: Final = (1e-2, 3e-4, 1e-5)
"""Steps of differences in double precision, for values and tangents of a size near 1."""

PARTS: Final = (0.55, 1.0, 1.75)
"""Of each step, those that are compared. No two of them fit the same period."""

NARROW_STEPS: Final = (0.125, 2e-2)

WIDE: Final = {False: as_dtype("float64"), True: as_dtype("complex128")}


def is_foreign(jaxpr: Jaxpr) -> bool:
    """Whether a primitive in the program, or in one that it holds, is not of this library."""
    own = own_primitives()
    return any(
        own.get(eqn.prim.name) is not type(eqn.prim) or any(map(is_foreign, eqn.prim.subjaxprs()))
        for eqn in jaxpr.eqns
    )


def by_differences(
    jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Outcome:
    """The derivative of results and final contents along the tangents; nan where it is unknown."""
    jaxpr, inputs = _without_stops(jaxpr, inputs)
    tangents = [*tangents, *[None] * (len(inputs) - len(tangents))]
    try:
        held = [_wide(x) for x in inputs]
        moved = [None if t is None else _wide(t) for t in tangents]
        return _along(widened(jaxpr), held, moved, jaxpr, STEPS)
    except Exception:  # noqa: BLE001  # whatever its author's NumPy raises
        # It may know the dtypes that it was declared for, and no others.
        return _along(jaxpr, inputs, tangents, jaxpr, NARROW_STEPS)


def _without_stops(jaxpr: Jaxpr, inputs: Sequence[Value]) -> tuple[Jaxpr, Sequence[Value]]:
    """What ``stop_gradient`` gives does not move: it becomes an input of the program.

    In a program that holds another one it is left there.
    """
    stops = [eqn for eqn in jaxpr.eqns if isinstance(eqn.prim, StopGradient)]
    if not stops:
        return jaxpr, inputs
    held = [np.array(x) for x in inputs]
    values = [eqn.outs[0] for eqn in stops]
    fixed = evaluate(Jaxpr(jaxpr.binders, jaxpr.eqns, values), held)
    kept = [eqn for eqn in jaxpr.eqns if not isinstance(eqn.prim, StopGradient)]
    return Jaxpr([*jaxpr.binders, *values], kept, jaxpr.outs), [*inputs, *fixed]


def _along(
    run: Jaxpr,
    inputs: Sequence[Value],
    tangents: Sequence[Value | None],
    jaxpr: Jaxpr,
    steps: Sequence[float],
) -> Outcome:
    def at(step: float) -> list[Value]:
        held = [
            np.array(x) if t is None else np.asarray(x + np.asarray(step, x.dtype) * t)
            for x, t in zip(inputs, tangents, strict=True)
        ]
        outs = [np.array(x) for x in evaluate(run, held)]
        return [*outs, *contents_of(run.in_types, held)]

    n = len(jaxpr.outs)
    types = [*jaxpr.out_types, *[t for t in jaxpr.in_types if isinstance(t, RefType)]]
    with np.errstate(all="ignore"):
        found = _all_slopes(at, types, steps)
    return Outcome(found[:n], found[n:])


def _all_slopes(
    at: Callable[[float], list[Value]], types: Sequence[Type], steps: Sequence[float]
) -> list[Value]:
    here = at(0.0)
    sides = [[(at(k * h), at(-k * h)) for k in PARTS] for h in steps]
    found = []
    for i, type_ in enumerate(types):
        if not is_inexact_dtype(here[i].dtype):
            found.append(np.zeros(here[i].shape))
            continue
        wide = WIDE[is_complex(here[i].dtype)]
        eps = _eps([here[i], *[y[i] for x in sides for pair in x for y in pair]])
        best = np.full(here[i].shape, np.nan, wide)
        error = np.full(here[i].shape, np.inf)
        for h, samples in zip(steps, sides, strict=True):
            values = [(x[i].astype(wide), y[i].astype(wide)) for x, y in samples]
            slope, off = _slope(here[i].astype(wide), values, h, eps)
            best, error = np.where(off < error, slope, best), np.minimum(off, error)
        allowed = 0.2 * tolerance(type_.dtype) * np.maximum(1.0, np.abs(best))
        found.append(np.where(error <= allowed, best, np.nan))
    return found


def _slope(
    here: Value, sides: Sequence[tuple[Value, Value]], step: float, eps: float
) -> tuple[Value, Value]:
    """The slope by Richardson's extrapolation, and how far off it may be: inf where there is none.

    Two central differences give one extrapolation, and three two of them, which agree where the
    function is smooth. Where it has a kink at the very point, slopes to the left and to the right
    stay apart as the step shrinks.
    """
    sizes = [k * step for k in PARTS]
    central = [(x - y) / (2 * h) for (x, y), h in zip(sides, sizes, strict=True)]
    # D(h) = f' + c·h² + ..., so that f' = (H²·D(h) - h²·D(H))/(H² - h²) + ...
    fine, coarse = [
        (big**2 * a - small**2 * b) / (big**2 - small**2)
        for (small, a), (big, b) in pairwise(zip(sizes, central, strict=True))
    ]
    noise = 4 * eps * np.abs(here) / step
    off = np.abs(fine - coarse) + noise
    apart = [np.abs(x + y - 2 * here) / h for (x, y), h in zip(sides, sizes, strict=True)]
    kink = (apart[0] > 0.78 * apart[1]) & (apart[0] > noise + 1e-6 * np.maximum(1, np.abs(fine)))
    known = np.isfinite(fine) & np.isfinite(coarse) & ~kink
    return np.where(known, fine, np.nan), np.where(known, off, np.inf)


def _eps(samples: Sequence[Value]) -> float:
    """The rounding of values, whatever their dtype: they may have been narrower on the way.

    What is written in fewer digits everywhere was computed with no more.
    """
    parts = [p.astype(np.float64) for x in samples for p in (np.real(x), np.imag(x))]
    values = np.concatenate([p.reshape(-1) for p in parts])
    values = values[np.isfinite(values)]
    for dtype in map(as_dtype, ("bfloat16", "float16", "float32")):
        if np.array_equal(values, values.astype(dtype).astype(np.float64)):
            return rounding(dtype)
    return rounding(as_dtype("float64"))


def _wide(x: Value) -> Value:
    return x.astype(WIDE[is_complex(x.dtype)]) if is_inexact_dtype(x.dtype) else np.array(x)


def _wide_type(type_: Type) -> Type:
    if not is_inexact_dtype(type_.dtype):
        return type_
    dtype = WIDE[is_complex(type_.dtype)]
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(dtype=dtype), type_.kind)
    return type_.update(dtype=dtype)


def _wide_prim(prim: Primitive) -> Primitive:
    if prim.subjaxprs():
        return prim.with_subjaxprs([widened(inner) for inner in prim.subjaxprs()])
    if isinstance(prim, ConvertElementType) and is_inexact_dtype(prim.new_dtype):
        return ConvertElementType(WIDE[is_complex(prim.new_dtype)], prim.weak_type)
    if isinstance(prim, Iota) and is_float(prim.dtype):
        return Iota(WIDE[False], prim.shape, prim.dimension)
    if isinstance(prim, EmptyRef):
        inner = _wide_type(prim.inner)
        assert isinstance(inner, ArrayType)
        return EmptyRef(inner)
    return prim


def widened(jaxpr: Jaxpr) -> Jaxpr:
    """The program in double precision, to be run only."""
    return retyped(jaxpr, _wide_type, _wide_prim)
