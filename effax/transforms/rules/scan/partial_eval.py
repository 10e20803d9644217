"""Partial evaluation of ``scan``: a loop of the known body, and a loop of the unknown body.

Before, where ``c`` is the carry, and ``w`` is known::

    scan (c, x) -> (c·sin w + exp x, c)

After, with ``x`` known: ``sin w`` is the same in every iteration, and computed once before the
loops; the known loop stacks ``exp x``, over which the unknown loop scans::

    s = sin w
    es = scan x -> exp x
    scan (c, e) -> (c·s + e, c)          s is closed over

Invariants:

- A carry is known if it is known in every iteration: a fixpoint over the body.
- A residual that depends on constants alone is hoisted: computed once, before the loops. Any other
  computed residual is stacked by the known loop and scanned by the unknown loop. Known constants
  and scanned inputs are residuals as they are.
- All iterations of the known loop run before those of the unknown loop. So a reference is known
  only if the accesses of both bodies commute (it is not contended), and side effects must commute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from effax.effects import Row, SideEffect
from effax.effects.order import COMMUTING_KINDS
from effax.ir.analysis.dataflow import fixpoint
from effax.ir.build import Builder
from effax.ir.edit.renumber import rearranged
from effax.ir.prims import BroadcastInDim, Scan
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var, has_side_effects
from effax.ir.types import RefType, Type
from effax.transforms.framework.propagation import Mask
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
from effax.transforms.rules.common.split_subjaxprs import effects_on_known_refs


def scan_split(
    rules: RuleSet, prim: Scan, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    mask, pe = _closed(rules, prim, known, policy)
    if not Row(pe.known.effects.side_effects).commutes(Row(pe.unknown.effects.side_effects)):
        return None
    plan = _Plan(prim, mask, pe, rules).packed(rules)
    pe = plan.pe
    unknown_args = plan.unknown_args()
    gained = any(pe.known_outs) or plan.hoisted or plan.stacked or pe.known.effects
    if not gained and not frees_refs(in_types, known, unknown_args):
        return None
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    given = [i for i, has in enumerate(known) if has]
    outs, hoisted, stacked = plan.known_loop(b, dict(zip(given, b.binders, strict=True)))
    residuals = [*hoisted, *stacked]

    rest = Builder([*[r.type for r in residuals], *[in_types[i] for i in unknown_args]])
    args = dict(zip(unknown_args, rest.binders[len(residuals) :], strict=True))
    n = len(hoisted)
    unknown_outs = plan.unknown_loop(rest, rest.binders[:n], rest.binders[n : len(residuals)], args)
    return PartialEvalOut(
        b.finish([*outs, *residuals]),
        rest.finish(unknown_outs),
        pe.known_outs,
        len(residuals),
        unknown_args,
    )


def _closed(
    rules: RuleSet, prim: Scan, known: Mask, policy: Policy | None
) -> tuple[Mask, PartialEval]:
    """Return which inputs of the body are known in every iteration, and the split body."""
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
    """Return the known references whose accesses in the two bodies do not commute."""
    positions = [i for i, has in enumerate(pe.known_ins) if has]
    kinds: dict[int, set[type]] = {}
    for effect in pe.known.effects:
        if not isinstance(effect, SideEffect):
            kinds.setdefault(positions[effect.ref], set()).add(type(effect))
    return {
        i
        for i, effect in effects_on_known_refs(pe)
        if any((kind, type(effect)) not in COMMUTING_KINDS for kind in kinds.get(i, ()))
    }


class _Hoisted(NamedTuple):
    """A residual that is the same in every iteration: a result of ``_Plan.once``."""

    out: int


class _Stacked(NamedTuple):
    """A residual of each iteration: a variable of the known body."""

    var: Var


class _Passed(NamedTuple):
    """A residual that is a constant or scanned input of the loop, by position."""

    arg: int


class _Plan:
    """The sources of the body's residuals in the two loops.

    ``once`` is the known body, split: its known jaxpr depends on constants alone and is hoisted,
    its unknown jaxpr is the body of the known loop. Its results are those of the known body, then
    the residuals that are computed or carried.
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
        self.once = _hoist(body, [i < c for i in self.positions], self.n_outs, rules)
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
        """Return the plan with fewer residuals, hoisted ones packed apart from stacked ones."""
        same = [isinstance(source, _Hoisted) for source in self.sources]
        pe = packed(rules, self.pe, same)
        return self if pe is self.pe else _Plan(self.prim, self.known, pe, rules)

    def known_loop(
        self, b: Builder, args: Mapping[int, Atom]
    ) -> tuple[list[Atom], list[Atom], list[Atom]]:
        """Emit the known loop. Returns known results, hoisted residuals, stacked residuals."""
        once = self.once
        given = [args[i] for i in self.positions]
        first = b.inline_jaxpr(
            once.known, [x for x, has in zip(given, once.known_ins, strict=True) if has]
        )
        known_outs = [j for j, has in enumerate(once.known_outs) if has]
        by_place = dict(zip(known_outs, first, strict=False))
        hoisted = [by_place[j] for j in self.hoisted]
        # A residual that is a stacked result of the loop is not stacked twice.
        body_outs = [j for j, has in enumerate(once.known_outs) if not has]
        n_carry = sum(self.known[self.prim.n_consts :][: self.prim.n_carry])
        ys = self.pe.known.outs[n_carry : self.n_outs]
        row = {a: j for j, a in reversed(list(enumerate(ys)))}
        extra = [v for v in dict.fromkeys(self.stacked) if v not in row]
        row.update((v, len(ys) + j) for j, v in enumerate(extra))
        wanted = [*range(self.n_outs), *[self.needed[v] for v in extra]]
        body = rearranged(
            once.unknown,
            range(len(once.unknown.binders)),
            [body_outs.index(j) for j in wanted],
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

    def unknown_loop(
        self,
        b: Builder,
        hoisted: Sequence[Atom],
        stacked: Sequence[Atom],
        args: Mapping[int, Atom],
    ) -> list[Atom]:
        """Emit the unknown loop. Returns the unknown results."""
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


def _hoist(body: Jaxpr, consts: Sequence[bool], n_outs: int, rules: RuleSet) -> PartialEval:
    """Split off the equations that depend on constants alone.

    The first ``n_outs`` results stay in the loop, which carries or stacks them.
    """
    fixed = tuple(
        [
            has and not isinstance(v.type, RefType)
            for v, has in zip(body.binders, consts, strict=True)
        ]
    )
    forced = tuple([j < n_outs for j in range(len(body.outs))])
    if has_side_effects(body.effects):
        # A side effect happens once in each iteration, even if it depends on constants alone.
        n = len(body.binders)
        nothing = Jaxpr((), (), ())
        return PartialEval(nothing, body, (False,) * n, (False,) * len(body.outs), ())
    found = partial_eval.cached(body, fixed, _is_worth_keeping, forced, rules)
    every, inputs = (True,) * len(found.known.outs), (True,) * len(found.known.binders)
    return found._replace(known=dce.cached(found.known, every, inputs, inputs, rules).jaxpr)


def _is_worth_keeping(eqn: Eqn) -> bool:
    """Return whether a result is hoisted. A broadcast is cheaper to recompute than to read."""
    return not isinstance(eqn.prim, BroadcastInDim)
