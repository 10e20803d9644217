"""Windows of arrays: as features, with a kernel each, and the shapes of results of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_shape
from effax.arrays.conversion import as_value
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims.conv import dilated
from effax.ir.types import Shape
from effax.lax import elementwise as el
from effax.lax.convolution import (
    Layouts,
    Padding,
    conv_dimension_numbers,
    conv_general_dilated,
    padtype_to_pads,
    transposed_pad,
)
from effax.lax.creation import broadcasted_iota
from effax.lax.reduce import dot_general

__all__ = [
    "conv_general_dilated_local", "conv_general_dilated_patches", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple",
    "reduce_window_shape_tuple",
]  # fmt: skip

_WINDOWS = {
    "lhs": "array of a batch, features and spatial axes.",
    "filter_shape": "sizes of the windows.",
    "window_strides": "distance of the windows per spatial axis.",
    "padding": '(low, high) per spatial axis; or "SAME", "SAME_LOWER", "VALID".',
    "lhs_dilation": "distance of adjacent elements of lhs, with zeros between.",
    "rhs_dilation": "distance of the elements of a window.",
    "dimension_numbers": "letters of the axes, as in :func:`conv_dimension_numbers`.",
    "precision": 'precision of the products: None, "high", "highest" or a ``lax.Precision``.',
    "preferred_element_type": "dtype of the result.",
    "lhs_shape": "shape of the left operand.",
    "rhs_shape": "shape of the kernel.",
}
"""Descriptions of the parameters that functions share."""


@shared_docs(_WINDOWS, "Array laid out as the result, with all elements of a window as features.")
def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Layouts = None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the windows that a convolution multiplies by its kernel, as features.

    The order of the features is: features of ``lhs``, then the axes of a window in the order of
    the kernel's.

    Raises:
        IllTyped: shapes do not fit.
        BadArgument: an unknown padding, or dimension numbers that do not fit.

    >>> lax.conv_general_dilated_patches(jnp.array([[[1.0, 2.0, 3.0]]]), (2,), (1,), "VALID")
    Array([[[1., 2.],
            [2., 3.]]], dtype=float32)
    """
    x = as_value(lhs, "the operand of conv_general_dilated_patches")
    window = plain_shape(filter_shape, "filter_shape")
    layout = conv_dimension_numbers(x.shape, (1, 1, *window), dimension_numbers)
    features, n = x.shape[layout.lhs_spec[1]], prod(window)
    # Each feature is convolved with kernels that have a single one.
    places = [broadcasted_iota("int32", (features, n, n), i) for i in (1, 2)]
    ones = el.convert_element_type(el.eq(*places), x.dtype)
    kernel = sh.reshape(ones, (features * n, 1, *window))
    return conv_general_dilated(
        x,
        sh.transpose(kernel, np.argsort(layout.rhs_spec).tolist()),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        layout,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@shared_docs(
    _WINDOWS,
    "Array laid out as the result of the convolution.",
    rhs="kernels: features in and window merged as one axis, sizes of the result in space.",
)
def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Layouts = None,
    precision: object = None,
) -> Array:
    """Return the convolution that has a kernel for each place of the result.

    Raises:
        IllTyped: shapes or dtypes do not fit.
        BadArgument: an unknown padding, or dimension numbers that do not fit.

    >>> x, kernels = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.ones((1, 2, 2))
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,))
    Array([[[3., 5.]]], dtype=float32)
    """
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    w = as_value(rhs, "the kernels of conv_general_dilated_local")
    _, of_kernel, out = conv_dimension_numbers(patches.shape, w.shape, dimension_numbers)
    space = range(patches.ndim - 2)
    batch = (tuple(out[2:]), tuple(of_kernel[2:]))
    # Axes of the product: space, batch, features out.
    made = dot_general(patches, w, (((out[1],), (of_kernel[1],)), batch), precision)
    order = [made.ndim - 2, made.ndim - 1, *space]
    return sh.transpose(made, [order[i] for i in np.argsort(out)])


def conv_general_permutations(
    dimension_numbers: tuple[str, str, str],
) -> tuple[tuple[int, ...], ...]:
    """Return the axes of the operands and of the result: batch, features, space.

    Raises BadArgument for letters that do not fit.

    >>> lax.conv_general_permutations(("NWC", "WIO", "NWC"))
    ((0, 2, 1), (2, 1, 0), (0, 2, 1))
    """
    shape = (1,) * len(dimension_numbers[0])
    return tuple(conv_dimension_numbers(shape, shape, dimension_numbers))


