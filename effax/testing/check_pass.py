"""Hold a pass to what it claims with one call: random programs, made small where it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from effax.ir.analysis.queries import size
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.syntax import Jaxpr
from effax.passes.guarantees import Guarantee, checked_guarantees
from effax.passes.pipeline import AnyPass, check_program, guarantees_of, passes_of
from effax.testing import laws
from effax.testing.generate.features import ANYTHING, COMPILED, Features, as_features
from effax.testing.generate.focus import Focus, focus_of
from effax.testing.generate.instances import FORMS
from effax.testing.generate.random_programs import program_with, redundant_program, varied_program
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.steps import check_features
from effax.testing.laws.law import Law
from effax.testing.laws.runner import Draw, Drawn, Given, Trial, attempt_on, raise_broken
from effax.testing.shrink.changed_parts import changed_parts, probes
from effax.transforms.optimize.rewrite import App

Plan = tuple[Draw, int, bool]
"""What is drawn, how many tenths of the examples, and whether for what is done to the host."""


class Inconclusive(EffaxError, AssertionError):
    """A pass changed no program of those that it was tried on, so that nothing is known of it."""


@dataclass(frozen=True)
class PassReport:
    """What a pass was held to, and on how much.

    Attributes:
        step: the pass.
        guarantees: what it claims, all of which holds for all programs that were tried.
        programs: how many different programs it was tried on.
        changed: how many of them it changed.
        before: how many equations those have that it changed, held programs included.
        after: how many equations it made of these.
        kinds: of which primitives equations went or came, the most frequent first.
    """

    step: str
    guarantees: tuple[Guarantee, ...]
    programs: int
    changed: int
    before: int
    after: int
    kinds: tuple[str, ...] = ()

    @property
    def changes_little(self) -> bool:
        """Whether it changed so few programs that it may well be wrong all the same."""
        return self.changed < ENOUGH

    def __str__(self) -> str:
        changed = f"changed {self.changed} ({self.before} equations became {self.after})"
        held = [f"  holds: {claim.value}" for claim in self.guarantees] or ["  it claims nothing"]
        lines = [
            f"{self.step}: {self.programs} programs, of which it {changed}",
            *held,
            "  holds: p is a function, and p(f) is valid and has the types of f",
        ]
        if self.changes_little:
            lines += ["  " + line for line in self._doubts()]
        return "\n".join(lines)

    def _doubts(self) -> list[str]:
        of = f", {', '.join(self.kinds[:6])} in these" if self.kinds else ""
        return [
            f"that is little: {self.changed} of {self.programs} programs say something{of};",
            "say what it looks for (`focus=`, `programs=`), or try more (`examples=`, `seed=`)",
        ]


class _Changes(Trial):
    """A trial that counts what the pass changes."""

    def __init__(self, law: Law[...], given: Given, step: AnyPass) -> None:
        super().__init__(law, given)
        self.step = step
        self.made: dict[Jaxpr, Jaxpr] = {}

    def try_on(self, drawn: Drawn, seed: int) -> None:
        super().try_on(drawn, seed)
        jaxpr: Jaxpr = drawn[0]
        if self.broken is None and jaxpr not in self.made:
            self.made[jaxpr] = self.step(jaxpr).value_or(jaxpr)

    @property
    def pairs(self) -> list[tuple[Jaxpr, Jaxpr]]:
        """What it changed, and what it made of that."""
        return [(jaxpr, made) for jaxpr, made in self.made.items() if made != jaxpr]


def check_pass(
    step: AnyPass | Sequence[AnyPass],
    *,
    programs: Jaxpr | Sequence[Jaxpr] = (),
    focus: Focus | Sequence[Focus] = (),
    guarantees: Sequence[Guarantee] = (),
    features: Features = ANYTHING,
    compiled: bool = False,
    allow_unchanged: bool = False,
    examples: int = 200,
    seed: int = 0,
) -> PassReport:
    """Hold a pass, or a pipeline of some, to what it claims, on random programs.

    It is to be a function of the program, to give valid programs with the same types of inputs and
    results and with no new effects, and to keep the laws that it claims. What it means is compared
    on ordinary inputs and on those with zeros of both signs, infinities and nan in them; what it
    does to the host is compared too, call by call. A pass that changes few programs, or few
    kinds of equations, is tried a second time: on those programs with other inputs, and on others
    that are full of what it changed, at the top and in loops and branches.

    ::

        print(check_pass(mine, focus=[Sin, App(Log, App(Exp, x)), rule, "refs.swap"]))

    Args:
        step: the pass, a pipeline, or a list of steps.
        programs: programs of yours on which it is tried first, or one.
        focus: what random programs are full of: primitives, patterns, rules (their left sides), or
            kinds of steps (``effax.testing.step_names()``). By default that changes from
            program to program, and there is something of all that passes commonly look for.
        guarantees: tried instead of those declared (``guarantees_of``).
        features: what random programs have.
        compiled: whether what it gives is compiled too, and compared with what was given.
        allow_unchanged: whether it may leave all programs as they are.
        examples: about how many random programs are tried. Equal arguments try equal programs.
        seed: another one tries other programs.

    Returns:
        What it was tried on.

    Raises:
        LawBroken: it does not do what it claims; the message has a small program.
        Inconclusive: it changed no program. Pass ``focus``, ``programs`` or ``features`` on which
            it changes something.
        BadArgument: ``step`` is no pass, or one of the others is not what it is to be.
    """
    __tracebackhide__ = True
    held = passes_of(step)
    features = as_features(features)
    wanted = checked_guarantees("check_pass", guarantees) if guarantees else guarantees_of(held)
    if examples < 1:
        raise BadArgument("a pass is tried on something", "examples of at least 1", str(examples))
    given: Given = {"step": held, "guarantees": wanted}
    changes = _Changes(laws.pass_is_a_function, given, held)
    trials = [Trial(laws.pass_keeps_its_guarantees, given), changes]
    if compiled:
        trials.append(Trial(laws.compiled_pass_agrees_with_evaluation, given))
    tells = Trial(laws.pass_preserves_side_effects, given)
    tried = _Tried(trials, tells, Guarantee.SAME_MEANING in wanted)
    for jaxpr in _own_programs(programs):
        tried.on_inputs(jaxpr, range(OWN))
    names, patterns = focus_of(focus)
    tried.on(_plans(names, patterns, features, compiled), examples, seed)
    if changes.pairs and not tried.broken:
        _try_again(held, changes, tried, (names, patterns, features, compiled), examples, seed)
    raise_broken([*trials, tells], strict=False)
    return _report(held, wanted, changes, allow_unchanged)


def _try_again(
    step: AnyPass,
    changes: _Changes,
    tried: _Tried,
    wanted: tuple[tuple[str, ...], tuple[App, ...], Features, bool],
    examples: int,
    seed: int,
) -> None:
    """Where a pass changed little, try it on more of what it changed."""
    found = changed_parts(changes.pairs)
    if len(changes.pairs) >= ENOUGH and len(found.kinds) > FEW:
        return
    names, patterns, features, compiled = wanted
    own: dict[App, None] = {}
    for pattern, jaxpr in probes(step, found.patterns):
        own[pattern] = None
        tried.on_inputs(jaxpr, range(FEW_INPUTS))
    for jaxpr, _ in changes.pairs[:FEWEST]:
        tried.on_inputs(jaxpr, range(AGAIN, 2 * AGAIN))
    names += tuple([name for name in found.steps if _is_of(name, features)])
    plans = _plans(names, (*patterns, *(own or found.patterns)), features, compiled)
    tried.on(plans, -(-examples // 2), f"again {seed}")


OWN: Final = 4
"""With how many seeds a program of the user's is tried."""

