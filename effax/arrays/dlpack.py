"""Arrays of other libraries by DLPack."""

from __future__ import annotations

from effax.arrays.array import Array, DTypeLike
from effax.arrays.config import allowed
from effax.arrays.creation import asarray
from effax.arrays.device_array import DeviceArray
from effax.arrays.placed import check_first_device
from effax.arrays.promotion import converted
from effax.ir.dtypes import as_dtype
from effax.ir.errors import BadArgument
from effax.lowering import xla
from effax.lowering.xla.buffers import SupportsDLPack
from effax.lowering.xla.dlpack import TYPE_CODES


def from_dlpack(
    external_array: Array | SupportsDLPack, device: object = None, copy: bool | None = None
) -> Array:
    """Return an array with the contents of another library's array.

    Args:
        external_array: an object with ``__dlpack__`` and ``__dlpack_device__``; 64-bit elements
            become 32-bit ones where those are not enabled.
        device: None or the first device; any one for an array of effax.
        copy: True for memory of its own, False to share it, None to share it where it is aligned.

    Raises:
        BadArgument: it has no such methods, is on another device, has an unsupported dtype, or its
            memory cannot be shared.

    >>> effax.dlpack.from_dlpack(np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    if not hasattr(external_array, "__dlpack__"):
        raise BadArgument(
            "from_dlpack takes an array of a library",
            expected="an object with `__dlpack__` and `__dlpack_device__`",
            found=type(external_array).__name__,
        )
    if isinstance(external_array, Array):
        return asarray(external_array, copy=copy, device=device)
    if device is not None:
        check_first_device(device, "from_dlpack")
    buffer = xla.from_dlpack(external_array, copy)
    made = DeviceArray(None, xla.buffer_array_type(buffer), buffer)
    return converted(made, allowed(made.dtype, of_value=True), False)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Return whether DLPack has a dtype.

    >>> effax.dlpack.is_supported_dtype(np.float32)
    True
    """
    return as_dtype(dtype) in TYPE_CODES
