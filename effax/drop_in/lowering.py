"""Lowering of primitives in JAX's form: by the program of a function, or by a rule on MLIR."""

from __future__ import annotations

import re
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
from effax.ir.types import COUNTER, ArrayType, type_of_value
from effax.lowering.mlir_text import tensor
from effax.lowering.program import without_refs
from effax.lowering.writer import Val, Writer
from effax.lowering.xla.mlir_rules import WrittenRule, deferred_op, operations_of

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

    def __call__(self, ctx: LoweringRuleContext, *args: object, **params: object) -> list[object]:
        """Build a call of the function, from another lowering rule on the same operands."""

        def run(*ins: object) -> Sequence[object]:
            found = self.function(*ins, **params)
            return list(cast("Sequence[object]", found)) if self.multiple_results else [found]

        made, _ = traced(run, ctx.avals_in, "a function of `lower_fun`")
        jaxpr = without_refs(made).jaxpr
        types = cast("tuple[ArrayType, ...]", jaxpr.out_types)
        call: Deferred = lambda w, ins: w.call(jaxpr, ins, "lower_fun")  # noqa: E731
        return ctx.defer(call, args, ctx.avals_in, types)


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
        rule: the result of :func:`lower_fun`; or a function of a :class:`LoweringRuleContext`, a
            value of MLIR for each operand, and the parameters, that returns values of MLIR.
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


Deferred = Callable[[Writer, Sequence[Val]], Sequence[Val]]
"""Writes an operation of effax in the place of a deferred one of MLIR."""


class LoweringRuleContext:
    """The context of a lowering rule of JAX's form.

    Attributes:
        module_context: the module.
        primitive: the primitive.
        avals_in: the types of the operands.
        avals_out: the types of the results.
        deferred: the operations of effax that the rule uses, by number.
    """

    def __init__(
        self, primitive: Declared, avals_in: Sequence[ArrayType], avals_out: Sequence[ArrayType]
    ) -> None:
        self.module_context: ModuleContext = ModuleContext(default_backend())
        self.primitive: Declared = primitive
        self.avals_in: list[ArrayType] = list(avals_in)
        self.avals_out: list[ArrayType] = list(avals_out)
        self.tokens_in: None = None
        self.deferred: list[Callable[[Writer, Sequence[str]], Sequence[Val]]] = []

    def defer(
        self,
        write: Deferred,
        operands: Sequence[object],
        avals: Sequence[ArrayType],
        out_avals: Sequence[ArrayType],
    ) -> list[object]:
        """Build an operation that the writer replaces by those that ``write`` writes."""

        def named(w: Writer, names: Sequence[str]) -> Sequence[Val]:
            return write(w, [Val(n, t.strong()) for n, t in zip(names, avals, strict=True)])

        self.deferred.append(named)
        types = [tensor(t) for t in out_avals]
        return deferred_op(len(self.deferred) - 1, operands, types)


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Sequence[object]],
    token: object,
    operands: Sequence[object],
    operand_avals: Sequence[ArrayType],
    result_avals: Sequence[ArrayType],
    **options: object,
) -> tuple[list[object], object, object]:
    """Build a call of a Python function of arrays while the program runs.

    Returns:
        The results, the token unchanged, and an object to keep alive.
    """

    def run(*ins: Value) -> Sequence[Value]:
        with eager():
            found = callback(*[wrap(x.view(), type_of_value(x)) for x in ins])
        return [np.asarray(as_value(x, "a result of a callback").numpy()) for x in found]

    call: Deferred = lambda w, ins: w.host_call(run, ins, list(result_avals))  # noqa: E731
    return ctx.defer(call, operands, operand_avals, result_avals), token, callback


def lowered(prim: AppliedByName, w: Writer, ins: Sequence[Val]) -> Sequence[Val]:
    """Write an application by its registered rule.

    Raises:
        LoweringNotRegistered: there is no rule.
        LoweringError: a rule on MLIR returns another number of values.
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
    outs = [aval_of(t).strong() for t in typing_of(prim, tuple(types)).outs]
    ctx = LoweringRuleContext(prim.declared, types, outs)

    def build(values: list[object]) -> list[object]:
        found = rule(ctx, *values, **prim.arguments.values)
        listed = list(found) if isinstance(found, list | tuple) else [found]
        flat = [y for x in listed for y in (x if isinstance(x, list | tuple) else [x])]
        if len(flat) != len(outs):
            raise LoweringError(
                f"the lowering rule of {prim.name} returns the wrong number of results",
                expected=str(len(outs)),
                found=str(len(flat)),
            )
        return flat

    return _transferred(
        w, ctx, operations_of(build, [tensor(t.strong()) for t in types]), ins, outs
    )


_NAME: Final = re.compile(r"%([\w$.-]+)(#\d+)?")


def _transferred(
    w: Writer,
    ctx: LoweringRuleContext,
    made: WrittenRule,
    ins: Sequence[Val],
    out_types: Sequence[ArrayType],
) -> list[Val]:
    """Write the operations of a rule, with names of the writer."""
    names = {f"%arg{i}": v.name for i, v in enumerate(ins)}

    def renamed(found: re.Match[str]) -> str:
        base, number = f"%{found[1]}", found[2] or ""
        if base + number in names:
            return names[base + number]
        if base not in names:
            names[base] = w.fresh(COUNTER).name
        return names[base] + number

    for op in made.ops:
        if op.deferred is None:
            w.raw(_NAME.sub(renamed, op.text))
            continue
        vals = ctx.deferred[op.deferred](w, [_NAME.sub(renamed, x) for x in op.operands])
        for i, v in enumerate(vals):
            names[op.result if op.n_results == 1 else f"{op.result}#{i}"] = v.name
    outs = [_NAME.sub(renamed, x) for x in made.outs]
    return [_whole(w, x, t) for x, t in zip(outs, out_types, strict=True)]


def _whole(w: Writer, name: str, type_: ArrayType) -> Val:
    """Return a value that is named alone: one of several results is copied."""
    if "#" not in name:
        return Val(name, type_)
    text = tensor(type_)
    return w.op1(f"stablehlo.reshape {name} : ({text}) -> {text}", type_)
