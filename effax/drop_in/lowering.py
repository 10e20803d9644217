"""Lowering of primitives in JAX's form: by the program of a function, or by a rule on MLIR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from effax.api.devices import default_backend
from effax.api.jit import jit
from effax.arrays.binding import wrap
from effax.arrays.conversion import as_value
from effax.drop_in.primitive import AppliedByName, Declared, LoweringNotRegistered, Rule
from effax.drop_in.rules import aval_of, fitted, traced
from effax.ir.build import Builder, typing_of
from effax.ir.errors import BadRule, LoweringError
from effax.ir.primitive import Value
from effax.ir.trace import eager
from effax.ir.types import ArrayType, type_of_value
from effax.lowering.program import without_refs
from effax.lowering.writer import Val, Writer

if TYPE_CHECKING:
    from effax.ir.syntax import Jaxpr

_RULES: Final[dict[tuple[Declared, str | None], Rule]] = {}


@dataclass(frozen=True)
class OfFunction:
    """A lowering rule: the program of a function of arrays, as ``lower_fun`` returns it."""

    function: Rule
    multiple_results: bool

    def jaxpr(self, prim: AppliedByName, types: Sequence[ArrayType]) -> Jaxpr:
        """Return the program on operands of these types."""
        label = f"the function that {prim.name} is lowered as"
        wanted = typing_of(prim, tuple(types)).outs

        def run(*args: object) -> Sequence[object]:
            found = self.function(*args, **prim.arguments.values)
            return list(cast("Sequence[object]", found)) if self.multiple_results else [found]

        made, _ = traced(run, types, label)
        b = Builder(types)
        outs = b.inline_jaxpr(made, b.binders)
        return b.finish([fitted(b, label, x, t) for x, t in zip(outs, wanted, strict=True)])

    def __call__(self, ctx: LoweringRuleContext, *args: Val, **params: object) -> Sequence[Val]:
        """Write a call of the function, from another lowering rule."""

        def run(*ins: object) -> Sequence[object]:
            found = self.function(*ins, **params)
            return list(cast("Sequence[object]", found)) if self.multiple_results else [found]

        made, _ = traced(run, [x.type for x in args], "a function of `lower_fun`")
        return ctx.writer.call(without_refs(made).jaxpr, args, "lower_fun")


def lower_fun(fun: Rule, multiple_results: bool = True) -> OfFunction:
    """Return the lowering rule that writes the program of a function of arrays and parameters.

    Args:
        fun: a function of the operands, and of the parameters by name.
        multiple_results: whether it returns a list of results, instead of one.
    """
    return OfFunction(fun, multiple_results)


def register_lowering(
    prim: Declared, rule: Rule, platform: str | None = None, **options: object
) -> Rule:
    """Set the lowering rule of a primitive, for one platform or for all, and return it.

    Args:
        prim: a primitive that ``jax.extend.core.Primitive`` made.
        rule: the result of :func:`lower_fun`; or a function of a :class:`LoweringRuleContext`, the
            operands and the parameters.
        platform: ``cpu``, ``cuda``, ``rocm`` or ``tpu``; None for all.
        **options: accepted as in JAX, and not used.

    Raises:
        BadRule: it is a primitive of effax.
    """
    given: object = prim
    if not hasattr(given, "changed"):
        raise BadRule(
            f"the lowering rule of {prim} cannot be replaced: it is a primitive of effax",
            expected="a primitive that `jax.extend.core.Primitive` made",
        )
    _RULES[prim, platform] = rule
    prim.changed()
    return rule


def compiled(prim: object, args: Sequence[object], params: Mapping[str, object]) -> object:
    """Apply a primitive by its lowering, compiled by itself."""
    assert isinstance(prim, Declared)
    return jit(lambda *operands: prim.bind(*operands, **params))(*args)


class ModuleContext:
    """The module that is written, as lowering rules of JAX see it."""

    def __init__(self, platform: str) -> None:
        self.platforms: tuple[str, ...] = (platform,)

    def add_keepalive(self, value: object) -> None:
        """Do nothing: a program keeps the functions that it calls."""


class LoweringRuleContext:
    """The context of a lowering rule of JAX's form.

    Attributes:
        module_context: the module.
        primitive: the primitive.
        avals_in: the types of the operands.
        avals_out: the types of the results.
        writer: the writer of the equation, of effax.
    """

    def __init__(
        self,
        writer: Writer,
        primitive: Declared,
        avals_in: Sequence[ArrayType],
        avals_out: Sequence[ArrayType],
    ) -> None:
        self.writer: Writer = writer
        self.module_context: ModuleContext = ModuleContext(default_backend())
        self.primitive: Declared = primitive
        self.avals_in: list[ArrayType] = list(avals_in)
        self.avals_out: list[ArrayType] = list(avals_out)
        self.tokens_in: None = None


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Sequence[object]],
    token: object,
    operands: Sequence[Val],
    operand_avals: Sequence[ArrayType],
    result_avals: Sequence[ArrayType],
    **options: object,
) -> tuple[Sequence[Val], object, object]:
    """Write a call of a Python function of arrays while the program runs.

    Returns:
        The results, the token unchanged, and an object to keep alive.
    """

    def run(*ins: Value) -> Sequence[Value]:
        with eager():
            found = callback(*[wrap(x.view(), type_of_value(x)) for x in ins])
        return [np.asarray(as_value(x, "a result of a callback").numpy()) for x in found]

    return ctx.writer.host_call(run, operands, list(result_avals)), token, callback


def lowered(prim: AppliedByName, w: Writer, ins: Sequence[Val]) -> Sequence[Val]:
    """Write an application by its registered rule.

    Raises:
        LoweringNotRegistered: there is no rule.
        LoweringError: a rule on MLIR returns other values.
    """
    rule = _RULES.get((prim.declared, default_backend()), _RULES.get((prim.declared, None)))
    if rule is None:
        raise LoweringNotRegistered(
            f"MLIR translation rule for primitive '{prim.name}' not found for platform "
            f"{default_backend()}",
            remedy="`mlir.register_lowering(prim, mlir.lower_fun(f, multiple_results=False))`",
        )
    types = [v.type for v in ins]
    if isinstance(rule, OfFunction):
        jaxpr = rule.jaxpr(prim, [t.strong() for t in types])
        return w.call(without_refs(jaxpr).jaxpr, ins, prim.name)
    outs = [aval_of(t) for t in typing_of(prim, tuple(types)).outs]
    ctx = LoweringRuleContext(w, prim.declared, types, outs)
    found = rule(ctx, *ins, **prim.arguments.values)
    values = (
        list(found) if isinstance(found, list | tuple) and not isinstance(found, Val) else [found]
    )
    if len(values) != len(outs) or not all(isinstance(x, Val) for x in values):
        raise LoweringError(
            f"the lowering rule of {prim.name} does not return the results of effax's writer",
            expected="the results of `mlir.emit_python_callback` or of a rule of `mlir.lower_fun`",
            found=", ".join(type(x).__name__ for x in values),
            remedy="register `mlir.lower_fun(f, multiple_results)` instead of a rule on MLIR",
        )
    return [cast(Val, x) for x in values]
