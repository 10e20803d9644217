"""References: mutable arrays, with NumPy's indexing for reads and writes.

``get`` and ``swap`` implement ``ref[i]`` and ``ref[i] = v``; ``addupdate`` adds in place;
``new_ref`` makes a reference and ``freeze`` ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast, final

import numpy as np

from effax import tree
from effax.arrays.assignment import fitted
from effax.arrays.device_array import Array, DeviceArray, DTypeLike, as_value
from effax.arrays.indexing import select
from effax.arrays.not_array import NotAnArray
from effax.arrays.operators import ops
from effax.effects import Rule
from effax.ir.dtypes import DType, family
from effax.ir.errors import ConcretizationError, IllTyped, RefError
from effax.ir.indexing import Mode
from effax.ir.prims import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.prims.common.operands import NUMBERS
from effax.ir.source import Source, caller
from effax.ir.syntax import Atom, Var
from effax.ir.trace import Trace, current_trace, shown_ref
from effax.ir.types import RefType, Shape, array_type, ref_type

__all__ = [
    "Ref",
    "RefAttributeError",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "swap",
]

if TYPE_CHECKING:
    from effax.arrays.ref_view import RefAt
    from effax.lowering.xla import Buffer


class RefAttributeError(RefError, AttributeError):
    """An attribute of arrays is asked of a reference."""


def _as_array_error(kind: type[RefError], what: str, ref: Ref) -> RefError:
    return kind.against(Rule.REF_AS_ARRAY, what, "an array", shown_ref(ref))


def consumed_error(ref: Ref, how: str) -> RefError:
    """The error for a reference that is used after its end."""
    return RefError.against(
        Rule.USE_AFTER_FREE,
        f"a reference is used after `{how}` consumed it",
        "a reference that was not consumed",
        shown_ref(ref),
    )


class Ref(NotAnArray):
    """A mutable array. ``Ref(init)`` makes one; ``isinstance`` holds for traced ones too."""

    __slots__ = ("__weakref__",)

    def __new__(cls, init: object = None, dtype: DTypeLike | None = None) -> Ref:
        if cls is Ref:
            return new_ref(init if dtype is None else ops.asarray(init, dtype))
        return object.__new__(cls)

    @property
    def type(self) -> RefType:
        """The type of the reference."""
        raise NotImplementedError

    @property
    def aval(self) -> RefType:
        """The type of the reference, under JAX's name."""
        return self.type

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return self.type.inner.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.type.inner.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.type.inner.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.type.inner.size

    @property
    def at(self) -> RefAt:
        """Views: ``ref.at[index]`` is read and written as a reference is."""
        from effax.arrays.ref_view import RefAt

        return RefAt(self)

    def __len__(self) -> int:
        if not self.shape:
            raise IllTyped("len() of a reference without axes", found=str(self.type))
        return self.shape[0]

    def __getitem__(self, index: object) -> Array:
        return get(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        _write(self, index, value)

    def addupdate(self, value: object, index: object = ...) -> None:
        """Add ``value`` to ``self[index]`` in place; duplicate positions all count."""
        addupdate(self, index, value)

    def get(self) -> Array:
        """The whole contents."""
        return get(self, ...)

    def set(self, value: object) -> None:
        """Replace the whole contents."""
        _write(self, ..., value)

    def swap(self, value: object, index: object = ...) -> Array:
        """Replace ``self[index]``; gives what was there."""
        return swap(self, index, value)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the contents, which stays. Raises ConcretizationError for a symbol."""
        raise ConcretizationError(
            "a traced reference has no address",
            expected="a reference outside of traced functions",
            found=str(self.type),
        )

    def _as_array(self, *args: object, **kwargs: object) -> np.ndarray:
        raise _as_array_error(RefError, "a reference is used as an array", self)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same reference. Raises RefError for a comparison with contents."""
        if isinstance(other, Array | np.ndarray | np.generic | int | float | complex):
            self._as_array()
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __format__(self, spec: str) -> str:
        if spec:
            self._as_array()
        return repr(self)

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(Array, name) and not name.startswith("__"):
            what = f"a reference has no `{name}`, which is an array's"
            raise _as_array_error(RefAttributeError, what, self)
        raise AttributeError(f"a reference has no attribute {name}")


@final
class TracedRef(Ref):
    """A symbol: a reference of a program that is being traced."""

    __slots__ = ("atom", "trace")

    def __init__(self, trace: Trace, atom: Atom) -> None:
        self.trace: Trace = trace
        self.atom: Atom = atom

    def __new__(cls, trace: Trace, atom: Atom) -> TracedRef:
        return object.__new__(cls)

    @property
    def type(self) -> RefType:
        return self.atom.type  # type: ignore[return-value]  # handles of arrays are TracedArrays

    def __repr__(self) -> str:
        return f"Traced<{self.atom.type}> in {self.trace.label}"


@final
class EagerRef(Ref):
    """A reference with memory: NumPy's until XLA first needs it, a device buffer from then on.

    Eager writes go straight into that memory. A buffer's address does not change afterwards,
    since a compiled program that updates the reference gets its memory and gives it back.
    """

    __slots__ = ("_buffer", "_ended", "_memory", "_type", "made_at")

    _memory: np.ndarray | None
    """The memory, writable; None after the end, and until a compiled call's new buffer is seen."""
    _buffer: Buffer | None
    _ended: str | None
    _type: RefType
    made_at: Source | None

    def __init__(self, *_: object) -> None:
        """Everything is set by :func:`eager_ref`."""

    @property
    def type(self) -> RefType:
        return self._type

    def check_usable(self) -> None:
        """Raises RefError where the reference was consumed."""
        if self._ended is not None:
            raise consumed_error(self, self._ended)

    def memory(self) -> np.ndarray:
        """The writable memory of the contents. Raises RefError after the reference's end."""
        if self._memory is None:
            self.check_usable()
            from effax.lowering import xla

            assert self._buffer is not None
            self._memory = xla.raw_view(self._buffer)
        return self._memory

    def read_now(self) -> np.ndarray:
        """A copy of the contents."""
        return np.array(self.memory())

    def pinned(self) -> Buffer:
        """The buffer of the contents, made now where XLA did not need it before."""
        self.check_usable()
        if self._buffer is None:
            from effax.lowering import xla

            self.replace_buffer(xla.new_ref_buffer(self.memory()))
        assert self._buffer is not None
        return self._buffer

    def replace_buffer(self, buffer: Buffer) -> None:
        """Take the buffer that a compiled program gave back for this reference.

        Where the memory is (the same place as before, unless somebody holds a view of the old
        buffer) is asked when it is next needed, and not in the call.
        """
        self._buffer = buffer
        self._memory = None

    def end(self, how: str) -> DeviceArray:
        """Consume the reference; gives its contents, which nobody writes to from now on."""
        contents = self.memory()
        contents.setflags(write=False)
        buffer = self._buffer
        self._ended = how
        self._memory = self._buffer = None
        if buffer is None:
            return DeviceArray(contents.view(), self._type.inner)
        return DeviceArray(None, self._type.inner, buffer)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the contents, the same for the reference's whole life from now on."""
        from effax.lowering import xla

        return xla.pointer(self.pinned())

    def __getitem__(self, index: object) -> Array:
        if type(index) is int and current_trace() is None:
            memory = self._memory
            if memory is None:
                memory = self.memory()
            if memory.ndim == 1 and -len(memory) <= index < len(memory):
                return DeviceArray(np.array(memory[index]), array_type((), memory.dtype))
        return get(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        if type(index) is int and current_trace() is None:
            memory = self._memory
            if memory is None:
                memory = self.memory()
            if memory.ndim == 1 and -len(memory) <= index < len(memory):
                kind = type(value)
                if (kind is float or kind is int) and memory.dtype.kind == "f":
                    memory[index] = value
                    return
                if kind is DeviceArray:
                    array = cast(DeviceArray, value).numpy()
                    if array.dtype == memory.dtype and not array.shape:
                        memory[index] = array
                        return
        _write(self, index, value)

    def __repr__(self) -> str:
        if self._ended is not None:
            return f"Ref(<consumed by {self._ended}>)"
        shown = np.array2string(self.memory(), separator=", ", prefix="Ref(")
        return f"Ref({shown}, dtype={self.dtype})"

    def __reduce__(self) -> tuple[object, ...]:
        return (eager_ref, (self.read_now(),))

    def __deepcopy__(self, memo: dict[int, object]) -> EagerRef:
        return eager_ref(self.read_now())

    def __copy__(self) -> EagerRef:
        return self


def eager_ref(memory: np.ndarray) -> EagerRef:
    """A reference that takes over this memory, which nobody else holds."""
    made = object.__new__(EagerRef)
    made._memory = memory
    made._buffer = None
    made._ended = None
    made._type = ref_type(array_type(memory.shape, memory.dtype))
    made.made_at = caller()
    return made


def _nested_error(ref: Ref) -> RefError:
    rule = Rule.REF_TO_REF
    what = f"a reference cannot hold {rule.forbids}"
    return RefError.against(rule, what, "an array", shown_ref(ref))


def new_ref(init: object) -> Ref:
    """A new reference that holds a copy of ``init``, an array or a number.

    Raises:
        RefError: ``init`` is itself a reference.
    """
    nested = tree.leaves(init) if isinstance(init, list | tuple | dict) else [init]
    for x in nested:
        if isinstance(x, Ref):
            raise _nested_error(x)
    value = as_value(init, "the initial value of a reference")
    return cast(Ref, _bind.bind(NewRef(), value)[0])


def empty_ref(shape: Shape, dtype: DTypeLike | None = None) -> Ref:
    """A new reference whose contents are not defined before they are written."""
    inner = array_type(shape, ops.default_dtype(dtype))
    return cast(Ref, _bind.bind(EmptyRef(inner))[0])


def freeze(ref: Ref) -> Array:
    """End a reference and give its final contents, which never change afterwards.

    Raises:
        RefError: the reference was consumed before, or was not made here.
    """
    _check_ref(ref, "freeze")
    _check_own(ref, "freeze")
    if isinstance(ref, EagerRef):
        return ref.end("freeze")
    assert isinstance(ref, TracedRef)
    contents = _bind.bind1(Freeze(), ref)
    ref.trace.consumed[cast(Var, ref.atom).id] = "freeze"
    return contents


def free_ref(ref: Ref) -> None:
    """End a reference. Raises RefError as :func:`freeze` does."""
    _check_ref(ref, "free_ref")
    _check_own(ref, "free_ref")
    if isinstance(ref, EagerRef):
        ref.end("free_ref")
        return
    assert isinstance(ref, TracedRef)
    _bind.bind(FreeRef(), ref)
    ref.trace.consumed[cast(Var, ref.atom).id] = "free_ref"


def _check_own(ref: Ref, what: str) -> None:
    trace = current_trace()
    own = ref.trace is trace and _made_in(ref) if isinstance(ref, TracedRef) else trace is None
    if not own:
        raise RefError.against(
            Rule.FOREIGN_FREE,
            f"{what} of a reference outside of the scope that made it",
            "a reference made in the same function",
            shown_ref(ref),
        )


def _made_in(ref: TracedRef) -> bool:
    return ref.atom not in ref.trace.builder.binders


def _check_ref(ref: object, what: str) -> None:
    if not isinstance(ref, Ref):
        raise IllTyped(
            f"{what} takes a reference",
            expected="a Ref",
            found=type(ref).__name__,
            remedy="make one with `new_ref`",
        )


def get(ref: Ref, index: object = ...) -> Array:
    """``ref[index]`` for an index as NumPy's. Positions that are only known later are clamped."""
    _check_ref(ref, "get")
    at = select(ref.shape, index, Mode.CLIP, True, "a reference")
    return at.outward(_bind.bind1(Get(at.indexer), ref, *at.operands))


def swap(ref: Ref, index: object, value: object) -> Array:
    """Write ``ref[index] = value`` and give what was there.

    Positions that turn out to be outside are not written, and what is read there is clamped.
    """
    _check_ref(ref, "swap")
    at = select(ref.shape, index, Mode.DROP, True, "a reference")
    filled = fitted(at, ref.dtype, value, "the reference")
    if not at.operands:
        old = _bind.bind1(Swap(at.indexer), ref, filled, *at.operands)
    else:
        old = _bind.bind1(Get(at.indexer._replace(mode=Mode.CLIP)), ref, *at.operands)
        _bind.bind(Swap(at.indexer), ref, filled, *at.operands)
    return at.outward(old)


def _write(ref: Ref, index: object, value: object) -> None:
    _check_ref(ref, "a write")
    at = select(ref.shape, index, Mode.DROP, True, "a reference")
    _bind.bind(Swap(at.indexer), ref, fitted(at, ref.dtype, value, "the reference"), *at.operands)


def addupdate(ref: Ref, index: object, value: object) -> None:
    """``ref[index] += value`` in place; duplicate positions all count, outside ones do not."""
    _check_ref(ref, "addupdate")
    if family(ref.dtype) not in NUMBERS:
        raise IllTyped("only numbers can be added in place", found=str(ref.type))
    at = select(ref.shape, index, Mode.DROP, True, "a reference")
    _bind.bind(
        AddUpdate(at.indexer), ref, fitted(at, ref.dtype, value, "the reference"), *at.operands
    )


# Binding needs the classes above.
from effax.arrays import binding as _bind  # noqa: E402
