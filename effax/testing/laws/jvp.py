"""Laws of forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from effax.ir.build import Builder
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, Type, is_inexact, tangent_type
from effax.testing.generate.features import NUMERIC, SMOOTH
from effax.testing.generate.values import (
    Differs,
    Outcome,
    check_all,
    check_equal,
    check_outcomes,
    contents_of,
    largest,
    random_inputs,
    random_value,
    run,
)
from effax.testing.laws.derivative import by_differences, directional
from effax.testing.laws.law import About, law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.transforms.framework.propagation import Mask


class Pushed(NamedTuple):
    """The result of forward mode; tangents are None for types without them.

    Attributes:
        values: results and final contents.
        outs: tangents of results.
        contents: tangents of final contents.
    """

    values: Outcome
    outs: list[Value | None]
    contents: list[Value | None]

    @property
    def tangents(self) -> list[Value | None]:
        return [*self.outs, *self.contents]


def differentiated(types: Sequence[Type], seed: int) -> Mask:
    """Return the mask of inputs with tangents: random ones; all for seed 0."""
    rng = np.random.default_rng(seed)
    draws = [seed == 0 or bool(rng.integers(0, 3)) for _ in types]
    return tuple(
        is_inexact(t) and (isinstance(t, RefType) or flag)
        for t, flag in zip(types, draws, strict=True)
    )


def random_tangents(types: Sequence[Type], mask: Mask, seed: int) -> list[Value | None]:
    """Return a random tangent for each input of the mask."""
    rng = np.random.default_rng([seed, 1])
    return [
        np.array(random_value(rng, tangent_type(t))) if has else None
        for t, has in zip(types, mask, strict=True)
    ]


def push(
    passes: Passes, jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Pushed:
    """Run a program differentiated by the pass; a missing tangent is zero."""
    made = passes.jvp(jaxpr, tuple(t is not None for t in tangents))
    primals = [np.array(x) for x in inputs]
    moved = [None if t is None else np.array(t) for t in tangents]
    results = evaluate(made.jaxpr, [*primals, *[t for t in moved if t is not None]])
    return pushed(jaxpr, primals, moved, results, made.out_tangents)


def pushed(
    jaxpr: Jaxpr,
    primals: Sequence[Value],
    tangents: Sequence[Value | None],
    results: Sequence[Value],
    out_tangents: Mask,
) -> Pushed:
    """Return the outcome of a run, from its buffers and from results followed by tangents."""
    n = len(jaxpr.outs)
    dots = (np.array(x) for x in results[n:])
    outs: list[Value | None] = [
        next(dots) if has else np.zeros(t.shape, t.dtype) if is_inexact(t) else None
        for t, has in zip(jaxpr.out_types, out_tangents, strict=True)
    ]
    values = Outcome([np.array(x) for x in results[:n]], contents_of(jaxpr.in_types, primals))
    contents = [x for x, t in zip(tangents, jaxpr.in_types, strict=True) if isinstance(t, RefType)]
    return Pushed(values, outs, contents)


def check_tangents(
    expected: Sequence[Value | None], found: Sequence[Value | None], scale: float = 0.0
) -> None:
    """Raise Differs unless tangents are equal; elements that are not finite are not compared.

    Args:
        expected: the expected tangents.
        found: the tangents.
        scale: a magnitude to which rounding is relative, if it is above that of ``expected``.
    """
    for i, (x, y) in enumerate(zip(expected, found, strict=True)):
        if x is not None and y is not None:
            with np.errstate(all="ignore"):
                rounded = x.astype(y.dtype)
            known, nan = np.isfinite(x) & np.isfinite(rounded), np.asarray(np.nan, y.dtype)
            wanted, had = np.where(known, rounded, nan), np.where(known, y, nan)
            check_equal(f"tangent {i}", wanted, had, scale)


@law(features=NUMERIC, of_primitives=True)
def jvp_keeps_values(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """jvp(f)(x, t) = (f(x), ...): results, references, and the order of effects."""
    inputs = random_inputs(jaxpr.in_types, seed)
    tangents = random_tangents(jaxpr.in_types, differentiated(jaxpr.in_types, seed), seed)
    check_outcomes(run(jaxpr, inputs), push(passes, jaxpr, inputs, tangents).values)


@law(features=NUMERIC, of_primitives=True)
def jvp_is_linear(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """df(x)(a·s + b·t) = a·df(x)(s) + b·df(x)(t)."""
    inputs = random_inputs(jaxpr.in_types, seed)
    mask = differentiated(jaxpr.in_types, seed)
    s = random_tangents(jaxpr.in_types, mask, seed)
    t = random_tangents(jaxpr.in_types, mask, seed + 1)
    a, b = 0.75, -1.5
    mixed = [
        None if x is None or y is None else np.asarray(a * x + b * y, x.dtype)
        for x, y in zip(s, t, strict=True)
    ]
    along = [push(passes, jaxpr, inputs, direction).tangents for direction in (s, t, mixed)]
    expected = [
        None if x is None or y is None else np.asarray(a * x + b * y)
        for x, y in zip(along[0], along[1], strict=True)
    ]
    parts = [x for some in along[:2] for x in some if x is not None]
    check_tangents(expected, along[2], max([float(largest(x)) for x in parts], default=0.0))


@law(features=SMOOTH, of_primitives=True)
def jvp_is_the_derivative(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """df(x)(t) = lim (f(x + h·t) - f(x))/h, of results and of final contents."""
    inputs = random_inputs(jaxpr.in_types, seed)
    tangents = random_tangents(jaxpr.in_types, differentiated(jaxpr.in_types, seed), seed)
    expected = directional(jaxpr, inputs, tangents)
    found = push(passes, jaxpr, inputs, tangents).tangents
    try:
        check_tangents([*expected.outs, *expected.contents], found)
    except Differs:
        # Complex steps miss kinks, ends of domains and the rounding of narrow dtypes.
        is_doubtful = True
    else:
        # An evaluation that drops imaginary parts, as `np.abs` does, has a complex step of zero.
        found_zero = any(_is_zero(x) for x in (*expected.outs, *expected.contents))
        is_doubtful = found_zero or len(jaxpr.eqns) <= FEW
    if is_doubtful:
        expected = by_differences(jaxpr, inputs, tangents)
        check_tangents([*expected.outs, *expected.contents], found)


FEW: Final = 4
"""Derivatives of programs of so few equations are compared with differences too."""


def _is_zero(x: Value) -> bool:
    return x.size > 0 and x.dtype.kind in "fc" and not np.any(x)


def has_slopes(jaxpr: Jaxpr, seed: int) -> bool:
    """Return whether differences determine a derivative, or the program has none."""
    mask = differentiated(jaxpr.in_types, seed)
    types = [*jaxpr.out_types, *[t for t in jaxpr.in_types if isinstance(t, RefType)]]
    if not any(mask) or not any(is_inexact(t) and 0 not in t.shape for t in types):
        return True
    inputs = random_inputs(jaxpr.in_types, seed)
    expected = directional(jaxpr, inputs, random_tangents(jaxpr.in_types, mask, seed))
    found = [*expected.outs, *expected.contents]
    return any(np.isfinite(x).any() for x, t in zip(found, types, strict=True) if is_inexact(t))


def composed(first: Jaxpr, second: Jaxpr) -> Jaxpr:
    """Return the second program applied to the results and references of the first."""
    b = Builder(first.in_types)
    outs = b.inline_jaxpr(first, b.binders)
    refs: list[Atom] = [v for v in b.binders if isinstance(v.type, RefType)]
    return b.finish(b.inline_jaxpr(second, [*outs, *refs]))


@law(about=About.PAIRS, features=SMOOTH)
def jvp_has_the_chain_rule(
    first: Jaxpr, second: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """d(g∘f)(x) = dg(f(x))∘df(x); g takes the results and references of f."""
    inputs = random_inputs(first.in_types, seed)
    tangents = random_tangents(first.in_types, differentiated(first.in_types, seed), seed)
    whole = push(passes, composed(first, second), inputs, tangents)
    inner = push(passes, first, inputs, tangents)
    outer = push(passes, second, [*inner.values.outs, *inner.values.contents], inner.tangents)
    check_all("result", outer.values.outs, whole.values.outs)
    check_tangents(outer.outs, whole.outs)
    refs = [i for i, t in enumerate(second.in_types) if isinstance(t, RefType)]
    assert len(refs) == len(whole.contents)
    check_all("final content of reference", outer.values.contents, whole.values.contents)
    check_tangents(outer.contents, whole.contents)
