"""Batching: one program that does for all lanes what the given one does for one.

Before::

    { lambda ; a:f32[] b:f32[3]. let c:f32[3] = mul a b in (c,) }

After, with 5 lanes of ``a`` and one ``b`` for all of them::

    { lambda ; a:f32[5] b:f32[3]. let
        c:f32[5,3] = broadcast_in_dim[shape=(5, 3) broadcast_dimensions=(0,)] a
        d:f32[5,3] = broadcast_in_dim[shape=(5, 3) broadcast_dimensions=(1,)] b
        e:f32[5,3] = mul c d
      in (e,) }

Inside of the pass every batched value has the batch axis in front; axes are moved where a program
begins and ends. Lanes run in step. Where they part, at a batched predicate, both ways are run
and each has a mask of the lanes that are there: effects of the others do not happen.

A reference is batched (a cell a lane) or shared by all lanes. A local one is batched where a
fixpoint over the program finds that it takes batched values. An input that is not batched is
shared: it may be read; what is added to it is added by every lane, so its sum over the lanes is;
a write is refused where lanes could differ.

What a lane does to the world outside happens for every lane, also where all do the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from effax.effects import NO_EFFECTS, Accum, Alloc, ArgIndex, SideEffect, Write
from effax.ir.analysis.dataflow import NONE, analyze, close_regions, positions_of
from effax.ir.build import Builder, Template, template, typing_of
from effax.ir.dtypes import BOOL
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import EffaxError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type, array_type
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask, Property, uses_axis
from effax.transforms.framework.rules import BatchBuilder, RuleSet, Unsupported
from effax.transforms.framework.runner import located
from effax.transforms.rules.common.arrays import inverse, permuted, to_front
from effax.transforms.rules.custom.recursive_calls import has_recursive_rules
from effax.transforms.vmap.batch_axes import Axes, checked_name, no_axis, normalized_axes
from effax.transforms.vmap.common import Borrowed, UnbatchedRefWrite, batched_type, borrow


class Vmapped(NamedTuple):
    """The result of :func:`vmap`.

    Attributes:
        jaxpr: the program for all lanes.
        out_batched: which results have a batch axis.
    """

    jaxpr: Jaxpr
    out_batched: Mask


class BatchTemplate(NamedTuple):
    """One application batched: arguments are the mask of lanes, if there is one, then its own."""

    body: Template
    out_batched: Mask


@memoize(maxsize=1024)
def _vmap_axes(
    jaxpr: Jaxpr,
    size: int,
    sources: tuple[int | None, ...],
    targets: tuple[int | None, ...],
    rules: RuleSet,
    name: str | None,
) -> Vmapped:
    b = Builder()
    given = [
        b.bind(v.type if axis is None else batched_type(v.type, size, axis))
        for v, axis in zip(jaxpr.binders, sources, strict=True)
    ]
    args: list[Atom] = []
    borrowed: list[Borrowed] = []
    for i, (v, axis) in enumerate(zip(given, sources, strict=True)):
        order = _front(axis or 0, len(v.type.shape))
        if axis and isinstance(v.type, RefType):
            borrowed.append(borrow(b, v, order, jaxpr.effects.on(ArgIndex(i))))
            args.append(borrowed[-1].local)
        else:
            args.append(permuted(b, v, order))
    batched = tuple([axis is not None for axis in sources])
    shared = _shared(jaxpr, batched)
    engine = _Engine(jaxpr, b, args, batched, size, rules, shared, None, name)
    outs, flags = engine.run()
    for i, (has, axis) in enumerate(zip(flags, targets, strict=True)):
        if has and axis is None:
            raise no_axis(i)
    results = [
        _at_axis(b, out, flag, size, axis)
        for out, flag, axis in zip(outs, flags, targets, strict=True)
    ]
    for ref in borrowed:
        ref.write_back(b)
    made = b.finish(results, jaxpr.n_consts, jaxpr.names)
    return Vmapped(made, tuple([axis is not None for axis in targets]))


def _front(axis: int, ndim: int) -> tuple[int, ...]:
    """The permutation that brings an axis to the front."""
    return (axis, *range(axis), *range(axis + 1, ndim)) if ndim else ()


def _shared(jaxpr: Jaxpr, batched: Mask) -> frozenset[int]:
    pairs = enumerate(zip(jaxpr.binders, batched, strict=True))
    return frozenset(i for i, (v, has) in pairs if isinstance(v.type, RefType) and not has)


def _vmap(
    jaxpr: Jaxpr,
    batched: Mask,
    size: int,
    rules: RuleSet,
    shared: frozenset[int] = NONE,
    masked: bool = False,
    wanted: Mask | None = None,
    axis: str | None = None,
) -> Vmapped:
    """Batching for rules: all axes in front. Raises TransformError.

    Args:
        jaxpr: the program of one lane.
        batched: which inputs are batched, closed under what the program writes into references.
        size: the number of lanes.
        rules: the rules.
        shared: positions of inputs that are references of the whole batch.
        masked: whether the result takes a mask of lanes in front of its inputs.
        wanted: which results are broadcast where they are not batched; None: none.
        axis: the name of the lanes, if the program uses it.
    """
    b = Builder()
    active = b.bind(array_type((size,), BOOL)) if masked else None
    args = [
        b.bind(batched_type(v.type, size) if has else v.type)
        for v, has in zip(jaxpr.binders, batched, strict=True)
    ]
    engine = _Engine(jaxpr, b, args, batched, size, rules, shared, active, axis)
    outs, flags = engine.run()
    for i, ct_spec in enumerate(wanted or ()):
        if ct_spec and not flags[i]:
            outs[i], flags[i] = to_front(b, outs[i], False, size), True
    names = ("", *jaxpr.names) if masked and jaxpr.names else jaxpr.names
    return Vmapped(b.finish(outs, jaxpr.n_consts + masked, names), tuple(flags))


@jaxpr_pass(_vmap, maxsize=1024)
def vmap(
    jaxpr: Jaxpr,
    size: int,
    in_axes: Sequence[int | None],
    out_axes: Axes = 0,
    rules: RuleSet | None = None,
    axis_name: str | None = None,
) -> Vmapped:
    """Batch ``jaxpr`` over lanes: along an axis of length ``size`` of some of its inputs.

    Type:     (a, b) -> c  =>  (n·a, b) -> n·c      n = size, a batched
    Effects:  kinds are kept; a batched ref's cell gains an axis of length n.
    Axes:     ``axis_name`` is bound: collectives along it are done, others are kept.
    Laws:     tests/laws/test_vmap.py
    Raises:   TransformError: a wrong axis; a result that is batched where no axis is given for
              it; a write to an unbatched reference (UnbatchedRefWrite); a missing rule; the
              program uses ``axis_name`` at another size, or where lanes part.
    Source:   autodidax, part 1.

    Args:
        jaxpr: the program of one lane.
        size: the number of lanes.
        in_axes: for each input, where in its type the batch axis is; None: it has none. An axis
            may be negative. The inputs' types in ``jaxpr`` are those of one lane.
        out_axes: for each result, or for all of them, where the batch axis shall be; a result
            that is the same in all lanes is broadcast. None: the result must be that, and has no
            batch axis.
        rules: the rules; the library's own where it is None.
        axis_name: what collectives call the axis.
    """
    sources, targets = normalized_axes(jaxpr, size, in_axes, out_axes)
    name = checked_name(jaxpr, int(size), axis_name)
    return _vmap_axes(jaxpr, int(size), sources, targets, rules_or_default(rules), name)


class _Engine(Rewriter):
    """One run of the pass: the new program's atoms, and which of them are batched."""

    def __init__(
        self,
        jaxpr: Jaxpr,
        b: Builder,
        args: Sequence[Atom],
        batched: Mask,
        size: int,
        rules: RuleSet,
        shared: frozenset[int],
        active: Var | None,
        axis: str | None,
    ) -> None:
        super().__init__(jaxpr, b, args)
        self.size = size
        self.rules = rules
        self.active = active
        self.axis = axis
        self.shared = frozenset(jaxpr.binders[i].id for i in shared)
        self.flags = [False] * jaxpr.size
        for v, has in zip(jaxpr.binders, batched, strict=True):
            self.flags[v.id] = has
        # References that are made here, and those of them that are batched.
        self.made: set[int] = set()
        self.marked: Mask = ()
        if any(eqn.effects is not NO_EFFECTS and _has_alloc(eqn) for eqn in jaxpr.eqns):
            self.marked = analyze(IsBatched(rules, size, axis), jaxpr, batched, shared).variables

    def run(self) -> tuple[list[Atom], list[bool]]:
        """Append the batched program. Return its results, and which of them are batched."""
        for eqn in self.jaxpr.eqns:
            self.step(eqn)
        return self.results(), [isinstance(a, Var) and self.flags[a.id] for a in self.jaxpr.outs]

    def step(self, eqn: Eqn) -> None:
        prim, ins, outs, effects, source = eqn
        b, atoms, flags = self.b, self.env, self.flags
        args = [a if type(a) is Lit else atoms[a.id] for a in ins]
        mask = tuple([type(a) is not Lit and flags[a.id] for a in ins])
        shared, masked, rule, axis = NONE, False, True in mask, None
        if self.axis is not None and uses_axis(prim, self.axis):
            axis, rule = self.axis, True
        if effects is not NO_EFFECTS or self.active is not None:
            shared, masked = self._surroundings(eqn)
            # Every lane does what is done to the world outside, be it the same for all of them.
            rule = rule or masked or bool(effects.side_effects) or self._changes_shared(eqn, shared)
            if effects and _has_alloc(eqn):
                rule = self._allocate(eqn, args)
                mask = (True,) * len(args) if rule else mask
        if not rule:
            self.keep(eqn, tuple(args))
            return
        types = tuple([a.type for a in ins])
        try:
            body, out_batched = batch_template(
                self.rules, prim, types, mask, self.size, shared, masked, axis
            )
        except EffaxError as error:
            self._told(error, eqn)
            raise
        if masked and self.active is not None:
            args.insert(0, self.active)
        results = b.inline(body, args, source)
        for v, result, has in zip(outs, results, out_batched, strict=True):
            atoms[v.id], flags[v.id] = result, has

    def _surroundings(self, eqn: Eqn) -> tuple[frozenset[int], bool]:
        """Which arguments are shared references, and whether the mask of lanes matters."""
        shared = positions_of(self.shared, eqn) if self.shared and eqn.effects else NONE
        if self.active is None:
            return shared, False
        if eqn.prim.subjaxprs():
            return shared, needs_mask(eqn.prim)
        if eqn.effects.side_effects:
            return shared, True
        # A reference that is made here is seen by the lanes that are here only.
        changed = {e.ref for e in eqn.effects if isinstance(e, Write | Accum)}
        outside = [
            i in shared or self.flags[a.id]
            for i, a in enumerate(eqn.ins)
            if i in changed and isinstance(a, Var) and a.id not in self.made
        ]
        return shared, True in outside

    def _changes_shared(self, eqn: Eqn, shared: frozenset[int]) -> bool:
        return bool(shared) and any(
            isinstance(e, Write | Accum) and e.ref in shared for e in eqn.effects
        )

    def _allocate(self, eqn: Eqn, args: list[Atom]) -> bool:
        """Note a reference that is made; whether it is batched (its operand then is, too)."""
        self.made.update(v.id for v in eqn.outs)
        if not any(self.marked[v.id] for v in eqn.outs):
            return False
        flags = [isinstance(a, Var) and self.flags[a.id] for a in eqn.ins]
        args[:] = [to_front(self.b, x, has, self.size) for x, has in zip(args, flags, strict=True)]
        return True

    def _told(self, error: EffaxError, eqn: Eqn) -> None:
        """Tell an error at which equation it happened, and what its reference is called here."""
        at = error.position if isinstance(error, UnbatchedRefWrite) else None
        if isinstance(error, UnbatchedRefWrite) and at is not None and at < len(eqn.ins):
            ref = eqn.ins[at]
            for i, v in enumerate(self.jaxpr.binders):
                if v == ref:
                    error.name(self.jaxpr.name_of(i), i)
        located(error, eqn)


