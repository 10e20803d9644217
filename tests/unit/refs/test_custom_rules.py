"""References as arguments of functions with rules: their cotangents, or a clear error."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import ad, lax
from effax.custom_derivatives import linear_call
from effax.ir.errors import BadRule, RefError, TransformError

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


def both() -> Any:
    """Return ``x·r`` with both rules."""
    f = jax.custom_rules(lambda x, r: x * r[...])
    f.defjvp(lambda p, t: (f(*p), t[0] * p[1][...] + p[0] * t[1][...]))
    f.defvjp(lambda x, r: (f(x, r), (x, r[...])), lambda res, ct: (ct * res[1], ct * res[0]))
    return f


KINDS: dict[str, Any] = {
    "reverse": reverse,
    "symbolic zeros": lambda: reverse(symbolic_zeros=True),
    "forward": forward,
    "both": both,
}
EACH = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@WRAPS
def test_both_rules_read_the_contents_at_the_call(wrap: Any) -> None:
    f = both()

    def h(x: Any) -> Any:
        r = effax.new_ref(jnp.sin(x))
        y = f(x, r)
        r[...] = 5 * x
        return y + r[...]

    value, slope = wrap(lambda x: jax.jvp(h, (x,), (1.0,)))(X)
    np.testing.assert_allclose([value, slope], [X * np.sin(X) + 5 * X, SLOPE + 5], rtol=1e-6)
    np.testing.assert_allclose(wrap(jax.jacfwd(jax.jacfwd(h)))(X), 2 * np.cos(X) - X * np.sin(X))
    np.testing.assert_allclose(wrap(jax.vmap(jax.jacfwd(h)))(jnp.array([X])), [SLOPE + 5])
    np.testing.assert_allclose(wrap(jax.grad(h))(X), SLOPE + 5, rtol=1e-6)

    seen = effax.new_ref(0)

    def counted(x: Any, r: Any) -> Any:
        seen[...] += 1
        return x * r[...]

    g = jax.custom_rules(counted)
    g.defjvp(lambda p, t: (g(*p), t[0] * p[1][...] + p[0] * t[1][...]))
    g.defvjp(lambda x, r: (g(x, r), (x, r[...])), lambda res, ct: (ct * res[1], ct * res[0]))
    run = wrap(lambda x: jax.jvp(lambda x: g(x, effax.new_ref(jnp.sin(x))), (x,), (1.0,))[1])
    np.testing.assert_allclose(run(X), SLOPE, rtol=1e-6)
    assert int(seen[...]) == 1

    def pushes(p: Any, t: Any) -> Any:
        t[1][...] = 0.0 * p[0]
        return f(*p), t[0]

    changing = both()
    changing.defjvp(pushes)
    with pytest.raises(TransformError, match="changes the tangent of r"):
        wrap(jax.grad(lambda x: changing(x, effax.new_ref(x))))(X)


@WRAPS
def test_a_reference_that_a_forward_rule_made_is_returned_by_its_contents(wrap: Any) -> None:
    f, outer = jax.custom_vjp(lambda x: 2 * x), effax.new_ref(1.0)

    def fwd(x: Any) -> Any:
        r = effax.new_ref(x)
        r[...] += 1
        return 2 * x, {"sum": r}

    f.defvjp(fwd, lambda res, ct: (ct,))
    with pytest.raises(RefError, match=r"residuals\['sum'\][\s\S]*return its contents: `ref"):
        wrap(jax.grad(f))(3.0)
    f.defvjp(lambda x: (2 * x, outer), lambda res, ct: (ct,))
    with pytest.raises(RefError, match=r"not its argument[\s\S]*pass the reference"):
        wrap(jax.grad(f))(3.0)
    f.defvjp(lambda x: (2 * x, fwd(x)[1]["sum"][...]), lambda res, ct: (ct * res,))
    assert float(wrap(jax.grad(f))(3.0)) == 4.0


@WRAPS
def test_a_forward_rule_does_not_change_a_differentiated_reference(wrap: Any) -> None:
    f = jax.custom_vjp(lambda x, r: x * r[...])

    def fwd(x: Any, r: Any) -> Any:
        r[...] *= x
        return r[...], None

    f.defvjp(fwd, lambda _, ct: (ct, None))
    with pytest.raises(TransformError, match="changes r, a differentiated reference"):
        wrap(jax.grad(lambda x: f(x, effax.new_ref(x))))(X)


@WRAPS
def test_linear_calls_read_the_contents_at_the_call(wrap: Any) -> None:
    def h(x: Any, s: Any = 2.0) -> Any:
        r = effax.new_ref(s)
        y = linear_call(lambda r, x: r[...] * x, lambda r, ct: 10 * r[...] * ct, r, x)
        r[...] = 7.0 * s
        return y + r[...]

    assert float(wrap(h)(3.0)) == 20.0
    assert float(wrap(lambda x: jax.jvp(h, (x,), (1.0,))[1])(3.0)) == 2.0
    assert float(wrap(jax.grad(h))(3.0)) == 20.0
    assert float(wrap(jax.grad(h, 1))(3.0, 2.0)) == 10.0
    np.testing.assert_allclose(wrap(jax.vmap(jax.grad(h)))(jnp.ones(2)), [20.0, 20.0])

    def writing(r: Any, x: Any) -> Any:
        r[...] = 1.0
        return 2 * x

    def refused(run: Any, pull: Any, x: Any) -> Any:
        return linear_call(run, pull, effax.new_ref(0.0), x)

    for run, pull in ((writing, lambda r, ct: ct), (lambda r, x: x, writing)):
        with pytest.raises(TransformError, match="changes"):
            wrap(jax.grad(partial(refused, run, pull)))(1.0)
    with pytest.raises(RefError, match="a linear argument, is a reference"):
        wrap(jax.grad(lambda x: linear_call(max, max, x, effax.new_ref(x))))(1.0)


@WRAPS
def test_a_residual_reference_of_the_caller_is_read_by_the_backward_rule(wrap: Any) -> None:
    f, r = both(), effax.new_ref(3.0)
    f.defvjp(lambda x, r: (f(x, r), (x, r)), lambda res, ct: (ct * res[1][...], ct * res[0]))
    assert float(wrap(jax.grad(lambda x: f(x, r)))(X)) == 3.0
    assert float(wrap(lambda x: jax.jvp(lambda x: f(x, r), (x,), (1.0,))[1])(X)) == 3.0
    with pytest.raises(TransformError, match="the function ends the reference before"):
        wrap(jax.grad(lambda x: f(x, effax.new_ref(x))))(X)
