"""Named axes of `vmap`, and the collectives along them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, IllTyped, TransformError, UnboundAxis

# Of functions without annotations: mypy would look for the overload of each.
grad: Any = jax.grad

X = jnp.arange(12.0).reshape(3, 4)
N = np.arange(12.0).reshape(3, 4)
over_i = partial(jax.vmap, axis_name="i")


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5)


def alike(x: Any, n: int = 3) -> np.ndarray:
    return np.stack([np.asarray(x)] * n)


CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "psum": (lambda v: lax.psum(v, "i"), alike(N.sum(0))),
    "pmean": (lambda v: lax.pmean(v, "i"), alike(N.mean(0))),
    "pmax": (lambda v: lax.pmax(v, "i"), alike(N.max(0))),
    "pmin": (lambda v: lax.pmin(v, "i"), alike(N.min(0))),
    "psum of a number": (lambda v: v * lax.psum(1, "i"), 3 * N),
    "psum of booleans": (lambda v: lax.psum(v > 4, "i"), alike((N > 4).sum(0))),
    "psum of an unbatched value": (lambda v: v + lax.psum(jnp.ones(4), "i"), N + 3),
    "axis_index": (lambda v: lax.axis_index("i"), [0, 1, 2]),
    "axis_size": (lambda v: v * lax.axis_size("i"), 3 * N),
    "all_gather": (lambda v: lax.all_gather(v, "i"), alike(N)),
    "all_gather at an axis": (lambda v: lax.all_gather(v, "i", axis=-1), alike(N.T)),
    "all_gather tiled": (
        lambda v: lax.all_gather(v, "i", tiled=True),
        alike(N.reshape(-1)),
    ),
    "ppermute": (
        lambda v: lax.ppermute(v, "i", [(0, 1), (1, 2), (2, 0)]),
        np.roll(N, 1, 0),
    ),
    "ppermute of some": (
        lambda v: lax.ppermute(v, "i", [(2, 0)]),
        np.stack([N[2], 0 * N[0], 0 * N[0]]),
    ),
    "ppermute of an unbatched value": (
        lambda v: lax.ppermute(jnp.ones(2), "i", [(0, 1)]),
        [[0, 0], [1, 1], [0, 0]],
    ),
    "pshuffle": (lambda v: lax.pshuffle(v, "i", [2, 0, 1]), N[[2, 0, 1]]),
    "pbroadcast": (lambda v: lax.pbroadcast(v, "i", 1), alike(N[1])),
    "pswapaxes": (lambda v: lax.pswapaxes(v[:3], "i", 0), N[:, :3].T),
    "psum_scatter": (lambda v: lax.psum_scatter(v[:3], "i"), N[:, :3].sum(0)),
    "psum_scatter tiled": (
        lambda v: lax.psum_scatter(jnp.tile(v, 3), "i", tiled=True),
        alike(N.sum(0)),
    ),
    "all_to_all tiled": (
        lambda v: lax.all_to_all(jnp.tile(v, 3), "i", 0, 0, tiled=True),
        alike(N.reshape(-1)),
    ),
    "pvary": (lambda v: lax.pvary(v, "i"), N),
    "pcast": (lambda v: lax.pcast(v, "i", to="varying"), N),
    "a tree": (lambda v: lax.psum({"a": v}, "i")["a"], alike(N.sum(0))),
}


@pytest.mark.parametrize("name", CASES)
def test_collectives_equal_the_exchange_of_stacked_values(name: str) -> None:
    fun, expected = CASES[name]
    same(over_i(fun)(X), expected)


def test_names_reach_through_calls_and_control_flow() -> None:
    def fun(v: Any) -> Any:
        carry, _ = lax.scan(lambda c, e: (c + lax.psum(e, "i"), None), 0.0, v)
        kept = lax.cond(lax.pmax(v[0], "i") > 5, lambda: lax.pmin(v, "i"), lambda: v)
        grown = lax.while_loop(
            lambda c: lax.psum(c, "i") < 100, lambda c: c + lax.axis_index("i") + 1, v[1]
        )
        return jax.jit(lambda u: u * lax.psum(1, "i"))(carry), kept, grown

    carry, kept, grown = over_i(jax.checkpoint(fun))(X)
    same(carry, [3 * N.sum()] * 3)
    same(kept, alike(N[0]))
    # 1 + 5 + 9 = 15; each round adds 1 + 2 + 3
    same(grown, N[:, 1] + 15 * np.array([1, 2, 3]))


def test_custom_rules_use_the_axis() -> None:
    @jax.custom_vjp
    def total(v: Any) -> Any:
        return lax.psum(v, "i")

    total.defvjp(lambda v: (lax.psum(v, "i"), None), lambda _, g: (lax.pmean(g, "i"),))
    same(over_i(total)(X), alike(N.sum(0)))
    found = grad(lambda x: jnp.sum(over_i(total)(x) * X))(X)
    same(found, alike(N.mean(0)))


def test_axes_nest_and_act_together() -> None:
    def fun(v: Any) -> Any:
        return (
            lax.psum(v, ("i", "j")),
            v - lax.psum(v, "j"),
            lax.axis_index(("i", "j")),
            lax.all_gather(v, ("i", "j")),
        )

    both, inner, place, every = over_i(jax.vmap(fun, axis_name="j"))(X)
    same(both, np.full((3, 4), N.sum()))
    same(inner, N - N.sum(1, keepdims=True))
    same(place, N)
    same(every, np.broadcast_to(N.reshape(-1), (3, 4, 12)))


def test_an_inner_axis_hides_an_outer_one_of_its_name() -> None:
    inner = over_i(lambda v: lax.psum(v, "i"))
    same(over_i(inner)(X), N.sum(1)[:, None] + 0 * N)


def test_exchanges_over_two_axes_are_those_over_one_of_their_size() -> None:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(2, 3, 6, 2)).astype(np.float32))
    flat = x.reshape(6, 6, 2)
    for fun in (
        lax.psum_scatter,
        lambda v, names: lax.all_to_all(v, names, 0, 1),
        lambda v, names: lax.all_gather(v, names, axis=1, tiled=True),
    ):
        two = jax.vmap(jax.vmap(lambda v, f=fun: f(v, ("a", "b")), axis_name="b"), axis_name="a")
        one = jax.vmap(lambda v, f=fun: f(v, "c"), axis_name="c")
        found = two(x)
        same(found.reshape(6, *found.shape[2:]), one(flat))


def test_a_compiled_function_is_traced_anew_for_another_size() -> None:
    count = jax.jit(lambda v: v * lax.axis_size("i"))
    same(over_i(count)(jnp.ones(3)), [3, 3, 3])
    same(over_i(count)(jnp.ones(2)), [2, 2])
    same(jax.jit(over_i(lambda v: v - lax.pmean(v, "i")))(X), N - N.mean(0))


def test_an_axis_without_mapped_arguments() -> None:
    found = jax.vmap(lambda: lax.axis_index("i") * 2, axis_name="i", axis_size=3)()
    same(found, [0, 2, 4])


# Derivatives.


def smooth(v: Any) -> Any:
    w = jnp.sin(v) * lax.psum(jnp.cos(v), "i") + lax.ppermute(v * v, "i", [(0, 1), (1, 2)])
    return w + lax.all_gather(v, "i")[0] * lax.axis_index("i") + lax.pmax(v, "i")


def written_out(x: Any) -> Any:
    moved = jnp.concatenate([jnp.zeros((1, 4)), (x * x)[:2]])
    places = jnp.arange(3.0)[:, None]
    return jnp.sin(x) * jnp.cos(x).sum(0) + moved + x[0] * places + x.max(0)


def test_derivatives_equal_those_of_the_exchange_of_stacked_values() -> None:
    weights = jnp.cos(X)
    named = lambda x: jnp.sum(over_i(smooth)(x) * weights)  # noqa: E731  compared in one line
    plain = lambda x: jnp.sum(written_out(x) * weights)  # noqa: E731
    same(over_i(smooth)(X), written_out(X))
    same(grad(named)(X), grad(plain)(X))
    same(jax.jvp(named, (X,), (weights,))[1], jax.jvp(plain, (X,), (weights,))[1])
    same(jax.linearize(named, X)[1](weights), jax.linearize(plain, X)[1](weights))
    rows = lambda x: named(x) * X[0, 1]  # noqa: E731
    same(grad(lambda t: rows(X * t))(1.0), grad(lambda t: plain(X * t))(1.0))


def test_a_derivative_of_one_element_is_that_of_the_sum_over_the_axis() -> None:
    inside = over_i(grad(lambda v: jnp.sum(smooth(v))))(X)
    same(inside, grad(lambda x: jnp.sum(written_out(x)))(X))


def test_gradients_of_single_examples_stay_single() -> None:
    w = jnp.ones(4)
    per_example = jax.vmap(grad(lambda w, v: jnp.sum(w * v)), (None, 0), axis_name="i")
    same(per_example(w, X), N)


# What is refused.


def test_an_unbound_name_is_an_error_that_lists_the_names_in_scope() -> None:
    with pytest.raises(UnboundAxis, match="no named axis in scope"):
        lax.psum(jnp.ones(3), "i")
    with pytest.raises(NameError, match=r"in scope: 'i' \(of size 3\)"):
        over_i(lambda v: lax.all_gather(v, "rows"))(X)


def test_an_open_program_is_neither_compiled_nor_run() -> None:
    found: list[Any] = []

    def keep(v: Any) -> Any:
        found.append(jax.make_jaxpr(lambda u: lax.psum(u, "i"))(v))
        return v

    over_i(keep)(X)
    (closed,) = found
    assert [str(axis) for axis in closed.jaxpr.free_axes] == ["i:3"]
    from effax.lowering.stablehlo import lower
    from effax.transforms.vmap.engine import vmap

    assert "axis 'i'" in str(lower(closed.jaxpr).failure())
    assert "a size other than" in str(vmap(closed.jaxpr, 2, [0], axis_name="i").failure())


def test_a_collective_under_a_batched_predicate_is_an_error() -> None:
    branch = lambda v: lax.cond(v > 0, lambda v: lax.psum(v, "i"), lambda v: v, v)  # noqa: E731
    with pytest.raises(TransformError, match="axis 'i' is in a branch"):
        over_i(branch)(jnp.arange(3.0))
    loop = lambda v: lax.while_loop(lambda c: c < 9, lambda c: c + lax.pmax(c, "i"), v)  # noqa: E731
    with pytest.raises(TransformError, match="axis 'i' is in a loop"):
        over_i(loop)(jnp.arange(3.0))
    # axis_index is allowed under a batched predicate.
    place = lambda v: lax.cond(v > 1, lambda v: v + lax.axis_index("i"), lambda v: v, v)  # noqa: E731
    same(over_i(place)(jnp.arange(3.0)), [0, 1, 4])
    # A predicate batched along another axis is allowed: all elements run both branches.
    shifted = N - 4
    found = over_i(jax.vmap(branch))(X - 4)
    same(found, np.where(shifted > 0, shifted.sum(0), shifted))


GROUPS = [[3, 0], [1, 2]]
Y = np.arange(8.0, dtype=np.float32).reshape(4, 2) ** 2

IN_GROUPS: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], np.ndarray]]] = {
    "psum": (lax.psum, lambda v: np.stack([v.sum(0)] * 2)),
    "pmean": (lax.pmean, lambda v: np.stack([v.mean(0)] * 2)),
    "pmax": (lax.pmax, lambda v: np.stack([v.max(0)] * 2)),
    "all_gather": (lax.all_gather, lambda v: np.stack([v] * 2)),
    "psum_scatter": (lax.psum_scatter, lambda v: v.sum(0)),
    "all_to_all": (partial(lax.all_to_all, split_axis=0, concat_axis=0), lambda v: v.T),
}


@pytest.mark.parametrize("name", IN_GROUPS)
def test_groups_of_an_axis_exchange_among_themselves(name: str) -> None:
    fun, expected = IN_GROUPS[name]

    def along(axis: str | tuple[str, ...]) -> Callable[[Any], Any]:
        return lambda v: fun(v, axis_name=axis, axis_index_groups=GROUPS)

    found = jax.vmap(along("i"), axis_name="i")(Y)
    for group in GROUPS:
        same(found[np.array(group)], expected(Y[group]))
    # Groups cross the axes: two axes act as one.
    nested = jax.vmap(jax.vmap(along(("i", "j")), axis_name="j"), axis_name="i")
    same(nested(Y.reshape(2, 2, 2)).reshape(found.shape), found)


def test_ppermute_along_two_axes_that_act_as_one() -> None:
    move = lambda v: lax.ppermute(v, ("i", "j"), [(0, 3), (3, 1)])  # noqa: E731
    found = jax.vmap(jax.vmap(move, axis_name="j"), axis_name="i")(Y.reshape(2, 2, 2))
    same(found.reshape(4, 2), np.stack([0 * Y[0], Y[3], 0 * Y[0], Y[0]]))


def test_groups_of_different_sizes_are_reduced() -> None:
    groups = [[2], [3, 0, 1]]
    for fun, combine in ((lax.psum, np.sum), (lax.pmin, np.min), (lax.pmean, np.mean)):
        found = jax.vmap(lambda v: fun(v, "i", axis_index_groups=groups), axis_name="i")(Y)  # noqa: B023
        same(found, np.stack([Y[2] if i == 2 else combine(Y[[0, 1, 3]], 0) for i in range(4)]))
    count = jax.vmap(lambda v: v * 0 + lax.psum(1, "i", axis_index_groups=groups), axis_name="i")
    same(count(Y[:, 0]), [3, 3, 1, 3])


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "groups that lack one": (
        lambda v: lax.psum(v, "i", axis_index_groups=[[0], [2]]),
        BadArgument,
        "is not a partition",
    ),
    "groups of different sizes": (
        lambda v: lax.all_gather(v, "i", axis_index_groups=[[0], [1, 2]]),
        BadArgument,
        "groups of one size",
    ),
    "a name that is none": (lambda v: lax.psum(v, cast(Any, 3)), BadArgument, "name of an axis"),
    "no names": (lambda v: lax.psum(v, ()), BadArgument, "names no axis"),
    "a name twice": (lambda v: lax.psum(v, ("i", "i")), BadArgument, "an axis twice"),
    "another size": (lambda v: lax.psum_scatter(v, "i"), BadArgument, "tiled=True"),
    "not a multiple": (
        lambda v: lax.all_to_all(v, "i", 0, 0, tiled=True),
        BadArgument,
        "a multiple of 3",
    ),
    "no such dimension": (lambda v: lax.all_gather(v, "i", axis=2), BadArgument, "all_gather"),
    "places twice": (lambda v: lax.ppermute(v, "i", [(0, 1), (0, 2)]), IllTyped, "at most once"),
    "no pairs": (lambda v: lax.ppermute(v, "i", cast(Any, [(0, 1, 2)])), BadArgument, "pairs"),
    "no permutation": (
        lambda v: lax.pshuffle(v, "i", [0, 0, 1]),
        BadArgument,
        "takes a permutation",
    ),
    "no such place": (lambda v: lax.pbroadcast(v, "i", 3), BadArgument, "0 to 2"),
    "another cast": (lambda v: lax.pcast(v, "i", to="reduced"), BadArgument, "to='varying'"),
    "no array": (lambda v: lax.pmax("a", "i"), IllTyped, "operand of pmax"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_of_collectives(name: str) -> None:
    fun, error, says = REFUSED[name]
    with pytest.raises(error, match=says):
        over_i(fun)(X)
