"""Check a pass against its guarantees, on random programs that are shrunk where it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from returns.result import Result

from effax.ir.analysis.queries import size
from effax.ir.errors import BadArgument, EffaxError, TransformError
from effax.ir.syntax import Jaxpr
from effax.passes.guarantees import Guarantee, checked_guarantees
from effax.passes.pipeline import (
    AnyPass,
    Pass,
    Path,
    attempt,
    check_program,
    guarantees_of,
    passes_of,
    perform,
)
from effax.testing import laws
from effax.testing.generate.features import ANYTHING, COMPILED, Features, as_features
from effax.testing.generate.focus import Focus, focus_of
from effax.testing.generate.instances import FORMS
from effax.testing.generate.random_programs import (
    is_step_of,
    program,
    program_with,
    redundant_program,
    varied_program,
)
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.steps import check_features
from effax.testing.laws.law import Law
from effax.testing.laws.runner import Arguments, Draw, Drawn, Trial, attempt_on, raise_broken
from effax.testing.shrink.changed_parts import changed_parts, probes
from effax.transforms.optimize.rewrite import App

ENOUGH: Final = 30
"""A pass that changes fewer programs is tried again, and reported to change little."""

FEW_KINDS: Final = 4
"""A pass that changes equations of so few primitives is tried again on more of these."""

RETRIED: Final = 15
"""The number of changed programs that are tried again, on other inputs."""

CORNERS: Final = ("refs.nested", "scan", "refs.nested")
"""Kinds of steps with rare cases: nested stores between loads, loops of one iteration."""

RETRY_SEEDS: Final = range(4, 8)
USER_SEEDS: Final = range(4)
PROBE_SEEDS: Final = range(2)
"""Seeds of the inputs of programs that are tried again, of the caller's, and of probes."""


class Inconclusive(EffaxError, AssertionError):
    """A pass changed none of the programs on which it was tried, so none of them tests it."""


