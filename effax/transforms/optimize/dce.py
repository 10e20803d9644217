"""Dead code elimination.

Before; only the second result is used::

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

A write to a reference of the caller is always observed, one to a local reference only if a later
live equation reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.effects import Accum, Free, Read, SideEffect, Write, changes_state
from effax.ir.build import typing_of
from effax.ir.edit.renumber import numbered
from effax.ir.errors import TransformError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import FreeRef
from effax.ir.prims.refs import FREES
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import DceOut, RuleSet


class Dce(NamedTuple):
    """The result of :func:`dce`.

    Attributes:
        jaxpr: the program with the used results and the kept inputs.
        used_ins: one entry an input of the argument: whether a live equation or result uses it.
    """

    jaxpr: Jaxpr
    used_ins: Mask


def _dce(jaxpr: Jaxpr, used_outs: Mask, observed: Mask, keep: Mask, rules: RuleSet) -> Dce:
    """Remove dead code; ``observed`` marks the input references that are read afterwards."""
    if (len(used_outs), len(keep)) != (len(jaxpr.outs), len(jaxpr.binders)):
        raise TransformError(
            "dce needs one entry for each result, and of `keep_inputs` for each input",
            expected=f"{len(jaxpr.outs)} and {len(jaxpr.binders)}",
            found=f"{len(used_outs)} and {len(keep)}",
        )
    outs = [a for a, used in zip(jaxpr.outs, used_outs, strict=True) if used]
    sweep = Sweep(jaxpr.binders, list(jaxpr.eqns), outs, observed, jaxpr.size, rules)
    kept, changed = sweep.run()
    used_ins = tuple([sweep.needed[v.id] for v in jaxpr.binders])
    stay = [used or kept_in for used, kept_in in zip(used_ins, keep, strict=True)]
    if not changed and all(stay) and all(used_outs) and _is_numbered(jaxpr):
        return Dce(jaxpr, used_ins)
    return Dce(_reduced(jaxpr, stay, kept, outs), used_ins)


@jaxpr_pass(_dce, maxsize=4096)
def dce(
    jaxpr: Jaxpr,
    used_outs: Sequence[bool] | None = None,
    keep_inputs: bool | Sequence[bool] = True,
    rules: RuleSet | None = None,
) -> Dce:
    """Remove equations that no used result needs and whose effects are not observed.

    Type:     a -> (b, c)  =>  a -> c     only c is used; an unused input may be removed
    Effects:  those on the caller's references stay, except for reads with an unused result.
    Laws:     tests/laws/test_dce.py
    Raises:   TransformError: an entry for a result or an input is missing.

    Args:
        jaxpr: the program.
        used_outs: one entry a result: whether it is used; None: all are.
        keep_inputs: which inputs stay even if they are unused.
        rules: the rules; the registered ones where it is None.
    """
    n_ins, n_outs = len(jaxpr.binders), len(jaxpr.outs)
    used = (True,) * n_outs if used_outs is None else tuple(used_outs)
    keep = (keep_inputs,) * n_ins if isinstance(keep_inputs, bool) else tuple(keep_inputs)
    return _dce(jaxpr, used, (True,) * n_ins, keep, rules_or_default(rules))


def _reduced(
    jaxpr: Jaxpr, stay: Sequence[bool], eqns: Sequence[Eqn], outs: Sequence[Atom]
) -> Jaxpr:
    """Return the program of these equations and results, with the inputs that stay."""
    binders = [v for v, keep in zip(jaxpr.binders, stay, strict=True) if keep]
    names = [n for n, keep in zip(jaxpr.names, stay, strict=False) if keep]
    return numbered(binders, eqns, outs, jaxpr.size, sum(stay[: jaxpr.n_consts]), names)


def _is_numbered(jaxpr: Jaxpr) -> bool:
    """Return whether the variables are numbered in order of binding, without gaps."""
    n = len(jaxpr.binders)
    if any(v.id != i for i, v in enumerate(jaxpr.binders)):
        return False
    for eqn in jaxpr.eqns:
        for v in eqn.outs:
            if v.id != n:
                return False
            n += 1
    return True


class Sweep:
    """One sweep backward: the variables that are needed, and the references that are read later.

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
        rules: RuleSet,
    ) -> None:
        self.eqns = eqns
        self.rules = rules
        self.needed: list[bool] = [False] * size
        for a in outs:
            if isinstance(a, Var):
                self.needed[a.id] = True
        self.frees = False
        self.outer: set[int] = {v.id for v in binders if isinstance(v.type, RefType)}
        seen = {v.id for v, has in zip(binders, observed, strict=True) if has}
        self.observed: set[int] = seen & self.outer

    def run(self) -> tuple[list[Eqn], bool]:
        """Return the live equations, and whether they differ from the original ones."""
        needed, none = self.needed, Primitive.subjaxprs
        kept: list[Eqn] = []
        push = kept.append
        changed = False
        for eqn in reversed(self.eqns):
            prim, ins, outs, effects, _ = eqn
            if effects or type(prim).subjaxprs is not none:
                stays = self.visit(eqn)
                changed = changed or stays is not eqn
                if stays is not None:
                    push(stays)
                continue
            for v in outs:
                if needed[v.id]:
                    break
            else:
                changed = True
                continue
            for a in ins:
                if type(a) is not Lit:
                    needed[a.id] = True
            push(eqn)
        kept.reverse()
        if not self.frees:
            return kept, changed
        freed = [eqn for eqn in kept if type(eqn.prim) is not FreeRef or self.is_needed(eqn.ins[0])]
        return freed, changed or len(freed) < len(kept)

    def is_needed(self, atom: Atom) -> bool:
        return isinstance(atom, Var) and self.needed[atom.id]

    def visit(self, eqn: Eqn) -> Eqn | None:
        """Return the reduced equation, of one with effects or subjaxprs; None if it is dead."""
        used = tuple([self.needed[v.id] for v in eqn.outs])
        if True not in used and not self.is_observed(eqn):
            return self.released(eqn)
        if eqn.prim.subjaxprs():
            eqn = self.dce_eqn(eqn, used)
        for a in eqn.ins:
            if isinstance(a, Var):
                self.needed[a.id] = True
        for effect in eqn.effects:
            if isinstance(effect, Read):
                self.observed.add(_id(eqn, effect.ref))
        return eqn

    def is_observed(self, eqn: Eqn) -> bool:
        """Return whether an effect of the equation is observed."""
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
        """Return the ``free`` that replaces a dead equation that consumes a reference; else None.

        At the end of the sweep, those of references that are not needed are removed.
        """
        for effect in eqn.effects:
            if isinstance(effect, Free):
                self.frees = True
                if type(eqn.prim) is FreeRef:
                    return eqn
                return Eqn(FreeRef(), (eqn.ins[effect.ref],), (), FREES, eqn.source)
        return None

    def dce_eqn(self, eqn: Eqn, used: Mask) -> Eqn:
        """Return the equation with a reduced primitive, on the operands and results it keeps."""
        observed = tuple([isinstance(a, Var) and a.id in self.observed for a in eqn.ins])
        prim, kept_ins, kept_outs = _dce_prim(eqn.prim, used, observed, self.rules)
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


