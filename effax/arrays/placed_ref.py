"""References to arrays that are placed on devices: each device updates its part in place."""

from __future__ import annotations

from typing import cast, final

import numpy as np

from effax.arrays.exclusive import exclusively
from effax.arrays.placed_array import PlacedArray, PlacedType, put_value
from effax.arrays.ref import EagerRef
from effax.arrays.sharding import Sharding
from effax.ir.errors import BadArgument
from effax.ir.memo import memoize
from effax.ir.source import caller
from effax.ir.types import RefKind, RefType, ref_type
from effax.lowering import xla
from effax.lowering.xla import Buffer, Placement


@final
class PlacedRefType:
    """The type of a reference and the placement of its contents: a key in caches of calls.

    Attributes:
        type: the type.
        contents: the type and sharding of the contents.
    """

    __slots__ = ("contents", "type")

    def __init__(self, type_: RefType, contents: PlacedType) -> None:
        self.type: RefType = type_
        self.contents: PlacedType = contents


@memoize(maxsize=1024)
def _placed_ref_type(contents: PlacedType, kind: RefKind) -> PlacedRefType:
    return PlacedRefType(ref_type(contents.type, kind), contents)


@final
class PlacedRef(EagerRef):
    """A reference whose contents are placed; ``_buffer`` is the buffer over the devices."""

    __slots__ = ()

    @property
    def type(self) -> RefType:
        return cast("PlacedRefType", self._type).type

    @property
    def contents(self) -> PlacedType:
        """Return the type and sharding of the contents."""
        return cast("PlacedRefType", self._type).contents

    @property
    def sharding(self) -> Sharding:
        """Return the sharding of the contents."""
        return self.contents.sharding

    def memory(self) -> np.ndarray:
        """Return a read-only copy of the contents; programs on the devices change them."""
        self.check_usable()
        assert self._buffer is not None
        # A view of the memory would make a donation copy it.
        whole = np.array(xla.gathered(self._buffer, self.contents.place))
        made = xla.buffer_contents(whole, self.type.inner)
        made.setflags(write=False)
        return made

    def pinned(self) -> Buffer:
        raise BadArgument(
            "the contents of this reference are on several devices",
            expected="a reference on the first device",
            found=f"{self.type}, {self.sharding}",
            remedy="read it first: `ref[...]`",
        )

    def replace_buffer(self, new: Buffer, place: Placement) -> None:
        """Take the result of a program as the contents, with the sharding of the reference."""
        if place is not self.contents.place:
            whole = xla.buffer_contents(xla.gathered(new, place), self.type.inner)
            new = put_value(whole, self.type.inner, self.contents.place)
        self._buffer = new

    def end(self, how: str) -> PlacedArray:
        def ended() -> PlacedArray:
            self.check_usable()
            made = PlacedArray(self.contents, self._buffer)
            self._ended = how
            self._buffer = None
            return made

        return exclusively((self,), ended)

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the contents on the first device of this process."""
        self.check_usable()
        assert self._buffer is not None
        place = self.contents.place
        return xla.read_part(self._buffer, place, place.local[0]).ctypes.data

    def __deepcopy__(self, memo: dict[int, object]) -> PlacedRef:
        return placed_ref(PlacedArray(self.contents, None, self.read_now()), self.type.kind)


def placed_ref(x: PlacedArray, kind: RefKind = RefKind.ARRAY) -> PlacedRef:
    """Return a reference to a copy of an array, with its sharding."""
    made = object.__new__(PlacedRef)
    contents = x.placed_type
    made._memory = None
    made._buffer = xla.copied_parts(x.parts, contents.place)
    made._taken_by = None
    made._ended = None
    made._type = cast("RefType", _placed_ref_type(contents, kind))
    made.made_at = caller()
    return made
