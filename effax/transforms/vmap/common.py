"""Definitions shared by batching and its rules: batched types, borrowed references, errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from effax.effects import Accum, ArgIndex, Effect, Write
from effax.ir.build import Builder
from effax.ir.errors import TransformError
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive
from effax.ir.prims import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, Swap
from effax.ir.prims.collective import exchanges
from effax.ir.syntax import Atom
from effax.ir.types import RefType, Shape, Type, ref_type
from effax.transforms.framework.rules import BatchBuilder
from effax.transforms.rules.common.arrays import inverse, permuted, reshaped, zeros


class UnbatchedRefWrite(TransformError):
    """A write to an unbatched reference of a value that may differ between batch elements.

    ``position`` is that of the reference among the operands of the current equation or program.
    """

    position: int | None = 0

    def name(self, ref: str, position: int) -> None:
        """Set the reference's name in the message, and its position."""
        self.what: str = (
            f"vmap: {ref} is not batched, and a write to it may differ between batch elements"
        )
        self.position = position


def unbatched_ref_write(position: int, found: str) -> UnbatchedRefWrite:
    """Return the error for a write to operand ``position``."""
    error = UnbatchedRefWrite(
        "",
        expected="a write of an unbatched value, not under a batched predicate",
        found=found,
        remedy="batch the reference (an axis for it in `in_axes`), or add to it, which sums over "
        "the batch elements",
    )
    error.name(f"argument {position}", position)
    return error


def check_uniform(b: BatchBuilder, prim: Primitive, where: str) -> None:
    """Raise TransformError if ``prim``, whose predicate is batched, has collectives on the axis."""
    name = b.axis
    if name is not None and any(exchanges(jaxpr, name) for jaxpr in prim.subjaxprs()):
        raise TransformError(
            f"vmap: a collective along the axis '{b.axis}' is in {where}",
            expected="an unbatched predicate",
            found="a predicate that depends on a batched value",
            remedy="reduce the predicate (`psum`, `pmax`), or move the collective out of it",
        )


@contextmanager
def at_arguments(args: Sequence[int]) -> Iterator[None]:
    """Report errors about binder ``i`` of a subjaxpr as errors about operand ``args[i]``."""
    try:
        yield
    except UnbatchedRefWrite as error:
        if error.position is not None:
            error.position = args[error.position]
        raise


def batched_type(type_: Type, size: int, axis: int = 0) -> Type:
    """Return the type with a batch axis of length ``size``, which a reference has in its cell."""
    shape = (*type_.shape[:axis], size, *type_.shape[axis:])
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=shape), type_.kind)
    return type_.update(shape=shape)


def unbatched_type(type_: Type) -> Type:
    """Return the type without its leading batch axis."""
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=type_.shape[1:]), type_.kind)
    return type_.update(shape=type_.shape[1:])


class Borrowed(NamedTuple):
    """A local copy of a reference, reshaped and with its axes in another order.

    Attributes:
        local: the local reference.
        ref: the original.
        permutation: axis ``i`` of ``local`` is axis ``permutation[i]`` of the reshaped ``ref``.
        changed: whether the contents are written back.
        sums: whether ``local`` began with zeros, and is added to ``ref``.
    """

    local: Atom
    ref: Atom
    permutation: tuple[int, ...]
    changed: bool
    sums: bool

    def write_back(self, b: Builder) -> None:
        """Write the contents back, and consume the local reference."""
        if not self.changed:
            b.emit(FreeRef(), [self.local])
            return
        value = permuted(b, b(Freeze(), self.local), inverse(self.permutation))
        value = reshaped(b, value, self.ref.type.shape)
        update = AddUpdate if self.sums else Swap
        b.emit(update(whole(self.ref.type.shape)), [self.ref, value])


def borrow(
    b: Builder,
    ref: Atom,
    permutation: Sequence[int],
    effects: Sequence[Effect[ArgIndex]],
    split: Shape | None = None,
) -> Borrowed:
    """Append a local copy of ``ref`` on which a program has these effects.

    It is reshaped to ``split``, by default its own shape, and then permuted.
    """
    assert isinstance(ref.type, RefType)
    split = ref.type.shape if split is None else split
    inner = ref.type.inner.update(shape=tuple([split[i] for i in permutation]))
    sums = bool(effects) and all(isinstance(e, Accum) for e in effects)
    changed = any(isinstance(e, Accum | Write) for e in effects)
    if not effects:
        local = b(EmptyRef(inner))
    elif sums:
        # Zeros, not the contents: the original is only accumulated into, as before.
        local = b(NewRef(ref.type.kind), zeros(b, inner))
    else:
        contents = reshaped(b, b(Get(whole(ref.type.shape)), ref), split)
        local = b(NewRef(ref.type.kind), permuted(b, contents, permutation))
    return Borrowed(local, ref, tuple(permutation), changed, sums)
