"""grad and value_and_grad: values, structures, Python control flow, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, ConcretizationError, IllTyped


def cube(x: Any) -> Any:
    return x * x * x


def test_derivatives_of_every_order() -> None:
    f, expected = cube, [8.0, 12.0, 12.0, 6.0, 0.0]
    for value in expected:
        assert float(f(2.0)) == pytest.approx(value)
        f = effax.grad(f)


def test_gradients_have_the_structure_of_the_argument() -> None:
    params = {"w": jnp.arange(3.0), "b": (jnp.ones(()), [jnp.ones(2)])}
    grads = effax.grad(lambda p: (p["w"] ** 2).sum() + p["b"][0] + p["b"][1][0].sum())(params)
    assert effax.tree.structure(grads) == effax.tree.structure(params)
    np.testing.assert_allclose(grads["w"], [0.0, 2.0, 4.0])
    np.testing.assert_allclose(grads["b"][1][0], [1.0, 1.0])


def test_argnums_choose_arguments() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * x * y

    assert float(effax.grad(f, 1)(3.0, 5.0)) == 9.0
    both = effax.grad(f, (0, 1))(3.0, 5.0)
    assert [float(g) for g in both] == [30.0, 9.0]
    assert float(effax.grad(f, argnums=-1)(3.0, 5.0)) == 9.0


def test_value_and_grad_with_aux() -> None:
    def f(x: Any) -> tuple[effax.Array, dict[str, effax.Array]]:
        return x * x, {"double": x + x}

    (value, aux), slope = effax.value_and_grad(f, has_aux=True)(3.0)
    assert (float(value), float(aux["double"]), float(slope)) == (9.0, 6.0, 6.0)
    slope, aux = effax.grad(f, has_aux=True)(3.0)
    assert (float(slope), float(aux["double"])) == (6.0, 6.0)


def test_keyword_arguments_are_not_differentiated() -> None:
    assert float(effax.grad(lambda x, *, scale: x * scale)(2.0, scale=7.0)) == 7.0


def test_python_control_flow_on_values() -> None:
    def f(x: Any) -> Any:
        if x > 3:
            return 2.0 * x**2
        return 3.0 * x

    assert float(effax.grad(f)(3.9)) == pytest.approx(15.6)
    assert float(effax.grad(f)(0.1)) == 3.0
    assert float(effax.grad(effax.grad(f))(3.9)) == 4.0


def test_python_control_flow_under_jit_is_an_error_that_names_the_remedy() -> None:
    @effax.jit
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(ConcretizationError, match=r"lax\.cond"):
        f(1.0)
    with pytest.raises(ConcretizationError):
        effax.grad(f)(1.0)


def test_a_result_that_does_not_depend_on_the_argument() -> None:
    assert float(effax.grad(lambda x: jnp.ones(()))(2.0)) == 0.0


def test_grad_under_jit_and_jit_under_grad_agree() -> None:
    x = jnp.linspace(0.1, 1.0, 5)

    def f(x: Any) -> Any:
        return jnp.sum(jnp.sin(x) * jnp.exp(x))

    expected = np.cos(x) * np.exp(x) + np.sin(x) * np.exp(x)
    np.testing.assert_allclose(effax.grad(f)(x), expected, rtol=1e-5)
    np.testing.assert_allclose(effax.jit(effax.grad(f))(x), expected, rtol=1e-5)
    np.testing.assert_allclose(effax.grad(effax.jit(f))(x), expected, rtol=1e-5)


def test_an_internal_reference_is_differentiated_through() -> None:
    def f(x: Any) -> Any:
        ref = effax.new_ref(x)
        ref[...] = ref[...] + ref[...]
        ref[...] = jnp.sin(ref[...])
        return ref[...]

    assert float(effax.grad(f)(1.5)) == pytest.approx(2 * np.cos(3.0), rel=1e-5)
    assert float(effax.jit(effax.grad(f))(1.5)) == pytest.approx(2 * np.cos(3.0), rel=1e-5)


def test_a_non_scalar_result_is_refused() -> None:
    with pytest.raises(IllTyped, match="scalar") as caught:
        effax.grad(lambda x: x * 2)(jnp.ones(3))
    assert "f32[3]" in str(caught.value)


def test_an_integer_argument_is_refused_by_name() -> None:
    def f(count: Any) -> Any:
        return count * 1.0

    with pytest.raises(IllTyped, match="count"):
        effax.grad(f)(3)


def test_an_integer_argument_is_allowed_on_request() -> None:
    slope = effax.grad(lambda n: n * 1.0, allow_int=True)(3)
    assert slope.dtype == np.dtype([("float0", np.void, 0)])


def test_a_reference_is_refused_with_the_remedy() -> None:
    with pytest.raises(IllTyped, match="with_refs"):
        effax.grad(lambda ref: ref[...])(effax.new_ref(1.0))


def test_argnums_out_of_range() -> None:
    with pytest.raises(BadArgument, match="argnums"):
        effax.grad(cube, 1)(1.0)


def test_complex_needs_holomorphic() -> None:
    with pytest.raises(IllTyped, match="holomorphic"):
        effax.grad(lambda z: z * z)(1.0 + 2.0j)
    slope = effax.grad(lambda z: z * z, holomorphic=True)(1.0 + 2.0j)
    assert complex(slope) == 2.0 + 4.0j
