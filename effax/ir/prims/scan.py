"""``scan``: a loop over the leading axes of its operands.

The body returns arrays only; references are passed in, never out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

import numpy as np

from effax.ir.errors import IllTyped
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims.common.subjaxpr_checks import (
    check_call,
    check_counts,
    check_no_ref_results,
    check_results,
)
from effax.ir.recursion import with_fresh_stack
from effax.ir.regions.forms import loop_region
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type
from effax.lazy.dataclasses import dataclass

__all__ = [
    "Scan",
]

T = TypeVar("T")


def element_type(type_: Type) -> Type:
    """Return the type of one element along the leading axis; for a reference, that of a view."""
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=type_.shape[1:]), type_.kind)
    return type_.update(shape=type_.shape[1:])


@dataclass(frozen=True, slots=True)
class Scan(Primitive):
    """A loop over leading axes: ``scan(*consts, *carry, *xs) -> (*carry, *ys)``.

    ``jaxpr`` maps consts, carry and one element of each xs to the next carry and one element of
    each ys. Consts and xs may be references; the body gets a view of a scanned reference's element.
    """

    jaxpr: Jaxpr
    length: int
    reverse: bool
    n_consts: int
    n_carry: int
    unroll: int = 1
    name: ClassVar[str] = "scan"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        check_counts(self, ins, self.n_consts, self.n_carry)
        if self.length < 0 or self.unroll < 1:
            raise IllTyped(
                "scan: the number of steps is out of range",
                expected="a length of at least 0, unrolled by at least 1",
                found=f"length {self.length}, unroll {self.unroll}",
            )
        consts, carry, xs = self.split(ins)
        for i, x in enumerate(xs):
            if not x.shape or x.shape[0] != self.length:
                raise IllTyped(
                    f"scan: scanned input {i} has another leading size than the scan",
                    expected=f"a leading axis of size {self.length}",
                    found=str(x),
                )
        if any(isinstance(t, RefType) for t in carry):
            raise IllTyped(
                "scan: a reference cannot be carried",
                expected="arrays",
                found=", ".join(map(str, carry)),
                remedy="close over it, or pass it with the scanned inputs",
            )
        check_call(self, "the body", self.jaxpr, [*consts, *carry, *map(element_type, xs)])
        check_no_ref_results(self, "the body", self.jaxpr)
        outs = self.jaxpr.out_types
        wanted = [*self.jaxpr.in_types[self.n_consts :][: self.n_carry], *outs[self.n_carry :]]
        check_results(self, "the body", self.jaxpr, wanted)
        ys = [stacked_type(t, self.length) for t in outs[self.n_carry :]]
        return Typing(
            (*self.jaxpr.in_types[self.n_consts :][: self.n_carry], *ys), self.jaxpr.effects
        )

    def split(self, items: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """Return arguments as (consts, carry, xs)."""
        c, k = self.n_consts, self.n_consts + self.n_carry
        return items[:c], items[c:k], items[k:]

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        with np.errstate(all="ignore"):
            return self.prepare()(*ins)

    def prepare(self) -> Callable[..., Sequence[Value]]:
        from effax.ir.eval.numpy import prepare

        step = prepare(self.jaxpr)
        return lambda *ins: self._looped([ins], lambda args: [step(*own) for own in args])[0]

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return self._looped(ins, lambda args: evaluate_spmd(self.jaxpr, devices, args))

    def _looped(self, ins: Each, step: Callable[[Each], Each]) -> Each:
        """Run the loop on one or more devices; ``step`` runs the body on all of them."""
        order = range(self.length - 1, -1, -1) if self.reverse else range(self.length)
        y_types = self.jaxpr.out_types[self.n_carry :]
        ys = [[np.empty((self.length, *t.shape), t.dtype) for t in y_types] for _ in ins]
        parts = [self.split(own) for own in ins]
        carries = [carry for _, carry, _ in parts]
        for i in order:
            results = step(
                [
                    [*consts, *carry, *[element_view(x, i) for x in xs]]
                    for (consts, _, xs), carry in zip(parts, carries, strict=True)
                ]
            )
            carries = [outs[: self.n_carry] for outs in results]
            for own, outs in zip(ys, results, strict=True):
                for y, out in zip(own, outs[self.n_carry :], strict=True):
                    y[i] = out
        return [(*carry, *own) for carry, own in zip(carries, ys, strict=True)]

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Scan:
        return replace(self, jaxpr=jaxprs[0])

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Scan:
        return replace(self, jaxpr=jaxprs[0], n_consts=self.n_consts + n)

    def restrict(self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]) -> Scan:
        n_consts, n_carry = sum(ins[: self.n_consts]), sum(outs[: self.n_carry])
        return replace(self, jaxpr=jaxprs[0], n_consts=n_consts, n_carry=n_carry)

    def regions(self) -> tuple[Region, ...]:
        n_consts, n_carry = self.n_consts, self.n_carry
        return (loop_region(self.jaxpr, self.length, n_consts, n_carry, self.reverse),)


def stacked_type(type_: Type, length: int) -> ArrayType:
    """Return the type of ``length`` stacked results."""
    weak = isinstance(type_, ArrayType) and type_.weak
    return array_type((length, *type_.shape), type_.dtype, weak)


def element_view(x: Value, index: int) -> Value:
    """Return a view of element ``index`` along the leading axis, never a NumPy scalar."""
    return x[index : index + 1].reshape(x.shape[1:])
