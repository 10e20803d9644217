"""Estimate the peak of live memory of a program, in program order, before it is compiled.

An argument is live throughout, another value from its equation to its last use. As XLA does,

- a view (a reshape, say) and a whole read of a reference, up to the next write, share a buffer;
- an elementwise result, or an update of a part, takes the buffer of an operand that dies there;
- a value that one elementwise equation, reduction or store uses is computed there, and not stored,
  and so is a broadcast with any number of such uses;
- a call is entered: an operand that dies there is freed inside.

A loop keeps its carries, one element of each scanned input, and whole results; the most that one
iteration needs is added to what is live around the loop, and of branches that of the greatest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from effax.effects import Accum, Free, Write
from effax.ir.analysis.cost.record import LiveValue
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import (
    AddUpdate,
    BroadcastInDim,
    ConvertElementType,
    Div,
    Get,
    Iota,
    Rem,
    SelectN,
    Swap,
)
from effax.ir.prims.common.operands import Elementwise
from effax.ir.prims.reduce import Reduction
from effax.ir.prims.sort import ArgReduction
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.text.names import VAR_NAMES
from effax.ir.types import RefType
from effax.ir.work import bytes_of, total_bytes

Owned = frozenset[int]
"""Positions of binders whose buffers belong to the program, which frees them."""


VARIANTS: Final = 4
"""The most sets of operands that one program frees, so that the time is linear in its size."""


class Peak(NamedTuple):
    """The most live bytes of a program, its caller's values not counted, and where it is."""

    bytes: int
    at: int


class Inner(NamedTuple):
    """A region as an equation enters it: the program, what it owns, and what lives around it."""

    jaxpr: Jaxpr
    owned: Owned
    around: int


class Step(NamedTuple):
    """The live bytes at one equation, and the subjaxprs that it enters."""

    live: int
    alive: dict[int, Var]
    inner: tuple[Inner, ...]


