"""Draw a program in time: accesses to references, and live memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from effax.ir.analysis.cost.record import shown_bytes
from effax.show.drawing import badge, place_of
from effax.show.marks import SMALL, element, group, label, line, number, path, shortened, text
from effax.show.memory import Profile, ScheduledEqn
from effax.show.rails import HUES

PLOT: Final = 900.0
"""The width of the time axis, unless steps would be too narrow."""
TRACK: Final = 24.0
SPAN: Final = 18.0
LEVELS: Final = 12
"""The depth to which subjaxprs are outlined."""
CHART: Final = 170.0
WIDEST: Final = 46.0
NARROWEST: Final = 0.5
"""The maximal and minimal width of a step."""
ROOMY: Final = 22.0
"""The width from which steps have badges and names."""
NAMES: Final = 92.0
LABELLED: Final = 48
"""The maximal length of the label of a reference."""


class Timeline:
    """The coordinates of a timeline: ``left`` is its origin, ``step`` the width of an equation."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        n = max(len(profile.steps), 1)
        self.step: float = min(WIDEST, max(NARROWEST, PLOT / n))
        names = [min(len(track.label), LABELLED) for track in profile.tracks]
        self.left: float = max([60.0, *[n * SMALL + 14 for n in names]])
        self.levels: int = min(LEVELS, max([span.depth + 1 for span in profile.spans], default=0))
        self.tracks_top: float = self.levels * SPAN + 6
        self.chart_top: float = self.tracks_top + len(profile.tracks) * TRACK + 18
        self.right: float = self.left + n * self.step
        self.roomy: bool = self.step >= ROOMY
        self.width: float = max(self.right + 12, self.left + 470)
        self.height: float = self.chart_top + CHART + (NAMES if self.roomy else 26.0)
        self.scale: float = CHART / max(profile.peak, 1)

    def x(self, step: float) -> float:
        """Return the left edge of a step."""
        return self.left + step * self.step

    def y(self, live: float) -> float:
        """Return the height of a number of bytes."""
        return self.chart_top + CHART - live * self.scale

    def draw(self) -> str:
        """Draw subjaxprs, references, memory and names."""
        parts = [*self.spans(), *self.references(), *self.memory(), *self.names()]
        return group(parts, class_="fx-time")

    def spans(self) -> Iterator[str]:
        bottom = self.chart_top + CHART
        shown = [span for span in self.profile.spans if span.depth < LEVELS]
        for span in sorted(shown, key=lambda span: span.depth):
            x, y = self.x(span.start), span.depth * SPAN
            width = (span.stop - span.start) * self.step
            yield element("rect", class_="fx-span", x=x, y=y, width=width, height=bottom - y, rx=3)
            room = int((width - 8) / SMALL)
            if room >= 3:
                yield label(x + 5, y + 12, shortened(span.label, room), "fx-d")

    def references(self) -> Iterator[str]:
        ys = []
        for k, track in enumerate(self.profile.tracks):
            y, hue = self.tracks_top + (k + 0.5) * TRACK, k % HUES
            ys.append(y)
            ends = (self.x(track.first), y), (self.x(track.last + 1), y)
            yield path([line(*ends)], class_=f"fx-rail fx-k{hue}")
            yield label(
                self.left - 10, y + 4, shortened(track.label, LABELLED), f"fx-l fx-k{hue}", "end"
            )
        for i, step in enumerate(self.profile.steps):
            for touch in step.touches:
                x, y = self.x(i + 0.5), ys[touch.track]
                if self.roomy:
                    yield badge(x, y, touch.words, touch.track % HUES)
                else:
                    yield tick(x, y, touch.words, touch.track % HUES)

    def memory(self) -> Iterator[str]:
        profile, bottom = self.profile, self.chart_top + CHART
        n = max(len(profile.steps), 1)
        yield element("path", class_="fx-live", d=_area(self, [s.live for s in profile.steps]))
        yield element("path", class_="fx-base", d=_area(self, [profile.arguments] * n))
        if self.y(profile.arguments) < bottom - 18:
            yield label(self.left + 6, bottom - 7, "arguments", "fx-d")
        for live in sorted({0, profile.arguments, profile.peak}):
            y = self.y(live)
            yield path([line((self.left, y), (self.right, y))], class_="fx-grid")
            near = any(0 < abs(y - self.y(o)) < 12 for o in (0, profile.peak) if o != live)
            if not near or live == profile.peak:
                yield label(self.left - 10, y + 4, shown_bytes(live), "fx-l", "end")
        for i, step in enumerate(profile.steps):
            yield element(
                "rect",
                element("title", text(_tooltip(i, step))),
                class_="fx-step",
                x=self.x(i),
                y=self.tracks_top,
                width=self.step,
                height=bottom - self.tracks_top,
            )
        if profile.at >= 0:
            yield from self.peak()

    def peak(self) -> Iterator[str]:
        profile = self.profile
        step = profile.steps[profile.at]
        x = self.x(profile.at + 0.5)
        peak = f"peak {shown_bytes(profile.peak)} at {step.text}"
        right = x > (self.left + self.width) / 2
        # Left of the chart are the numbers of the axis.
        room = int(((x - self.left if right else self.width - x) - 12) / SMALL)
        if step.source is not None:
            place = place_of(step.source)
            # If the function's name is too long, show the line alone.
            whole = len(peak) + 2 + len(place) <= room
            place = place if whole else place.partition(" (")[0]
            peak = f"{shortened(peak, max(room - 2 - len(place), 20))}, {place}"
        yield element("circle", class_="fx-peak", cx=x, cy=self.chart_top, r=3.5)
        yield label(
            x + (-8 if right else 8),
            self.chart_top - 6,
            shortened(peak, room),
            "fx-l fx-top",
            "end" if right else None,
        )

    def names(self) -> Iterator[str]:
        bottom = self.chart_top + CHART
        if self.roomy:
            for i, step in enumerate(self.profile.steps):
                x = self.x(i + 0.5) + 3
                turned = f"rotate(-60 {number(x)} {number(bottom + 12)})"
                yield label(
                    x, bottom + 12, shortened(step.text, 15), "fx-d", "end", transform=turned
                )
            return
        n = len(self.profile.steps)
        every = max(1, round(n / 8, -1 if n > 80 else 0))
        for i in range(0, n, int(every)):
            yield label(self.x(i + 0.5), bottom + 16, str(i), "fx-d", "middle")


