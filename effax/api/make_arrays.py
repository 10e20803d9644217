"""Arrays from the parts of their devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from effax.arrays.argument_checks import integers
from effax.arrays.array import Array, DTypeLike
from effax.arrays.binding import value_of
from effax.arrays.conversion import from_numpy
from effax.arrays.creation import asarray
from effax.arrays.device_array import DeviceArray
from effax.arrays.placed import placement
from effax.arrays.placed_array import from_parts, from_single_devices, parts_of, placed_type
from effax.arrays.sharding import Sharding
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import Shape, array_type

Callback = Callable[[tuple[slice, ...]], object]


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callback,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return an array whose parts are the results of a function of their indices.

    Args:
        shape: the shape of the array.
        sharding: its sharding.
        data_callback: function of an index of the array to that part; it is called once for each
            part of this process.
        dtype: its dtype; by default that of the parts.

    Raises:
        BadArgument: ``sharding`` is none.
        IllTyped: a part has another shape or dtype, or the sharding does not divide the shape.

    >>> place = effax.sharding.SingleDeviceSharding(effax.devices()[0])
    >>> effax.make_array_from_callback((2,), place, lambda index: np.arange(2)[index])
    Array([0, 1], dtype=int32)
    """
    sizes = integers(shape, "make_array_from_callback: shape")
    place = _sharding(sharding, "make_array_from_callback")
    placed = place.placement(len(sizes))
    indices: Mapping[int, tuple[slice, ...]] = {0: (slice(None),) * len(sizes)}
    if placed is not None:
        found = placed.indices(sizes)
        indices = {k: found[k] for k in placed.local}

    def part(index: tuple[slice, ...]) -> np.ndarray:
        found = data_callback(index)
        given = found if isinstance(found, DeviceArray) else asarray(np.asarray(found), dtype)
        return value_of(given if dtype is None else asarray(given, dtype))

    return _joined(sizes, place, parts_of(indices, part), "make_array_from_callback")


def make_array_from_process_local_data(
    sharding: Sharding, local_data: object, global_shape: Sequence[int] | None = None
) -> Array:
    """Return an array of the data that each process has.

    Args:
        sharding: its sharding.
        local_data: the data of this process: the whole, or, along an axis that the sharding divides
            over processes, the parts of this process's devices.
        global_shape: the shape of the array; by default that of the data of all processes along the
            axes that are divided over them.

    Raises:
        BadArgument: ``sharding`` is none.
        IllTyped: the data fit neither the whole nor the parts of this process.

    >>> place = effax.sharding.SingleDeviceSharding(effax.devices()[0])
    >>> effax.make_array_from_process_local_data(place, np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    what = "make_array_from_process_local_data"
    place = _sharding(sharding, what)
    data = np.asarray(asarray(local_data))
    placed = place.placement(data.ndim)
    if placed is None:
        return _joined(_shape(global_shape, data.shape, what), place, {0: data}, what)
    axes = range(data.ndim)
    starts = placed.indices(placed.tiles)
    here = [sorted({starts[k][d].start for k in placed.local}) for d in axes]
    spread = tuple([n * placed.tiles[d] // len(here[d]) for d, n in enumerate(data.shape)])
    sizes = _shape(global_shape, spread, what)
    of_part = placed.shard_shape(sizes)
    own = tuple([len(here[d]) * of_part[d] for d in axes])
    if data.shape not in (sizes, own):
        raise IllTyped(
            f"{what}: the data fit neither the whole nor the parts of this process",
            expected=f"the shape {sizes} or {own}",
            found=str(data.shape),
        )
    parts = {}
    for k in placed.local:
        at = [starts[k][d].start for d in axes]
        if data.shape != sizes:
            at = [here[d].index(i) for d, i in enumerate(at)]
        index = tuple([slice(i * n, (i + 1) * n) for i, n in zip(at, of_part, strict=True)])
        parts[k] = data[index]
    return _joined(sizes, place, parts, what)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: object = None
) -> Array:
    """Return the array of a shape whose parts are arrays, each on one device of this process.

    Args:
        shape: the shape of the array.
        sharding: its sharding.
        arrays: one array for each device of this process, in any order.
        dtype: ignored: it is that of the arrays.

    Raises:
        BadArgument: ``sharding`` is none, or there is not one array for each device.
        IllTyped: an array has another type than the part.

    >>> place = effax.sharding.SingleDeviceSharding(effax.devices()[0])
    >>> effax.make_array_from_single_device_arrays((2,), place, [jnp.ones(2)])
    Array([1., 1.], dtype=float32)
    """
    del dtype
    what = "make_array_from_single_device_arrays"
    sizes = integers(shape, f"{what}: shape")
    place = _sharding(sharding, what)
    values = [x for x in arrays if isinstance(x, DeviceArray)]
    if not values or len(values) != len(arrays):
        raise BadArgument(f"{what} takes arrays", "one array a device", f"{arrays!r:.80}")
    if place.placement(len(sizes)) is None:
        if len(values) != 1:
            raise BadArgument(f"{what}: one device has one part", "one array", str(len(arrays)))
        return _joined(sizes, place, {0: values[0].numpy()}, what)
    type_ = values[0].type.update(shape=sizes)
    return from_single_devices(type_, place, values, what)


def _shape(given: Sequence[int] | None, found: Shape, what: str) -> Shape:
    return found if given is None else integers(given, f"{what}: global_shape")


def _sharding(sharding: object, what: str) -> Sharding:
    place = placement(sharding, what)
    if place is None:
        raise BadArgument(f"{what} takes a sharding", "a Sharding", f"{sharding!r:.80}")
    return place


def _joined(sizes: Shape, sharding: Sharding, parts: Mapping[int, np.ndarray], what: str) -> Array:
    """Return the array of parts; of one part, where there is one device."""
    first = next(iter(parts.values()))
    type_ = array_type(sizes, first.dtype)
    if sharding.placement(len(sizes)) is not None:
        placed_type(type_, sharding)
        return from_parts(type_, sharding, parts)
    if first.shape != sizes:
        raise IllTyped(f"{what}: the part has another shape", str(sizes), str(first.shape))
    sharding.shard_shape(sizes)
    return from_numpy(first).placed(sharding)
