"""Names of dtypes, their promotion, and their limits."""

from __future__ import annotations

from typing import Final

import ml_dtypes
import numpy as np

from effax.arrays.array import Array, DTypeLike
from effax.arrays.config import allowed, config
from effax.arrays.creation import asarray
from effax.arrays.promotion import dtype_of
from effax.ir.dtypes import DType, as_dtype, family, promote
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.key_dtype import extended, prng_key

__all__ = [
    "ComplexWarning", "bfloat16", "bool_", "can_cast", "cdouble", "character", "complex64",
    "complex128", "complex_", "complexfloating", "csingle", "double", "finfo", "flexible",
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32", "float64", "float_",
    "floating", "generic", "iinfo", "inexact", "int1", "int2", "int4", "int8", "int16",
    "int32", "int64", "int_", "integer", "isdtype", "issubdtype", "number", "object_",
    "promote_types", "result_type", "signedinteger", "single", "uint", "uint1", "uint2",
    "uint4", "uint8", "uint16", "uint32", "uint64", "unsignedinteger",
]  # fmt: skip


class ScalarType(type):
    """Type of ``float32`` and the like, which name a dtype and convert values when called."""

    _dtype: DType

    @property
    def dtype(cls) -> DType:
        """The dtype named."""
        return cls._dtype

    def __call__(cls, x: object) -> Array:
        return asarray(x, cls)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Array) and not instance.shape and instance.dtype == cls._dtype

    def __hash__(cls) -> int:
        return hash(cls._dtype.type)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, ScalarType):
            return cls._dtype == other._dtype
        return cls._dtype.type is other or (isinstance(other, np.dtype) and cls._dtype == other)

    def __ne__(cls, other: object) -> bool:
        return not cls == other


def _named(name: str) -> ScalarType:
    text = f"The dtype ``{name}``; a call converts a value to an array of it."
    made = ScalarType(name, (), {"__doc__": text, "__module__": "effax.numpy", "__slots__": ()})
    made._dtype = as_dtype(name)
    return made


bool_: Final[ScalarType] = _named("bool")
int1: Final[ScalarType] = _named("int1")
int2: Final[ScalarType] = _named("int2")
int4: Final[ScalarType] = _named("int4")
int8: Final[ScalarType] = _named("int8")
int16: Final[ScalarType] = _named("int16")
int32: Final[ScalarType] = _named("int32")
int64: Final[ScalarType] = _named("int64")
uint1: Final[ScalarType] = _named("uint1")
uint2: Final[ScalarType] = _named("uint2")
uint4: Final[ScalarType] = _named("uint4")
uint8: Final[ScalarType] = _named("uint8")
uint16: Final[ScalarType] = _named("uint16")
uint32: Final[ScalarType] = _named("uint32")
uint64: Final[ScalarType] = _named("uint64")
float16: Final[ScalarType] = _named("float16")
bfloat16: Final[ScalarType] = _named("bfloat16")
float32: Final[ScalarType] = _named("float32")
float64: Final[ScalarType] = _named("float64")
float8_e4m3fn: Final[ScalarType] = _named("float8_e4m3fn")
float8_e5m2: Final[ScalarType] = _named("float8_e5m2")
float4_e2m1fn: Final[ScalarType] = _named("float4_e2m1fn")
float6_e2m3fn: Final[ScalarType] = _named("float6_e2m3fn")
float6_e3m2fn: Final[ScalarType] = _named("float6_e3m2fn")
float8_e3m4: Final[ScalarType] = _named("float8_e3m4")
float8_e4m3: Final[ScalarType] = _named("float8_e4m3")
float8_e4m3b11fnuz: Final[ScalarType] = _named("float8_e4m3b11fnuz")
float8_e4m3fnuz: Final[ScalarType] = _named("float8_e4m3fnuz")
float8_e5m2fnuz: Final[ScalarType] = _named("float8_e5m2fnuz")
float8_e8m0fnu: Final[ScalarType] = _named("float8_e8m0fnu")
complex64: Final[ScalarType] = _named("complex64")
complex128: Final[ScalarType] = _named("complex128")
int_ = int64
uint = uint64
float_ = float64
complex_ = complex128
single = float32
double = float64
csingle = complex64
cdouble = complex128

generic = np.generic
number = np.number
inexact = np.inexact
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
floating = np.floating
complexfloating = np.complexfloating
character = np.character
flexible = np.flexible
object_ = np.object_
ComplexWarning = np.exceptions.ComplexWarning


_CATEGORIES: Final[dict[object, frozenset[str]]] = {
    np.generic: frozenset({"bool", "int", "uint", "float", "complex", "key", "void"}),
    np.number: frozenset({"int", "uint", "float", "complex"}),
    np.inexact: frozenset({"float", "complex"}),
    np.integer: frozenset({"int", "uint"}),
    np.signedinteger: frozenset({"int"}),
    np.unsignedinteger: frozenset({"uint"}),
    np.floating: frozenset({"float"}),
    np.complexfloating: frozenset({"complex"}),
    extended: frozenset({"key"}),
    prng_key: frozenset({"key"}),
}

_KINDS: Final[dict[str, frozenset[str]]] = {
    "bool": frozenset({"bool"}),
    "signed integer": frozenset({"int"}),
    "unsigned integer": frozenset({"uint"}),
    "integral": frozenset({"int", "uint"}),
    "real floating": frozenset({"float"}),
    "complex floating": frozenset({"complex"}),
    "numeric": frozenset({"int", "uint", "float", "complex"}),
}