def tick(x: float, y: float, words: tuple[str, ...], hue: int) -> str:
    """Return a small mark of an access to a reference: a ring, a plus, or a bar."""
    title = element("title", text(" and ".join(words)))
    if words == ("read",):
        return element("circle", title, class_=f"fx-ring fx-k{hue}", cx=x, cy=y, r=3)
    if words == ("accum",):
        plus = line((x - 2.5, y), (x + 2.5, y)), line((x, y - 2.5), (x, y + 2.5))
        disc = element("circle", class_=f"fx-bar fx-k{hue}", cx=x, cy=y, r=4.5)
        return group([title, disc, path(plus, class_="fx-plus")])
    return element(
        "rect", title, class_=f"fx-bar fx-k{hue}", x=x - 1.5, y=y - 7, width=3, height=14
    )


def _area(t: Timeline, heights: list[int]) -> str:
    """Return the outline of steps of these heights, down to the axis."""
    bottom = number(t.y(0))
    parts = [f"M{number(t.left)} {bottom}"]
    for i, live in enumerate(heights):
        y = number(t.y(live))
        parts.append(f"L{number(t.x(i))} {y}L{number(t.x(i + 1))} {y}")
    return f"{''.join(parts)}L{number(t.x(len(heights)))} {bottom}Z"


def _tooltip(i: int, step: ScheduledEqn) -> str:
    where = "" if step.source is None else f"\n{place_of(step.source)}"
    return f"{i}: {step.full}\n{shown_bytes(step.live)} live{where}"
