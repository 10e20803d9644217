"""The work of an application of a primitive, as counts; primitives define theirs by ``work``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from effax.ir.types import ArrayType, RefType, Type
from effax.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Counts of the work of an equation or a program; ``+`` adds them, ``work * n`` repeats it.

    Attributes:
        flops: arithmetic operations on numbers of any dtype; transcendental functions are not
            among them.
        transcendentals: elements of transcendental functions: exponentials, roots, ...
        bytes_read: bytes of the operands, or of the parts that are read.
        bytes_written: bytes of the results, and of the parts of references that are written.
        collectives: exchanges of values between devices.
        collective_bytes: bytes of the operands or results of these, whichever are more.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    collectives: int = 0
    collective_bytes: int = 0

    @property
    def bytes_accessed(self) -> int:
        """The bytes that are read or written."""
        return self.bytes_read + self.bytes_written

    @property
    def operations(self) -> int:
        """The arithmetic operations and elements of transcendental functions."""
        return self.flops + self.transcendentals

    def __add__(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
            self.collectives + other.collectives,
            self.collective_bytes + other.collective_bytes,
        )

    def __mul__(self, count: int) -> Work:
        return Work(
            self.flops * count,
            self.transcendentals * count,
            self.bytes_read * count,
            self.bytes_written * count,
            self.collectives * count,
            self.collective_bytes * count,
        )


NO_WORK = Work()


def array_of(type_: Type) -> ArrayType:
    """Return the type of an array, or of the contents of a reference."""
    return type_.inner if isinstance(type_, RefType) else type_


def bytes_of(type_: Type) -> int:
    """Return the bytes of an array, or of the contents of a reference."""
    array = array_of(type_)
    return array.size * array.dtype.itemsize


def total_bytes(types: Iterable[Type]) -> int:
    """Return the bytes of several arrays."""
    return sum([bytes_of(t) for t in types])


def elements(types: Iterable[Type]) -> int:
    """Return the number of elements of several arrays."""
    return sum([array_of(t).size for t in types])


def moved(
    ins: Sequence[Type], outs: Sequence[Type], flops: int = 0, transcendentals: int = 0
) -> Work:
    """Return the work of an application that reads its operands and writes its results once.

    Args:
        ins: the types of the operands, or of the parts that are read.
        outs: the types of the results, or of the parts that are written.
        flops: its arithmetic operations.
        transcendentals: its elements of transcendental functions.

    >>> from effax.ir import array_type
    >>> moved([array_type((8,), "float32")], [array_type((), "float32")], flops=7).bytes_read
    32
    """
    return Work(flops, transcendentals, total_bytes(ins), total_bytes(outs))
