"""Find the equations that a pass changes, to try it on more of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import isnan
from typing import Final, NamedTuple

from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.passes.pipeline import AnyPass
from effax.testing.laws.rules import instances, program_of
from effax.transforms.optimize.patterns import parts
from effax.transforms.optimize.rewrite import ANY, App, Hole, Number, Pattern, RewriteRule

MOST: Final = 12
"""The number of patterns that are kept."""

SPLITS: Final = 24
"""The number of variants of these."""

NESTING: Final = 2
"""The depth of applications in a pattern beyond the first."""

STEPS: Final[dict[str, str]] = {
    "get": "refs.get",
    "swap": "refs.swap",
    "addupdate": "refs.addupdate",
    "new_ref": "refs.new",
    "empty_ref": "refs.empty",
    "freeze": "refs.consume",
    "free_ref": "refs.consume",
    "scan": "scan",
    "while": "while",
    "cond": "cond",
    "jit": "jit",
    "remat2": "remat",
}
"""The kind of step that appends a primitive which no pattern has."""

AROUND: Final = ("scan", "while", "cond")
"""Kinds of steps that are always tried: a pass may be wrong only in loops and branches."""


class ChangedParts(NamedTuple):
    """The equations that a pass changes.

    Attributes:
        kinds: the primitives of removed and added equations, the most frequent first.
        patterns: removed applications, with those that define their operands.
        steps: kinds of steps that append such equations.
    """

    kinds: tuple[str, ...]
    patterns: tuple[App, ...]
    steps: tuple[str, ...]


def changed_parts(changes: Iterable[tuple[Jaxpr, Jaxpr]]) -> ChangedParts:
    """Return the removed and added equations of programs, before and after a pass."""
    kinds: Counter[str] = Counter()
    patterns: Counter[App] = Counter()
    for before, after in changes:
        old, new = _equations(before), _equations(after)
        gone, come = old - new, new - old
        if not gone and not come:
            gone = _moved(before, after)
        kinds.update(sorted({name for name, *_ in (*gone, *come)}))
        for program in _programs(before):
            patterns.update(_patterns(program, gone))
    names = [name for name, _ in kinds.most_common()]
    steps = [STEPS[name] for name in names if name in STEPS]
    if any(step.startswith("refs.") for step in steps):
        steps.append("refs.nested")
    found = [pattern for pattern, _ in patterns.most_common(MOST)]
    more = [one for one in _unique(map(_splits, found)) if one not in found]
    return ChangedParts(
        tuple(names), (*found, *more[:SPLITS]), tuple(dict.fromkeys([*steps, *AROUND]))
    )


_Kind = tuple[str, Primitive | None, tuple[str, ...]]
"""The name of a primitive, itself if it has no subjaxprs, and the types of its operands."""


def _programs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    yield jaxpr
    for eqn in jaxpr.eqns:
        for inner in eqn.prim.subjaxprs():
            yield from _programs(inner)


def _kind(eqn: Eqn) -> _Kind:
    prim = eqn.prim
    types = tuple([str(a.type) for a in eqn.ins])
    # A change of a subjaxpr counts for the equations of the subjaxpr.
    return prim.name, None if prim.subjaxprs() else prim, types


def _equations(jaxpr: Jaxpr) -> Counter[_Kind]:
    return Counter([_kind(eqn) for program in _programs(jaxpr) for eqn in program.eqns])


def _moved(before: Jaxpr, after: Jaxpr) -> Counter[_Kind]:
    """Return the equations at other places, or with other operands."""
    pairs = zip(_programs(before), _programs(after), strict=False)
    return Counter(
        _kind(old)
        for first, second in pairs
        for old, new in zip(first.eqns, second.eqns, strict=False)
        if old != new
    )


def _patterns(jaxpr: Jaxpr, gone: Counter[_Kind]) -> Iterator[App]:
    """Yield the removed applications, alone and with those that define their operands."""
    by_var = {v.id: eqn for eqn in jaxpr.eqns for v in eqn.outs}
    for eqn in jaxpr.eqns:
        if _is_plain(eqn) and _kind(eqn) in gone:
            seen = [_applied(eqn, by_var, nesting) for nesting in range(NESTING + 1)]
            yield from dict.fromkeys([_tidy(app) for app in seen])


def _is_plain(eqn: Eqn) -> bool:
    return bool(eqn.ins) and len(eqn.outs) == 1 and not eqn.effects and not eqn.prim.subjaxprs()


def _applied(eqn: Eqn, by_var: dict[int, Eqn], nesting: int) -> App:
    def pattern(atom: Atom) -> Pattern:
        if isinstance(atom, Lit):
            number = complex(atom.value)
            return (
                Hole("not_a_number")
                if isnan(number.real) or isnan(number.imag)
                else Number(atom.value)
            )
        made = by_var.get(atom.id)
        if nesting and made is not None and _is_plain(made):
            return _applied(made, by_var, nesting - 1)
        return Hole(f"v{atom.id}")

    return App(eqn.prim, *map(pattern, eqn.ins))


def probes(step: AnyPass, patterns: Iterable[App]) -> Iterator[tuple[App, Jaxpr]]:
    """Yield programs of one pattern that a pass changes, an input for each hole."""
    for pattern in patterns:
        holes = {part.name for part in parts(pattern) if isinstance(part, Hole)}
        if len(holes) > MOST_PLACES:
            continue
        rule = RewriteRule(str(pattern), pattern, Number(0), ANY)
        for instance in islice(instances(rule), FEW_DTYPES):
            jaxpr = program_of(rule, instance)
            if step(jaxpr).value_or(jaxpr) != jaxpr:
                yield pattern, jaxpr


FEW_DTYPES: Final = 8
"""The number of dtypes, shapes and orders in which a pattern is tried alone."""


def _unique(several: Iterable[Iterable[App]]) -> Iterator[App]:
    return iter(dict.fromkeys([app for one in several for app in one]))


def _splits(app: App) -> Iterator[App]:
    """Yield the pattern with two holes in the place of one, which may be equal by chance.

    ``f(x) + x·x`` becomes ``f(x) + x·y``, ``f(x) + y·x`` and ``f(x) + y·y``.
    """
    places = Counter(part.name for part in parts(app) if isinstance(part, Hole))
    for name, n in places.items():
        if n <= MOST_PLACES:
            for mask in range(2, 2**n, 2):
                yield _tidy(_split(app, name, [bool(mask >> i & 1) for i in range(n)]))


MOST_PLACES: Final = 4
"""Holes with more places are not split."""


def _split(app: App, name: str, other: Sequence[bool]) -> App:
    """Return the pattern with another hole at some places of one, from left to right."""
    left = iter(other)

    def renamed(pattern: Pattern) -> Pattern:
        if isinstance(pattern, App):
            return App(pattern.prim, *map(renamed, pattern.args))
        there = isinstance(pattern, Hole) and pattern.name == name and next(left)
        return Hole("another") if there else pattern

    return App(app.prim, *map(renamed, app.args))


def _tidy(app: App) -> App:
    """Return the pattern with its holes numbered from the left, so that equal ones are equal."""
    names: dict[str, str] = {}

    def renamed(pattern: Pattern) -> Pattern:
        match pattern:
            case Hole(name):
                return Hole(names.setdefault(name, f"x{len(names)}"))
            case App():
                return App(pattern.prim, *map(renamed, pattern.args))
            case _:
                return pattern

    made = renamed(app)
    assert isinstance(made, App)
    return made
