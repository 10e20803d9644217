"""Partition specs: the division of arrays over a mesh of named axes, and types of the parts.

A spec lists, for each dimension, the axes over which it is divided, slowest first. Trailing
dimensions without an entry are not divided. Along axes that a spec does not name, the array is
replicated.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from effax.ir.axes import Axes
from effax.ir.errors import IllTyped
from effax.ir.eval.spmd import Devices
from effax.ir.primitive import Value
from effax.ir.types import RefType, Shape, Type, ref_type

Spec = tuple[tuple[str, ...], ...]
"""For each dimension, the names of the axes over which it is divided."""


def names_in(spec: Spec) -> tuple[str, ...]:
    """Return the axes that a spec names, in its order."""
    return tuple([name for names in spec for name in names])


def sizes_of(mesh: Axes) -> dict[str, int]:
    """Return the sizes of the axes, by name."""
    return {axis.name: axis.size for axis in mesh}


def blocks(spec: Spec, mesh: Axes, ndim: int) -> list[int]:
    """Return the number of parts of each dimension."""
    sizes = sizes_of(mesh)
    counts = [prod([sizes[name] for name in names]) for names in spec]
    return counts + [1] * (ndim - len(counts))


def check_spec(spec: Spec, mesh: Axes, ndim: int, what: str, prefix: str = "shard_map: ") -> None:
    """Raise IllTyped unless the spec fits an array of ``ndim`` dimensions."""
    names = names_in(spec)
    unknown = set(names) - {axis.name for axis in mesh}
    if unknown:
        raise IllTyped(
            f"{prefix}the spec of {what} names an axis that the mesh does not have",
            expected=", ".join([repr(axis.name) for axis in mesh]) or "no axes",
            found=repr(spec_text(spec)),
        )
    if len(set(names)) < len(names):
        raise IllTyped(
            f"{prefix}the spec of {what} names an axis twice",
            expected="each axis at most once",
            found=spec_text(spec),
        )
    if len(spec) > ndim:
        raise IllTyped(
            f"{prefix}the spec of {what} has more entries than the array has dimensions",
            expected=f"at most {ndim} entries",
            found=spec_text(spec),
        )


def spec_text(spec: Spec) -> str:
    """Return a spec as users write it: ``P('x', None, ('y', 'z'))``."""
    entries = [repr(n[0]) if len(n) == 1 else repr(n) if n else "None" for n in spec]
    return f"P({', '.join(entries)})"


def local_type(type_: Type, spec: Spec, mesh: Axes, what: str, prefix: str = "shard_map: ") -> Type:
    """Return the type of one device's part. Raises IllTyped if a dimension does not divide."""
    check_spec(spec, mesh, len(type_.shape), what, prefix)
    counts = blocks(spec, mesh, len(type_.shape))
    uneven = [d for d, (n, k) in enumerate(zip(type_.shape, counts, strict=True)) if n % k]
    if uneven:
        named = " and ".join([f"{d} (over {' and '.join(map(repr, spec[d]))})" for d in uneven])
        raise IllTyped(
            f"{prefix}{what} does not divide evenly over the mesh: dimension {named}",
            expected="dimensions that are multiples of " + ", ".join(map(str, counts)),
            found=f"{type_}, by {spec_text(spec)}",
        )
    return _with_shape(type_, tuple([n // k for n, k in zip(type_.shape, counts, strict=True)]))


def global_type(type_: Type, spec: Spec, mesh: Axes, what: str) -> Type:
    """Return the type of the array that parts of this type make up. Raises IllTyped."""
    check_spec(spec, mesh, len(type_.shape), what)
    counts = blocks(spec, mesh, len(type_.shape))
    return _with_shape(type_, tuple([n * k for n, k in zip(type_.shape, counts, strict=True)]))


def _with_shape(type_: Type, shape: Shape) -> Type:
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=shape), type_.kind)
    return type_.update(shape=shape)


def part(x: Value, spec: Spec, mesh: Axes, device: int) -> Value:
    """Return a view of one device's part."""
    return x[_place(x.shape, spec, mesh, device)] if x.ndim else x


def join_parts(parts: Sequence[Value], spec: Spec, mesh: Axes) -> Value:
    """Return the array of these parts; replicated parts are taken from the first device."""
    counts = blocks(spec, mesh, parts[0].ndim)
    shape = tuple([n * k for n, k in zip(parts[0].shape, counts, strict=True)])
    whole = np.empty(shape, parts[0].dtype)
    devices = Devices(mesh)
    rest = [axis.name for axis in mesh if axis.name not in names_in(spec)]
    for d, own in enumerate(parts):
        if all(devices.coordinate(d, name) == 0 for name in rest):
            whole[_place(shape, spec, mesh, d)] = own
    return whole


def _place(shape: Shape, spec: Spec, mesh: Axes, device: int) -> tuple[slice, ...]:
    """Return the slices of a device's part."""
    devices, sizes = Devices(mesh), sizes_of(mesh)
    spans = []
    for names, n in zip((*spec, *[()] * (len(shape) - len(spec))), shape, strict=True):
        block, count = 0, 1
        for name in names:
            block = block * sizes[name] + devices.coordinate(device, name)
            count *= sizes[name]
        spans.append(slice(block * n // count, (block + 1) * n // count))
    return tuple(spans)
