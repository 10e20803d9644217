"""Laws tried on random programs, and what was tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from statistics import median_low
from textwrap import fill
from typing import Final, NamedTuple

from effax.ir.analysis.queries import size, walk
from effax.ir.errors import BadArgument, NotApplicable
from effax.ir.syntax import Jaxpr
from effax.testing.generate.features import Features, as_features
from effax.testing.generate.focus import Focus, focus_of
from effax.testing.generate.random_programs import seed_of, subject
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.steps import check_features
from effax.testing.laws.law import About, Law
from effax.testing.report.report import LawBroken
from effax.testing.shrink.search import MOST, MOST_COSTLY, shrunk
from effax.transforms.optimize.rewrite import App
from effax.tree import PyTree

Drawn = tuple[PyTree, ...]
"""The first arguments of a law: what it is about."""

Given = Mapping[str, object]
"""What a law is given by name, but for the seed."""


class Tried(NamedTuple):
    """What a law was tried on.

    Attributes:
        law: its name.
        programs: how many different programs it holds for.
        sizes: how many equations they have, those inside of others included; sorted.
        primitives: what is in them: each primitive, and in how many of them it is; the most
            frequent first.
        skipped: for how many it says nothing: what it assumes is not so, or rounding decides.
        refused: why a rule does not apply to others (``NotApplicable``), and to how many.
    """

    law: str
    programs: int
    sizes: tuple[int, ...]
    primitives: tuple[tuple[str, int], ...]
    skipped: int
    refused: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        lines = [f"{self.law}: tried on nothing"]
        if self.programs:
            least, middle, most = self.sizes[0], median_low(self.sizes), self.sizes[-1]
            many = f"{_programs(self.programs)} of {least} to {most} equations"
            lines = [f"{self.law}: {many}, {middle} in the middle"]
            found = ", ".join(f"{name} {n}" for name, n in self.primitives)
            lines.append(fill(found, 98, initial_indent="  ", subsequent_indent="  "))
        if self.skipped:
            lines.append(f"  {_programs(self.skipped)} of which it says nothing")
        lines += [f"  {_programs(n)} refused: {why}" for why, n in self.refused]
        return "\n".join(lines)


def _programs(n: int) -> str:
    return f"{n} program{'' if n == 1 else 's'}"


class Trial:
    """A law while it is tried: on what so far, and what broke it.

    Attributes:
        law: the law.
        broken: how it is broken, once it is.
        drawn: for what, and with which seed.
    """

    def __init__(self, law: Law[...], given: Given) -> None:
        self.law = law
        self.given = given
        self.broken: LawBroken | None = None
        self.drawn: tuple[Drawn, int] | None = None
        self._held: dict[Drawn, None] = {}
        self._unsaid = 0
        self._refused: Counter[str] = Counter()

    def try_on(self, drawn: Drawn, seed: int) -> None:
        """Hold what is drawn to the law; the first that breaks it is kept."""
        try:
            if run(self.law, drawn, seed, self.given):
                self._held[drawn] = None
            else:
                self._unsaid += 1
        except LawBroken as broken:
            if isinstance(broken.root, NotApplicable):
                self._refused[broken.root.what] += 1
            else:
                self.broken, self.drawn = broken, (drawn, seed)
        except Exception as error:
            # Hypothesis's own `assume`, in the law.
            if type(error).__name__ != "UnsatisfiedAssumption":
                raise
            self._unsaid += 1

    def report(self, others: Sequence[str] = ()) -> LawBroken:
        """How it is broken, for a program that is as small as can be."""
        assert self.broken is not None and self.drawn is not None, "only what is broken is told"

        def hold(drawn: Drawn, seed: int) -> LawBroken | None:
            try:
                run(self.law, drawn, seed, self.given)
            except LawBroken as broken:
                return broken
            return None

        most = MOST_COSTLY if self.law.costly else MOST
        return shrunk(self.law.about, *self.drawn, self.broken, hold, most).with_others(others)

    def tried(self) -> Tried:
        """What it was tried on."""
        programs = [[x for x in drawn if isinstance(x, Jaxpr)] for drawn in self._held]
        sizes = [sum(map(size, parts)) for parts in programs]
        names = Counter(
            name
            for parts in programs
            for name in {place.eqn.prim.name for part in parts for place in walk(part)}
        )
        return Tried(
            self.law.name,
            len(programs),
            tuple(sorted(sizes)),
            tuple(sorted(names.items(), key=lambda item: (-item[1], item[0]))),
            self._unsaid,
            tuple(sorted(self._refused.items())),
        )


def run(law: Law[...], drawn: Drawn, seed: int, given: Given) -> bool:
    """Hold arguments to a law; whether it says anything. Raises LawBroken."""
    named = {"seed": seed, **given}
    return law.applies(*drawn, **{name: x for name, x in named.items() if law.takes(name)})


Draw = Callable[[RandomSource], Drawn]
"""Makes what laws are about."""


def attempt(
    trials: Sequence[Trial],
    about: About,
    features: Sequence[Features],
    examples: int,
    patterns: Sequence[App] = (),
    seed: int = 0,
) -> int:
    """:func:`attempt_on` random programs of a kind. Raises BadArgument for unknown features."""
    for one in features:
        check_features(one)

    def draw(choose: RandomSource) -> Drawn:
        # What is chosen from one is not: programs are as they are without.
        wanted = choose.pick(features) if len(features) > 1 else features[0]
        return subject(choose, about, wanted, patterns)

    return attempt_on(trials, draw, examples, seed)


def attempt_on(trials: Sequence[Trial], draw: Draw, examples: int, seed: int | str = 0) -> int:
    """Try laws on what is drawn, the same every time: all of them on each.

    Once one is broken, few more are tried: what else breaks, breaks about as soon.

    Returns:
        How much should be tried of other kinds too.
    """
    left = [trial for trial in trials if trial.broken is None]
    begun, limit = len(left), examples
    for i in range(examples):
        if not left or i >= limit:
            break
        choose = RandomSource(Random(f"{seed}.{i}" if seed else i))
        drawn, seed = draw(choose), seed_of(choose)
        for trial in left:
            trial.try_on(drawn, seed)
        left = [trial for trial in left if trial.broken is None]
        if len(left) < begun and limit == examples:
            limit = min(examples, 2 * i + 10)
    return limit


COSTLY: Final = 10
"""Of how many programs a law is tried on one where a try takes long."""


def try_all(
    laws: Sequence[Law[...]],
    given: Given,
    examples: int,
    features: Features | None = None,
    focus: Focus | Sequence[Focus] = "",
    seed: int = 0,
) -> list[Trial]:
    """Try laws on random programs of their kinds; those that are about the same ones together.

    Args:
        laws: the laws.
        given: what they get by name.
        examples: how many programs each is tried on; of the costly ones, fewer.
        features: what the programs have; what each law says where it is None.
        focus: what programs are full of. What has instances of patterns is not linear: laws of
            linear programs are tried on those that there are without.
        seed: another one tries other programs.

    Raises:
        BadArgument: there are no such features, or too few examples.
    """
    names, patterns = focus_of(focus)
    if examples < 1:
        raise BadArgument("a law is tried on something", "examples of at least 1", str(examples))
    trials = [Trial(law, given) for law in laws]
    groups: dict[tuple[About, Features, bool], list[Trial]] = {}
    for trial in trials:
        law = trial.law
        wanted = law.features if features is None else as_features(features)
        groups.setdefault((law.about, wanted, law.costly and len(laws) > 1), []).append(trial)
    for (about, wanted, costly), group in groups.items():
        few = -(-examples // COSTLY) if costly else examples
        each = [replace(wanted, focus=name) for name in names] or [wanted]
        limit = attempt(group, about, each, few, patterns, seed)
        if any(trial.broken for trial in group):
            examples = min(examples, limit)
    return trials


def raise_broken(trials: Sequence[Trial], strict: bool) -> tuple[Tried, ...]:
    """What was tried. Raises LawBroken for the simplest law that does not hold.

    Where it is strict, raises BadArgument for a law that was tried on nothing.
    """
    __tracebackhide__ = True
    broken = [trial for trial in trials if trial.broken is not None]
    if broken:
        raise broken[0].report([trial.law.name for trial in broken[1:]]) from None
    tried = tuple([trial.tried() for trial in trials])
    for one in tried:
        if strict and not one.programs:
            raise BadArgument(
                f"{one.law} was tried on nothing",
                expected="programs about which the law says something",
                found=str(one),
                remedy="assume less, give other `features`, or try more `examples`",
            )
    return tried
