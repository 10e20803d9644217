"""Transfer arrays between NumPy and the device: put, view, write in place, DLPack."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from effax.ir.dtypes import FLOAT0, UINT8, as_key_dtype, unsigned_of_subbyte
from effax.ir.errors import BadArgument, LoweringError
from effax.ir.key_dtype import records_of, words_of
from effax.ir.types import ArrayType, array_type
from effax.lowering.xla import dlpack
from effax.lowering.xla.backend import Buffer, backend, new_aval

ALIGNMENT: Final = 64
"""The alignment in bytes that XLA requires of memory that it shares."""


class SupportsDLPack(Protocol):
    """An array of any library that can export its memory."""

    def __dlpack__(self) -> object:
        """Return a capsule that owns the memory."""
        ...

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's numbers for the kind of the device and for the device."""
        ...


def put(value: np.ndarray | np.generic, weak: bool = False, copy: bool | None = None) -> Buffer:
    """Return a buffer with the contents of ``value``, in its dtype, 64-bit dtypes included.

    Args:
        value: any layout and byte order; a buffer is contiguous and in native order.
        weak: whether the buffer's dtype is weak.
        copy: True for memory that XLA owns; False to share the memory of ``value``; None to share
            it if it is contiguous and aligned to 64 bytes, else to copy. Shared memory must not be
            written while the buffer is alive; copied memory may, as soon as this returns.

    Raises:
        IllTyped: arrays do not support the dtype.
        LoweringError: buffers do not support the dtype, of floats narrower than a byte.
        BadArgument: ``copy`` is False and the memory cannot be shared.
    """
    xla = backend()
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype.kind == "V":
        array = in_buffer(array)
    if copy is False:
        _check_shareable(array)
    aval = xla.avals.get((array.shape, array.dtype, weak))
    if aval is None:
        # XLA would not swap the bytes.
        if not array.dtype.isnative:
            return put(array.astype(array.dtype.newbyteorder("=")), weak, copy)
        aval = new_aval(array_type(array.shape, array.dtype, weak))
    made = xla.device_put(
        aval, xla.sharding, [array], xla.placement, False, copy is True, xla.zero_copy, True
    )
    # Memory that cannot be shared is copied, by jaxlib 0.10 in the background.
    made.block_until_ready()
    return made


def _check_shareable(array: np.ndarray) -> None:
    reasons = {
        "its elements are not contiguous": not array.flags.c_contiguous,
        f"its address is not a multiple of {ALIGNMENT}": array.ctypes.data % ALIGNMENT != 0,
        "its bytes are not in native order": not array.dtype.isnative,
    }
    found = [reason for reason, holds in reasons.items() if holds]
    if found:
        raise BadArgument(
            "the memory of this array cannot be shared with a buffer",
            expected=f"contiguous memory, aligned to {ALIGNMENT} bytes",
            found=", ".join(found),
            remedy="pass copy=None, which copies if necessary",
        )


def new_ref_buffer(value: np.ndarray | np.generic) -> Buffer:
    """Return a buffer that XLA owns with a copy of ``value``, for repeated donation.

    Its address stays the same through every donation, as long as no view of it is alive.
    """
    return put(value, copy=True)


def buffer_array_type(buffer: Buffer) -> ArrayType:
    """Return the type of the buffer's array."""
    return buffer.aval.array_type