class Memory:
    """The peaks of programs, each computed once for what it owns."""

    def __init__(self) -> None:
        self._peaks: dict[tuple[int, Owned], Peak] = {}
        self._buffers: dict[int, _Buffers] = {}
        self._variants: dict[int, set[Owned]] = {}

    def whole(self, jaxpr: Jaxpr) -> int:
        """Return the peak of a whole program, whose results share no buffer with its arguments."""
        inside = self.peak(jaxpr, frozenset()).bytes
        return total_bytes(jaxpr.in_types) + max(inside, total_bytes(jaxpr.out_types))

    def peak(self, jaxpr: Jaxpr, owned: Owned) -> Peak:
        """Return the peak of a program. Subjaxprs are pending work, not recursive calls."""
        waiting = [(jaxpr, owned)]
        while waiting:
            program, own = waiting[-1]
            if (id(program), own) in self._peaks:
                waiting.pop()
                continue
            missing = self._missing(program, own)
            if missing:
                waiting.extend(missing)
            else:
                self._keep(program, own)
                waiting.pop()
        return self._peaks[id(jaxpr), owned]

    def _missing(self, jaxpr: Jaxpr, owned: Owned) -> list[tuple[Jaxpr, Owned]]:
        if not any(eqn.prim.subjaxprs() for eqn in jaxpr.eqns):
            return []
        steps = self.steps(jaxpr, owned)
        every = [(inner.jaxpr, inner.owned) for step in steps for inner in step.inner]
        return [(p, own) for p, own in every if (id(p), own) not in self._peaks]

    def _keep(self, jaxpr: Jaxpr, owned: Owned) -> None:
        found = Peak(sum([bytes_of(jaxpr.binders[i].type) for i in owned]), -1)
        for k, step in enumerate(self.steps(jaxpr, owned)):
            most = max([step.live, *[i.around + self.of(i).bytes for i in step.inner]])
            if most > found.bytes:
                found = Peak(most, k)
        self._peaks[id(jaxpr), owned] = found

    def of(self, inner: Inner) -> Peak:
        """Return the peak of a region, which is known."""
        return self._peaks[id(inner.jaxpr), inner.owned]

    def buffers(self, jaxpr: Jaxpr) -> _Buffers:
        """Return the buffers of a program."""
        found = self._buffers.get(id(jaxpr))
        if found is None:
            found = self._buffers[id(jaxpr)] = _Buffers(jaxpr)
        return found

    def steps(self, jaxpr: Jaxpr, owned: Owned) -> Iterator[Step]:
        """Yield what is live at each equation. ``alive`` of a step changes with the next one."""
        buffers = self.buffers(jaxpr)
        alive = {jaxpr.binders[i].id: jaxpr.binders[i] for i in sorted(owned)}
        live = sum([bytes_of(v.type) for v in alive.values()])
        for k, eqn in enumerate(jaxpr.eqns):
            dying = [alive[i] for i in buffers.dying.get(k, ()) if i in alive]
            made = [v for v in eqn.outs if buffers.is_buffer(v)]
            if eqn.prim.regions():
                yield self._entering(eqn, live, alive, dying)
            taken = _taken(eqn.prim, made, dying)
            for v in taken:
                del alive[v.id]
                live -= bytes_of(v.type)
            for v in made:
                alive[v.id] = v
                live += bytes_of(v.type)
            if not eqn.prim.regions():
                yield Step(live, alive, ())
            for v in dying:
                if alive.pop(v.id, None):
                    live -= bytes_of(v.type)
            for v in made:
                if buffers.last.get(v.id, -1) <= k:
                    del alive[v.id]
                    live -= bytes_of(v.type)

    def _entering(self, eqn: Eqn, live: int, alive: dict[int, Var], dying: Sequence[Var]) -> Step:
        regions = eqn.prim.regions()
        stacked = total_bytes([eqn.outs[r].type for r in sorted(_stacked(regions))])
        inner = []
        for region in regions:
            if region.trip_count == 0:
                continue
            owned, freed = _owned(region, eqn, dying)
            if freed and not self._is_variant(region.jaxpr, owned):
                owned, freed = frozenset(), 0
            inner.append(Inner(region.jaxpr, owned, live + stacked - freed))
        return Step(live + stacked, alive, tuple(inner))

    def _is_variant(self, jaxpr: Jaxpr, owned: Owned) -> bool:
        """Return whether a call's own peak is computed; each program has a few, which are kept."""
        known = self._variants.setdefault(id(jaxpr), set())
        if len(known) < VARIANTS:
            known.add(owned)
        return owned in known

    def live_at_peak(self, jaxpr: Jaxpr) -> list[LiveValue]:
        """Return the values that are live at the peak of a whole program, the largest first."""
        found = [LiveValue(_label(jaxpr, i), bytes_of(v.type)) for i, v in enumerate(jaxpr.binders)]
        program: Jaxpr | None = jaxpr
        owned, prefix = frozenset[int](), ""
        while program is not None:
            peak = self.peak(program, owned)
            if peak.at < 0:
                break
            step = next(s for k, s in enumerate(self.steps(program, owned)) if k == peak.at)
            best = max(step.inner, key=lambda i: i.around + self.of(i).bytes, default=None)
            found += [
                LiveValue(prefix + VAR_NAMES[i], bytes_of(v.type)) for i, v in step.alive.items()
            ]
            prefix += f"{program.eqns[peak.at].prim.name}/"
            program, owned = (None, owned) if best is None else (best.jaxpr, best.owned)
        return sorted(found, key=lambda live: -live.bytes)


def _label(jaxpr: Jaxpr, i: int) -> str:
    named = i < len(jaxpr.names) and jaxpr.names[i]
    return jaxpr.names[i] if named else VAR_NAMES[jaxpr.binders[i].id]


def _taken(prim: Primitive, made: Sequence[Var], dying: Sequence[Var]) -> list[Var]:
    """Return the dying operand whose buffer the result takes, if there is one."""
    if len(made) != 1 or not (prim.is_elementwise or prim.updates_first):
        return []
    size = bytes_of(made[0].type)
    return [v for v in dying if bytes_of(v.type) == size][:1]


def _stacked(regions: Sequence[Region]) -> set[int]:
    """Return the results that a loop fills part by part."""
    return {
        r
        for region in regions
        if region.repeats
        for r, carry in zip(region.results, region.carry_to, strict=True)
        if r is not None and carry is None
    }


def _owned(region: Region, eqn: Eqn, dying: Sequence[Var]) -> tuple[Owned, int]:
    """Return the binders that a region owns, and the bytes of the caller that it takes over."""
    arrays = {i for i, v in enumerate(region.jaxpr.binders) if not isinstance(v.type, RefType)}
    if region.repeats:
        carried = set(region.carry_to)
        inside = {i for i in arrays if i in region.parts or region.args[i] in carried}
        return frozenset(inside), 0
    dead = {v.id: bytes_of(v.type) for v in dying}
    inside, freed = set[int](), 0
    for i in sorted(arrays):
        a = eqn.ins[region.args[i]]
        size = dead.pop(a.id, None) if isinstance(a, Var) else None
        if size is not None and size == bytes_of(region.jaxpr.binders[i].type):
            inside.add(i)
            freed += size
    return frozenset(inside), freed


