"""Partial evaluation of ``while``: the known carries run first, then the whole loop runs again.

The number of iterations is not known in advance, so residuals cannot be stacked. The known jaxpr
is the loop over the known carries alone, and counts its iterations. The unknown jaxpr runs for that
count, without the condition, from the same initial values: it recomputes the known carries, and
``transpose`` runs it backward::

    while cond(w, c): c = f(w, c)    with w known, and c not

    n = 0;  while cond(w, c0): c0 = f0(w, c0); n += 1        known
    i = 0;  while i < n:       c = f(w, c); i += 1           unknown

The known jaxpr changes the references that it accesses. So the unknown jaxpr takes copies of their
previous contents as residuals, and carries them: no effect happens twice. Side effects run in the
known jaxpr only; a loop that receives values from them is not split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from effax.effects import Accum, ArgIndex, Read, Row, Write
from effax.ir.analysis.dataflow import fixpoint
from effax.ir.build import Builder, lit
from effax.ir.edit.without_io import silent
from effax.ir.indexing import whole
from effax.ir.prims import Add, EmptyRef, FreeRef, Freeze, Get, Jit, Lt, NewRef, While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import COUNTER, RefType, Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import PartialEvalOut, Policy, RuleSet
from effax.transforms.optimize.dce import dce
from effax.transforms.partial_eval.partial_eval import PartialEval, partial_eval
from effax.transforms.rules.common.split_subjaxprs import effects_on_known_refs


def while_split(
    rules: RuleSet, prim: While, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> PartialEvalOut | None:
    recomputed = _without_side_effects(prim)
    if recomputed is None:
        return None
    mask, cond, body = _closed(rules, prim, known)
    known_outs = mask[prim.n_consts :]
    if cond.unknown.effects.side_effects or body.unknown.effects.side_effects:
        return None
    if not cond.known_outs[0] or not (any(known_outs) or cond.known.effects or body.known.effects):
        return None
    copies = _Copies.of(in_types, mask, prim.cond.effects.join(prim.body.effects))
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    args = dict(zip([i for i, has in enumerate(known) if has], b.binders, strict=True))
    before = [b(Get(whole(in_types[i].shape)), args[i]) for i in copies.read]
    n = sum(known_outs)
    # Residuals of the split condition and body are not used: the values are recomputed.
    first = counted(_first(cond, 1, rules), _first(body, n, rules), sum(mask[: prim.n_consts]))
    count, *outs = b.emit(first, _with_count([args[i] for i, h in enumerate(mask) if h], n))

    unknown_args = tuple([i for i in range(len(in_types)) if i not in copies.all])
    residuals = [count, *before]
    later = Builder([*[x.type for x in residuals], *[in_types[i] for i in unknown_args]])
    values = dict(zip(copies.read, later.binders[1:], strict=False))
    rest = dict(zip(unknown_args, later.binders[len(residuals) :], strict=True))
    all_outs = _CountedLoop(recomputed, copies).emit(later, later.binders[0], values, rest)
    return PartialEvalOut(
        b.finish([*outs, *residuals]),
        later.finish([y for y, has in zip(all_outs, known_outs, strict=True) if not has]),
        known_outs,
        len(residuals),
        unknown_args,
    )


def _without_side_effects(prim: While) -> While | None:
    """Return the loop without its side effects; None if it uses their results."""
    cond, body = silent(prim.cond), silent(prim.body)
    return None if cond is None or body is None else While(cond, body, prim.n_consts)


def counted(cond: Jaxpr, body: Jaxpr, n_consts: int) -> While:
    """Return the loop with the number of its iterations as a first carry."""
    types = body.in_types
    with_count = (*types[:n_consts], COUNTER, *types[n_consts:])
    test, step = Builder(with_count), Builder(with_count)
    args = [v for i, v in enumerate(test.binders) if i != n_consts]
    again = test.inline_jaxpr(cond, args)
    args = [v for i, v in enumerate(step.binders) if i != n_consts]
    outs = step.inline_jaxpr(body, args)
    count = step(Add(), step.binders[n_consts], lit(1, COUNTER))
    return While(test.finish(again), step.finish([count, *outs]), n_consts)


def _with_count(args: Sequence[Atom], n_carry: int) -> list[Atom]:
    """Return the arguments of a counted loop: a count of zero before the carries."""
    first = len(args) - n_carry
    return [*args[:first], lit(0, COUNTER), *args[first:]]


def _closed(rules: RuleSet, prim: While, known: Mask) -> tuple[Mask, PartialEval, PartialEval]:
    """Return which inputs are known in every iteration; the split condition and body.

    A reference is known only if the unknown jaxprs do not change it.
    """
    c = prim.n_consts

    def split(known: Mask) -> tuple[PartialEval, PartialEval]:
        forced = tuple([not has for has in known[c:]])
        cond = partial_eval.cached(prim.cond, known, None, (False,), rules)
        return cond, partial_eval.cached(prim.body, known, None, forced, rules)

    def kept(known: Mask) -> Mask:
        cond, body = split(known)
        lost = {c + j for j, has in enumerate(body.known_outs) if not has}
        lost |= {
            i
            for pe in (body, cond)
            for i, effect in effects_on_known_refs(pe)
            if isinstance(effect, Write | Accum)
        }
        return tuple([has and i not in lost for i, has in enumerate(known)])

    mask = fixpoint(kept, known)
    return mask, *split(mask)


def _first(pe: PartialEval, n: int, rules: RuleSet) -> Jaxpr:
    """Return the known jaxpr with its first ``n`` results, without residuals."""
    used = tuple([j < n for j in range(len(pe.known.outs))])
    every = (True,) * len(pe.known.binders)
    return dce.cached(pe.known, used, every, every, rules).jaxpr


class _Copies(NamedTuple):
    """Known references, which the unknown jaxpr copies.

    Attributes:
        all: their positions among the arguments of the loop.
        read: those that the loop reads; the others need no initial contents.
        changed: those that the loop changes.
    """

    all: tuple[int, ...]
    read: tuple[int, ...]
    changed: frozenset[int]

    @staticmethod
    def of(types: Sequence[Type], known: Mask, effects: Row[ArgIndex]) -> _Copies:
        refs = [i for i, t in enumerate(types) if known[i] and isinstance(t, RefType)]
        read = tuple([i for i in refs if Read(ArgIndex(i)) in effects])
        return _Copies(tuple(refs), read, _changed(effects) & frozenset(refs))

    @property
    def carried(self) -> tuple[int, ...]:
        """Return the references whose contents one iteration passes to the next."""
        return tuple([i for i in self.read if i in self.changed])


def _changed(effects: Row[ArgIndex]) -> frozenset[int]:
    return frozenset(e.ref for e in effects if isinstance(e, Write | Accum))


class _CountedLoop:
    """The whole loop for a given number of iterations, on copies of references."""

    def __init__(self, prim: While, copies: _Copies) -> None:
        self.prim = prim
        self.copies = copies
        # A condition that changes a reference runs in each iteration for its effects.
        self.tests = bool(_changed(prim.cond.effects))
        self.types = prim.body.in_types
        self.n_consts = prim.n_consts
        kept = set(range(prim.n_consts)) - set(copies.all)
        self.consts = [i for i in range(prim.n_consts) if i in kept or i in self.fixed]

    @property
    def fixed(self) -> list[int]:
        """Return the copies that the loop only reads: one copy serves all iterations."""
        return [i for i in self.copies.read if i not in self.copies.changed]

    def emit(
        self, b: Builder, count: Atom, before: Mapping[int, Atom], rest: Mapping[int, Atom]
    ) -> Sequence[Atom]:
        """Emit the loop. Returns its results.

        Args:
            b: the builder to append to.
            count: the number of iterations.
            before: the contents of references before the loop, by position.
            rest: the other arguments.
        """
        consts = [self._ref(b, i, before) if i in self.fixed else rest[i] for i in self.consts]
        contents = [before[i] for i in self.copies.carried]
        carry = [rest[i] for i in range(self.n_consts, len(self.types))]
        args = [count, *consts, lit(0, COUNTER), *contents, *carry]
        const_types = [self.types[i] for i in self.consts]
        carry_types = [*[x.type for x in contents], *self.types[self.n_consts :]]
        body = self._body([COUNTER, *const_types, COUNTER, *carry_types])
        results = b.emit(While(self._cond(body), body, 1 + len(consts)), args)[1:]
        # The condition runs once more than the body: repeat its effects on linear references.
        if _changed(self.prim.cond.effects) - set(self.copies.all):
            after = dict(zip(self.copies.carried, results, strict=False))
            values = dict(zip(self.consts, consts, strict=True))
            values.update(self._made(b, after))
            outs = results[len(contents) :]
            last = [values[i] for i in range(self.n_consts)]
            # A call, so that transposition splits it into fixed and linear equations, as the body.
            b.emit(Jit(self.prim.cond.replace(outs=()), "cond"), [*last, *outs])
        return results[len(contents) :]

    def _ref(self, b: Builder, i: int, contents: Mapping[int, Atom]) -> Atom:
        ref = self.types[i]
        assert isinstance(ref, RefType)
        return b(NewRef(ref.kind), contents[i]) if i in contents else b(EmptyRef(ref.inner))

    def _made(self, b: Builder, contents: Mapping[int, Atom]) -> dict[int, Atom]:
        """Allocate the references of one iteration."""
        return {i: self._ref(b, i, contents) for i in self.copies.all if i not in self.fixed}

    def _cond(self, body: Jaxpr) -> Jaxpr:
        b = Builder(body.in_types)
        return b.finish([b(Lt(), b.binders[1 + len(self.consts)], b.binders[0])])

    def _body(self, types: Sequence[Type]) -> Jaxpr:
        """``(count, consts, i, contents, carry) -> (i + 1, contents, carry)``."""
        b = Builder(types)
        ins = iter(b.binders[1:])
        values: dict[int, Atom] = {i: next(ins) for i in self.consts}
        index = next(ins)
        made = self._made(b, {i: next(ins) for i in self.copies.carried})
        values.update(made)
        args = [*[values[i] for i in range(self.n_consts)], *ins]
        if self.tests:
            b.inline_jaxpr(self.prim.cond, args)
        outs = b.inline_jaxpr(self.prim.body, args)
        contents = [b(Freeze(), made[i]) for i in self.copies.carried]
        for i, ref in made.items():
            if i not in self.copies.carried:
                b.emit(FreeRef(), [ref])
        return b.finish([b(Add(), index, lit(1, COUNTER)), *contents, *outs])
