"""Calls that bring derivatives of their own: custom_jvp, custom_vjp, and its linear part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from effax.ir.errors import TransformError
from effax.ir.lockstep import Devices, Each, evaluate_together
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims.control import check_call, check_no_ref_results
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type


def _call_region(jaxpr: Jaxpr) -> Region:
    outs = range(len(jaxpr.outs))
    return Region(jaxpr, tuple(range(len(jaxpr.binders))), tuple(outs), (None,) * len(outs))


@dataclass(frozen=True, slots=True)
class CustomJvp(Primitive):
    """A call with its own forward derivative.

    ``call`` maps the arguments to the results. ``rule`` maps constants, the other arguments, and
    the tangents of those, to results and their tangents; the first ``n_consts`` arguments have
    no tangents. A call inside of its own rule has no rule but a depth: how many rules out the one
    is that it belongs to (0: the innermost).
    """

    call: Jaxpr
    rule: Jaxpr | int
    n_consts: int
    label: str
    name: ClassVar[str] = "custom_jvp_call"

    def typing(self, *ins: Type) -> Typing:
        check_call(self, "the function", self.call, ins)
        check_no_ref_results(self, "the function", self.call)
        return Typing(self.call.out_types, self.call.effects)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.evaluate import evaluate

        return evaluate(self.call, ins)

    def together(self, devices: Devices, ins: Each) -> Each:
        return evaluate_together(self.call, devices, ins)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.call,) if isinstance(self.rule, int) else (self.call, self.rule)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomJvp:
        call, *rules = jaxprs
        return replace(self, call=call, rule=rules[0] if rules else self.rule)

    @property
    def depth(self) -> int | None:
        """How many rules out its rule is; None where it has it."""
        return self.rule if isinstance(self.rule, int) else None

    def at(self, depth: int) -> CustomJvp:
        """The same call inside of its own rule, with that depth."""
        return replace(self, rule=depth)

    def regions(self) -> tuple[Region, ...]:
        return (_call_region(self.call),)


@dataclass(frozen=True, slots=True)
class CustomVjp(Primitive):
    """A call with its own reverse derivative.

    ``call`` maps the arguments to the results; ``fwd`` to the results and residuals; ``bwd`` maps
    the ``n_consts`` constants, the residuals, the references at ``refs`` among the arguments, and
    cotangents of the results, to the cotangents of the arguments that ``wanted`` marks. A call
    inside of its own rules has a depth in the place of both, as for ``CustomJvp``.
    """

    call: Jaxpr
    fwd: Jaxpr | int
    bwd: Jaxpr | int
    n_consts: int
    refs: tuple[int, ...]
    wanted: tuple[bool, ...]
    label: str
    name: ClassVar[str] = "custom_vjp_call"

    def typing(self, *ins: Type) -> Typing:
        check_call(self, "the function", self.call, ins)
        check_no_ref_results(self, "the function", self.call)
        if not isinstance(self.fwd, int):
            check_call(self, "the forward rule", self.fwd, ins)
            check_no_ref_results(self, "the forward rule", self.fwd)
        return Typing(self.call.out_types, self.call.effects)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        from effax.ir.evaluate import evaluate

        return evaluate(self.call, ins)

    def together(self, devices: Devices, ins: Each) -> Each:
        return evaluate_together(self.call, devices, ins)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        if isinstance(self.fwd, int) or isinstance(self.bwd, int):
            return (self.call,)
        return (self.call, self.fwd, self.bwd)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomVjp:
        call, *rules = jaxprs
        fwd, bwd = rules or (self.fwd, self.bwd)
        return replace(self, call=call, fwd=fwd, bwd=bwd)

    @property
    def depth(self) -> int | None:
        """How many rules out its rules are; None where it has them."""
        return self.fwd if isinstance(self.fwd, int) else None

    def at(self, depth: int) -> CustomVjp:
        """The same call inside of its own rules, with that depth."""
        return replace(self, fwd=depth, bwd=depth)

    def regions(self) -> tuple[Region, ...]:
        return (_call_region(self.call),)


Custom = CustomJvp | CustomVjp


@dataclass(frozen=True, slots=True)
class CustomLinear(Primitive):
    """The derivative of a ``custom_vjp`` call, known by its transpose alone.

    Arguments: ``n_fixed`` constants, residuals and references, then tangents. ``bwd`` maps the
    fixed ones and cotangents of the results to cotangents of the tangents. Effects of ``bwd``
    happen when it runs, that is after transposition; this equation itself has none.
    """

    bwd: Jaxpr
    n_fixed: int
    out_types: tuple[Type, ...]
    label: str
    name: ClassVar[str] = "custom_lin"

    def typing(self, *ins: Type) -> Typing:
        return Typing(self.out_types)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        raise TransformError(
            f"{self.label} has a custom reverse derivative and no forward one",
            expected="grad or vjp",
            found="a forward-mode derivative (jvp, linearize, jacfwd)",
            remedy="use custom_jvp for functions that are differentiated forward",
        )

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.bwd,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> CustomLinear:
        return replace(self, bwd=jaxprs[0])