@dataclass(frozen=True)
class PassReport:
    """The guarantees of a pass that hold, and the programs on which it was tried.

    Attributes:
        step: the pass.
        guarantees: its guarantees, which hold for all programs that were tried.
        programs: the number of different programs.
        changed: the number of programs that it changed.
        before: the number of equations of the changed programs, subjaxprs included.
        after: the number of equations that the pass made of these.
        kinds: the primitives of equations that were removed or added, the most frequent first.
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
        """Return whether it changed so few programs that a fault may have been missed."""
        return self.changed < ENOUGH

    def __str__(self) -> str:
        changed = f"changed {self.changed} ({self.before} equations became {self.after})"
        lines = [f"{self.step}: {self.programs} programs, of which it {changed}"]
        lines += [f"  holds: {one.value}" for one in self.guarantees] or ["  no guarantees"]
        lines.append("  holds: p is a function, and p(f) is valid and has the types of f")
        if self.changes_little:
            of = f", {', '.join(self.kinds[:6])} in these" if self.kinds else ""
            lines += [
                f"  few changes: only {self.changed} of {self.programs} programs test it{of};",
                "  pass what it looks for (`focus=`, `programs=`), or more `examples=`, `seed=`",
            ]
        return "\n".join(lines)


class _Changes(Trial):
    """A trial that records the programs that the pass changes.

    Attributes:
        step: the pass.
        made: the program that it made of each.
    """

    def __init__(self, law: Law[...], arguments: Arguments, step: AnyPass) -> None:
        super().__init__(law, arguments)
        self.step = step
        self.made: dict[Jaxpr, Jaxpr] = {}

    def try_on(self, drawn: Drawn, seed: int) -> None:
        super().try_on(drawn, seed)
        jaxpr: Jaxpr = drawn[0]
        if self.broken is None and jaxpr not in self.made:
            self.made[jaxpr] = self.step(jaxpr).value_or(jaxpr)

    @property
    def pairs(self) -> list[tuple[Jaxpr, Jaxpr]]:
        """The programs that the pass changed, before and after."""
        return [(jaxpr, made) for jaxpr, made in self.made.items() if made != jaxpr]


class _Part(Trial):
    """A trial of one pass of a composition, on the programs that it is given there.

    Attributes:
        step: the pass.
        pairs: the programs that it changed, before and after.
    """

    def __init__(self, step: Pass, guarantees: tuple[Guarantee, ...]) -> None:
        arguments: Arguments = {"step": step, "guarantees": guarantees}
        super().__init__(laws.pass_keeps_its_guarantees, arguments)
        self.step = step
        self.pairs: dict[Jaxpr, Jaxpr] = {}


class _EachPart(Trial):
    """A trial of each pass of a composition.

    A pass may hide the faults of another: it removes the programs at which they show, or changes so
    much that few of these are tried.
    """

    def __init__(self, step: AnyPass, guarantees: Sequence[Guarantee]) -> None:
        super().__init__(laws.pass_keeps_its_guarantees, {})
        self.step = step
        self.guarantees = guarantees
        self.parts: dict[Pass, _Part] = {}

    def try_on(self, drawn: Drawn, seed: int) -> None:
        given: list[tuple[_Part, Jaxpr]] = []

        def observed(part: Pass, path: Path, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
            result = attempt(part, jaxpr)
            made = result.value_or(jaxpr)
            trial = self._part(part)
            if made != jaxpr and jaxpr not in trial.pairs:
                trial.pairs[jaxpr] = made
                given.append((trial, jaxpr))
            return result

        perform(self.step, drawn[0], observed)
        for trial, jaxpr in given:
            trial.try_on((jaxpr,), seed)
            if trial.broken is not None:
                self.broken, self.drawn, self.arguments = (
                    trial.broken,
                    trial.drawn,
                    trial.arguments,
                )
                return

    def _part(self, part: Pass) -> _Part:
        if part not in self.parts:
            laws_of = tuple([one for one in part.laws if one in self.guarantees])
            self.parts[part] = _Part(part, laws_of if self.guarantees else part.laws)
        return self.parts[part]


class _Wanted(NamedTuple):
    """The programs on which a pass is tried: names of steps, patterns, and features."""

    names: tuple[str, ...]
    patterns: tuple[App, ...]
    features: Features
    compiled: bool


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
    """Check a pass, or a pipeline of several, against its guarantees on random programs.

    The pass must be a function of the program, return valid programs with the same types and no new
    effects, and keep its guarantees. Values are compared on ordinary inputs and on zeros of both
    signs, infinities and nan; side effects are compared call by call. A pass that changes few
    programs, or few kinds of equations, is tried again: on those programs with other inputs, and on
    others that are full of the equations that it changed, at the top and in loops and branches.

    ::

        print(check_pass(mine, focus=[Sin, App(Log, App(Exp, x)), rule, "refs.swap"]))

    Args:
        step: the pass, a pipeline, or a list of passes.
        programs: programs of the caller, which are tried first.
        focus: primitives, patterns, rules (their left sides), or kinds of steps
            (``effax.testing.step_names()``) of which random programs are full. By default they
            vary, and include the patterns that passes commonly look for.
        guarantees: guarantees to check instead of those of the pass (``guarantees_of``).
        features: the features of random programs.
        compiled: whether to compile the results as well, and compare them.
        allow_unchanged: whether the pass may leave all programs unchanged.
        examples: the approximate number of random programs. Equal arguments try equal programs.
        seed: another one tries other programs.

    Returns:
        A report of the programs on which it was tried.

    Raises:
        LawBroken: the pass breaks a guarantee; the message has a small program.
        Inconclusive: it changed no program. Pass ``focus``, ``programs`` or ``features`` on which
            it changes something.
        BadArgument: ``step`` is no pass, or another argument is of the wrong type.
    """
    __tracebackhide__ = True
    pass_ = passes_of(step)
    features = as_features(features)
    checked = checked_guarantees("check_pass", guarantees) if guarantees else guarantees_of(pass_)
    if examples < 1:
        raise BadArgument("a pass is tried on programs", "examples of at least 1", str(examples))
    arguments: Arguments = {"step": pass_, "guarantees": checked}
    changes = _Changes(laws.pass_is_a_function, arguments, pass_)
    trials = [Trial(laws.pass_keeps_its_guarantees, arguments), changes]
    each = _EachPart(pass_, tuple(guarantees))
    if not isinstance(pass_, Pass):
        trials.append(each)
    if compiled:
        trials.append(Trial(laws.compiled_pass_agrees_with_evaluation, arguments))
    calls = Trial(laws.pass_preserves_side_effects, arguments)
    several = programs if isinstance(programs, Sequence) else [programs]
    for jaxpr in [check_program(one) for one in several]:
        _try_program(trials, jaxpr, USER_SEEDS)
    compares = Guarantee.SAME_MEANING in checked
    wanted = _Wanted(*focus_of(focus), features, compiled)
    _try_random(trials, calls if compares else None, wanted, examples, seed)
    if changes.pairs and not any(trial.broken for trial in (*trials, calls)):
        found = [_tried_again(pass_, changes.pairs, trials, wanted)]
        found += [
            _tried_again(part.step, [*part.pairs.items()], [each], wanted)
            for part in each.parts.values()
            if part.pairs
        ]
        again = _joined([one for one in found if one is not None])
        if again is not None:
            retry = -(-examples // 2)
            _try_random(trials, calls if compares else None, again, retry, f"again {seed}")
    raise_broken([*trials, calls], strict=False)
    return _report(pass_, checked, changes, allow_unchanged)


def _joined(several: Sequence[_Wanted]) -> _Wanted | None:
    """Return the steps and patterns of all; None if there are none."""
    if not several:
        return None
    names = dict.fromkeys([name for one in several for name in one.names])
    patterns = dict.fromkeys([pattern for one in several for pattern in one.patterns])
    return several[0]._replace(names=tuple(names), patterns=tuple(patterns))


def _tried_again(
    step: AnyPass, pairs: Sequence[tuple[Jaxpr, Jaxpr]], trials: Sequence[Trial], wanted: _Wanted
) -> _Wanted | None:
    """Retry a pass that changed little; return the random programs for another round."""
    found = changed_parts(pairs)
    if len(pairs) >= ENOUGH and len(found.kinds) > FEW_KINDS:
        return None
    probed: dict[App, None] = {}
    for pattern, jaxpr in probes(step, found.patterns):
        probed[pattern] = None
        _try_program(trials, jaxpr, PROBE_SEEDS)
    for jaxpr, _ in pairs[:RETRIED]:
        _try_program(trials, jaxpr, RETRY_SEEDS)
    features = wanted.features
    names = [
        name
        for name in found.steps
        if (features.refs if name.startswith("refs.") else name in features.control)
    ]
    return wanted._replace(
        names=(*wanted.names, *names), patterns=(*wanted.patterns, *(probed or found.patterns))
    )


def _try_program(trials: Sequence[Trial], jaxpr: Jaxpr, seeds: range) -> None:
    for seed in seeds:
        for trial in [trial for trial in trials if trial.broken is None]:
            trial.try_on((jaxpr,), seed)


def _try_random(
    trials: Sequence[Trial], calls: Trial | None, wanted: _Wanted, examples: int, seed: int | str
) -> None:
    """Try tenths of the examples: small programs, others, loops and references, side effects."""
    names, patterns, features, compiled = wanted
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

    corners = [name for name in CORNERS if is_step_of(name, features)]

    def corner(choose: RandomSource) -> Drawn:
        focused = replace(features, focus=choose.pick(corners))
        return (program(choose, focused, steps=choose.between(1, 4)),)

    plans: list[tuple[Draw, int]] = [(small, 5), (plain, 5)]
    if not compiled:
        plans = [(small, 3), (plain, 3), (redundant, 3)]
    if corners and features.depth:
        plans.append((corner, 6))
    for draw, tenths in plans:
        attempt_on(trials, draw, -(-examples * tenths // 10), seed)
    if calls is not None and not compiled:
        attempt_on([calls], redundant, -(-examples // 10), seed)


def _report(
    step: AnyPass, guarantees: tuple[Guarantee, ...], changes: _Changes, allow_unchanged: bool
) -> PassReport:
    pairs, programs = changes.pairs, len(changes.made)
    if not pairs and not allow_unchanged:
        raise Inconclusive(
            f"the pass {step} changed no program",
            expected="a pass that changes some of them",
            found=f"{programs} programs, none of them changed",
            remedy="pass what it looks for: `focus=` a primitive, a pattern or a rule, or "
            "`programs=` some of your own; or `allow_unchanged=True`",
        )
    before, after = (sum(size(pair[i]) for pair in pairs) for i in (0, 1))
    kinds = changed_parts(pairs).kinds
    return PassReport(str(step), guarantees, programs, len(pairs), before, after, kinds)
