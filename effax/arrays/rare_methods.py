"""Methods of arrays that are the functions of that name in ``effax.numpy``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

from effax.arrays.operators import ops
from effax.ir.errors import NotSupported

if TYPE_CHECKING:
    from effax.arrays.array import Array, ArrayLike, DTypeLike

This: TypeAlias = Any
"""An array, whose class is derived from the class of these methods."""


def _of_namespace(name: str, *args: object, **kwargs: object) -> Array:
    return cast("Array", getattr(ops.array_namespace(), name)(*args, **kwargs))


class RareMethods:
    """The methods that need no operator of their own."""

    __slots__ = ()

    def argpartition(self: This, kth: int, axis: int = -1) -> Array:
        """Return the indices that put the k-th smallest element into its place."""
        return _of_namespace("argpartition", self, kth, axis)

    def byteswap(self: This) -> Array:
        """Return the array with the bytes of each element in the opposite order."""
        if self.dtype.itemsize == 1:
            return cast("Array", self)
        if self.dtype.kind == "c":
            swapped = [part.byteswap() for part in (self.real, self.imag)]
            return cast("Array", swapped[0] + 1j * swapped[1])
        whole = self.reshape(*self.shape, 1).view("uint8")[..., ::-1]
        return cast("Array", whole.view(self.dtype).reshape(self.shape))

    def choose(
        self: This, choices: Sequence[ArrayLike], out: None = None, mode: str = "raise"
    ) -> Array:
        """Return the elements of the choices that the array numbers."""
        return _of_namespace("choose", self, choices, out, mode)

    def compress(
        self: This,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array:
        """Return the slices along an axis at which a mask is true."""
        more = {"size": size, "fill_value": fill_value, "out": out}
        return _of_namespace("compress", condition, self, axis, **more)

    @property
    def flat(self: This) -> NoReturn:
        """Raise NotSupported: arrays are immutable."""
        raise NotSupported("arrays have no `flat`", remedy="use `x.ravel()`")

    def nonzero(
        self: This,
        *,
        fill_value: int | tuple[int, ...] | None = None,
        size: int | None = None,
    ) -> tuple[Array, ...]:
        """Return the indices of elements that are not zero, an array for each axis."""
        found = ops.array_namespace().nonzero(self, size=size, fill_value=fill_value)
        return cast("tuple[Array, ...]", found)

    def searchsorted(
        self: This,
        v: ArrayLike,
        side: str = "left",
        sorter: ArrayLike | None = None,
        *,
        method: str = "scan",
    ) -> Array:
        """Return the insertion points of values in the sorted array."""
        return _of_namespace("searchsorted", self, v, side, sorter, method=method)

    def tobytes(self: This, order: str = "C") -> bytes:
        """Return the bytes of the elements. Raises ConcretizationError for a symbol."""
        return cast(bytes, self.__array__().tobytes(order))

    def trace(
        self: This,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """Return the sum of a diagonal."""
        return _of_namespace("trace", self, offset, axis1, axis2, dtype, out)
