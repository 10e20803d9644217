"""NumPy's functions, with JAX's argument names, defaults, dtypes and promotion.

Arrays are immutable: what NumPy writes in place is a new array here (see ``Array.at``). Lists are
converted by :func:`array` only; references are read first (``ref[...]``).
"""

from __future__ import annotations

import builtins as _builtins

import numpy as _np

from effax.array import Array as _Array
from effax.numpy import fft as fft
from effax.numpy import linalg as linalg
from effax.numpy.arithmetic import *  # noqa: F403
from effax.numpy.comparison import *  # noqa: F403
from effax.numpy.convolution import *  # noqa: F403
from effax.numpy.creation import *  # noqa: F403
from effax.numpy.creation import asarray as _asarray
from effax.numpy.dtypes import *  # noqa: F403
from effax.numpy.dtypes import bool_ as _bool
from effax.numpy.dtypes import complexfloating as _complexfloating
from effax.numpy.dtypes import issubdtype as _issubdtype
from effax.numpy.dtypes import result_type as _result_type
from effax.numpy.einstein import *  # noqa: F403
from effax.numpy.index import *  # noqa: F403
from effax.numpy.join import *  # noqa: F403
from effax.numpy.lift import *  # noqa: F403
from effax.numpy.nanreduce import *  # noqa: F403
from effax.numpy.padding import *  # noqa: F403
from effax.numpy.products import *  # noqa: F403
from effax.numpy.reduce import *  # noqa: F403
from effax.numpy.shapes import *  # noqa: F403
from effax.numpy.sorting import *  # noqa: F403
from effax.numpy.special import *  # noqa: F403
from effax.numpy.ufuncs import *  # noqa: F403

bool = _bool
dtype = _np.dtype
ndarray = _Array
e = float(_np.e)
euler_gamma = float(_np.euler_gamma)
inf = float("inf")
nan = float("nan")
newaxis = None
pi = float(_np.pi)


def ndim(a: object) -> int:
    """The number of axes."""
    return len(shape(a))


def shape(a: object) -> tuple[int, ...]:
    """Sizes of the axes."""
    found = getattr(a, "shape", None)
    return tuple(_asarray(a).shape if found is None else found)


def size(a: object, axis: int | None = None) -> int:
    """The number of elements, or the size of an axis."""
    sizes = shape(a)
    return int(_np.prod(sizes, dtype=int)) if axis is None else sizes[axis]


def iscomplexobj(x: object) -> _builtins.bool:
    """Whether the dtype is a complex one."""
    return _issubdtype(_result_type(x), _complexfloating)


def isrealobj(x: object) -> _builtins.bool:
    """Whether the dtype is not a complex one."""
    return not iscomplexobj(x)


def isscalar(element: object) -> _builtins.bool:
    """Whether ``element`` is a number or an array without axes."""
    return _np.isscalar(element) or (isinstance(element, _Array) and not element.shape)