@shared_docs(_WINDOWS, "Shape of the result.")
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: tuple[str, str, str],
) -> Shape:
    """Return the shape of the result of a convolution.

    Raises:
        IllTyped: there is not one padding per spatial axis, or it is more negative than its size.

    >>> lax.conv_general_shape_tuple((1, 5, 3), (2, 3, 4), (1,), "VALID", ("NWC", "WIO", "NWC"))
    (1, 4, 4)
    """
    lhs, rhs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    made = conv_shape_tuple(
        [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs], window_strides, padding
    )
    return tuple(made[i] for i in np.argsort(out))


@shared_docs(
    _WINDOWS,
    "Shape of the result.",
    strides="distance of the windows.",
    pads='(low, high) per spatial axis; or "SAME", "SAME_LOWER", "VALID".',
    batch_group_count="number of groups of the batch.",
)
def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> Shape:
    """Return the shape of the result of a convolution of batch, features, space with O, I, space.

    Raises:
        IllTyped: there is not one padding per spatial axis, or it is more negative than its size.

    >>> lax.conv_shape_tuple((1, 3, 5), (4, 3, 2), (1,), "VALID")
    (1, 4, 4)
    """
    sizes, windows = lhs_shape[2:], rhs_shape[2:]
    if isinstance(pads, str):
        pads = padtype_to_pads(sizes, windows, strides, pads)
    if len(pads) != len(sizes) or any(n + p + q < 0 for n, (p, q) in zip(sizes, pads, strict=True)):
        raise IllTyped(
            "the padding of a convolution does not fit",
            expected=f"{len(sizes)} pairs, none of which removes more than there is",
            found=f"{pads}, for sizes {tuple(sizes)}",
        )
    return (
        lhs_shape[0] // batch_group_count,
        rhs_shape[0],
        *reduce_window_shape_tuple(sizes, windows, strides, pads),
    )


@shared_docs(_WINDOWS, "Shape of the result.")
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: tuple[str, str, str],
) -> Shape:
    """Return the shape of the result of :func:`conv_transpose`.

    Raises:
        BadArgument: an unknown padding.

    >>> numbers = ("NWC", "WIO", "NWC")
    >>> lax.conv_transpose_shape_tuple((1, 2, 1), (2, 1, 1), (2,), "VALID", numbers)
    (1, 4, 1)
    """
    lhs, rhs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    if isinstance(padding, str):
        windows = [rhs_shape[i] for i in rhs[2:]]
        padding = [
            transposed_pad(k, s, padding) for k, s in zip(windows, window_strides, strict=True)
        ]
    sizes = [dilated(lhs_shape[i], s) for i, s in zip(lhs[2:], window_strides, strict=True)]
    made = conv_shape_tuple(
        (lhs_shape[lhs[0]], 1, *sizes), [rhs_shape[i] for i in rhs], (1,) * len(sizes), padding
    )
    return tuple(made[i] for i in np.argsort(out))


@shared_docs(
    {},
    "Shape of the result.",
    operand_shape="shape of the operand.",
    window_dimensions="sizes of the windows.",
    window_strides="distance of the windows.",
    padding="(low, high) per axis.",
    base_dilation="distance of adjacent elements of the operand, 1 by default.",
    window_dilation="distance of the elements of a window, 1 by default.",
)
def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """Return the shape of the result of :func:`reduce_window`.

    Raises:
        BadArgument: there is not one number per axis.

    >>> lax.reduce_window_shape_tuple((5,), (2,), (2,), [(0, 1)])
    (3,)
    """
    ones = (1,) * len(operand_shape)
    given = (
        window_dimensions,
        window_strides,
        padding,
        base_dilation or ones,
        window_dilation or ones,
    )
    if any(len(numbers) != len(ones) for numbers in given):
        raise BadArgument("windows take one number per axis", f"{len(ones)} each", f"{given}")
    return tuple(
        max(0, (dilated(n, a) + low + high - dilated(k, b)) // stride + 1)
        for n, k, stride, (low, high), a, b in zip(operand_shape, *given, strict=True)
    )
