"""Compute the live memory of a program at each equation, and the accesses to each reference.

An argument is live throughout, a value from its equation to its last use, a reference until it is
consumed or used last; an equation's operands and results are live together. XLA fuses equations and
reuses memory, so it needs less: see `jit(f).lower(...).compile().memory_analysis()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from effax.ir.primitive import Region
from effax.ir.recursion import with_fresh_stack
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.text.printer import eqn_str
from effax.ir.types import RefType
from effax.ir.work import bytes_of
from effax.show.model import box_text, captions, taps
from effax.show.rails import Key, bound, rails_of, refs_of


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of an equation to a reference: the track, and words such as ``read``."""

    track: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScheduledEqn:
    """One equation, in program order.

    Attributes:
        text: the text of its box.
        full: the equation.
        live: the bytes that are live while it runs, including subjaxprs that are not opened.
        touches: its accesses to references.
        source: its source location.
    """

    text: str
    full: str
    live: int
    touches: tuple[Touch, ...]
    source: Source | SavedSource | None


@dataclass(frozen=True, slots=True)
class ProgramSpan:
    """A subjaxpr: its steps are those from ``start`` up to ``stop``."""

    label: str
    start: int
    stop: int
    depth: int


@dataclass(frozen=True, slots=True)
class Track:
    """A reference with the first and last step of its lifetime; or a kind of side effect."""

    label: str
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Profile:
    """A program in time.

    Attributes:
        steps: the equations in order, those of subjaxprs after their equation.
        spans: the subjaxprs.
        tracks: the references, and the kinds of side effects.
        arguments: the bytes of the arguments, which are live throughout.
        peak: the maximal number of live bytes.
        at: the step of the peak; -1 in a program without equations.
        largest: the values that are live then, the largest first: (name, bytes).
    """

    steps: tuple[ScheduledEqn, ...]
    spans: tuple[ProgramSpan, ...]
    tracks: tuple[Track, ...]
    arguments: int
    peak: int
    at: int
    largest: tuple[tuple[str, int], ...]


def profile(jaxpr: Jaxpr) -> Profile:
    """Return the live memory at each equation; a repeated subjaxpr is opened once."""
    walk = _Walk(-1)
    arguments = walk.whole(jaxpr)
    at = max(range(len(walk.steps)), key=lambda i: walk.steps[i].live, default=-1)
    peak = walk.steps[at].live if at >= 0 else arguments
    again = _Walk(at)
    again.whole(jaxpr)
    found = sorted(again.caught, key=lambda item: -item[1])
    tracks = [
        Track(*track) for track in zip(walk.names, walk.sizes, walk.first, walk.last, strict=True)
    ]
    return Profile(
        tuple(walk.steps), tuple(walk.spans), tuple(tracks), arguments, peak, at, tuple(found)
    )


