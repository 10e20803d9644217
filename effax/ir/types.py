"""The types of values: a closed union of arrays and references.

Types are hash-consed: building one twice returns the same object, so that equality is identity and
hashing costs nothing. Build them with :func:`array_type` and :func:`ref_type`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from operator import index
from typing import Final, cast, final

import numpy as np

from effax.ir.dtypes import (
    BOOL,
    FLOAT0,
    INT32,
    DType,
    as_dtype,
    as_key_dtype,
    is_array_dtype,
    is_inexact_dtype,
    short_name,
)
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.symbolic import is_symbolic_dim
from effax.lazy.dataclasses import dataclass

Shape = tuple[int, ...]


class RefKind(Enum):
    """The kinds of references to mutable arrays in memory.

    ``ARRAY``: contents have tangents where their dtype has. ``NO_GRAD_NO_REMAT``: they have none,
    so that values written are constants of derivatives, and functions that are recomputed may
    change them, once.
    """

    ARRAY = "Ref"
    NO_GRAD_NO_REMAT = "StateRef"


@dataclass(frozen=True)
class NoMesh:
    """A mesh without axes."""

    axis_names: tuple[str, ...] = ()
    axis_sizes: tuple[int, ...] = ()
    empty: bool = True
    are_all_axes_auto: bool = True
    are_all_axes_explicit: bool = False
    are_all_axes_manual: bool = False


@dataclass(frozen=True)
class Unsharded:
    """A sharding over a mesh without axes, which every type has."""

    spec: tuple[None, ...]
    mesh: NoMesh = NoMesh()

    def update(self, *, spec: Sequence[None]) -> Unsharded:
        """Return the sharding of a type of other axes."""
        return Unsharded(tuple(spec))


class _Consed:
    """An immutable type, compared by identity; copies and pickles rebuild it by its constructor."""

    __slots__ = ("_text",)

    _text: str

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name}")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text


@final
class ArrayType(_Consed):
    """An array: its shape, its dtype, and whether the dtype is weak (yields in promotion).

    Printed as ``f32[3]``, as ``~f32[3]`` where it is weak: different types print differently.
    """

    __slots__ = ("dtype", "is_too_large", "shape", "weak")

    shape: Shape
    dtype: DType
    weak: bool
    is_too_large: bool
    """Return True for an array of more than ``MOST_BYTES``: such a type has no values."""

    def __new__(
        cls,
        shape: Sequence[int],
        dtype: object,
        weak_type: bool = False,
        *,
        sharding: object = None,
    ) -> ArrayType:
        """Return :func:`array_type` of the arguments; a type has no sharding."""
        del sharding
        return array_type(shape, dtype, weak_type)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def weak_type(self) -> bool:
        """Return whether the dtype yields in promotion, under JAX's name."""
        return self.weak

    @property
    def sharding(self) -> Unsharded:
        """Return no sharding: that of a value is of the array, and of no type."""
        return Unsharded((None,) * len(self.shape))

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for n in self.shape:
            size *= n
        return size

    def __reduce__(self) -> tuple[object, ...]:
        return (array_type, (self.shape, self.dtype, self.weak))

    def update(
        self,
        shape: Shape | None = None,
        dtype: DType | None = None,
        weak: bool | None = None,
        *,
        weak_type: bool | None = None,
    ) -> ArrayType:
        """Return the type with some of its fields replaced; ``weak_type`` is JAX's ``weak``."""
        weak = weak_type if weak is None else weak
        return array_type(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak if weak is None else weak,
        )

    def to_tangent_aval(self) -> ArrayType:
        """Return the type of tangents; of ``float0`` for a dtype without tangents."""
        return array_type(self.shape, self.dtype if is_inexact_dtype(self.dtype) else FLOAT0)

    def str_short(self, short_dtypes: bool = False) -> str:
        """Return the type as JAX prints it: ``float32[3]``, or with ``short_dtypes`` ``f32[3]``."""
        name = short_name(self.dtype) if short_dtypes else self.dtype.name
        return f"{name}[{','.join(map(str, self.shape))}]"

    def strong(self) -> ArrayType:
        """Return the same type with a dtype that does not yield."""
        return array_type(self.shape, self.dtype, False) if self.weak else self


