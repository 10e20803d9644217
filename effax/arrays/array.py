"""The interface of all arrays: shape, dtype, conversions, operators, methods."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from effax.arrays.arithmetic import KNOWN_OPERANDS, Arithmetic
from effax.arrays.not_array import as_numbers
from effax.arrays.operators import ops
from effax.arrays.placed import OnDevice
from effax.arrays.rare_methods import RareMethods
from effax.ir.dtypes import DType, family
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import ArrayType, Shape
from effax.tree import PyTree

if TYPE_CHECKING:
    from types import ModuleType

    from effax.arrays.at import At

Axis = int | Sequence[int] | None
"""The axes of a function; None means all of them."""

DTypeLike = DType | type | str
"""A dtype, given as a NumPy dtype, a scalar type (of NumPy, Python or effax) or a string."""


class Array(Arithmetic, RareMethods, OnDevice):
    """An immutable array, as in NumPy: shape, dtype, operators, indexing, ``.at[...]``.

    An instance is a ``DeviceArray`` (a value) or, inside a traced function, a ``TracedArray``
    (a symbol). A method is the function of that name in ``effax.numpy``.
    """

    __slots__ = ("__weakref__",)

    def __init_subclass__(cls) -> None:
        KNOWN_OPERANDS.add(cls)

    @property
    def type(self) -> ArrayType:
        """Return the array's type: shape, dtype, weakness."""
        raise NotImplementedError

    def numpy(self) -> np.ndarray:
        """Return the value as a read-only NumPy array. Raises ConcretizationError for a symbol."""
        raise NotImplementedError

    @property
    def aval(self) -> ArrayType:
        """Return the array's type, under JAX's name."""
        return self.type

    @property
    def shape(self) -> Shape:
        """Return the sizes of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.type.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.type.size

    @property
    def nbytes(self) -> int:
        """Return the number of bytes of the elements."""
        return self.type.size * self.type.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Return the number of bytes of one element."""
        return self.type.dtype.itemsize

    @property
    def weak_type(self) -> bool:
        """Return whether the dtype yields in promotion."""
        return self.type.weak

    # Conversions to Python.

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        value = as_numbers(self.numpy(), self.type)
        if dtype is not None and value.dtype != dtype:
            return value.astype(dtype)  # type: ignore[call-overload, no-any-return]  # NumPy checks it
        return value.copy() if copy else value

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        namespace = ops.array_namespace()
        version: str = namespace.__array_api_version__
        if api_version not in (None, version):
            raise BadArgument(
                "unknown version of the Array API standard", repr(version), repr(api_version)
            )
        return namespace

    def __len__(self) -> int:
        if not self.type.shape:
            raise IllTyped("len() of an array without axes", found=str(self.type))
        return self.type.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.type.shape:
            raise IllTyped("iteration over an array without axes", found=str(self.type))
        return (self[i] for i in range(self.type.shape[0]))

    def __contains__(self, value: ArrayLike) -> bool:
        return bool(ops.any(ops.equal(self, value)))

    def _scalar(self) -> np.ndarray:
        if self.type.shape:
            raise IllTyped(
                "only an array without axes converts to a Python number",
                found=str(self.type),
                remedy="select the element: `x[0]`, or `x.item()`",
            )
        return as_numbers(self.numpy(), self.type)

    def __bool__(self) -> bool:
        if self.type.size != 1:
            raise IllTyped(
                "only an array of one element is true or false",
                found=str(self.type),
                remedy="use `x.any()`, `x.all()` or `x.size > 0`",
            )
        return bool(as_numbers(self.numpy(), self.type))

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

    def __round__(self, ndigits: int | None = None) -> Array:
        return ops.round(self, ndigits or 0)

    def __format__(self, spec: str) -> str:
        if spec and not self.type.shape:
            return format(self.numpy()[()], spec)
        return format(str(self), spec)

    def item(self, *args: SupportsIndex) -> bool | int | float | complex:
        """Return the element as a Python scalar."""
        return as_numbers(self.numpy(), self.type).item(*args)  # type: ignore[no-any-return]  # NumPy says PyTree

    def tolist(self) -> PyTree:
        """Return nested lists of Python scalars; their depth is the number of axes."""
        return as_numbers(self.numpy(), self.type).tolist()

    def __getitem__(self, index: object) -> Array:
        return ops.getitem(self, index)

    if not TYPE_CHECKING:  # type checkers report an absent method by themselves

        def __setitem__(self, index: object, value: object) -> None:
            """Arrays are immutable. Raises IllTyped."""
            raise _immutable("x[i] = v")

        def __delitem__(self, index: object) -> None:
            """Arrays are immutable. Raises IllTyped."""
            raise _immutable("del x[i]")

    def __pos__(self) -> Array:
        return self

    @property
    def at(self) -> At:
        """Return the functional updates: ``x.at[index].set(value)`` returns a new array."""
        return ops.at(self)

    @property
    def T(self) -> Array:
        """Return the array with its axes reversed."""
        return ops.transpose(self)

    @property
    def mT(self) -> Array:
        """Return the array with its last two axes exchanged."""
        return ops.matrix_transpose(self)

    @property
    def real(self) -> Array:
        """Return the real part."""
        return ops.real(self)

    @property
    def imag(self) -> Array:
        """Return the imaginary part."""
        return ops.imag(self)

    def astype(self, dtype: DTypeLike | None, copy: bool = False, device: object = None) -> Array:
        """Return the array in another dtype."""
        return ops.astype(self, dtype, copy=copy, device=device)

    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
        """Reinterpret the bits of the last axis as elements of another dtype."""
        return ops.view(self, dtype, type)

    def reshape(self, *shape: int | Sequence[int], order: str = "C") -> Array:
        """Return the array in another shape; one size may be -1."""
        return ops.reshape(self, shape[0] if len(shape) == 1 else _ints(shape), order)

    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """Return the array with its axes permuted, or reversed by default."""
        if not axes or axes[0] is None:
            return ops.transpose(self)
        return ops.transpose(self, axes[0] if isinstance(axes[0], Sequence) else _ints(axes))

    def ravel(self, order: str = "C") -> Array:
        """The elements on one axis."""
        return ops.ravel(self, order)

    def flatten(self, order: str = "C") -> Array:
        """The elements on one axis."""
        return ops.ravel(self, order)

    def squeeze(self, axis: Axis = None) -> Array:
        """Return the array without axes of size 1."""
        return ops.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Return the array with two axes exchanged."""
        return ops.swapaxes(self, axis1, axis2)

    def repeat(
        self,
        repeats: ArrayLike | Sequence[int],
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
    ) -> Array:
        """Repeat each element."""
        return ops.repeat(self, repeats, axis, total_repeat_length=total_repeat_length)

    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        """Return the elements at positions along an axis."""
        return ops.take(
            self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value
        )

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """Return the diagonal of two axes, as the last axis."""
        return ops.diagonal(self, offset, axis1, axis2)

    def dot(
        self,
        b: ArrayLike,
        *,
        precision: object = None,
        preferred_element_type: DTypeLike | None = None,
    ) -> Array:
        """Return the dot product."""
        return ops.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)

    def copy(self) -> Array:
        """Return a copy."""
        return ops.copy(self)

    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """Return the sum of elements along axes."""
        return ops.sum(self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """Return the product of elements along axes."""
        return ops.prod(self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """Return the mean of elements along axes."""
        return ops.mean(self, axis, dtype, out, keepdims, where=where)

    def var(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """Return the variance of elements along axes."""
        return ops.var(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)

    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """Return the standard deviation of elements along axes."""
        return ops.std(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)

    def max(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Return the greatest element along axes."""
        return ops.max(self, axis, out, keepdims, initial, where)

    def min(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Return the least element along axes."""
        return ops.min(self, axis, out, keepdims, initial, where)

    def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
        """Return the greatest minus the least element along axes."""
        return ops.ptp(self, axis, out, keepdims)

    def any(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """Return whether any element along axes is true."""
        return ops.any(self, axis, out, keepdims, where=where)

    def all(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """Return whether all elements along axes are true."""
        return ops.all(self, axis, out, keepdims, where=where)

    def argmax(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        """Return the index of the first greatest element."""
        return ops.argmax(self, axis, out, keepdims)

    def argmin(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        """Return the index of the first least element."""
        return ops.argmin(self, axis, out, keepdims)

    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """Return the elements sorted along an axis."""
        return ops.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)

    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """Return the positions that sort the elements along an axis."""
        return ops.argsort(self, axis, kind=kind, order=order, stable=stable, descending=descending)

    def cumsum(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Return cumulative sums."""
        return ops.cumsum(self, axis, dtype, out)

    def cumprod(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Return cumulative products."""
        return ops.cumprod(self, axis, dtype, out)

    def round(self, decimals: int = 0, out: None = None) -> Array:
        """Round to a number of decimals, ties to even."""
        return ops.round(self, decimals, out)

    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """Clamp the elements to an interval."""
        return ops.clip(self, min, max)

    def conj(self) -> Array:
        """Return the complex conjugate."""
        return ops.conj(self)

    conjugate = conj


ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
"""An argument of array functions: an array of effax or NumPy, or a number."""


def _ints(values: tuple[int | Sequence[int] | None, ...]) -> list[int]:
    return [operator.index(v) for v in values]  # type: ignore[arg-type]  # checked by `index`


def _immutable(found: str) -> IllTyped:
    return IllTyped(
        "arrays are immutable: an element cannot be assigned",
        expected="`x.at[i].set(v)`, which returns a new array (also `.add(v)` and others)",
        found=f"`{found}`",
        remedy="`x = x.at[i].set(v)`; or keep the array in a reference, which is written in "
        "place: `r = new_ref(x)`, `r[i] = v`",
    )
