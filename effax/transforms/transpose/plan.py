"""The plan of transposition: which equations run forward, and which are transposed.

Fixed equations run first, unchanged and in order. Linear equations through which a wanted cotangent
may flow are transposed, in reverse order. All others are dropped.

A linear equation may also read or change a fixed reference; that effect happens after all forward
equations. The program is refused if it would so move over a later effect with which it does not
commute.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from effax.effects import (
    Accum,
    Alloc,
    ArgIndex,
    Effect,
    Read,
    Row,
    SideEffect,
    VarId,
    Write,
    commutes,
)
from effax.ir.edit.uses_first import uses_first
from effax.ir.errors import TransformError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import located
from effax.transforms.transpose.linearity import (
    UNWANTED,
    WANTED,
    Kind,
    Kinds,
    Linearity,
    fixed_effects,
    split_by_copy,
    split_by_rule,
    split_calls,
)


class Backward(NamedTuple):
    """An equation to transpose.

    Attributes:
        eqn: the equation.
        kinds: the kinds of its operands, closed over carries.
        has_effects: whether it has fixed effects, which happen even if all cotangents are zero.
    """

    eqn: Eqn
    kinds: Kinds
    has_effects: bool


class Plan(NamedTuple):
    """The plan for one program.

    Attributes:
        jaxpr: the program, with calls that are linear in part split.
        forward: the equations that run unchanged, in order.
        backward: the equations that are transposed, the last one first.
        kinds: the kinds of all variables, by number.
        accumulated: the numbers of the arrays whose cotangents are summed in a reference: those
            used more than once, and at least once in part.
        refs: whether the program has references.
    """

    jaxpr: Jaxpr
    forward: Sequence[Eqn]
    backward: Sequence[Backward]
    kinds: Sequence[Kind]
    accumulated: frozenset[int]
    refs: bool


def plan(jaxpr: Jaxpr, ins: Kinds, cts: Mask, threaded: Mask, rules: RuleSet) -> Plan:
    """Return the plan for a program that is linear in the inputs that are not fixed.

    Args:
        jaxpr: the program.
        ins: the kinds of the inputs.
        cts: which results have a cotangent.
        threaded: which inputs are references whose final contents have a cotangent.
        rules: the rules.
    """
    found = Linearity(jaxpr, ins, rules, split_by_rule)
    if found.mixed:
        # A call that its rule cannot split, or moves whole into one jaxpr, is copied.
        jaxpr = split_calls(jaxpr, found)
        jaxpr = split_calls(jaxpr, Linearity(jaxpr, ins, rules, split_by_copy))
        found = Linearity(jaxpr, ins, rules, None)
    return _Liveness(jaxpr, found, rules).plan(cts, threaded)


class _Liveness:
    """The equations that contribute to a wanted cotangent, from one sweep backward."""

    def __init__(self, jaxpr: Jaxpr, found: Linearity, rules: RuleSet) -> None:
        self.jaxpr = jaxpr
        self.found = found
        self.rules = rules
        # By variable number: whether a fixed value is used, or a linear one has a cotangent.
        self.live = [False] * jaxpr.size
        self.uses = [0] * jaxpr.size
        self.in_part: set[int] = set()
        self.sparse: dict[type[Primitive], bool] = {}

    def plan(self, cts: Mask, threaded: Mask) -> Plan:
        jaxpr, found, live = self.jaxpr, self.found, self.live
        self._begin(cts, threaded)
        forward: list[Eqn] = []
        backward: list[Backward] = []
        # A persistent vector is slow to read from its end.
        for eqn, kinds in zip(reversed(list(jaxpr.eqns)), reversed(found.steps), strict=True):
            prim, ins, outs, effects, _ = eqn
            if kinds is None:
                if effects.changes_state or any([live[v.id] for v in outs]):  # noqa: C419  # a list is faster
                    forward.append(eqn)
                    for a in ins:
                        if type(a) is not Lit:
                            live[a.id] = True
            elif effects or len(outs) != 1 or prim.subjaxprs():
                if any(live[v.id] and not found.kinds[v.id] for v in outs):
                    raise located(_partly_linear(eqn), eqn)
                has_effects = found.nonlinear_effects and fixed_effects(eqn, kinds).changes_state
                if has_effects or self._matters(eqn, kinds):
                    backward.append(Backward(eqn, kinds, has_effects))
                    self._use(eqn, kinds)
            elif live[outs[0][0]] and WANTED in kinds:
                backward.append(Backward(eqn, kinds, False))
                self._use_arrays(eqn, kinds)
        forward.reverse()
        if found.nonlinear_effects:
            _check_order(forward, backward, jaxpr)
        accumulated = frozenset(i for i in self.in_part if self.uses[i] > 1)
        if accumulated:
            backward = self._wholes_first(backward, accumulated)
        return Plan(jaxpr, forward, backward, found.kinds, accumulated, found.refs)

    def _wholes_first(
        self, backward: Sequence[Backward], accumulated: frozenset[int]
    ) -> list[Backward]:
        """Move equations that use an accumulated array as a whole before those that use parts.

        The sum begins with a whole cotangent where there is one, and not with zeros.
        """
        steps = backward[::-1]
        ends: dict[int, list[Var]] = {}
        for k, (eqn, kinds, has_effects) in enumerate(steps):
            if not (eqn.effects or has_effects):
                wanted = [i for i, kind in enumerate(kinds) if kind == WANTED]
                in_part = sparse_operands(self.rules, eqn.prim).in_part
                add_wholes(ends, k, [eqn.ins[i] for i in wanted if i not in in_part], accumulated)
        return [steps[k] for k in reversed(uses_first([step.eqn for step in steps], ends))]

    def _begin(self, cts: Mask, threaded: Mask) -> None:
        """Mark the results that have a cotangent, and the references whose contents have one."""
        for atom, has in zip(self.jaxpr.outs, cts, strict=True):
            if has and isinstance(atom, Var) and self.found.kinds[atom.id] == WANTED:
                self.live[atom.id] = True
                self.uses[atom.id] += 1
        for v, has in zip(self.jaxpr.binders, threaded, strict=True):
            if has:
                self.live[v.id] = True

    def _use_arrays(self, eqn: Eqn, kinds: Kinds) -> None:
        """:meth:`_use` for an equation on arrays without subjaxprs, the common case."""
        live, uses = self.live, self.uses
        prim, ins, _, _, _ = eqn
        for a, kind in zip(ins, kinds, strict=True):
            if kind != UNWANTED and type(a) is not Lit:
                live[a.id] = True
                if kind:
                    uses[a.id] += 1
        sparse = self.sparse.get(type(prim))
        if sparse is None:
            sparse = self.sparse[type(prim)] = bool(sparse_operands(self.rules, prim).in_part)
        if sparse and isinstance(ins[0], Var) and kinds[0] == WANTED:
            self.in_part.add(ins[0].id)

    def _matters(self, eqn: Eqn, kinds: Kinds) -> bool:
        live = self.live
        if WANTED not in kinds:
            return False
        if any(live[v.id] for v in eqn.outs):
            return True
        return bool(eqn.effects) and any(
            isinstance(a, Var) and type(a.type) is RefType and kind == WANTED and live[a.id]
            for a, kind in zip(eqn.ins, kinds, strict=True)
        )

    def _use(self, eqn: Eqn, kinds: Kinds) -> None:
        live, uses = self.live, self.uses
        sparse: Sparse | None = None
        for i, (a, kind) in enumerate(zip(eqn.ins, kinds, strict=True)):
            if type(a) is Lit:
                continue
            own = self.found.kinds[a.id]
            if not kind or own == WANTED:
                live[a.id] = True
            if own == WANTED and type(a.type) is ArrayType:
                uses[a.id] += 1
                if sparse is None:
                    sparse = sparse_operands(self.rules, eqn.prim)
                if i in sparse.in_part:
                    self.in_part.add(a.id)


def _check_order(forward: Sequence[Eqn], backward: Sequence[Backward], jaxpr: Jaxpr) -> None:
    """Raise TransformError if an effect of a linear equation would move over a later effect.

    Backward equations run after all forward ones, whatever their positions were.
    """
    place = {id(eqn): i for i, eqn in enumerate(jaxpr.eqns)}
    last: dict[Effect[VarId], int] = {}
    for eqn in forward:
        last.update(dict.fromkeys(on_variables(eqn.effects, eqn), place[id(eqn)]))
    for eqn, kinds, _ in backward:
        for effect in on_variables(fixed_effects(eqn, kinds), eqn):
            on_same: list[Effect[VarId]] = [e for e in last if isinstance(e, SideEffect)]
            if not isinstance(effect, SideEffect):
                on_same = [kind(effect.ref) for kind in (Read, Write, Accum)]
            if any(
                last.get(other, -1) > place[id(eqn)] and not commutes(effect, other)
                for other in on_same
            ):
                raise located(_out_of_order(eqn), eqn)


def on_variables(row: Row[ArgIndex], eqn: Eqn) -> Row[VarId]:
    """Return the effects of an equation over its variables, without allocations."""

    def name(i: ArgIndex) -> VarId | None:
        atom = eqn.ins[i]
        return VarId(atom.id) if isinstance(atom, Var) else None

    return row.mask((Alloc,)).rename(name)


def _out_of_order(eqn: Eqn) -> TransformError:
    return TransformError(
        f"{eqn.prim.name} uses a reference that is not linear, and a later equation that does "
        "not depend on linear inputs changes or observes it: transposed, that one would run first",
        remedy="split off the equations that do not depend on linear inputs (`partial_eval`)",
    )


def _partly_linear(eqn: Eqn) -> TransformError:
    return TransformError(
        f"{eqn.prim.name} returns a result that does not depend on the linear inputs beside one "
        "that does, and its rules cannot split it",
        remedy="split off the equations that do not depend on linear inputs (`partial_eval`)",
    )


def add_wholes(
    ends: dict[int, list[Var]], k: int, wholes: Iterable[Atom], accumulated: Container[int]
) -> None:
    """Add the accumulated arrays that equation ``k`` uses as a whole to those that it ends."""
    found = [a for a in wholes if isinstance(a, Var) and a.id in accumulated]
    if found:
        ends[k] = found


class Sparse(NamedTuple):
    """The operands whose cotangents a primitive can add in place.

    Attributes:
        in_part: those of which it, or a subjaxpr, uses only a part: allocating a reference pays.
        in_place: those whose cotangent is added to a reference that exists already.
    """

    in_part: frozenset[int]
    in_place: frozenset[int]


@memoize(maxsize=1 << 12)
def sparse_operands(rules: RuleSet, prim: Primitive) -> Sparse:
    """Return the operands of a primitive that are used in part, or can be added in place."""
    regions = prim.regions()
    sparse = rules.of(prim).sparse
    if not regions:
        first = frozenset({0} if sparse else ())
        return Sparse(first, first)
    # The cotangent of a carry is a carry, a whole value.
    carries = {c for region in regions for c in region.carry_to}
    in_place = frozenset(arg for region in regions for arg in region.args if arg not in carries)
    if sparse:
        return Sparse(in_place, in_place)
    found = {
        arg
        for region in regions
        for v, arg in zip(region.jaxpr.binders, region.args, strict=True)
        if v.id in used_in_part(region.jaxpr, rules)
    }
    return Sparse(frozenset(found), in_place)


@memoize(maxsize=1 << 12)
def used_in_part(jaxpr: Jaxpr, rules: RuleSet) -> frozenset[int]:
    """Return the numbers of the variables of which an equation uses only a part."""
    return frozenset(
        a.id
        for eqn in jaxpr.eqns
        for i in sparse_operands(rules, eqn.prim).in_part
        if isinstance(a := eqn.ins[i], Var)
    )
