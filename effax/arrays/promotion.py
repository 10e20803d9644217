"""Promotion of the dtypes of operands, and broadcast of their shapes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.binding import Operand, bind1
from effax.arrays.config import allowed, config
from effax.arrays.conversion import (
    as_value,
    is_python_scalar,
    not_an_array,
    own_array,
    python_kind,
)
from effax.arrays.device_array import DeviceArray
from effax.arrays.placed import on_device
from effax.arrays.traced_array import TracedArray
from effax.ir import sizes
from effax.ir.build import lit
from effax.ir.dtypes import (
    FAMILY_RANKS,
    FLOAT0,
    DType,
    family,
    int_bounds,
    is_complex,
    is_inexact_dtype,
    is_integer,
    promote,
)
from effax.ir.errors import IllTyped, NotFitting
from effax.ir.prims import BroadcastInDim, ConvertElementType, Copy, Real, Reshape
from effax.ir.state import cached
from effax.ir.symbolic import SymbolicDim
from effax.ir.syntax import Atom, Lit, Scalar
from effax.ir.types import ArrayType, Shape, Type, array_type


@cached(maxsize=4096)
def _kept_literal(value: Scalar, kind: str, type_: ArrayType) -> Lit:
    return lit(value, type_)


def literal(value: Scalar, type_: ArrayType) -> Lit:
    """Return a typed scalar constant. Raises NotFitting where it overflows the dtype."""
    if value == 0 or type(value) is complex:
        # Zeros of either sign are equal, and would share one entry of a cache.
        return lit(value, type_)
    if type(value) is int and type_.dtype.kind in "iu":
        low, high = int_bounds(type_.dtype)
        if not low <= value <= high:
            raise NotFitting(
                f"the Python integer {value} does not fit",
                expected=f"{low} to {high}, for {type_.dtype}",
                found=str(value),
                remedy="pass an explicit dtype, or enable 64-bit dtypes",
            )
    return _kept_literal(value, type(value).__name__, type_)


def operand_kind(x: object, what: str) -> tuple[DType, bool]:
    """Return the dtype of an operand and whether it is weak. Raises IllTyped for other values."""
    if isinstance(x, Array):
        type_ = x.type
        return type_.dtype, type_.weak
    if is_python_scalar(x):
        return allowed(python_kind(x)), not isinstance(x, bool)
    if isinstance(x, np.ndarray | np.generic):
        return allowed(x.dtype, of_value=True), False
    if isinstance(x, SymbolicDim):
        return np.dtype(np.int32), True
    own = own_array(x)
    if own is not None:
        return operand_kind(own, what)
    raise not_an_array(x, what)


def shape_of(x: object) -> Shape:
    """Return the shape of an operand."""
    if isinstance(x, Array | np.ndarray | np.generic):
        return tuple(x.shape)
    own = own_array(x)
    return () if own is None else shape_of(own)


def common_dtype(operands: Sequence[object], what: str) -> tuple[DType, bool]:
    """Return the promoted dtype of operands and whether it is weak. Raises IllTyped."""
    kinds = [operand_kind(x, f"operand {i} of {what}") for i, x in enumerate(operands)]
    if config.numpy_dtype_promotion == "strict":
        _check_strict(kinds, what)
    try:
        return promote(kinds, config.enable_x64)
    except TypeError as error:
        raise IllTyped(f"{what}: {error}", found=", ".join(str(d) for d, _ in kinds)) from None


def _check_strict(kinds: Sequence[tuple[DType, bool]], what: str) -> None:
    """Raise IllTyped unless the strong dtypes are equal, and the weak ones keep their kind."""
    strong = {dtype for dtype, weak in kinds if not weak}
    kept = all(_keeps_kind(dtype, s) for dtype, weak in kinds if weak for s in strong)
    if len(strong) > 1 or not kept:
        raise IllTyped(
            f"{what}: the dtypes differ, and promotion of dtypes is strict",
            expected="one dtype, and numbers of weak type and the same kind",
            found=", ".join(f"{dtype}{' (weak)' * weak}" for dtype, weak in kinds),
            remedy="convert operands: `.astype(...)`; or `numpy_dtype_promotion('standard')`",
        )


def in_common_dtype(
    operands: Sequence[ArrayLike], what: str, must_be_inexact: bool = False
) -> list[Array]:
    """Return operands in their common dtype, or the inexact one for it. Raises IllTyped."""
    dtype, weak = common_dtype(operands, what)
    if must_be_inexact:
        dtype, weak = inexact(dtype, weak)
    return [converted(as_value(x), dtype, weak) for x in operands]


def inexact(dtype: DType, weak: bool) -> tuple[DType, bool]:
    """Return the inexact dtype in which functions of real numbers take values of ``dtype``."""
    return (dtype, weak) if is_inexact_dtype(dtype) else (allowed(float), weak)


def converted(x: Array, dtype: DType, weak: bool) -> Array:
    """Return an array in this dtype and weakness."""
    type_ = x.type
    if type_.dtype == dtype and type_.weak == weak:
        return x
    if type(x) is DeviceArray and type_.dtype == dtype:
        return DeviceArray(x.numpy().view(), array_type(type_.shape, dtype, weak))
    if isinstance(x, TracedArray) and isinstance(x.atom, Lit) and _holds(dtype, x.atom.value):
        return TracedArray(x.owner, lit(x.atom.value, array_type((), dtype, weak)))
    return bind1(ConvertElementType(dtype, weak), x)


def _holds(dtype: DType, value: Scalar) -> bool:
    """Return whether a dtype represents a constant without truncation or wrap-around."""
    match family(dtype):
        case "int" | "uint":
            low, high = int_bounds(dtype)
            return isinstance(value, int) and low <= value <= high
        case "float":
            return not isinstance(value, complex)
        case "complex":
            return True
        case _:
            return isinstance(value, bool)


def yields(
    have: ArrayType,
    dtype: DType,
    value: Operand | Atom | np.ndarray | None = None,
    rounds: bool = False,
) -> bool:
    """Return whether a value of weak type promotes to a dtype without loss.

    The kind is kept: a boolean is not a number, and a float no integer. A known value promotes if
    it is in the range of the dtype, an unknown one if the dtype is above its own in the lattice.

    Args:
        have: type of the value.
        dtype: dtype that is asked for.
        value: the value, where there is one.
        rounds: whether an unknown number may be rounded to a narrower dtype.
    """
    if not have.weak or not _keeps_kind(have.dtype, dtype):
        return False
    known = known_value(value)
    if known is not None:
        return _in_range(dtype, known)
    # An integer of weak type is a Python number, of 64 bits only where these are enabled.
    if rounds and (is_inexact_dtype(dtype) or dtype == np.dtype(np.int32)):
        return True
    try:
        return promote([(have.dtype, False), (dtype, False)], config.enable_x64)[0] == dtype
    except TypeError:
        return have.dtype == dtype


def _keeps_kind(have: DType, want: DType) -> bool:
    a, b = family(have), family(want)
    return a == b or (a != "bool" and 0 < FAMILY_RANKS[a] <= FAMILY_RANKS.get(b, 0))


def known_value(x: Operand | Atom | np.ndarray | None) -> np.ndarray | None:
    """Return the value of an array or an atom if it is known while a function is traced."""
    if isinstance(x, TracedArray):
        x = x.atom
    if isinstance(x, Lit):
        return np.asarray(x.value)
    if isinstance(x, DeviceArray):
        return x.numpy()
    return x if isinstance(x, np.ndarray) else None


def _in_range(dtype: DType, value: np.ndarray) -> bool:
    """Return whether values are in the range of a dtype that keeps their kind."""
    if is_integer(dtype):
        low, high = int_bounds(dtype)
        return not value.size or (low <= int(value.min()) and int(value.max()) <= high)
    with np.errstate(over="ignore"):
        return bool(np.all(np.isfinite(value.astype(dtype)) | ~np.isfinite(value)))


def promoted(x: ArrayLike, dtype: DType, what: str) -> Array:
    """Return a value in a dtype that it promotes to without loss. Raises IllTyped otherwise."""
    value = as_value(x, what)
    have = value.type
    if have.dtype != dtype and not yields(have, dtype, value):
        raise IllTyped(
            f"{what} has another dtype, and would lose its value or its kind",
            expected=str(dtype),
            found=_shown(have, value),
            remedy=f"convert it: `.astype('{dtype}')`",
        )
    return converted(value, dtype, False)


def _shown(have: ArrayType, value: Array) -> str:
    known = known_value(value)
    return str(have) if known is None or known.size > 8 else f"{known.tolist()}, of {have}"


def typed(x: object, dtype: DType, weak: bool, what: str) -> Array | Lit:
    """Return an operand in this dtype; a Python scalar becomes a constant."""
    if is_python_scalar(x):
        return literal(x, array_type((), dtype, weak))
    return in_dtype(as_value(x, what), dtype, weak, what)


def in_dtype(x: Array, dtype: DType, weak: bool, what: str) -> Array:
    """Return an operand in the dtype that promotion yields for it and others.

    Raises BadArgument where it is a weakly typed integer of known value that does not fit.
    """
    have = x.type
    if have.weak and have.dtype != dtype and is_integer(have.dtype) and is_integer(dtype):
        _check_range(x, dtype, what)
    return converted(x, dtype, weak)


def _check_range(value: Array, dtype: DType, what: str) -> None:
    """Raise NotFitting where a weak integer of known value does not fit, as a Python integer."""
    known = known_value(value)
    if known is not None and not _in_range(dtype, known):
        low, high = int_bounds(dtype)
        raise NotFitting(
            f"{what} is weakly typed, and does not fit",
            expected=f"{low} to {high}, for {dtype}",
            found=_shown(value.type, value),
            remedy="convert it: `.astype(...)`",
        )


def broadcast_shapes(shapes: Sequence[Shape], what: str) -> Shape:
    """Return the broadcast shape by NumPy's rule. Raises IllTyped where there is none."""
    first = shapes[0] if shapes else ()
    if all(s == first for s in shapes):
        return first
    try:
        return sizes.joint_shape(shapes)
    except ValueError:
        raise IllTyped(
            f"{what} has operands whose shapes do not broadcast",
            expected="equal sizes, or size 1, on each axis counted from the last",
            found=", ".join(map(str, shapes)),
        ) from None


