"""``shard_map`` over devices agrees with its meaning on one, which runs a mesh of numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, EffaxError, IllTyped, TransformError
from effax.sharding import Mesh, NamedSharding, P, set_mesh

X = jnp.arange(32.0).reshape(8, 4)
GRID = jax.make_mesh((4, 2), ("x", "y"))

both_ways = pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])


def agrees(
    way: Any, f: Any, ins: Any, outs: Any, *args: Any, mesh: Mesh = GRID, **options: Any
) -> Any:
    """Return the result on devices, which is that of one device too."""
    on = partial(jax.shard_map, f, in_specs=ins, out_specs=outs, **options)
    found = way(on(mesh=mesh))(*args)
    wanted = way(on(mesh=Mesh(mesh.axis_sizes, mesh.axis_names)))(*args)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
    return found


COLLECTIVES: dict[str, tuple[Any, Any, Any]] = {
    "psum": (lambda x: lax.psum(x, "x"), P("x", "y"), P(None, "y")),
    "psum of both": (lambda x: lax.psum(x, ("y", "x")), P("x", "y"), P()),
    "psum of integers": (lambda x: lax.psum(x.astype(int) > 3, "x"), P("x"), P()),
    "pmean": (lambda x: lax.pmean(x, "y"), P("x", "y"), P("x")),
    "pmax": (lambda x: lax.pmax(x, "y"), P("x", "y"), P("x")),
    "pmin": (lambda x: lax.pmin(x, "x"), P("x", "y"), P(None, "y")),
    "all_gather": (lambda x: lax.all_gather(x, "x", axis=1), P("x", "y"), P(None, None, "y")),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, ("x", "y"), tiled=True), P(("x", "y")), P(),
    ),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, "y", scatter_dimension=1, tiled=True), P("x"), P("x", "y"),
    ),
    "all_to_all": (lambda x: lax.all_to_all(x, "y", 0, 1, tiled=True), P("x", "y"), P(("x", "y"))),
    "ppermute": (lambda x: lax.ppermute(x, "x", [(0, 1), (1, 3)]), P("x", "y"), P("x", "y")),
    "pshuffle": (lambda x: lax.pshuffle(x, "y", [1, 0]), P("x", "y"), P("x", "y")),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "x", 2), P("x", "y"), P(None, "y")),
    "psum in groups": (
        lambda x: lax.psum(x, "x", axis_index_groups=[[3, 0, 2], [1]]), P("x", "y"), P("x", "y"),
    ),
    "groups across axes": (
        lambda x: lax.pmin(x, ("x", "y"), axis_index_groups=[[0, 3, 4, 7, 1], [2, 5, 6]]),
        P("x", "y"), P("x", "y"),
    ),
    "all_gather in groups": (
        lambda x: lax.all_gather(x, "x", axis_index_groups=[[3, 0], [1, 2]]),
        P("x", "y"), P(None, "x", "y"),
    ),
    "psum_scatter in groups": (
        lambda x: lax.psum_scatter(x, "x", axis_index_groups=[[3, 0], [1, 2]], tiled=True),
        P(), P("x"),
    ),
    "all_to_all in groups": (
        lambda x: lax.all_to_all(x, "x", 0, 1, axis_index_groups=[[3, 0], [1, 2]]),
        P("x"), P("x"),
    ),
    "axis_index": (
        lambda x: x + 10 * lax.axis_index("x") + lax.axis_index("y"), P("x", "y"), P("x", "y"),
    ),
    "axis_index of both": (
        lambda x: x[:1, :1] * 0 + lax.axis_index(("y", "x")), P(("x", "y")), P(("x", "y")),
    ),
}  # fmt: skip


@both_ways
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(way: Any, name: str) -> None:
    found = agrees(way, COLLECTIVES[name][0], *COLLECTIVES[name][1:], X)
    assert found.devices() == set(jax.devices())


@pytest.mark.parametrize("count", [2, 4, 8])
def test_numbers_of_devices(count: int) -> None:
    mesh = jax.make_mesh((count,), ("x",))
    found = agrees(jax.jit, lambda x: lax.psum(x.sum(), "x") + x, P("x"), P("x"), X, mesh=mesh)
    assert found.sharding == NamedSharding(mesh, P("x"))


@both_ways
def test_loops_branches_and_functions(way: Any) -> None:
    def loop(x: Any) -> Any:
        start = lax.pvary(jnp.zeros(()), ("x", "y")) + x.sum()
        total = lax.fori_loop(0, 3, lambda _, c: c + lax.psum(c, "x"), start)
        rows = lax.scan(lambda c, r: (c + lax.pmax(r, "y").sum(), c), total, x)[1]
        return rows[:, None]

    agrees(way, loop, P("x", "y"), P("x", "y"), X)

    def branch(x: Any) -> Any:
        total = lax.psum(x.sum(), ("x", "y"))
        inner = jax.jit(lambda y: lax.psum(jnp.sin(y), "x"))
        return lax.cond(total > 0, inner, lambda y: -lax.psum(y, "x"), x)

    agrees(way, branch, P("x", "y"), P(None, "y"), X)
    # Devices along y take different branches; those along x take one.
    agrees(
        way,
        lambda x: lax.cond(lax.axis_index("y") == 0, lambda z: lax.psum(z, "x"), jnp.zeros_like, x),
        P("x", "y"), P(None, "y"), X, check_vma=False,
    )  # fmt: skip


def test_automatic_code_around_and_inside() -> None:
    def step(x: Any, w: Any) -> Any:
        y = jnp.tanh(x @ w)
        y = jax.shard_map(
            lambda v: lax.psum(v, "x") + v, mesh=GRID, in_specs=P("x"), out_specs=P("x")
        )(y)
        return y.sum(0)

    placed = jax.device_put(X, NamedSharding(GRID, P("x", "y")))
    np.testing.assert_allclose(jax.jit(step)(placed, jnp.eye(4)), step(X, jnp.eye(4)), rtol=1e-5)
    agrees(jax.jit, lambda x: lax.psum(x @ x.T, "x"), P("x"), P(), placed, axis_names={"x"})

    def nested(x: Any) -> Any:
        inner = partial(lax.psum, axis_name="y")
        own = jax.shard_map(
            inner, mesh=GRID, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}
        )
        return own(x) + lax.axis_index("x")

    on = jax.shard_map(nested, mesh=GRID, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    wanted = (X[:, :2] + X[:, 2:]) + np.repeat(np.arange(4.0), 2)[:, None]
    np.testing.assert_allclose(jax.jit(on)(X), wanted)
    with set_mesh(GRID):
        total = jax.shard_map(partial(lax.psum, axis_name="x"), in_specs=P("x"), out_specs=P())
        np.testing.assert_allclose(jax.jit(total)(X), X.reshape(4, 2, 4).sum(0))
    with pytest.raises(BadArgument, match="axis_names"):
        jax.shard_map(nested, mesh=GRID, in_specs=P(), out_specs=P(), axis_names={"z"})


@both_ways
def test_derivatives(way: Any) -> None:
    def loss(w: Any, x: Any) -> Any:
        gathered = lax.all_gather(jnp.tanh(x @ w), "y", axis=1, tiled=True)
        moved = lax.ppermute(gathered, "x", [(0, 1), (1, 2), (2, 3), (3, 0)])
        return lax.psum(jnp.sum(moved * gathered), ("x", "y"))

    def over(mesh: Mesh) -> Any:
        return jax.shard_map(loss, mesh=mesh, in_specs=(P(None, "y"), P("x")), out_specs=P())

    w = jnp.linspace(-1.0, 1.0, 16).reshape(4, 4)
    numbers = Mesh((4, 2), ("x", "y"))
    found = way(jax.grad(over(GRID), (0, 1)))(w, X / 10)
    for x, y in zip(found, jax.grad(over(numbers), (0, 1))(w, X / 10), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4)
    assert found[0].sharding == NamedSharding(GRID, P(None, "y"))

    def tangent(mesh: Mesh) -> Any:
        return way(lambda w: jax.jvp(over(mesh), (w, X / 10), (w, X / 10))[1])(w)

    np.testing.assert_allclose(tangent(GRID), tangent(numbers), rtol=1e-4)


@both_ways
def test_a_batch_of_calls(way: Any) -> None:
    both = jnp.stack([X, X + 1])
    f = jax.shard_map(lambda x: lax.psum(x, "x"), mesh=GRID, in_specs=P("x"), out_specs=P())
    np.testing.assert_allclose(way(jax.vmap(f))(both), [f(X), f(X + 1)])


@both_ways
def test_a_collective_that_some_devices_do_not_reach_is_refused(way: Any) -> None:
    def branch(x: Any) -> Any:
        return lax.cond(lax.axis_index("x") > 0, lambda y: lax.psum(y, "x"), lambda y: y, x)

    def loop(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c + lax.psum(c, "x"), x)

    for f in (branch, loop):
        on = jax.shard_map(f, mesh=GRID, in_specs=P("x"), out_specs=P("x"), check_vma=False)
        with pytest.raises(EffaxError, match="only a part of the devices"):
            way(on)(X)


def test_errors_name_arguments() -> None:
    on = jax.shard_map(lambda rows: rows, mesh=GRID, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(IllTyped, match=r"rows .*dimension 0 \(over 'x'\)"):
        on(jnp.ones((3, 4)))
    one = jax.device_put(X, jax.devices()[1])
    with pytest.raises(BadArgument, match="incompatible devices"):
        jax.jit(on)(one)


@both_ways
def test_references_of_a_call_and_closed_over(way: Any) -> None:
    total = jax.new_ref(jnp.zeros(4))

    def add(x: Any) -> Any:
        own = jax.new_ref(x * 2)
        own[0] += 1.0
        jax.ref.addupdate(total, ..., x.sum(0))
        return jax.freeze(own)

    on = jax.shard_map(add, mesh=GRID, in_specs=P("x"), out_specs=P("x"))
    found = way(on)(X)
    np.testing.assert_allclose(found, X * 2 + np.tile([[1.0], [0.0]], (4, 4)))
    # The function runs on the devices along y too: each adds.
    np.testing.assert_allclose(total[...], 2 * X.sum(0))


@both_ways
def test_constraints_inside_name_axes_of_the_compiler(way: Any) -> None:
    def constrained(name: str) -> Any:
        place = NamedSharding(GRID, P(None, name))
        inner = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, place))
        return lambda x: lax.psum(inner(x), "x")

    options: Any = {"mesh": GRID, "in_specs": P("x"), "out_specs": P(), "axis_names": {"x"}}
    found = way(jax.shard_map(constrained("y"), **options))(X)
    np.testing.assert_allclose(found, 2 * X.reshape(4, 2, 4).sum(0))
    with pytest.raises(EffaxError, match="names the axis 'x'"):
        way(jax.shard_map(constrained("x"), **options))(X)


@both_ways
def test_a_batch_is_divided_over_further_axes(way: Any) -> None:
    f = jax.shard_map(
        lambda a, b: lax.psum(a * b, "y"), mesh=GRID, in_specs=(P("y"), P()), out_specs=P()
    )
    x, b = np.arange(48.0, dtype=np.float32).reshape(8, 2, 3), np.ones(3, np.float32)
    over = way(jax.vmap(f, (0, None), spmd_axis_name="x"))
    np.testing.assert_allclose(over(x, b), x.sum(1, keepdims=True) * b)
    assert over(x, b).sharding.spec == P("x")
    place = NamedSharding(GRID, P("y"))
    fixed = jax.vmap(lambda v: lax.with_sharding_constraint(v, place), spmd_axis_name="x")
    assert jax.jit(fixed)(x).sharding.spec == P("x", "y")
    nested = jax.vmap(jax.vmap(lambda v: f(v, b), spmd_axis_name=("x",)), in_axes=1, out_axes=1)
    np.testing.assert_allclose(nested(x[:, None])[:, 0], x.sum(1, keepdims=True))


def test_a_batch_that_cannot_be_divided_is_refused() -> None:
    f = jax.shard_map(lambda a: a, mesh=GRID, in_specs=P("y"), out_specs=P("y"))
    with pytest.raises(TransformError, match="cannot appear in the specs"):
        jax.vmap(f, spmd_axis_name="y")(jnp.ones((8, 2)))
    with pytest.raises(TransformError, match="does not divide over"):
        jax.vmap(f, spmd_axis_name="x")(jnp.ones((3, 2)))
    # Devices that differ along the axis each have the whole batch.
    g = jax.shard_map(lambda a: lax.psum(a, "x"), mesh=GRID, in_specs=P("y"), out_specs=P("y"))
    np.testing.assert_allclose(jax.vmap(g, spmd_axis_name="x")(jnp.ones((3, 2))), 4.0)


def test_a_shard_map_inside_takes_the_axes_that_are_left() -> None:
    seen: list[Any] = []

    def inner(x: Any) -> Any:
        seen.append(jax.sharding.get_abstract_mesh().manual_axes)
        return x + lax.axis_index("y") + lax.axis_index("x")

    def outer(x: Any) -> Any:
        mesh = jax.sharding.get_abstract_mesh()
        seen.append((mesh.manual_axes, mesh.auto_axes))
        return jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(None, "y"))(x)

    f = jax.shard_map(outer, mesh=GRID, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    wanted = X + np.arange(8)[:, None] // 2 + np.arange(4) // 2
    np.testing.assert_allclose(jax.jit(f)(X), wanted)
    assert seen == [(("x",), ("y",)), ("x", "y")]
    assert jax.sharding.get_abstract_mesh().empty


def test_smap_divides_one_dimension() -> None:
    with set_mesh(GRID):
        f = jax.smap(
            lambda x, b: lax.psum(x, "x") + b, in_axes=(1, None), out_axes=None, axis_name="x"
        )
        np.testing.assert_allclose(jax.jit(f)(X, 1.0), X.sum(1, keepdims=True) + 1)
        assert jax.jit(jax.smap(lambda x: x, in_axes=0, out_axes=0, axis_name="x"))(
            X
        ).sharding.spec == P("x")
        with pytest.raises(BadArgument, match="negative"):
            jax.smap(lambda x: x, in_axes=-1, out_axes=0, axis_name="x")(X)


def test_specs_of_traced_arguments_are_not_inferred() -> None:
    f = jax.shard_map(lambda x, n: lax.psum(x * n, "x"), mesh=GRID, out_specs=P(None, "y"))
    x = jax.device_put(X, NamedSharding(GRID, P("x", "y")))
    np.testing.assert_allclose(f(x, 2.0), 2 * X.reshape(4, 2, 4).sum(0))
    with pytest.raises(BadArgument, match="the sharding of x is not known"):
        jax.jit(f)(x, 2.0)
