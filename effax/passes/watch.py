"""Watching a pipeline run: verification, what each pass did and took, and whose fault it is.

A run is data: print it, ask it for differences, write it to a folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as FilePath
from time import perf_counter
from typing import Final, Literal, NamedTuple, get_args

from returns.result import Failure, Result, Success

from effax.ir.analysis.check import check
from effax.ir.analysis.diff import Diff, diff
from effax.ir.analysis.queries import size
from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.passes.pipeline import Pass, Path, Step, attempt, check_program, passes_of, perform


class Broken(TransformError):
    """A pass gave a program that is not well formed, or that has other inputs or results."""


@dataclass(frozen=True)
class Record:
    """What one pass did.

    Attributes:
        name: the pass.
        path: the combinators that lead to it: the place in a pipeline, the round of a fixpoint.
        before: the program that it was given.
        after: what it gave; None where it failed.
        seconds: how long it took, verification aside.
    """

    name: str
    path: Path
    before: Jaxpr
    after: Jaxpr | None
    seconds: float

    @cached_property
    def sizes(self) -> tuple[int, int | None]:
        """The number of equations before and after, those of held programs included."""
        return size(self.before), None if self.after is None else size(self.after)

    @property
    def changed(self) -> bool:
        """Whether the pass gave another program than it was given."""
        return self.after is not None and self.after != self.before

    @cached_property
    def diff(self) -> Diff | None:
        """What it changed; None where it failed."""
        return None if self.after is None else diff(self.before, self.after)

    @property
    def title(self) -> str:
        """Its name, and where it stands."""
        return f"{self.name} ({' / '.join(self.path)})" if self.path else self.name

    def __str__(self) -> str:
        before, after = self.sizes
        ends = "failed" if after is None else str(after)
        same = "" if self.changed or after is None else "  (no change)"
        return f"{self.title:<32} {1e3 * self.seconds:9.2f} ms {before:7} -> {ends}{same}"


What = Literal["before", "after", "diff"]


@dataclass(frozen=True)
class Run:
    """A run of a step on a program, pass by pass.

    Attributes:
        given: the program that it started from.
        result: what came out, or why nothing did.
        records: one entry for each pass that ran, in order.
    """

    given: Jaxpr
    result: Result[Jaxpr, TransformError]
    records: tuple[Record, ...]

    def unwrap(self) -> Jaxpr:
        """The program that came out. Raises the TransformError where none did."""
        if isinstance(self.result, Failure):
            raise self.result.failure()
        return self.result.unwrap()

    @property
    def programs(self) -> tuple[Jaxpr, ...]:
        """The program at the start and after each pass that succeeded."""
        return (self.given, *(r.after for r in self.records if r.after is not None))

    def text(self, *what: What, all_passes: bool = False) -> str:
        """What passes did, as text: of each the program before, after, or the difference.

        Args:
            what: which of these; the difference where none is given.
            all_passes: also of passes that changed nothing.

        Raises:
            BadArgument: one of ``what`` is something else.
        """
        for part in what:
            if part not in get_args(What):
                raise BadArgument("a run has no such text", ", ".join(get_args(What)), repr(part))
        parts: list[str] = []
        for record in self.records:
            if all_passes or record.changed or record.after is None:
                parts.append(str(record))
                for part in what or ("diff",):
                    shown = getattr(record, part)
                    if shown is not None:
                        parts.append(f"{part}:\n{shown}")
        return "\n".join(parts)

    def __str__(self) -> str:
        total = sum(record.seconds for record in self.records)
        end = "ok" if isinstance(self.result, Success) else str(self.result.failure())
        lines = [*map(str, self.records), f"{'in all':<32} {1e3 * total:9.2f} ms  {end}"]
        return "\n".join(lines)


def watch(step: Step | Sequence[Step], jaxpr: Jaxpr, verify: bool = True) -> Run:
    """Run a step and keep what each pass did.

    Args:
        step: a pass, any composition, or several one after the other.
        jaxpr: the program.
        verify: whether the checker looks at the program after each pass, and whether its inputs
            and results still have their types. A program that fails ends the run with ``Broken``,
            which names the pass.

    Raises:
        BadArgument: ``step`` is no step, or ``jaxpr`` no program.
    """
    step, jaxpr = passes_of(step), check_program(jaxpr)
    records: list[Record] = []

    def seen(one: Pass, path: Path, before: Jaxpr) -> Result[Jaxpr, TransformError]:
        start = perf_counter()
        result = attempt(one, before)
        seconds = perf_counter() - start
        after = result.unwrap() if isinstance(result, Success) else None
        records.append(Record(one.name, path, before, after, seconds))
        return verified(one, before, result) if verify else result

    result = perform(passes_of(step), jaxpr, seen)
    return Run(jaxpr, result, tuple(records))


def run_verified(step: Step, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """What a step gives, looked at by the checker once at the end; see :func:`verified`.

    Where that is no valid program, the passes of the step are looked at one by one, so that the
    failure names the one that did it.
    """
    result = verified(step, jaxpr, step(jaxpr))
    if isinstance(result, Failure) and isinstance(result.failure(), Broken):
        found = watch(step, jaxpr).result
        return found if isinstance(found, Failure) else result
    return result


def verified(
    step: Step, before: Jaxpr, result: Result[Jaxpr, TransformError]
) -> Result[Jaxpr, TransformError]:
    """The result of a pass, or ``Broken`` where it is no valid program of the same type."""
    if not isinstance(result, Success):
        return result
    after = result.unwrap()
    for what, old, new in (
        ("inputs", before.in_types, after.in_types),
        ("results", before.out_types, after.out_types),
    ):
        if old != new:
            return Failure(
                Broken(
                    f"the pass {step} changes the types of the {what}",
                    expected=", ".join(map(str, old)) or "none",
                    found=", ".join(map(str, new)) or "none",
                )
            )
    return well_formed(str(step), after)


def well_formed(name: str, after: Jaxpr) -> Result[Jaxpr, TransformError]:
    """What a pass of that name gave, or ``Broken`` where it is no valid program."""
    checked = check(after)
    if isinstance(checked, Success):
        return Success(after)
    faults = checked.failure()
    first = faults[0]
    error = Broken(
        f"the pass {name} gives a program that is not well formed: {first.message}",
        first.expected,
        first.found,
        f"{len(faults)} faults in all: `check` lists them" if len(faults) > 1 else None,
    )
    error.at(first.equation, first.source)
    return Failure(error)


def dump(run: Run, folder: str | FilePath) -> list[FilePath]:
    """Write the programs of a run to a folder, numbered in order, and each pass's difference.

    Gives the files: ``00_given.jaxpr``, ``01_cse.jaxpr``, ``01_cse.diff``, ..., ``summary.txt``.
    Passes that changed nothing have no files of their own. The folder is made where there is none;
    what an earlier run left in it (files of such names) goes.

    Raises:
        BadArgument: there is a file in the place of the folder.
    """
    place = FilePath(folder)
    if place.exists() and not place.is_dir():
        raise BadArgument("runs are written to folders", "a folder, or none yet", str(place))
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        if _DUMPED.fullmatch(old.name):
            old.unlink()
    digits = max(2, len(str(len(run.records))))
    texts = {f"{0:0{digits}}_given.jaxpr": str(run.given)}
    for i, record in enumerate(run.records, 1):
        if record.changed:
            name = f"{i:0{digits}}_{_file_name(record.name)}"
            texts[f"{name}.jaxpr"] = str(record.after)
            texts[f"{name}.diff"] = str(record.diff)
    texts["summary.txt"] = str(run)
    for name, text in texts.items():
        (place / name).write_text(text + "\n", encoding="utf-8")
    return [place / name for name in texts]


_DUMPED: Final = re.compile(r"\d{2,}_.*\.(jaxpr|diff)|summary\.txt")


def _file_name(name: str) -> str:
    """What can be said of a name in that of a file, on every system."""
    return re.sub(r"[^0-9A-Za-z]+", "-", name).strip("-")[:60] or "pass"


class Culprit(NamedTuple):
    """The pass after which a property does not hold any more.

    Attributes:
        record: what the pass did.
        position: which of the passes that ran it is, from 0.
    """

    record: Record
    position: int

    def __str__(self) -> str:
        return f"{self.record.title}, pass {self.position} of the run:\n{self.record.diff}"


def bisect(
    step: Step | Sequence[Step], jaxpr: Jaxpr, holds: Callable[[Jaxpr], bool]
) -> Culprit | None:
    """The pass of a pipeline that breaks a property, found with few looks at programs.

    Args:
        step: the pipeline or list, run without verification.
        jaxpr: the program, of which the property holds.
        holds: the property. Where a pipeline breaks it more than once, one such pass is found.

    Returns:
        The pass; None where the property holds in the end.

    Raises:
        BadArgument: the property does not hold at the start, or it is not the same when it is asked
            for twice.
        TransformError: a pass failed before the property was broken.
    """
    if not holds(check_program(jaxpr)):
        raise BadArgument(
            "the property does not hold of the program before any pass",
            expected="a property of the given program",
        )
    run = watch(step, jaxpr, verify=False)
    # Only passes that changed something can have broken anything.
    changes = [i for i, record in enumerate(run.records) if record.changed]
    programs = [jaxpr, *(after for i in changes if (after := run.records[i].after) is not None)]
    good, bad = 0, len(changes)
    if not changes or holds(programs[bad]):
        if isinstance(run.result, Failure):
            raise run.result.failure()
        return None
    while bad - good > 1:
        middle = (good + bad) // 2
        if holds(programs[middle]):
            good = middle
        else:
            bad = middle
    if not holds(programs[good]) or holds(programs[bad]):
        raise BadArgument(
            "the property is not the same when it is asked for twice",
            expected="a function of the program alone",
            found=f"two answers on one program, near {run.records[changes[good]].title}",
            remedy="fix its inputs and seeds, or widen its tolerance",
        )
    return Culprit(run.records[changes[good]], changes[good])