class _Walk:
    """One walk in program order. ``target`` is the step at which live values are recorded."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.steps: list[ScheduledEqn] = []
        self.spans: list[ProgramSpan] = []
        self.names: list[str] = []
        self.sizes: list[int] = []
        self.first: list[int] = []
        self.last: list[int] = []
        self.opened: dict[tuple[Jaxpr, tuple[Var, ...]], int] = {}
        # Live values by run of a program and variable: name and bytes.
        self.alive: dict[tuple[int, int], tuple[str, int]] = {}
        self.caught: list[tuple[str, int]] = []
        self.runs = 0
        self.channels: dict[str, int] = {}

    def whole(self, jaxpr: Jaxpr) -> int:
        """Walk the outermost program, and return the bytes of its arguments."""
        self.alive = {(0, v.id): (bound(v), bytes_of(v.type)) for v in jaxpr.binders}
        arguments = sum([size for _, size in self.alive.values()])
        tracks: dict[Key, int] = {}
        refs = [ref for ref in refs_of(jaxpr, {}) if ref.at < 0]
        rails, places = rails_of(refs, {ref.var.id: 0 for ref in refs}, 0, len(jaxpr.eqns))
        made = {rail.key: self.track(rail.label, 0, 0) for rail in rails}
        for ref in refs:
            track = tracks[ref.var.id] = made[places[ref.var.id]]
            self.sizes[track] += bytes_of(ref.var.type)
        self.walk(jaxpr, arguments, (), tracks, "", 0)
        for track in made.values():
            self.last[track] = max(len(self.steps) - 1, 0)
        return arguments

    def host(self, channel: str, here: int) -> int:
        """Return the track of a kind of side effect: one for all programs."""
        if channel not in self.channels:
            self.channels[channel] = self.track(channel, 0, here)
        return self.channels[channel]

    def track(self, name: str, size: int, first: int) -> int:
        self.names.append(name)
        self.sizes.append(size)
        self.first.append(first)
        self.last.append(first)
        return len(self.names) - 1

    @with_fresh_stack
    def walk(
        self,
        jaxpr: Jaxpr,
        live: int,
        copies: Sequence[Var],
        tracks: dict[Key, int],
        prefix: str,
        level: int,
    ) -> int:
        """Walk a program, and return its peak.

        Binders in ``copies`` are not values of the caller; ``live`` includes them.
        """
        run, own = self.runs, {v.id: v for v in copies}
        self.runs += 1
        for v in copies:
            self.alive[run, v.id] = (prefix + bound(v), bytes_of(v.type))
        dying = _last_uses(jaxpr, own)
        peak = live
        for k, eqn in enumerate(jaxpr.eqns):
            for v in eqn.outs:
                own[v.id] = v
                name, size = prefix + bound(v), bytes_of(v.type)
                self.alive[run, v.id] = (name, size)
                live += size
                if isinstance(v.type, RefType):
                    tracks[v.id] = self.track(name, size, len(self.steps))
            here = len(self.steps)
            self.steps.append(self.step(eqn, live, tracks, here))
            if here == self.target:
                self.caught = list(self.alive.values())
            inside = self.regions(eqn, live, tracks, level)
            if len(self.steps) == here + 1 and inside > live:
                self.steps[here] = replace(self.steps[here], live=inside)
                if here == self.target:
                    self.caught.append((f"inside of {box_text(eqn)[0]}", inside - live))
            peak = max(peak, live, inside)
            for i in dying.get(k, ()):
                v = own.pop(i)
                live -= bytes_of(v.type)
                del self.alive[run, i]
        for i in own:
            self.alive.pop((run, i), None)
        return peak

    def step(self, eqn: Eqn, live: int, tracks: Mapping[Key, int], here: int) -> ScheduledEqn:
        touches = []
        for tap in taps(eqn):
            track = tracks.get(tap.rail) if isinstance(tap.rail, int) else self.host(tap.rail, here)
            if track is not None:
                touches.append(Touch(track, tap.words))
        for touch in touches:
            self.last[touch.track] = here
        return ScheduledEqn(box_text(eqn)[0], eqn_str(eqn), live, tuple(touches), eqn.source)

    def regions(self, eqn: Eqn, live: int, tracks: Mapping[Key, int], level: int) -> int:
        """Walk the subjaxprs of an equation, and return the peak."""
        regions = eqn.prim.regions()
        peak = live
        for region, caption in zip(regions, captions(eqn, regions), strict=True):
            # A binder of another shape than its operand, such as an element of a scan, is a copy.
            binders = zip(region.jaxpr.binders, region.args, strict=True)
            copies = [
                v
                for v, at in binders
                if not isinstance(v.type, RefType) and v.type.shape != eqn.ins[at].type.shape
            ]
            key = (region.jaxpr, tuple(copies))
            more = sum([bytes_of(v.type) for v in copies])
            if key not in self.opened:
                name = box_text(eqn)[0] + (f" {caption}" if caption else "")
                start = len(self.steps)
                inner = self.inner_tracks(eqn, region, tracks)
                inside = f"{eqn.prim.name}/"
                top = self.walk(region.jaxpr, live + more, copies, inner, inside, level + 1)
                self.opened[key] = top - live
                if len(self.steps) > start:
                    self.spans.append(ProgramSpan(name, start, len(self.steps), level))
            peak = max(peak, live + self.opened[key])
        return peak

    def inner_tracks(self, eqn: Eqn, region: Region, tracks: Mapping[Key, int]) -> dict[Key, int]:
        inner: dict[Key, int] = {}
        for v, at in zip(region.jaxpr.binders, region.args, strict=True):
            a = eqn.ins[at]
            if isinstance(a, Var) and a.id in tracks:
                inner[v.id] = tracks[a.id]
        return inner


def _last_uses(jaxpr: Jaxpr, copies: Mapping[int, Var]) -> dict[int, list[int]]:
    """Return, by position of the equation, the ids of variables whose last use it is.

    An unused variable dies at its equation. Binders other than ``copies`` belong to the caller.
    """
    last = dict.fromkeys(copies, 0)
    for k, eqn in enumerate(jaxpr.eqns):
        last.update((v.id, k) for v in eqn.outs)
        last.update((a.id, k) for a in eqn.ins if isinstance(a, Var) and a.id in last)
    for a in jaxpr.outs:
        if isinstance(a, Var):
            last.pop(a.id, None)
    dying: dict[int, list[int]] = {}
    for i, k in last.items():
        dying.setdefault(k, []).append(i)
    return dying
