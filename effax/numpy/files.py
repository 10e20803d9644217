"""Arrays in files, buffers and texts, in NumPy's formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any

import numpy as np

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.conversion import as_value
from effax.arrays.creation import asarray
from effax.arrays.promotion import default_dtype
from effax.ir.dtypes import as_dtype
from effax.ir.errors import BadArgument
from effax.numpy.positions import indices

__all__ = [
    "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "load", "save", "savez",
]  # fmt: skip

File = IO[bytes] | str | os.PathLike[str]
"""A path, or a file that is open."""


def _host(x: ArrayLike) -> np.ndarray:
    return as_value(x, "an array to save").numpy()


def save(file: File, arr: ArrayLike, allow_pickle: bool = False) -> None:
    """Write an array to a file in NumPy's format ``.npy``.

    Args:
        file: path, to which ``.npy`` is added if it lacks it, or open file.
        arr: array of known value.
        allow_pickle: no effect: arrays of numbers need no pickle.

    Raises:
        ConcretizationError: the array is traced.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jnp.save(os.path.join(folder, "x.npy"), jnp.array([1, 2]))
    ...     print(jnp.load(os.path.join(folder, "x.npy")))
    [1 2]
    """
    np.save(file, _host(arr), allow_pickle=False)


def savez(file: File, *args: ArrayLike, allow_pickle: bool = False, **kwds: ArrayLike) -> None:
    """Write arrays to a file in NumPy's format ``.npz``.

    Args:
        file: path, to which ``.npz`` is added if it lacks it, or open file.
        *args: arrays, named ``arr_0``, ``arr_1``, ...
        allow_pickle: no effect: arrays of numbers need no pickle.
        **kwds: arrays by name.

    Raises:
        ConcretizationError: an array is traced.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jnp.savez(os.path.join(folder, "x.npz"), w=jnp.array([1, 2]))
    ...     print(jnp.load(os.path.join(folder, "x.npz"))["w"])
    [1 2]
    """
    arrays = {name: _host(x) for name, x in kwds.items()}
    np.savez(file, *map(_host, args), allow_pickle=False, **arrays)


def load(file: File, *, allow_pickle: bool = False) -> Array | dict[str, Array]:
    """Read an array, or a dictionary of arrays, from a file in NumPy's format.

    Dtypes that NumPy lacks, such as bfloat16, come back from ``.npy`` files as they were saved.

    Args:
        file: path or open file.
        allow_pickle: whether objects in a file are unpickled, which may run any code; they are
            refused as arrays all the same.

    Returns:
        Array of a file ``.npy``; dictionary of the arrays of a file ``.npz``.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.array([0.5]))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0.5], dtype=float32)
    """
    found = np.load(file, allow_pickle=allow_pickle)
    if isinstance(found, np.ndarray):
        return _array(found)
    with found:
        return {name: _array(found[name]) for name in found.files}


def _array(found: np.ndarray) -> Array:
    if found.dtype.kind == "V" and found.dtype.itemsize == 2:
        # NumPy writes bfloat16 as two bytes without a name.
        found = found.view(as_dtype("bfloat16"))
    return asarray(found)


def _host_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    return np.dtype(default_dtype(dtype))


def frombuffer(
    buffer: bytes | bytearray | memoryview | np.ndarray,
    dtype: DTypeLike = float,
    count: int = -1,
    offset: int = 0,
) -> Array:
    r"""Return a vector of the elements of a buffer of bytes.

    Args:
        buffer: bytes, or an object with the buffer protocol.
        dtype: dtype of the elements.
        count: number of elements; all by default.
        offset: number of bytes before the first one.

    Returns:
        Vector.

    >>> jnp.frombuffer(b"\x01\x02", dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, _host_dtype(dtype), count, offset).copy())


def fromfile(
    file: File, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0
) -> Array:
    r"""Return a vector of the elements of a binary file, or of a text file.

    Args:
        file: path or open file.
        dtype: dtype of the elements.
        count: number of elements; all by default.
        sep: what separates elements of a text; "" for a binary file.
        offset: number of bytes before the first one.

    Returns:
        Vector.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, "x"), "wb") as file:
    ...         _ = file.write(b"\x01\x02")
    ...     jnp.fromfile(os.path.join(folder, "x"), jnp.uint8)
    Array([1, 2], dtype=uint8)
    """
    return asarray(np.fromfile(file, _host_dtype(dtype), count, sep, offset))


def fromiter(iterable: Iterable[complex], dtype: DTypeLike, count: int = -1) -> Array:
    """Return a vector of the numbers of an iterable.

    Args:
        iterable: numbers.
        dtype: dtype of the elements.
        count: number of elements; all by default.

    Returns:
        Vector.

    >>> jnp.fromiter((n * n for n in range(3)), int)
    Array([0, 1, 4], dtype=int32)
    """
    return asarray(np.fromiter(iterable, _host_dtype(dtype), count))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Return a vector of the numbers of a text.

    Args:
        string: text.
        dtype: dtype of the elements.
        count: number of elements; all by default.
        sep: what separates them.

    Returns:
        Vector.

    Raises:
        BadArgument: there is no separator.

    >>> jnp.fromstring("1, 2", int, sep=",")
    Array([1, 2], dtype=int32)
    """
    if not sep:
        raise BadArgument("fromstring reads text", "a separator", "''", "use frombuffer for bytes")
    return asarray(np.fromstring(string, _host_dtype(dtype), count, sep=sep))


def fromfunction(
    function: Callable[..., ArrayLike],
    shape: Sequence[int],
    *,
    dtype: DTypeLike = float,
    **kwargs: object,
) -> Array:
    """Return the values of a function on the positions of a grid.

    Args:
        function: function of an array of indices for each axis.
        shape: sizes of the grid.
        dtype: dtype of the indices.
        **kwargs: further arguments of the function.

    Returns:
        What the function returns, as an array.

    >>> jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    return as_value(function(*indices(shape, dtype=default_dtype(dtype)), **kwargs))
