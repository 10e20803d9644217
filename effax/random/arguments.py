"""Checks of the arguments that random functions share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar, cast

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.config import config
from effax.arrays.placed import on_device
from effax.arrays.promotion import default_dtype
from effax.ir.dtypes import DType, is_float, is_integer, promote
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import Shape, Unsharded
from effax.lax.elementwise import convert_element_type

F = TypeVar("F", bound=Callable[..., object])

SAMPLE: Final = {
    "key": "random key, or its words.",
    "shape": "shape of the result.",
    "dtype": "floating dtype, float32 by default.",
    "out_sharding": "sharding of the result.",
    "method": '"exact".',
}
"""Descriptions of the parameters that functions share."""


def placed(function: F) -> F:
    """Return a random function that places its result, by the parameter ``out_sharding``."""
    name = function.__name__

    @wraps(function)
    def sample(*args: object, out_sharding: object = None, **options: object) -> object:
        made = function(*args, **options)
        if out_sharding is None or isinstance(out_sharding, Unsharded):
            return made
        return on_device(cast(Array, made), out_sharding, name)

    return cast(F, sample)


def floating(dtype: DTypeLike | None, what: str) -> DType:
    """Return the floating dtype of samples, float32 by default. Raises IllTyped for another."""
    kind = default_dtype(dtype)
    if not is_float(kind) or kind.itemsize not in (2, 4, 8):
        raise IllTyped(
            f"dtype argument to `{what}` must be a float dtype",
            expected="a floating dtype of 16 bits or more",
            found=str(kind),
        )
    return kind


def integral(dtype: DTypeLike | None, what: str) -> DType:
    """Return the integer dtype of samples, int32 by default. Raises IllTyped for another."""
    kind = default_dtype(dtype, int)
    if not is_integer(kind):
        raise IllTyped(
            f"dtype argument to `{what}` must be an int dtype", "an integer dtype", str(kind)
        )
    return kind


def sample_shape(shape: ShapeLike | None, what: str, *parameters: ArrayLike) -> Shape:
    """Return the shape of samples: by default that to which the parameters broadcast.

    Raises IllTyped where the parameters do not broadcast to ``shape``.
    """
    shapes = [pr.shape_of(x) for x in parameters]
    if shape is None:
        return pr.broadcast_shapes(shapes, what)
    sizes = plain_shape(shape, what)
    if pr.broadcast_shapes([sizes, *shapes], what) != sizes:
        raise IllTyped(
            f"the parameters of {what} do not broadcast to its shape",
            expected=f"shapes that broadcast to {sizes}",
            found=", ".join(map(str, shapes)),
        )
    return sizes


def parameter(x: ArrayLike, dtype: DType, what: str) -> Array:
    """Return a parameter in the dtype of the samples. Raises IllTyped where it would lose digits.

    Parameters of another kind, such as integers, are converted.
    """
    kinds = [pr.operand_kind(x, f"a parameter of {what}"), (dtype, False)]
    if is_float(kinds[0][0]) and promote(kinds, config.enable_x64)[0] != dtype:
        raise IllTyped(
            f"a parameter of {what} has a dtype that {dtype} does not hold",
            expected=str(dtype),
            found=str(kinds[0][0]),
            remedy="pass `dtype=`, or convert the parameter",
        )
    return convert_element_type(x, dtype)


def chosen(value: str, choices: tuple[str, ...], what: str) -> str:
    """Return the value of a parameter of a few strings. Raises BadArgument for another."""
    if value not in choices:
        raise BadArgument(f"unknown {what}", " or ".join(map(repr, choices)), repr(value))
    return value
