"""Arrays between NumPy and the device: putting, viewing, writing in place, DLPack."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from effax.ir.dtypes import FLOAT0
from effax.ir.errors import BadArgument, LoweringError
from effax.ir.types import ArrayType, array_type
from effax.lowering.xla import dlpack
from effax.lowering.xla.backend import Buffer, backend, new_aval

ALIGNMENT: Final = 64
"""The alignment in bytes that XLA wants of memory that it shares."""


class SupportsDLPack(Protocol):
    """An array of any library that can export its memory."""

    def __dlpack__(self) -> object:
        """A capsule that holds the memory."""
        ...

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's numbers for the kind of the device and for the device."""
        ...


def put(value: np.ndarray | np.generic, weak: bool = False, copy: bool | None = None) -> Buffer:
    """A buffer with the contents of ``value``, in its dtype, 64-bit ones included.

    Args:
        value: any layout and byte order; a buffer is contiguous and in the machine's order.
        weak: whether the buffer's dtype yields in promotion.
        copy: True for memory of XLA's own; False to share the memory of ``value``; None to share
            it where it is contiguous and aligned to 64 bytes, else to copy. Shared memory must not
            be written while the buffer lives; memory that was copied is free when this returns.

    Raises:
        IllTyped: arrays cannot have the dtype.
        LoweringError: buffers cannot hold the dtype, which is narrower than a byte.
        BadArgument: ``copy`` is False and the memory cannot be shared.
    """
    xla = backend()
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype == FLOAT0:
        return put(np.zeros(array.shape, np.bool_), weak, copy)
    if copy is False:
        _check_shareable(array)
    aval = xla.avals.get((array.shape, array.dtype, weak))
    if aval is None:
        # XLA would take the bytes of the other order as they are.
        if not array.dtype.isnative:
            return put(array.astype(array.dtype.newbyteorder("=")), weak, copy)
        aval = new_aval(array_type(array.shape, array.dtype, weak))
    made = xla.device_put(
        aval, xla.sharding, [array], xla.placement, False, copy is True, xla.zero_copy, True
    )
    # What cannot be shared is copied, by 0.10 in the background.
    made.block_until_ready()
    return made


def _check_shareable(array: np.ndarray) -> None:
    reasons = {
        "its elements are not contiguous": not array.flags.c_contiguous,
        f"its address is no multiple of {ALIGNMENT}": array.ctypes.data % ALIGNMENT != 0,
        "its bytes are not in the machine's order": not array.dtype.isnative,
    }
    found = [reason for reason, holds in reasons.items() if holds]
    if found:
        raise BadArgument(
            "the memory of this array cannot be shared with a buffer",
            expected=f"contiguous memory, aligned to {ALIGNMENT} bytes",
            found=", ".join(found),
            remedy="pass copy=None, which copies where it must",
        )


def new_ref_buffer(value: np.ndarray | np.generic) -> Buffer:
    """A buffer of XLA's own with a copy of ``value``, to be donated for ever in one place.

    Its address stays the same through every donation, as long as no view of it is held.
    """
    return put(value, copy=True)


def buffer_array_type(buffer: Buffer) -> ArrayType:
    """The type of the array that the buffer holds."""
    return buffer.aval.array_type


def to_numpy(buffer: Buffer) -> np.ndarray:
    """A read-only view, made when the buffer is written. Nothing is copied.

    While the view is alive the buffer's memory stays; donating the buffer then makes XLA copy it.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    try:
        if buffer.aval.has_buffer_protocol:
            return np.asarray(memoryview(buffer))
        view = dlpack.as_numpy(backend().capsule(buffer))
    except (BufferError, RuntimeError) as error:
        raise _unreadable(buffer, error=error) from error
    view.flags.writeable = False
    return view


def pointer(buffer: Buffer) -> int:
    """The address of the buffer's memory; waits until the buffer is written.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    # jaxlib's own `unsafe_buffer_pointer` would import jax. The capsule dies here, so no
    # reference to the memory is left that would make a donation copy.
    try:
        return dlpack.data_pointer(backend().capsule(buffer))
    except (BufferError, RuntimeError) as error:
        raise _unreadable(buffer, error=error) from error


def raw_view(buffer: Buffer) -> np.ndarray:
    """A *writable* array over the buffer's memory, which waits until the buffer is written.

    It holds no reference: donating the buffer copies nothing, and the view then shows the memory
    of the result that took its place. It is the caller's duty that

    - a buffer with this address outlives the view, or the view is not used any more;
    - nothing that must not change shares the memory: the buffer came from
      :func:`new_ref_buffer` or out of an executable;
    - no call still reads or writes the memory when it is used. By default calls are done when they
      return. In an asynchronous backend, wait for the outputs of *every* call that was given the
      buffer: waiting for the buffer itself does not wait for calls that read it.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    aval = buffer.aval
    return np.ndarray(aval.shape, aval.dtype, aval.memory_at(pointer(buffer)))


def block(*buffers: Buffer) -> None:
    """Wait until the buffers are written.

    Raises:
        LoweringError: what should have written one of them failed, or one was deleted or donated.
    """
    try:
        backend().wait(buffers)
    except RuntimeError as error:
        raise _unreadable(*buffers, error=error) from error


def delete(buffer: Buffer) -> None:
    """Free the buffer's memory, or let go of it where it is shared or viewed."""
    buffer.delete()


def is_deleted(buffer: Buffer) -> bool:
    """Whether the buffer was deleted or donated."""
    return buffer.is_deleted()


def to_dlpack(buffer: Buffer, copy: bool = False) -> object:
    """A DLPack capsule (unversioned, name ``dltensor``) over the buffer's memory, or over a copy.

    Raises:
        LoweringError: the buffer was deleted or donated.
    """
    source = put(to_numpy(buffer), copy=True) if copy else buffer
    try:
        return backend().capsule(source)
    except (BufferError, RuntimeError) as error:
        raise _unreadable(buffer, error=error) from error


def dlpack_device(buffer: Buffer) -> tuple[int, int]:
    """What ``__dlpack_device__`` returns: the kind and the number of the buffer's device."""
    del buffer
    return (dlpack.CPU, 0)


def from_dlpack(source: SupportsDLPack, copy: bool | None = None) -> Buffer:
    """A buffer with the contents of another library's array, copied or shared as :func:`put` says.

    Raises:
        BadArgument: it is on another device, its dtype is unknown, or ``copy`` is False and its
            memory cannot be shared.
    """
    kind, _ = source.__dlpack_device__()
    if kind != dlpack.CPU:
        raise BadArgument(
            "this array is not in the host's memory",
            expected=f"DLPack device kind {dlpack.CPU}",
            found=str(kind),
            remedy="move it to the host first",
        )
    # NumPy refuses to export what it may not write.
    if isinstance(source, np.ndarray):
        return put(source, copy=copy)
    return put(dlpack.as_numpy(source.__dlpack__()), copy=copy)


def _unreadable(*buffers: Buffer, error: Exception) -> LoweringError:
    for buffer in buffers:
        if buffer.is_deleted():
            return LoweringError(
                "this buffer's memory is gone",
                expected=f"a live buffer of type {buffer.aval.array_type}",
                found="one that was deleted, or donated to a call that reused its memory",
                remedy="use the output that took its place, or copy it before the call",
            )
    return LoweringError("a buffer cannot be read", found=str(error).strip())
