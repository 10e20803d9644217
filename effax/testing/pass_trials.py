"""The trials of a pass: its laws, the programs that it changes, and those of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from returns.result import Result

from effax.ir.analysis.queries import size
from effax.ir.errors import TransformError
from effax.ir.syntax import Jaxpr
from effax.passes.guarantees import Guarantee
from effax.passes.pipeline import AnyPass, Pass, Path, attempt, perform
from effax.testing import laws
from effax.testing.laws.guarantees import NotAFunction, check_function
from effax.testing.laws.law import Law
from effax.testing.laws.recording import with_all_calls
from effax.testing.laws.runner import Arguments, Drawn, Trial
from effax.testing.report.report import LawBroken


class Changes(Trial):
    """A trial that records the programs that the pass changes.

    Attributes:
        step: the pass.
        made: the program that it makes of each.
    """

    def __init__(self, law: Law[...], arguments: Arguments, step: AnyPass) -> None:
        super().__init__(law, arguments)
        self.step = step
        self.made: dict[Jaxpr, Jaxpr] = {}

    def try_on(self, drawn: Drawn, seed: int) -> None:
        jaxpr: Jaxpr = drawn[0]
        if jaxpr in self.made:
            return
        try:
            # Its result is kept: passes are most of the work of a check.
            self.made[jaxpr] = check_function(jaxpr, self.step)
        except Exception as error:  # noqa: BLE001  # a pass may raise anything
            self.fail(LawBroken(self.law, {"jaxpr": jaxpr, "step": self.step}, error), drawn, seed)

    @property
    def has_failed(self) -> bool:
        """Return whether the pass raised an error, which breaks its other laws too."""
        return self.broken is not None and not isinstance(self.broken.root, NotAFunction)

    @property
    def pairs(self) -> list[tuple[Jaxpr, Jaxpr]]:
        """The programs that the pass changed, before and after."""
        return [(jaxpr, made) for jaxpr, made in self.made.items() if made != jaxpr]


class Calls(Trial):
    """A trial of side effects that records the programs with calls that the pass changes.

    Attributes:
        step: the pass.
        made: the program that it makes of each program with calls of the host, unless it is large.
    """

    LARGEST: ClassVar = 400

    def __init__(self, arguments: Arguments, step: AnyPass) -> None:
        super().__init__(laws.pass_preserves_side_effects, arguments)
        self.step = step
        self.made: dict[Jaxpr, Jaxpr] = {}

    def try_on(self, drawn: Drawn, seed: int) -> None:
        super().try_on(drawn, seed)
        if self.broken is None and drawn not in self.stopped and size(drawn[0]) < self.LARGEST:
            jaxpr = with_all_calls(drawn[0], seed)
            self.made[jaxpr] = self.step(jaxpr).value_or(jaxpr)

    @property
    def pairs(self) -> list[tuple[Jaxpr, Jaxpr]]:
        """The programs that the pass changed, before and after."""
        return [(jaxpr, made) for jaxpr, made in self.made.items() if made != jaxpr]


class PartTrial(Trial):
    """A trial of one pass of a composition, on the programs that it is given there.

    Attributes:
        step: the pass.
        pairs: the programs that it changed, before and after.
    """

    MOST: ClassVar = 80
    """The number of programs on which it is tried, besides slices."""

    def __init__(self, step: Pass, arguments: Arguments) -> None:
        super().__init__(laws.pass_keeps_its_guarantees, arguments)
        self.step = step
        self.pairs: dict[Jaxpr, Jaxpr] = {}


class EachPart(Trial):
    """A trial of each pass of a composition.

    A pass may hide the faults of another: it removes the programs at which they show, or changes so
    much that few of these are tried.
    """

    def __init__(
        self, step: AnyPass, guarantees: Sequence[Guarantee], arguments: Arguments
    ) -> None:
        super().__init__(laws.pass_keeps_its_guarantees, arguments)
        self.step = step
        self.guarantees = guarantees
        self.parts: dict[Pass, PartTrial] = {}

    def try_on(self, drawn: Drawn, seed: int) -> None:
        given: list[tuple[PartTrial, Jaxpr]] = []

        def observed(part: Pass, path: Path, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
            result = attempt(part, jaxpr)
            made = result.value_or(jaxpr)
            trial = self._part(part)
            if made != jaxpr and jaxpr not in trial.pairs:
                if len(trial.pairs) < PartTrial.MOST:
                    given.append((trial, jaxpr))
                trial.pairs[jaxpr] = made
            return result

        perform(self.step, drawn[0], observed)
        for trial, jaxpr in given:
            self.try_part(trial, jaxpr, seed)
            if self.broken is not None:
                return

    def try_part(self, trial: PartTrial, jaxpr: Jaxpr, seed: int) -> None:
        """Try one pass on a program."""
        trial.try_on((jaxpr,), seed)
        if trial.broken is not None:
            self.fail(trial.broken, (jaxpr,), seed, trial.arguments)

    def _part(self, part: Pass) -> PartTrial:
        if part not in self.parts:
            laws_of = tuple([one for one in part.laws if one in self.guarantees])
            guarantees = laws_of if self.guarantees else part.laws
            self.parts[part] = PartTrial(
                part, {**self.arguments, "step": part, "guarantees": guarantees}
            )
        return self.parts[part]
