"""Batching: a program applied to every element of a batch.

Before::

    { lambda ; a:f32[] b:f32[3]. let c:f32[3] = mul a b in (c,) }

After, with ``a`` batched at size 5 and ``b`` unbatched::

    { lambda ; a:f32[5] b:f32[3]. let
        c:f32[5,3] = broadcast_in_dim[shape=(5, 3) broadcast_dimensions=(0,)] a
        d:f32[5,3] = broadcast_in_dim[shape=(5, 3) broadcast_dimensions=(1,)] b
        e:f32[5,3] = mul c d
      in (e,) }

Inside the pass every batched value has the batch axis in front; axes are moved at the inputs and
results of the program. Under a batched predicate both branches run, each with a mask of the batch
elements that are active in it: other elements have no effects.

A reference is batched (one cell a batch element) or unbatched. A local reference is batched if a
fixpoint over the program finds that batched values are written to it: a write late in a loop
decides the type of the allocation before it. An input that is not batched is shared by the batch
elements: reads are unchanged, accumulations are summed over the elements, and a write that may
differ between elements is an error.

A side effect happens once a batch element, also where no operand is batched. For no batch elements
the results of a pure equation are empty, and no rule is applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.effects import NO_EFFECTS, Accum, Alloc, ArgIndex, Read, SideEffect, Write
from effax.ir.analysis.dataflow import NONE, analyze, close_regions, positions_of
from effax.ir.build import Builder, Template, template, typing_of
from effax.ir.dtypes import BOOL
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import EffaxError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.symbolic import is_symbolic_dim
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type, array_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.dead_code import used_variables
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask, Property, uses_axis
from effax.transforms.framework.rules import BatchBuilder, RuleSet, Unsupported
from effax.transforms.framework.runner import located
from effax.transforms.rules.common.arrays import inverse, permuted, to_front, zeros
from effax.transforms.rules.common.safe_operands import Safe
from effax.transforms.vmap.batch_axes import Axes, checked_name, no_axis, normalized_axes
from effax.transforms.vmap.common import Borrowed, UnbatchedRefWrite, batched_type, borrow


class Vmapped(NamedTuple):
    """The result of :func:`vmap`.

    Attributes:
        jaxpr: the batched program.
        out_batched: which results have a batch axis.
    """

    jaxpr: Jaxpr
    out_batched: Mask


class BatchTemplate(NamedTuple):
    """One batched equation. The operands of ``body`` are the mask, if any, then its own."""

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
    unbatched_refs = _unbatched_refs(jaxpr, batched)
    engine = _Batcher(jaxpr, b, args, batched, size, rules, unbatched_refs, None, name)
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
    """Return the permutation that moves an axis to the front."""
    return (axis, *range(axis), *range(axis + 1, ndim)) if ndim else ()


def _unbatched_refs(jaxpr: Jaxpr, batched: Mask) -> frozenset[int]:
    pairs = enumerate(zip(jaxpr.binders, batched, strict=True))
    return frozenset(i for i, (v, has) in pairs if isinstance(v.type, RefType) and not has)


def _vmap(
    jaxpr: Jaxpr,
    batched: Mask,
    size: int,
    rules: RuleSet,
    unbatched_refs: frozenset[int] = NONE,
    masked: bool = False,
    instantiate: Mask | None = None,
    axis: str | None = None,
) -> Vmapped:
    """Batch a subjaxpr, with all batch axes in front. Raises TransformError.

    Args:
        jaxpr: the program.
        batched: which inputs are batched; a reference that the program writes batched values to is.
        size: the batch size.
        rules: the rules.
        unbatched_refs: positions of inputs that are unbatched references.
        masked: whether the result takes a mask of the active batch elements as its first input.
        instantiate: which unbatched results are broadcast; None: none.
        axis: the name of the batch axis, if the program uses it.
    """
    b = Builder()
    mask = b.bind(array_type((size,), BOOL)) if masked else None
    args = [
        b.bind(batched_type(v.type, size) if has else v.type)
        for v, has in zip(jaxpr.binders, batched, strict=True)
    ]
    engine = _Batcher(jaxpr, b, args, batched, size, rules, unbatched_refs, mask, axis)
    outs, flags = engine.run()
    for i, broadcast in enumerate(instantiate or ()):
        if broadcast and not flags[i]:
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
    """Batch ``jaxpr`` along an axis of length ``size`` of some of its inputs.

    Type:     (a, b) -> c  =>  (n·a, b) -> n·c      n = size, a batched
    Effects:  kinds are kept; a batched ref's cell gains an axis of length n.
    Axes:     ``axis_name`` is bound: collectives along it are replaced, others are kept.
    Laws:     tests/laws/test_vmap.py
    Raises:   TransformError: an axis is out of range; a batched result has no axis; a write to an
              unbatched reference may differ between elements (UnbatchedRefWrite); a rule is
              missing; ``axis_name`` has another size in the program, or is used under a batched
              predicate.
    Source:   autodidax, part 1.

    Args:
        jaxpr: the program; its types have no batch axis.
        size: the batch size.
        in_axes: one entry an input: its batch axis, which may be negative; None: it is unbatched.
        out_axes: one entry a result, or one for all: the batch axis, for which an unbatched
            result is broadcast. None: the result must be unbatched.
        rules: the rules; the registered ones where it is None.
        axis_name: the name of the axis in collectives.
    """
    sources, targets = normalized_axes(jaxpr, size, in_axes, out_axes)
    plain = size if is_symbolic_dim(size) else int(size)
    name = checked_name(jaxpr, plain, axis_name)
    return _vmap_axes(jaxpr, plain, sources, targets, rules_or_default(rules), name)


class _Batcher(Rewriter):
    """One run of the pass: the new program's atoms, and which of them are batched."""

    def __init__(
        self,
        jaxpr: Jaxpr,
        b: Builder,
        args: Sequence[Atom],
        batched: Mask,
        size: int,
        rules: RuleSet,
        unbatched_refs: frozenset[int],
        mask: Var | None,
        axis: str | None,
    ) -> None:
        super().__init__(jaxpr, b, args)
        self.size = size
        self.rules = rules
        self.mask = mask
        self.axis = axis
        self.unbatched_refs = frozenset(jaxpr.binders[i].id for i in unbatched_refs)
        self.flags = [False] * jaxpr.size
        for v, has in zip(jaxpr.binders, batched, strict=True):
            self.flags[v.id] = has
        # What replaces the values of inactive elements, and the variables that are used.
        self.safe = None if mask is None or not size else Safe(b, mask, size)
        self.used = used_variables(jaxpr) if self.safe is not None else NONE
        # The variables of allocated references, and which variables are batched in the fixpoint.
        self.local_refs: set[int] = set()
        self.fixpoint: Mask = ()
        if any(map(_has_alloc, [eqn for eqn in jaxpr.eqns if eqn.effects is not NO_EFFECTS])):
            found = analyze(IsBatched(rules, size, axis), jaxpr, batched, unbatched_refs)
            self.fixpoint = found.variables

    def run(self) -> tuple[list[Atom], list[bool]]:
        """Append the batched program. Return its results, and which of them are batched."""
        for eqn in self.jaxpr.eqns:
            self.step(eqn)
        return self.results(), [isinstance(a, Var) and self.flags[a.id] for a in self.jaxpr.outs]

    def step(self, eqn: Eqn) -> None:
        prim, ins, outs, effects, source = eqn
        b, atoms, flags = self.b, self.env, self.flags
        args = [a if type(a) is Lit else atoms[a.id] for a in ins]
        batched = tuple([type(a) is not Lit and flags[a.id] for a in ins])
        unbatched_refs, masked, rule, axis = NONE, False, True in batched, None
        if self.axis is not None and uses_axis(prim, self.axis):
            axis, rule = self.axis, True
        if effects is not NO_EFFECTS or self.mask is not None:
            unbatched_refs, masked = self._context(eqn)
            # A side effect happens once a batch element, also on unbatched operands.
            rule = rule or masked or bool(effects.side_effects) or _changes_any(eqn, unbatched_refs)
            if effects and _has_alloc(eqn):
                rule = self._allocate(eqn, args)
                batched = (True,) * len(args) if rule else batched
        if not rule:
            self.keep(eqn, tuple(args))
            if self.safe is not None:
                self._replace_reads(eqn, self.safe)
            return
        types = tuple([a.type for a in ins])
        try:
            body, out_batched = batch_template(
                self.rules, prim, types, batched, self.size, unbatched_refs, masked, axis
            )
        except EffaxError as error:
            self._locate(error, eqn)
            raise
        if masked and self.mask is not None:
            args.insert(0, self.mask)
        results = b.inline(body, args, source)
        if len(outs) == 1:
            # The common case.
            at = outs[0].id
            (atoms[at],), (flags[at],) = results, out_batched
        else:
            for v, result, has in zip(outs, results, out_batched, strict=True):
                atoms[v.id], flags[v.id] = result, has
        if self.safe is not None:
            self._replace_reads(eqn, self.safe)

    def _context(self, eqn: Eqn) -> tuple[frozenset[int], bool]:
        """Return which operands are unbatched references, and whether the equation needs the mask.

        A local reference needs none: only the elements that are active in its scope read it.
        """
        refs = self.unbatched_refs
        unbatched_refs = positions_of(refs, eqn) if refs and eqn.effects else NONE
        if self.mask is None:
            return unbatched_refs, False
        if eqn.prim.subjaxprs():
            return unbatched_refs, needs_mask(eqn.prim, self.rules)
        if eqn.effects.side_effects:
            return unbatched_refs, True
        changed = {e.ref for e in eqn.effects if isinstance(e, Write | Accum)}
        outer = [
            i in unbatched_refs or self.flags[a.id]
            for i, a in enumerate(eqn.ins)
            if i in changed and isinstance(a, Var) and a.id not in self.local_refs
        ]
        return unbatched_refs, True in outer

    def _replace_reads(self, eqn: Eqn, safe: Safe) -> None:
        """Replace what inactive elements read from references of an outer scope."""
        if not any(isinstance(e, Read) for e in eqn.effects):
            return
        refs = [a for a in eqn.ins if isinstance(a, Var) and type(a.type) is RefType]
        if eqn.prim.subjaxprs() or all(a.id in self.local_refs for a in refs):
            return
        for v in eqn.outs:
            if v.id in self.used:
                replace = safe.of_active if self.flags[v.id] else safe.if_any
                self.env[v.id] = replace(self.env[v.id])

    def _allocate(self, eqn: Eqn, args: list[Atom]) -> bool:
        """Record an allocation; return whether it is batched, and then broadcast its operand."""
        self.local_refs.update(v.id for v in eqn.outs)
        if not any(self.fixpoint[v.id] for v in eqn.outs):
            return False
        flags = [isinstance(a, Var) and self.flags[a.id] for a in eqn.ins]
        args[:] = [to_front(self.b, x, has, self.size) for x, has in zip(args, flags, strict=True)]
        return True

    def _locate(self, error: EffaxError, eqn: Eqn) -> None:
        """Set the equation of an error, and the name of its reference in this program."""
        at = error.position if isinstance(error, UnbatchedRefWrite) else None
        if isinstance(error, UnbatchedRefWrite) and at is not None and at < len(eqn.ins):
            ref = eqn.ins[at]
            for i, v in enumerate(self.jaxpr.binders):
                if v == ref:
                    error.name(self.jaxpr.name_of(i), i)
        located(error, eqn)


