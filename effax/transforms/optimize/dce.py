"""Dead code elimination: what no used result and no observer needs goes.

Before, of which only the second result is used::

    { lambda ; a:f32[] b:Ref{f32[]}. let
        c:f32[] = sin a
        d:Ref{f32[]} = new_ref c
        d[...] += a
        b[...] += c
        e:f32[] = cos a
      in (c, e) }

After::

    { lambda ; a:f32[] b:Ref{f32[]}. let
        c:f32[] = sin a
        b[...] += c
        d:f32[] = cos a
      in (d,) }

A write into a reference of the caller can always be observed, one into a reference made here
only if a later equation that is needed reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, cast

from effax.effects import Accum, Free, Read, SideEffect, Write, changes_state
from effax.ir.build import typing_of
from effax.ir.errors import TransformError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, FreeRef, Jit, Remat, Scan, ShardMap, While
from effax.ir.prims.refs import FREES
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType
from effax.transforms.framework.pass_ import jaxpr_pass
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.renumber import numbered
from effax.transforms.optimize.dce_custom import NARROW_CUSTOM


class Dce(NamedTuple):
    """The result of :func:`dce`.

    Attributes:
        jaxpr: the program with the used results only, and with the inputs that are kept.
        used_ins: one entry an input of the given program: whether what is left uses it.
    """

    jaxpr: Jaxpr
    used_ins: Mask


def _dce(jaxpr: Jaxpr, used_outs: Mask, observed: Mask, keep: Mask) -> Dce:
    """Remove dead code; ``observed`` marks the input references that are read afterwards."""
    if (len(used_outs), len(keep)) != (len(jaxpr.outs), len(jaxpr.binders)):
        raise TransformError(
            "dce needs one entry a result, and of `keep_inputs` one an input",
            expected=f"{len(jaxpr.outs)} and {len(jaxpr.binders)}",
            found=f"{len(used_outs)} and {len(keep)}",
        )
    outs = [a for a, used in zip(jaxpr.outs, used_outs, strict=True) if used]
    sweep = Sweep(jaxpr.binders, list(jaxpr.eqns), outs, observed, jaxpr.size)
    kept, changed = sweep.run()
    used_ins = tuple([sweep.needed[v.id] for v in jaxpr.binders])
    stay = [used or held for used, held in zip(used_ins, keep, strict=True)]
    if not changed and all(stay) and all(used_outs) and _is_numbered(jaxpr):
        return Dce(jaxpr, used_ins)
    return Dce(_reduced(jaxpr, stay, kept, outs), used_ins)


@jaxpr_pass(_dce, maxsize=4096)
def dce(
    jaxpr: Jaxpr,
    used_outs: Sequence[bool] | None = None,
    keep_inputs: bool | Sequence[bool] = True,
) -> Dce:
    """Remove what no used result needs and nobody can observe.

    Type:     a -> (b, c)  =>  a -> c     only c is used; an unused input goes unless it is kept
    Effects:  those on the caller's references stay, reads for an unused result aside.
    Laws:     tests/laws/test_dce.py
    Raises:   TransformError: an entry for a result or an input is missing.

    Args:
        jaxpr: the program.
        used_outs: one entry a result: whether somebody uses it; all are where it is None.
        keep_inputs: which inputs stay even if they are not used.
    """
    n_ins, n_outs = len(jaxpr.binders), len(jaxpr.outs)
    used = (True,) * n_outs if used_outs is None else tuple(used_outs)
    keep = (keep_inputs,) * n_ins if isinstance(keep_inputs, bool) else tuple(keep_inputs)
    return _dce(jaxpr, used, (True,) * n_ins, keep)


def _reduced(
    jaxpr: Jaxpr, stay: Sequence[bool], eqns: Sequence[Eqn], outs: Sequence[Atom]
) -> Jaxpr:
    """The program of these equations and results, with the inputs that stay."""
    binders = [v for v, keep in zip(jaxpr.binders, stay, strict=True) if keep]
    names = [n for n, keep in zip(jaxpr.names, stay, strict=False) if keep]
    return numbered(binders, eqns, outs, jaxpr.size, sum(stay[: jaxpr.n_consts]), names)


def _is_numbered(jaxpr: Jaxpr) -> bool:
    """Whether the variables are numbered in order of binding, without gaps."""
    n = len(jaxpr.binders)
    if any(v.id != i for i, v in enumerate(jaxpr.binders)):
        return False
    for eqn in jaxpr.eqns:
        for v in eqn.outs:
            if v[0] != n:
                return False
            n += 1
    return True


class Sweep:
    """One pass from the end: which variables are needed, and which contents are seen later.

    Attributes:
        needed: by number, whether a variable is needed.
    """

    frees: bool

    def __init__(
        self,
        binders: Sequence[Var],
        eqns: Sequence[Eqn],
        outs: Sequence[Atom],
        observed: Mask,
        size: int,
    ) -> None:
        self.eqns = eqns
        self.needed: list[bool] = [False] * size
        for a in outs:
            if isinstance(a, Var):
                self.needed[a.id] = True
        self.frees = False
        self.outer: set[int] = {v.id for v in binders if isinstance(v.type, RefType)}
        seen = {v.id for v, has in zip(binders, observed, strict=True) if has}
        self.observed: set[int] = seen & self.outer

    def run(self) -> tuple[list[Eqn], bool]:
        """The equations that stay, and whether they are others than before."""
        needed = self.needed
        kept: list[Eqn] = []
        push = kept.append
        changed = False
        for eqn in reversed(self.eqns):
            prim, ins, outs, effects, _ = eqn
            if effects or type(prim) in _NARROW:
                stays = self.visit(eqn)
                changed = changed or stays is not eqn
                if stays is not None:
                    push(stays)
                continue
            for v in outs:
                if needed[v[0]]:
                    break
            else:
                changed = True
                continue
            for a in ins:
                if type(a) is not Lit:
                    needed[a[0]] = True
            push(eqn)
        kept.reverse()
        if not self.frees:
            return kept, changed
        freed = [eqn for eqn in kept if type(eqn.prim) is not FreeRef or self.is_needed(eqn.ins[0])]
        return freed, changed or len(freed) < len(kept)

    def is_needed(self, atom: Atom) -> bool:
        return isinstance(atom, Var) and self.needed[atom.id]

    def visit(self, eqn: Eqn) -> Eqn | None:
        """What stays of an equation that has effects or holds programs."""
        used = tuple([self.needed[v.id] for v in eqn.outs])
        if True not in used and not self.is_observed(eqn):
            return self.released(eqn)
        if type(eqn.prim) in _NARROW:
            eqn = self.dce_eqn(eqn, used)
        for a in eqn.ins:
            if isinstance(a, Var):
                self.needed[a.id] = True
        for effect in eqn.effects:
            if isinstance(effect, Read):
                self.observed.add(_id(eqn, effect.ref))
        return eqn

    def is_observed(self, eqn: Eqn) -> bool:
        """Whether somebody sees that the equation ran, its results aside."""
        for effect in eqn.effects:
            match effect:
                case SideEffect() if changes_state(effect):
                    return True
                case Write() | Accum() if _id(eqn, effect.ref) in self.observed:
                    return True
                case Free() if _id(eqn, effect.ref) in self.outer:
                    return True
                case _:
                    pass
        return False

    def released(self, eqn: Eqn) -> Eqn | None:
        """What is left of a dead equation: a reference that it consumes is freed.

        Whether the reference is needed at all is known at the end of the pass only.
        """
        for effect in eqn.effects:
            if isinstance(effect, Free):
                self.frees = True
                if type(eqn.prim) is FreeRef:
                    return eqn
                return Eqn(FreeRef(), (eqn.ins[effect.ref],), (), FREES, eqn.source)
        return None

    def dce_eqn(self, eqn: Eqn, used: Mask) -> Eqn:
        """The equation with less inside, and the arguments and results that are left."""
        observed = tuple([isinstance(a, Var) and a.id in self.observed for a in eqn.ins])
        prim, kept_ins, kept_outs = _narrow(eqn.prim, used, observed)
        if prim is eqn.prim:
            return eqn
        ins = tuple([a for a, keep in zip(eqn.ins, kept_ins, strict=True) if keep])
        outs = tuple([v for v, keep in zip(eqn.outs, kept_outs, strict=True) if keep])
        effects = typing_of(prim, tuple([a.type for a in ins])).effects
        return Eqn(prim, ins, outs, effects, eqn.source)


def _id(eqn: Eqn, index: int) -> int:
    ref = eqn.ins[index]
    assert isinstance(ref, Var), "a reference is a variable"
    return ref.id


class Narrowed(NamedTuple):
    """A primitive with less inside, and which arguments and results of the old one it has."""

    prim: Primitive
    ins: Mask
    outs: Mask


@memoize(maxsize=4096)
def _narrow(prim: Primitive, used: Mask, observed: Mask) -> Narrowed:
    """What is needed of a primitive that holds programs; the same object where all of it is."""
    made = _NARROW[type(prim)](prim, used, observed)
    before, after = prim.subjaxprs(), made.prim.subjaxprs()
    same = all(old == new for old, new in zip(before, after, strict=True))
    if same and all(made.ins) and all(made.outs):
        return Narrowed(prim, made.ins, made.outs)
    return made


def _all_inputs(jaxpr: Jaxpr) -> Mask:
    return (True,) * len(jaxpr.binders)


def _no_inputs(jaxpr: Jaxpr) -> Mask:
    return (False,) * len(jaxpr.binders)


def _reads(jaxpr: Jaxpr) -> set[int]:
    """The positions of the references that the program reads."""
    return {effect.ref for effect in jaxpr.effects if isinstance(effect, Read)}


def _narrow_call(prim: Primitive, used: Mask, observed: Mask) -> Narrowed:
    call = cast("Jit | Remat", prim)
    jaxpr, used_ins = dce.cached(call.jaxpr, used, observed, _no_inputs(call.jaxpr))
    return Narrowed(replace(call, jaxpr=jaxpr), used_ins, used)


def _narrow_shard_map(prim: Primitive, used: Mask, observed: Mask) -> Narrowed:
    call = cast("ShardMap", prim)
    jaxpr, used_ins = dce.cached(call.jaxpr, used, observed, _no_inputs(call.jaxpr))
    ins, outs = (
        tuple([spec for spec, keep in zip(specs, kept, strict=True) if keep])
        for specs, kept in ((call.in_specs, used_ins), (call.out_specs, used))
    )
    return Narrowed(replace(call, jaxpr=jaxpr, in_specs=ins, out_specs=outs), used_ins, used)


def _narrow_custom(prim: Primitive, used: Mask, observed: Mask) -> Narrowed:
    return Narrowed(*NARROW_CUSTOM[type(prim)](prim, used, observed, dce.cached))


def _narrow_cond(prim: Primitive, used: Mask, observed: Mask) -> Narrowed:
    branches = cast("Cond", prim).branches
    none = _no_inputs(branches[0])
    masks = [dce.cached(branch, used, observed[1:], none).used_ins for branch in branches]
    keep = tuple(map(any, zip(*masks, strict=True)))
    made = Cond(tuple([dce.cached(b, used, observed[1:], keep).jaxpr for b in branches]))
    return Narrowed(made, (True, *keep), used)


def _narrow_scan(prim: Primitive, used: Mask, observed: Mask) -> Narrowed:
    """A carry is needed for a used result, or for a carry that is; so is a reference's contents."""
    scan = cast("Scan", prim)
    c, n = scan.n_consts, scan.n_carry
    everything = _all_inputs(scan.jaxpr)
    while True:
        body, used_ins = dce.cached(scan.jaxpr, used, observed, everything)
        reads = _reads(body)
        # An element of a scanned reference is not seen again by a later iteration.
        seen = tuple([o or (i in reads and i < c) for i, o in enumerate(observed)])
        fed = tuple([u or (j < n and used_ins[c + j]) for j, u in enumerate(used)])
        if (fed, seen) == (used, observed):
            break
        used, observed = fed, seen
    keep = tuple([c <= i < c + n and used[i - c] for i in range(len(used_ins))])
    body, used_ins = dce.cached(scan.jaxpr, used, observed, keep)
    kept_ins = tuple([u or k for u, k in zip(used_ins, keep, strict=True)])
    made = replace(scan, jaxpr=body, n_consts=sum(kept_ins[:c]), n_carry=sum(used[:n]))
    return Narrowed(made, kept_ins, used)


