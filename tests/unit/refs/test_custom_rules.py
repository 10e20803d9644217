"""References as arguments of functions with rules: their cotangents, or a clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import ad, lax
from effax.ir.errors import BadRule, TransformError

jax: Any = effax
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jitted"])
# h(x) = x sin x, h' = sin x + x cos x, h'' = 2 cos x - x sin x
X = 0.7
SLOPE = np.sin(X) + X * np.cos(X)


def reverse(**options: Any) -> Any:
    """Return ``x·r`` with a reverse rule."""
    f = jax.custom_vjp(lambda x, r: x * r[...])
    if options:
        f.defvjp(
            lambda x, r: (x.value * r.value[...], (x.value, r.value[...], r.perturbed)),
            lambda res, ct: (ct * res[1], ct * res[0] if res[2] else None),
            **options,
        )
    else:
        f.defvjp(lambda x, r: (x * r[...], (x, r[...])), lambda res, ct: (ct * res[1], ct * res[0]))
    return f


def forward() -> Any:
    """Return ``x·r`` with a forward rule, which takes the tangent reference."""
    f = jax.custom_jvp(lambda x, r: x * r[...])

    def rule(p: Any, t: Any) -> Any:
        (x, r), (dx, dr) = p, t
        return f(x, r), dx * r[...] + x * dr[...]

    f.defjvp(rule)
    return f


KINDS: dict[str, Any] = {
    "reverse": reverse,
    "symbolic zeros": lambda: reverse(symbolic_zeros=True),
    "forward": forward,
}
EACH = pytest.mark.parametrize("kind", KINDS)


@WRAPS
@EACH
def test_the_cotangent_of_a_reference_reaches_what_it_was_made_of(kind: str, wrap: Any) -> None:
    f = KINDS[kind]()

    def h(x: Any) -> Any:
        return f(x, effax.new_ref(jnp.sin(x)))

    np.testing.assert_allclose(wrap(jax.grad(h))(X), SLOPE, rtol=1e-6)
    np.testing.assert_allclose(wrap(lambda x: jax.vjp(h, x)[1](1.0)[0])(X), SLOPE, rtol=1e-6)
    xs = jnp.array([X, 0.1])
    slopes = np.sin(xs) + xs * np.cos(xs)
    np.testing.assert_allclose(wrap(jax.vmap(jax.grad(h)))(xs), slopes, rtol=1e-6)
    total = jax.grad(lambda v: jax.vmap(h)(v).sum())
    np.testing.assert_allclose(wrap(total)(xs), slopes, rtol=1e-6)
    np.testing.assert_allclose(wrap(jax.grad(jax.checkpoint(h)))(X), SLOPE, rtol=1e-6)
    second = wrap(jax.grad(jax.grad(h)))(X)
    np.testing.assert_allclose(second, 2 * np.cos(X) - X * np.sin(X), rtol=1e-5)


@WRAPS
@EACH
def test_references_that_batch_elements_and_iterations_share(kind: str, wrap: Any) -> None:
    f = KINDS[kind]()

    def shared(x: Any) -> Any:
        r = effax.new_ref(jnp.sin(x))
        return jax.vmap(lambda s: f(s, r))(jnp.array([1.0, 2.0])).sum()

    np.testing.assert_allclose(wrap(jax.grad(shared))(X), 3 * np.cos(X), rtol=1e-6)

    def looped(x: Any) -> Any:
        r = effax.new_ref(jnp.sin(x))
        return lax.scan(lambda c, _: (f(c, r), None), x, None, 2)[0]

    expected = np.sin(X) ** 2 + 2 * X * np.sin(X) * np.cos(X)
    np.testing.assert_allclose(wrap(jax.grad(looped))(X), expected, rtol=1e-5)


@WRAPS
@EACH
def test_gradient_references_of_reference_arguments(kind: str, wrap: Any) -> None:
    f, r, grads = KINDS[kind](), effax.new_ref(3.0), effax.new_ref(10.0)

    def run(x: Any) -> Any:
        _, pull = jax.vjp(lambda x: f(x, r), x)
        return pull(1.0)[0]

    def accumulated(x: Any, r: Any, grads: Any) -> Any:
        _, pull = jax.vjp(f, x, r)
        return pull.with_refs(ad.GradValue(), grads)(1.0)[0]

    assert float(wrap(accumulated)(2.0, r, grads)) == 3.0
    assert float(grads[...]) == 12.0
    assert float(wrap(run)(2.0)) == 3.0


@WRAPS
def test_trees_of_references_and_references_of_integers(wrap: Any) -> None:
    f = jax.custom_vjp(lambda d, i: d["r"][i[...]] * d["x"])

    def fwd(d: Any, i: Any) -> Any:
        return d["r"][i[...]] * d["x"], (d["r"][...], i[...], d["x"])

    def bwd(res: Any, ct: Any) -> Any:
        r, i, x = res
        return {"r": jnp.zeros(3).at[i].set(ct * x), "x": ct * r[i]}, None

    f.defvjp(fwd, bwd)

    def h(x: Any) -> Any:
        r = effax.new_ref(jnp.stack([x, 2 * x, 3 * x]))
        return f({"r": r, "x": x}, effax.new_ref(1))

    np.testing.assert_allclose(wrap(jax.grad(h))(X), 4 * X, rtol=1e-6)


@WRAPS
def test_a_forward_rule_writes_the_tangent_reference(wrap: Any) -> None:
    @effax.custom_jvp
    def scale(x: Any, r: Any) -> Any:
        r[...] = r[...] * x
        return x

    def rule(p: Any, t: Any) -> Any:
        (x, r), (dx, dr) = p, t
        dr[...] = dr[...] * x + r[...] * dx
        return scale(x, r), dx

    scale.defjvp(rule)

    def h(x: Any) -> Any:
        r = effax.new_ref(jnp.sin(x))
        return scale(x, r) * r[...]

    # h(x) = x² sin x
    np.testing.assert_allclose(
        wrap(jax.grad(h))(X), 2 * X * np.sin(X) + X**2 * np.cos(X), rtol=1e-6
    )


def writing(stopped: bool) -> Any:
    """Return a function that writes ``2x``, differentiated or not, and returns ``x``."""

    def run(x: Any, r: Any) -> Any:
        r[...] = lax.stop_gradient(2 * x) if stopped else 2 * x
        return x

    f = jax.custom_vjp(run)
    f.defvjp(lambda x, r: (run(x, r), None), lambda _, ct: (5 * ct, None))
    return f


@WRAPS
def test_a_reverse_rule_has_no_cotangent_of_what_it_wrote(wrap: Any) -> None:
    def h(f: Any, x: Any) -> Any:
        r = effax.new_ref(0.0 * x)
        return f(x, r) + r[...]

    with pytest.raises(TransformError, match="changes r, a differentiated reference"):
        wrap(jax.grad(lambda x: h(writing(False), x)))(X)
    with pytest.raises(TransformError, match="changes r, a differentiated reference"):
        wrap(lambda x: jax.vjp(lambda x: h(writing(False), x), x)[1](1.0))(X)

    def undifferentiated(x: Any) -> Any:
        r = effax.new_ref(0.0)
        return writing(True)(x, r) + r[...]

    assert float(wrap(jax.grad(undifferentiated))(X)) == 5.0


@WRAPS
def test_cotangents_of_references_are_checked(wrap: Any) -> None:
    f = jax.custom_vjp(lambda x, r: x * r[...])
    f.defvjp(lambda x, r: (x * r[...], None), lambda _, ct: (ct, jnp.ones(3)))
    with pytest.raises(BadRule, match="wrong type for r"):
        wrap(jax.grad(lambda x: f(x, effax.new_ref(x))))(X)
    none = jax.custom_vjp(lambda x, r: x * r[...])
    none.defvjp(lambda x, r: (x * r[...], r[...]), lambda r, ct: (ct * r, None))
    found = wrap(jax.grad(lambda x: none(x, effax.new_ref(jnp.sin(x)))))(X)
    np.testing.assert_allclose(found, np.sin(X), rtol=1e-6)


@WRAPS
def test_linear_calls_refuse_references_that_their_functions_read(wrap: Any) -> None:
    from effax.custom_derivatives import linear_call

    def h(x: Any) -> Any:
        r = effax.new_ref(2.0)
        return linear_call(lambda r, x: r[...] * x, lambda r, ct: r[...] * ct, r, x)

    with pytest.raises(TypeError, match="reference"):
        wrap(jax.grad(h))(1.0)
