"""Mutants of rules: one small fault in the program that a rule builds, wherever it is applied.

A fault is put into an equation (another operation, operands swapped, a literal changed, an effect
left out, a loop run backwards), or into the results of the rule (a tangent left out, or doubled).
Evaluations of both programs determine whether it changes the meaning of the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from effax.ir import prims as p
from effax.ir.build import Builder
from effax.ir.primitive import Primitive
from effax.ir.prims import Rev
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.printer import eqn_str
from effax.ir.types import ArrayType, RefType
from effax.testing.generate.values import Differs, check_outcomes, random_inputs, run
from effax.transforms.framework.rules import BatchOut, DischargeOut, JvpOut, Linear, Rules, RuleSet
from effax.transforms.rules.default import DEFAULT_RULES

Rule = Callable[..., Any]
KINDS: Final = ("jvp", "transpose", "batch", "discharge")

OTHER: Final[dict[type[Primitive], Callable[[], Primitive]]] = {
    p.Add: p.Sub,
    p.Sub: p.Add,
    p.Mul: p.Add,
    p.Div: p.Mul,
    p.Max: p.Min,
    p.Min: p.Max,
    p.Sin: p.Cos,
    p.Cos: p.Sin,
    p.Neg: p.Copy,
    p.Square: p.Copy,
    p.Eq: p.Ne,
    p.Ne: p.Eq,
    p.Lt: p.Ge,
    p.Ge: p.Lt,
    p.Gt: p.Le,
    p.Le: p.Gt,
    p.And: p.Or,
    p.Or: p.And,
    p.Exp: p.Sin,
    p.Conj: p.Copy,
}
"""For an operation another one, of the same types."""

SYMMETRIC: Final = (p.Add, p.Mul, p.Max, p.Min, p.And, p.Or, p.Xor, p.Eq, p.Ne)


class Fault(NamedTuple):
    """A change of the program of a rule.

    Attributes:
        at: which equation, or which of the rule's results.
        variant: which of the changes that are possible there.
        of_result: whether it is a result that is changed.
    """

    at: int
    variant: int
    of_result: bool


def variants(eqn: Eqn) -> Iterator[Eqn | None]:
    """Yield variants of an equation; None: removed."""
    prim, ins, outs, _, _ = eqn
    if not outs:
        yield None
    other = OTHER.get(type(prim))
    if other is not None:
        yield eqn._replace(prim=other())
    if len(ins) >= 2 and _may_be_swapped(prim, ins[-2], ins[-1]):
        yield eqn._replace(ins=(*ins[:-2], ins[-1], ins[-2]))
    for i, a in enumerate(ins):
        if isinstance(a, Lit) and a.type.dtype.kind in "fcb":
            value = not a.value if isinstance(a.value, bool) else 2 * a.value + 1
            yield eqn._replace(ins=(*ins[:i], Lit(value, a.type), *ins[i + 1 :]))
    if hasattr(prim, "reverse"):
        own: Any = prim
        yield eqn._replace(prim=replace(own, reverse=not own.reverse))
    subjaxprs = prim.subjaxprs()
    for i, inner in enumerate(subjaxprs):
        for changed in _programs(inner):
            yield eqn._replace(
                prim=prim.with_subjaxprs([*subjaxprs[:i], changed, *subjaxprs[i + 1 :]])
            )


def _may_be_swapped(prim: Primitive, x: Atom, y: Atom) -> bool:
    same = x.type == y.type and x != y and not isinstance(x.type, RefType)
    return same and not isinstance(prim, SYMMETRIC)


def _programs(jaxpr: Jaxpr, most: int = 4) -> Iterator[Jaxpr]:
    """The program with a fault in one of its equations: a few of all that there are."""
    left = most
    for i, eqn in enumerate(jaxpr.eqns):
        for variant in variants(eqn):
            if not left:
                return
            left -= 1
            made = [] if variant is None else [variant]
            yield jaxpr.replace(eqns=[*jaxpr.eqns[:i], *made, *jaxpr.eqns[i + 1 :]])


@dataclass
class Mutant:
    """A book in which one rule has one fault.

    Attributes:
        prim: whose rule it is.
        kind: which rule.
        fault: what is wrong.
        changed: whether some application so far meant something else than it should.
        applied: whether there was a place for the fault at all.
        change: the changed equation, before and after, once it was applied.
    """

    prim: type[Primitive]
    kind: str
    fault: Fault
    changed: bool = False
    applied: bool = False
    change: str = ""

    def __str__(self) -> str:
        change = self.change or _changes_of(self.kind)[self.fault.variant]
        what = f"result {self.fault.at}" if self.fault.of_result else f"equation {self.fault.at}"
        return f"the {self.kind} rule of {self.prim.name}, {what}: {change}"

    def rules(self) -> RuleSet:
        """The library's book with the fault."""
        rules = DEFAULT_RULES.rules[self.prim]
        return DEFAULT_RULES.extend(self.prim, _with(rules, self.kind, self._wrong))

    def _wrong(self, right: Rule) -> Rule:
        def rule(b: Any, prim: Primitive, *args: Any) -> Any:
            start, given = len(b.eqns), _looked_at(right(b, prim, *args), args)
            eqns = list(b.eqns[start:])
            made = self._changed_result(b, given, args) if self.fault.of_result else given
            if not self.fault.of_result:
                self._change_equation(b, start)
            if self.applied and not self.changed:
                before, after = _segment(eqns, given), _segment(b.eqns[start:], made)
                self.changed = _differ(before, after)
            return made

        return rule

    def _change_equation(self, b: Builder, start: int) -> None:
        at = start + self.fault.at
        if at >= len(b.eqns):
            return
        for i, variant in enumerate(variants(b.eqns[at])):
            if i == self.fault.variant:
                self.applied = True
                old = eqn_str(b.eqns[at])
                new = "nothing" if variant is None else eqn_str(variant)
                self.change = f"`{old}` became `{new}`"
                b.eqns[at : at + 1] = [] if variant is None else [variant]
                return

    def _changed_result(self, b: Any, given: Any, args: Sequence[Any]) -> Any:
        results = _results_of(given)
        i = self.fault.at
        if i >= len(results) or results[i] is None:
            return given
        changed = _VARIANTS_OF_RESULTS[self.fault.variant](b, given, i)
        self.applied = self.applied or changed is not None
        if changed is None:
            return given
        return _with_result(given, i, None if changed is _LEFT_OUT else changed)