ENOUGH: Final = 30
"""A pass that changes fewer programs is tried again, and its report says that this is little."""

FEW: Final = 4
"""A pass that changes equations of so few primitives is tried again on more of these."""

FEWEST: Final = 15
"""How many of the programs that such a pass changed are tried again."""

FEW_INPUTS: Final = 2
"""On how many inputs a program of one pattern alone is tried."""

AGAIN: Final = 4
"""On how many more inputs each of these is tried."""


def _is_of(name: str, features: Features) -> bool:
    """Whether programs of these features have such steps."""
    return features.refs if name.startswith("refs.") else name in features.control


class _Tried(NamedTuple):
    """What a pass is tried with."""

    trials: Sequence[Trial]
    tells: Trial
    means: bool

    @property
    def broken(self) -> bool:
        return any(trial.broken for trial in (*self.trials, self.tells))

    def on(self, plans: Sequence[Plan], examples: int, seed: int | str) -> None:
        """Try random programs."""
        for draw, tenths, outside in plans:
            if not outside or self.means:
                trials = [self.tells] if outside else self.trials
                attempt_on(trials, draw, -(-examples * tenths // 10), seed)

    def on_inputs(self, jaxpr: Jaxpr, seeds: range) -> None:
        """Try one program on several inputs."""
        for seed in seeds:
            for trial in [trial for trial in self.trials if trial.broken is None]:
                trial.try_on((jaxpr,), seed)


def _report(
    step: AnyPass, guarantees: tuple[Guarantee, ...], changes: _Changes, allow_unchanged: bool
) -> PassReport:
    pairs = changes.pairs
    before, after = (sum(size(pair[i]) for pair in pairs) for i in (0, 1))
    kinds = changed_parts(pairs).kinds
    programs = len(changes.made)
    report = PassReport(str(step), guarantees, programs, len(pairs), before, after, kinds)
    if not pairs and not allow_unchanged:
        raise Inconclusive(
            f"the pass {step} changed no program",
            expected="a pass that does something to some of them",
            found=f"{report.programs} programs, all as they were",
            remedy="say what it looks for: `focus=` a primitive, a pattern or a rule, or "
            "`programs=` some of your own; or `allow_unchanged=True`",
        )
    return report


def _own_programs(given: object) -> list[Jaxpr]:
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    return [check_program(one) for one in several]


def _plans(
    names: tuple[str, ...], patterns: tuple[App, ...], features: Features, compiled: bool
) -> list[Plan]:
    """What a pass is tried on: the simplest first."""
    features = COMPILED if compiled else features
    each = [replace(features, focus=name) for name in names] or [features]
    for one in each:
        check_features(one)
    bare = replace(features, depth=0, focus="")

    def small(choose: RandomSource) -> Drawn:
        return (program_with(choose, patterns or FORMS, bare),)

    def plain(choose: RandomSource) -> Drawn:
        return (varied_program(choose, choose.pick(each)),)

    def redundant(choose: RandomSource) -> Drawn:
        return (redundant_program(choose, choose.pick(each), patterns=patterns),)

    if compiled:
        return [(small, 5, False), (plain, 5, False)]
    return [(small, 3, False), (plain, 3, False), (redundant, 3, False), (redundant, 1, True)]
