"""The equations that a value came from: a backward slice, through calls, loops and references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from effax.effects import Write
from effax.ir.eval.stepping.memory import root_of
from effax.ir.eval.stepping.runs import Kind, RunPlan, plan_of
from effax.ir.eval.stepping.state import Access, Activation, Site, State
from effax.ir.eval.stepping.texts import EqnTexts
from effax.ir.primitive import Value
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import RefType


class Origin(NamedTuple):
    """An equation that a value depends on.

    Attributes:
        path: the runs that lead to it; ``earlier iterations`` are one.
        eqn: the equation; None for an argument of the whole program.
        name: the argument's name, or the text of the equation.
        source: the user's line.
        value: the value of its first result, where the state has it.
    """

    path: tuple[str, ...]
    eqn: Eqn | None
    name: str
    source: Source | SavedSource | None
    value: Value | None


def origins(state: State, atom: Atom, frame: Activation | None = None) -> tuple[Origin, ...]:
    """Return the equations and arguments that an atom of a frame came from, in program order.

    A value that was read from a reference came from the writes to the part that was read.
    """
    frame = state.frame if frame is None else frame
    slice_ = _Slice(state)
    if isinstance(atom, Var):
        slice_.add(frame.site, atom)
        slice_.follow()
    return slice_.listed()


Key = tuple[int, ...]


class _Slice:
    """The variables to follow, and those that were followed; places are compared by value."""

    def __init__(self, state: State) -> None:
        self._frames = {id(frame.site): frame for frame in state.frame.outwards()}
        self._accesses = [*state.accesses()]
        self._texts = EqnTexts()
        self._waiting: list[tuple[Site, Var]] = []
        self._seen: set[tuple[int, int, int]] = set()
        self._sites: list[Site] = []
        self._made: dict[tuple[int, int, int, int], Site] = {}
        self._definitions: dict[int, dict[int, int]] = {}
        self._found: dict[tuple[Key, str], Origin] = {}

    def add(self, site: Site, atom: Atom) -> None:
        key = (id(site), atom.id, 0) if isinstance(atom, Var) else None
        if isinstance(atom, Var) and key is not None and key not in self._seen:
            self._seen.add(key)
            self._sites.append(site)
            self._waiting.append((site, atom))

    def follow(self) -> None:
        while self._waiting:
            site, v = self._waiting.pop()
            position = self._definition(site.jaxpr).get(v.id)
            if position is None:
                self._follow_input(site, v)
            else:
                self._follow_eqn(site, position, v)

    def listed(self) -> tuple[Origin, ...]:
        return tuple([origin for _, origin in sorted(self._found.items(), key=lambda kv: kv[0])])

    def _definition(self, jaxpr: Jaxpr) -> dict[int, int]:
        found = self._definitions.get(id(jaxpr))
        if found is None:
            eqns = enumerate(jaxpr.eqns)
            found = self._definitions[id(jaxpr)] = {v.id: i for i, e in eqns for v in e.outs}
        return found

    def _value(self, site: Site, v: Var) -> Value | None:
        frame = self._frames.get(id(site))
        return None if frame is None else frame.env[v.id]

    def _follow_input(self, site: Site, v: Var) -> None:
        k = site.jaxpr.binders.index(v)
        if site.caller is None or site.eqn is None:
            name = site.jaxpr.name_of(k)
            text = f"{name} ({v!r})" if not isinstance(v.type, RefType) else f"{name}, {v.type}"
            value = None if isinstance(v.type, RefType) else self._value(site, v)
            self._found[(-1, k), ""] = Origin((), None, text, None, value)
            return
        plan = plan_of(site.eqn)
        assert plan is not None, "a program that runs has a plan"
        argument = plan.regions[site.region].args[k]
        self.add(site.caller, site.eqn.ins[argument])
        if plan.is_loop and site.iteration != 0 and k not in plan.regions[site.region].parts:
            body = len(plan.regions) - 1
            self._follow_carry(site, plan, body, argument)

    def _follow_carry(self, site: Site, plan: RunPlan, body: int, argument: int) -> None:
        """Follow a carry into the earlier iterations, which are one place."""
        carry_to = plan.regions[body].carry_to
        if argument in carry_to and site.caller is not None:
            jaxpr = plan.regions[body].jaxpr
            earlier = self._place(jaxpr, site.caller, site.at, body, "earlier iterations")
            self.add(earlier, jaxpr.outs[carry_to.index(argument)])

    def _place(self, jaxpr: Jaxpr, caller: Site, at: int, region: int, label: str) -> Site:
        """Return the place of all runs of a region: one for equal arguments."""
        key = (id(jaxpr), id(caller), at, region)
        if key not in self._made:
            name = caller.jaxpr.eqns[at].prim.name
            text = f"{name}, {label}" if label else name
            self._made[key] = Site(jaxpr, caller, at, region, -1, text)
        return self._made[key]

    def _follow_eqn(self, site: Site, position: int, v: Var) -> None:
        eqn = site.jaxpr.eqns[position]
        self._record(site, position, eqn, self._value(site, v))
        for access in self._reads(site, eqn):
            for write in self._writes_before(access):
                self._follow_write(write)
        plan = plan_of(eqn)
        if plan is None:
            for a in eqn.ins:
                if not isinstance(a.type, RefType):
                    self.add(site, a)
            return
        self._follow_result(site, position, plan, eqn.outs.index(v))

    def _follow_result(self, site: Site, position: int, plan: RunPlan, result: int) -> None:
        """Follow a result of an equation into the programs that it ran."""
        eqn = site.jaxpr.eqns[position]
        if plan.kind is Kind.BRANCH:
            self.add(site, eqn.ins[plan.selector])
        for k in self._returning(site, eqn, plan):
            region = plan.regions[k]
            label = {Kind.CALL: "", Kind.BRANCH: f"branch {k}"}.get(plan.kind, "all iterations")
            inner = self._place(region.jaxpr, site, position, k, label)
            if plan.kind is Kind.WHILE and k == 0:
                self.add(inner, region.jaxpr.outs[0])
                continue
            self.add(inner, region.jaxpr.outs[region.results.index(result)])
            carry = region.carry_to[region.results.index(result)]
            if carry is not None:
                self.add(site, eqn.ins[carry])

    def _returning(self, site: Site, eqn: Eqn, plan: RunPlan) -> list[int]:
        """Return the regions that ran."""
        index = eqn.ins[plan.selector]
        value = self._value(site, index) if isinstance(index, Var) else None
        if plan.kind is not Kind.BRANCH or value is None:
            return [*range(len(plan.regions))]
        return [min(max(int(value), 0), len(plan.regions) - 1)]

    def _follow_write(self, write: Access) -> None:
        site, eqn = self._known(write.site), write.eqn
        position = next(i for i, e in enumerate(site.jaxpr.eqns) if e is eqn)
        self._record(site, position, eqn, None if write.change is None else write.change.after)
        for a in eqn.ins:
            if not isinstance(a.type, RefType):
                self.add(site, a)

    def _known(self, site: Site) -> Site:
        """Return the place of a write, one for all iterations that have ended."""
        if id(site) in self._frames or site.caller is None:
            return site
        caller = self._known(site.caller)
        eqn = caller.jaxpr.eqns[site.at]
        plan = plan_of(eqn)
        label = "earlier iterations" if plan is not None and plan.is_loop else ""
        if plan is not None and plan.kind is Kind.BRANCH:
            label = f"branch {site.region}"
        return self._place(site.jaxpr, caller, site.at, site.region, label)

    def _reads(self, site: Site, eqn: Eqn) -> list[Access]:
        """Return the access of an equation in a run; of all runs of a place, the ends."""
        if not eqn.effects.refs:
            return []
        own = [
            access
            for access in self._accesses
            if access.eqn is eqn and (access.site is site or self._known(access.site) is site)
        ]
        return own if len(own) < 2 else [own[0], own[-1]]

    def _writes_before(self, access: Access) -> Iterator[Access]:
        """Yield the writes that the contents of a part came from, the last one first."""
        root, missing = root_of(access.part.buffer), access.part.mask()
        earlier = access.earlier
        while earlier is not None and missing.any():
            if earlier.change is not None and root_of(earlier.part.buffer) is root:
                mask = earlier.part.mask()
                if (mask & missing).any():
                    yield earlier
                    if not _accumulates(earlier.eqn):
                        missing &= ~mask
            earlier = earlier.earlier
        if missing.any():
            self._follow_contents(access.site, access.eqn)

    def _follow_contents(self, site: Site, eqn: Eqn) -> None:
        """Follow a reference to its allocation, or to the argument."""
        for position in eqn.effects.refs:
            self.add(self._known(site), eqn.ins[position])

    def _record(self, site: Site, position: int, eqn: Eqn, value: Value | None) -> None:
        above = [s.at for s in site.outwards() if s.caller is not None]
        key = (*reversed(above), position)
        allocates = any(isinstance(v.type, RefType) for v in eqn.outs)
        shown = None if value is None or allocates else np.asarray(value)
        text = self._texts.at(site.jaxpr, position)
        origin = Origin(site.path, eqn, text, eqn.source, shown)
        self._found.setdefault((key, site.label), origin)


def _accumulates(eqn: Eqn) -> bool:
    """Return whether an equation only adds to a reference."""
    return not any(isinstance(e, Write) for e in eqn.effects)
