"""Calls with custom rules: derivatives, batching, and custom transposes.

A call holds its rules by reference. A rule is a value that returns a jaxpr for the question of a
transformation (which tangents are zero, the batch size): a pure function of plain data. It is asked
when a transformation needs it and not before, and returns equal jaxprs to equal questions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple, TypeVar

from effax.ir.errors import EffaxError, TransformError
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import ByReference, Primitive, Region, Typing, Value
from effax.ir.prims.common.subjaxpr_checks import check_call, check_no_ref_results
from effax.ir.prims.jit import Jit
from effax.ir.recursion import with_fresh_stack
from effax.ir.regions.forms import call_region
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type
from effax.lazy.dataclasses import dataclass

__all__ = [
    "BackwardRule",
    "BatchedProgram",
    "CustomJvp",
    "CustomLinear",
    "CustomVjp",
    "CustomVmap",
    "ForwardRule",
    "ReverseRule",
    "SparseBackward",
    "SparseJvp",
    "SparseVjp",
    "VmapRule",
]

E = TypeVar("E", bound=EffaxError)


class BatchedProgram(NamedTuple):
    """A batched program, and which of its results have the batch axis, in front."""

    jaxpr: Jaxpr
    batched: tuple[bool, ...]


class VmapRule(ByReference):
    """A batching rule of a call.

    Its arguments are the batch size, and whether each argument of the call has a batch axis, in
    front.
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, size: int, batched: tuple[bool, ...], /) -> BatchedProgram:
        """Return the program."""


class SparseJvp(NamedTuple):
    """A forward derivative where some tangents are zero.

    ``jaxpr`` maps the arguments of the call and the given tangents to the results and their nonzero
    tangents; ``nonzero`` has one entry per result. The tangent of a reference is a reference.
    """

    jaxpr: Jaxpr
    nonzero: tuple[bool, ...]


class ForwardRule(ByReference):
    """A forward derivative as a function of a mask of nonzero tangents.

    The mask has one entry per argument that is not a constant.
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        """Return the program."""


class SparseBackward(NamedTuple):
    """A backward rule where some cotangents are zero.

    ``jaxpr`` maps the fixed arguments and the nonzero cotangents to the cotangents of the linear
    arguments that ``nonzero`` marks, and to the values to log, by the paths ``logs``.
    """

    jaxpr: Jaxpr
    nonzero: tuple[bool, ...]
    logs: tuple[str, ...] = ()


class BackwardRule(ByReference):
    """A backward rule as a function of a mask of the results with nonzero cotangents."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        """Return the program."""


class SparseVjp(NamedTuple):
    """The rules of a reverse derivative where some arguments are differentiated.

    ``fwd`` maps the arguments of the call to the results and residuals. The fixed arguments of
    ``bwd`` are the constants of the call, the residuals, and the references at ``refs`` among the
    arguments; the linear ones are the differentiated arguments. The linear argument of a reference
    is the tangent of its contents.
    """

    fwd: Jaxpr
    refs: tuple[int, ...]
    bwd: BackwardRule | SparseBackward


class ReverseRule(ByReference):
    """A reverse derivative as a function of a mask of the differentiated arguments.

    The mask has one entry per argument that is not a constant.
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        """Return the programs."""


class _Called(Primitive):
    """The base of calls with custom rules; evaluation runs the function and ignores the rules."""

    __slots__ = ()

    call: Jaxpr
    label: str
    has_own_rules: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        check_call(self, "the function", self.call, ins)
        check_no_ref_results(self, "the function", self.call)
        return Typing(self.call.out_types, self.call.effects)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.call,)

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.call, ins)

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return evaluate_spmd(self.call, devices, ins)

    def regions(self) -> tuple[Region, ...]:
        return (call_region(self.call),)

    def as_call(self) -> Jit:
        return Jit(self.call, self.label)


@dataclass(frozen=True, slots=True)
class CustomJvp(_Called):
    """A call with its own forward derivative.

    ``call`` maps the arguments to the results; the first ``n_consts`` arguments have no tangents.
    ``vmap_rule``, unless None, batches the call.
    """

    call: Jaxpr
    rule: ForwardRule
    n_consts: int
    label: str
    vmap_rule: VmapRule | None = None
    name: ClassVar[str] = "custom_jvp_call"
    by_reference: ClassVar[tuple[str, ...]] = ("rule", "vmap_rule")

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomJvp:
        return replace(self, call=jaxprs[0])