def check_ranks(shapes: Sequence[Shape], what: str) -> None:
    """Raise IllTyped or warn where shapes of different ranks broadcast and the setting forbids it.

    Scalars broadcast always.
    """
    allowed_ranks = config.numpy_rank_promotion
    if allowed_ranks == "allow" or len({len(s) for s in shapes if s}) < 2:
        return
    message = f"{what} has operands of different ranks"
    found = ", ".join(map(str, shapes))
    if allowed_ranks == "raise":
        raise IllTyped(
            f"{message}, and numpy_rank_promotion is 'raise'",
            expected="shapes of one rank",
            found=found,
            remedy="insert axes: `x[None, :]`; or `numpy_rank_promotion('allow')`",
        )
    warnings.warn(f"{message}, which broadcast: {found}", stacklevel=5)


def broadcast(x: Array | Lit, shape: Shape) -> Array | Lit:
    """Return an operand in that shape; a scalar is returned unchanged, since it fits any."""
    have = x.type.shape
    if have == shape or not have:
        return x
    return bind1(BroadcastInDim(shape, tuple(range(len(shape) - len(have), len(shape)))), x)


def to_shape(x: Operand, shape: Shape) -> Array:
    """Return ``x`` broadcast to ``shape``, unchecked."""
    have = x.type.shape
    if have == shape and isinstance(x, Array):
        return x
    extra = len(have) - len(shape)
    if extra > 0:
        x = bind1(Reshape(have[extra:]), x)
        have = have[extra:]
    return bind1(BroadcastInDim(shape, tuple(range(len(shape) - len(have), len(shape)))), x)


