"""Partial evaluation of ``scan``: a loop of the known halves, and one of the unknown halves.

Before, where ``c`` is the carry, and ``w`` is known::

    scan (c, x) -> (c·sin w + exp x, c)

After, with ``x`` known: ``sin w`` is the same in every iteration, and computed once before the
loops; the known loop stacks ``exp x``, over which the unknown loop scans::

    s = sin w
    es = scan x -> exp x
    scan (c, e) -> (c·s + e, c)          s is closed over

Known inputs that the unknown half needs are passed as they are, as constants or scanned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from effax.effects import Row, SideEffect
from effax.effects.order import COMMUTING_KINDS
from effax.ir.analysis.dataflow import fixpoint
from effax.ir.build import Builder
from effax.ir.prims import BroadcastInDim, Scan
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var, has_side_effects
from effax.ir.types import RefType, Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.renumber import rearranged
from effax.transforms.framework.rules import PartialEvalOut, Policy, RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.partial_eval.packing import packed
from effax.transforms.partial_eval.partial_eval import (
    FromInput,
    FromOutput,
    PartialEval,
    frees_refs,
    partial_eval,
)


def scan_split(
    rules: RuleSet, prim: Scan, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    mask, pe = _closed(rules, prim, known, policy)
    if not Row(pe.known.effects.side_effects).commutes(Row(pe.unknown.effects.side_effects)):
        # Each iteration's host effects come before the next one's: the halves cannot part.
        return None
    plan = _Plan(prim, mask, pe, rules).packed(rules)
    pe = plan.pe
    unknown_args = plan.unknown_args()
    gained = any(pe.known_outs) or plan.hoisted or plan.stacked or pe.known.effects
    if not gained and not frees_refs(in_types, known, unknown_args):
        return None
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    given = [i for i, has in enumerate(known) if has]
    outs, hoisted, stacked = plan.early(b, dict(zip(given, b.binders, strict=True)))
    residuals = [*hoisted, *stacked]

    late = Builder([*[r.type for r in residuals], *[in_types[i] for i in unknown_args]])
    args = dict(zip(unknown_args, late.binders[len(residuals) :], strict=True))
    n = len(hoisted)
    late_outs = plan.late(late, late.binders[:n], late.binders[n : len(residuals)], args)
    return PartialEvalOut(
        b.finish([*outs, *residuals]),
        late.finish(late_outs),
        pe.known_outs,
        len(residuals),
        unknown_args,
    )


def _closed(
    rules: RuleSet, prim: Scan, known: Mask, policy: Policy | None
) -> tuple[Mask, PartialEval]:
    """Return which inputs of the body are known in every iteration, and the body split."""
    c, k = prim.n_consts, prim.n_carry
    n_ys = len(prim.jaxpr.outs) - k

    def body(known: Mask) -> PartialEval:
        forced = (*[not has for has in known[c : c + k]], *[False] * n_ys)
        return partial_eval.cached(prim.jaxpr, known, policy, forced, rules)

    def kept(known: Mask) -> Mask:
        pe = body(known)
        lost = {c + j for j in range(k) if not pe.known_outs[j]}
        lost |= {i for i in _contended(pe) if i < c}
        return tuple([has and i not in lost for i, has in enumerate(known)])

    mask = fixpoint(kept, known)
    return mask, body(mask)


def _contended(pe: PartialEval) -> set[int]:
    """References on which the halves may not act one after the other, over all iterations."""
    positions = [i for i, has in enumerate(pe.known_ins) if has]
    early: dict[int, set[type]] = {}
    for effect in pe.known.effects:
        if not isinstance(effect, SideEffect):
            early.setdefault(positions[effect.ref], set()).add(type(effect))
    found = set()
    for effect in pe.unknown.effects:
        if isinstance(effect, SideEffect) or effect.ref >= len(pe.residuals):
            continue
        source = pe.residuals[effect.ref]
        assert isinstance(source, FromInput), "a reference is never a result"
        kinds = early.get(source.index, set())
        if any((kind, type(effect)) not in COMMUTING_KINDS for kind in kinds):
            found.add(source.index)
    return found


class _Hoisted(NamedTuple):
    """A residual that is the same in every iteration, by its place among what leaves the body."""

    out: int


class _Stacked(NamedTuple):
    """A residual of each iteration: a variable of the known body."""

    var: Var


class _Passed(NamedTuple):
    """A residual that is a constant or scanned input of the loop, by position."""

    arg: int


class _Plan:
    """Where the residuals of the body come from in the two loops.

    ``once`` is the known body in two: what constants alone decide, which is computed before the
    loops, and the rest, which is the body of the known loop. Its results are those of the known
    body, then each residual that is computed there, and each carry that is one.
    """

    def __init__(self, prim: Scan, known: Mask, pe: PartialEval, rules: RuleSet) -> None:
        self.prim = prim
        self.known = known
        self.pe = pe
        self.n_outs = sum(pe.known_outs)
        self.positions = [i for i, has in enumerate(known) if has]
        c, k = prim.n_consts, prim.n_carry
        binder_of = dict(zip(self.positions, pe.known.binders, strict=True))
        needed: dict[Var, int] = {}
        for r in pe.residuals:
            out = binder_of[r.index] if isinstance(r, FromInput) else pe.known.outs[r.index]
            assert isinstance(out, Var), "a literal is no residual"
            if isinstance(r, FromOutput) or c <= r.index < c + k:
                needed.setdefault(out, self.n_outs + len(needed))
        body = pe.known.replace(outs=[*pe.known.outs[: self.n_outs], *needed])
        self.once = _in_two(body, [i < c for i in self.positions], self.n_outs, rules)
        self.needed = needed
        self.sources: list[_Hoisted | _Stacked | _Passed] = []
        for r in pe.residuals:
            out = binder_of[r.index] if isinstance(r, FromInput) else pe.known.outs[r.index]
            assert isinstance(out, Var), "a literal is no residual"
            if out not in needed:
                self.sources.append(_Passed(r.index))
            elif self.once.known_outs[needed[out]]:
                self.sources.append(_Hoisted(needed[out]))
            else:
                self.sources.append(_Stacked(out))
        self.hoisted = [s.out for s in self.sources if isinstance(s, _Hoisted)]
        self.stacked = [s.var for s in self.sources if isinstance(s, _Stacked)]

    def packed(self, rules: RuleSet) -> _Plan:
        """The plan with few residuals: those that are the same in all iterations by themselves."""
        same = [isinstance(source, _Hoisted) for source in self.sources]
        pe = packed(rules, self.pe, same)
        return self if pe is self.pe else _Plan(self.prim, self.known, pe, rules)

    def early(
        self, b: Builder, args: Mapping[int, Atom]
    ) -> tuple[list[Atom], list[Atom], list[Atom]]:
        """The known results, the hoisted residuals, and the stacked ones."""
        once = self.once
        given = [args[i] for i in self.positions]
        first = b.inline_jaxpr(
            once.known, [x for x, has in zip(given, once.known_ins, strict=True) if has]
        )
        known_outs = [j for j, has in enumerate(once.known_outs) if has]
        by_place = dict(zip(known_outs, first, strict=False))
        hoisted = [by_place[j] for j in self.hoisted]
        # A result that is stacked anyway serves as a residual too.
        late_outs = [j for j, has in enumerate(once.known_outs) if not has]
        n_carry = sum(self.known[self.prim.n_consts :][: self.prim.n_carry])
        ys = self.pe.known.outs[n_carry : self.n_outs]
        row = {a: j for j, a in reversed(list(enumerate(ys)))}
        extra = [v for v in dict.fromkeys(self.stacked) if v not in row]
        row.update((v, len(ys) + j) for j, v in enumerate(extra))
        wanted = [*range(self.n_outs), *[self.needed[v] for v in extra]]
        body = rearranged(
            once.unknown,
            range(len(once.unknown.binders)),
            [late_outs.index(j) for j in wanted],
        )
        if not (body.outs or body.effects):
            return [], hoisted, []
        rest = [i for i, has in zip(self.positions, once.known_ins, strict=True) if not has]
        residuals = [r.pick(given, first) for r in once.residuals]
        n_consts = len(residuals) + sum(i < self.prim.n_consts for i in rest)
        loop = replace(self.prim, jaxpr=body, n_consts=n_consts, n_carry=n_carry)
        results = b.emit(loop, [*residuals, *[args[i] for i in rest]])
        stacked: list[Atom] = [results[n_carry + row[v]] for v in self.stacked]
        return list(results[: self.n_outs]), hoisted, stacked

    def unknown_args(self) -> tuple[int, ...]:
        passed = {s.arg for s in self.sources if isinstance(s, _Passed)}
        return tuple([i for i, has in enumerate(self.known) if i in passed or not has])

    def late(
        self,
        b: Builder,
        hoisted: Sequence[Atom],
        stacked: Sequence[Atom],
        args: Mapping[int, Atom],
    ) -> list[Atom]:
        """The unknown results."""
        prim, pe = self.prim, self.pe
        if not (pe.unknown.outs or pe.unknown.effects):
            return []
        c, first_x = prim.n_consts, prim.n_consts + prim.n_carry
        feed = {_Hoisted: iter(hoisted), _Stacked: iter(stacked)}
        # (position among the binders of the unknown body, argument), by group.
        consts: list[tuple[int, Atom]] = []
        carry: list[tuple[int, Atom]] = []
        xs: list[tuple[int, Atom]] = []
        for n, source in enumerate(self.sources):
            if isinstance(source, _Passed):
                (consts if source.arg < c else xs).append((n, args[source.arg]))
            else:
                group = consts if isinstance(source, _Hoisted) else xs
                group.append((n, next(feed[type(source)])))
        unknown = [i for i, has in enumerate(self.known) if not has]
        for n, i in enumerate(unknown, len(self.sources)):
            (consts if i < c else carry if i < first_x else xs).append((n, args[i]))
        order = [*consts, *carry, *xs]
        body = rearranged(pe.unknown, [n for n, _ in order], range(len(pe.unknown.outs)))
        loop = replace(prim, jaxpr=body, n_consts=len(consts), n_carry=len(carry))
        return list(b.emit(loop, [x for _, x in order]))


def _in_two(body: Jaxpr, consts: Sequence[bool], n_outs: int, rules: RuleSet) -> PartialEval:
    """What constants decide, and what is left: of that are the first ``n_outs`` results."""
    fixed = tuple(
        [
            has and not isinstance(v.type, RefType)
            for v, has in zip(body.binders, consts, strict=True)
        ]
    )
    late = tuple([j < n_outs for j in range(len(body.outs))])
    if has_side_effects(body.effects):
        # One for each iteration, whatever it depends on: all stays in the loop.
        n = len(body.binders)
        nothing = Jaxpr((), (), ())
        return PartialEval(nothing, body, (False,) * n, (False,) * len(body.outs), ())
    found = partial_eval.cached(body, fixed, _is_worth_keeping, late, rules)
    every, inputs = (True,) * len(found.known.outs), (True,) * len(found.known.binders)
    return found._replace(known=dce.cached(found.known, every, inputs, inputs, rules).jaxpr)


def _is_worth_keeping(eqn: Eqn) -> bool:
    """Whether a result is better computed once than in each iteration: copies are not."""
    return not isinstance(eqn.prim, BroadcastInDim)
