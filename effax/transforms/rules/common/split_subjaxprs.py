"""Partial evaluation of subjaxprs: calls of the known and unknown jaxprs, effects on references."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from effax.effects import ArgIndex, Effect, SideEffect
from effax.ir.build import Builder
from effax.ir.syntax import Atom
from effax.ir.types import Type
from effax.transforms.framework.rules import PartialEvalOut
from effax.transforms.partial_eval.partial_eval import FromInput, PartialEval, frees_refs

Call = Callable[[Builder, Sequence[Atom]], Sequence[Atom]]
"""Emit a call of a subjaxpr on these operands."""


def split_into_calls(
    pe: PartialEval, in_types: Sequence[Type], known_call: Call, unknown_call: Call
) -> PartialEvalOut | None:
    """Return the split of a call. None if the known call would compute nothing.

    Args:
        pe: the split subjaxpr.
        in_types: the types of the operands.
        known_call: emits a call of the known jaxpr; it returns the known results, then the
            residuals that are not inputs, in order.
        unknown_call: emits a call of the unknown jaxpr on residuals and unknown operands.
    """
    known = pe.known_ins
    forwarded = {r.index for r in pe.residuals if isinstance(r, FromInput)}
    n_residuals = sum(not isinstance(r, FromInput) for r in pe.residuals)
    gained = any(pe.known_outs) or n_residuals or pe.known.effects
    if not gained and not frees_refs(in_types, known, forwarded):
        return None
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    outs = known_call(b, b.binders)
    types = [x.type for x in outs[sum(pe.known_outs) :]]

    unknown_args = tuple([i for i, has in enumerate(known) if i in forwarded or not has])
    rest = Builder([*types, *[in_types[i] for i in unknown_args]])
    values = iter(rest.binders[:n_residuals])
    args = dict(zip(unknown_args, rest.binders[n_residuals:], strict=True))
    ins = [args[r.index] if isinstance(r, FromInput) else next(values) for r in pe.residuals]
    ins += [args[i] for i, has in enumerate(known) if not has]
    unknown = rest.finish(unknown_call(rest, ins))
    return PartialEvalOut(b.finish(outs), unknown, pe.known_outs, n_residuals, unknown_args)


def effects_on_known_refs(pe: PartialEval) -> Iterator[tuple[int, Effect[ArgIndex]]]:
    """Yield the effects of the unknown jaxpr on known references, by position of the input."""
    for effect in pe.unknown.effects:
        if not isinstance(effect, SideEffect) and effect.ref < len(pe.residuals):
            source = pe.residuals[effect.ref]
            assert isinstance(source, FromInput), "a reference is never a result"
            yield source.index, effect
