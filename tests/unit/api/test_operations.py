"""Interpreters that read programs by JAX's words, and apply the primitives of their equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import Array, lax
from effax.api.operations import built_in_operations
from effax.ir.syntax import Atom, ClosedJaxpr, Jaxpr, Lit


def interpret(jaxpr: Jaxpr, consts: Sequence[object], *args: object) -> list[object]:
    """Apply each equation's primitive to values, as people's interpreters do."""
    env: dict[object, object] = {}

    def read(atom: Atom) -> object:
        return atom.val if isinstance(atom, Lit) else env[atom]

    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        found: object = eqn.primitive.bind(*map(read, eqn.invars), **params)
        outs = found if isinstance(found, list) else [found]
        assert isinstance(found, list) == eqn.primitive.multiple_results
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(a) for a in jaxpr.outvars]


@effax.custom_jvp
def tripled(x: Array) -> Array:
    return jnp.sin(x)


@tripled.defjvp
def _tripled_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return tripled(*primals), 3 * tangents[0]


TABLE = jnp.arange(4.0)


def program(x: Array) -> list[Array]:
    carried, stacked = lax.scan(lambda c, y: (c + y, c * TABLE), x[0], x)
    return [
        effax.jit(lambda y: y + TABLE)(x),
        carried,
        stacked,
        lax.cond(x[0, 0] > 0, lambda y: y, lambda y: -y, x),
        lax.while_loop(lambda t: t[0] < TABLE.sum(), lambda t: t + x[0], TABLE),
        tripled(x),
        effax.checkpoint(jnp.cos)(x),
        jnp.sort(x).astype("int32"),
        x @ x.T,
        jnp.linalg.solve(x[:, :3] + 5 * jnp.eye(3), x[0, :3]),
    ]


X = jnp.arange(12.0).reshape(3, 4) / 7 + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("transform", [lambda f: f, effax.jit], ids=["eager", "jit"])
def test_an_interpreter_computes_the_values(
    transform: Callable[[Callable[..., list[object]]], Callable[..., list[object]]],
) -> None:
    closed = effax.make_jaxpr(program)(X)
    found = transform(lambda x: interpret(closed.jaxpr, closed.literals, x))(X)
    for a, b in zip(found, program(X), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-6)


def test_an_interpreted_program_keeps_its_custom_rules() -> None:
    closed = effax.make_jaxpr(tripled)(X)
    slope = effax.grad(lambda x: interpret(closed.jaxpr, closed.consts, x)[0].sum())(X)  # type: ignore[attr-defined]
    np.testing.assert_allclose(slope, 3 * np.ones((3, 4)))


def test_subprograms_are_closed() -> None:
    closed = effax.make_jaxpr(program)(X)
    for eqn in closed.eqns:
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, ClosedJaxpr):
                    assert not inner.consts
                    assert [v.aval for v in inner.jaxpr.invars] == list(inner.in_avals)
    (loop,) = (e for e in closed.eqns if e.primitive.name == "while")
    assert (loop.params["cond_nconsts"], loop.params["body_nconsts"]) == (1, 1)
    assert len(loop.invars) == len(loop.ins) == 3


def test_operations_are_looked_up_by_identity() -> None:
    (first, second) = effax.make_jaxpr(lambda x: jnp.sum(jnp.sum(x, 1)))(X).eqns
    assert first.primitive is second.primitive is built_in_operations()["reduce_sum"]
    assert first.params == {"axes": (1,)}
    assert str(first.primitive) == "reduce_sum"


def test_a_primitive_is_applied_with_jax_parameters() -> None:
    operations = built_in_operations()
    total = operations["reduce_sum"].bind(X, axes=(0,), out_sharding=None)
    np.testing.assert_allclose(np.asarray(total), X.sum(0))
    np.testing.assert_allclose(np.asarray(operations["pow"].bind(X, 2.0)), X**2)
    with pytest.raises(ValueError, match="expected: axes\n  found:    axis"):
        operations["reduce_sum"].bind(X, axis=0)


def test_constants_of_a_called_program_become_operands() -> None:
    made = effax.make_jaxpr(lambda x: x + TABLE)(X)
    outs = built_in_operations()["jit"].bind(X, jaxpr=made, name="f")
    np.testing.assert_allclose(np.asarray(outs)[0], X + TABLE)


def test_sources_and_names() -> None:
    def f(scale: Array) -> dict[str, Array]:
        with effax.named_scope("outer"), effax.named_scope("inner"):
            return {"out": 2 * scale}

    closed = effax.make_jaxpr(f)(1.0)
    assert closed.eqns[0].source_info.name_stack == "outer/inner"
    assert closed.jaxpr.debug_info.arg_names == ("scale",)
    assert closed.jaxpr.debug_info.result_paths == ("result['out']",)
