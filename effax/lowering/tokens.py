"""Order side effects by a token.

XLA orders operations by data dependences alone. Each equation with a side effect therefore takes a
reference, the token, and writes it; discharge then threads its contents through calls, loops
(conditions included) and branches, as for any reference::

    { lambda ; a:f32[]. let debug_callback[callback=@f ordered=True] a in () }

becomes, with the token, and after discharge::

    { lambda ; a:f32[]. let
        b:Ref{i32[]} = new_ref 0:i32[]
        with_token[prim=DebugCallback(...)] b a
      in () }

    { lambda ; a:f32[]. let b:i32[] = token_call[prim=DebugCallback(...)] 0:i32[] a in () }

One token orders all side effects, so a compiled program performs them in program order, even where
the commutation table allows another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from effax.effects import ArgIndex, Row, Write
from effax.ir.build import Builder, lit, typing_of
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import LoweringError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import (
    FreeRef,
    Jit,
    NewRef,
)
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import ArrayType, Type, ref_type
from effax.lazy.dataclasses import dataclass
from effax.lowering.writer import NO_RULES, TOKEN, Expansion, LoweringRules, Val, Writer
from effax.transforms.framework.rules import (
    DischargeOut,
    Indivisible,
    RuleBuilder,
    Rules,
    RuleSet,
    Unsupported,
)
from effax.transforms.framework.runner import located
from effax.transforms.rules.default import DEFAULT_RULES

_REF: Final = ref_type(TOKEN)


@dataclass(frozen=True, slots=True)
class WithToken(Primitive):
    """Apply ``prim`` and write the token: ``with_token(token_ref, *args) -> prim(*args)``."""

    prim: Primitive
    name: ClassVar[str] = "with_token"

    def typing(self, *ins: Type) -> Typing:
        outs, row = typing_of(self.prim, ins[1:])
        moved = row.rename(lambda i: ArgIndex(i + 1))
        return Typing(outs, moved.join(Row([Write(ArgIndex(0))])))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return self.prim.evaluate(*ins[1:])


@dataclass(frozen=True, slots=True)
class TokenCall(Primitive):
    """Apply ``prim`` after the token: ``token_call(token, *args) -> (token, *prim(*args))``."""

    prim: Primitive
    name: ClassVar[str] = "token_call"

    def typing(self, *ins: Type) -> Typing:
        outs, row = typing_of(self.prim, ins[1:])
        return Typing((TOKEN, *outs), row.rename(lambda i: ArgIndex(i + 1)))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (ins[0], *self.prim.evaluate(*ins[1:]))


def with_token_discharge(
    b: RuleBuilder, prim: WithToken, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Replace the token by its contents. Raise LoweringError if ``prim`` takes other references."""
    if True in is_ref[1:]:
        raise LoweringError(
            f"{prim.prim.name} has a side effect and accesses a reference",
            expected="two primitives, one for each",
            found=f"argument {is_ref.index(True, 1) - 1} is a reference",
        )
    token, *outs = b.emit(TokenCall(prim.prim), ins)
    return DischargeOut(outs, [token, *[None] * (len(ins) - 1)])


_LOWERING_ONLY: Final = Unsupported("only lowering creates it, after all other transformations")


def ordering_rules() -> RuleSet:
    """Return the default rules, extended by the discharge rule of ``with_token``."""
    none = _LOWERING_ONLY
    rules = Rules(none, none, none, Indivisible(), with_token_discharge)
    return DEFAULT_RULES.extend(WithToken, rules)


@dataclass(frozen=True, slots=True)
class OnEachDevice(TokenCall):
    """A call after a token that each device makes."""


@memoize(maxsize=1024)
def has_token_calls(jaxpr: Jaxpr) -> bool:
    """Return whether a program or a subjaxpr has calls after a token."""
    return any(
        isinstance(eqn.prim, TokenCall) or any(map(has_token_calls, eqn.prim.subjaxprs()))
        for eqn in jaxpr.eqns
    )


def each_device_call(w: Writer, prim: OnEachDevice, ins: Sequence[Val]) -> Sequence[Val]:
    """Lower the wrapped primitive for each device."""
    w.each_device = True
    return w.token_call(prim.prim, ins[0], ins[1:])


def token_call(w: Writer, prim: TokenCall, ins: Sequence[Val]) -> Sequence[Val]:
    """Lower the wrapped primitive by its own rule, after the token."""
    return w.token_call(prim.prim, ins[0], ins[1:])


TOKENS: Final = NO_RULES.extend(TokenCall, token_call).extend(OnEachDevice, each_device_call)


def thread_token(jaxpr: Jaxpr, rules: LoweringRules) -> Jaxpr:
    """Return the program with a token that each of its side effects writes.

    A program without side effects is returned unchanged.

    Args:
        jaxpr: the program.
        rules: the lowering rules; a primitive that they expand is threaded as a call.

    Raises:
        LoweringError: a primitive that contains jaxprs with side effects declares no order of them.
    """
    if not jaxpr.effects.side_effects:
        return jaxpr
    b = Builder(jaxpr.in_types)
    token = b(NewRef(), lit(0, TOKEN))
    outs = b.inline_jaxpr(_with_token(jaxpr, rules), [token, *b.binders])
    b.emit(FreeRef(), [token])
    return b.finish(outs, jaxpr.n_consts, jaxpr.names)


@memoize(maxsize=1024)
def _with_token(jaxpr: Jaxpr, rules: LoweringRules) -> Jaxpr:
    """Return the program with the token as its first input."""
    b = Builder([_REF, *jaxpr.in_types])
    token, *binders = b.binders
    made = Rewriter(jaxpr, b, binders)
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        if eqn.effects.side_effects:
            made.replace(eqn, made.emit(eqn, *_thread_eqn(eqn, [*ins], token, rules)))
        else:
            made.keep(eqn, ins)
    names = ("", *jaxpr.names) if jaxpr.names else ()
    return b.finish(made.results(), jaxpr.n_consts + 1, names)


def _thread_eqn(
    eqn: Eqn, ins: list[Atom], token: Var, rules: LoweringRules
) -> tuple[Primitive, list[Atom]]:
    """Return the primitive and operands of the equation with the token among them."""
    prim = eqn.prim.as_call() or eqn.prim
    subjaxprs = prim.subjaxprs()
    if not subjaxprs:
        return WithToken(prim), [token, *ins]
    if len(prim.regions()) == len(subjaxprs):
        made = prim.with_constants([_with_token(jaxpr, rules) for jaxpr in subjaxprs], 1)
        if made is not None:
            selector = prim.selector()
            # The selector of a `cond` stays first; the branches' operands follow it.
            at = 0 if selector is None else selector + 1
            return made, [*ins[:at], token, *ins[at:]]
    defined = _definition(prim, [a.type for a in ins], rules)
    if defined is not None:
        return Jit(_with_token(defined, rules), prim.name), [token, *ins]
    error = LoweringError(
        f"{prim.name} contains jaxprs with side effects, and declares no order of them",
        expected="`regions` for all of its jaxprs, and `with_constants`",
        found=str(eqn.effects),
        remedy="declare them, inline it first, or write it with jit, scan, while, cond or remat",
    )
    raise located(error, eqn)


def _definition(prim: Primitive, types: Sequence[Type], rules: LoweringRules) -> Jaxpr | None:
    """Return the program that defines a primitive, or as which it is lowered; or None."""
    rule = rules.rules.get(type(prim))
    arrays = tuple([t for t in types if isinstance(t, ArrayType)])
    if isinstance(rule, Expansion) and len(arrays) == len(types):
        return rule.jaxpr(prim, arrays)
    return prim.definition(*types)