def _has_alloc(eqn: Eqn) -> bool:
    return any(isinstance(e, Alloc) for e in eqn.effects)


def needs_mask(prim: Primitive) -> bool:
    """Whether a primitive that holds programs must know which lanes are there.

    A loop must, to end when no lane is there. So must a call of a function that is called in its
    own rules, so that the calls inside are on the same types.
    """
    if prim.has_predicate() or has_recursive_rules(prim):
        return True
    return any(map(runs_under_mask, prim.subjaxprs()))


@memoize(maxsize=4096)
def runs_under_mask(jaxpr: Jaxpr) -> bool:
    """Whether a program must know which lanes are there: its effects are seen, or it loops."""
    return any(isinstance(e, Write | Accum | SideEffect) for e in jaxpr.effects) or any(
        needs_mask(eqn.prim) for eqn in jaxpr.eqns
    )


@memoize(maxsize=1 << 14)
def batch_template(
    rules: RuleSet,
    prim: Primitive,
    types: tuple[Type, ...],
    batched: Mask,
    size: int,
    shared: frozenset[int] = NONE,
    masked: bool = False,
    axis: str | None = None,
) -> BatchTemplate:
    """The template of one application; kept for each primitive, types (of a lane) and mask."""
    rule = rules.of(prim).batch
    if isinstance(rule, Unsupported):
        raise rule.error(prim, "batch")
    b = BatchBuilder(rules, shared, axis)
    if masked:
        b.mask = b.bind(array_type((size,), BOOL))
    args = [
        b.bind(batched_type(t, size) if has else t) for t, has in zip(types, batched, strict=True)
    ]
    outs, out_batched = rule(b, prim, args, batched, size)
    return BatchTemplate(template(b.finish(outs)), tuple(out_batched))


