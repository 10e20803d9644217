"""What becomes of rules that are asked for a program, under transformations: such rules again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from effax.ir.build import Builder
from effax.ir.prims import (
    BatchedProgram,
    ReduceSum,
    SparseBackward,
    SparseJvp,
    SparseVjp,
    VmapRule,
    ZerosBackward,
    ZerosJvp,
    ZerosVjp,
)
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, Type, tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.jvp import jvp
from effax.transforms.rules.common.arrays import to_front
from effax.transforms.vmap.common import batched_type
from effax.transforms.vmap.engine import vmap


@dataclass(frozen=True, slots=True)
class JvpOfVmapRule(VmapRule):
    """The rule of a call that was differentiated: the derivative of what the rule gives.

    Its arguments are those of the call, of these types, and the tangents of those ``given``. It
    gives the tangents that ``out_tangents`` marks, and where ``whole`` the results before them.
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
        # A tangent and what it belongs to have the axis both, or neither.
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
                assert dot_out is not None, "what is wanted is instantiated"
                outs.append(dot_out)
                flags.append(flag)
        return BatchedProgram(b.finish(outs), tuple(flags))


@dataclass(frozen=True, slots=True)
class OverLanes:
    """How programs of one call are taken over lanes: all their results are batched."""

    size: int
    shared: frozenset[int]
    masked: bool
    rules: RuleSet
    axis: str | None

    def program(
        self, jaxpr: Jaxpr, batched: Sequence[bool], shared: frozenset[int] | None = None
    ) -> Jaxpr:
        """The program over the batch; where masked it takes a mask."""
        everything = (True,) * len(jaxpr.outs)
        held = self.shared if shared is None else shared
        inside = vmap.cached(
            jaxpr,
            tuple(batched),
            self.size,
            self.rules,
            held,
            self.masked,
            everything,
            self.axis,
        )
        return inside.jaxpr

    def backward(
        self,
        bwd: Jaxpr,
        consts: Sequence[bool],
        n_residuals: int,
        refs: Sequence[int],
        batched: Sequence[bool],
    ) -> Jaxpr:
        """A backward rule over the batch, its results as they are: one a lane.

        Args:
            bwd: the rule: of constants, residuals, references, cotangents.
            consts: which constants are batched.
            n_residuals: how many residuals there are; all of them are batched, as cotangents are.
            refs: positions of the references among the arguments of the call.
            batched: which arguments of the call are batched.
        """
        n = len(consts)
        of_refs = [batched[i] for i in refs]
        n_cts = len(bwd.binders) - n - n_residuals - len(of_refs)
        inside = [*consts, *[True] * n_residuals, *of_refs, *[True] * n_cts]
        of_consts = {i for i in self.shared if i < n}
        shared = {n + n_residuals + k for k, i in enumerate(refs) if i in self.shared}
        return self.program(bwd, inside, frozenset(of_consts | shared))


def summed_where_unbatched(bwd: Jaxpr, batched: Sequence[bool]) -> Jaxpr:
    """The cotangent of what all lanes share is the sum over the lanes."""
    if all(batched):
        return bwd
    b = Builder(bwd.in_types)
    outs = b.inline_jaxpr(bwd, b.binders)
    kept = [x if has else b(ReduceSum((0,)), x) for x, has in zip(outs, batched, strict=True)]
    return b.finish(kept, bwd.n_consts, bwd.names)


@dataclass(frozen=True, slots=True)
class ZerosJvpOverLanes(ZerosJvp):
    """A forward derivative that looks at zeros, over lanes; ``batched``: which arguments are."""

    rule: ZerosJvp
    lanes: OverLanes
    batched: Mask
    n_consts: int
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        inner = self.rule(given)
        own = self.batched[self.n_consts :]
        dots = [flag for flag, has in zip(own, given, strict=True) if has]
        return SparseJvp(self.lanes.program(inner.jaxpr, [*self.batched, *dots]), inner.nonzero)


@dataclass(frozen=True, slots=True)
class ZerosVjpOverLanes(ZerosVjp):
    """A reverse derivative that looks at zeros, over lanes; ``types`` are those of a lane."""

    rule: ZerosVjp
    lanes: OverLanes
    batched: Mask
    types: tuple[Type, ...]
    n_consts: int
    n_outs: int
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        inner = self.rule(given)
        own = zip(self.batched[self.n_consts :], self.types[self.n_consts :], given, strict=True)
        linear = tuple([flag for flag, t, has in own if has and not isinstance(t, RefType)])
        bwd = ZerosBackwardOverLanes(
            inner.bwd,
            self.lanes,
            self.batched,
            self.n_consts,
            len(inner.fwd.outs) - self.n_outs,
            inner.refs,
            linear,
            self.label,
        )
        refs = tuple([i + self.lanes.masked for i in inner.refs])
        return SparseVjp(self.lanes.program(inner.fwd, self.batched), refs, bwd)


@dataclass(frozen=True, slots=True)
class ZerosBackwardOverLanes(ZerosBackward):
    """Its backward rule; ``linear``: which linear arguments are batched."""

    rule: ZerosBackward
    lanes: OverLanes
    batched: Mask
    n_consts: int
    n_residuals: int
    refs: tuple[int, ...]
    linear: Mask
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        inner = self.rule(given)
        consts = self.batched[: self.n_consts]
        made = self.lanes.backward(inner.jaxpr, consts, self.n_residuals, self.refs, self.batched)
        kept = [flag for flag, has in zip(self.linear, inner.nonzero, strict=True) if has]
        return SparseBackward(summed_where_unbatched(made, kept), inner.nonzero)
