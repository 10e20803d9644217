"""Arrays as users hold them: values on a device or in memory, and symbols of a trace."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np

from effax import operators as ops
from effax.config import allowed
from effax.ir.dtypes import DType, family
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.syntax import Atom
from effax.ir.trace import Trace
from effax.ir.types import ArrayType, Shape, array_type

if TYPE_CHECKING:
    from effax.at import At
    from effax.lowering.xla import Buffer

ArrayLike = "Array | np.ndarray | np.generic | bool | int | float | complex"


class Array:
    """An immutable array, as in NumPy: shape, dtype, operators, indexing, ``.at[...]``.

    What a user holds is a :class:`DeviceArray` (a value) or, inside of a traced function, a
    :class:`TracedArray` (a symbol); ``isinstance(x, Array)`` holds for both.
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]  # equality is elementwise, as NumPy's

    @property
    def type(self) -> ArrayType:
        """The array's type: shape, dtype, weakness."""
        raise NotImplementedError

    def numpy(self) -> np.ndarray:
        """The value as a read-only NumPy array. Raises ConcretizationError for a symbol."""
        raise NotImplementedError

    @property
    def aval(self) -> ArrayType:
        """The array's type, under JAX's name."""
        return self.type

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.type.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.type.size

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take."""
        return self.type.size * self.type.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes."""
        return self.type.dtype.itemsize

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields in promotion."""
        return self.type.weak

    # Python's view of a value.

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        value = self.numpy()
        if dtype is not None and value.dtype != dtype:
            return value.astype(dtype)  # type: ignore[call-overload, no-any-return]  # NumPy checks it
        return value.copy() if copy else value

    def __len__(self) -> int:
        if not self.type.shape:
            raise IllTyped("len() of an array without axes", found=str(self.type))
        return self.type.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.type.shape:
            raise IllTyped("iteration over an array without axes", found=str(self.type))
        return (self[i] for i in range(self.type.shape[0]))

    def _scalar(self) -> np.ndarray:
        if self.type.size != 1:
            raise IllTyped(
                "only an array of one element converts to a Python scalar", found=str(self.type)
            )
        return self.numpy().reshape(())

    def __bool__(self) -> bool:
        return bool(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self.type.shape or family(self.type.dtype) not in ("int", "uint"):
            raise IllTyped("only an integer scalar is an index", found=str(self.type))
        return operator.index(self.numpy()[()])

    def __format__(self, spec: str) -> str:
        return format(self.numpy()[()] if not self.type.shape and spec else str(self), "" if not spec or self.type.shape else spec)

    def item(self, *args: SupportsIndex) -> bool | int | float | complex:
        """The element as a Python scalar."""
        return self.numpy().item(*args)  # type: ignore[no-any-return]  # NumPy says Any

    def tolist(self) -> Any:
        """Nested lists of Python scalars; their depth is the number of axes."""
        return self.numpy().tolist()

    # Operators, as NumPy's.

    def __getitem__(self, index: object) -> Array:
        return ops.getitem(self, index)

    def __add__(self, other: object) -> Array:
        return ops.add(self, other)

    def __radd__(self, other: object) -> Array:
        return ops.add(other, self)

    def __sub__(self, other: object) -> Array:
        return ops.subtract(self, other)

    def __rsub__(self, other: object) -> Array:
        return ops.subtract(other, self)

    def __mul__(self, other: object) -> Array:
        return ops.multiply(self, other)

    def __rmul__(self, other: object) -> Array:
        return ops.multiply(other, self)

    def __truediv__(self, other: object) -> Array:
        return ops.true_divide(self, other)

    def __rtruediv__(self, other: object) -> Array:
        return ops.true_divide(other, self)

    def __floordiv__(self, other: object) -> Array:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: object) -> Array:
        return ops.floor_divide(other, self)

    def __mod__(self, other: object) -> Array:
        return ops.remainder(self, other)

    def __rmod__(self, other: object) -> Array:
        return ops.remainder(other, self)

    def __divmod__(self, other: object) -> tuple[Array, Array]:
        return ops.floor_divide(self, other), ops.remainder(self, other)

    def __pow__(self, other: object) -> Array:
        return ops.power(self, other)

    def __rpow__(self, other: object) -> Array:
        return ops.power(other, self)

    def __matmul__(self, other: object) -> Array:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: object) -> Array:
        return ops.matmul(other, self)

    def __and__(self, other: object) -> Array:
        return ops.bitwise_and(self, other)

    def __rand__(self, other: object) -> Array:
        return ops.bitwise_and(other, self)

    def __or__(self, other: object) -> Array:
        return ops.bitwise_or(self, other)

    def __ror__(self, other: object) -> Array:
        return ops.bitwise_or(other, self)

    def __xor__(self, other: object) -> Array:
        return ops.bitwise_xor(self, other)

    def __rxor__(self, other: object) -> Array:
        return ops.bitwise_xor(other, self)

    def __lshift__(self, other: object) -> Array:
        return ops.left_shift(self, other)

    def __rlshift__(self, other: object) -> Array:
        return ops.left_shift(other, self)

    def __rshift__(self, other: object) -> Array:
        return ops.right_shift(self, other)

    def __rrshift__(self, other: object) -> Array:
        return ops.right_shift(other, self)

    def __neg__(self) -> Array:
        return ops.negative(self)

    def __pos__(self) -> Array:
        return self

    def __abs__(self) -> Array:
        return ops.absolute(self)

    def __invert__(self) -> Array:
        return ops.invert(self)

    def __eq__(self, other: object) -> Array:  # type: ignore[override]  # elementwise, as NumPy's
        return ops.equal(self, other)

    def __ne__(self, other: object) -> Array:  # type: ignore[override]  # elementwise, as NumPy's
        return ops.not_equal(self, other)

    def __lt__(self, other: object) -> Array:
        return ops.less(self, other)

    def __le__(self, other: object) -> Array:
        return ops.less_equal(self, other)

    def __gt__(self, other: object) -> Array:
        return ops.greater(self, other)

    def __ge__(self, other: object) -> Array:
        return ops.greater_equal(self, other)

    # Methods, as NumPy's. Each is the function of that name in ``effax.numpy``.

    @property
    def at(self) -> At:
        """Functional updates: ``x.at[index].set(value)`` and friends give a new array."""
        from effax.at import At

        return At(self)

    @property
    def T(self) -> Array:
        """The array with its axes reversed."""
        return ops.transpose(self)

    @property
    def mT(self) -> Array:
        """The array with its last two axes exchanged."""
        return ops.matrix_transpose(self)

    @property
    def real(self) -> Array:
        """The real part."""
        return ops.real(self)

    @property
    def imag(self) -> Array:
        """The imaginary part."""
        return ops.imag(self)

    def astype(self, dtype: object) -> Array:
        """The array in another dtype."""
        return ops.astype(self, dtype)

    def reshape(self, *shape: int | Shape) -> Array:
        """The array in another shape; one size may be -1."""
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: int | Shape | None) -> Array:
        """The array with its axes permuted, or reversed where none are given."""
        return ops.transpose(self, axes[0] if len(axes) == 1 else (axes or None))

    def ravel(self) -> Array:
        """The elements on one axis."""
        return ops.reshape(self, -1)

    def flatten(self) -> Array:
        """The elements on one axis."""
        return ops.reshape(self, -1)

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Array:
        """The array without axes of size 1."""
        return ops.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """The array with two axes exchanged."""
        return ops.swapaxes(self, axis1, axis2)

    def dot(self, other: object) -> Array:
        """The dot product."""
        return ops.dot(self, other)

    def copy(self) -> Array:
        """The array in memory of its own."""
        return ops.copy(self)

    def sum(self, axis: object = None, dtype: object = None, keepdims: bool = False) -> Array:
        """The sum of elements along axes."""
        return ops.sum(self, axis, dtype, keepdims)

    def prod(self, axis: object = None, dtype: object = None, keepdims: bool = False) -> Array:
        """The product of elements along axes."""
        return ops.prod(self, axis, dtype, keepdims)

    def mean(self, axis: object = None, dtype: object = None, keepdims: bool = False) -> Array:
        """The mean of elements along axes."""
        return ops.mean(self, axis, dtype, keepdims)

    def var(self, axis: object = None, ddof: int = 0, keepdims: bool = False) -> Array:
        """The variance of elements along axes."""
        return ops.var(self, axis, ddof, keepdims)

    def std(self, axis: object = None, ddof: int = 0, keepdims: bool = False) -> Array:
        """The standard deviation of elements along axes."""
        return ops.std(self, axis, ddof, keepdims)

    def max(self, axis: object = None, keepdims: bool = False) -> Array:
        """The greatest element along axes."""
        return ops.max(self, axis, keepdims)

    def min(self, axis: object = None, keepdims: bool = False) -> Array:
        """The least element along axes."""
        return ops.min(self, axis, keepdims)

    def any(self, axis: object = None, keepdims: bool = False) -> Array:
        """Whether any element along axes is true."""
        return ops.any(self, axis, keepdims)

    def all(self, axis: object = None, keepdims: bool = False) -> Array:
        """Whether all elements along axes are true."""
        return ops.all(self, axis, keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """The index of the first greatest element."""
        return ops.argmax(self, axis, keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """The index of the first least element."""
        return ops.argmin(self, axis, keepdims)

    def cumsum(self, axis: int | None = None) -> Array:
        """Running sums."""
        return ops.cumsum(self, axis)

    def cumprod(self, axis: int | None = None) -> Array:
        """Running products."""
        return ops.cumprod(self, axis)

    def round(self, decimals: int = 0) -> Array:
        """Rounded to so many decimals, ties to even."""
        return ops.round(self, decimals)

    def clip(self, min: object = None, max: object = None) -> Array:
        """Moved into the interval."""
        return ops.clip(self, min, max)

    def conj(self) -> Array:
        """The complex conjugate."""
        return ops.conj(self)


@final
class DeviceArray(Array):
    """A value: in memory, in a buffer of a device, or in both (each made when it is needed)."""

    __slots__ = ("_buffer", "_type", "_value")

    def __init__(
        self, value: np.ndarray | None, type_: ArrayType, buffer: Buffer | None = None
    ) -> None:
        if value is not None:
            # The library promises that nobody writes here: a writable array is somebody else's.
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
            self._value = xla.to_numpy(self._buffer)
        return self._value

    @property
    def buffer(self) -> Buffer:
        """The value in a buffer of the default device."""
        if self._buffer is None:
            from effax.lowering import xla

            assert self._value is not None
            self._buffer = xla.put(self._value, weak=self._type.weak)
        return self._buffer

    def block_until_ready(self) -> DeviceArray:
        """Wait until the value is computed; gives the array itself."""
        if self._buffer is not None:
            from effax.lowering import xla

            xla.block(self._buffer)
        return self

    def unsafe_buffer_pointer(self) -> int:
        """The address of the value's first byte on its device."""
        from effax.lowering import xla

        return xla.pointer(self.buffer)

    def __dlpack__(self, *, stream: int | None = None, **kwargs: Any) -> Any:
        return self.numpy().copy().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.numpy().__dlpack_device__()
        return int(device[0]), int(device[1])

    def __repr__(self) -> str:
        shown = np.array2string(self.numpy(), separator=", ", prefix="Array(")
        weak = ", weak_type=True" if self._type.weak else ""
        return f"Array({shown}, dtype={self._type.dtype}{weak})"

    def __str__(self) -> str:
        return str(self.numpy())

    def __reduce__(self) -> tuple[object, ...]:
        return (_restored, (np.array(self.numpy()), self._type))

    def __copy__(self) -> DeviceArray:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> DeviceArray:
        return self


