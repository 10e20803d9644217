"""Partial evaluation of ``while``: what the condition needs may be known, the rest runs again.

How often a loop runs is not known before, so its iterations cannot hand over residuals. The known
half is the loop over the known carries alone. The unknown half is the whole loop once more, on the
same initial values: it computes the known carries again. For the references on which the known
half acts it takes copies of what they held before, so that no effect happens twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from effax.effects import Accum, Io, Read, Write
from effax.ir.build import Builder
from effax.ir.indexing import whole
from effax.ir.prims.control import While
from effax.ir.prims.refs import EmptyRef, FreeRef, Get, NewRef
from effax.ir.syntax import Atom, Jaxpr, has_host_effects
from effax.ir.types import RefType, Type
from effax.transforms.dce import dce_jaxpr
from effax.transforms.partial_eval import FromInput, PartialEval, partial_eval_jaxpr
from effax.transforms.rulebook import Policy, RuleBook, SplitOut
from effax.transforms.spread import Mask


def loop_split(
    book: RuleBook, prim: While, in_types: tuple[Type, ...], known: Mask, policy: Policy | None
) -> SplitOut | None:
    if has_host_effects(prim.cond.effects) or has_host_effects(prim.body.effects):
        return None
    mask, cond, body = _closed(book, prim, known)
    known_outs = mask[prim.n_consts :]
    if not cond.known_outs[0] or not (any(known_outs) or cond.known.effects or body.known.effects):
        return None
    effects = prim.cond.effects.join(prim.body.effects)
    copied = [i for i, t in enumerate(in_types) if mask[i] and isinstance(t, RefType)]
    # What is not read may hold anything at first.
    read = [i for i in copied if Read(i) in effects]
    b = Builder([t for t, has in zip(in_types, known, strict=True) if has])
    args = dict(zip([i for i, has in enumerate(known) if has], b.binders, strict=True))
    before = [b(Get(whole(in_types[i].shape)), args[i]) for i in read]
    n = sum(known_outs)
    loop = While(_first(cond, 1), _first(body, n), sum(mask[: prim.n_consts]))
    outs = b.emit(loop, [args[i] for i, has in enumerate(mask) if has])

    unknown_args = tuple([i for i in range(len(in_types)) if i not in copied])
    late = Builder([*[x.type for x in before], *[in_types[i] for i in unknown_args]])
    values = dict(zip(read, late.binders, strict=False))
    copies = {i: values.get(i) for i in copied}
    late_outs = _again(late, prim, copies, late.binders[len(read) :])
    return SplitOut(
        b.finish([*outs, *before]),
        late.finish([y for y, has in zip(late_outs, known_outs, strict=True) if not has]),
        known_outs,
        len(before),
        unknown_args,
    )


def _closed(book: RuleBook, prim: While, known: Mask) -> tuple[Mask, PartialEval, PartialEval]:
    """Which inputs are known in every iteration; the condition and the body split.

    A reference stays known if all that is done to it, reads aside, is in the known half.
    """
    c = prim.n_consts
    while True:
        forced = tuple([not has for has in known[c:]])
        body = partial_eval_jaxpr(prim.body, known, None, forced, book)
        cond = partial_eval_jaxpr(prim.cond, known, None, (False,), book)
        lost = {c + j for j, has in enumerate(body.known_outs) if known[c + j] and not has}
        lost |= _changed_late(body) | _changed_late(cond)
        if not lost:
            return known, cond, body
        known = tuple([has and i not in lost for i, has in enumerate(known)])


def _changed_late(pe: PartialEval) -> set[int]:
    """Known references that the unknown half changes."""
    found = set()
    for effect in pe.unknown.effects:
        if isinstance(effect, Io) or effect.ref >= len(pe.residuals):
            continue
        source = pe.residuals[effect.ref]
        assert isinstance(source, FromInput), "a reference is never a result"
        if isinstance(effect, Write | Accum):
            found.add(source.index)
    return found


def _first(pe: PartialEval, n: int) -> Jaxpr:
    """The known half with its first results alone, which are no residuals."""
    used = tuple([j < n for j in range(len(pe.known.outs))])
    every = (True,) * len(pe.known.binders)
    return dce_jaxpr(pe.known, used, every, every).jaxpr


def _again(
    b: Builder, prim: While, copies: Mapping[int, Atom | None], rest: Sequence[Atom]
) -> Sequence[Atom]:
    """The whole loop, with references of its own in the place of those copied."""
    made = {
        i: b(EmptyRef(ref.inner)) if held is None else b(NewRef(ref.kind), held)
        for i, held in copies.items()
        if isinstance(ref := prim.body.binders[i].type, RefType)
    }
    others = iter(rest)
    args = [made[i] if i in made else next(others) for i in range(len(prim.body.binders))]
    outs = b.emit(prim, args)
    for copy in made.values():
        b.emit(FreeRef(), [copy])
    return outs