class _Buffers:
    """The buffers of a program: which variables have one, and where each is used last.

    Attributes:
        last: the last equation that uses the buffer of a variable; that of a result is the end.
        shared: the variables without a buffer of their own.
        fused: those of them that are never stored.
        dying: the variables whose buffers die, by equation.
    """

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.last: dict[int, int] = {}
        self.shared: set[int] = set()
        self.fused: set[int] = set()
        self._follow(jaxpr)
        self.dying: dict[int, list[int]] = {}
        for i, k in self.last.items():
            if i not in self.shared:
                self.dying.setdefault(k, []).append(i)

    def is_buffer(self, v: Var) -> bool:
        """Return whether a variable has its own buffer."""
        return v.id not in self.shared

    def _follow(self, jaxpr: Jaxpr) -> None:
        """Walk backward, from uses to definitions, and extend the lives of what they need."""
        last, uses = self.last, _Uses(jaxpr)
        end = len(jaxpr.eqns)
        last.update((a.id, end) for a in jaxpr.outs if isinstance(a, Var))
        writes: dict[int, int] = {}
        for k in range(end - 1, -1, -1):
            eqn = jaxpr.eqns[k]
            until = k
            if len(eqn.outs) == 1:
                v = eqn.outs[0]
                used = last.get(v.id, k)
                if uses.fuses(eqn, self.fused):
                    self.fused.add(v.id)
                if v.id in self.fused or self._shares(eqn, used, writes):
                    self.shared.add(v.id)
                    until = used
            for a in eqn.ins:
                if isinstance(a, Var):
                    last[a.id] = max(last.get(a.id, k), until)
            for effect in eqn.effects:
                if isinstance(effect, Write | Accum | Free):
                    ref = eqn.ins[effect.ref]
                    assert isinstance(ref, Var)
                    writes[ref.id] = k

    def _shares(self, eqn: Eqn, used: int, writes: dict[int, int]) -> bool:
        """Return whether the result is the buffer of the first operand, or unused and not read."""
        if isinstance(eqn.prim, Swap):
            return eqn.outs[0].id not in self.last
        if eqn.prim.is_view:
            return isinstance(eqn.ins[0], Var)
        ref = eqn.ins[0] if eqn.ins else None
        if not isinstance(eqn.prim, Get) or not isinstance(ref, Var):
            return False
        return eqn.prim.indexer.is_whole(ref.type.shape) and used <= writes.get(ref.id, used)


class _Uses:
    """The equations that use each variable, and whether these compute it by themselves."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.by: dict[int, list[Eqn]] = {}
        for eqn in jaxpr.eqns:
            for a in eqn.ins:
                if isinstance(a, Var):
                    self.by.setdefault(a.id, []).append(eqn)
        self.results: set[int] = {a.id for a in jaxpr.outs if isinstance(a, Var)}

    def fuses(self, eqn: Eqn, fused: set[int]) -> bool:
        """Return whether the result is computed where it is used, and never stored."""
        v = eqn.outs[0]
        by = self.by.get(v.id, ())
        prim = eqn.prim
        if v.id in self.results or not by or eqn.effects or not _computes_elements(prim):
            return False
        if len(by) > 1 and not _is_cheap(prim):
            return False
        return all(_takes_elements(user, v, fused) for user in by)


def _is_cheap(prim: Primitive) -> bool:
    """Return whether XLA computes it again for each use, rather than store its result."""
    if isinstance(prim, Elementwise):
        return not prim.transcendental and not isinstance(prim, Div | Rem)
    return prim.is_view or isinstance(prim, BroadcastInDim | Iota | ConvertElementType | SelectN)


def _computes_elements(prim: Primitive) -> bool:
    return prim.is_elementwise or prim.is_view or prim.flops_per_element == 0


def _takes_elements(user: Eqn, v: Var, fused: set[int]) -> bool:
    """Return whether an equation can compute an operand by itself, element by element."""
    prim = user.prim
    if prim.is_view:
        return user.outs[0].id in fused
    if isinstance(prim, Swap | AddUpdate):
        return user.ins[1] == v
    if prim.updates_first:
        return user.ins[0] != v
    return _computes_elements(prim) or isinstance(prim, Reduction | ArgReduction)