def to_numpy(buffer: Buffer) -> np.ndarray:
    """Return a read-only view, without a copy, after the buffer is written.

    A view keeps the buffer's memory alive; donating the buffer meanwhile makes XLA copy it.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    try:
        if buffer.aval.has_buffer_protocol:
            return np.asarray(memoryview(buffer))
        view = dlpack.as_numpy(backend().capsule(buffer))
    except (BufferError, RuntimeError) as error:
        raise unreadable(buffer, error=error) from error
    view.flags.writeable = False
    return view


def in_buffer(array: np.ndarray) -> np.ndarray:
    """Return the contents of the buffer of an array, a view: words of keys, bytes of int4."""
    dtype = array.dtype
    if unsigned_of_subbyte(dtype) is not None:
        return array.view(UINT8)
    if dtype.names is None:
        return array
    key = as_key_dtype(dtype)
    return np.zeros(array.shape, np.bool_) if key is None else words_of(array, key)


def buffer_contents(view: np.ndarray, type_: ArrayType) -> np.ndarray:
    """Return the array of a type whose buffer has this view: keys of words, one value of float0."""
    dtype = type_.dtype
    if dtype.kind != "V":
        return view
    if unsigned_of_subbyte(dtype) is not None:
        return view.view(dtype)
    key = as_key_dtype(dtype)
    if key is not None:
        return records_of(view, key)
    return np.zeros(type_.shape, FLOAT0) if dtype == FLOAT0 else view


def pointer(buffer: Buffer) -> int:
    """Return the address of the buffer's memory, after the buffer is written.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    # jaxlib's `unsafe_buffer_pointer` would import jax. The capsule is freed here, so no reference
    # to the memory is left that would make a donation copy.
    try:
        return dlpack.data_pointer(backend().capsule(buffer))
    except (BufferError, RuntimeError) as error:
        raise unreadable(buffer, error=error) from error


def raw_view(buffer: Buffer) -> np.ndarray:
    """Return a *writable* array over the buffer's memory, after the buffer is written.

    It has no reference to the buffer: donation does not copy, and the view then shows the memory
    of the result that replaced it. The caller must ensure that

    - a buffer with this address outlives the view, or the view is no longer used;
    - no immutable value shares the memory: the buffer is from :func:`new_ref_buffer` or a result
      of an executable;
    - no call still reads or writes the memory when it is used. By default calls are done when they
      return. In an asynchronous backend, wait for the outputs of *every* call with the buffer as an
      argument: waiting for the buffer itself does not wait for calls that read it.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    aval = buffer.aval
    return np.ndarray(aval.shape, aval.dtype, aval.memory_at(pointer(buffer)))


def block(*buffers: Buffer) -> None:
    """Wait until the buffers are written.

    Raises:
        LoweringError: a call that writes one of them failed, or one was deleted or donated.
    """
    try:
        backend().wait(buffers)
    except RuntimeError as error:
        raise unreadable(*buffers, error=error) from error


def delete(buffer: Buffer) -> None:
    """Free the buffer's memory, or release it if it is shared or viewed."""
    buffer.delete()


def is_deleted(buffer: Buffer) -> bool:
    """Return whether the buffer was deleted or donated."""
    return buffer.is_deleted()


def to_dlpack(buffer: Buffer, copy: bool = False) -> object:
    """Return a DLPack capsule (unversioned, named ``dltensor``) of the buffer or of a copy.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    source = put(to_numpy(buffer), copy=True) if copy else buffer
    try:
        return backend().capsule(source)
    except (BufferError, RuntimeError) as error:
        raise unreadable(buffer, error=error) from error


def dlpack_device(buffer: Buffer) -> tuple[int, int]:
    """Return the kind and the number of the buffer's device, as ``__dlpack_device__`` does."""
    del buffer
    return (dlpack.CPU, 0)


def from_dlpack(source: SupportsDLPack, copy: bool | None = None) -> Buffer:
    """Return a buffer with the contents of another library's array; ``copy`` as in :func:`put`.

    Raises:
        BadArgument: it is on another device, its dtype is not supported, or ``copy`` is False and
            its memory cannot be shared.
    """
    kind, _ = source.__dlpack_device__()
    if kind != dlpack.CPU:
        raise BadArgument(
            "this array is not in the host's memory",
            expected=f"DLPack device kind {dlpack.CPU}",
            found=str(kind),
            remedy="move it to the host first",
        )
    # NumPy does not export read-only arrays.
    if isinstance(source, np.ndarray):
        return put(source, copy=copy)
    return put(dlpack.as_numpy(source.__dlpack__()), copy=copy)


def unreadable(*buffers: Buffer, error: Exception) -> LoweringError:
    """Return the error for buffers that cannot be read."""
    for buffer in buffers:
        if buffer.is_deleted():
            return LoweringError(
                "this buffer was deleted or donated",
                expected=f"a live buffer of type {buffer.aval.array_type}",
                found="a buffer without memory",
                remedy="use the output that reuses its memory, or copy it before the call",
            )
    return LoweringError("a buffer cannot be read", found=str(error).strip())