def brought_together(
    operands: Sequence[object], what: str, dtype: DType, weak: bool
) -> list[Array | Lit]:
    """Return the operands in one dtype and in shapes that elementwise primitives take.

    A weak operand of the right dtype stays weak: the result is weak only where all operands are.
    """
    typed_ones = [
        x
        if isinstance(x, Array) and x.type.dtype == dtype
        else typed(x, dtype, weak, f"operand {i} of {what}")
        for i, x in enumerate(operands)
    ]
    shapes = [x.type.shape for x in typed_ones]
    if len({s for s in shapes if s}) > 1:
        check_ranks(shapes, what)
        full = broadcast_shapes(shapes, what)
        return [broadcast(x, full) for x in typed_ones]
    return typed_ones


_PYTHON_NUMBERS: Final = (bool, int, float, complex)


def default_dtype(dtype: DTypeLike | None, kind: type = float) -> DType:
    """Return the requested dtype, or the default one of Python's ``kind``."""
    return allowed(kind if dtype is None else dtype)


def dtype_of(x: object) -> tuple[DType, bool]:
    """Return the dtype of a value or of a name, and whether it is weak."""
    if isinstance(x, Array):
        return x.dtype, x.weak_type
    if isinstance(x, Type):
        return x.dtype, bool(getattr(x, "weak", False))
    if is_python_scalar(x):
        return allowed(python_kind(x)), not isinstance(x, bool)
    own = own_array(x)
    if own is not None:
        return dtype_of(own)
    if x in _PYTHON_NUMBERS if isinstance(x, type) else False:
        return allowed(x), x is not bool
    if isinstance(x, np.ndarray | np.generic):
        return allowed(x.dtype, of_value=True), False
    return allowed(x), False


