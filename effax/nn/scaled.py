"""Products of numbers of few bits with a scale for each block.

Source: "OCP Microscaling Formats (MX) Specification", version 1.0 (2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import ml_dtypes
import numpy as np

from effax import lax
from effax import numpy as jnp
from effax.api.custom.decorators import custom_vjp
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.conversion import as_value
from effax.arrays.shapes import moveaxis
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import DotDimensionNumbers

__all__ = ["get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """Format of numbers that are rounded in blocks.

    Attributes:
        mode: name of the format.
        block_size: number of adjacent numbers with one scale.
        data_type: dtype of the numbers over their scale.
        scale_type: dtype of the scales.
        global_scale: a further scale of all numbers, or None.
        infer_only: whether there are no derivatives.
    """

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: Array | None = None
    infer_only: bool = False


_POWERS: Final = np.dtype(ml_dtypes.float8_e8m0fnu)
_FOUR_BITS: Final = np.dtype(ml_dtypes.float4_e2m1fn)

_FORMATS: Final = {
    "nvfp4": (16, _FOUR_BITS, np.dtype(ml_dtypes.float8_e4m3fn)),
    "mxfp8": (32, np.dtype(ml_dtypes.float8_e4m3fn), _POWERS),
    "mxfp4": (32, _FOUR_BITS, _POWERS),
}


def get_scaled_dot_general_config(mode: str, global_scale: Array | None = None) -> BlockScaleConfig:
    """Return a format of :func:`scaled_dot_general`.

    Args:
        mode: "nvfp4", "mxfp8" or "mxfp4".
        global_scale: a further scale of all numbers, for "nvfp4" only; 1 by default.

    Returns:
        Configuration.

    Raises:
        BadArgument: an unknown mode, or a scale for another one.

    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode not in _FORMATS or (global_scale is not None and mode != "nvfp4"):
        raise BadArgument(
            "unknown format of scaled numbers",
            expected="mxfp8, mxfp4, or nvfp4 with or without a global scale",
            found=mode if global_scale is None else f"{mode}, global_scale={global_scale!r:.40}",
        )
    if mode == "nvfp4" and global_scale is None:
        global_scale = jnp.ones(1, np.float32)
    return BlockScaleConfig(mode, *_FORMATS[mode], global_scale)


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Return the products of matrices, ``lhs @ rhs.mT``, whose blocks of elements have scales.

    Args:
        lhs: array (batch, m, k).
        rhs: array (batch, n, k).
        lhs_scales: array (batch, m, k / block).
        rhs_scales: array (batch, n, k / block).
        preferred_element_type: dtype of the result.

    Returns:
        Array (batch, m, n).

    Raises:
        IllTyped: shapes do not fit.

    >>> x, s = jnp.ones((1, 2, 4)), jnp.full((1, 2, 2), 0.5)
    >>> nn.scaled_matmul(x, x, s, s)
    Array([[[1., 1.],
            [1., 1.]]], dtype=float32)
    """
    x, y = as_value(lhs, "lhs of scaled_matmul"), as_value(rhs, "rhs of scaled_matmul")
    if x.ndim != 3 or y.ndim != 3:
        raise IllTyped("scaled_matmul takes three axes", "(batch, m, k)", f"{x.type}, {y.type}")
    return lax.scaled_dot(
        x,
        y,
        lhs_scale=lhs_scales,
        rhs_scale=rhs_scales,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=preferred_element_type,
    )


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """Contract two arrays, rounded in blocks along their contracted axis.

    Derivatives are those of the contraction of the rounded operands, with rounded cotangents.

    Args:
        lhs: left operand.
        rhs: right operand.
        dimension_numbers: as in :func:`effax.lax.dot_general`; one contracted axis.
        preferred_element_type: dtype of the result.
        configs: formats of lhs, rhs and cotangents, as :func:`get_scaled_dot_general_config`
            returns; None: nothing is rounded.
        implementation: ignored.

    Returns:
        Array of the axes of ``dot_general``.

    Raises:
        BadArgument: there are not three formats, or not one contracted axis.

    >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = jnp.array([[1.0, 1.1]])
    >>> nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
    Array([[2.265625]], dtype=float32)
    """
    x, y = as_value(lhs, "lhs of scaled_dot_general"), as_value(rhs, "rhs of scaled_dot_general")
    if configs is None:
        return lax.dot_general(x, y, dimension_numbers, None, preferred_element_type)
    (contracted, _) = dimension_numbers
    if len(configs) != 3 or any(len(axes) != 1 for axes in contracted):
        raise BadArgument(
            "scaled_dot_general takes three formats and contracts one axis",
            expected="configs of lhs, rhs and cotangents",
            found=f"{len(configs)} configs, contracted axes {contracted}",
        )
    left, right = [
        _straight(v, axes[0], config)
        for v, axes, config in zip((x, y), contracted, configs, strict=False)
    ]
    made = lax.dot_general(left, right, dimension_numbers, None, preferred_element_type)
    return _with_rounded_cotangents(made, configs[2])


def _straight(x: Array, axis: int, config: BlockScaleConfig) -> Array:
    """Return the rounded numbers, with the derivative of the numbers themselves."""
    return x + lax.stop_gradient(_rounded(x, axis, config) - x)


def _with_rounded_cotangents(y: Array, config: BlockScaleConfig) -> Array:
    if not y.ndim:
        return y

    @custom_vjp
    def identity(y: Array) -> Array:
        return y

    identity.defvjp(lambda y: (y, None), lambda _, ct: (_rounded(ct, -1, config),))
    return identity(y)


def _rounded(x: Array, axis: int, config: BlockScaleConfig) -> Array:
    """Return numbers as the format represents them, by blocks along an axis."""
    values = moveaxis(x, axis, -1).astype(np.float32)
    whole = 1 if config.global_scale is None else config.global_scale
    n, size = values.shape[-1], config.block_size
    padding = [(0, 0)] * (values.ndim - 1) + [(0, -n % size)]
    blocks = jnp.pad(values / whole, padding).reshape(*values.shape[:-1], -1, size)
    most = float(ml_dtypes.finfo(config.data_type).max)  # type: ignore[no-untyped-call]  # untyped
    scale = jnp.max(jnp.abs(blocks), -1, keepdims=True) / most
    if config.scale_type == _POWERS:
        scale = jnp.exp2(jnp.ceil(jnp.log2(jnp.where(scale == 0, 1, scale))))
    else:
        scale = scale.astype(config.scale_type).astype(np.float32)
        scale = jnp.where(scale == 0, 1, scale)
    part = jnp.clip(blocks / scale, -most, most)
    found = _of_four_bits(part) if config.data_type == _FOUR_BITS else _through(part, config)
    flat = (found * scale).reshape(*values.shape[:-1], -1)[..., :n] * whole
    return moveaxis(flat, -1, axis).astype(x.dtype)


def _through(x: Array, config: BlockScaleConfig) -> Array:
    # The barrier keeps the compiler from dropping the conversions.
    return lax.optimization_barrier(x.astype(config.data_type)).astype(np.float32)


def _of_four_bits(x: Array) -> Array:
    """Round to one bit of mantissa, in steps of at least 1/2."""
    size = jnp.maximum(jnp.abs(x), 1)
    step = jnp.exp2(jnp.floor(jnp.log2(size)) - 1)
    return jnp.round(x / step) * step
