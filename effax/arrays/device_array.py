"""Arrays with a value, in host memory or on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.config import config
from effax.arrays.not_array import as_numbers
from effax.arrays.operators import ops
from effax.ir.dtypes import FLOAT32, as_key_dtype, is_key_dtype
from effax.ir.eval.quiet import quietly
from effax.ir.key_dtype import words_of
from effax.ir.trace import current_trace
from effax.ir.types import ArrayType, array_type

if TYPE_CHECKING:
    from effax.arrays.sharding import Sharding
    from effax.lowering.xla import Buffer


class DeviceArray(Array):
    """An array with a value: in memory, in a device buffer, or in both (copied on demand).

    It is on the first device; a :class:`~effax.arrays.placed_array.PlacedArray` is on others.
    """

    # An array without a sharding of its own has no `_sharding`: one slot less to set for each.
    __slots__ = ("_buffer", "_sharding", "_type", "_value")

    _sharding: Sharding

    def __init__(
        self, value: np.ndarray | None, type_: ArrayType, buffer: Buffer | None = None
    ) -> None:
        if value is not None:
            # The array owns its value: a caller that keeps a writable array must pass a copy.
            value.setflags(write=False)
        self._value = value
        self._buffer = buffer
        self._type = type_

    @property
    def type(self) -> ArrayType:
        return self._type

    def numpy(self) -> np.ndarray:
        if self._value is None:
            from effax.lowering import xla

            assert self._buffer is not None
            self._value = xla.buffer_contents(xla.to_numpy(self._buffer), self._type)
        return self._value

    def __buffer__(self, flags: int) -> memoryview:
        """Return a read-only view of the value, for ``memoryview`` from Python 3.12 on."""
        return as_numbers(self.numpy(), self._type).data

    @property
    def buffer(self) -> Buffer:
        """Return the value as a buffer of the default device."""
        if self._buffer is None:
            from effax.lowering import xla

            assert self._value is not None
            self._buffer = xla.put(self._value, weak=self._type.weak)
        return self._buffer

    @property
    def sharding(self) -> Sharding:
        try:
            return self._sharding
        except AttributeError:
            return super().sharding

    # Sums of `r[i] += v`, without the cost of a function of arrays.

    def __iadd__(self, other: ArrayLike) -> Array:
        return _augmented(self, other, np.add)

    def __isub__(self, other: ArrayLike) -> Array:
        return _augmented(self, other, np.subtract)

    def placed(self, sharding: Sharding | None) -> DeviceArray:
        if sharding is None:
            return self
        place = sharding.placement(len(self.shape))
        if place is not None:
            return cast(DeviceArray, ops.placed_array(self, sharding))
        if sharding == self.sharding:
            return self
        made = DeviceArray(self._value, self._type, self._buffer)
        made._sharding = sharding
        return made

    def delete(self) -> None:
        self.buffer.delete()
        self._value = None

    def is_deleted(self) -> bool:
        return self._buffer is not None and self._buffer.is_deleted()

    @property
    def _base_array(self) -> DeviceArray:
        """Return the words of keys, under JAX's private name."""
        key = as_key_dtype(self.type.dtype)
        if key is None:
            raise AttributeError("an array of numbers has no `_base_array`; arrays of keys do")
        words = words_of(self.numpy(), key)
        return DeviceArray(words, array_type(words.shape, words.dtype))

    def block_until_ready(self) -> DeviceArray:
        """Wait until the value is computed; return the array itself."""
        if self._buffer is not None:
            try:
                self._buffer.block_until_ready()
            except RuntimeError:
                from effax.lowering import xla

                xla.block(self._buffer)
        return self

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the value's first byte on its device."""
        from effax.lowering import xla

        return xla.pointer(self.buffer)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a DLPack capsule of a copy; with ``copy=False``, of the memory itself.

        Raises BufferError for a device that is not the host.
        """
        from effax.lowering import xla

        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError(f"arrays are in the host's memory, not on device {dl_device}")
        return xla.to_dlpack(self.buffer, copy is not False)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.numpy().__dlpack_device__()
        return int(device[0]), int(device[1])

    def __repr__(self) -> str:
        key = as_key_dtype(self.type.dtype)
        if key is not None:
            words = words_of(self.numpy(), key)
            return f"Array({self.shape}, dtype={key}) overlaying:\n{words}"
        shown = np.array2string(self.numpy(), separator=", ", prefix="Array(")
        weak = ", weak_type=True" if self.type.weak else ""
        return f"Array({shown}, dtype={self.type.dtype}{weak})"

    def __str__(self) -> str:
        return repr(self) if is_key_dtype(self.type.dtype) else str(self.numpy())

    def __reduce__(self) -> tuple[object, ...]:
        return (_restored, (np.array(self.numpy()), self.type))

    def __copy__(self) -> DeviceArray:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> DeviceArray:
        return self


def _augmented(x: DeviceArray, other: ArrayLike, add: np.ufunc) -> Array:
    """Return the sum of float32 scalars outside of traces; else leave it to the operator."""
    type_ = x._type
    if type_.shape or type_.weak or type_.dtype != FLOAT32 or current_trace() or config.watched:
        return cast("Array", NotImplemented)
    if type(other) is DeviceArray and other._type is type_:
        other = other.numpy()
    elif type(other) is not float:
        return cast("Array", NotImplemented)
    return DeviceArray(np.asarray(quietly(add, x.numpy(), other)), type_)


def _restored(value: np.ndarray, type_: ArrayType) -> DeviceArray:
    return DeviceArray(value, type_)
