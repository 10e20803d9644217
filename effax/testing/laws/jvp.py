"""Laws of forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from effax.testing.laws.derivative import directional
from effax.testing.laws.differences import by_differences
from effax.testing.laws.law import About, law
from effax.testing.laws.pass_set import Passes
from effax.transforms.framework.propagation import Mask


class Pushed(NamedTuple):
    """What a program gives in forward mode: values, and the tangents of all floats (else None)."""

    values: Outcome
    outs: list[Value | None]
    contents: list[Value | None]


def differentiated(types: Sequence[Type], seed: int) -> Mask:
    """Which inputs get tangents: every reference of floats, some arrays; all for seed 0."""
    rng = np.random.default_rng(seed)
    draws = [seed == 0 or bool(rng.integers(0, 3)) for _ in types]
    return tuple(
        is_inexact(t) and (isinstance(t, RefType) or flag)
        for t, flag in zip(types, draws, strict=True)
    )


def random_tangents(types: Sequence[Type], mask: Mask, seed: int) -> list[Value | None]:
    """A tangent for each input of the mask."""
    rng = np.random.default_rng([seed, 1])
    return [
        np.array(random_value(rng, tangent_type(t))) if has else None
        for t, has in zip(types, mask, strict=True)
    ]


def push(
    passes: Passes, jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Pushed:
    """Run a program differentiated by the pass; what has no tangent has a tangent of zero."""
    mask = tuple(t is not None for t in tangents)
    made = passes.jvp(jaxpr, mask)
    held = [np.array(x) for x in inputs]
    moved = [np.array(t) for t in tangents if t is not None]
    results = [np.array(x) for x in evaluate(made.jaxpr, [*held, *moved])]
    n = len(jaxpr.outs)
    given = iter(results[n:])
    outs = [
        next(given) if has else _zero(a.type)
        for a, has in zip(jaxpr.outs, made.out_tangents, strict=True)
    ]
    rest = iter(moved)
    final = [next(rest) if has else None for has in mask]
    values = Outcome(results[:n], contents_of(jaxpr.in_types, held))
    contents = [x for x, t in zip(final, jaxpr.in_types, strict=True) if isinstance(t, RefType)]
    return Pushed(values, outs, contents)


def _zero(type_: Type) -> Value | None:
    return np.zeros(type_.shape, type_.dtype) if is_inexact(type_) else None


def check_tangents(
    expected: Sequence[Value | None], found: Sequence[Value | None], scale: float = 0.0
) -> None:
    """Raise Differs unless tangents are equal; elements that are not finite are not compared.

    Args:
        expected: what should have been.
        found: what is.
        scale: a magnitude of which rounding may be a part, beside that of what is expected.
    """
    for i, (x, y) in enumerate(zip(expected, found, strict=True)):
        if x is not None and y is not None:
            with np.errstate(all="ignore"):
                rounded = x.astype(y.dtype)
            known, nan = np.isfinite(x) & np.isfinite(rounded), np.asarray(np.nan, y.dtype)
            wanted, had = np.where(known, rounded, nan), np.where(known, y, nan)
            check_equal(f"tangent {i}", wanted, had, scale)


def _all(pushed: Pushed) -> list[Value | None]:
    return [*pushed.outs, *pushed.contents]


@law(features=NUMERIC, of_primitives=True)
def jvp_keeps_values(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """jvp(f)(x, t) = (f(x), ...): results, references, and the order of what is done to them."""
    passes = passes or Passes()
    inputs = random_inputs(jaxpr.in_types, seed)
    tangents = random_tangents(jaxpr.in_types, differentiated(jaxpr.in_types, seed), seed)
    check_outcomes(run(jaxpr, inputs), push(passes, jaxpr, inputs, tangents).values)


@law(features=NUMERIC, of_primitives=True)
def jvp_is_linear(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """df(x)(a·s + b·t) = a·df(x)(s) + b·df(x)(t)."""
    passes = passes or Passes()
    inputs = random_inputs(jaxpr.in_types, seed)
    mask = differentiated(jaxpr.in_types, seed)
    s = random_tangents(jaxpr.in_types, mask, seed)
    t = random_tangents(jaxpr.in_types, mask, seed + 1)
    a, b = 0.75, -1.5
    mixed = [
        None if x is None or y is None else np.asarray(a * x + b * y, x.dtype)
        for x, y in zip(s, t, strict=True)
    ]
    along = [_all(push(passes, jaxpr, inputs, direction)) for direction in (s, t, mixed)]
    expected = [
        None if x is None or y is None else np.asarray(a * x + b * y)
        for x, y in zip(along[0], along[1], strict=True)
    ]
    parts = [x for some in along[:2] for x in some if x is not None]
    check_tangents(expected, along[2], max([float(largest(x)) for x in parts], default=0.0))


@law(features=SMOOTH, of_primitives=True)
def jvp_is_the_derivative(jaxpr: Jaxpr, seed: int = 0, passes: Passes | None = None) -> None:
    """df(x)(t) = lim (f(x + h·t) - f(x))/h, of results and of final contents."""
    passes = passes or Passes()
    inputs = random_inputs(jaxpr.in_types, seed)
    tangents = random_tangents(jaxpr.in_types, differentiated(jaxpr.in_types, seed), seed)
    expected = directional(jaxpr, inputs, tangents)
    found = _all(push(passes, jaxpr, inputs, tangents))
    if expected is None:
        return
    try:
        check_tangents([*expected.outs, *expected.contents], found)
    except Differs:
        # Complex numbers go on where real ones end, and know neither corners nor narrow dtypes.
        expected = by_differences(jaxpr, inputs, tangents)
        check_tangents([*expected.outs, *expected.contents], found)


def has_slopes(jaxpr: Jaxpr, seed: int) -> bool:
    """Whether differences tell the derivative of any result or content; or there is none."""
    mask = differentiated(jaxpr.in_types, seed)
    inputs = random_inputs(jaxpr.in_types, seed)
    expected = directional(jaxpr, inputs, random_tangents(jaxpr.in_types, mask, seed))
    types = [*jaxpr.out_types, *[t for t in jaxpr.in_types if isinstance(t, RefType)]]
    if (
        expected is None
        or not any(mask)
        or not any(is_inexact(t) and 0 not in t.shape for t in types)
    ):
        return expected is not None
    found = [*expected.outs, *expected.contents]
    return any(np.isfinite(x).any() for x, t in zip(found, types, strict=True) if is_inexact(t))


def composed(first: Jaxpr, second: Jaxpr) -> Jaxpr:
    """The second program after the first one, on its results and its references."""
    b = Builder(first.in_types)
    outs = b.inline_jaxpr(first, b.binders)
    refs: list[Atom] = [v for v in b.binders if isinstance(v.type, RefType)]
    return b.finish(b.inline_jaxpr(second, [*outs, *refs]))


@law(about=About.PAIRS, features=SMOOTH)
def jvp_has_the_chain_rule(
    first: Jaxpr, second: Jaxpr, seed: int = 0, passes: Passes | None = None
) -> None:
    """d(g∘f)(x) = dg(f(x))∘df(x); the second program takes results and references of the first."""
    passes = passes or Passes()
    inputs = random_inputs(first.in_types, seed)
    tangents = random_tangents(first.in_types, differentiated(first.in_types, seed), seed)
    whole = push(passes, composed(first, second), inputs, tangents)
    half = push(passes, first, inputs, tangents)
    rest = push(passes, second, [*half.values.outs, *half.values.contents], _all(half))
    check_all("result", rest.values.outs, whole.values.outs)
    check_tangents(rest.outs, whole.outs)
    refs = [i for i, t in enumerate(second.in_types) if isinstance(t, RefType)]
    assert len(refs) == len(whole.contents)
    check_all("final content of reference", rest.values.contents, whole.values.contents)
    check_tangents(rest.contents, whole.contents)