def result_type(*args: object) -> DType:
    """Return the dtype to which arrays, numbers, dtypes and Python's number types promote.

    Raises BadArgument without arguments, and IllTyped where there is no common dtype.

    >>> jnp.result_type(jnp.int8, jnp.float16)
    dtype('float16')
    """
    if not args:
        raise BadArgument(
            "result_type takes at least one argument", expected="at least one argument"
        )
    try:
        return promote([dtype_of(x) for x in args], config.enable_x64)[0]
    except TypeError as error:
        raise IllTyped(f"result_type: {error}", found=", ".join(map(str, args))) from None


def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """Return the dtype to which two dtypes promote.

    Args:
        a: dtype.
        b: dtype.

    Returns:
        Dtype.

    Raises:
        IllTyped: there is no common dtype.

    >>> jnp.promote_types(jnp.int32, jnp.uint8)
    dtype('int32')
    """
    return result_type(a, b)


def issubdtype(arg1: object, arg2: object) -> bool:
    """Return whether a dtype or category is, or belongs to, another one.

    Args:
        arg1: dtype or category.
        arg2: dtype or category, such as ``jnp.floating``.

    Returns:
        Python bool.

    Raises:
        IllTyped: an argument is neither.

    >>> jnp.issubdtype(jnp.float32, jnp.floating)
    True
    """
    if isinstance(arg1, type) and arg1 in _CATEGORIES:
        return isinstance(arg2, type) and arg2 in _CATEGORIES and issubclass(arg1, arg2)
    outer = _CATEGORIES.get(arg2) if isinstance(arg2, type) else None
    dtype = _unchanged(arg1)
    return dtype == _unchanged(arg2) if outer is None else family(dtype) in outer


def isdtype(dtype: DTypeLike, kind: object) -> bool:
    """Return whether a dtype is of a kind.

    Args:
        dtype: dtype.
        kind: dtype, name of the array API standard ("integral", "numeric", ...), or tuple of these.

    Returns:
        Python bool.

    Raises:
        IllTyped: ``kind`` is none of these.

    >>> jnp.isdtype(jnp.int32, "integral")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    families = _KINDS.get(kind) if isinstance(kind, str) else None
    if families is not None:
        return family(_unchanged(dtype)) in families
    return _unchanged(dtype) == _unchanged(kind)


def can_cast(from_: DTypeLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Return whether NumPy's casting rule allows a conversion.

    Args:
        from_: dtype.
        to: dtype.
        casting: "no", "equiv", "safe", "same_kind" or "unsafe".

    Returns:
        Python bool.

    >>> jnp.can_cast(jnp.int8, jnp.int32)
    True
    """
    return bool(np.can_cast(_unchanged(from_), _unchanged(to), casting=casting))  # type: ignore[arg-type]  # NumPy checks it


class finfo:  # noqa: N801  NumPy's name
    """The limits of a floating dtype.

    Those of float32 and float64 are Python numbers, as the Array API asks; those of other dtypes
    are scalars of the dtype.

    Args:
        dtype: inexact dtype, or array of it; that of its parts where it is complex.

    Raises:
        IllTyped: the dtype is not inexact.

    >>> jnp.finfo(jnp.float32).bits, jnp.finfo(jnp.float32).eps == 2.0**-23
    (32, True)
    """

    bits: int
    dtype: DType
    eps: float
    epsneg: float
    machep: int
    max: float
    maxexp: int
    min: float
    minexp: int
    nexp: int
    nmant: int
    precision: int
    resolution: float
    smallest_normal: float
    smallest_subnormal: float
    tiny: float

    def __init__(self, dtype: DTypeLike) -> None:
        # A dtype is equal to the Python type that names it.
        named = allowed(dtype) if dtype is float or dtype is complex else _unchanged(dtype)
        if family(named) not in ("float", "complex"):
            raise IllTyped("finfo takes an inexact dtype", found=str(named))
        self._limits = ml_dtypes.finfo(named)  # type: ignore[no-untyped-call]  # it has no types

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        value: object = getattr(self._limits, name)
        return float(value) if type(value) is np.float32 else value

    def __repr__(self) -> str:
        return repr(self._limits)

    def __str__(self) -> str:
        return str(self._limits)


def iinfo(dtype: DTypeLike) -> ml_dtypes.iinfo:
    """Return the limits of an integer dtype: ``min``, ``max``, ``bits``.

    >>> jnp.iinfo(jnp.int8).max
    127
    """
    named = allowed(dtype) if dtype is int else _unchanged(dtype)
    if family(named) not in ("int", "uint"):
        raise IllTyped("iinfo takes an integer dtype", found=str(named))
    return ml_dtypes.iinfo(named)  # type: ignore[no-untyped-call]  # ml_dtypes has no types


def _unchanged(dtype: object) -> DType:
    """Return the dtype named, whether 64-bit dtypes are enabled or not. Raises IllTyped."""
    try:
        return as_dtype(dtype)
    except TypeError:
        raise IllTyped(
            "invalid dtype",
            expected="a dtype, such as `numpy.float32` or 'float32'",
            found=f"{dtype!r:.80}",
        ) from None
