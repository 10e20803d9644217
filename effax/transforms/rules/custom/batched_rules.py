"""Transformations of custom rules that are functions: they return rules of the same kind."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import Builder
from effax.ir.prims import (
    BackwardRule,
    BatchedProgram,
    ForwardRule,
    ReduceSum,
    ReverseRule,
    SparseBackward,
    SparseJvp,
    SparseVjp,
    VmapRule,
)
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.jvp import jvp
from effax.transforms.rules.common.arrays import to_front
from effax.transforms.vmap.common import batched_type
from effax.transforms.vmap.engine import vmap


@dataclass(frozen=True, slots=True)
class JvpOfVmapRule(VmapRule):
    """The batching rule of a differentiated call: the derivative of the batched jaxpr.

    Its arguments are those of the call, of these types, then the tangents that ``given`` marks. It
    returns the tangents that ``out_tangents`` marks, after the results if ``whole``.
    """

    rule: VmapRule
    types: tuple[Type, ...]
    given: Mask
    out_tangents: Mask
    whole: bool
    rules: RuleSet
    label: str

    def __call__(self, size: int, batched: tuple[bool, ...], /) -> BatchedProgram:
        n = len(self.types)
        of_dots = iter(batched[n:])
        dots = [has and next(of_dots) for has in self.given]
        # A primal and its tangent are batched together.
        joint = tuple([x or y for x, y in zip(batched[:n], dots, strict=True)])
        inner = self.rule(size, joint)
        done = jvp.cached(inner.jaxpr, self.given, self.out_tangents, self.rules)
        b = Builder()
        args = [
            to_front(b, b.bind(batched_type(t, size) if has else t), has or not ct_spec, size)
            for t, has, ct_spec in zip(self.types, batched[:n], joint, strict=True)
        ]
        for t, given, has, ct_spec in zip(self.types, self.given, dots, joint, strict=True):
            if given:
                dot = tangent_type(t)
                x = b.bind(batched_type(dot, size) if has else dot)
                args.append(to_front(b, x, has or not ct_spec, size))
        results = b.inline_jaxpr(done.jaxpr, args)
        n_outs = len(inner.batched)
        found = iter(results[n_outs:])
        outs: list[Atom] = list(results[:n_outs]) if self.whole else []
        flags = list(inner.batched) if self.whole else []
        for has, wanted, flag in zip(
            done.out_tangents, self.out_tangents, inner.batched, strict=True
        ):
            dot_out = next(found) if has else None
            if wanted:
                assert dot_out is not None, "a wanted tangent is instantiated"
                outs.append(dot_out)
                flags.append(flag)
        return BatchedProgram(b.finish(outs), tuple(flags))


@dataclass(frozen=True, slots=True)
class Batching:
    """Batches the jaxprs of one call; all their results are batched."""

    size: int
    unbatched_refs: frozenset[int]
    masked: bool
    rules: RuleSet
    axis: str | None

    def program(
        self, jaxpr: Jaxpr, batched: Sequence[bool], unbatched_refs: frozenset[int] | None = None
    ) -> Jaxpr:
        """Return the batched jaxpr. It takes a mask first if the call is masked."""
        every = (True,) * len(jaxpr.outs)
        refs = self.unbatched_refs if unbatched_refs is None else unbatched_refs
        return vmap.cached(
            jaxpr, tuple(batched), self.size, self.rules, refs, self.masked, every, self.axis
        ).jaxpr

    def backward(
        self,
        bwd: Jaxpr,
        consts: Sequence[bool],
        n_residuals: int,
        refs: Sequence[int],
        batched: Sequence[bool],
    ) -> Jaxpr:
        """Return the batched backward rule, with one cotangent for each batch element.

        Args:
            bwd: the rule, on constants, residuals, references and cotangents.
            consts: which constants are batched.
            n_residuals: the number of residuals, which are batched, as are cotangents.
            refs: positions of the references among the arguments of the call.
            batched: which arguments of the call are batched.
        """
        n = len(consts)
        of_refs = [batched[i] for i in refs]
        n_cts = len(bwd.binders) - n - n_residuals - len(of_refs)
        inside = [*consts, *[True] * n_residuals, *of_refs, *[True] * n_cts]
        of_consts = {i for i in self.unbatched_refs if i < n}
        of_args = {n + n_residuals + k for k, i in enumerate(refs) if i in self.unbatched_refs}
        return self.program(bwd, inside, frozenset(of_consts | of_args))


def summed_where_unbatched(bwd: Jaxpr, batched: Sequence[bool]) -> Jaxpr:
    """Return the backward rule with cotangents of unbatched arguments summed over the batch."""
    if all(batched):
        return bwd
    b = Builder(bwd.in_types)
    outs = b.inline_jaxpr(bwd, b.binders)
    kept = [x if has else b(ReduceSum((0,)), x) for x, has in zip(outs, batched, strict=True)]
    return b.finish(kept, bwd.n_consts, bwd.names)


@dataclass(frozen=True, slots=True)
class BatchedForward(ForwardRule):
    """A batched forward rule; ``batched`` marks the batched arguments."""

    rule: ForwardRule
    batching: Batching
    batched: Mask
    n_consts: int
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        inner, batching, n = self.rule(given), self.batching, len(self.batched)
        dotted = [i for i, has in enumerate(given, self.n_consts) if has]
        refs = batching.unbatched_refs
        # The tangent of an unbatched reference is unbatched.
        own = refs | {n + k for k, i in enumerate(dotted) if i in refs}
        flags = [*self.batched, *[self.batched[i] for i in dotted]]
        return SparseJvp(batching.program(inner.jaxpr, flags, frozenset(own)), inner.nonzero)


@dataclass(frozen=True, slots=True)
class BatchedReverse(ReverseRule):
    """A batched reverse rule; cotangents of unbatched arguments are summed over the batch."""

    rule: ReverseRule
    batching: Batching
    batched: Mask
    n_consts: int
    n_outs: int
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        inner = self.rule(given)
        own = zip(self.batched[self.n_consts :], given, strict=True)
        bwd = BatchedBackward(
            inner.bwd,
            self.batching,
            self.batched,
            self.n_consts,
            len(inner.fwd.outs) - self.n_outs,
            inner.refs,
            tuple([flag for flag, has in own if has]),
            self.label,
        )
        refs = tuple([i + self.batching.masked for i in inner.refs])
        fwd = self.batching.program(inner.fwd, self.batched)
        # A rule that was traced already is batched at once, so that unused residuals are seen.
        known = isinstance(inner.bwd, SparseBackward)
        return SparseVjp(fwd, refs, bwd(()) if known else bwd)


@dataclass(frozen=True, slots=True)
class BatchedBackward(BackwardRule):
    """The backward rule of :class:`BatchedReverse`; ``linear`` marks batched linear arguments."""

    rule: BackwardRule | SparseBackward
    batching: Batching
    batched: Mask
    n_consts: int
    n_residuals: int
    refs: tuple[int, ...]
    linear: Mask
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        inner = self.rule if isinstance(self.rule, SparseBackward) else self.rule(given)
        consts = self.batched[: self.n_consts]
        made = self.batching.backward(
            inner.jaxpr, consts, self.n_residuals, self.refs, self.batched
        )
        kept = [flag for flag, has in zip(self.linear, inner.nonzero, strict=True) if has]
        logged = [True] * len(inner.logs)
        return SparseBackward(
            summed_where_unbatched(made, [*kept, *logged]), inner.nonzero, inner.logs
        )
