"""Calls with custom rules: derivatives, batching, and custom transposes.

A rule is a jaxpr if it can be traced with the call. A rule that depends on data of a transformation
(the batch size, which tangents are zero) is a value that returns a jaxpr: a pure function of plain
data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeVar

from effax.ir.errors import EffaxError, TransformError
from effax.ir.eval.spmd import Devices, Each, evaluate_spmd
from effax.ir.primitive import ByReference, Primitive, Region, Typing, Value
from effax.ir.prims.common.subjaxpr_checks import check_call, check_no_ref_results
from effax.ir.prims.jit import Jit
from effax.ir.recursion import with_fresh_stack
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type

__all__ = [
    "BatchedProgram",
    "CustomJvp",
    "CustomLinear",
    "CustomVjp",
    "CustomVmap",
    "SparseBackward",
    "SparseJvp",
    "SparseVjp",
    "VmapRule",
    "ZerosBackward",
    "ZerosJvp",
    "ZerosVjp",
]

E = TypeVar("E", bound=EffaxError)


def _call_region(jaxpr: Jaxpr) -> Region:
    outs = range(len(jaxpr.outs))
    return Region(
        jaxpr, tuple(range(len(jaxpr.binders))), tuple(outs), (None,) * len(outs), repeats=False
    )


class BatchedProgram(NamedTuple):
    """A batched program, and which of its results have the batch axis, in front."""

    jaxpr: Jaxpr
    batched: tuple[bool, ...]


class VmapRule(ByReference):
    """A batching rule of a call; equal rules return equal programs.

    Its arguments are the batch size, and whether each argument of the call has a batch axis, in
    front.
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, size: int, batched: tuple[bool, ...], /) -> BatchedProgram:
        """Return the program."""


class SparseJvp(NamedTuple):
    """A forward derivative where some tangents are zero.

    ``jaxpr`` maps the arguments and the nonzero tangents to the results and their nonzero tangents;
    ``nonzero`` has one entry per result.
    """

    jaxpr: Jaxpr
    nonzero: tuple[bool, ...]