def _restored(value: np.ndarray, type_: ArrayType) -> DeviceArray:
    return DeviceArray(value, type_)


@final
class TracedArray(Array):
    """A symbol: an array of a program that is being traced."""

    __slots__ = ("atom", "trace")

    def __init__(self, trace: Trace, atom: Atom) -> None:
        self.trace = trace
        self.atom = atom

    @property
    def type(self) -> ArrayType:
        return self.atom.type  # type: ignore[return-value]  # handles of references are TracedRefs

    def numpy(self) -> np.ndarray:
        return np.asarray(self.trace.value_of(self.atom))

    def __repr__(self) -> str:
        return f"Traced<{self.atom.type}> in {self.trace.label}"

    def __deepcopy__(self, memo: dict[int, object]) -> TracedArray:
        return self


def from_numpy(value: np.ndarray | np.generic, weak: bool = False) -> DeviceArray:
    """An array that takes over a NumPy value which nobody else writes to."""
    value = np.asarray(value)
    return DeviceArray(value, array_type(value.shape, value.dtype, weak))


def as_value(x: object, what: str = "an argument") -> Array:
    """The array that ``x`` stands for: itself, or a copy of a NumPy array or a Python scalar.

    Raises:
        IllTyped: ``x`` is not an array: a reference, a string, a list, ...
    """
    if isinstance(x, Array):
        return x
    if isinstance(x, bool | int | float | complex):
        return scalar(x)
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind in "OUSMm":
            raise IllTyped(f"{what} has a dtype that is not a number", found=str(x.dtype))
        return from_numpy(np.array(x, dtype=allowed(x.dtype)))
    raise not_an_array(x, what)


def scalar(x: bool | int | float | complex) -> DeviceArray:
    """The weakly typed array of a Python scalar. Raises BadArgument where it does not fit."""
    dtype = allowed(type(x))
    try:
        value = np.asarray(x, dtype)
    except OverflowError:
        raise BadArgument(
            f"the Python integer {x} does not fit",
            expected=f"a value of {dtype}",
            found=str(x),
            remedy="give an explicit dtype, or enable 64-bit dtypes",
        ) from None
    return DeviceArray(value, array_type((), dtype, weak=not isinstance(x, bool)))


def not_an_array(x: object, what: str) -> IllTyped:
    """The error for something that stands where an array belongs."""
    from effax.ref import Ref

    if isinstance(x, Ref):
        return IllTyped(
            f"{what} is a reference, where an array belongs",
            expected="an array",
            found=str(x.type),
            remedy="read it first: `ref[...]`",
        )
    return IllTyped(
        f"{what} is not an array",
        expected="an array or a number",
        found=f"{type(x).__name__}: {x!r:.80}",
        remedy="convert it with `numpy.array`" if isinstance(x, list | tuple) else None,
    )