_SCALAR_TYPES: Final = {
    "bool": bool, "int": int, "uint": int, "float": float, "complex": complex,
}  # fmt: skip


def scalar_type_of(x: object) -> type:
    """Return the type of Python's numbers for a value or a dtype.

    Raises:
        IllTyped: ``x`` is neither, or has no numbers.

    >>> effax.dtypes.scalar_type_of(jnp.bfloat16(1))
    <class 'float'>
    """
    dtype, _ = dtype_of(x)
    kind = _SCALAR_TYPES.get(family(dtype))
    if kind is None:
        raise IllTyped("this dtype is not one of numbers", found=str(dtype))
    return kind


def copied(x: Array) -> Array:
    """Return an array of its own: the memory of ``x`` may be donated or deleted later."""
    if type(x) is DeviceArray:
        # A donation copies memory of which there is a view.
        return DeviceArray(x.numpy().view(), x.type)
    return bind1(Copy(), x)


def astype(
    x: ArrayLike, dtype: DTypeLike | None, copy: bool = False, *, device: object = None
) -> Array:
    """Return ``x`` converted to another dtype; complex to real drops the imaginary part.

    Args:
        x: array or scalar.
        dtype: dtype of the result; None is float32.
        copy: whether to copy an array even if nothing changes.
        device: the first device, its platform, or a sharding over it; None is the first.

    Returns:
        Array of the shape of ``x``.

    >>> jnp.astype(jnp.array([1.7]), jnp.int32)
    Array([1], dtype=int32)
    """
    target = allowed(dtype) if dtype is not None else default_dtype(None)
    value = on_device(as_value(x, "the operand of astype"), device, "astype")
    if target == FLOAT0 != value.dtype:
        return bind1(BroadcastInDim(value.shape, ()), lit(0.0, array_type((), FLOAT0)))
    if is_complex(value.dtype) and not is_complex(target) and family(target) != "bool":
        value = bind1(Real(), value)
    made = converted(value, target, False)
    return copied(made) if copy and made is x else made