def closed_batch(
    b: BatchBuilder, prim: Primitive, batched: Sequence[bool], size: int
) -> tuple[Mask, Mask]:
    """Return which operands (in every iteration) and results of a primitive are batched."""
    return close_regions(IsBatched(b.rules, size, b.axis), prim, tuple(batched), b.unbatched_refs)


@dataclass(frozen=True)
class IsBatched(Property):
    """Whether a value is batched, under a set of rules, along an axis of that size and name.

    What is received from a side effect is, whatever the effect was given; so is what is computed
    from the index along the axis.
    """

    rules: RuleSet
    size: int
    axis: str | None
    control = True

    def outs(self, prim: Primitive, types: tuple[Type, ...], ins: Mask) -> Mask:
        made, effects = typing_of(prim, types)
        if effects:
            return (True in ins or bool(effects.side_effects),) * len(made)
        used = self.axis if self._is_used_by(prim) else None
        return batch_template(self.rules, prim, types, ins, self.size, axis=used).out_batched

    def origin(self, eqn: Eqn) -> bool:
        return self._is_used_by(eqn.prim) or bool(eqn.effects.side_effects)

    def _is_used_by(self, prim: Primitive) -> bool:
        return self.axis is not None and uses_axis(prim, self.axis)


def _at_axis(b: Builder, out: Atom, batched: bool, size: int, axis: int | None) -> Atom:
    """A result with its batch axis where it is wanted."""
    if axis is None:
        return out
    front = to_front(b, out, batched, size)
    return permuted(b, front, inverse(_front(axis, len(front.type.shape))))
