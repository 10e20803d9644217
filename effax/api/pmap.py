"""One call of a function for each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, cast

from effax.api.devices import local_device_count
from effax.api.jit import jit
from effax.arrays.argument_checks import as_integer
from effax.arrays.batching import vmap
from effax.arrays.tracing import like
from effax.ir.errors import BadArgument
from effax.lax.parallel import axis_size as size_of_axis
from effax.lowering.xla import Device

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["pmap"]


def pmap(
    fun: Callable[P, R],
    axis_name: str | None = None,
    *,
    in_axes: int | Sequence[object] | None = 0,
    out_axes: object = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable[P, R]:
    """Run ``fun`` on each device, on slices of its arguments; the results get the axis.

    Args:
        fun: a function of trees of arrays.
        axis_name: the name of the axis of devices, for collectives such as ``lax.psum``.
        in_axes: the axes of the arguments, as for :func:`effax.vmap`.
        out_axes: the axes of the results.
        static_broadcasted_argnums: positions of arguments that are compared by value.
        devices: the devices; None means all.
        backend: the platform, as for :func:`effax.jit`.
        axis_size: the number of slices, needed where no argument has an axis.
        donate_argnums: positions of arguments whose memory the results may take.

    Raises:
        BadArgument: there are fewer devices than slices.
        IllTyped: an argument lacks the axis, or lengths differ.

    >>> effax.pmap(lambda x: x / effax.lax.psum(x, "i"), axis_name="i")(jnp.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    name = "<pmap>" if axis_name is None else axis_name
    given = static_broadcasted_argnums
    static = [given] if isinstance(given, int) else list(given)
    available = local_device_count(backend) if devices is None else len(devices)

    @like(fun)
    def mapped(*args: P.args, **kwargs: P.kwargs) -> R:
        fixed = {as_integer(i, "pmap: static_broadcasted_argnums") % len(args) for i in static}
        axes = in_axes
        if isinstance(axes, list | tuple):
            axes = [axis for i, axis in enumerate(axes) if i not in fixed]

        def on_device(*rest: object, **named: object) -> R:
            _check_count(size_of_axis(name), available)
            moving = iter(rest)
            whole = [x if i in fixed else next(moving) for i, x in enumerate(args)]
            return cast(Callable[..., R], fun)(*whole, **named)

        rest = [x for i, x in enumerate(args) if i not in fixed]
        return vmap(on_device, axes, out_axes, name, axis_size)(*rest, **kwargs)

    return jit(mapped, static_argnums=static, donate_argnums=donate_argnums, backend=backend)


def _check_count(slices: int, available: int) -> None:
    if slices > available:
        raise BadArgument(
            "pmap: there are fewer devices than slices",
            expected=f"at most {available}",
            found=str(slices),
            remedy="use `vmap`, which maps over any number of slices on one device",
        )