def _narrow_while(prim: Primitive, used: Mask, observed: Mask) -> Narrowed:
    """The condition is needed, with what it needs; else as for scan."""
    loop = cast("While", prim)
    c = loop.n_consts
    everything = _all_inputs(loop.body)
    while True:
        cond, cond_ins = dce.cached(loop.cond, (True,), observed, everything)
        body, body_ins = dce.cached(loop.body, used, observed, everything)
        either = tuple([a or b for a, b in zip(cond_ins, body_ins, strict=True)])
        reads = _reads(cond) | _reads(body)
        seen = tuple([o or i in reads for i, o in enumerate(observed)])
        fed = tuple([u or either[c + j] for j, u in enumerate(used)])
        if (fed, seen) == (used, observed):
            break
        used, observed = fed, seen
    keep = (*either[:c], *used)
    made = While(
        dce.cached(loop.cond, (True,), observed, keep).jaxpr,
        dce.cached(loop.body, used, observed, keep).jaxpr,
        sum(keep[:c]),
    )
    return Narrowed(made, keep, used)


_NARROW: Final[dict[type[Primitive], Callable[[Primitive, Mask, Mask], Narrowed]]] = {
    Jit: _narrow_call,
    Remat: _narrow_call,
    **dict.fromkeys(NARROW_CUSTOM, _narrow_custom),
    Cond: _narrow_cond,
    Scan: _narrow_scan,
    While: _narrow_while,
    ShardMap: _narrow_shard_map,
}
"""Primitives of which dead parts go; any other that holds programs stays or goes as a whole."""
