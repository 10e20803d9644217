"""``jit`` over devices: placements of arguments, options and constraints."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, IllTyped, LoweringError
from effax.sharding import NamedSharding, P, SingleDeviceSharding, set_mesh

X = np.arange(32.0, dtype=np.float32).reshape(8, 4)
GRID = jax.make_mesh((4, 2), ("x", "y"))


def over(*entries: Any, mesh: Any = GRID) -> NamedSharding:
    return NamedSharding(mesh, P(*entries))


def placed(*entries: Any, x: Any = X) -> Any:
    return jax.device_put(x, over(*entries))


both_ways = pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])


@both_ways
@pytest.mark.parametrize("count", [2, 4, 8])
def test_results_are_placed_as_the_compiler_chose(way: Any, count: int) -> None:
    mesh = jax.make_mesh((count,), ("x",))
    x = jax.device_put(X, over("x", mesh=mesh))
    y = way(lambda a: jnp.sin(a) * 2 + np.float32(1))(x)
    np.testing.assert_allclose(y, np.sin(X) * 2 + 1, atol=1e-6)
    assert y.sharding == x.sharding and y.committed
    total = way(jnp.sum)(x)
    assert float(total) == X.sum() and total.sharding.is_fully_replicated
    product = way(lambda a, b: a @ b)(x, jnp.ones((4, 4)))
    np.testing.assert_allclose(product, X @ np.ones((4, 4)))
    assert product.sharding == over("x", mesh=mesh)


def _cubes(a: Any) -> Any:
    return (a**3).sum()


@both_ways
def test_operations_keep_devices(way: Any) -> None:
    x = placed("x", "y")
    functions: list[Any] = [
        lambda a: a[2],
        lambda a: a.at[0].set(1.0),
        lambda a: a.astype(int),
        lambda a: a.T.reshape(-1),
        lambda a: lax.scan(lambda c, r: (c + r, c), jnp.zeros(4), a)[1],
        jax.vmap(jnp.sum),
        jax.grad(_cubes),
        lambda a: jnp.linalg.qr(a)[1],
        lambda a: jnp.sort(a, axis=0),
    ]
    for f in functions:
        found = way(f)(x)
        np.testing.assert_allclose(found, f(jnp.asarray(X)), atol=1e-5)
        assert found.devices() == set(jax.devices())


@both_ways
def test_one_device_of_several(way: Any) -> None:
    x = jax.device_put(X, jax.devices()[3])
    y = way(lambda a, b: a * b)(x, 2.0)
    np.testing.assert_array_equal(y, X * 2)
    assert y.sharding == SingleDeviceSharding(jax.devices()[3])
    with pytest.raises(BadArgument, match="incompatible devices"):
        way(lambda a, b: a + b)(x, jax.device_put(X, jax.devices()[2]))
    with pytest.raises(BadArgument, match=r"devices \[3\]"):
        way(lambda a, b: a + b)(x, placed("x"))


def test_options_decide_placements() -> None:
    f = jax.jit(lambda a: a + 1, in_shardings=over("x"), out_shardings=over(None, "y"))
    for x in (X, placed("x")):
        assert f(x).sharding == over(None, "y")
        np.testing.assert_array_equal(f(x), X + 1)
    with pytest.raises(BadArgument, match="another sharding than in_shardings"):
        f(placed("y"))
    with pytest.raises(IllTyped, match=r"dimension 0 \(over 'x'\)"):
        f(np.ones((3, 4)))
    outer = jax.jit(lambda a: f(a) * 2)
    assert outer(X).sharding == over(None, "y")
    lowered = f.lower(X)
    assert "sdy.mesh" in lowered.as_text() and "sdy" in str(lowered.compiler_ir("stablehlo"))
    compiled = lowered.compile()
    assert compiled.input_shardings == ((over("x"),), {})
    assert compiled.output_shardings == over(None, "y") == compiled(X).sharding


def test_constraints_place_values() -> None:
    def f(a: Any) -> Any:
        return lax.with_sharding_constraint(a * 2, over("y", "x"))

    ways: Any = (f, jax.jit(f))
    for way in ways:
        y = way(X)
        np.testing.assert_array_equal(y, X * 2)
        assert y.sharding == over("y", "x")
    gradient = jax.grad(lambda a: cast("Any", f(a)).sum())
    assert jax.jit(gradient)(X).sharding == over("y", "x")
    assert jax.jit(jax.vmap(f))(X[None]).sharding.spec[1:] == P("y", "x")._entries
    free = over(P.UNCONSTRAINED, "y")
    y = jax.jit(lambda a: lax.with_sharding_constraint(a, free))(placed("x"))
    assert y.sharding == over("x", "y")
    assert jax.jit(lambda a: jax.device_put(a, over("x")))(X).sharding == over("x")
    with pytest.raises(IllTyped, match="divide"):
        jax.jit(lambda a: lax.with_sharding_constraint(a, over("x")))(jnp.ones(3))


def test_a_mesh_in_use_decides_where_a_call_runs() -> None:
    f = jax.jit(lambda a: a + 1)
    assert f(X).devices() == {jax.devices()[0]}
    with set_mesh(GRID):
        assert f(X).devices() == set(jax.devices())
        assert jax.jit(lambda a: a, out_shardings=P("y"))(X).sharding == over("y")
        y = jax.jit(lambda a: lax.with_sharding_constraint(a, P("x")))(X)
        assert y.sharding == over("x")
    assert f(X).devices() == {jax.devices()[0]}


def test_donated_arguments_are_reused() -> None:
    x = placed("x", "y")
    f = jax.jit(lambda a: a + 1, donate_argnums=0)
    addresses = _addresses(x)
    y = f(x)
    assert x.is_deleted() and _addresses(y) == addresses
    with pytest.raises(LoweringError, match="deleted or donated"):
        f(x)
    twice = jax.jit(lambda a, b: a + b, donate_argnums=0)
    with pytest.raises(LoweringError, match="twice"):
        twice(y, y)
    np.testing.assert_array_equal(y, X + 1)


def _addresses(x: Any) -> list[int]:
    from effax.lowering import xla

    place = x.placed_type.place
    return [xla.read_part(x.parts, place, k).ctypes.data for k in place.local]


def test_placements_are_part_of_the_key() -> None:
    traces: list[None] = []

    @jax.jit
    def f(a: Any) -> Any:
        traces.append(None)
        return a * 2

    for x in (placed("x"), placed("x"), placed("y"), X, placed("x")):
        np.testing.assert_array_equal(f(x), X * 2)
    assert len(traces) == 3


def test_references_that_are_not_placed_get_their_contents_back() -> None:
    ref = jax.new_ref(jnp.zeros((8, 4)))
    address = ref.unsafe_buffer_pointer()

    @jax.jit
    def add(a: Any) -> Any:
        ref[...] += a
        return ref[0].sum()

    assert float(add(placed("x"))) == 6.0
    add(placed("x"))
    np.testing.assert_array_equal(ref[...], 2 * X)
    assert ref.unsafe_buffer_pointer() == address


def test_keys_and_closed_over_arrays() -> None:
    keys = jax.random.split(jax.random.key(0), 8)
    draw = jax.vmap(lambda k: jax.random.normal(k, (2,)))
    found = jax.jit(draw)(placed("x", x=keys))
    np.testing.assert_allclose(found, draw(keys), rtol=1e-6)
    assert found.sharding == over("x")
    assert jax.jit(lambda k: k)(placed("x", x=keys)).sharding == over("x")
    x = placed("x")
    assert jax.jit(lambda: x * 2)().sharding == over("x")


def test_meshes_of_other_axes_over_the_same_devices() -> None:
    line = jax.make_mesh((8,), ("z",))
    y = jax.jit(lambda a, b: a + b)(placed("x"), jax.device_put(X, NamedSharding(line, P("z"))))
    np.testing.assert_array_equal(y, 2 * X)


def test_programs_on_several_devices_call_python(capsys: Any) -> None:
    def f(a: Any) -> Any:
        jax.debug.print("{}", a.sum())
        jax.debug.print("{}", a.max(), ordered=True)
        return a * 2

    y = jax.jit(f)(placed("x"))
    np.testing.assert_array_equal(y, 2 * X)
    assert capsys.readouterr().out.split() == ["496.0", "31.0"]
    assert y.sharding == over("x")
    one = jax.device_put(X, jax.devices()[2])
    np.testing.assert_array_equal(jax.jit(f)(one), 2 * X)
    np.testing.assert_array_equal(f(placed("x")), 2 * X)
    shape = jax.ShapeDtypeStruct((8, 4), "float32")
    double = lambda x: jax.pure_callback(lambda a: 2 * a, shape, x)  # noqa: E731
    for way in (double, jax.jit(double)):
        np.testing.assert_array_equal(way(placed("x")), 2 * X)
        assert way(one).devices() == one.devices()


def test_each_device_calls_python_in_shard_map_and_an_exception_ends_the_call() -> None:
    seen: list[float] = []

    def part(a: Any) -> Any:
        seen.append(float(a.sum()))
        if len(seen) > 8:
            raise KeyError("mine")
        return a

    def own(a: Any) -> Any:
        return lax.psum(jax.pure_callback(part, jax.ShapeDtypeStruct(a.shape, a.dtype), a), "x")

    run = jax.jit(jax.shard_map(own, mesh=GRID, in_specs=P("x", "y"), out_specs=P(None, "y")))
    np.testing.assert_allclose(run(X), X.reshape(4, 2, 4).sum(0))
    assert sorted(seen) == sorted(X.reshape(4, 2, 2, 2).sum((1, 3)).ravel())
    ref = jax.new_ref(placed("x"))

    @jax.jit
    def update(ref: Any) -> None:
        ref[...] = ref[...] + run(ref[...]).sum()

    with pytest.raises(KeyError, match="mine"):
        update(ref)
    np.testing.assert_array_equal(ref[...], X)
    seen.clear()
    np.testing.assert_allclose(run(X), X.reshape(4, 2, 4).sum(0))


def test_programs_on_devices_are_kept_in_a_directory(tmp_path: Any) -> None:
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    try:
        for _ in range(2):
            jax.clear_caches()
            y = jax.jit(lambda x: x * 3 + x.sum(), out_shardings=over("y"))(placed("x"))
            np.testing.assert_allclose(y, X * 3 + X.sum())
            assert y.sharding == over("y")
            assert len([*tmp_path.iterdir()]) == 1
    finally:
        jax.config.update("jax_compilation_cache_dir", None)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)


def test_a_function_runs_on_a_device() -> None:
    third = jax.devices()[2]
    f = jax.jit(lambda x: 2 * x, device=third)
    assert f(X).devices() == {third} == f(jax.device_put(X, third)).devices()
    np.testing.assert_array_equal(f(X), 2 * X)
    with pytest.raises(BadArgument, match="incompatible devices"):
        f(placed("x"))
    with pytest.raises(BadArgument, match="places its results once"):
        jax.jit(lambda x: x, device=third, out_shardings=over("x"))(X)
    with pytest.raises(BadArgument, match="unknown device"):
        jax.jit(lambda x: x, device=cast(Any, "gpu"))(X)
