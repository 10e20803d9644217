"""Partial evaluation: a program as two, what known inputs decide and what is left.

Before, with ``a`` known and ``b`` unknown::

    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = mul c b
      in (c, d) }

Known and unknown half; the one result of the known half is a residual of the unknown one too::

    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    { lambda a:f32[] ; b:f32[]. let c:f32[] = mul a b in (c,) }

The known half runs first, as a whole. So an equation on known values is in it only if its effects
commute with those of the unknown equations before it: effects keep the order of the program where
it matters, and none runs twice. A reference that the program makes is in one of the halves, with
all that is done to it; one of the caller's may be used by both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from effax.ir.build import Builder
from effax.ir.errors import TransformError
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import RefType, Type
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.renumber import numbered
from effax.transforms.framework.rules import Policy, RuleSet
from effax.transforms.partial_eval.engine import Partition, partition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FromInput:
    """A residual that is an input of the program, known and not computed."""

    index: int

    def pick(self, inputs: Sequence[T], outs: Sequence[T]) -> T:
        """The residual's value, from the program's inputs and its known half's results."""
        return inputs[self.index]


@dataclass(frozen=True, slots=True)
class FromOutput:
    """A residual that is a result of the known half."""

    index: int

    def pick(self, inputs: Sequence[T], outs: Sequence[T]) -> T:
        """The residual's value, from the program's inputs and its known half's results."""
        return outs[self.index]


Residual = FromInput | FromOutput


class PartialEval(NamedTuple):
    """The result of :func:`partial_eval`.

    Attributes:
        known: ``known inputs -> (known results, residuals that are not among them)``.
        unknown: ``(residuals, unknown inputs) -> unknown results``.
        known_ins: which inputs are known; the given mask.
        known_outs: which results the known half gives.
        residuals: where each residual comes from.
    """

    known: Jaxpr
    unknown: Jaxpr
    known_ins: Mask
    known_outs: Mask
    residuals: tuple[Residual, ...]


def _partial_eval(
    jaxpr: Jaxpr, known: Mask, policy: Policy | None, instantiate: Mask, rules: RuleSet
) -> PartialEval:
    if (len(known), len(instantiate)) != (len(jaxpr.binders), len(jaxpr.outs)):
        raise TransformError(
            "partial_eval needs one entry an input, and of `instantiate` one a result",
            expected=f"{len(jaxpr.binders)} and {len(jaxpr.outs)}",
            found=f"{len(known)} and {len(instantiate)}",
        )
    return as_jaxprs(partition(jaxpr, known, policy, instantiate, rules))


@jaxpr_pass(_partial_eval, maxsize=1024)
def partial_eval(
    jaxpr: Jaxpr,
    known: Sequence[bool],
    policy: Policy | None = None,
    instantiate: bool | Sequence[bool] = False,
    rules: RuleSet | None = None,
) -> PartialEval:
    """Split ``jaxpr`` in what its known inputs decide, and what is left.

    Type:     (a, b) -> (c, d)  =>  a -> (c, r)  and  (r, b) -> d     a known, r residuals
    Effects:  each is in one half, and those that do not commute keep their order.
    Laws:     tests/laws/test_partial_eval.py
    Raises:   TransformError: an entry for an input or a result is missing.
    Source:   autodidax, part 4.

    Args:
        jaxpr: the program.
        known: one entry an input: whether its value is known.
        policy: whether the result of a known equation may be kept for the unknown half; what may
            not is computed again there. Equations with effects are never computed again. Every
            result may be kept where it is None.
        instantiate: which results the unknown half gives even if they are known.
        rules: the rules; the library's own where it is None.
    """
    forced = (instantiate,) * len(jaxpr.outs) if isinstance(instantiate, bool) else instantiate
    return _partial_eval(jaxpr, tuple(known), policy, tuple(forced), rules_or_default(rules))


def as_jaxprs(halves: Partition) -> PartialEval:
    """Both halves as programs."""
    jaxpr, known = halves.jaxpr, halves.known_ins
    sources, extra = _sources(halves)
    early_ins = [v for v, has in zip(jaxpr.binders, known, strict=True) if has]
    late_ins = [v for v, has in zip(jaxpr.binders, known, strict=True) if not has]
    n_early = sum(known[: jaxpr.n_consts])
    n_late = len(halves.residuals) + jaxpr.n_consts - n_early
    names = [jaxpr.names[i] if i < len(jaxpr.names) else "" for i in range(len(known))]
    early_names = [name for name, has in zip(names, known, strict=True) if has]
    late_names = [""] * len(halves.residuals)
    late_names += [name for name, has in zip(names, known, strict=True) if not has]
    early_outs = [*halves.early_outs, *extra]
    late_binders = [*halves.residuals, *late_ins]
    size = halves.size
    return PartialEval(
        numbered(early_ins, halves.early, early_outs, size, n_early, early_names),
        numbered(late_binders, halves.late, halves.late_outs, size, n_late, late_names),
        known,
        halves.known_outs,
        sources,
    )


def _sources(halves: Partition) -> tuple[tuple[Residual, ...], list[Var]]:
    """Where each residual comes from, and those that are not among the results so far."""
    inputs = {v.id: FromInput(i) for i, v in enumerate(halves.jaxpr.binders)}
    results: dict[int, Residual] = {}
    for j, a in enumerate(halves.early_outs):
        if isinstance(a, Var):
            results.setdefault(a.id, FromOutput(j))
    sources: list[Residual] = []
    extra: list[Var] = []
    for v in halves.residuals:
        found = inputs.get(v.id) or results.get(v.id)
        if found is None:
            found = FromOutput(len(halves.early_outs) + len(extra))
            extra.append(v)
        sources.append(found)
    return tuple(sources), extra


def frees_refs(in_types: Sequence[Type], known: Mask, passed: Collection[int]) -> bool:
    """Whether some known reference is no argument of the unknown half of an application.

    Splitting it then pays, even if nothing is computed early: the reference can stay known.
    """
    return any(
        has and i not in passed and isinstance(type_, RefType)
        for i, (type_, has) in enumerate(zip(in_types, known, strict=True))
    )


def recompose(pe: PartialEval) -> Jaxpr:
    """The known half, then the unknown one: a program equal in meaning to the one split."""
    late_ins = pe.unknown.in_types[len(pe.residuals) :]
    b = Builder(_merged(pe.known_ins, pe.known.in_types, late_ins))
    ins = list[Atom](b.binders)
    known = [x for x, has in zip(ins, pe.known_ins, strict=True) if has]
    unknown = [x for x, has in zip(ins, pe.known_ins, strict=True) if not has]
    early = b.inline_jaxpr(pe.known, known)
    residuals = [r.pick(ins, early) for r in pe.residuals]
    late = b.inline_jaxpr(pe.unknown, [*residuals, *unknown])
    n_consts = pe.known.n_consts + pe.unknown.n_consts - len(pe.residuals)
    late_names = pe.unknown.names[len(pe.residuals) :]
    names = (
        _merged(pe.known_ins, pe.known.names, late_names)
        if any(pe.known.names + late_names)
        else ()
    )
    return b.finish(_merged(pe.known_outs, early, late), n_consts, names)


def _merged(mask: Mask, first: Sequence[T], second: Sequence[T]) -> list[T]:
    """Items of ``first`` where the mask is true, of ``second`` where it is false, in order."""
    yes, no = iter(first), iter(second)
    return [next(yes) if has else next(no) for has in mask]
