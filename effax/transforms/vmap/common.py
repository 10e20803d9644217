"""What batching and its rules share: types of lanes, references with moved axes, and an error."""

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
from effax.ir.types import RefType, Type, ref_type
from effax.transforms.framework.rules import BatchBuilder
from effax.transforms.rules.common.arrays import inverse, permuted, zeros


class UnbatchedRefWrite(TransformError):
    """A reference that all lanes share is written where lanes could differ.

    ``position`` is the argument that is the reference, of the application or program at hand.
    """

    position: int | None = 0

    def name(self, ref: str, position: int) -> None:
        """Tell what a program calls the reference, and where it is among the arguments."""
        told = (
            f"vmap: {ref} is one reference for all lanes, and is written where lanes may differ: "
            "it is not clear whose value remains"
        )
        self.what: str = told
        self.position = position


def unbatched_ref_write(position: int, found: str) -> UnbatchedRefWrite:
    """The error for a write through argument ``position``."""
    error = UnbatchedRefWrite(
        "",
        expected="a write of a value that is the same in all lanes, made by all lanes",
        found=found,
        remedy="pass the reference as a batched argument (an axis for it in `in_axes`), or add "
        "to it, which sums over the lanes",
    )
    error.name(f"argument {position}", position)
    return error


def check_uniform(b: BatchBuilder, prim: Primitive, where: str) -> None:
    """Raises TransformError where lanes part, and programs of ``prim`` exchange between them."""
    name = b.axis
    if name is not None and any(exchanges(held, name) for held in prim.subjaxprs()):
        raise TransformError(
            f"vmap: a collective along the axis '{b.axis}' is in {where}, and lanes differ in that",
            expected="a condition that is the same in all lanes",
            found="one that depends on a batched value",
            remedy="make the condition the same (`psum`, `pmax` of it), or move the collective out",
        )


@contextmanager
def at_arguments(args: Sequence[int]) -> Iterator[None]:
    """Errors about binder ``i`` of a program become errors about argument ``args[i]``."""
    try:
        yield
    except UnbatchedRefWrite as error:
        if error.position is not None:
            error.position = args[error.position]
        raise


def batched_type(type_: Type, size: int, axis: int = 0) -> Type:
    """The type of ``size`` lanes: with a batch axis, of a reference in its cell."""
    shape = (*type_.shape[:axis], size, *type_.shape[axis:])
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=shape), type_.kind)
    return type_.update(shape=shape)


def unbatched_type(type_: Type) -> Type:
    """The type of one lane of a type with the batch axis in front."""
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=type_.shape[1:]), type_.kind)
    return type_.update(shape=type_.shape[1:])


class Borrowed(NamedTuple):
    """A local reference that stands for another one, its axes in another order.

    Attributes:
        local: the reference made.
        ref: the one it stands for.
        permutation: axis ``i`` of the local one is axis ``permutation[i]`` of the other.
        changed: whether the contents go back at the end.
        sums: whether the local one began with zeros, and is added at the end.
    """

    local: Atom
    ref: Atom
    permutation: tuple[int, ...]
    changed: bool
    sums: bool

    def write_back(self, b: Builder) -> None:
        """Put the contents where they belong; the local reference is consumed."""
        if not self.changed:
            b.emit(FreeRef(), [self.local])
            return
        value = permuted(b, b(Freeze(), self.local), inverse(self.permutation))
        update = AddUpdate if self.sums else Swap
        b.emit(update(whole(self.ref.type.shape)), [self.ref, value])


def borrow(
    b: Builder, ref: Atom, permutation: Sequence[int], effects: Sequence[Effect[ArgIndex]]
) -> Borrowed:
    """A local reference with the contents of ``ref``, its axes permuted, for these effects.

    Where all that is done is adding, it begins with zeros, so that adding stays all that is done.
    """
    assert isinstance(ref.type, RefType)
    shape = tuple(ref.type.shape[i] for i in permutation)
    inner = ref.type.inner.update(shape=shape)
    sums = bool(effects) and all(isinstance(e, Accum) for e in effects)
    changed = any(isinstance(e, Accum | Write) for e in effects)
    if not effects:
        local = b(EmptyRef(inner))
    elif sums:
        local = b(NewRef(ref.type.kind), zeros(b, inner))
    else:
        contents = b(Get(whole(ref.type.shape)), ref)
        local = b(NewRef(ref.type.kind), permuted(b, contents, permutation))
    return Borrowed(local, ref, tuple(permutation), changed, sums)
