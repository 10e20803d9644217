"""Transposition of a linear program: it maps cotangents of results to cotangents of inputs.

Before, linear in ``b``::

    { lambda ; a:f32[] b:f32[3]. let
        c:f32[] = gather[0] b
        d:f32[] = mul a c
      in (d,) }

After, with ``GradRef()`` for ``b``; the cotangent of ``d`` is added at the index that was read::

    { lambda ; a:f32[] b:Ref{f32[3]} c:f32[]. let
        d:f32[] = mul a c
        b[0] += d
      in () }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from effax.ir.build import Builder
from effax.ir.errors import EffaxError
from effax.ir.prims import Add, EmptyRef, Freeze, Get, NewRef
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type, is_inexact, tangent_type
from effax.transforms.discharge import changed_refs
from effax.transforms.framework.dead_code import without_dead
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import located
from effax.transforms.transpose.accumulation import Sums, add_in_place
from effax.transforms.transpose.cotangent_spec import (
    CotangentSpec,
    CotangentSpecs,
    DontWant,
    GradRef,
    GradValue,
    NonLinear,
    ThreadedRef,
    check_cotangent_specs,
)
from effax.transforms.transpose.linearity import FIXED, UNWANTED, WANTED, Kind, Kinds
from effax.transforms.transpose.plan import Plan, plan, sparse_operands
from effax.transforms.transpose.template import (
    IN_REF,
    TransposeTemplate,
    cotangent_ref_type,
    transpose_template,
)

__all__ = [
    "CotangentSpec",
    "DontWant",
    "GradRef",
    "GradValue",
    "NonLinear",
    "ThreadedRef",
    "Transposed",
    "transpose",
]

ADD: Final = Add()
ONE: Final[Mask] = (True,)


class Transposed(NamedTuple):
    """The result of :func:`transpose`.

    Attributes:
        jaxpr: ``(*nonlinear inputs, *gradient references, *cotangents of results)
            -> nonzero cotangents of the GradValue inputs``.
        nonzero: one entry a ``GradValue`` input, in order: whether its cotangent is a result.
    """

    jaxpr: Jaxpr
    nonzero: Mask


def _transpose(jaxpr: Jaxpr, ct_specs: CotangentSpecs, cts: Mask, rules: RuleSet) -> Transposed:
    check_cotangent_specs(jaxpr, ct_specs, cts)
    threaded = tuple([isinstance(w, ThreadedRef) for w in ct_specs])
    kinds = tuple(map(_kind, ct_specs))
    return _Transposer(plan(jaxpr, kinds, cts, threaded, rules), ct_specs, rules).run(cts)


@jaxpr_pass(_transpose, maxsize=512)
def transpose(
    jaxpr: Jaxpr,
    ct_specs: Sequence[CotangentSpec],
    cts: Sequence[bool] | None = None,
    rules: RuleSet | None = None,
) -> Transposed:
    """Transpose ``jaxpr``, which is linear in the inputs that are not ``NonLinear``.

    Cotangents are summed with ``add``, or in place with ``+=`` if there is a reference: that of a
    ``GradRef`` input, that of a linear reference, and a local one for an array that is used more
    than once and at least once in part. No zeros are materialized for an input without cotangent.

    Type:     (a, b, c) -> d  =>  (a, Ref b, d) -> c     b: GradRef, c: GradValue
    Effects:  a ``GradRef`` is only accumulated into. Equations that do not depend on linear inputs
              run first, in order; effects of linear equations run in reverse.
    Laws:     tests/laws/test_transpose.py
    Raises:   TransformError: the program is not linear; a rule is missing; a reference is
              ``GradValue``; a linear value is written to a reference that is not linear.
    Source:   Dex, section 5.3.3; "You only linearize once".

    Args:
        jaxpr: the program.
        ct_specs: one entry an input.
        cts: which results have a cotangent, of the result's tangent type; None: all floating and
            complex ones.
        rules: the rules; the registered ones where it is None.
    """
    given = tuple(map(is_inexact, jaxpr.out_types)) if cts is None else tuple(cts)
    return transpose.cached(jaxpr, tuple(ct_specs), given, rules_or_default(rules))


def _kind(ct_spec: CotangentSpec) -> Kind:
    if isinstance(ct_spec, NonLinear):
        return FIXED
    return UNWANTED if isinstance(ct_spec, DontWant) else WANTED


class _Transposer:
    """One run of the pass: fixed values, cotangents and their references by variable number."""

    def __init__(self, todo: Plan, ct_specs: CotangentSpecs, rules: RuleSet) -> None:
        self.todo = todo
        self.ct_specs = ct_specs
        self.rules = rules
        self.b = Builder()
        size = todo.jaxpr.size
        self.fixed: list[Atom | None] = [None] * size
        self.sums = Sums(self.b, size, todo.accumulated)
        self.in_place = (
            bool(todo.accumulated) or todo.refs or any(isinstance(w, GradRef) for w in ct_specs)
        )

    def run(self, cts: Mask) -> Transposed:
        jaxpr, b = self.todo.jaxpr, self.b
        bound = self._bind()
        given = [
            b.bind(tangent_type(a.type)) if has else None
            for a, has in zip(jaxpr.outs, cts, strict=True)
        ]
        for eqn in self.todo.forward:
            self._forward(eqn)
        for atom, ct in zip(jaxpr.outs, given, strict=True):
            if ct is not None and isinstance(atom, Var) and self.todo.kinds[atom.id] == WANTED:
                self.sums.add(atom, ct, None)
        for eqn, kinds, has_effects in self.todo.backward:
            if self.in_place or len(eqn.outs) != 1 or has_effects:
                self._backward(eqn, kinds, has_effects)
            else:
                self._backward_array(eqn, kinds)
        for v, ref in bound:
            local = self.sums.refs.get(v.id)
            if local is not None:
                add_in_place(b, ref, b(Freeze(), local), None)
        values = [
            self.sums.take(v, None)
            for v, ct_spec in zip(jaxpr.binders, self.ct_specs, strict=True)
            if isinstance(ct_spec, GradValue)
        ]
        made = b.finish([ct for ct in values if ct is not None])
        if any(isinstance(eqn.prim, NewRef | EmptyRef) for eqn in self.todo.forward):
            # A fixed local reference may be written and never read by the backward equations.
            made = without_dead(made, self.rules)
        return Transposed(made, tuple([ct is not None for ct in values]))

    def _bind(self) -> list[tuple[Var, Var]]:
        """Bind nonlinear inputs, then gradient references.

        Return each reference that the program changes, with its gradient reference. The cotangent
        of such a reference is overwritten in the sweep (a swap replaces it), while its gradient
        reference may have contents already: the sum is in a local reference and added at the end.
        """
        jaxpr, b = self.todo.jaxpr, self.b
        for v, ct_spec in zip(jaxpr.binders, self.ct_specs, strict=True):
            if isinstance(ct_spec, NonLinear):
                self.fixed[v.id] = b.bind(v.type)
        changed = changed_refs(jaxpr)
        later = []
        for i, (v, ct_spec) in enumerate(zip(jaxpr.binders, self.ct_specs, strict=True)):
            if not isinstance(ct_spec, GradRef | ThreadedRef):
                continue
            dtype = ct_spec.dtype if isinstance(ct_spec, GradRef) else None
            ref = b.bind(cotangent_ref_type(v.type, dtype))
            if isinstance(v.type, RefType) and isinstance(ct_spec, GradRef) and i in changed:
                later.append((v, ref))
            else:
                self.sums.refs[v.id] = ref
        return later

    def _value(self, atom: Atom) -> Atom:
        found = atom if isinstance(atom, Lit) else self.fixed[atom.id]
        assert found is not None, "a fixed value is used before it is computed"
        return found

    def _forward(self, eqn: Eqn) -> None:
        made = self.b.emit_like(eqn, tuple([self._value(a) for a in eqn.ins]))
        for v, w in zip(eqn.outs, made, strict=True):
            self.fixed[v.id] = w

    def _backward(self, eqn: Eqn, kinds: Kinds, has_effects: bool) -> None:
        prim, ins, outs, effects, source = eqn
        cts = [self.sums.take(v, source) for v in outs]
        if effects and isinstance(prim, Freeze | Get) and _reads_all(prim, ins[0]):
            # The transposed read of the whole contents is the cotangent itself: no zeros first.
            if cts[0] is not None and isinstance(ins[0], Var):
                self.sums.add(ins[0], cts[0], source)
            return
        present = [ct for ct in cts if ct is not None]
        if not (present or has_effects or (effects and self._has_ref_cotangent(ins, kinds))):
            return
        args: list[Atom] = [
            a if type(a) is Lit else self.fixed[a.id]  # type: ignore[misc]  # computed before
            for a, kind in zip(ins, kinds, strict=True)
            if kind == FIXED
        ]
        how = kinds
        ref_types: tuple[Type, ...] = ()
        if self.in_place:
            how, refs = self._places(eqn, kinds)
            args += refs
            ref_types = tuple([ref.type for ref in refs])
        has = ONE if len(outs) == 1 and present else tuple([ct is not None for ct in cts])
        rule = self._template(eqn, how, has, ref_types)
        args += present
        own = self.todo.kinds
        for i, ct in zip(rule.ct_operands, self.b.inline(rule.body, args, source), strict=True):
            a = ins[i]
            if type(a) is Var and own[a.id] == WANTED:
                self.sums.add(a, ct, source)

    def _backward_array(self, eqn: Eqn, kinds: Kinds) -> None:
        """:meth:`_backward` without references, for an equation of one result."""
        _, ins, outs, _, source = eqn
        sums, fixed, own = self.sums, self.fixed, self.todo.kinds
        ct = sums.values[outs[0].id]
        if ct is None:
            return
        args: list[Atom] = [
            a if type(a) is Lit else fixed[a.id]  # type: ignore[misc]  # computed before
            for a, kind in zip(ins, kinds, strict=True)
            if kind == FIXED
        ]
        args.append(ct)
        rule = self._template(eqn, kinds, ONE, ())
        for i, part in zip(rule.ct_operands, self.b.inline(rule.body, args, source), strict=True):
            a = ins[i]
            if type(a) is Var and own[a.id] == WANTED:
                sums.add(a, part, source)

    def _template(
        self, eqn: Eqn, how: Kinds, has: Mask, ref_types: tuple[Type, ...]
    ) -> TransposeTemplate:
        types = tuple([a.type for a in eqn.ins])
        try:
            return transpose_template(self.rules, eqn.prim, types, how, has, ref_types)
        except EffaxError as error:
            located(error, eqn)
            raise

    def _places(self, eqn: Eqn, kinds: Kinds) -> tuple[Kinds, list[Atom]]:
        """Return the kinds of the operands, ``IN_REF`` if added in place, and the references."""
        how = list(kinds)
        refs: list[Atom] = []
        for i, (a, kind) in enumerate(zip(eqn.ins, kinds, strict=True)):
            if kind == WANTED and isinstance(a, Var):
                ref = self._place(i, a, eqn)
                # No alias: a reference is passed once, and a second cotangent is returned.
                if ref is not None and ref not in refs:
                    refs.append(ref)
                    how[i] = IN_REF
        return tuple(how), refs

    def _has_ref_cotangent(self, ins: Sequence[Atom], kinds: Kinds) -> bool:
        """Return whether a linear reference among the operands has a nonzero cotangent."""
        return any(
            kind == WANTED
            and isinstance(a, Var)
            and isinstance(a.type, RefType)
            and a.id in self.sums.refs
            for a, kind in zip(ins, kinds, strict=True)
        )

    def _place(self, i: int, a: Var, eqn: Eqn) -> Var | None:
        """Return the reference to which operand ``i`` adds its cotangent in place, if any."""
        if type(a.type) is not RefType:
            has_ref = a.id in self.sums.refs
            if not has_ref and a.id not in self.todo.accumulated:
                return None
            operands = sparse_operands(self.rules, eqn.prim)
            if i not in (operands.in_place if has_ref else operands.in_part):
                return None
        return self.sums.place(a, eqn.source)


def _reads_all(prim: Freeze | Get, ref: Atom) -> bool:
    return isinstance(prim, Freeze) or prim.indexer.is_whole(ref.type.shape)
