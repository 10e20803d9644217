"""Higher-order primitives: jit, scan, cond, while. They hold programs.

Results of a held program are arrays only; references are passed in, never out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from effax.effects import ArgIndex, Row, Rule
from effax.ir.errors import IllTyped, RefError
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims.operands import check_least
from effax.ir.recursion import with_fresh_stack
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type

T = TypeVar("T")


def check_call(prim: Primitive, what: str, body: Jaxpr, ins: Sequence[Type]) -> None:
    """Raises IllTyped unless ``body`` takes arguments of these types (weakness aside)."""
    wanted = body.in_types
    if len(wanted) != len(ins):
        raise IllTyped(
            f"{prim.name}: {what} takes another number of arguments",
            expected=str(len(wanted)),
            found=str(len(ins)),
        )
    for i, (want, have) in enumerate(zip(wanted, ins, strict=True)):
        if want is not have and not fits(have, want):
            raise IllTyped(
                f"{prim.name}: {body.name_of(i)} of {what} has the wrong type",
                expected=str(want),
                found=str(have),
            )


def fits(have: Type, want: Type) -> bool:
    """Whether a value of type ``have`` can be bound where ``want`` is declared."""
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return have.shape == want.shape and have.dtype == want.dtype
    return have is want


def check_no_ref_results(prim: Primitive, what: str, body: Jaxpr) -> None:
    """Raises RefError where the program returns a reference."""
    for i, type_ in enumerate(body.out_types):
        if isinstance(type_, RefType):
            told = f"{prim.name}: result {i} of {what} is a reference"
            raise RefError.against(Rule.ESCAPE, told, "an array", str(type_))


def check_results(prim: Primitive, what: str, body: Jaxpr, wanted: Sequence[Type]) -> None:
    """Raises IllTyped unless the program's results have these types (weakness aside)."""
    found = body.out_types
    if len(found) != len(wanted) or not all(map(fits, found, wanted)):
        raise IllTyped(
            f"{prim.name}: {what} gives results of the wrong type",
            expected=", ".join(map(str, wanted)) or "no results",
            found=", ".join(map(str, found)) or "no results",
        )


@dataclass(frozen=True, slots=True)
class Jit(Primitive):
    """A call of a program that is compiled as one."""

    jaxpr: Jaxpr
    label: str = "f"
    name: ClassVar[str] = "jit"

    def typing(self, *ins: Type) -> Typing:
        check_call(self, "the function", self.jaxpr, ins)
        check_no_ref_results(self, "the function", self.jaxpr)
        return Typing(self.jaxpr.out_types, self.jaxpr.effects)

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.jaxpr, ins)

    def prepare(self) -> Callable[..., Sequence[Value]]:
        from effax.ir.eval.numpy import prepare

        return prepare(self.jaxpr)

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return evaluate_spmd(self.jaxpr, devices, ins)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Jit:
        return replace(self, jaxpr=jaxprs[0])

    def regions(self) -> tuple[Region, ...]:
        args, outs = range(len(self.jaxpr.binders)), range(len(self.jaxpr.outs))
        return (Region(self.jaxpr, tuple(args), tuple(outs), (None,) * len(outs)),)


def element_type(type_: Type) -> Type:
    """The type of one element along the leading axis; a reference gives a view."""
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=type_.shape[1:]), type_.kind)
    return type_.update(shape=type_.shape[1:])


@dataclass(frozen=True, slots=True)
class Scan(Primitive):
    """A loop over leading axes: ``scan(*consts, *carry, *xs) -> (*carry, *ys)``.

    ``jaxpr`` maps consts, carry and one element of each xs to the next carry and one element of
    each ys. Consts and xs may be references; a scanned reference gives a view of its element.
    """

    jaxpr: Jaxpr
    length: int
    reverse: bool
    n_consts: int
    n_carry: int
    unroll: int = 1
    name: ClassVar[str] = "scan"

    def typing(self, *ins: Type) -> Typing:
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
        """Arguments as (consts, carry, xs)."""
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
        """The loop on one device or more; ``step`` runs the body on all of them."""
        order = range(self.length - 1, -1, -1) if self.reverse else range(self.length)
        y_types = self.jaxpr.out_types[self.n_carry :]
        ys = [[np.empty((self.length, *t.shape), t.dtype) for t in y_types] for _ in ins]
        parts = [self.split(own) for own in ins]
        carries = [carry for _, carry, _ in parts]
        for i in order:
            given = step(
                [
                    [*consts, *carry, *[element_view(x, i) for x in xs]]
                    for (consts, _, xs), carry in zip(parts, carries, strict=True)
                ]
            )
            carries = [outs[: self.n_carry] for outs in given]
            for own, outs in zip(ys, given, strict=True):
                for y, out in zip(own, outs[self.n_carry :], strict=True):
                    y[i] = out
        return [(*carry, *own) for carry, own in zip(carries, ys, strict=True)]

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Scan:
        return replace(self, jaxpr=jaxprs[0])

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Scan:
        return replace(self, jaxpr=jaxprs[0], n_consts=self.n_consts + n)

    def regions(self) -> tuple[Region, ...]:
        args, outs = range(len(self.jaxpr.binders)), range(len(self.jaxpr.outs))
        carry_to = tuple(self.n_consts + j if j < self.n_carry else None for j in outs)
        return (Region(self.jaxpr, tuple(args), tuple(outs), carry_to),)


def stacked_type(type_: Type, length: int) -> ArrayType:
    """The type of ``length`` stacked results."""
    weak = isinstance(type_, ArrayType) and type_.weak
    return array_type((length, *type_.shape), type_.dtype, weak)


def element_view(x: Value, index: int) -> Value:
    """Element ``index`` along the leading axis, as a view, an array even when it is a scalar."""
    return x[index : index + 1].reshape(x.shape[1:])