def _changes_any(eqn: Eqn, refs: frozenset[int]) -> bool:
    return bool(refs) and any(isinstance(e, Write | Accum) and e.ref in refs for e in eqn.effects)


def _has_alloc(eqn: Eqn) -> bool:
    return any(isinstance(e, Alloc) for e in eqn.effects)


def needs_mask(prim: Primitive, rules: RuleSet) -> bool:
    """Return whether a primitive with subjaxprs takes the mask of active batch elements.

    A loop takes it, to end when no element is active; others as their rules declare.
    """
    found = rules.find(prim)
    own = found is not None and found.takes_mask is not None and found.takes_mask(prim)
    if own or prim.has_predicate():
        return True
    return any(runs_under_mask(jaxpr, rules) for jaxpr in prim.subjaxprs())


@memoize(maxsize=4096)
def runs_under_mask(jaxpr: Jaxpr, rules: RuleSet) -> bool:
    """Return whether a program takes the mask: it accesses references, has effects, or a loop."""
    return any(isinstance(e, Read | Write | Accum | SideEffect) for e in jaxpr.effects) or any(
        needs_mask(eqn.prim, rules) for eqn in jaxpr.eqns
    )


@memoize(maxsize=1 << 14)
def batch_template(
    rules: RuleSet,
    prim: Primitive,
    types: tuple[Type, ...],
    batched: Mask,
    size: int,
    unbatched_refs: frozenset[int] = NONE,
    masked: bool = False,
    axis: str | None = None,
) -> BatchTemplate:
    """Return the template of one equation; ``types`` are without the batch axis."""
    rule = rules.of(prim).batch
    if isinstance(rule, Unsupported):
        raise rule.error(prim, "batch")
    if size == 0 and axis is None and True in batched and not prim.subjaxprs():
        made, effects = typing_of(prim, types)
        if not effects:
            return _of_no_elements(types, batched, made)
    b = BatchBuilder(rules, unbatched_refs, axis)
    if masked:
        b.mask = b.bind(array_type((size,), BOOL))
    args = [
        b.bind(batched_type(t, size) if has else t) for t, has in zip(types, batched, strict=True)
    ]
    outs, out_batched = rule(b, prim, args, batched, size)
    return BatchTemplate(template(b.finish(outs)), tuple(out_batched))


def _of_no_elements(types: Sequence[Type], batched: Mask, outs: Sequence[Type]) -> BatchTemplate:
    """Return the template of a pure equation for no batch elements: its results are empty."""
    b = Builder([batched_type(t, 0) if has else t for t, has in zip(types, batched, strict=True)])
    empty = [zeros(b, batched_type(t, 0)) for t in outs]
    return BatchTemplate(template(b.finish(empty)), (True,) * len(empty))


def closed_batch(
    b: BatchBuilder, prim: Primitive, batched: Sequence[bool], size: int
) -> tuple[Mask, Mask]:
    """Return which operands (in every iteration) and results of a primitive are batched."""
    return close_regions(IsBatched(b.rules, size, b.axis), prim, tuple(batched), b.unbatched_refs)


@dataclass(frozen=True)
class IsBatched(Property):
    """The property that a value is batched along an axis of this size and name.

    The results of a side effect are batched, whatever its operands, and so are those of an equation
    that uses the axis. Batched predicates and selectors batch everything that they control.
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
    """Return a result with its batch axis at ``axis``."""
    if axis is None:
        return out
    front = to_front(b, out, batched, size)
    return permuted(b, front, inverse(_front(axis, len(front.type.shape))))
