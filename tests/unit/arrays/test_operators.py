"""Operators of arrays and references leave unknown operands to the operators of their class."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor",
        "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne",
    )
} | {"divmod": divmod}  # fmt: skip

REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}

X = jnp.arange(1, 3)


class Unknown:
    """A class that has every reflected operator, which returns its name."""


for _name in BINARY:
    _method = REFLECTED.get(_name, f"r{_name.rstrip('_')}")
    setattr(Unknown, f"__{_method}__", lambda self, other, name=_name: (name, type(other)))


class Wrapped:
    """A class of values that arrays are made of."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __jax_array__(self) -> object:
        return self.value


@pytest.mark.parametrize("name", BINARY)
def test_unknown_operands_are_left_to_their_class(name: str) -> None:
    kinds = []
    untyped: Any = Unknown()
    assert BINARY[name](X, untyped) == (name, type(X))

    def traced(x: effax.Array) -> effax.Array:
        kinds.append(BINARY[name](x, untyped))
        return x

    effax.jit(traced)(X)
    assert [kind[0] for kind in kinds] == [name]


@pytest.mark.parametrize("name", [name for name in BINARY if name != "divmod"])
def test_operands_are_asked_for_their_array(name: str) -> None:
    wrapped, op = Wrapped(X + 1), BINARY[name]
    for run in (lambda f: f, effax.jit):
        np.testing.assert_array_equal(run(lambda x: op(x, wrapped))(X), op(X, X + 1))
        np.testing.assert_array_equal(run(lambda x: op(wrapped, x))(X), op(X + 1, X))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin,
    "add": lambda x: jnp.add(x, 1),
    "sum": jnp.sum,
    "asarray": jnp.asarray,
    "nested": lambda x: jnp.array([x, x]),
    "stack": lambda x: jnp.stack([x, x]),
    "reshape": lambda x: jnp.reshape(x, (2, 1)),
    "where": lambda x: jnp.where(True, x, 0),
    "lax": lambda x: effax.lax.mul(x, x),
    "set": lambda x: jnp.zeros(2, int).at[:].set(x) + 1,
    "index": lambda x: jnp.arange(5)[jnp.asarray(x)],
    "full": lambda x: jnp.full_like(x, 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_the_array_of_another_class(name: str) -> None:
    f = FUNCTIONS[name]
    np.testing.assert_allclose(f(Wrapped(X)), f(X), rtol=1e-6)
    np.testing.assert_allclose(effax.jit(lambda x: f(Wrapped(x)))(X), f(X), rtol=1e-6)


def test_a_traced_function_takes_no_object_of_another_class() -> None:
    untyped: Any = effax
    for transformed in (untyped.jit, untyped.vmap, untyped.make_jaxpr):
        with pytest.raises(TypeError, match="does not convert it"):
            transformed(jnp.sin)(Wrapped(X))


def test_a_greater_priority_is_asked_first() -> None:
    class Quantity(np.ndarray):
        __array_priority__ = 1000

        def __rmul__(self, other: object) -> str:  # type: ignore[override]  # another result
            return "quantity"

    value: Any = np.ones(2).view(Quantity)
    assert X * value == "quantity"
    assert (X + np.ones(2)).dtype == jnp.float32


@pytest.mark.parametrize("other", [[1, 1], (1, 1), {1}, {1: 1}])
def test_containers_are_no_operands(other: Any) -> None:
    for op in (operator.add, operator.mul, operator.eq, operator.ne, operator.lt):
        with pytest.raises(TypeError):
            op(X, other)
    with pytest.raises(TypeError):
        jnp.array(2) * other


def test_other_values_are_never_equal_to_an_array() -> None:
    others: tuple[Any, ...] = (None, "a", b"a", object())
    assert not any(other == X for other in others)
    assert all(other != X for other in others)
    for other in others:
        with pytest.raises(TypeError):
            X + other


def test_a_reference_asks_for_no_operator_of_an_array() -> None:
    r: Any = effax.new_ref(X)
    for op in (operator.add, operator.mul, operator.lt):
        with pytest.raises(TypeError, match="reference"):
            op(X, r)
        with pytest.raises(TypeError, match="reference"):
            op(r, X)
    untyped: Any = Unknown()
    assert r * untyped == ("mul", type(r))