def joined_types(branches: Sequence[tuple[Type, ...]]) -> tuple[Type, ...]:
    """The types of what one of several programs gives: weak where all of them are."""
    joined: list[Type] = []
    for first, *rest in zip(*branches, strict=True):
        same = all(t is first for t in rest)
        joined.append(first if same or not isinstance(first, ArrayType) else first.strong())
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Cond(Primitive):
    """``cond(index, *operands)``: the branch of that number, clamped; a boolean picks of two."""

    branches: tuple[Jaxpr, ...]
    name: ClassVar[str] = "cond"

    def typing(self, *ins: Type) -> Typing:
        check_least(self, ins, 1)
        index, *operands = ins
        scalar = isinstance(index, ArrayType) and index.shape == ()
        if not scalar or index.dtype.name not in ("bool", "int32"):
            raise IllTyped(
                "cond takes a scalar index", expected="bool[] or i32[]", found=str(index)
            )
        if not self.branches or (index.dtype.name == "bool" and len(self.branches) != 2):
            raise IllTyped("cond has the wrong number of branches", found=str(len(self.branches)))
        effects: Row[ArgIndex] = Row()
        for i, branch in enumerate(self.branches):
            check_call(self, f"branch {i}", branch, operands)
            check_no_ref_results(self, f"branch {i}", branch)
            check_results(self, f"branch {i}", branch, self.branches[0].out_types)
            effects = effects.join(branch.effects.rename(lambda n: ArgIndex(n + 1)))
        return Typing(joined_types([branch.out_types for branch in self.branches]), effects)

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.branches[self._taken(ins)], ins[1:])

    def prepare(self) -> Callable[..., Sequence[Value]]:
        from effax.ir.eval.numpy import prepare

        branches = [prepare(branch) for branch in self.branches]
        return lambda *ins: branches[self._taken(ins)](*ins[1:])

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        if not self.free_axes():
            return [self.evaluate(*own) for own in ins]
        taken = [self._taken(own) for own in ins]
        outs: dict[int, Sequence[Value]] = {}
        for k in sorted(set(taken)):
            here = [i for i, index in enumerate(taken) if index == k]
            args = [ins[i][1:] for i in here]
            given = evaluate_spmd(self.branches[k], devices.some(here), args)
            outs.update(zip(here, given, strict=True))
        return [outs[i] for i in range(len(ins))]

    def _taken(self, ins: Sequence[Value]) -> int:
        return min(max(int(ins[0]), 0), len(self.branches) - 1)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return self.branches

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Cond:
        return replace(self, branches=tuple(jaxprs))

    def regions(self) -> tuple[Region, ...]:
        n = len(self.branches[0].outs)
        args = tuple(range(1, 1 + len(self.branches[0].binders)))
        return tuple(Region(b, args, tuple(range(n)), (None,) * n) for b in self.branches)

    def selector(self) -> int | None:
        return 0


@dataclass(frozen=True, slots=True)
class While(Primitive):
    """``while(*consts, *carry) -> carry``: both programs take the consts and the carry.

    One list of consts for the condition and the body: a reference that both use is one
    argument, and has one state.
    """

    cond: Jaxpr
    body: Jaxpr
    n_consts: int
    name: ClassVar[str] = "while"

    def typing(self, *ins: Type) -> Typing:
        carry = ins[self.n_consts :]
        if any(isinstance(t, RefType) for t in carry):
            raise IllTyped(
                "while: a reference cannot be carried",
                expected="arrays",
                found=", ".join(map(str, carry)),
                remedy="close over it",
            )
        check_call(self, "the condition", self.cond, ins)
        check_call(self, "the body", self.body, ins)
        check_no_ref_results(self, "the body", self.body)
        check_results(self, "the condition", self.cond, [array_type((), np.bool_)])
        check_results(self, "the body", self.body, self.body.in_types[self.n_consts :])
        effects = self.cond.effects.join(self.body.effects)
        return Typing(self.body.in_types[self.n_consts :], effects)

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        with np.errstate(all="ignore"):
            return self.prepare()(*ins)

    def prepare(self) -> Callable[..., Sequence[Value]]:
        from effax.ir.eval.numpy import prepare

        goes_on, step = prepare(self.cond), prepare(self.body)

        def loop(*ins: Value) -> Sequence[Value]:
            consts, carry = ins[: self.n_consts], ins[self.n_consts :]
            while goes_on(*consts, *carry)[0]:
                carry = tuple(step(*consts, *carry))
            return carry

        return loop

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        if not self.free_axes():
            return [self.evaluate(*own) for own in ins]
        consts = [own[: self.n_consts] for own in ins]
        carries = [own[self.n_consts :] for own in ins]
        here = list(range(len(ins)))
        while here:
            some, args = devices.some(here), [[*consts[i], *carries[i]] for i in here]
            answers = evaluate_spmd(self.cond, some, args)
            here = [i for i, (again,) in zip(here, answers, strict=True) if again]
            args = [[*consts[i], *carries[i]] for i in here]
            if here:
                new = evaluate_spmd(self.body, devices.some(here), args)
                for i, carry in zip(here, new, strict=True):
                    carries[i] = carry
        return carries

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.cond, self.body)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> While:
        return replace(self, cond=jaxprs[0], body=jaxprs[1])

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> While:
        return replace(self, cond=jaxprs[0], body=jaxprs[1], n_consts=self.n_consts + n)

    def regions(self) -> tuple[Region, ...]:
        args = tuple(range(len(self.body.binders)))
        carry = tuple(range(self.n_consts, len(args)))
        return (
            Region(self.cond, args, (None,), (None,), is_predicate=True),
            Region(self.body, args, tuple(range(len(carry))), carry),
        )
