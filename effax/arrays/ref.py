"""References: mutable arrays, with NumPy's indexing for reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast, final

import numpy as np

from effax.arrays.array import Array, DTypeLike
from effax.arrays.device_array import DeviceArray
from effax.arrays.exclusive import Ticket, exclusively, is_taken_here
from effax.arrays.not_array import NotAnArray
from effax.arrays.operators import ops
from effax.effects import Rule
from effax.ir.dtypes import DType
from effax.ir.errors import ConcretizationError, IllTyped, RefError
from effax.ir.source import Source, caller
from effax.ir.syntax import Atom
from effax.ir.trace import Trace, current_trace, shown_ref
from effax.ir.types import RefKind, RefType, Shape, array_type, ref_type
from effax.lowering.xla import first_device

if TYPE_CHECKING:
    from effax.arrays.ref_view import RefAt
    from effax.arrays.sharding import Sharding
    from effax.lowering.xla import Buffer


class RefAttributeError(RefError, AttributeError):
    """The error for an attribute of arrays that a reference lacks."""


def _as_array_error(kind: type[RefError], what: str, ref: Ref) -> RefError:
    return kind.against(Rule.REF_AS_ARRAY, what, "an array", shown_ref(ref))


def consumed_error(ref: Ref, how: str) -> RefError:
    """Return the error for a reference that is used after its end."""
    return RefError.against(
        Rule.USE_AFTER_FREE,
        f"a reference is used after `{how}` consumed it",
        "a reference that was not consumed",
        shown_ref(ref),
    )


class Ref(NotAnArray):
    """A mutable array. ``Ref(init)`` creates one; traced references are instances too."""

    __slots__ = ("__weakref__",)

    def __new__(cls, init: object = None, dtype: DTypeLike | None = None) -> Ref:
        if cls is Ref:
            return ops.new_ref(init if dtype is None else ops.asarray(init, dtype))
        return object.__new__(cls)

    @property
    def type(self) -> RefType:
        """The type of the reference."""
        raise NotImplementedError

    @property
    def aval(self) -> RefType:
        """Return the type of the reference, under JAX's name."""
        return self.type

    @property
    def shape(self) -> Shape:
        """Return the sizes of the axes."""
        return self.type.inner.shape

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.type.inner.dtype

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.type.inner.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.type.inner.size

    @property
    def sharding(self) -> Sharding:
        """Return the sharding of the contents: the first device, unless they are on several."""
        from effax.arrays.sharding import SingleDeviceSharding

        return SingleDeviceSharding(first_device())

    @property
    def at(self) -> RefAt:
        """Return the views: ``ref.at[index]`` is read and written like a reference."""
        return ops.ref_at(self)

    def __len__(self) -> int:
        if not self.shape:
            raise IllTyped("len() of a reference without axes", found=str(self.type))
        return self.shape[0]

    def __getitem__(self, index: object) -> Array:
        return ops.get_ref(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        ops.write_ref(self, index, value)

    def addupdate(self, value: object, index: object = ...) -> None:
        """Add ``value`` to ``self[index]`` in place; repeated positions accumulate."""
        ops.addupdate_ref(self, index, value)

    def get(self, index: object = ...) -> Array:
        """Return ``self[index]``, by default the contents."""
        return ops.get_ref(self, index)

    def set(self, value: object, index: object = ...) -> None:
        """Replace ``self[index]``, by default the contents."""
        ops.write_ref(self, index, value)

    def swap(self, value: object, index: object = ...) -> Array:
        """Replace ``self[index]``; return the old elements."""
        return ops.swap_ref(self, index, value)

    def unsafe_buffer_pointer(self) -> int:
        """Return the constant address of the contents. Raises ConcretizationError for a symbol."""
        raise ConcretizationError(
            "a traced reference has no address",
            expected="a reference outside of traced functions",
            found=str(self.type),
        )

    def _not_an_array(self, what: str) -> IllTyped:
        return IllTyped(
            f"{what} is a reference, where an array belongs",
            expected="an array",
            found=shown_ref(self),
            remedy="read it first: `ref[...]`",
        )

    def _as_array(self, *args: object, **kwargs: object) -> np.ndarray:
        raise _as_array_error(RefError, "a reference is used as an array", self)

    def __eq__(self, other: object) -> bool:
        """Return whether both are one reference. Raises RefError for a comparison with contents."""
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
        # Messages read the trace of a symbol, and an eager reference has none.
        if hasattr(Array, name) and not name.startswith("__") and name != "trace":
            what = f"a reference lacks `{name}`, an attribute of arrays"
            raise _as_array_error(RefAttributeError, what, self)
        raise AttributeError(f"a reference has no attribute {name}")


@final
class TracedRef(Ref):
    """A symbol: a reference of a program that is being traced."""

    __slots__ = ("atom", "owner")

    def __init__(self, trace: Trace, atom: Atom) -> None:
        self.owner: Trace = trace
        self.atom: Atom = atom

    def __new__(cls, trace: Trace, atom: Atom) -> TracedRef:
        return object.__new__(cls)

    @property
    def type(self) -> RefType:
        return self.atom.type  # type: ignore[return-value]  # handles of arrays are TracedArrays

    def __repr__(self) -> str:
        return f"Traced<{self.atom.type}> in {self.owner.label}"


class EagerRef(Ref):
    """A reference with memory: NumPy's until XLA first needs it, a device buffer from then on.

    Eager writes update that memory. A buffer's address does not change afterwards, since a compiled
    program that updates the reference takes its memory as an argument and returns it. The memory of
    a :class:`~effax.arrays.placed_ref.PlacedRef` is on several devices.
    """

    __slots__ = ("_buffer", "_ended", "_memory", "_taken_by", "_type", "made_at")

    _memory: np.ndarray | None
    """The memory, writable; None after the end, and until a compiled call's new buffer is seen."""
    _buffer: Buffer | None
    """The buffer; None before the first use by XLA, and while a call that donates it runs."""
    _taken_by: Ticket | None
    """The ticket of the compiled call that changes the reference; None while no call does."""
    _ended: str | None
    _type: RefType
    made_at: Source | None

    def __init__(self, *_: object) -> None:
        """Do nothing: :func:`eager_ref` sets the attributes."""

    @property
    def type(self) -> RefType:
        return self._type

    def check_usable(self) -> None:
        """Raise RefError where the reference was consumed."""
        if self._ended is not None:
            raise consumed_error(self, self._ended)

    def memory(self) -> np.ndarray:
        """Return the writable memory of the contents. Raises RefError after the reference's end.

        No other thread uses the reference meanwhile (:mod:`effax.arrays.exclusive`).
        """
        if self._memory is None:
            self.check_usable()
            from effax.lowering import xla

            assert self._buffer is not None
            self._memory = xla.buffer_contents(xla.raw_view(self._buffer), self.type.inner)
        return self._memory

    def read_now(self) -> np.ndarray:
        """Return a copy of the contents; in a callback of a call that changes it, the old ones."""
        refs = () if is_taken_here(self) else (self,)
        return exclusively(refs, lambda: np.array(self.memory()))

    def pinned(self) -> Buffer:
        """Return the buffer of the contents, created at XLA's first use."""

        def made() -> Buffer:
            self.check_usable()
            if self._buffer is None:
                from effax.lowering import xla

                self._buffer = xla.new_ref_buffer(self.memory())
                self._memory = None
            return self._buffer

        buffer = self._buffer
        return exclusively((self,), made) if buffer is None else buffer

    def end(self, how: str) -> DeviceArray:
        """Consume the reference; return its contents, which no later write changes."""

        def ended() -> DeviceArray:
            contents = self.memory()
            contents.setflags(write=False)
            buffer = self._buffer
            self._ended = how
            self._memory = self._buffer = None
            if buffer is None:
                return DeviceArray(contents.view(), self.type.inner)
            return DeviceArray(None, self.type.inner, buffer)

        return exclusively((self,), ended)

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the contents, constant from this call to the reference's end."""
        from effax.lowering import xla

        return xla.pointer(self.pinned())

    # Threads switch in calls only, so after the last test this is the memory of a free reference.

    def __getitem__(self, index: object) -> Array:
        if type(index) is int and current_trace() is None:
            memory = self._memory
            if (
                memory is not None
                and memory.ndim == 1
                and -len(memory) <= index < len(memory)
                and self._memory is memory
                and self._taken_by is None
            ):
                return DeviceArray(np.array(memory[index, ...]), array_type((), memory.dtype))
        return ops.get_ref(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        if type(index) is int and current_trace() is None:
            memory = self._memory
            if memory is not None and memory.ndim == 1 and -len(memory) <= index < len(memory):
                kind = type(value)
                if (kind is float or kind is int) and memory.dtype.kind == "f":
                    if self._memory is memory and self._taken_by is None:
                        memory[index] = value
                        return
                elif kind is DeviceArray:
                    array = cast(DeviceArray, value).numpy()
                    if (
                        array.dtype == memory.dtype
                        and not array.shape
                        and self._memory is memory
                        and self._taken_by is None
                    ):
                        memory[index] = array
                        return
        ops.write_ref(self, index, value)

    def __repr__(self) -> str:
        if self._ended is not None:
            return f"Ref(<consumed by {self._ended}>)"
        contents = self.read_now()
        if contents.dtype.names is not None:
            return f"Ref{repr(DeviceArray(contents, self.type.inner)).removeprefix('Array')}"
        shown = np.array2string(contents, separator=", ", prefix="Ref(")
        return f"Ref({shown}, dtype={self.dtype})"

    def __reduce__(self) -> tuple[object, ...]:
        return (eager_ref, (self.read_now(), self.type.kind))

    def __deepcopy__(self, memo: dict[int, object]) -> EagerRef:
        return eager_ref(self.read_now(), self.type.kind)

    def __copy__(self) -> EagerRef:
        return self


def eager_ref(memory: np.ndarray, kind: RefKind = RefKind.ARRAY) -> EagerRef:
    """Return a reference that owns this memory, which must have no other owner."""
    made = object.__new__(EagerRef)
    made._memory = memory
    made._buffer = None
    made._taken_by = None
    made._ended = None
    made._type = ref_type(array_type(memory.shape, memory.dtype), kind)
    made.made_at = caller()
    return made
