"""The inspection functions of the Array API standard, and its exchange of arrays."""

from __future__ import annotations

from typing import Final

from effax.arrays import dlpack
from effax.arrays.array import Array
from effax.arrays.config import allowed
from effax.ir.dtypes import DType, as_dtype
from effax.ir.errors import BadArgument
from effax.lowering.xla import Device, devices, first_device
from effax.lowering.xla.buffers import SupportsDLPack
from effax.numpy.dtypes import isdtype

__all__ = ["__array_api_version__", "__array_namespace_info__", "from_dlpack"]

__array_api_version__: Final = "2025.12"

_NAMES: Final = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
"""The dtypes of the standard."""


class ArrayNamespaceInfo:
    """The capabilities, devices and dtypes of ``effax.numpy``, by the Array API standard."""

    def capabilities(self) -> dict[str, bool | int | None]:
        """Return what depends on the library; under ``jit``, shapes cannot depend on data."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device of arrays that are created without one."""
        return first_device()

    def devices(self) -> tuple[Device, ...]:
        """Return the devices on which arrays can be created."""
        return tuple(devices())

    def default_dtypes(self, *, device: object = None) -> dict[str, DType]:
        """Return the default dtype of each kind. Raises BadArgument for another device."""
        _check(device)
        index = allowed(int)
        kinds = {"real floating": float, "complex floating": complex, "integral": int}
        return {**{kind: allowed(dtype) for kind, dtype in kinds.items()}, "indexing": index}

    def dtypes(
        self, *, device: object = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Return the dtypes of a kind, of several kinds, or all; 64-bit ones where enabled.

        Raises:
            IllTyped: ``kind`` is not one of the standard.
            BadArgument: another device.
        """
        _check(device)
        found = [as_dtype(name) for name in _NAMES]
        return {
            dtype.name: dtype
            for dtype in found
            if allowed(dtype) == dtype and (kind is None or isdtype(dtype, kind))
        }


def _check(device: object) -> None:
    if device is not None and device not in devices():
        raise BadArgument("unknown device", f"None or one of {devices()}", f"{device!r:.80}")


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807  the standard's name
    """Return the inspection functions of the Array API standard.

    >>> jnp.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int32')
    """
    return ArrayNamespaceInfo()


def from_dlpack(
    x: Array | SupportsDLPack, /, *, device: object = None, copy: bool | None = None
) -> Array:
    """Return an array with the contents of another library's array.

    Args:
        x: an object with ``__dlpack__`` and ``__dlpack_device__``; 64-bit elements become 32-bit
            ones where those are not enabled.
        device: None or the first device; any one for an array of effax.
        copy: True for memory of its own, False to share it, None to share it where it is aligned.

    Returns:
        Array of the shape of ``x``.

    Raises:
        BadArgument: it has no such methods, is on another device, has an unsupported dtype, or its
            memory cannot be shared.

    >>> jnp.from_dlpack(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    return dlpack.from_dlpack(x, device, copy)
