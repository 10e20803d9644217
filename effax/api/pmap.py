"""``pmap``: map a callable over a leading axis, a batch element for each device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, ParamSpec, TypeVar, cast

from effax import tree
from effax.api.devices import devices as devices_of
from effax.api.devices import is_none
from effax.api.jit import JitFunction, jit
from effax.api.shard_map import shard_map
from effax.arrays.argument_checks import axis_name_of, check_callable, integers
from effax.arrays.array import Array
from effax.arrays.batching import spread_axes, vmap
from effax.arrays.conversion import as_value
from effax.arrays.mesh import make_mesh
from effax.arrays.shapes import expand_dims, squeeze
from effax.arrays.sharding import PartitionSpec
from effax.ir.errors import BadArgument
from effax.ir.scope import axes_in_scope
from effax.lowering import xla
from effax.lowering.xla import Device

P = ParamSpec("P")
R = TypeVar("R")

UNNAMED: Final = "the axis of pmap"


def pmap(
    fun: Callable[P, R],
    axis_name: Hashable | None = None,
    *,
    in_axes: int | Sequence[object] | None = 0,
    out_axes: object = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> JitFunction[P, R]:
    """Map ``fun`` over axes of its arguments, as :func:`effax.vmap`, and compile it.

    The axis has at most as many elements as there are devices, each of which computes one.

    Args:
        fun: a function of trees of arrays.
        axis_name: the name of the axis for collectives in ``fun`` such as ``lax.psum``.
        in_axes: the axis of all arguments, or one an argument; None: it is not mapped.
        out_axes: the position of the axis in the results, in the same way.
        static_broadcasted_argnums: positions of arguments that are not traced.
        devices: the devices; by default all.
        backend: None, or the platform of the devices.
        axis_size: the length of the axis.
        donate_argnums: positions of arguments whose memory results reuse.

    Raises:
        BadArgument: the axis is longer than there are devices, or of another length than
            ``devices``; as :func:`effax.vmap`.

    >>> effax.pmap(lambda x: x / effax.lax.psum(x, "i"), axis_name="i")(jnp.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    check_callable(fun, "pmap")
    name = UNNAMED if axis_name is None else axis_name_of(axis_name, "pmap: axis_name")
    static = integers(static_broadcasted_argnums, "pmap: static_broadcasted_argnums")

    def mapped(*args: object, **kwargs: object) -> object:
        fixed = {n % len(args): args[n] for n in static if -len(args) <= n < len(args)}
        dynamic = [x for i, x in enumerate(args) if i not in fixed]
        axes = in_axes
        if isinstance(axes, tuple | list) and len(axes) == len(args):
            axes = tuple([axis for i, axis in enumerate(axes) if i not in fixed])

        def on_dynamic(*given: object, **named: object) -> object:
            _check_size(name, devices, backend)
            rest = iter(given)
            full = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
            return cast("Callable[..., object]", fun)(*full, **named)

        batched: Callable[..., object] = vmap(on_dynamic, axes, out_axes, name, axis_size)
        known = xla.own_devices() if devices is None else tuple(devices)
        if xla.number_of_devices() > 1 and not axes_in_scope():
            batched = _on_each(on_dynamic, axes, out_axes, name, known) or batched
        return batched(*dynamic, **kwargs)

    mapped.__name__ = getattr(fun, "__name__", type(fun).__name__)
    made = jit(mapped, static_argnums=static, donate_argnums=donate_argnums, backend=backend)
    return cast("JitFunction[P, R]", made)


def _on_each(
    fun: Callable[..., object],
    in_axes: object,
    out_axes: object,
    name: str,
    devices: Sequence[Device],
) -> Callable[..., object] | None:
    """Return ``fun`` on each device, on its element; None where ``vmap`` has to find positions."""
    if any(
        axis is not None and (type(axis) is not int or axis < 0)
        for axis in tree.leaves(out_axes, is_leaf=is_none)
    ):
        return None

    def mapped(*args: object, **kwargs: object) -> object:
        leaves, treedef = tree.flatten((args, kwargs))
        axes = spread_axes(in_axes, len(args), treedef)
        arrays = [as_value(x) for x in leaves]
        sizes = {x.shape[a] for x, a in zip(arrays, axes, strict=True) if type(a) is int and x.ndim}
        size = sizes.pop() if len(sizes) == 1 else 0
        if not 0 < size <= len(devices):
            return vmap(fun, in_axes, out_axes, name)(*args, **kwargs)  # type: ignore[arg-type]  # as given
        mesh = make_mesh((size,), (name,), devices=devices)

        def one(*own: Array) -> object:
            pairs = zip(own, axes, strict=True)
            elements = [x if a is None else squeeze(x, cast(int, a)) for x, a in pairs]
            inner, named = tree.unflatten(treedef, elements)
            found = fun(*inner, **named)
            outs = tree.broadcast_prefix(out_axes, found)
            values, outs_of = tree.flatten(found)
            return tree.unflatten(
                outs_of,
                [
                    as_value(x) if a is None else expand_dims(as_value(x), cast(int, a))
                    for x, a in zip(values, outs, strict=True)
                ],
            )

        specs = tuple(
            [
                PartitionSpec() if a is None else _at(cast(int, a) % x.ndim, name)
                for x, a in zip(arrays, axes, strict=True)
            ]
        )
        outs = tree.map(
            lambda a: PartitionSpec() if a is None else _at(a, name), out_axes, is_leaf=is_none
        )
        return shard_map(one, mesh=mesh, in_specs=specs, out_specs=outs, check_vma=False)(*arrays)

    return mapped


def _at(axis: int, name: str) -> PartitionSpec:
    """Return the specification that divides one axis."""
    return PartitionSpec(*[None] * axis, name)


def _check_size(name: str, devices: Sequence[Device] | None, backend: str | None) -> None:
    """Raise BadArgument unless there is a device for each element of the axis."""
    size = next(axis.size for axis in axes_in_scope() if axis.name == name)
    count = len(devices_of(backend) if devices is None else devices)
    if size > count or (devices is not None and size != count):
        raise BadArgument(
            f"pmap: the mapped axis has {size} elements, and there are {count} devices",
            expected=f"{'at most ' * (devices is None)}{count}",
            found=str(size),
            remedy="use `vmap`, which needs no devices, or `shard_map`; "
            "XLA_FLAGS=--xla_force_host_platform_device_count=N makes more CPU devices",
        )
