"""Laws of transposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from effax.ir.analysis.queries import size
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type, is_inexact
from effax.testing.generate.features import NUMERIC, SMOOTH
from effax.testing.generate.values import (
    Differs,
    Outcome,
    check_all,
    random_inputs,
    random_value,
    tolerance,
)
from effax.testing.laws.jvp import differentiated, push, random_tangents
from effax.testing.laws.law import About, law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.transforms.framework.propagation import Mask
from effax.transforms.transpose.cotangent_spec import (
    CotangentSpec,
    DontWant,
    GradRef,
    GradValue,
    NonLinear,
    ThreadedRef,
)


def full_specs(jaxpr: Jaxpr, linear: Mask) -> list[CotangentSpec]:
    """Return the spec of every input: linear ones by value, or threaded through the reference."""
    return [
        NonLinear() if not has else ThreadedRef() if isinstance(t, RefType) else GradValue()
        for t, has in zip(jaxpr.in_types, linear, strict=True)
    ]


def pull(
    passes: Passes,
    jaxpr: Jaxpr,
    ct_specs: Sequence[CotangentSpec],
    inputs: Sequence[Value],
    outs: Sequence[Value],
    buffers: Sequence[Value | None],
) -> list[Value | None]:
    """Run a program transposed by the pass.

    Args:
        passes: the passes.
        jaxpr: the program.
        ct_specs: one an input.
        inputs: of which the nonlinear ones are passed.
        outs: the cotangents of the floating results.
        buffers: the initial contents of gradient references, None for other inputs.

    Returns:
        One cotangent an input: the value, or the final contents of its gradient reference.
    """
    made = passes.transpose(jaxpr, ct_specs)
    fixed = [np.array(x) for x, w in zip(inputs, ct_specs, strict=True) if isinstance(w, NonLinear)]
    grads = [None if x is None else np.array(x) for x in buffers]
    results = evaluate(made.jaxpr, [*fixed, *(x for x in grads if x is not None), *outs])
    given = (np.array(x) for x in results)
    nonzero = iter(made.nonzero)
    found: list[Value | None] = []
    for type_, ct_spec, buffer in zip(jaxpr.in_types, ct_specs, grads, strict=True):
        if isinstance(ct_spec, GradValue):
            found.append(next(given) if next(nonzero) else np.zeros(type_.shape, type_.dtype))
        else:
            found.append(buffer)
    return found


def random_cotangents(types: Sequence[Type], seed: int) -> list[Value]:
    """Return a random cotangent for each floating type."""
    rng = np.random.default_rng([seed, 5])
    return [np.array(random_value(rng, t)) for t in types if is_inexact(t)]


class Product(NamedTuple):
    """The inner product of values.

    Attributes:
        total: the real part of the sum of products.
        size: the sum of their magnitudes.
        rounding: the relative rounding of the least precise dtype.
    """

    total: float
    size: float
    rounding: float


def inner_product(xs: Sequence[Value | None], ys: Sequence[Value | None]) -> Product:
    """Return the inner product of the values that are present in both."""
    total = size = rounding = 0.0
    for x, y in zip(xs, ys, strict=True):
        if x is not None and y is not None:
            with np.errstate(all="ignore"):
                product = np.asarray(x, np.complex128) * np.asarray(y, np.complex128)
                total += float(product.sum().real)
                size += float(np.abs(product).sum())
            rounding = max(rounding, tolerance(x.dtype), tolerance(y.dtype))
    return Product(total, size, rounding)


def check_products(left: Product, right: Product) -> None:
    """Raise Differs unless two inner products are equal up to rounding."""
    scale = max(1.0, left.size, right.size)
    if not np.isfinite(scale):
        return
    if abs(left.total - right.total) > max(left.rounding, right.rounding) * scale:
        raise Differs(f"<ct, f(x)> = {left.total!r}, but <transpose(f)(ct), x> = {right.total!r}")


def linear_refs(jaxpr: Jaxpr, linear: Mask) -> list[int]:
    """Return the positions of the linear references."""
    return [
        i
        for i, (t, has) in enumerate(zip(jaxpr.in_types, linear, strict=True))
        if has and isinstance(t, RefType)
    ]


@law(about=About.LINEAR, features=NUMERIC, of_primitives=True)
def transpose_is_adjoint(
    jaxpr: Jaxpr, linear: Mask, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """<ct, f(x)> = <transpose(f)(ct), x>, where x and f(x) include the contents of references."""
    inputs = random_inputs(jaxpr.in_types, seed)
    after = run_all(jaxpr, inputs)
    cts = random_cotangents(jaxpr.out_types, seed)
    refs = linear_refs(jaxpr, linear)
    finals = dict(
        zip(refs, random_cotangents([jaxpr.in_types[i] for i in refs], seed + 1), strict=True)
    )
    buffers = [finals.get(i) for i in range(len(inputs))]
    found = pull(passes, jaxpr, full_specs(jaxpr, linear), inputs, cts, buffers)
    floats = [y for y, t in zip(after.outs, jaxpr.out_types, strict=True) if is_inexact(t)]
    left = inner_product([*cts, *finals.values()], [*floats, *(after.contents[i] for i in refs)])
    given = [x if has else None for x, has in zip(inputs, linear, strict=True)]
    check_products(left, inner_product(found, given))


def run_all(jaxpr: Jaxpr, inputs: Sequence[Value]) -> Outcome:
    """Run a program; return the final values of all inputs as contents."""
    values = [np.array(x) for x in inputs]
    outs = [np.array(x) for x in evaluate(jaxpr, values)]
    return Outcome(outs, values)


@law(about=About.LINEAR, features=NUMERIC, of_primitives=True)
def transpose_is_its_own_inverse(
    jaxpr: Jaxpr, linear: Mask, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """transpose(transpose(f)) = f."""
    once = passes.transpose(jaxpr, full_specs(jaxpr, linear))
    n_fixed = linear.count(False)
    n_refs = len(linear_refs(jaxpr, linear))
    mask = tuple(i >= n_fixed for i in range(len(once.jaxpr.binders)))
    assert all(isinstance(t, RefType) for t in once.jaxpr.in_types[n_fixed:][:n_refs])
    inputs = random_inputs(jaxpr.in_types, seed)
    fixed = [x for x, has in zip(inputs, linear, strict=True) if not has]
    values = [
        x
        for x, t, has in zip(inputs, jaxpr.in_types, linear, strict=True)
        if has and not isinstance(t, RefType)
    ]
    present = [x for x, has in zip(values, once.nonzero, strict=True) if has]
    refs = linear_refs(jaxpr, linear)
    buffers: list[Value | None] = [None] * len(mask)
    buffers[n_fixed : n_fixed + n_refs] = [inputs[i] for i in refs]
    filler = [np.zeros(t.shape, t.dtype) for t in once.jaxpr.in_types[n_fixed:]]
    twice = pull(
        passes, once.jaxpr, full_specs(once.jaxpr, mask), [*fixed, *filler], present, buffers
    )
    expected = run_all(jaxpr, inputs)
    # A result that is not floating has no cotangent: the transposed program lacks it.
    floats = [y for y, t in zip(expected.outs, jaxpr.out_types, strict=True) if is_inexact(t)]
    check_all("result", floats, _present(twice[n_fixed + n_refs :]))
    check_all(
        "final content of linear reference",
        [expected.contents[i] for i in refs],
        _present(twice[n_fixed : n_fixed + n_refs]),
    )


def _present(values: Sequence[Value | None]) -> list[Value]:
    return [x for x in values if x is not None]


@law(about=About.LINEAR, features=NUMERIC, of_primitives=True)
def transpose_accumulates_into_references(
    jaxpr: Jaxpr, linear: Mask, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """A GradRef ends with its initial contents plus the result of GradValue."""
    inputs = random_inputs(jaxpr.in_types, seed)
    cts = random_cotangents(jaxpr.out_types, seed)
    # The final contents of a GradRef input have a cotangent of zero.
    zeros = [
        np.zeros(t.shape, t.dtype) if has and isinstance(t, RefType) else None
        for t, has in zip(jaxpr.in_types, linear, strict=True)
    ]
    expected = pull(passes, jaxpr, full_specs(jaxpr, linear), inputs, cts, zeros)
    rng = np.random.default_rng([seed, 6])
    ct_specs: list[CotangentSpec] = []
    values: list[Value | None] = []
    for type_, has in zip(jaxpr.in_types, linear, strict=True):
        in_place = has and (isinstance(type_, RefType) or bool(rng.integers(0, 3)))
        ct_specs.append(GradRef() if in_place else GradValue() if has else NonLinear())
        values.append(np.array(random_value(rng, type_)) if in_place else None)
    found = pull(passes, jaxpr, ct_specs, inputs, cts, values)
    sums = [
        x if x is None or y is None else np.asarray(x + y, x.dtype)
        for x, y in zip(expected, values, strict=True)
    ]
    check_all("cotangent", _present(sums), _present(found))


@law(about=About.LINEAR, features=NUMERIC, of_primitives=True)
def transpose_omits_unwanted_cotangents(
    jaxpr: Jaxpr, linear: Mask, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """DontWant for some inputs keeps the other cotangents, and adds no work."""
    inputs = random_inputs(jaxpr.in_types, seed)
    cts = random_cotangents(jaxpr.out_types, seed)
    rng = np.random.default_rng([seed, 7])
    ct_specs = [GradRef() if isinstance(w, ThreadedRef) else w for w in full_specs(jaxpr, linear)]
    zeros = [
        np.zeros(t.shape, t.dtype) if isinstance(w, GradRef) else None
        for t, w in zip(jaxpr.in_types, ct_specs, strict=True)
    ]
    fewer: list[CotangentSpec] = [
        DontWant() if not isinstance(w, NonLinear) and rng.integers(0, 2) else w for w in ct_specs
    ]
    kept = [not isinstance(w, DontWant) for w in fewer]
    expected = pull(passes, jaxpr, ct_specs, inputs, cts, zeros)
    buffers = [x if has else None for x, has in zip(zeros, kept, strict=True)]
    found = pull(passes, jaxpr, fewer, inputs, cts, buffers)
    wanted = [x if has else None for x, has in zip(expected, kept, strict=True)]
    check_all("cotangent", _present(wanted), _present(found))
    less = passes.transpose(jaxpr, fewer).jaxpr
    whole = passes.transpose(jaxpr, ct_specs).jaxpr
    assert size(less) <= size(whole), f"unwanted cotangents add work:\n{less}\n{whole}"
    if all(isinstance(w, DontWant | NonLinear) for w in fewer):
        assert not [e for e in less.eqns if not e.effects.changes_state], (
            f"no cotangent is wanted, and work is left:\n{less}"
        )


@law(features=SMOOTH, of_primitives=True)
def vjp_is_adjoint_to_jvp(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """<ct, df(x)(t)> = <vjp(f)(x)(ct), t>: jvp, then partial_eval, then transpose."""
    types = jaxpr.in_types
    mask = differentiated(types, seed)
    inputs = random_inputs(types, seed)
    tangents = random_tangents(types, mask, seed)
    pushed = push(passes, jaxpr, inputs, tangents)

    made = passes.jvp(jaxpr, mask)
    n_primals, n_outs = len(jaxpr.binders), len(jaxpr.outs)
    n_tangents = len(made.jaxpr.binders) - n_primals
    known = (True,) * n_primals + (False,) * n_tangents
    parts = passes.partial_eval(made.jaxpr, known)
    assert all(parts.known_outs[:n_outs]), "a primal result depends on tangents"
    values = [np.array(x) for x in inputs]
    knowns = evaluate(parts.known, values)
    fixed = [np.array(r.pick(values, knowns)) for r in parts.residuals]
    # Tangent results that no tangent reaches are known, and zero.
    pairs = zip(parts.known_outs[n_outs:], _where(made.out_tangents), strict=True)
    reached = [j for has, j in pairs if not has]
    cts = random_cotangents([jaxpr.out_types[j] for j in reached], seed)

    linear = parts.unknown
    is_linear = (False,) * len(fixed) + (True,) * n_tangents
    moved = [t for t in tangents if t is not None]
    refs = linear_refs(linear, is_linear)
    finals = random_cotangents([linear.in_types[i] for i in refs], seed + 1)
    buffers: list[Value | None] = [None] * len(is_linear)
    for i, ct in zip(refs, finals, strict=True):
        buffers[i] = ct
    given = [*fixed, *moved]
    found = pull(passes, linear, full_specs(linear, is_linear), given, cts, buffers)
    contents = [x for x, t in zip(pushed.contents, _ref_types(types), strict=True) if is_inexact(t)]
    left = inner_product([*cts, *finals], [*(pushed.outs[j] for j in reached), *contents])
    check_products(left, inner_product(found[len(fixed) :], moved))


def _where(mask: Sequence[bool]) -> list[int]:
    """Return the positions of the true entries."""
    return [i for i, has in enumerate(mask) if has]


def _ref_types(types: Sequence[Type]) -> list[Type]:
    return [t for t in types if isinstance(t, RefType)]