@memoize(maxsize=4096)
def _dce_prim(prim: Primitive, used: Mask, observed: Mask, rules: RuleSet) -> DceOut:
    """Remove dead code from a primitive; return the same object if there is none."""
    found = rules.find(prim)
    if found is not None and found.dce is not None:
        made = found.dce(rules, prim, used, observed)
    else:
        made = _dce_regions(prim, used, observed, rules)
    before, after = prim.subjaxprs(), made.prim.subjaxprs()
    same = all(old == new for old, new in zip(before, after, strict=True))
    if same and all(made.ins) and all(made.outs):
        return DceOut(prim, made.ins, made.outs)
    return made


def _dce_regions(prim: Primitive, used: Mask, observed: Mask, rules: RuleSet) -> DceOut:
    """Remove dead code from the regions of a primitive, as it declares them."""
    every_in, every_out = (True,) * len(observed), (True,) * len(used)
    if prim.has_own_rules or len(prim.regions()) != len(prim.subjaxprs()):
        return DceOut(prim, every_in, every_out)
    live = _Live(prim, [False] * len(observed), list(used), list(observed), rules)
    made = prim.restrict(live.jaxprs(), live.ins, live.outs)
    if made is not None:
        return DceOut(made, tuple(live.ins), tuple(live.outs))
    live = _Live(prim, list(every_in), list(every_out), list(observed), rules, whole=True)
    return DceOut(prim.with_subjaxprs(live.jaxprs()), every_in, every_out)


class _Live:
    """The least fixpoint of live operands, live results and observed references of a primitive.

    An operand that no region binds, such as a selector, is live, and so is a result that no region
    returns. If the primitive is kept ``whole``, all results of regions are live too.
    """

    def __init__(
        self,
        prim: Primitive,
        ins: list[bool],
        outs: list[bool],
        observed: list[bool],
        rules: RuleSet,
        whole: bool = False,
    ) -> None:
        self.whole = whole
        self.ins = ins
        self.outs = outs
        self.observed = observed
        self.rules = rules
        self.regions = prim.regions()
        for i in set(range(len(ins))).difference(*[r.args for r in self.regions]):
            ins[i] = True
        for i in set(range(len(outs))).difference(*[r.results for r in self.regions]):
            outs[i] = True
        # A write in one run of a region may be read in the next run, or by another region.
        exclusive = len(self.regions) == 1 or prim.selector() is not None
        self.runs_once = exclusive and not any(r.repeats for r in self.regions)
        while self._grow():
            pass

    def jaxprs(self) -> list[Jaxpr]:
        """Return the jaxprs with the live operands and results."""
        return [self._reduced(r, tuple([self.ins[a] for a in r.args])).jaxpr for r in self.regions]

    def _grow(self) -> bool:
        """Follow every region once; return whether the live set grew."""
        before = [*self.ins], [*self.outs], [*self.observed]
        for region in self.regions:
            self._follow(region)
        return before != (self.ins, self.outs, self.observed)

    def _follow(self, region: Region) -> None:
        inside = self._reduced(region, (True,) * len(region.args))
        for a, is_used in zip(region.args, inside.used_ins, strict=True):
            self.ins[a] = self.ins[a] or is_used
        for effect in inside.jaxpr.effects if not self.runs_once else ():
            if isinstance(effect, Read) and effect.ref not in region.parts:
                self.observed[region.args[effect.ref]] = True
        for result, carry in zip(region.results, region.carry_to, strict=True):
            # A loop of no iterations returns the initial carry.
            if carry is not None and result is not None:
                live = self.ins[carry] or self.outs[result]
                self.ins[carry] = self.outs[result] = live

    def _reduced(self, region: Region, keep: Mask) -> Dce:
        used = [
            self.whole
            or (result is not None and self.outs[result])
            or (carry is not None and self.ins[carry])
            for result, carry in zip(region.results, region.carry_to, strict=True)
        ]
        if region.is_predicate:
            used[0] = True
        observed = tuple([self.observed[a] for a in region.args])
        return dce.cached(region.jaxpr, tuple(used), observed, keep, self.rules)
