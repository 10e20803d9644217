"""Base classes that derive the rules of a kind of primitives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend import BadRule, IllTyped, Type, Typing, Val, Value, Writer
from effax.ir.errors import EffaxError, NotApplicable
from effax.testing import check_primitive

pytestmark = pytest.mark.slow

jax: Any = effax


@dataclass(frozen=True, slots=True)
class Cube(extend.Elementwise):
    name: ClassVar[str] = "cube"

    def function(self, x: Array) -> Array:
        return x * x * x

    def derivatives(self, x: Array) -> Array:
        return 3.0 * x * x


@dataclass(frozen=True, slots=True)
class Norm2(extend.Elementwise):
    """``sqrt(x² + k·y²)``."""

    k: float
    name: ClassVar[str] = "norm2"

    def function(self, x: Array, y: Array) -> Array:
        return jnp.sqrt(x * x + self.k * y * y)

    def derivatives(self, x: Array, y: Array) -> Sequence[Array]:
        r = jnp.maximum(self.function(x, y), 1e-30)
        return [x / r, self.k * y / r]


@dataclass(frozen=True, slots=True)
class Stretched(extend.LinearPrimitive):
    """``(x, y) -> (x + 2·y, y[::-1])``."""

    name: ClassVar[str] = "stretched"

    def typing(self, *ins: Type) -> Typing:
        x, y = ins
        assert isinstance(x, extend.ArrayType)
        return Typing((x.strong(), y))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        x, y = ins
        return [np.asarray(x + 2 * y, x.dtype), y[::-1]]

    def adjoint(self, *cts: Array) -> Sequence[Array | None]:
        u, v = cts
        return [u, 2.0 * u + v[::-1]]

    def batch(
        self, ins: Sequence[Any], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        return jax.vmap(lambda x, y: (x + 2 * y, y[::-1]))(
            *extend.with_batch_axis(ins, batched, size)
        ), [
            True,
            True,
        ]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return extend.program(w, lambda x, y: (x + 2 * y, y[::-1]), ins, self.name)


cube, norm2 = Cube(), Norm2(2.0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "complex64"])
def test_an_elementwise_function_obeys_every_law(dtype: str) -> None:
    type_ = extend.array_type((3,), dtype)
    assert not check_primitive(cube, type_, seeds=(0,)).refused


def test_one_of_two_arguments_obeys_every_law() -> None:
    type_ = extend.array_type((3,), "float32")
    assert not check_primitive(norm2, type_, type_, seeds=(0, 1)).refused


def test_a_call_promotes_and_broadcasts() -> None:
    assert cube(2) == 8.0
    np.testing.assert_allclose(cube(np.arange(3)), [0, 1, 8])
    assert norm2(jnp.ones(3), jnp.ones((2, 1))).shape == (2, 3)
    assert cube(jnp.ones(2, "bfloat16")).dtype.name == "bfloat16"
    assert cube(1.0).weak_type and not cube(jnp.float32(1.0)).weak_type
    np.testing.assert_allclose(jax.grad(norm2, 1)(1.0, 2.0), 4 / 3)
    np.testing.assert_allclose(jax.vmap(norm2, (0, None))(jnp.arange(3.0), 1.0).shape, (3,))
    np.testing.assert_allclose(jax.hessian(cube)(2.0), 12.0)
    assert str(jax.make_jaxpr(cube)(2.0).jaxpr.eqns[0].prim.name) == "cube"


def test_operands_that_do_not_fit_are_named() -> None:
    with pytest.raises(IllTyped, match=r"cube has the wrong number of operands\n *expected: 1"):
        cube.bind(1.0, 2.0)
    with pytest.raises(IllTyped, match="norm2 has operands of different shape"):
        norm2.bind(jnp.ones(2), 1.0)
    with pytest.raises(IllTyped, match="cube does not take this dtype"):
        cube.bind(jnp.arange(3))
    with pytest.raises(NotApplicable, match="cube is not linear"):
        cube.transpose([], [])


def test_wrong_functions_are_named() -> None:
    @dataclass(frozen=True, slots=True)
    class Wide(Cube):
        def function(self, x: Array) -> Array:
            return x.astype(jnp.float16)

    @dataclass(frozen=True, slots=True)
    class Short(Norm2):
        def derivatives(self, x: Array, y: Array) -> Sequence[Array]:
            return [x]

    with pytest.raises(
        BadRule, match=r"the function of cube returns another type\n *expected: f32"
    ):
        Wide()(jnp.float32(1.0))
    with pytest.raises(EffaxError, match="derivatives of norm2: wrong number"):
        jax.grad(Short(1.0))(1.0, 2.0)


def test_a_linear_primitive_obeys_the_laws_of_transposition() -> None:
    type_ = extend.array_type((3,), "float32")
    checked = check_primitive(Stretched(), type_, type_, linear=(True, True), seeds=(0, 1))
    assert not checked.refused and "transpose_is_adjoint" in checked.passed


@dataclass(frozen=True, slots=True)
class Wrong(Stretched):
    def adjoint(self, *cts: Array) -> Sequence[Array | None]:
        u, v = cts
        return [u, 2.0 * u - v[::-1]]


def test_a_wrong_adjoint_is_found() -> None:
    type_ = extend.array_type((3,), "float32")
    with pytest.raises(AssertionError, match="adjoint"):
        check_primitive(Wrong(), type_, type_, linear=(True, True), seeds=(0,))
