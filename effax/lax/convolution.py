"""Convolutions, by JAX's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import static_int
from effax.arrays.binding import bind1
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import ConvGeneralDilated
from effax.ir.prims.conv import Pairs, dilated
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.precision import plain_precision

__all__ = [
    "ConvDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated",
    "conv_transpose", "conv_with_general_padding", "padtype_to_pads",
]  # fmt: skip


class ConvDimensionNumbers(NamedTuple):
    """Axes of the operands and of the result.

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
    """Return the axes of a convolution from letters.

    Args:
        lhs_shape: shape of the left operand.
        rhs_shape: shape of the right operand.
        dimension_numbers: letters of the axes of lhs, rhs and the result, such as ``("NHWC",
            "HWIO", "NHWC")``: N the batch, C features, O features out, I features in, others space.
            None: batch, features, space; O, I, space.

    Returns:
        ConvDimensionNumbers.

    Raises:
        BadArgument: letters are missing, or do not fit the shapes.

    >>> lax.conv_dimension_numbers((1, 4, 3), (2, 3, 5), ("NWC", "WIO", "NWC")).lhs_spec
    (0, 2, 1)
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
            "dimension_numbers must name the axes of lhs, rhs and the result",
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
    """Return the padding that a name denotes.

    Args:
        in_shape: spatial sizes of the input.
        window_shape: sizes of the windows.
        window_strides: distance of the windows.
        padding: "VALID" for none; "SAME" for ceil(size / stride) windows, an odd element at the
            end, with "SAME_LOWER" at the start.

    Returns:
        List of (low, high) per axis.

    Raises:
        BadArgument: an unknown name.

    >>> lax.padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    """
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise BadArgument("unknown padding", "SAME, SAME_LOWER or VALID", repr(padding))
    pads = []
    for n, k, stride in zip(in_shape, window_shape, window_strides, strict=True):
        count = -(-n // stride)
        total = max(0, (count - 1) * stride + k - n)
        less = total // 2
        both = (less, total - less) if name == "SAME" else (total - less, less)
        pads.append((int(both[0]), int(both[1])))
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
    out_sharding: object = None,
) -> Array:
    """Return sums of products of windows of ``lhs`` with ``rhs``, as StableHLO's ``convolution``.

    Args:
        lhs: array of the dtype of ``rhs``.
        rhs: kernel.
        window_strides: distance of the windows per spatial axis.
        padding: (low, high) per spatial axis, negative ones crop; or "SAME", "SAME_LOWER", "VALID".
        lhs_dilation: distance of adjacent elements of lhs, with zeros between.
        rhs_dilation: distance of the elements of a window.
        dimension_numbers: as in :func:`conv_dimension_numbers`.
        feature_group_count: number of groups of features, convolved separately.
        batch_group_count: number of groups of the batch, each with its own output features.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.
        out_sharding: sharding of the result.

    Returns:
        Array laid out as ``dimension_numbers`` states.

    Raises:
        IllTyped: shapes, dtypes or groups do not fit.
        BadArgument: an unknown padding, or dimension numbers that do not fit.

    >>> lax.conv_general_dilated(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[2., 2.]]], dtype=float32)
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
        # Groups of the batch are equivalent to groups of features.
        x, groups = _batch_groups_as_features(x, batches), batches
    pads = _pads(padding, x.shape, w.shape, strides, a, b)
    wanted = None if preferred_element_type is None else allowed(preferred_element_type)
    prim = ConvGeneralDilated(strides, pads, a, b, groups, plain_precision(precision), wanted)
    made = sh.transpose(_applied(prim, x, w), np.argsort(layout.out_spec).tolist())
    return on_device(made, out_sharding, "conv_general_dilated")


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
        if any(np.shape(pair) != (2,) for pair in padding):
            raise BadArgument("padding has a pair per axis", "(low, high) pairs", f"{padding}")
        return tuple((static_int(p, "padding"), static_int(q, "padding")) for p, q in padding)
    sizes = [dilated(n, a) for n, a in zip(lhs[2:], lhs_dilation, strict=True)]
    windows = [dilated(k, b) for k, b in zip(rhs[2:], rhs_dilation, strict=True)]
    return tuple(padtype_to_pads(sizes, windows, strides, padding))


def _batch_groups_as_features(x: Array, groups: int) -> Array:
    batch, features, *space = x.shape
    apart = sh.reshape(x, (groups, batch // groups, features, *space))
    return sh.reshape(sh.moveaxis(apart, 0, 1), (batch // groups, groups * features, *space))


def _applied(prim: ConvGeneralDilated, x: Array, w: Array) -> Array:
    """Apply the convolution; to complex operands by parts."""
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
    """Apply :func:`conv_general_dilated` without dilation, with batch and features first.

    Args:
        lhs: array of shape (batch, features, space...).
        rhs: kernel of shape (features out, features in, space...).
        window_strides: distance of the windows per spatial axis.
        padding: as in :func:`conv_general_dilated`.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        Array of shape (batch, features out, space...).

    Raises:
        IllTyped: shapes or dtypes do not fit.

    >>> lax.conv(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), "SAME")
    Array([[[2., 2., 1.]]], dtype=float32)
    """
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
    """Apply :func:`conv_general_dilated` with batch and features first.

    Args:
        lhs: array of shape (batch, features, space...).
        rhs: kernel of shape (features out, features in, space...).
        window_strides: distance of the windows per spatial axis.
        padding: as in :func:`conv_general_dilated`.
        lhs_dilation: distance of adjacent elements of lhs, with zeros between.
        rhs_dilation: distance of the elements of a window.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.

    Returns:
        Array of shape (batch, features out, space...).

    Raises:
        IllTyped: shapes or dtypes do not fit.

    >>> lax.conv_with_general_padding(x := jnp.ones((1, 1, 2)), x, (1,), "VALID", None, None)
    Array([[[2.]]], dtype=float32)
    """
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
    use_consistent_padding: bool = False,
) -> Array:
    """Return the transposed convolution, with elements of lhs ``strides`` apart.

    Args:
        lhs: array.
        rhs: kernel.
        strides: distance of adjacent elements of lhs, with zeros between.
        padding: (low, high) per spatial axis, or the "SAME" or "VALID" of the convolution
            transposed.
        rhs_dilation: distance of the elements of a window.
        dimension_numbers: as in :func:`conv_dimension_numbers`; None means features last, as in
            ``("NHWC", "HWIO", "NHWC")``.
        transpose_kernel: whether to reverse rhs in space and exchange its features, for the exact
            transpose of the convolution with rhs.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.
        use_consistent_padding: whether (low, high) is the padding of the convolution transposed,
            as "SAME" is, and not that of the elements of lhs.

    Returns:
        Array laid out as ``dimension_numbers`` states.

    Raises:
        IllTyped: shapes or dtypes do not fit.
        BadArgument: an unknown padding.

    >>> lax.conv_transpose(jnp.ones((1, 2, 1)), jnp.ones((2, 1, 1)), (2,), "VALID").shape
    (1, 4, 1)
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
        padding = [transposed_pad(k, s, padding) for k, s in zip(windows, by, strict=True)]
    elif use_consistent_padding:
        windows = [dilated(w.shape[i], d) for i, d in zip(layout.rhs_spec[2:], b, strict=True)]
        padding = [(k - 1 - p, k - 1 - q) for k, (p, q) in zip(windows, padding, strict=True)]
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


def transposed_pad(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the padding whose result has the input size of a convolution with ``padding``."""
    if padding.upper() == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding.upper() == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise BadArgument("unknown padding", "SAME or VALID", repr(padding))
    return low, total - low
