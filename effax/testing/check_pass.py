"""Check a pass against its guarantees, on random programs that are shrunk where it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from effax.ir.analysis.queries import size
from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr
from effax.passes.guarantees import Guarantee, checked_guarantees
from effax.passes.pipeline import AnyPass, Pass, check_program, guarantees_of, passes_of
from effax.testing import laws
from effax.testing.ending import bounds_text, check_bounds
from effax.testing.generate.catalogue import catalogue, literals
from effax.testing.generate.features import ANYTHING, Features, as_features
from effax.testing.generate.focus import Condition, Focus, focus_of
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.values import MAX_SECONDS, MAX_STEPS
from effax.testing.laws.guarantees import agreement_of
from effax.testing.laws.runner import Arguments, Draw, Drawn, Trial, attempt_on, raise_broken
from effax.testing.laws.tolerance import Allowed, Tolerances
from effax.testing.pass_programs import WantedPrograms, plans_of, redundant_programs
from effax.testing.pass_rules import programs_of_rules
from effax.testing.pass_trials import Calls, Changes, EachPart, PartTrial
from effax.testing.progress import Progress
from effax.testing.report.report import Inconclusive
from effax.testing.shrink.changed_parts import changed_parts, probes
from effax.testing.shrink.slices import changed_slices
from effax.transforms.optimize.rewrite import App

ENOUGH: Final = 30
"""A pass that changes fewer programs is tried again, and reported to change little."""

FEW_KINDS: Final = 4
"""A pass that changes equations of so few primitives is tried again on more of these."""

RETRIED: Final = 15
"""The number of changed programs that are tried again, on other inputs."""

RETRY_SEEDS: Final = range(4, 8)
USER_SEEDS: Final = range(4)
PROBE_SEEDS: Final = range(2)
"""Seeds of the inputs of programs that are tried again, of the caller's, and of slices."""

FAILED: Final = Jaxpr((), (), ())
"""The program in the place of the result of a pass that fails."""

LARGE: Final = 400
"""A program of the caller with more equations is tried with one seed."""


FEW_WITHOUT_CALLS: Final = 8
"""A pass that changes fewer programs is tried on more programs with calls of the host."""

FEW_OF_PART: Final = 8
"""A pass of a composition that changes fewer programs is tried again."""

