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
from typing import Final, NamedTuple

from effax.effects import Host, Row
from effax.effects.order import COMMUTING_KINDS
from effax.ir.build import Builder, typing_of
from effax.ir.primitive import Primitive
from effax.ir.prims.control import Scan
from effax.ir.remember import remembered
from effax.ir.syntax import Atom, Jaxpr, Var, has_host_effects
from effax.ir.types import RefType, Type
from effax.transforms.dce import dce_jaxpr
from effax.transforms.inline import fitted
from effax.transforms.partial_eval import (
    FromInput,
    PartialEval,
    partial_eval_jaxpr,
    spares_references,
)
from effax.transforms.rearrange import rearranged
from effax.transforms.rulebook import Policy, RuleBook, SplitOut
from effax.transforms.spread import Flow, Mask, spread


def _everything(prim: Primitive, types: tuple[Type, ...], mask: Mask) -> Mask:
    return (True,) * len(typing_of(prim, types).outs)


DEPENDS: Final = Flow(_everything, lambda type_: True, control=True)
"""How depending on something spreads."""


def scan_split(
    book: RuleBook, prim: Scan, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> SplitOut | None:
    mask, pe = _closed(book, prim, known, policy)
    if not Row(pe.known.effects.host).commutes(Row(pe.unknown.effects.host)):
        # Each iteration's host effects come before the next one's: the halves cannot part.
        return None
    plan = _Plan(prim, mask, pe)
    unknown_args = plan.unknown_args()
    gained = any(pe.known_outs) or plan.hoisted or plan.stacked or pe.known.effects
    if not gained and not spares_references(in_types, known, unknown_args):
        return None
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    given = [i for i, has in enumerate(known) if has]
    outs, hoisted, stacked = plan.early(b, dict(zip(given, b.binders, strict=True)))
    residuals = [*hoisted, *stacked]

    late = Builder([*[r.type for r in residuals], *[in_types[i] for i in unknown_args]])
    args = dict(zip(unknown_args, late.binders[len(residuals) :], strict=True))
    n = len(hoisted)
    late_outs = plan.late(late, late.binders[:n], late.binders[n : len(residuals)], args)
    return SplitOut(
        b.finish([*outs, *residuals]),
        late.finish(late_outs),
        pe.known_outs,
        len(residuals),
        unknown_args,
    )


def _closed(
    book: RuleBook, prim: Scan, known: Mask, policy: Policy | None
) -> tuple[Mask, PartialEval]:
    """Which inputs of the body are known in every iteration, and the body split."""
    c, k = prim.n_consts, prim.n_carry
    n_ys = len(prim.jaxpr.outs) - k
    while True:
        forced = (*[not has for has in known[c : c + k]], *[False] * n_ys)
        pe = partial_eval_jaxpr(prim.jaxpr, known, policy, forced, book)
        lost = {c + j for j in range(k) if known[c + j] and not pe.known_outs[j]}
        lost |= {i for i in _contended(pe) if i < c}
        if not lost:
            return known, pe
        known = tuple([has and i not in lost for i, has in enumerate(known)])


def _contended(pe: PartialEval) -> set[int]:
    """References on which the halves may not act one after the other, over all iterations."""
    positions = [i for i, has in enumerate(pe.known_ins) if has]
    early: dict[int, set[type]] = {}
    for effect in pe.known.effects:
        if not isinstance(effect, Host):
            early.setdefault(positions[effect.ref], set()).add(type(effect))
    found = set()
    for effect in pe.unknown.effects:
        if isinstance(effect, Host) or effect.ref >= len(pe.residuals):
            continue
        source = pe.residuals[effect.ref]
        assert isinstance(source, FromInput), "a reference is never a result"
        kinds = early.get(source.index, set())
        if any((kind, type(effect)) not in COMMUTING_KINDS for kind in kinds):
            found.add(source.index)
    return found


class _Hoisted(NamedTuple):
    """A residual that is the same in every iteration: a result of the known body, by position."""

    result: int


class _Stacked(NamedTuple):
    """A residual of each iteration: a variable of the known body."""

    var: Var


class _Passed(NamedTuple):
    """A residual that is a constant or scanned input of the loop, by position."""

    arg: int


class _Plan:
    """Where the residuals of the body come from in the two loops."""

    def __init__(self, prim: Scan, known: Mask, pe: PartialEval) -> None:
        self.prim = prim
        self.known = known
        self.pe = pe
        self.positions = [i for i, has in enumerate(known) if has]
        c, k = prim.n_consts, prim.n_carry
        binder_of = dict(zip(self.positions, pe.known.binders, strict=True))
        fixed = tuple([i < c and not isinstance(v.type, RefType) for i, v in binder_of.items()])
        same = _same_in_every_iteration(pe.known, fixed)
        self.sources: list[_Hoisted | _Stacked | _Passed] = []
        for r in pe.residuals:
            if isinstance(r, FromInput):
                carried = c <= r.index < c + k
                self.sources.append(_Stacked(binder_of[r.index]) if carried else _Passed(r.index))
            elif same[r.index]:
                self.sources.append(_Hoisted(r.index))
            else:
                out = pe.known.outs[r.index]
                assert isinstance(out, Var), "a literal is no residual"
                self.sources.append(_Stacked(out))
        self.hoisted = [s.result for s in self.sources if isinstance(s, _Hoisted)]
        self.stacked = [s.var for s in self.sources if isinstance(s, _Stacked)]

    def early(
        self, b: Builder, args: Mapping[int, Atom]
    ) -> tuple[list[Atom], list[Atom], list[Atom]]:
        """The known results, the hoisted residuals, and the stacked ones."""
        hoisted = self.hoist(b, args)
        body, n_outs = self.pe.known, sum(self.pe.known_outs)
        n_carry = sum(self.known[self.prim.n_consts :][: self.prim.n_carry])
        # A result that is stacked anyway serves as a residual too.
        ys = body.outs[n_carry:n_outs]
        row = {a: j for j, a in reversed(list(enumerate(ys)))}
        extra = [v for v in dict.fromkeys(self.stacked) if v not in row]
        row.update((v, len(ys) + j) for j, v in enumerate(extra))
        body = body.replace(outs=[*body.outs[:n_outs], *extra])
        if hoisted:
            used, every = (True,) * len(body.outs), (True,) * len(body.binders)
            body = dce_jaxpr(body, used, every, every).jaxpr
        if not (body.outs or body.effects):
            return [], hoisted, []
        loop = replace(
            self.prim,
            jaxpr=body,
            n_consts=sum(self.known[: self.prim.n_consts]),
            n_carry=n_carry,
        )
        results = b.emit(loop, [args[i] for i in self.positions])
        stacked: list[Atom] = [results[n_carry + row[v]] for v in self.stacked]
        return list(results[:n_outs]), hoisted, stacked

    def hoist(self, b: Builder, args: Mapping[int, Atom]) -> list[Atom]:
        """Compute once what is the same in every iteration."""
        if not self.hoisted:
            return []
        body = self.pe.known
        results = set(self.hoisted)
        wanted = tuple([j in results for j in range(len(body.outs))])
        nobody = (False,) * len(body.binders)
        once, used_ins = dce_jaxpr(body, wanted, nobody, nobody)
        used = [i for i, has in zip(self.positions, used_ins, strict=True) if has]
        ins = [fitted(b, args[i], v.type) for i, v in zip(used, once.binders, strict=True)]
        outs = iter(b.inline_jaxpr(once, ins))
        by_index = {j: next(outs) for j, has in enumerate(wanted) if has}
        return [by_index[j] for j in self.hoisted]

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


@remembered(maxsize=1024)
def _same_in_every_iteration(body: Jaxpr, fixed: Mask) -> Mask:
    """Which results depend on fixed inputs alone."""
    if has_host_effects(body.effects):
        return (False,) * len(body.outs)
    found = spread(body, tuple([not f for f in fixed]), DEPENDS)
    return tuple([not moves for moves in found.outs])
