"""Partial evaluation: a program split into a known and an unknown jaxpr.

Before, with ``a`` known and ``b`` unknown::

    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = mul c b
      in (c, d) }

The known jaxpr, whose result is also a residual, and the unknown jaxpr::

    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    { lambda a:f32[] ; b:f32[]. let c:f32[] = mul a b in (c,) }

The known jaxpr runs first, as a whole. So an equation on known values is in it only if its effects
commute with those of the unknown equations before it: effects keep their order, and none runs
twice. A local reference is in one of the two jaxprs, with every access to it; the caller's
references may be used by both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar

from effax.ir.build import Builder
from effax.ir.edit.renumber import numbered
from effax.ir.errors import TransformError
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import RefType, Type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Policy, RuleSet
from effax.transforms.partial_eval.engine import Partition, partition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FromInput:
    """A residual that is a known input of the program."""

    index: int

    def pick(self, inputs: Sequence[T], outs: Sequence[T]) -> T:
        """Return the residual, from the program's inputs and the known jaxpr's results."""
        return inputs[self.index]


@dataclass(frozen=True, slots=True)
class FromOutput:
    """A residual that is a result of the known jaxpr."""

    index: int

    def pick(self, inputs: Sequence[T], outs: Sequence[T]) -> T:
        """Return the residual, from the program's inputs and the known jaxpr's results."""
        return outs[self.index]


Residual = FromInput | FromOutput


class PartialEval(NamedTuple):
    """The result of :func:`partial_eval`.

    Attributes:
        known: ``known inputs -> (known results, residuals that are not among them)``.
        unknown: ``(residuals, unknown inputs) -> unknown results``.
        known_ins: which inputs are known; the argument.
        known_outs: which results ``known`` returns.
        residuals: the origin of each residual.
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
            "partial_eval needs one entry for each input, and of `instantiate` for each result",
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
    """Split ``jaxpr`` into a known jaxpr, of the known inputs only, and an unknown jaxpr.

    Type:     (a, b) -> (c, d)  =>  a -> (c, r)  and  (r, b) -> d     a known, r residuals
    Effects:  each is in one of the jaxprs, and those that do not commute keep their order.
    Laws:     tests/laws/test_partial_eval.py
    Raises:   TransformError: an entry for an input or a result is missing.
    Source:   autodidax, part 4.

    Args:
        jaxpr: the program.
        known: one entry an input: whether its value is known.
        policy: whether the results of a known equation may be residuals; others are recomputed in
            the unknown jaxpr, without their side effects. None: all may be residuals.
        instantiate: which results the unknown jaxpr returns even if they are known.
        rules: the rules; the registered ones where it is None.
    """
    forced = (instantiate,) * len(jaxpr.outs) if isinstance(instantiate, bool) else instantiate
    return _partial_eval(jaxpr, tuple(known), policy, tuple(forced), rules_or_default(rules))


def as_jaxprs(parts: Partition) -> PartialEval:
    """Return the known and unknown jaxprs of a partition."""
    jaxpr, known = parts.jaxpr, parts.known_ins
    sources, extra = _sources(parts)
    known_ins = [v for v, has in zip(jaxpr.binders, known, strict=True) if has]
    unknown_ins = [v for v, has in zip(jaxpr.binders, known, strict=True) if not has]
    n_known = sum(known[: jaxpr.n_consts])
    n_unknown = len(parts.residuals) + jaxpr.n_consts - n_known
    names = [jaxpr.names[i] if i < len(jaxpr.names) else "" for i in range(len(known))]
    known_names = [name for name, has in zip(names, known, strict=True) if has]
    unknown_names = [""] * len(parts.residuals)
    unknown_names += [name for name, has in zip(names, known, strict=True) if not has]
    known_results = [*parts.known_results, *extra]
    binders = [*parts.residuals, *unknown_ins]
    eqns, results, size = parts.unknown_eqns, parts.unknown_results, parts.size
    return PartialEval(
        numbered(known_ins, parts.known_eqns, known_results, size, n_known, known_names),
        numbered(binders, eqns, results, size, n_unknown, unknown_names),
        known,
        parts.known_outs,
        sources,
    )


def _sources(parts: Partition) -> tuple[tuple[Residual, ...], list[Var]]:
    """Return the origin of each residual, and the residuals that are not results so far."""
    inputs = {v.id: FromInput(i) for i, v in enumerate(parts.jaxpr.binders)}
    results: dict[int, Residual] = {}
    for j, a in enumerate(parts.known_results):
        if isinstance(a, Var):
            results.setdefault(a.id, FromOutput(j))
    sources: list[Residual] = []
    extra: list[Var] = []
    for v in parts.residuals:
        found = inputs.get(v.id) or results.get(v.id)
        if found is None:
            found = FromOutput(len(parts.known_results) + len(extra))
            extra.append(v)
        sources.append(found)
    return tuple(sources), extra


def frees_refs(in_types: Sequence[Type], known: Mask, passed: Collection[int]) -> bool:
    """Return whether a known reference is not an operand of the unknown jaxpr of an equation.

    A split then pays even if it computes no known value: the reference stays known.
    """
    return any(
        has and i not in passed and isinstance(type_, RefType)
        for i, (type_, has) in enumerate(zip(in_types, known, strict=True))
    )


def recompose(pe: PartialEval) -> Jaxpr:
    """Return the program that runs the known jaxpr, then the unknown one."""
    unknown_ins = pe.unknown.in_types[len(pe.residuals) :]
    b = Builder(_merged(pe.known_ins, pe.known.in_types, unknown_ins))
    ins = list[Atom](b.binders)
    known = [x for x, has in zip(ins, pe.known_ins, strict=True) if has]
    unknown = [x for x, has in zip(ins, pe.known_ins, strict=True) if not has]
    known_outs = b.inline_jaxpr(pe.known, known)
    residuals = [r.pick(ins, known_outs) for r in pe.residuals]
    unknown_outs = b.inline_jaxpr(pe.unknown, [*residuals, *unknown])
    n_consts = pe.known.n_consts + pe.unknown.n_consts - len(pe.residuals)
    unknown_names = pe.unknown.names[len(pe.residuals) :]
    named = any(pe.known.names + unknown_names)
    names = _merged(pe.known_ins, pe.known.names, unknown_names) if named else ()
    return b.finish(_merged(pe.known_outs, known_outs, unknown_outs), n_consts, names)


def _merged(mask: Mask, first: Sequence[T], second: Sequence[T]) -> list[T]:
    """Return items of ``first`` where the mask is true, of ``second`` elsewhere, in order."""
    yes, no = iter(first), iter(second)
    return [next(yes) if has else next(no) for has in mask]
