"""Errors have the built-in type that JAX raises for the same fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import EffaxError

jax: Any = effax
untyped: Any = jnp

X = jnp.ones(2)

RULED: Any = effax.custom_vjp(lambda a, b: a)
RULED.defvjp(lambda a, b: (a, None), lambda residuals, ct: (ct, None))

FAULTS: dict[str, tuple[type[Exception], Callable[[], object]]] = {
    "shapes that do not broadcast": (ValueError, lambda: jnp.broadcast_shapes((2,), (3,))),
    "stack": (ValueError, lambda: jnp.stack([X, jnp.ones(3)])),
    "broadcast_to": (ValueError, lambda: jnp.broadcast_to(X, (3,))),
    "sizes of vmap": (ValueError, lambda: jax.vmap(jnp.add)(X, jnp.ones(3))),
    "a scalar of vmap": (ValueError, lambda: jax.vmap(jnp.sin)(1.0)),
    "the shape of a tangent": (ValueError, lambda: jax.jvp(jnp.sin, (X,), (jnp.ones(3),))),
    "the shape of a cotangent": (ValueError, lambda: jax.vjp(jnp.sin, X)[1](jnp.ones(3))),
    "the length of scan": (
        ValueError,
        lambda: lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(2), length=3),
    ),
    "a mask of floats": (ValueError, lambda: jnp.sum(X, where=untyped.ones(2))),
    "inv": (ValueError, lambda: jnp.linalg.inv(jnp.ones((2, 3)))),
    "None": (ValueError, lambda: untyped.array(None)),
    "the truth of two": (ValueError, lambda: bool(X)),
    "one reference twice": (ValueError, lambda: jax.jit(lambda a, b: None)(*[jax.new_ref(X)] * 2)),
    "a returned reference": (ValueError, lambda: jax.jit(jax.new_ref)(X)),
    "one reference twice in a rule": (ValueError, lambda: RULED(*[jax.new_ref(X)] * 2)),
    "a reference that a rule returns": (ValueError, lambda: RULED(jax.new_ref(X), 0.0)),
    "a traced number of steps": (
        effax.errors.ConcretizationTypeError,
        lambda: jax.jit(lambda n: lax.scan(lambda c, _: (c, _), 0.0, None, 4, unroll=n))(True),
    ),
    "a negative size of a shape": (TypeError, lambda: jnp.broadcast_shapes((-1,))),
    "no value of stop_gradient": (TypeError, lambda: lax.stop_gradient(jnp.sin)),
    "no function": (TypeError, lambda: jax.jit(3)),
    "in_axes": (TypeError, lambda: jax.vmap(jnp.sin, in_axes="a")(X)),
    "no argument": (TypeError, jax.grad(jnp.sin)),
    "no tuple of primals": (TypeError, lambda: jax.jvp(jnp.sin, 1.0, (1.0,))),
    "a negative size": (TypeError, lambda: jnp.ones((-1, 1))),
    "no callback": (TypeError, lambda: jax.debug.callback("x")),
    "a number of several": (TypeError, lambda: float(jnp.ones(1))),
    "an integer": (OverflowError, lambda: jnp.array(2**40)),
    "an integer in a list": (OverflowError, lambda: jnp.array([2**70])),
    "an integer of NumPy": (OverflowError, lambda: jnp.sin(np.int64(2**40))),
    "an integer in an operation": (OverflowError, lambda: jnp.arange(2) + 2**40),
    "an integer that is written": (OverflowError, lambda: jnp.uint8(300)),
    "a traced slice": (IndexError, lambda: jax.jit(lambda i: X[i : i + 1])(1)),
    "a traced mask": (IndexError, lambda: jax.jit(lambda m: X[m])(X > 0)),
    "an empty axis": (IndexError, lambda: jnp.take(jnp.ones((0, 2)), 0, axis=0)),
    "an axis": (IndexError, lambda: jnp.swapaxes(X, 0, 1)),
    "no rule": (AttributeError, lambda: jax.custom_vjp(jnp.sin)(1.0)),
    "a field without a value": (KeyError, lambda: jax.debug.print("{x}", 1)),
    "a value to write into": (NotImplementedError, lambda: untyped.sum(X, out=X)),
    "a mode of pad": (NotImplementedError, lambda: jnp.pad(X, 1, mode="other")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_errors_have_the_built_in_type_that_jax_raises(name: str) -> None:
    kind, call = FAULTS[name]
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, EffaxError)


def two(x: Any) -> Any:
    return x[:2]


REFUSED: dict[str, Callable[[], object]] = {
    "a masked array": lambda: jnp.sin(np.ma.array([1.0, 2.0], mask=[True, False])),
    "a masked operand": lambda: X + np.ma.array([1.0, 2.0], mask=[True, False]),
    "a masked argument": lambda: jax.jit(jnp.sin)(np.ma.array([1.0, 2.0])),
    "a generator": lambda: jax.jit(several),
    "a range of complex numbers": lambda: untyped.arange(1 + 0j),
    "a range to a complex number": lambda: untyped.arange(1, 2 + 0j),
    "an axis from the end": lambda: lax.argmax(X, -1, jnp.int32),
    "a result that contradicts": lambda: jnp.vectorize(two, signature="(n)->(n)")(jnp.ones(3)),
    "a result of more axes": lambda: jnp.vectorize(two, signature="(n)->()")(jnp.ones(3)),
    "an initial array": lambda: jnp.max(X, initial=untyped.ones(2)),
    "a mask of integers": lambda: jnp.nansum(X, where=untyped.ones(2, int)),
    "one axis of two": lambda: jnp.fft.fft2(jnp.ones((2, 2)), axes=(0,)),
    "a matrix of quantiles": lambda: jnp.quantile(X, jnp.ones((2, 2))),
    "a filling of several": lambda: lax.full((2,), X),
    "axes of a word": lambda: jax.vmap(jnp.sin, in_axes="a"),
    "an index out of bounds": lambda: jnp.ravel_multi_index((jnp.array([3]),), (2,)),
    "a complex number of one": lambda: complex(jnp.ones((1, 1))),
    "an integer of one": lambda: int(jnp.ones(1, int)),
}


def several() -> Any:
    yield X


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_go_wrong_silently_is_refused(name: str) -> None:
    call = REFUSED[name]
    for run in (call, effax.jit(call)):
        with pytest.raises((TypeError, ValueError)) as caught:
            run()
        assert isinstance(caught.value, EffaxError)


def test_loops_count_by_floats() -> None:
    def counted(x: Any) -> Any:
        return lax.fori_loop(x, x + 2.5, lambda i, c: c + i, x)

    def doubled(x: Any) -> Any:
        return lax.fori_loop(x, x + 2, lambda i, c: c * 2, x)

    assert float(effax.jit(counted)(1.0)) == 1 + 1 + 2 + 3
    assert float(effax.grad(doubled)(1.0)) == 4


def test_permutations_are_pairs_of_numpy() -> None:
    pairs = list(np.array([[0, 1], [1, 0]]))
    found = jax.vmap(lambda x: lax.ppermute(x, "i", pairs), axis_name="i")(jnp.arange(2))
    assert found.tolist() == [1, 0]


def test_a_rule_may_return_a_cotangent_of_a_wider_float() -> None:
    f: Any = effax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (jnp.asarray(ct, jnp.float32) * 2,))
    x = jnp.ones(2, jnp.bfloat16)

    def total(x: Any) -> Any:
        return f(x).sum()

    for g in (effax.grad(total), effax.jit(effax.grad(total))):
        assert g(x).dtype == jnp.bfloat16
        assert g(x).tolist() == [2, 2]


def test_results_of_vectorize_fit_its_signature() -> None:
    def summed(x: Any, y: Any) -> Any:
        return x.sum(), jnp.outer(x, y)

    f = jnp.vectorize(summed, signature="(n),(m)->(),(n,m)")
    a, b = f(jnp.ones((4, 3)), jnp.ones(2))
    assert (a.shape, b.shape) == ((4,), (4, 3, 2))


def test_an_error_in_the_constructor_of_a_tree_is_raised_unchanged() -> None:
    @jax.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, a: object) -> None:
            self.a = jnp.broadcast_to(a, (3,))  # type: ignore[arg-type]  # an array or a leaf

        def tree_flatten(self) -> tuple[tuple[object], None]:
            return (self.a,), None

        @classmethod
        def tree_unflatten(cls, data: None, leaves: tuple[object]) -> Pair:
            return cls(*leaves)

    with pytest.raises(ValueError, match="does not broadcast"):
        jax.tree.map(lambda a: a[:2], Pair(1.0))
