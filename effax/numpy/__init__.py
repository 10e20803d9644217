"""NumPy's functions, with JAX's argument names, defaults, dtypes and promotion.

Arrays are immutable: updates return new arrays (see ``Array.at``). Lists are converted by
:func:`array` only; references are read first (``ref[...]``). All functions raise IllTyped for
operands that are not arrays or numbers, and where dtypes do not promote or shapes do not broadcast;
and BadArgument for axes out of range.
"""

from __future__ import annotations

import builtins as _builtins
from typing import Final as _Final

import numpy as _np

from effax.arrays.array import Array as _Array
from effax.arrays.shapes import *
from effax.numpy import fft as fft
from effax.numpy import linalg as linalg
from effax.numpy import methods as _methods  # noqa: F401  it installs the methods of arrays
from effax.numpy.arithmetic import *
from effax.numpy.comparison import *
from effax.numpy.convolution import *
from effax.numpy.creation import *
from effax.numpy.creation import asarray as _asarray
from effax.numpy.diagonals import *
from effax.numpy.dtypes import *
from effax.numpy.dtypes import ScalarType as _ScalarType
from effax.numpy.dtypes import bool_ as _bool
from effax.numpy.dtypes import complexfloating as _complexfloating
from effax.numpy.dtypes import issubdtype as _issubdtype
from effax.numpy.dtypes import result_type as _result_type
from effax.numpy.einstein import *
from effax.numpy.index import *
from effax.numpy.join import *
from effax.numpy.lift import *
from effax.numpy.nanreduce import *
from effax.numpy.padding import *
from effax.numpy.positions import *
from effax.numpy.predicates import *
from effax.numpy.products import *
from effax.numpy.quantiles import *
from effax.numpy.ranges import *
from effax.numpy.reduce import *
from effax.numpy.sorting import *
from effax.numpy.special import *
from effax.numpy.statistics import *
from effax.numpy.tensor_products import *
from effax.numpy.ufuncs import *

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "around",
    "array",
    "array_equal",
    "array_equiv",
    "array_split",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "cbrt",
    "cdouble",
    "ceil",
    "clip",
    "column_stack",
    "complex64",
    "complex128",
    "complex_",
    "complexfloating",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "convolve",
    "copy",
    "copysign",
    "correlate",
    "cos",
    "cosh",
    "count_nonzero",
    "cross",
    "csingle",
    "cumprod",
    "cumsum",
    "deg2rad",
    "degrees",
    "diag",
    "diag_indices",
    "diagflat",
    "diagonal",
    "diff",
    "digitize",
    "divide",
    "divmod",
    "dot",
    "double",
    "dstack",
    "dtype",
    "e",
    "einsum",
    "einsum_path",
    "empty",
    "empty_like",
    "equal",
    "euler_gamma",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "extract",
    "eye",
    "fabs",
    "fft",
    "finfo",
    "fix",
    "flatnonzero",
    "flip",
    "fliplr",
    "flipud",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "float_",
    "float_power",
    "floating",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "full",
    "full_like",
    "gcd",
    "generic",
    "greater",
    "greater_equal",
    "heaviside",
    "hsplit",
    "hstack",
    "hypot",
    "identity",
    "iinfo",
    "imag",
    "indices",
    "inexact",
    "inf",
    "inner",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "integer",
    "interp",
    "invert",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "ix_",
    "kron",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "lexsort",
    "linalg",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "matmul",
    "matrix_transpose",
    "matvec",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "modf",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "ndarray",
    "ndim",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "number",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "power",
    "prod",
    "promote_types",
    "ptp",
    "quantile",
    "rad2deg",
    "radians",
    "ravel",
    "ravel_multi_index",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "right_shift",
    "rint",
    "roll",
    "rot90",
    "round",
    "searchsorted",
    "select",
    "shape",
    "sign",
    "signbit",
    "signedinteger",
    "sin",
    "sinc",
    "single",
    "sinh",
    "size",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "tri",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "uint",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique",
    "unravel_index",
    "unsignedinteger",
    "unstack",
    "var",
    "vdot",
    "vecdot",
    "vecmat",
    "vectorize",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

bool: _Final[_ScalarType] = _bool
dtype = _np.dtype
ndarray = _Array
e: _Final[float] = _np.e
euler_gamma: _Final[float] = _np.euler_gamma
inf: _Final[float] = _np.inf
nan: _Final[float] = _np.nan
newaxis: _Final[None] = None
pi: _Final[float] = _np.pi


def ndim(a: object) -> int:
    """Return the number of axes of ``a``.

    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    return len(shape(a))


def shape(a: object) -> tuple[int, ...]:
    """Return the sizes of the axes of ``a``.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    found = getattr(a, "shape", None)
    return tuple(_asarray(a).shape if found is None else found)


def size(a: object, axis: int | None = None) -> int:
    """Return the number of elements of ``a``, or its size along an axis.

    Args:
        a: array or scalar.
        axis: axis; None for the number of elements.

    Returns:
        Python int.

    >>> jnp.size(jnp.ones((2, 3)))
    6
    """
    sizes = shape(a)
    return int(_np.prod(sizes, dtype=int)) if axis is None else sizes[axis]


def iscomplexobj(x: object) -> _builtins.bool:
    """Return whether the dtype of ``x`` is complex.

    >>> jnp.iscomplexobj(jnp.array([1j]))
    True
    """
    return _issubdtype(_result_type(x), _complexfloating)


def isrealobj(x: object) -> _builtins.bool:
    """Return whether the dtype of ``x`` is not complex.

    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: object) -> _builtins.bool:
    """Return whether ``element`` is a number or an array without axes.

    >>> jnp.isscalar(jnp.array(1.0))
    True
    """
    return _np.isscalar(element) or (isinstance(element, _Array) and not element.shape)
