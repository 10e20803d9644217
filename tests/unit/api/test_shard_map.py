"""`shard_map` on meshes of one process, its specs, its derivatives, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import P, lax
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import ShardMap
from effax.sharding import Mesh, NamedSharding, PartitionSpec, make_mesh

# Of functions without annotations: mypy would look for the overload of each.
grad: Any = jax.grad

LINE = make_mesh((4,), ("x",))
GRID = make_mesh((2, 2), ("x", "y"))
N = np.arange(16.0, dtype=np.float32).reshape(4, 4) / 10
X = jnp.asarray(N)
W = jnp.arange(1.0, 5.0) / 10


def on(
    mesh: Mesh, ins: Any, outs: Any, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return jax.shard_map(mesh=mesh, in_specs=ins, out_specs=outs, **options)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-5, atol=1e-6)


SPECS = [
    (LINE, P("x"), P("x")),
    (LINE, P(None, "x"), P(None, "x")),
    (LINE, P(), P()),
    (GRID, P("x", "y"), P("x", "y")),
    (GRID, P("y", "x"), P("y", "x")),
    (GRID, P(("x", "y")), P(("x", "y"))),
    (GRID, P(None, ("y", "x")), P(None, ("y", "x"))),
    (GRID, P("y"), P("y")),
]


@pytest.mark.parametrize(("mesh", "ins", "outs"), SPECS, ids=str)
def test_a_pointwise_body_is_the_function_itself(mesh: Mesh, ins: P, outs: P) -> None:
    mapped = on(mesh, ins, outs)(lambda v: jnp.sin(v) * 2)

    def plain(v: Any) -> Any:
        return jnp.sin(v) * 2

    same(mapped(X), plain(X))
    same(*[grad(lambda v, f=f: jnp.sum(f(v) ** 2))(X) for f in (mapped, plain)])
    same(jax.jvp(mapped, (X,), (X,))[1], jax.jvp(plain, (X,), (X,))[1])
    batch = jnp.stack([X, X + 1], 1)
    same(jax.vmap(mapped, 1)(batch), jax.vmap(plain, 1)(batch))


def test_each_device_sees_its_part() -> None:
    shapes: list[Any] = []

    @on(GRID, (P("x", "y"), P("y"), P()), (P("x"), P(("y", "x"))))
    def parts(a: Any, b: Any, whole: Any) -> Any:
        shapes.append((a.shape, b.shape, whole.shape))
        place = lax.axis_index("x") * 2 + lax.axis_index("y")
        return lax.psum(a @ b, "y"), jnp.full(1, place)

    product, places = parts(X, W, X)
    assert shapes == [((2, 2), (2,), (4, 4))]
    same(product, N @ np.asarray(W))
    # The first axis of a spec runs slowest.
    same(places, [0, 2, 1, 3])


def test_eager_and_compiled_agree() -> None:
    @on(LINE, (P("x"), P()), (P("x"), P()))
    def fun(v: Any, w: Any) -> Any:
        moved = lax.ppermute(v, "x", [(i, (i + 1) % 4) for i in range(4)])
        return moved * w, lax.pmax(jnp.sum(v), "x") + lax.all_gather(v, "x")[0, 0, 1]

    rolled, most = fun(X, W)
    same(rolled, np.roll(N, 1, 0) * np.asarray(W))
    same(most, N[3].sum() + N[0, 1])
    for eager, compiled in zip(fun(X, W), jax.jit(fun)(X, W), strict=True):
        same(compiled, eager)


def test_it_is_one_equation_that_prints_and_parses() -> None:
    from effax.ir.text.parser import parse

    jaxpr = jax.make_jaxpr(on(LINE, P("x"), P())(lambda v: lax.psum(jnp.sum(v), "x")))(X).jaxpr
    (eqn,) = jaxpr.eqns
    assert isinstance(eqn.prim, ShardMap)
    assert jaxpr.free_axes == ()
    assert parse(str(jaxpr)) == jaxpr
    assert "Axis(name='x', size=4)" in str(jaxpr)


def test_trees_prefixes_and_keywords() -> None:
    @on(LINE, ({"a": P("x"), "b": P()},), {"out": P("x"), "sum": P()})
    def fun(tree: Any, *, factor: Any) -> Any:
        return {"out": tree["a"] * tree["b"] * factor, "sum": lax.psum(tree["a"].sum(), "x")}

    found = fun({"a": X, "b": W}, factor=2.0)
    same(found["out"], N * np.asarray(W) * 2)
    same(found["sum"], N.sum())


def test_what_it_closes_over_is_whole_on_each_device() -> None:
    same(on(LINE, P("x"), P("x"))(lambda v: v @ X)(X), N @ N)


def test_shard_map_inside_of_shard_map_and_of_vmap() -> None:
    rows = make_mesh((2,), ("r",))

    @on(LINE, P(None, "x"), P())
    def inner(u: Any) -> Any:
        return lax.psum(u.sum(), ("x", "r"))

    same(on(rows, P("r"), P())(inner)(X), N.sum())

    @on(LINE, P("x"), P())
    def of_element(u: Any) -> Any:
        return lax.psum(lax.psum(u, "x"), "i")

    same(jax.vmap(of_element, axis_name="i")(X), [[N.sum()]] * 4)


# Derivatives.


def loss(w: Any, v: Any) -> Any:
    return lax.pmean(jnp.mean(jnp.sin(v @ w) ** 2), "x")


def plain_loss(w: Any, v: Any) -> Any:
    return jnp.mean(jnp.sin(v @ w) ** 2)


data_parallel = on(LINE, (P(), P("x")), P())


@pytest.mark.slow
def test_gradients_through_it_are_those_of_the_whole() -> None:
    mapped = data_parallel(loss)
    for argnums in (0, 1, (0, 1)):
        found = grad(mapped, argnums)(W, X)
        expected = grad(plain_loss, argnums)(W, X)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            same(a, b)
    same(jax.hessian(mapped)(W, X), jax.hessian(plain_loss)(W, X))
    same(jax.jit(grad(mapped))(W, X), grad(plain_loss)(W, X))
    same(jax.jacfwd(mapped)(W, X), jax.jacrev(mapped)(W, X))


def test_a_result_that_devices_share_gets_its_cotangent_once() -> None:
    kept = on(LINE, P(), P())(lambda w: w * 3)
    same(grad(lambda w: jnp.sum(kept(w)))(W), [3.0] * 4)
    unchecked = on(LINE, P("x"), P(), check_vma=False)(lambda v: v * 2)
    same(unchecked(X), 2 * N[:1])
    # Joining takes the first device's part, and so the others have no gradient.
    same(grad(lambda v: jnp.sum(unchecked(v)))(X), np.eye(4)[:, :1] * 2 + 0 * N)


def test_gradients_inside_of_it_are_of_what_there_is() -> None:
    expected = grad(plain_loss)(W, X)
    same(data_parallel(grad(loss))(W, X), expected)
    # Each device's loss is its own, and what they share gets the gradient of all.
    local = data_parallel(grad(lambda w, v: jnp.sum(jnp.sin(v @ w))))
    same(local(W, X), grad(lambda w: jnp.sum(jnp.sin(X @ w)))(W))
    once = on(LINE, P("x"), P("x"))(grad(lambda v: lax.psum(jnp.sum(jnp.sin(v)), "x")))
    same(once(X), np.cos(N))
    own = on(LINE, (P(), P("x")), P("x"))(
        lambda w, v: grad(lambda w: jnp.sum(jnp.sin(v @ w)))(lax.pvary(w, "x"))[None]
    )
    same(own(W, X), np.cos(N @ np.asarray(W))[:, None] * N)


@pytest.mark.parametrize(
    "wrap",
    [jax.jit, jax.checkpoint, lambda f: lambda w, v: lax.cond(True, f, f, w, v)],
    ids=["jit", "checkpoint", "cond"],
)
def test_gradients_inside_reach_through_calls(wrap: Callable[..., Any]) -> None:
    expected = grad(plain_loss)(W, X)
    same(data_parallel(grad(wrap(loss)))(W, X), expected)
    same(data_parallel(wrap(grad(loss)))(W, X), expected)


def test_gradients_inside_where_devices_take_different_branches() -> None:
    def fun(w: Any, v: Any) -> Any:
        late = lax.axis_index("x") > 1
        return lax.cond(late, lambda w: jnp.sum(w * v), lambda w: jnp.sum(w**2), w)

    same(data_parallel(grad(fun))(W, X), N[2] + N[3] + 4 * np.asarray(W))


def test_gradients_inside_of_functions_with_rules() -> None:
    @jax.custom_vjp
    def doubled(w: Any, v: Any) -> Any:
        return w * 2, v * 2

    doubled.defvjp(lambda w, v: ((w * 2, v * 2), None), lambda _, g: (2 * g[0], 2 * g[1]))

    @jax.custom_vjp
    def total(v: Any) -> Any:
        return lax.psum(v, "x")

    total.defvjp(lambda v: (lax.psum(v, "x"), None), lambda _, g: (g,))

    @jax.custom_jvp
    def scaled(w: Any, v: Any) -> Any:
        return w * v

    scaled.defjvp(lambda p, t: (scaled(*p), 3 * t[0] * p[1] + p[0] * t[1]))
    w, v = np.asarray(W), N
    cases: list[tuple[Callable[..., Any], Any]] = [
        # Each argument's cotangent is of its own kind: one for all, or one on each device.
        (
            lambda w, v: jnp.sum(doubled(w, v)[0] * jnp.sin(doubled(w, v)[1])),
            (2 * np.sin(2 * v)).sum(0),
        ),
        (lambda w, v: jnp.sum(total(v) * w * v), (v.sum(0) * v).sum(0)),
        (lambda w, v: jnp.sum(scaled(w, v)), (3 * v).sum(0)),
    ]
    for fun, expected in cases:
        same(data_parallel(grad(fun))(W, X), expected)
    by_part = on(LINE, (P(), P("x")), P("x"))
    same(by_part(grad(cases[1][0], 1))(W, X), 0 * v + v.sum(0) * w + (w * v).sum(0))


def descent(grads: Callable[..., Any]) -> Callable[..., Any]:
    def train(w: Any, v: Any) -> Any:
        def step(w: Any, _: object) -> Any:
            value, g = grads(w, v)
            return w - 0.5 * g, value

        return lax.scan(step, w, None, length=3)

    return train


def test_training_inside_of_it_is_training_outside() -> None:
    inside = data_parallel(descent(jax.value_and_grad(loss)))
    outside = descent(jax.value_and_grad(plain_loss))
    for a, b in zip(inside(W, X), outside(W, X), strict=True):
        same(a, b)
    # And again from outside: the gradient of a training run.
    same(
        grad(lambda w: inside(w, X)[1].sum())(W),
        grad(lambda w: outside(w, X)[1].sum())(W),
    )


def test_without_the_check_each_device_has_gradients_of_its_own() -> None:
    unchecked = on(LINE, P("x"), P("x"), check_vma=False)
    found = unchecked(grad(lambda v: lax.psum(jnp.sum(jnp.sin(v)), "x")))(X)
    # The sum over all devices, one each.
    same(found, 4 * np.cos(N))


# What is refused.


def test_a_false_claim_that_devices_share_a_result_is_ill_typed() -> None:
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (lambda v: v, "the result may differ"),
        (lambda v: {"a": lax.psum(v, "x"), "b": v.sum()}, r"the result\['b'\] may differ"),
        (lambda v: lax.axis_index("x"), "may differ between devices along 'x'"),
        (lambda v: lax.cond(v[0, 0] > 0, lambda: 1.0, lambda: 2.0), "may differ"),
        (lambda v: lax.while_loop(lambda c: c < v.sum(), lambda c: c + 1, 0.0), "may differ"),
        (lambda v: lax.ppermute(lax.psum(v, "x"), "x", [(0, 1)]), "may differ"),
    ]
    for fun, says in cases:
        with pytest.raises(IllTyped, match=says) as caught:
            on(LINE, P("x"), P())(fun)(X)
        assert "check_vma=False" in str(caught.value)
    shared = [lambda v: lax.psum(v, "x"), lambda v: lax.all_gather(v, "x"), lambda v: W]
    for fun in shared:
        on(LINE, P("x"), P())(fun)(X)


def test_references_carry_differences() -> None:
    def through(v: Any) -> Any:
        ref = jax.new_ref(jnp.zeros(4))
        ref[...] += v[0]
        return ref[...]

    same(on(LINE, P("x"), P("x"))(through)(X), N.reshape(-1))
    with pytest.raises(IllTyped, match="the result may differ"):
        on(LINE, P("x"), P())(through)(X)


def sine(*specs: Any) -> Callable[[], Any]:
    """The sine of ``X`` on the line, by these specs."""
    return lambda: on(LINE, *specs)(jnp.sin)(X)


def without_mesh() -> Any:
    mesh: Any = None
    return jax.shard_map(jnp.sin, mesh=mesh, in_specs=P(), out_specs=P())


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no mesh": (without_mesh, BadArgument, "mesh is not a mesh"),
    "no spec": (sine("x", P()), BadArgument, "not a PartitionSpec"),
    "another number of specs": (sine((P(), P()), P()), BadArgument, "length of in_specs"),
    "no prefix": (sine(P(), (P(), P())), BadArgument, "not a prefix of the results"),
    "an axis that is none": (sine(P("z"), P()), IllTyped, "spec of x names an axis"),
    "an axis twice": (sine(P("x", "x"), P()), IllTyped, "an axis twice"),
    "too long a spec": (sine(P(), P(None, None, "x")), IllTyped, "the result has more entries"),
    "uneven parts": (
        lambda: on(LINE, P("x"), P())(jnp.sin)(X[:3]),
        IllTyped,
        "x does not divide evenly",
    ),
    "an unknown axis": (lambda: on(GRID, P(), P(), axis_names={"z"}), BadArgument, "axis_names"),
    "a name in scope": (
        lambda: on(LINE, P("x"), P("x"))(on(LINE, P("x"), P("x"))(jnp.sin))(X),
        BadArgument,
        "already bound",
    ),
    "no function": (lambda: on(LINE, P(), P())(cast(Any, 3)), BadArgument, "takes a function"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_shard_map_refuses(name: str) -> None:
    call, error, says = REFUSED[name]
    with pytest.raises(error, match=says):
        call()


# Meshes and specs.


def test_meshes() -> None:
    assert repr(GRID) == "Mesh('x': 2, 'y': 2)"
    assert GRID.shape == {"x": 2, "y": 2}
    assert (GRID.axis_names, GRID.axis_sizes, GRID.size) == (("x", "y"), (2, 2), 4)
    assert Mesh((2, 2), ("x", "y")) == GRID != make_mesh((4,), ("x",))
    assert hash(Mesh((2, 2), ("x", "y"))) == hash(GRID)
    assert GRID.devices.tolist() == [[0, 1], [2, 3]]
    device = jax.devices()[0]
    assert make_mesh((1,), ("x",), devices=[device]).devices.tolist() == [device]
    assert Mesh(np.array([device]), "x").axis_names == ("x",)
    with pytest.raises(AttributeError):
        GRID.size = 3  # type: ignore[misc]  # that is the test
    refusals: list[tuple[Callable[[], Mesh], str]] = [
        (lambda: Mesh((2, 2), ("x",)), "one name for each"),
        (lambda: Mesh((0,), ("x",)), "at least one device"),
        (lambda: Mesh((2, 2), ("x", "x")), "an axis twice"),
        (lambda: make_mesh((4,), ("x",), devices=[device]), "too few devices"),
    ]
    for make, says in refusals:
        with pytest.raises(BadArgument, match=says):
            make()


def test_specs() -> None:
    spec = P("x", None, ("y", "z"))
    assert spec == PartitionSpec("x", [], ["y", "z"])
    assert repr(spec) == "P('x', None, ('y', 'z'))"
    assert (spec[0], len(spec), list(spec)[1]) == ("x", 3, None)
    assert hash(spec) == hash(P("x", None, ("y", "z")))
    with pytest.raises(BadArgument, match="name of an axis"):
        P(3)  # type: ignore[arg-type]  # that is the test


def test_named_shardings() -> None:
    sharding = NamedSharding(GRID, P("x", ("y",)))
    assert sharding.shard_shape((4, 6, 3)) == (2, 3, 3)
    assert not sharding.is_fully_replicated
    assert NamedSharding(GRID, P()).is_fully_replicated
    assert sharding == NamedSharding(GRID, P("x", "y"))
    with pytest.raises(IllTyped, match="evenly"):
        sharding.shard_shape((3, 6))


def test_specs_of_arguments_are_those_of_their_shardings() -> None:
    mesh = make_mesh((1,), ("x",))
    x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, PartitionSpec("x")))
    f = jax.shard_map(lambda x, y: x + y, mesh=mesh, out_specs=PartitionSpec("x"))
    np.testing.assert_array_equal(f(x, 1.0), np.arange(1.0, 5.0))
    (eqn,) = jax.make_jaxpr(lambda y: f(x, y))(1.0).eqns
    assert eqn.params["in_specs"] == (PartitionSpec("x").spec, ())
