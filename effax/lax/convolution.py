"""Convolutions, under JAX's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.device_array import Array, ArrayLike, DTypeLike, as_value
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import ConvGeneralDilated
from effax.ir.prims.conv import Pairs, dilated
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.numpy import shapes as sh
from effax.numpy.axes import static_int
from effax.numpy.products import plain_precision

__all__ = [
    "ConvDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated",
    "conv_transpose", "conv_with_general_padding", "padtype_to_pads",
]  # fmt: skip


class ConvDimensionNumbers(NamedTuple):
    """Which axis is which.

    (batch, features, space...) of lhs and of the result; (features out, features in, space...) of
    rhs.
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


Layouts = ConvDimensionNumbers | tuple[str, str, str] | None
Padding = str | Sequence[tuple[int, int]]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Layouts
) -> ConvDimensionNumbers:
    """Which axis is which.

    Args:
        lhs_shape: the shape of lhs.
        rhs_shape: the shape of rhs.
        dimension_numbers: letters of the axes of lhs, rhs and the result, such as
            ``("NHWC", "HWIO", "NHWC")``: N the batch, C features, O features out, I features in,
            others are space, in the order of rhs. None: batch, features, space; O, I, space.

    Raises:
        BadArgument: letters are missing, or do not fit the shapes.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    n = len(lhs_shape)
    if dimension_numbers is None:
        plain = tuple(range(n))
        return ConvDimensionNumbers(plain, plain, plain)
    lhs, rhs, out = dimension_numbers
    space = [c for c in rhs if c not in "OI"]
    fits = all(
        sorted(letters) == sorted((*kinds, *space)) and len(letters) == n
        for letters, kinds in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    )
    if not fits or len(rhs_shape) != n:
        raise BadArgument(
            "dimension_numbers name the axes of lhs, rhs and the result",
            expected=f"{n} letters each, as in ('NHWC', 'HWIO', 'NHWC')",
            found=f"{dimension_numbers}, for shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}",
        )
    specs = [
        tuple(letters.index(c) for c in (*kinds, *space))
        for letters, kinds in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    ]
    return ConvDimensionNumbers(*specs)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """The padding that a name stands for.

    "VALID": none. "SAME": as many windows as strides fit, an odd element at the end;
    "SAME_LOWER": at the beginning.
    """
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise BadArgument("there is no such padding", "SAME, SAME_LOWER or VALID", repr(padding))
    pads = []
    for n, k, stride in zip(in_shape, window_shape, window_strides, strict=True):
        count = -(-n // stride)
        total = max(0, (count - 1) * stride + k - n)
        less = total // 2
        pads.append((less, total - less) if name == "SAME" else (total - less, less))
    return pads


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Layouts = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums of products of windows of ``lhs`` with ``rhs`` (which is not turned around).

    Args:
        lhs: the array, of one dtype with ``rhs``.
        rhs: the windows' factors.
        window_strides: how far apart windows are, along each axis of space.
        padding: (low, high) an axis of space, negative ones crop; or a name: SAME, SAME_LOWER,
            VALID.
        lhs_dilation: how far apart neighbours of lhs are put, with zeros between.
        rhs_dilation: how far apart the elements of a window are.
        dimension_numbers: as for :func:`conv_dimension_numbers`.
        feature_group_count: in how many groups features are convolved, each by itself.
        batch_group_count: in how many groups the batch is, each with features out of its own.
        precision: as for ``dot_general``.
        preferred_element_type: the dtype of the result.

    Raises:
        IllTyped: shapes, dtypes or groups do not fit.
        BadArgument: an unknown padding, or dimension numbers that do not fit.
    """
    x, w = as_value(lhs, "the left operand"), as_value(rhs, "the right operand")
    layout = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    x, w = sh.transpose(x, layout.lhs_spec), sh.transpose(w, layout.rhs_spec)
    strides = _ints(window_strides, "a stride")
    ones = (1,) * len(strides)
    a = ones if lhs_dilation is None else _ints(lhs_dilation, "a dilation of lhs")
    b = ones if rhs_dilation is None else _ints(rhs_dilation, "a dilation of rhs")
    groups = static_int(feature_group_count, "feature_group_count")
    batches = static_int(batch_group_count, "batch_group_count")
    if batches != 1:
        if groups != 1 or batches < 1 or x.shape[0] % batches or w.shape[0] % batches:
            raise IllTyped(
                "groups of the batch do not fit",
                expected=f"a batch and features out that {batches} divides, one group of features",
                found=f"{x.type}, {w.type}, feature_group_count={groups}",
            )
        # Each group of the batch as a group of features gives the same.
        x, groups = _batch_groups_as_features(x, batches), batches
    pads = _pads(padding, x.shape, w.shape, strides, a, b)
    wanted = None if preferred_element_type is None else allowed(preferred_element_type)
    prim = ConvGeneralDilated(strides, pads, a, b, groups, plain_precision(precision), wanted)
    return sh.transpose(_applied(prim, x, w), np.argsort(layout.out_spec).tolist())


