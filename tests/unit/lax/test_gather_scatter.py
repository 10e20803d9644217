"""Gather and scatter by dimension numbers: an explicit loop over windows is the meaning of each."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, IllTyped

ELEMENTS = lax.ScatterDimensionNumbers((), (0,), (0,))


class Case(NamedTuple):
    """Dimension numbers, the shape of an operand, start indices and the sizes of a window."""

    numbers: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    starts: Any
    sizes: tuple[int, ...]


CASES = {
    "rows": Case(((1,), (0,), (0,)), (4, 3), [[1], [7], [1], [-1]], (1, 3)),
    "sliding": Case(((1,), (), (0,)), (5,), [[0], [1], [4], [9]], (2,)),
    "reversed map": Case(((0, 2), (), (1, 0)), (3, 4), [[3, 1], [0, 2], [-1, 0]], (2, 2)),
    "inner offsets": Case(((0, 2), (1,), (1,)), (2, 4, 3), [[3], [0]], (2, 1, 2)),
    "paired axes": Case(
        ((2,), (), (2,), (0, 1), (1, 0)), (2, 3, 6), [[[0], [5]], [[2], [3]], [[1], [4]]], (1, 1, 3)
    ),
    "no starts": Case(((1,), (), ()), (4,), np.zeros((2, 0), np.int32), (3,)),
}


def windows(case: Case, mode: str) -> Any:
    """Yield the index of each window in the result, and its place in the operand or None."""
    offsets, collapsed, mapped, *rest = case.numbers
    operand_batch, along = rest or ((), ())
    starts = np.asarray(case.starts, np.int32)
    for at in np.ndindex(starts.shape[:-1]):
        first = [0] * len(case.shape)
        for axis, start in zip(mapped, starts[at], strict=True):
            first[axis] = int(start)
        limits = [n - k for n, k in zip(case.shape, case.sizes, strict=True)]
        if mode == "clip":
            first = [min(max(f, 0), high) for f, high in zip(first, limits, strict=True)]
        inside = all(0 <= f <= high for f, high in zip(first, limits, strict=True))
        for axis, other in zip(operand_batch, along, strict=True):
            first[axis] = at[other]
        feed = iter(at)
        result = [
            slice(None) if i in offsets else next(feed) for i in range(len(offsets) + len(at))
        ]
        place = [slice(f, f + k) for f, k in zip(first, case.sizes, strict=True)]
        for axis in {*collapsed, *operand_batch}:
            place[axis] = first[axis]  # type: ignore[call-overload]  # an integer removes the axis
        yield tuple(result), tuple(place) if inside else None


def operands(case: Case) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=case.shape).astype(np.float32)
    n = lax.GatherDimensionNumbers(*case.numbers)
    shape = lax.gather(x, np.asarray(case.starts, np.int32), n, case.sizes).shape
    return x, rng.normal(size=shape).astype(np.float32)


UPDATES: dict[str, Any] = {
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
    "scatter": lambda old, new: new,
    "scatter_apply": lambda old, new: 2 * old + 1,
}


@pytest.mark.parametrize("name", CASES)
def test_gather_and_scatter_equal_a_loop_over_windows(name: str) -> None:
    case = CASES[name]
    x, updates = operands(case)
    starts = np.asarray(case.starts, np.int32)
    for mode in ("clip", "fill"):
        numbers = lax.GatherDimensionNumbers(*case.numbers)
        expected = np.full(updates.shape, 7, np.float32)
        for at, place in windows(case, mode):
            if place is not None:
                expected[at] = x[place]
        got = lax.gather(x, starts, numbers, case.sizes, mode=mode, fill_value=7)
        np.testing.assert_array_equal(got, expected)
    for function, combine in UPDATES.items():
        wanted = x.copy()
        for at, place in windows(case, "fill"):
            if place is not None:
                wanted[place] = combine(wanted[place], updates[at])
        np.testing.assert_allclose(updated(case, function, x, updates), wanted, 1e-6)


def updated(case: Case, name: str, x: Any, updates: Any, mode: str | None = None) -> Any:
    numbers = lax.ScatterDimensionNumbers(*case.numbers)
    starts = np.asarray(case.starts, np.int32)
    if name == "scatter_apply":
        shape = np.shape(updates)
        return lax.scatter_apply(
            x, starts, lambda old: 2 * old + 1, numbers, update_shape=shape, mode=mode
        )
    return getattr(lax, name)(x, starts, updates, numbers, mode=mode)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sliding", "paired axes", "no starts"])
def test_compiled_and_batched_calls_equal_eager_ones(name: str) -> None:
    case = CASES[name]
    x, updates = operands(case)
    starts = jnp.asarray(case.starts, "int32")

    def all_of(x: Any, starts: Any, updates: Any) -> list[Any]:
        numbers = lax.GatherDimensionNumbers(*case.numbers)
        moved = case._replace(starts=starts)
        read = [lax.gather(x, starts, numbers, case.sizes, mode=m) for m in (None, "fill")]
        pairs = itertools.product(UPDATES, (None, "clip"))
        return read + [of_starts(moved, f, x, updates, m) for f, m in pairs]

    def of_starts(case: Case, name: str, x: Any, updates: Any, mode: str | None) -> Any:
        numbers = lax.ScatterDimensionNumbers(*case.numbers)
        if name == "scatter_apply":
            shape = updates.shape
            return lax.scatter_apply(
                x, case.starts, lambda old: 2 * old, numbers, update_shape=shape, mode=mode
            )
        return getattr(lax, name)(x, case.starts, updates, numbers, mode=mode)

    eager = all_of(x, starts, jnp.asarray(updates))
    for a, b in zip(jax.jit(all_of)(x, starts, updates), eager, strict=True):
        np.testing.assert_allclose(a, b, 1e-6)
    others = (jnp.stack([x, -x]), jnp.stack([starts, starts // 2]), jnp.stack([updates] * 2))
    for flags in ((0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0)):
        given = [o if f == 0 else o[0] for o, f in zip(others, flags, strict=True)]
        batched = jax.vmap(all_of, flags)(*given)
        one = all_of(*(o[1] if f == 0 else o[0] for o, f in zip(others, flags, strict=True)))
        for a, b in zip(batched, one, strict=True):
            np.testing.assert_allclose(a[1], b, 1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "complex64"])
def test_every_dtype_is_read_filled_and_written(dtype: str) -> None:
    x = jnp.asarray([1, 0, 1]).astype(dtype)
    starts = jnp.array([[2], [9]], "uint8")
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    filled = lax.gather(x, starts, numbers, (1,), mode="fill")
    default = {"bool": True, "int8": -128, "uint32": 2**32 - 1}.get(dtype, np.nan)
    np.testing.assert_array_equal(np.asarray(filled).astype(complex), np.array([1, default]))
    assert lax.gather(x, starts, numbers, (1,), mode="one_hot").tolist() == [1, 0]
    zeros = jnp.zeros(2, dtype)
    assert lax.scatter(x, starts, zeros, ELEMENTS).tolist() == [1, 0, 0]
    if dtype != "bool":
        assert lax.scatter_sub(x, starts, zeros + 1, ELEMENTS).tolist() == [1, 0, 0]


def test_empty_windows_and_empty_indices() -> None:
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    empty = jnp.zeros((0, 1), "int32")
    assert lax.gather(jnp.zeros((0, 3)), empty, rows, (1, 3)).shape == (0, 3)
    assert lax.gather(jnp.zeros((2, 3)), jnp.zeros((4, 1), "int32"), rows, (1, 0)).shape == (4, 0)
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    assert (
        lax.scatter_add(jnp.ones((2, 3)), empty, jnp.ones((0, 3)), numbers).tolist()
        == [[1, 1, 1]] * 2
    )


def test_indices_have_no_tangents() -> None:
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    starts = jnp.array([[1]])
    _, pullback = jax.vjp(lambda x, i: lax.gather(x, i, numbers, (1,)), jnp.ones(3), starts)
    dx, di = pullback(jnp.ones(1))
    assert dx.tolist() == [0, 1, 0]
    assert di.dtype == jax.dtypes.float0


def test_repeated_positions_after_clipping_are_combined_in_sequence() -> None:
    x = jnp.array([1.0, 2.0])
    found = x.at[jnp.array([3, 7])].apply(lambda old: old * 3, mode="clip")
    assert found.tolist() == [1, 18]


def test_a_gather_and_a_scatter_lower_to_one_operation_each() -> None:
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))

    def read_and_added(x: Any, starts: Any) -> Any:
        part = lax.gather(x, starts, rows, (1, 3))
        return lax.scatter_add(x, starts, part, lax.ScatterDimensionNumbers((1,), (0,), (0,)))

    text = jax.jit(read_and_added).lower(jnp.ones((4, 3)), jnp.zeros((2, 1), "int32")).as_text()
    assert text.count("stablehlo.gather") == 2  # the operation and its attribute
    assert text.count("stablehlo.scatter") == 2


def test_modes_have_names_and_are_accepted_by_indexing() -> None:
    mode = lax.GatherScatterMode
    assert mode.from_any(None) is mode.from_any("drop") is mode.FILL_OR_DROP
    x = jnp.arange(3.0)
    far = jnp.array([5])
    assert np.isnan(x.at[far].get(mode=mode.FILL_OR_DROP)[0])
    assert x.at[far].set(9.0, mode=mode.CLIP)[2] == 9
    assert jnp.take(x, far, mode=mode.CLIP)[0] == 2
    with pytest.raises(BadArgument, match="unknown mode"):
        mode.from_any("wrap")


G, S = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers
REFUSED: dict[str, Any] = {
    "offset_dims": lambda x, i: lax.gather(x, i, G((2,), (0,), (0,)), (1, 2)),
    "start_index_map that there": lambda x, i: lax.gather(x, i, G((1,), (0,), (2,)), (1, 2)),
    "size of an index vector": lambda x, i: lax.gather(x, i, G((1,), (0,), (0, 1)), (1, 2)),
    "rank of the operand": lambda x, i: lax.gather(x, i, G((), (0,), (0,)), (1, 2)),
    "axis 1 of the operand": lambda x, i: lax.gather(x, i, G((1,), (0,), (0,)), (1, 4)),
    "axis 0 of the operand": lambda x, i: lax.gather(x, i, G((1,), (0,), (0,)), (2, 2)),
    "collapsed_slice_dims and operand_batching_dims": lambda x, i: lax.gather(
        x, i, G((1,), (0,), (1,), (0,), (0,)), (1, 2)
    ),
    "sizes of operand_batching_dims": lambda x, i: lax.gather(
        x, i, G((1,), (), (1,), (0,), (0,)), (1, 2)
    ),
    "ascending": lambda x, i: lax.gather(x, i, G((2, 1), (), (0,)), (1, 2)),
    "not integers": lambda x, i: lax.gather(x, i * 1.0, G((1,), (0,), (0,)), (1, 2)),
    "index vectors": lambda x, i: lax.gather(x, 1, G((1,), (0,), (0,)), (1, 2)),
    "another type": lambda x, i: lax.gather(x, i, ((1,), (0,), (0,)), (1, 2)),  # type: ignore[arg-type]  # refused
    "updates of the wrong type": lambda x, i: lax.scatter(x, i, x, S((1,), (0,), (0,))),
}


@pytest.mark.parametrize("message", REFUSED)
def test_contradictory_numbers_are_refused(message: str) -> None:
    with pytest.raises((IllTyped, BadArgument), match=message):
        REFUSED[message](jnp.ones((4, 3)), jnp.zeros((2, 1), "int32"))