@dataclass(frozen=True, slots=True)
class CustomVjp(_Called):
    """A call with its own reverse derivative.

    ``call`` maps the arguments to the results; the first ``n_consts`` arguments have no tangents.
    ``forward``, unless None, is a forward derivative; ``vmap_rule`` batches the call.
    """

    call: Jaxpr
    rule: ReverseRule
    n_consts: int
    label: str
    forward: ForwardRule | None = None
    vmap_rule: VmapRule | None = None
    name: ClassVar[str] = "custom_vjp_call"
    by_reference: ClassVar[tuple[str, ...]] = ("rule", "forward", "vmap_rule")

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomVjp:
        return replace(self, call=jaxprs[0])


@dataclass(frozen=True, slots=True)
class CustomVmap(_Called):
    """A call with its own batching rule; the first ``n_consts`` arguments are never batched."""

    call: Jaxpr
    vmap_rule: VmapRule
    n_consts: int
    label: str
    name: ClassVar[str] = "custom_vmap_call"
    by_reference: ClassVar[tuple[str, ...]] = ("vmap_rule",)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomVmap:
        return replace(self, call=jaxprs[0])


@dataclass(frozen=True, slots=True)
class CustomLinear(Primitive):
    """A call of a linear function with its own transpose.

    Arguments: ``n_fixed`` constants, residuals and references, then linear ones. ``bwd`` maps the
    fixed ones and cotangents of the results to cotangents of the linear ones; a jaxpr takes all
    cotangents, and ``nonzero`` marks the linear arguments for which it returns one (None: all). The
    equation has no effects; those of ``bwd`` happen in the transposed program. Its results after
    the cotangents are values to log, by the paths ``logs``; the transposed program names them if
    ``logging``.

    ``forward`` maps the arguments to the results. It is None for the derivative of a ``custom_vjp``
    call, of which only the transpose is known. If ``paired``, the transpose is such a call with
    both programs exchanged, so transposing twice is the identity; otherwise it is ``bwd``.
    """

    bwd: Jaxpr | BackwardRule
    n_fixed: int
    out_types: tuple[Type, ...]
    label: str
    forward: Jaxpr | None = None
    paired: bool = False
    nonzero: tuple[bool, ...] | None = None
    logs: tuple[str, ...] = ()
    logging: bool = False
    name: ClassVar[str] = "custom_lin"
    defers_effects: ClassVar[bool] = True
    by_reference: ClassVar[tuple[str, ...]] = ("bwd",)

    def typing(self, *ins: Type) -> Typing:
        if self.forward is not None:
            check_call(self, "the function", self.forward, ins)
        return Typing(self.out_types)

    def first_linear(self) -> int:
        return self.n_fixed

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        if self.forward is None:
            raise no_forward(TransformError, self.label)
        return evaluate(self.forward, ins)

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        if self.forward is None:
            raise no_forward(TransformError, self.label)
        return evaluate_spmd(self.forward, devices, ins)

    def runs(self) -> tuple[Jaxpr, ...]:
        return () if self.forward is None else (self.forward,)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        bwd = (self.bwd,) if isinstance(self.bwd, Jaxpr) else ()
        return bwd if self.forward is None else (*bwd, self.forward)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomLinear:
        rest = list(jaxprs)
        bwd = rest.pop(0) if isinstance(self.bwd, Jaxpr) else self.bwd
        return replace(self, bwd=bwd, forward=rest[0] if rest else None)

    def answered(self) -> CustomLinear:
        if isinstance(self.bwd, Jaxpr):
            return self
        bwd, nonzero, logs = self.bwd((True,) * len(self.out_types))
        return replace(self, bwd=bwd, nonzero=nonzero, logs=logs)


def no_forward(kind: type[E], label: str) -> E:
    """Return the error for forward-mode differentiation of a call with a reverse rule only."""
    return kind(
        f"{label} has a custom reverse derivative and no forward one",
        expected="grad or vjp",
        found="a forward-mode derivative (jvp, linearize, jacfwd)",
        remedy="use custom_jvp for functions that are differentiated forward, or custom_rules to "
        "define both derivatives",
    )