def _with(rules: Rules[Primitive], kind: str, wrong: Callable[[Rule], Rule]) -> Rules[Primitive]:
    changed: Any = {kind: wrong(getattr(rules, kind))}
    return replace(rules, **changed)


_LEFT_OUT: Final = object()


def _looked_at(given: Any, args: Sequence[Any]) -> Any:
    """Return the results of a rule, without unwanted cotangents."""
    if isinstance(given, JvpOut | BatchOut | DischargeOut):
        return given
    wanted = [isinstance(x, Linear) and x.wanted for x in args[0]]
    return [ct if has else None for ct, has in zip(given, wanted, strict=True)]


def _left_out(b: Builder, given: Any, i: int) -> object:
    return None if isinstance(given, BatchOut) else _LEFT_OUT


def _otherwise(b: Builder, given: Any, i: int) -> object:
    """Twice the value; of a batch, its elements in the other order."""
    value: Any = _results_of(given)[i]
    if isinstance(given, BatchOut):
        return b(Rev((0,)), value) if given.batched[i] and value.type.shape[0] > 1 else None
    return b(p.Add(), value, value) if value.type.dtype.kind in "fc" else None


_VARIANTS_OF_RESULTS: Final = (_left_out, _otherwise)


def _changes_of(kind: str) -> tuple[str, str]:
    """Return descriptions of the changes of a result."""
    if kind == "batch":
        return "not changed", "its elements are reversed"
    return "left out", "doubled"


def _results_of(given: Any) -> list[Atom | None]:
    """Return the results of a rule that may be changed."""
    match given:
        case JvpOut(_, tangents):
            return list(tangents)
        case BatchOut(outs, _):
            return list(outs)
        case DischargeOut(_, contents):
            return list(contents)
        case _:
            return list(given)


def _with_result(given: Any, i: int, value: Any) -> Any:
    results: Any = _results_of(given)
    results[i] = value
    match given:
        case JvpOut():
            return given._replace(tangents=results)
        case BatchOut():
            return given._replace(outs=results)
        case DischargeOut():
            return given._replace(contents=results)
        case _:
            return results


def _segment(eqns: Sequence[Eqn], given: Any) -> tuple[Jaxpr, list[bool]]:
    """Return the equations of a rule as a closed program, and the mask of its results."""
    made = {v.id for eqn in eqns for v in eqn.outs}
    used: dict[int, Var] = {}
    outs: list[Atom | None] = []
    if isinstance(given, JvpOut | DischargeOut):
        outs += given.outs
    outs += _results_of(given)
    for a in [*(a for eqn in eqns for a in eqn.ins), *outs]:
        if isinstance(a, Var) and a.id not in made:
            used.setdefault(a.id, a)
    binders = [used[i] for i in sorted(used)]
    results = [a for a in outs if a is not None and isinstance(a.type, ArrayType)]
    return Jaxpr(binders, list(eqns), results), [a is not None for a in outs]


def _differ(first: tuple[Jaxpr, list[bool]], second: tuple[Jaxpr, list[bool]]) -> bool:
    """Return whether two programs of a rule differ on some random inputs."""
    (right, has), (wrong, still_has) = first, second
    by_id = {v.id: v for v in (*right.binders, *wrong.binders)}
    both = [by_id[i] for i in sorted(by_id)]
    for seed in range(3):
        inputs = random_inputs([v.type for v in both], seed)
        try:
            with np.errstate(all="ignore"):
                x = run(right.replace(binders=both), inputs)
                y = run(wrong.replace(binders=both), inputs)
            if has != still_has:
                return True
            check_outcomes(x, y)
        except (Differs, Exception):  # noqa: BLE001  what cannot run is no longer the same
            return True
    return False


def mutants_of(prim: type[Primitive], kind: str, probe: Callable[[RuleSet], None]) -> list[Mutant]:
    """All mutants of a rule that is used where ``probe`` runs the laws."""
    sizes: list[tuple[list[int], int]] = []

    def recorded(right: Rule) -> Rule:
        def rule(b: Any, applied: Primitive, *args: Any) -> Any:
            start, given = len(b.eqns), _looked_at(right(b, applied, *args), args)
            numbers = [sum(1 for _ in variants(eqn)) for eqn in b.eqns[start:]]
            sizes.append((numbers, len(_results_of(given))))
            return given

        return rule

    rules = DEFAULT_RULES.rules[prim]
    if not callable(getattr(rules, kind)):
        return []
    probe(DEFAULT_RULES.extend(prim, _with(rules, kind, recorded)))
    found: dict[Fault, None] = {}
    for numbers, n_results in sizes:
        for i, n in enumerate(numbers):
            found.update(dict.fromkeys(Fault(i, k, False) for k in range(n)))
        for i in range(n_results):
            found.update(dict.fromkeys(Fault(i, k, True) for k in range(len(_VARIANTS_OF_RESULTS))))
    return [Mutant(prim, kind, fault) for fault in found]
