"""The law of derivatives at special points: zeros, ones, ties, and coinciding singular values.

There a rule has branches that no random point reaches, and conventions where no derivative exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from effax.ir import prims as p
from effax.ir.analysis.queries import walk
from effax.ir.dtypes import is_inexact_dtype
from effax.ir.primitive import Primitive, Value
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type
from effax.testing.generate.features import SMOOTH
from effax.testing.generate.values import random_inputs
from effax.testing.laws.derivative import by_differences
from effax.testing.laws.jvp import check_tangents, differentiated, push, random_tangents
from effax.testing.laws.law import assume, law
from effax.testing.laws.transformations import LIBRARY, Passes

N_POINTS: Final = 5

KINKED: Final[tuple[type[Primitive], ...]] = (
    *(p.Abs, p.Sign, p.Max, p.Min, p.Clamp, p.Rem, p.Sort, p.TopK),
    *(p.ReduceMax, p.ReduceMin, p.CumMax, p.CumMin),
)
"""Primitives with conventions at ties, which compositions that are smooth there do not respect:
min(|x|, 0) is 0, and the product of the conventions is not."""


def special_point(x: Value, kind: int, rng: np.random.Generator) -> Value:
    """Return zeros, ones, a multiple of the identity, equal elements, or ``x`` with zeros."""
    if kind == 0:
        return np.zeros_like(x)
    if kind == 1:
        return np.ones_like(x)
    if kind == 2 and x.ndim >= 2:
        scaled = np.asarray(2 * np.eye(*x.shape[-2:]), x.dtype)
        return np.array(np.broadcast_to(scaled, x.shape))
    if kind in (2, 3):
        return np.full_like(x, x.flat[0])
    return np.where(rng.integers(0, 2, x.shape).astype(bool), x, np.zeros_like(x))


def special_inputs(types: Sequence[Type], seed: int) -> list[Value]:
    """Return one value an input, floats and complex numbers at special points."""
    rng = np.random.default_rng([seed, 2])
    return [
        special_point(x, int(rng.integers(0, N_POINTS)), rng)
        if is_inexact_dtype(x.dtype) and x.size
        else x
        for x in random_inputs(types, seed)
    ]


@law(features=replace(SMOOTH, refs=False))
def derivatives_are_right_at_special_points(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """df(x)(t) and d²f(x)(t, t) at zeros, ones and ties are limits of differences, or nan."""
    assume(not any(isinstance(t, RefType) for t in jaxpr.in_types))
    assume(not any(isinstance(place.eqn.prim, KINKED) for place in walk(jaxpr)))
    check_derivatives(jaxpr, seed, passes)


def check_derivatives(jaxpr: Jaxpr, seed: int, passes: Passes) -> None:
    """Raise Differs if a first or second derivative at a special point is wrong; nan is not."""
    inputs = special_inputs(jaxpr.in_types, seed)
    mask = differentiated(jaxpr.in_types, seed)
    s, t = (random_tangents(jaxpr.in_types, mask, seed + i) for i in range(2))
    check_or_nan(jaxpr, inputs, (s, t), passes)
    once = passes.jvp(jaxpr, mask).jaxpr
    # The direction of the first derivative is an input that is not differentiated.
    along = [x for x in s if x is not None]
    fixed = [None] * len(along)
    check_or_nan(once, [*inputs, *along], ([*s, *fixed], [*t, *fixed]), passes)


Tangents = Sequence[Value | None]


def check_or_nan(
    jaxpr: Jaxpr, inputs: Sequence[Value], directions: tuple[Tangents, Tangents], passes: Passes
) -> None:
    """Raise Differs if a tangent along the first direction is wrong; nan is not.

    It is known where differences have limits that are linear in the directions: at a tie, they may
    have limits along all directions, though the function has no derivative.
    """
    s, t = directions
    found = push(passes, jaxpr, inputs, s).tangents
    mixed = [None if x is None or y is None else x + y for x, y in zip(s, t, strict=True)]
    first, second, both = (_slopes(jaxpr, inputs, along) for along in (s, t, mixed))
    with np.errstate(invalid="ignore"):
        known = [
            np.where(np.isclose(x + y, z, 1e-5, 1e-5) & ~_is_nan(have), x, np.nan)
            for x, y, z, have in zip(first, second, both, found, strict=True)
        ]
    check_tangents(known, found)


def _slopes(jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Tangents) -> list[Value]:
    found = by_differences(jaxpr, inputs, tangents)
    return [*found.outs, *found.contents]


def _is_nan(x: Value | None) -> Value:
    return np.asarray(False) if x is None else np.isnan(x)
