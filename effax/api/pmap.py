"""``pmap``: map a callable over a leading axis, a batch element for each device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, ParamSpec, TypeVar, cast

from effax.api.devices import devices as devices_of
from effax.api.jit import JitFunction, jit
from effax.arrays.argument_checks import axis_name_of, check_callable, integers
from effax.arrays.batching import vmap
from effax.ir.errors import BadArgument
from effax.ir.scope import axes_in_scope
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

    The axis has at most as many elements as there are devices. The arrays are on the first device,
    which computes all elements; ``shard_map`` distributes a computation.

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

        batched = vmap(on_dynamic, axes, out_axes, name, axis_size)
        return batched(*dynamic, **kwargs)

    mapped.__name__ = getattr(fun, "__name__", type(fun).__name__)
    made = jit(mapped, static_argnums=static, donate_argnums=donate_argnums, backend=backend)
    return cast("JitFunction[P, R]", made)


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