def _ints(values: Sequence[int], what: str) -> tuple[int, ...]:
    return tuple(static_int(v, what) for v in values)


def _pads(
    padding: Padding,
    lhs: Shape,
    rhs: Shape,
    strides: tuple[int, ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
) -> Pairs:
    if not isinstance(padding, str):
        return tuple((static_int(p, "padding"), static_int(q, "padding")) for p, q in padding)
    sizes = [dilated(n, a) for n, a in zip(lhs[2:], lhs_dilation, strict=True)]
    windows = [dilated(k, b) for k, b in zip(rhs[2:], rhs_dilation, strict=True)]
    return tuple(padtype_to_pads(sizes, windows, strides, padding))


def _batch_groups_as_features(x: Array, groups: int) -> Array:
    batch, features, *space = x.shape
    apart = sh.reshape(x, (groups, batch // groups, features, *space))
    return sh.reshape(sh.moveaxis(apart, 0, 1), (batch // groups, groups * features, *space))


def _applied(prim: ConvGeneralDilated, x: Array, w: Array) -> Array:
    """The convolution; of complex operands, that of their parts."""
    if not is_complex(x.dtype) or x.dtype != w.dtype:
        return bind1(prim, x, w)
    (a, b), (c, d) = ((el.real(v), el.imag(v)) for v in (x, w))
    real = el.sub(bind1(prim, a, c), bind1(prim, b, d))
    return el.complex(real, el.add(bind1(prim, a, d), bind1(prim, b, c)))


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """:func:`conv_general_dilated` without dilation, with batch and features first."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """:func:`conv_general_dilated` with batch and features first."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Layouts = None,
    transpose_kernel: bool = False,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution with neighbours of lhs ``strides`` apart: a "deconvolution".

    Args:
        lhs: the array.
        rhs: the windows' factors.
        strides: how far apart neighbours of lhs are put.
        padding: (low, high) an axis of space, or SAME or VALID of the convolution of which this is
            the transpose.
        rhs_dilation: how far apart the elements of a window are.
        dimension_numbers: as for :func:`conv_dimension_numbers`; None means features last
            (``("NHC", "HIO", "NHC")``, ``("NHWC", "HWIO", "NHWC")``, ...).
        transpose_kernel: whether rhs is turned around and its features change places, so that this
            is the transpose of the convolution with rhs.
        precision: as for ``dot_general``.
        preferred_element_type: the dtype of the result.
    """
    x, w = as_value(lhs, "the left operand"), as_value(rhs, "the right operand")
    if dimension_numbers is None:
        space = "HWD"[: x.ndim - 2]
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    layout = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    by = _ints(strides, "a stride")
    ones = (1,) * len(by)
    b = ones if rhs_dilation is None else _ints(rhs_dilation, "a dilation of rhs")
    if isinstance(padding, str):
        windows = [dilated(w.shape[i], d) for i, d in zip(layout.rhs_spec[2:], b, strict=True)]
        padding = [_transposed_pad(k, s, padding) for k, s in zip(windows, by, strict=True)]
    if transpose_kernel:
        w = sh.swapaxes(sh.flip(w, tuple(layout.rhs_spec[2:])), *layout.rhs_spec[:2])
    return conv_general_dilated(
        x,
        w,
        ones,
        padding,
        by,
        b,
        layout,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transposed_pad(window: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding for which the result is what a convolution with ``padding`` would take."""
    if padding.upper() == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding.upper() == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise BadArgument("there is no such padding", "SAME or VALID", repr(padding))
    return low, total - low
