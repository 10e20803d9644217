"""Arrays between NumPy and the device: putting, viewing, writing in place, DLPack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

import numpy as np

from effax.ir.errors import BadArgument, LoweringError
from effax.ir.types import ArrayType, array_type
from effax.lowering.xla import dlpack
from effax.lowering.xla.backend import Aval, Buffer, backend, new_aval

ALIGNMENT = 64
"""The alignment in bytes that XLA wants of memory that it shares."""


class SupportsDLPack(Protocol):
    """An array of any library that can export its memory."""

    def __dlpack__(self) -> object:
        """A capsule that holds the memory."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's numbers for the device."""


def put(
    value: np.ndarray | np.generic, weak: bool = False, copy: bool | None = None
) -> Buffer:
    """A buffer with the contents of ``value``, in its dtype, 64-bit ones included.

    Args:
        value: any layout and byte order; a buffer is contiguous and in the machine's order.
        weak: whether the buffer's dtype yields in promotion.
        copy: True for memory of the buffer's own; False to share the memory of ``value``; None to
            share it where it is contiguous and aligned to 64 bytes. Shared memory must not be
            written while the buffer lives; copied memory is free when this returns.

    Raises:
        LoweringError: buffers cannot hold the dtype.
        BadArgument: ``copy`` is False and the memory cannot be shared.
    """
    xla = backend()
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    aval = xla.avals.get((array.shape, array.dtype, weak))
    # XLA would take the bytes of the other order as they are.
    if aval is None and not array.dtype.isnative:
        return put(array.astype(array.dtype.newbyteorder("=")), weak, copy and None)
    if aval is None:
        aval = new_aval(array_type(array.shape, array.dtype, weak))
    if copy is False:
        _check_shareable(array)
    made = xla.device_put(
        aval, xla.sharding, [array], xla.devices[:1], False, copy is True, xla.zero_copy, True
    )
    # What could not be shared is copied, which 0.10 does in the background.
    made.block_until_ready()
    return made