PART_SLICES: Final = 30
"""The number of slices of each pass of a composition."""


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
        focus: for each part of the focus, the number of programs that meet it.
        slices: the number of programs among these that were cut out around changed equations.
        stopped: the number of programs of which an evaluation was stopped at a bound.
        skipped: the number of tries in which rounding decides all results.
        bounds: the bounds, in words.
    """

    step: str
    guarantees: tuple[Guarantee, ...]
    programs: int
    changed: int
    before: int
    after: int
    kinds: tuple[str, ...] = ()
    focus: tuple[tuple[str, int], ...] = ()
    slices: int = 0
    stopped: int = 0
    skipped: int = 0
    bounds: str = ""

    @property
    def changes_little(self) -> bool:
        """Return whether it changed so few programs that a fault may have been missed."""
        return self.changed < ENOUGH

    def __str__(self) -> str:
        changed = f"changed {self.changed} ({self.before} equations became {self.after})"
        lines = [f"{self.step}: {self.programs} programs, of which it {changed}"]
        lines += [f"  holds: {one.value}" for one in self.guarantees] or ["  no guarantees"]
        lines.append("  holds: p is a function, and p(f) is valid and has the types of f")
        if self.focus:
            met = ", ".join(f"{name} in {n}" for name, n in self.focus)
            lines.append(f"  focus: {met}")
        if self.skipped:
            lines.append(f"  skipped: rounding decides the results of {self.skipped} tries")
        if self.stopped:
            n = f"{self.stopped} program{'' if self.stopped == 1 else 's'}"
            lines.append(f"  stopped: an evaluation of {n} did not end within {self.bounds}")
        if self.changes_little:
            of = f", {', '.join(self.kinds[:6])} in these" if self.kinds else ""
            lines += [
                f"  few changes: only {self.changed} of {self.programs} programs test it{of};",
                "  pass what it looks for (`focus=`, `programs=`), or more `examples=`, `seed=`",
            ]
        return "\n".join(lines)


def check_pass(
    step: AnyPass | Sequence[AnyPass],
    *,
    programs: Jaxpr | Sequence[Jaxpr] = (),
    focus: Focus | Sequence[Focus] = (),
    guarantees: Sequence[Guarantee] = (),
    rtol: Allowed | None = None,
    atol: Allowed | None = None,
    features: Features = ANYTHING,
    compiled: bool = False,
    allow_unchanged: bool = False,
    examples: int = 200,
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    max_seconds: float = MAX_SECONDS,
    progress: bool = True,
) -> PassReport:
    """Check a pass, or a pipeline of several, against its guarantees on random programs.

    The pass must be a function of the program, return valid programs with the same types and no new
    effects, and keep its guarantees. Values are compared on ordinary inputs, on zeros of both
    signs, infinities and nan, and near the numbers in the programs; side effects are compared call
    by call. Rules of which it is made, at most 30, are tried on instances of their left sides. The
    equations that it changes are cut out, as programs whose inputs are their operands, and tried on
    more special values, and in loops of no, one and two iterations. A pass that changes few
    programs, or few kinds of equations, is tried again: on those programs with other inputs, and on
    others that are full of the equations that it changed.

    ::

        print(check_pass(mine, focus=[Sin, App(Log, App(Exp, x)), rule, "refs.swap", has_a_loop]))
        print(check_pass(half, rtol=1e-2, guarantees=[Guarantee.SAME_WHERE_FINITE]))

    Args:
        step: the pass, a pipeline, or a list of passes.
        programs: programs of the caller, which are tried first.
        focus: primitives or their classes, patterns, rules (their left sides), or kinds of steps
            (``effax.testing.step_names()``) of which random programs are full; or predicates of a
            program, of which one holds for each random program, as far as some are found. By
            default programs vary, and include the patterns that passes commonly look for.
        guarantees: guarantees to check instead of those of the pass (``guarantees_of``).
        rtol: the relative tolerance of results, a number or one by dtype, instead of rounding. The
            error is measured against the program in double precision (``check_close``).
        atol: the absolute tolerance, likewise.
        features: the features of random programs.
        compiled: whether to compile the results as well, and compare these with their evaluation.
        allow_unchanged: whether the pass may leave all programs unchanged.
        examples: the approximate number of random programs. Equal arguments try equal programs.
        seed: another one tries other programs.
        max_steps: the greatest number of equations that a run of a program may evaluate.
        max_seconds: the greatest time for a program.
        progress: whether a check of more than ten seconds reports its progress on standard error.

    Returns:
        A report of the programs on which it was tried, and of those of which an evaluation was
        stopped at a bound.

    Raises:
        LawBroken: the pass breaks a guarantee; the message has a small program.
        Inconclusive: it changed no program, no evaluation of the caller's programs ended within the
            bounds, or no program meets ``focus``.
        BadArgument: ``step`` is no pass, another argument is of the wrong type, or a tolerance is
            passed for a guarantee that has none.
    """
    __tracebackhide__ = True
    pass_ = passes_of(step)
    features = as_features(features)
    checked = checked_guarantees("check_pass", guarantees) if guarantees else guarantees_of(pass_)
    _check_counts(examples, max_steps, max_seconds)
    several = programs if isinstance(programs, Sequence) else [programs]
    given = [check_program(one) for one in several]
    focused = focus_of(focus, given)
    arguments: dict[str, object] = {"step": pass_, "guarantees": checked}
    arguments |= _tolerance_of(checked, rtol, atol)
    if (max_steps, max_seconds) != (MAX_STEPS, MAX_SECONDS):
        arguments |= {"max_steps": max_steps, "max_seconds": max_seconds}
    each = EachPart(pass_, tuple(guarantees), arguments)
    check = _Check(
        pass_,
        Changes(laws.pass_is_a_function, arguments, pass_),
        Trial(laws.pass_keeps_its_guarantees, arguments),
        None if isinstance(pass_, Pass) else each,
        Trial(laws.compiled_pass_agrees_with_evaluation, arguments) if compiled else None,
        _calls(checked, arguments, pass_),
        Progress(f"check_pass {pass_}", examples, not progress),
    )
    for jaxpr in given:
        check.try_program(jaxpr, USER_SEEDS if size(jaxpr) < LARGE else USER_SEEDS[:1])
    check.try_all(WantedPrograms(focused, features, compiled, tuple(given)), examples, seed)
    raise_broken(check.reported, strict=False)
    bounds = bounds_text(max_steps, max_seconds)
    _check_conclusive(check, given, focused.conditions, bounds)
    return _report(check, checked, focused.conditions, bounds, allow_unchanged)


def _check_counts(examples: int, max_steps: int, max_seconds: float) -> None:
    if examples < 1:
        raise BadArgument("a pass is tried on programs", "examples of at least 1", str(examples))
    check_bounds(max_steps, max_seconds)


def _tolerance_of(
    checked: Sequence[Guarantee], rtol: Allowed | None, atol: Allowed | None
) -> dict[str, object]:
    """Return the tolerances as arguments of laws. Raises BadArgument where they have no meaning."""
    found = {name: x for name, x in (("rtol", rtol), ("atol", atol)) if x is not None}
    agreement = agreement_of(checked, Tolerances(rtol, atol))
    if found and (agreement is None or agreement.exact):
        raise BadArgument(
            f"`{'` and `'.join(found)}` do not apply to the guarantees of the pass",
            expected="Guarantee.SAME_MEANING or SAME_WHERE_FINITE, without SAME_BITS",
            found=", ".join(map(str, checked)) or "no guarantees",
            remedy="`guarantees=[Guarantee.SAME_MEANING]`",
        )
    return dict(found)


def _calls(checked: Sequence[Guarantee], arguments: Arguments, step: AnyPass) -> Calls | None:
    """Return the trial of side effects, if the guarantees include them."""
    agreement = agreement_of(checked)
    if agreement is None:
        return None
    rounded = "rtol" in arguments or "atol" in arguments or agreement.where_finite
    given = {**arguments, "values": False} if rounded else arguments
    return Calls(given, step)


@dataclass
class _Check:
    """The trials of a pass.

    Attributes:
        step: the pass.
        changes: that it is a function; the programs that it changes.
        kept: its guarantees.
        each: those of its parts, if it has some.
        compiled: that compiled results agree, if that is checked.
        calls: that side effects are preserved, if that is a guarantee.
        progress: the progress of the check.
        slices: the number of slices that were tried.
    """

    step: AnyPass
    changes: Changes
    kept: Trial
    each: EachPart | None
    compiled: Trial | None
    calls: Calls | None
    progress: Progress
    slices: int = 0

    @property
    def trials(self) -> list[Trial]:
        """Return the trials on all random programs."""
        found = [self.kept, self.changes, self.each, self.compiled]
        return [trial for trial in found if trial is not None]

    @property
    def every(self) -> list[Trial]:
        """Return all trials."""
        return [*self.trials, *([self.calls] if self.calls is not None else [])]

    @property
    def reported(self) -> list[Trial]:
        """Return the trials whose failures are reported.

        A pass that raises breaks all laws; that it is a function is then not named among these.
        """
        others = [trial for trial in self.every if trial is not self.changes]
        if self.changes.has_failed and any(trial.broken for trial in others):
            return others
        return self.every

    @property
    def is_broken(self) -> bool:
        """Return whether a law is broken."""
        return any(trial.broken is not None for trial in self.every)

    def try_program(self, jaxpr: Jaxpr, seeds: range) -> None:
        """Try all laws on a program of the caller."""
        _try_program(self.trials, jaxpr, seeds, self.progress)
        if self.calls is not None and not jaxpr.free_axes:
            _try_program([self.calls], jaxpr, seeds[:1], self.progress)

    def try_all(self, wanted: WantedPrograms, examples: int, seed: int) -> None:
        """Try random programs, slices of these, and further programs if these were few."""
        self.try_random(wanted, examples, seed)
        if self.is_broken:
            return
        self._try_literals()
        self._try_rules()
        self.try_slices([*self.changes.pairs, *self._in_catalogue()])
        self._try_calls(wanted, examples, seed)
        found = [self._tried_again(self.step, self.changes.pairs, self.trials)]
        if self.each is not None:
            found += [
                self._tried_again(part.step, [*part.pairs.items()], [self.each])
                for part in self.each.parts.values()
                if 0 < len(part.pairs) < FEW_OF_PART
            ]
        again = [one for one in found if one is not None]
        if again and not self.is_broken:
            names = [name for one in again for name in one[0] if _may_have(wanted.features, name)]
            patterns = [pattern for one in again for pattern in one[1]]
            self.try_random(wanted.more(names, patterns), -(-examples // 2), f"again {seed}")

    def _try_calls(self, wanted: WantedPrograms, examples: int, seed: int) -> None:
        """Try more programs with calls if the pass changes hardly any others."""
        calls = self.calls
        if calls is not None and len(self.changes.pairs) < FEW_WITHOUT_CALLS:
            draw = redundant_programs(wanted)
            attempt_on([calls], self._progressing(draw), -(-examples // 2), f"calls {seed}")

    def _try_literals(self) -> None:
        """Try programs of equations on literals, as far as the pass changes them."""
        for jaxpr in literals():
            if self._made(jaxpr) != jaxpr:
                _try_program([self.kept], jaxpr, PROBE_SEEDS[:1], self.progress)

    def _try_rules(self) -> None:
        """Try instances of the rules of the pass, as far as it changes them."""
        for jaxpr in programs_of_rules(self.step):
            if self._made(jaxpr) != jaxpr:
                _try_program(self.trials, jaxpr, PROBE_SEEDS, self.progress)

    def _in_catalogue(self) -> list[tuple[Jaxpr, Jaxpr]]:
        """Return the programs of all pairs of primitives that a pass changes that changes few."""
        pairs = self.changes.pairs
        few = len(pairs) < ENOUGH and self.each is None
        if not few and len(changed_parts(pairs).kinds) > FEW_KINDS:
            return []
        made = [(jaxpr, self._made(jaxpr)) for jaxpr in catalogue()]
        return [pair for pair in made if pair[0] != pair[1]]

    def _made(self, jaxpr: Jaxpr) -> Jaxpr:
        """Return the program that the pass returns; where it fails, one that is no other's."""
        return self.step(jaxpr).value_or(FAILED)

    def try_slices(self, pairs: Sequence[tuple[Jaxpr, Jaxpr]]) -> None:
        """Try the equations that the pass, and each of its parts, changes, as programs."""
        whole = [trial for trial in (self.kept, self.changes) if trial.broken is None]
        for jaxpr in changed_slices(self._made, pairs):
            self.slices += 1
            _try_program(whole, jaxpr, PROBE_SEEDS, self.progress)
            if self.is_broken:
                return
        for part in [] if self.each is None else self.each.parts.values():
            step = part.step
            made = changed_slices(
                lambda f: step(f).value_or(f),  # noqa: B023  # called at once
                [*part.pairs.items()][: PartTrial.MOST],
                PART_SLICES,
            )
            for jaxpr in made:
                for seed in PROBE_SEEDS:
                    if self.each is not None and self.each.broken is None:
                        self.each.try_part(part, jaxpr, seed)
                self.progress.step(self._note())

    def _tried_again(
        self, step: AnyPass, pairs: Sequence[tuple[Jaxpr, Jaxpr]], trials: Sequence[Trial]
    ) -> tuple[tuple[str, ...], tuple[App, ...]] | None:
        """Retry a pass that changed little; return steps and patterns for another round."""
        if not pairs or not _is_little(pairs):
            return None
        found = changed_parts(pairs)
        probed: dict[App, None] = {}
        for pattern, jaxpr in probes(step, found.patterns):
            probed[pattern] = None
            _try_program(trials, jaxpr, PROBE_SEEDS, self.progress)
        for jaxpr, _ in pairs[:RETRIED]:
            _try_program(trials, jaxpr, RETRY_SEEDS, self.progress)
        return found.steps, tuple(probed or found.patterns)

    def _note(self) -> str:
        return f", {len(self.changes.pairs)} programs changed"

    def try_random(self, wanted: WantedPrograms, examples: int, seed: int | str) -> None:
        """Try tenths of the examples: small programs, others, loops and references, calls."""
        plans = plans_of(wanted)
        for draw, tenths in plans:
            attempt_on(self.trials, self._progressing(draw), -(-examples * tenths // 10), seed)
        if self.calls is not None and not wanted.compiled:
            draw = plans[-1][0] if wanted.focus.conditions else redundant_programs(wanted)
            attempt_on([self.calls], self._progressing(draw), -(-examples // 10), seed)

    def _progressing(self, draw: Draw) -> Draw:
        """Return the generator, which reports progress."""

        def drawn(choose: RandomSource) -> Drawn:
            self.progress.step(self._note())
            return draw(choose)

        return drawn


def _is_little(pairs: Sequence[tuple[Jaxpr, Jaxpr]]) -> bool:
    """Return whether a pass changed few programs, or equations of few primitives."""
    return len(pairs) < ENOUGH or len(changed_parts(pairs).kinds) <= FEW_KINDS


def _may_have(features: Features, name: str) -> bool:
    """Return whether the features allow a kind of step of ``changed_parts``."""
    return features.refs if name.startswith("refs.") else name in features.control


def _try_program(trials: Sequence[Trial], jaxpr: Jaxpr, seeds: range, progress: Progress) -> None:
    for seed in seeds:
        progress.step()
        for trial in [trial for trial in trials if trial.broken is None]:
            if (jaxpr,) not in trial.stopped:
                trial.try_on((jaxpr,), seed)


def _check_conclusive(
    check: _Check, given: Sequence[Jaxpr], conditions: Sequence[Condition], bounds: str
) -> None:
    """Raise Inconclusive if no evaluation of the caller's programs ended, or none is in focus."""
    stopped = [jaxpr for jaxpr in given if (jaxpr,) in check.kept.stopped]
    if stopped and len(stopped) == len(given):
        raise Inconclusive(
            "no evaluation of the programs ended within its bounds",
            expected="programs that end on random inputs and on special values",
            found=f"no end within {bounds}:\n{stopped[0]}",
            remedy="a `while` may count its iterations: `i < 100` in its condition",
        )
    for one in conditions:
        if one.is_required and not any(map(one.meets, check.changes.made)):
            raise Inconclusive(
                f"no program meets the focus {one.name}",
                expected="programs that meet it, to try the pass on",
                found=f"{len(check.changes.made)} programs, none of which does",
                remedy="pass one: `programs=`; or `focus=` of what it has, and more `examples=`",
            )


def _report(
    check: _Check,
    guarantees: tuple[Guarantee, ...],
    conditions: Sequence[Condition],
    bounds: str,
    allow_unchanged: bool,
) -> PassReport:
    changes = check.changes
    pairs, programs = changes.pairs, len(changes.made)
    if not pairs and check.calls is not None:
        # It may look for calls of the host.
        pairs, programs = check.calls.pairs, programs + len(check.calls.made)
    if not pairs and not allow_unchanged:
        raise Inconclusive(
            f"the pass {check.step} changed no program",
            expected="a pass that changes some of them",
            found=f"{programs} programs, none of them changed",
            remedy="pass what it looks for: `focus=` a primitive, a pattern, a rule or a "
            "predicate, or `programs=` some of your own; or `allow_unchanged=True`",
        )
    before, after = (sum(size(pair[i]) for pair in pairs) for i in (0, 1))
    stopped = {drawn for trial in check.every for drawn in trial.stopped}
    return PassReport(
        str(check.step),
        guarantees,
        programs,
        len(pairs),
        before,
        after,
        changed_parts(pairs).kinds,
        tuple([(one.name, sum(map(one.meets, changes.made))) for one in conditions]),
        check.slices,
        len(stopped),
        check.kept.skipped,
        bounds if stopped else "",
    )
