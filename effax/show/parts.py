"""Split a long program into parts: runs of equations of one scope, function, call or line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Eqn

LONG: Final = 60
"""The number of equations up to which a program is drawn without parts."""

MOST: Final = 14
"""The maximal number of parts of a program or of a part, which fit on a screen."""


class EqnPlace(NamedTuple):
    """The source location of an equation, as far as parts depend on it.

    Attributes:
        scopes: the named scopes, outermost first.
        function: the qualified name of the user's function.
        call: the number of times that lines of this function started again.
        line: the line.
        file: the file.
    """

    scopes: tuple[str, ...] = ()
    function: str = ""
    call: int = 0
    line: int = 0
    file: str = ""


class EqnRun(NamedTuple):
    """Equations ``start`` to ``stop``, in smaller parts if they are many."""

    start: int
    stop: int
    title: str
    detail: str
    parts: tuple[EqnRun, ...] = ()


KEYS: Final[tuple[Callable[[EqnPlace], Hashable], ...]] = (
    lambda place: place.scopes[:1],
    lambda place: place.scopes[:2],
    lambda place: (place.scopes, place.function),
    lambda place: (place.scopes, place.function, place.call),
    lambda place: (place.scopes, place.function, place.call, place.line),
)
"""The keys of parts, the coarsest first."""


def runs_of(eqns: Sequence[Eqn]) -> tuple[EqnRun, ...]:
    """Return the parts of a program, in order; none for a short one."""
    if len(eqns) <= LONG:
        return ()
    places = _places(eqns)
    return _split(places, 0, len(places), 0)


def _places(eqns: Sequence[Eqn]) -> list[EqnPlace]:
    """Return the place of each equation; one without a source has that of the previous one."""
    last: dict[str, tuple[int, int]] = {}
    lines: dict[Source | SavedSource, int] = {}
    found: list[EqnPlace] = []
    for eqn in eqns:
        source = eqn.source
        if sum([len(inner.eqns) for inner in eqn.prim.subjaxprs()]) > LONG // 4:
            # A box of its own, so that its subjaxpr is shown.
            found.append(EqnPlace((f"{eqn.prim.name} {len(found)}",)))
            continue
        if source is None:
            found.append(found[-1] if found else EqnPlace())
            continue
        line = lines.get(source)
        if line is None:
            line = lines[source] = source.line
        before, call = last.get(source.function, (0, 0))
        call += line < before
        last[source.function] = line, call
        found.append(EqnPlace(source.scopes, source.function, call, line, source.file))
    return found


def _split(places: Sequence[EqnPlace], start: int, stop: int, level: int) -> tuple[EqnRun, ...]:
    """Return parts of these equations, by the coarsest key that distinguishes them."""
    scopes = _shared_scopes(places[start:stop])
    cuts: list[int] = []
    while not cuts and level < len(KEYS):
        keys = list(map(KEYS[level], places[start:stop]))
        cuts = [start + i for i in range(1, len(keys)) if keys[i] != keys[i - 1]]
        level += not cuts
    if not cuts:
        cuts = list(range(start + LONG, stop, LONG))
    ends = [*_fewer(cuts, start, stop), stop]
    seen: Counter[str] = Counter()
    made: list[EqnRun] = []
    for first, last in zip([start, *ends[:-1]], ends, strict=True):
        title = _title(places[first:last], len(scopes))
        seen[title] += 1
        again = f" #{seen[title]}" if seen[title] > 1 else ""
        inner = _split(places, first, last, level) if last - first > LONG else ()
        made.append(EqnRun(first, last, title + again, _lines(places[first:last]), inner))
    return tuple(made)


def _fewer(cuts: Sequence[int], start: int, stop: int) -> list[int]:
    """Return at most ``MOST - 1`` of the cuts: the smallest neighbours are joined."""
    kept = list(cuts)
    if len(cuts) > 4 * MOST:
        kept, least = [], (stop - start) / (3 * MOST)
        for cut in cuts:
            if cut - (kept[-1] if kept else start) >= least:
                kept.append(cut)
    while len(kept) >= MOST:
        ends = [start, *kept, stop]
        del kept[min(range(len(kept)), key=lambda k: ends[k + 2] - ends[k])]
    return kept or [cuts[len(cuts) // 2]]


def _shared_scopes(places: Sequence[EqnPlace]) -> tuple[str, ...]:
    """Return the outermost scopes that the equations share."""
    low, high = min(place.scopes for place in places), max(place.scopes for place in places)
    n = 0
    while n < min(len(low), len(high)) and low[n] == high[n]:
        n += 1
    return low[:n]


def _title(places: Sequence[EqnPlace], n_outer: int) -> str:
    """Return the scope that the equations share inside of the outer ones, or their functions."""
    shared = _shared_scopes(places)[n_outer:]
    if shared:
        return "/".join(shared)
    names = [
        place.scopes[n_outer] if place.scopes[n_outer:] else _short(place.function)
        for place in places
    ]
    in_order = [name for name, _ in groupby(names) if name]
    common = dict(Counter(names).most_common(3))
    shown = [name for name in dict.fromkeys(in_order) if name in common]
    more = ", …" if len(set(in_order)) > len(shown) else ""
    return f"{', '.join(shown)}{more}" or "equations"


def _short(function: str) -> str:
    """Return the name of a function without those that it is nested in."""
    return function.rpartition("<locals>.")[2]


def _lines(places: Sequence[EqnPlace]) -> str:
    """Return the lines of the equations, if they are in one file."""
    files = {place.file for place in places if place.file}
    if len(files) != 1:
        return ""
    name = files.pop().replace("\\", "/").rpartition("/")[2]
    lines = [place.line for place in places if place.file]
    low, high = min(lines), max(lines)
    return f"{name}:{low}" if low == high else f"{name}:{low}–{high}"