class ZerosJvp(ByReference):
    """A forward derivative as a function of a mask of nonzero tangents, one entry per argument."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        """Return the program."""


class SparseBackward(NamedTuple):
    """A backward rule where some cotangents are zero.

    ``jaxpr`` maps the fixed arguments and the nonzero cotangents to the cotangents of the linear
    arguments that ``nonzero`` marks.
    """

    jaxpr: Jaxpr
    nonzero: tuple[bool, ...]


class ZerosBackward(ByReference):
    """A backward rule as a function of a mask of the results with nonzero cotangents."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        """Return the program."""


class SparseVjp(NamedTuple):
    """The rules of a reverse derivative where some arguments are differentiated.

    ``fwd`` and ``refs`` are those of ``CustomVjp``; the linear arguments of ``bwd`` are the
    differentiated ones.
    """

    fwd: Jaxpr
    refs: tuple[int, ...]
    bwd: ZerosBackward


class ZerosVjp(ByReference):
    """A reverse derivative as a function of a mask of the differentiated arguments."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        """Return the program."""


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

    @with_fresh_stack
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.eval.numpy import evaluate

        return evaluate(self.call, ins)

    def evaluate_spmd(self, devices: Devices, ins: Each) -> Each:
        return evaluate_spmd(self.call, devices, ins)

    def regions(self) -> tuple[Region, ...]:
        return (_call_region(self.call),)

    def as_call(self) -> Jit:
        return Jit(self.call, self.label)


@dataclass(frozen=True, slots=True)
class CustomJvp(_Called):
    """A call with its own forward derivative.

    ``call`` maps the arguments to the results. ``rule`` maps constants, the other arguments, and
    the tangents of those, to results and their tangents; the first ``n_consts`` arguments have
    no tangents. A recursive call, inside of its own rule, has a depth instead of the rule: the
    number of rules between it and its own (0: the innermost), as a de Bruijn index, so that the
    program is finite. A rule with symbolic zeros is a ``ZerosJvp``. ``vmap_rule``, unless None,
    batches the call.
    """

    call: Jaxpr
    rule: Jaxpr | ZerosJvp | int
    n_consts: int
    label: str
    vmap_rule: VmapRule | None = None
    name: ClassVar[str] = "custom_jvp_call"
    by_reference: ClassVar[tuple[str, ...]] = ("rule", "vmap_rule")

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.call, self.rule) if isinstance(self.rule, Jaxpr) else (self.call,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomJvp:
        call, *rules = jaxprs
        return replace(self, call=call, rule=rules[0] if rules else self.rule)

    @property
    def depth(self) -> int | None:
        """The depth of a recursive call; None for a call with its rule."""
        return self.rule if isinstance(self.rule, int) else None

    def at(self, depth: int) -> CustomJvp:
        """Return the recursive call of this one with that depth."""
        return replace(self, rule=depth)


@dataclass(frozen=True, slots=True)
class CustomVjp(_Called):
    """A call with its own reverse derivative.

    ``call`` maps the arguments to the results; ``fwd`` to the results and residuals; ``bwd`` maps
    the ``n_consts`` constants, the residuals, the references at ``refs`` among the arguments, and
    cotangents of the results, to the cotangents of the arguments that ``wanted`` marks. A recursive
    call, within its own rules, has a depth instead of both, as for ``CustomJvp``. Rules with
    symbolic zeros are one ``ZerosVjp`` in the place of ``fwd``.

    ``forward``, unless None, is a forward derivative, as the rule of ``CustomJvp``;
    ``vmap_rule`` batches the call.
    """

    call: Jaxpr
    fwd: Jaxpr | ZerosVjp | int
    bwd: Jaxpr | int | None
    n_consts: int
    refs: tuple[int, ...]
    wanted: tuple[bool, ...]
    label: str
    forward: Jaxpr | None = None
    vmap_rule: VmapRule | None = None
    name: ClassVar[str] = "custom_vjp_call"
    by_reference: ClassVar[tuple[str, ...]] = ("fwd", "vmap_rule")

    def typing(self, *ins: Type) -> Typing:
        typing = _Called.typing(self, *ins)
        if isinstance(self.fwd, Jaxpr):
            check_call(self, "the forward rule", self.fwd, ins)
            check_no_ref_results(self, "the forward rule", self.fwd)
        return typing

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        if not isinstance(self.fwd, Jaxpr) or not isinstance(self.bwd, Jaxpr):
            return (self.call,)
        forward = () if self.forward is None else (self.forward,)
        return (self.call, self.fwd, self.bwd, *forward)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomVjp:
        call, *rules = jaxprs
        if not rules:
            return replace(self, call=call)
        fwd, bwd, *forward = rules
        return replace(self, call=call, fwd=fwd, bwd=bwd, forward=forward[0] if forward else None)

    @property
    def depth(self) -> int | None:
        """The depth of a recursive call; None for a call with its rules."""
        return self.fwd if isinstance(self.fwd, int) else None

    def at(self, depth: int) -> CustomVjp:
        """Return the recursive call of this one with that depth."""
        return replace(self, fwd=depth, bwd=depth, forward=None)


Custom = CustomJvp | CustomVjp


@dataclass(frozen=True, slots=True)
class CustomVmap(_Called):
    """A call with its own batching rule; the first ``n_consts`` arguments are never batched."""

    call: Jaxpr
    vmap_rule: VmapRule
    n_consts: int
    label: str
    name: ClassVar[str] = "custom_vmap_call"
    by_reference: ClassVar[tuple[str, ...]] = ("vmap_rule",)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.call,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomVmap:
        return replace(self, call=jaxprs[0])


@dataclass(frozen=True, slots=True)
class CustomLinear(Primitive):
    """A call of a linear function with its own transpose.

    Arguments: ``n_fixed`` constants, residuals and references, then linear ones. ``bwd`` maps the
    fixed ones and cotangents of the results to cotangents of the linear ones. The equation has no
    effects; those of ``bwd`` happen in the transposed program.

    ``forward`` maps the arguments to the results. It is None for the derivative of a ``custom_vjp``
    call, of which only the transpose is known. If ``paired``, the transpose is such a call with
    both programs exchanged, so transposing twice is the identity; otherwise it is ``bwd``.
    """

    bwd: Jaxpr | ZerosBackward
    n_fixed: int
    out_types: tuple[Type, ...]
    label: str
    forward: Jaxpr | None = None
    paired: bool = False
    name: ClassVar[str] = "custom_lin"
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

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        bwd = (self.bwd,) if isinstance(self.bwd, Jaxpr) else ()
        return bwd if self.forward is None else (*bwd, self.forward)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomLinear:
        rest = list(jaxprs)
        bwd = rest.pop(0) if isinstance(self.bwd, Jaxpr) else self.bwd
        return replace(self, bwd=bwd, forward=rest[0] if rest else None)


def no_forward(kind: type[E], label: str) -> E:
    """Return the error for forward-mode differentiation of a call with a reverse rule only."""
    return kind(
        f"{label} has a custom reverse derivative and no forward one",
        expected="grad or vjp",
        found="a forward-mode derivative (jvp, linearize, jacfwd)",
        remedy="use custom_jvp for functions that are differentiated forward, or custom_rules to "
        "define both derivatives",
    )