@final
class RefType(_Consed):
    """A reference to a mutable array of type ``inner``; ``inner`` is never weak."""

    __slots__ = ("inner", "is_too_large", "kind")

    inner: ArrayType
    kind: RefKind
    is_too_large: bool

    @property
    def shape(self) -> Shape:
        """The shape of the contents."""
        return self.inner.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the contents."""
        return self.inner.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the contents."""
        return self.inner.ndim

    @property
    def size(self) -> int:
        """The number of elements of the contents."""
        return self.inner.size

    @property
    def weak(self) -> bool:
        """False: the dtype of contents never yields in promotion."""
        return False

    @property
    def sharding(self) -> Unsharded:
        """Return no sharding, as of the type of the contents."""
        return self.inner.sharding

    @property
    def inner_aval(self) -> ArrayType:
        """The type of the contents, under JAX's name."""
        return self.inner

    def to_tangent_aval(self) -> RefType:
        """Return the type of tangents: the type itself."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (ref_type, (self.inner, self.kind))


Type = ArrayType | RefType

MOST_BYTES: Final = 1 << 62
"""The most bytes of an array: NumPy and XLA compute sizes in 64 bits."""

_arrays: Final[dict[tuple[Shape, DType, bool], ArrayType]] = {}
_refs: Final[dict[tuple[ArrayType, RefKind], RefType]] = {}


def array_type(shape: Sequence[int], dtype: object, weak: bool = False) -> ArrayType:
    """Return the array type of that shape and dtype.

    Args:
        shape: sizes of the axes, all at least 0.
        dtype: a NumPy dtype or anything that NumPy takes for one, or a dtype of random keys.
        weak: whether the dtype came from a Python scalar and yields in promotion.

    Raises:
        IllTyped: a size is not an integer of at least 0, or the dtype is not one of arrays.
    """
    try:
        key = (tuple(shape), as_dtype(dtype), weak)
    except TypeError as error:
        raise _no_type(shape, dtype, str(error)) from None
    found = _arrays.get(key)
    return _new_array_type(key) if found is None else found


def _no_type(shape: object, dtype: object, reason: str) -> IllTyped:
    remedy = None
    if isinstance(shape, int):
        remedy = "of one axis: `(n,)`"
    elif isinstance(dtype, tuple | list):
        remedy = "the shape comes first"
    return IllTyped(
        f"an array type is made of a shape and a dtype: {reason}",
        expected='integers that are at least 0, and a dtype: `array_type((3,), "float32")`',
        found=f"{shape!r:.60} and {dtype!r:.60}",
        remedy=remedy,
    )


def _new_array_type(key: tuple[Shape, DType, bool]) -> ArrayType:
    # An equal key may have NumPy integers, or a foreign byte order: the type is built normalized.
    shape, dtype = _plain_shape(key[0]), key[1]
    # newbyteorder makes another object even of a native dtype: comparisons would be slower.
    dtype = dtype if dtype.isnative else dtype.newbyteorder("=")
    weak = bool(key[2])
    if dtype.kind == "V":
        dtype = cast(DType, as_key_dtype(dtype) or dtype)
    if not is_array_dtype(dtype):
        raise IllTyped(
            "arrays cannot have this dtype",
            expected="booleans, integers, floats or complex numbers",
            found=str(dtype),
        )
    made: ArrayType = object.__new__(ArrayType)
    object.__setattr__(made, "shape", shape)
    object.__setattr__(made, "dtype", dtype)
    object.__setattr__(made, "weak", weak)
    object.__setattr__(made, "is_too_large", _is_too_large(shape, dtype))
    sizes = ",".join(map(str, shape))
    object.__setattr__(made, "_text", f"{'~' if weak else ''}{short_name(dtype)}[{sizes}]")
    return _arrays.setdefault((shape, dtype, weak), made)


def _is_too_large(shape: Shape, dtype: DType) -> bool:
    """Return whether the bytes overflow, also of the sizes that are not 0, as NumPy counts them."""
    if any(map(is_symbolic_dim, shape)):
        return False
    return prod([n for n in shape if n]) * dtype.itemsize > MOST_BYTES


def check_size(type_: Type) -> None:
    """Raise BadArgument for a type of arrays that are too large to exist."""
    if type_.is_too_large:
        raise BadArgument(
            "an array is too large",
            expected="at most 2**62 bytes",
            found=str(type_),
            remedy="use smaller sizes",
        )


def _plain_shape(shape: Shape) -> Shape:
    try:
        plain = tuple([n if is_symbolic_dim(n) else index(n) for n in shape])
    except TypeError:
        plain = (-1,)
    if any(n < 0 for n in plain):
        raise IllTyped("invalid shape", expected="integers that are at least 0", found=str(shape))
    return plain


PREDICATE: Final = array_type((), BOOL)
"""The type of a predicate: a condition of a loop, a flag."""

COUNTER: Final = array_type((), INT32)
"""The type of the index of an iteration or of a branch."""


def ref_type(inner: ArrayType, kind: RefKind = RefKind.ARRAY) -> RefType:
    """Return the type of references to arrays of type ``inner``, made strong."""
    given: object = inner
    if not isinstance(given, ArrayType):
        raise IllTyped(
            "expected the type of an array inside of a reference",
            expected="the type of an array",
            found=f"{given!r:.60}",
            remedy='`ref_type(array_type((3,), "float32"))`',
        )
    key = (inner.strong(), kind)
    found = _refs.get(key)
    if found is not None:
        return found
    made = RefType()
    object.__setattr__(made, "inner", key[0])
    object.__setattr__(made, "kind", kind)
    object.__setattr__(made, "is_too_large", key[0].is_too_large)
    object.__setattr__(made, "_text", f"{kind.value}{{{key[0]}}}")
    return _refs.setdefault(key, made)


def type_of_value(value: np.ndarray | np.generic) -> ArrayType:
    """Return the type of a NumPy value."""
    return array_type(value.shape, value.dtype)


def tangent_type(type_: Type) -> Type:
    """Return the type of tangents at a value of ``type_``: the same, without weakness."""
    return type_.strong() if isinstance(type_, ArrayType) else type_


def is_inexact(type_: Type) -> bool:
    """Return whether values of the type, or contents of the reference, can have tangents."""
    if isinstance(type_, RefType) and type_.kind is RefKind.NO_GRAD_NO_REMAT:
        return False
    return is_inexact_dtype(type_.dtype)
