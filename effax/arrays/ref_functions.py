"""Functions of references: creation, reads, writes, accumulation and the end of a reference.

``get`` and ``write_ref`` implement ``ref[i]`` and ``ref[i] = v``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

import numpy as np

from effax import tree
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.assignment import cast_for_update
from effax.arrays.at_indices import traced_mask
from effax.arrays.augmented import ReadOfPart, as_read, summand
from effax.arrays.axes import ShapeLike, plain_shape
from effax.arrays.binding import atom_in, bind, bind1
from effax.arrays.conversion import as_value
from effax.arrays.indexing import Selection, select
from effax.arrays.operators import ops
from effax.arrays.placed_array import PlacedArray
from effax.arrays.placed_ref import placed_ref
from effax.arrays.ref import EagerRef, Ref, TracedRef
from effax.effects import Rule
from effax.ir.dtypes import DType, family
from effax.ir.errors import BadArgument, EffaxError, IllTyped, RefError
from effax.ir.indexing import Mode
from effax.ir.prims import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, StopGradient, Swap
from effax.ir.prims.common.operands import NUMBERS
from effax.ir.syntax import Var
from effax.ir.trace import current_trace, shown_ref
from effax.ir.types import RefKind, Shape, array_type


def _nested_error(ref: Ref) -> RefError:
    rule = Rule.REF_TO_REF
    what = f"a reference cannot hold {rule.forbids}"
    return RefError.against(rule, what, "an array", shown_ref(ref))


def new_ref(
    init_val: object,
    *,
    memory_space: None = None,
    kind: str | None = None,
    pin: bool = False,
) -> Ref:
    """Return a new reference with a copy of ``init_val``, an array or a number.

    Args:
        init_val: the initial contents; where they are placed on devices, so is the reference, and
            each device updates its part in place.
        memory_space: None: the memory of the device.
        kind: ``"no_grad_no_remat"`` for a reference that takes no part in differentiation and
            rematerialization: values written to it are constants of derivatives, and a function
            under ``checkpoint`` may change it, which happens once.
        pin: has no effect: a reference keeps its buffer.

    Raises:
        RefError: ``init_val`` is itself a reference.
        BadArgument: the kind or the memory does not exist.

    >>> steps = jax.new_ref(0.0, kind="no_grad_no_remat")
    >>> @jax.checkpoint
    ... def counted(x):
    ...     steps[...] += 1
    ...     return jnp.sin(x)
    >>> jax.grad(counted)(0.0), steps[...]
    (Array(1., dtype=float32, weak_type=True), Array(1., dtype=float32))
    """
    _check_options(memory_space, pin, "new_ref")
    if kind not in _KINDS:
        raise BadArgument(
            "new_ref: unknown kind of reference",
            expected="None or 'no_grad_no_remat'",
            found=repr(kind),
        )
    nested = tree.leaves(init_val) if isinstance(init_val, list | tuple | dict) else [init_val]
    for x in nested:
        if isinstance(x, Ref):
            raise _nested_error(x)
    value = as_value(init_val, "the initial value of a reference")
    if kind is not None:
        value = bind1(StopGradient(), value)
    if type(value) is PlacedArray and current_trace() is None:
        return placed_ref(value, _KINDS[kind])
    return cast(Ref, bind(NewRef(_KINDS[kind]), value)[0])


_KINDS: Final = {None: RefKind.ARRAY, "no_grad_no_remat": RefKind.NO_GRAD_NO_REMAT}


def _check_options(memory_space: object, pin: object, what: str) -> None:
    if memory_space is not None:
        raise BadArgument(
            f"{what}: a reference is in the memory of its device",
            expected="memory_space=None",
            found=repr(memory_space),
        )
    if not isinstance(pin, bool):
        raise BadArgument(f"{what}: pin is a boolean", found=repr(pin))


class HasType(Protocol):
    """An array, a ``ShapeDtypeStruct`` or another value with a shape and a dtype."""

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        ...

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        ...


def empty_ref(
    shape: ShapeLike | HasType,
    dtype: DTypeLike | None = None,
    *,
    memory_space: None = None,
    pin: bool = False,
) -> Ref:
    """Return a new reference, whose contents are undefined before they are written.

    Args:
        shape: size or sizes, or a value that has a shape and a dtype, whose elements are not read.
        dtype: dtype of the elements; by default that of ``shape``, else float32.
        memory_space: None: the memory of the device.
        pin: has no effect: a reference keeps its buffer.

    Raises:
        RefError: ``shape`` is itself a reference.

    >>> jax.empty_ref(jax.ShapeDtypeStruct((2,), "int32")).aval
    Ref{i32[2]}
    """
    _check_options(memory_space, pin, "empty_ref")
    if isinstance(shape, Ref):
        raise _nested_error(shape)
    if not isinstance(shape, int | np.integer | Sequence):
        dtype = shape.dtype if dtype is None else dtype
        shape = shape.shape
    sizes = plain_shape(shape, "empty_ref")
    return cast(Ref, bind(EmptyRef(array_type(sizes, ops.default_dtype(dtype))))[0])


def freeze(ref: Ref) -> Array:
    """End a reference and return its final contents, which never change afterwards.

    Raises:
        RefError: the reference was consumed before, or was created in another scope.
    """
    _check_ref(ref, "freeze")
    _check_own(ref, "freeze")
    if isinstance(ref, EagerRef):
        return ref.end("freeze")
    assert isinstance(ref, TracedRef)
    contents = bind1(Freeze(), ref)
    ref.owner.consumed[cast(Var, ref.atom).id] = "freeze"
    return contents


def free_ref(ref: Ref) -> None:
    """End a reference. Raises RefError as :func:`freeze` does."""
    _check_ref(ref, "free_ref")
    _check_own(ref, "free_ref")
    if isinstance(ref, EagerRef):
        ref.end("free_ref")
        return
    assert isinstance(ref, TracedRef)
    bind(FreeRef(), ref)
    ref.owner.consumed[cast(Var, ref.atom).id] = "free_ref"


def is_local(ref: Ref) -> bool:
    """Return whether the current function made the reference."""
    trace = current_trace()
    return ref.owner is trace and _made_in(ref) if isinstance(ref, TracedRef) else trace is None


def _check_own(ref: Ref, what: str) -> None:
    if not is_local(ref):
        raise RefError.against(
            Rule.FOREIGN_FREE,
            f"{what} of a reference outside of the scope that made it",
            "a reference made in the same function",
            shown_ref(ref),
        )


def _made_in(ref: TracedRef) -> bool:
    return ref.atom not in ref.owner.builder.binders


def _check_ref(ref: object, what: str) -> None:
    if not isinstance(ref, Ref):
        raise IllTyped(
            f"{what} takes a reference",
            expected="a Ref",
            found=type(ref).__name__,
            remedy="make one with `new_ref`",
        )


def _select(ref: Ref, index: object, mode: Mode) -> Selection:
    """Resolve an index; errors name the reference."""
    try:
        return select(ref.shape, index, mode, True, "a reference")
    except EffaxError as error:
        raise _about(error, ref) from None


def _filled(ref: Ref, at: Selection, value: object) -> Array:
    """Convert a value to the part of a reference that is written; errors name the reference."""
    try:
        filled = cast_for_update(at, ref.dtype, value, "the reference")
    except EffaxError as error:
        raise _about(error, ref) from None
    if ref.type.kind is RefKind.NO_GRAD_NO_REMAT:
        return bind1(StopGradient(), filled)
    return filled


def _about(error: EffaxError, ref: Ref) -> EffaxError:
    """Return the error with the reference: its name, its type, the line that made it."""
    error.found = f"{error.found or 'a use'} ({shown_ref(ref)})"
    return error


def get(ref: Ref, index: object = ...) -> Array:
    """Return ``ref[index]`` for an index as in NumPy. Traced positions are clamped."""
    _check_ref(ref, "get")
    trace = current_trace()
    first = 0 if trace is None else len(trace.builder.eqns)
    at = _select(ref, index, Mode.CLIP)
    found = at.outward(bind1(Get(at.indexer), ref, *at.operands))
    if trace is None:
        return found
    var = cast(Var, atom_in(trace, ref))
    return as_read(found, ReadOfPart(ref, var, (index,), at, first, len(trace.builder.eqns)))


def swap(ref: Ref, index: object, value: object) -> Array:
    """Write ``ref[index] = value`` and return the old elements.

    Traced positions out of bounds are not written, and clamped when read.
    """
    _check_ref(ref, "swap")
    at = _select(ref, index, Mode.DROP)
    filled = _filled(ref, at, value)
    if at.is_nothing:
        old = get(ref)
    elif not at.operands:
        old = bind1(Swap(at.indexer), ref, filled, *at.operands)
    else:
        old = bind1(Get(at.indexer._replace(mode=Mode.CLIP)), ref, *at.operands)
        bind(Swap(at.indexer), ref, filled, *at.operands)
    return at.outward(old)


def write_ref(ref: Ref, index: object, value: object) -> None:
    """Write ``ref[index] = value``; traced positions out of bounds are not written.

    The sum of a read of these elements and another value is accumulated.
    """
    _check_ref(ref, "a write")
    total = summand(ref, (index,), value)
    if total is not None:
        accumulate(ref, index, total.value, total.negated)
        return
    if traced_mask(index, ref.shape) is not None:
        index, value = ..., ops.at(get(ref))[index].set(cast(ArrayLike, value))
    at = _select(ref, index, Mode.DROP)
    filled = _filled(ref, at, value)
    if not at.is_nothing:
        bind(Swap(at.indexer), ref, filled, *at.operands)


def addupdate(ref: Ref, index: object, value: object) -> None:
    """Add ``value`` to ``ref[index]`` in place; repeated positions accumulate.

    Traced positions out of bounds are ignored.
    """
    _check_ref(ref, "addupdate")
    if family(ref.dtype) not in NUMBERS:
        raise IllTyped("only numbers can be added in place", found=str(ref.type))
    if traced_mask(index, ref.shape) is not None:
        zeros = ops.filled(ref.shape, 0, array_type((), ref.dtype))
        index, value = ..., ops.at(zeros)[index].set(cast(ArrayLike, value))
    accumulate(ref, index, value)


def accumulate(ref: Ref, index: object, value: object, negated: bool = False) -> None:
    """Add a value of the dtype's kind, or its negative, to ``ref[index]``."""
    if negated and isinstance(value, int | float) and family(ref.dtype) == "float":
        value, negated = -float(value), False
    at = _select(ref, index, Mode.DROP)
    filled = _filled(ref, at, value)
    if negated:
        filled = ops.negative(filled)
    if not at.is_nothing:
        bind(AddUpdate(at.indexer), ref, filled, *at.operands)
