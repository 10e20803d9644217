"""Watch a pipeline run: verify, record and time each pass, and find the pass at fault.

A run is data: print it, query its differences, write it to a folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
from effax.ir.types import ArrayType, Type
from effax.lazy.dataclasses import dataclass
from effax.passes.pipeline import AnyPass, Pass, Path, attempt, check_program, passes_of, perform


class Broken(TransformError):
    """A pass returned a program that is not well formed, or of another type."""


@dataclass(frozen=True)
class Record:
    """The run of one pass.

    Attributes:
        name: the name of the pass.
        path: the combinators around it: positions in pipelines, rounds of fixpoints.
        before: the program before it.
        after: the program that it returned; None if it failed.
        seconds: its duration, without verification.
    """

    name: str
    path: Path
    before: Jaxpr
    after: Jaxpr | None
    seconds: float

    @cached_property
    def sizes(self) -> tuple[int, int | None]:
        """The number of equations before and after, subjaxprs included."""
        return size(self.before), None if self.after is None else size(self.after)

    @property
    def changed(self) -> bool:
        """True if the pass returned a different program."""
        return self.after is not None and self.after != self.before

    @cached_property
    def diff(self) -> Diff | None:
        """The difference; None if it failed."""
        return None if self.after is None else diff(self.before, self.after)

    @property
    def title(self) -> str:
        """Its name and path."""
        return f"{self.name} ({' / '.join(self.path)})" if self.path else self.name

    def __str__(self) -> str:
        before, after = self.sizes
        ends = "failed" if after is None else str(after)
        same = "" if self.changed or after is None else "  (no change)"
        return f"{self.title:<32} {1e3 * self.seconds:9.2f} ms {before:7} -> {ends}{same}"


What = Literal["before", "after", "diff"]


@dataclass(frozen=True)
class Run:
    """A run of a composition on a program, pass by pass.

    Attributes:
        given: the initial program.
        result: the final program, or the error.
        records: one entry for each pass that ran, in order.
    """

    given: Jaxpr
    result: Result[Jaxpr, TransformError]
    records: tuple[Record, ...]

    def unwrap(self) -> Jaxpr:
        """Return the final program. Raise the TransformError of a failure."""
        if isinstance(self.result, Failure):
            raise self.result.failure()
        return self.result.unwrap()

    @property
    def programs(self) -> tuple[Jaxpr, ...]:
        """The program at the start and after each pass that succeeded."""
        return (self.given, *(r.after for r in self.records if r.after is not None))

    def text(self, *what: What, all_passes: bool = False) -> str:
        """Return the programs before or after each pass, or the differences, as text.

        Args:
            what: ``"before"``, ``"after"``, ``"diff"`` (the default), or several.
            all_passes: whether to include passes that did not change the program.

        Raises:
            BadArgument: one of ``what`` is another value.
        """
        for part in what:
            if part not in get_args(What):
                raise BadArgument("unknown part of a run", ", ".join(get_args(What)), repr(part))
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


def watch(pass_: AnyPass | Sequence[AnyPass], jaxpr: Jaxpr, verify: bool = True) -> Run:
    """Run a pass, and record each pass in it.

    Args:
        pass_: a pass, a composition, or a sequence of passes.
        jaxpr: the program.
        verify: whether to check, after each pass, that the program is well formed and of the same
            type. If it is not, the run ends with ``Broken``, which names the pass.

    Raises:
        BadArgument: ``pass_`` is not a pass, or ``jaxpr`` not a program.
    """
    pass_, jaxpr = passes_of(pass_), check_program(jaxpr)
    records: list[Record] = []

    def recorded(one: Pass, path: Path, before: Jaxpr) -> Result[Jaxpr, TransformError]:
        start = perf_counter()
        result = attempt(one, before)
        seconds = perf_counter() - start
        after = result.unwrap() if isinstance(result, Success) else None
        records.append(Record(one.name, path, before, after, seconds))
        return verified(one, before, result) if verify else result

    result = perform(pass_, jaxpr, recorded)
    return Run(jaxpr, result, tuple(records))


def run_verified(pass_: AnyPass, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Run a pass, and verify the result once at the end; see :func:`verified`.

    If the result is not valid, run again and verify after each pass, to name the pass at fault.
    """
    result = verified(pass_, jaxpr, pass_(jaxpr))
    if isinstance(result, Failure) and isinstance(result.failure(), Broken):
        found = watch(pass_, jaxpr).result
        return found if isinstance(found, Failure) else result
    return result


def verified(
    pass_: AnyPass, before: Jaxpr, result: Result[Jaxpr, TransformError]
) -> Result[Jaxpr, TransformError]:
    """Return the result of a pass, or ``Broken`` unless it is a valid program of the same type."""
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
                    f"the pass {pass_} changes the types of the {what}",
                    expected=", ".join(map(str, old)) or "none",
                    found=", ".join(map(str, new)) or "none",
                    remedy=_same_types(old, new),
                )
            )
    return well_formed(str(pass_), after)


def _same_types(before: Sequence[Type], after: Sequence[Type]) -> str:
    """Return the remedy for a pass that changes types."""
    if len(before) != len(after):
        return "a transformation that changes inputs or results is a function, and not a pass"
    if all(map(_same_but_weak, before, after)):
        return "weakness is a part of a type: `ConvertElementType(dtype, weak_type)` changes it"
    return "convert the values back: `ConvertElementType(dtype, weak_type)`"


def _same_but_weak(first: Type, second: Type) -> bool:
    return (
        isinstance(first, ArrayType)
        and isinstance(second, ArrayType)
        and (first.strong() == second.strong())
    )


def well_formed(name: str, after: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Return the program of the named pass, or ``Broken`` if it is not well formed."""
    checked = check(after)
    if isinstance(checked, Success):
        return Success(after)
    faults = checked.failure()
    first = faults[0]
    every = f"{len(faults)} faults in all: `check` lists them" if len(faults) > 1 else None
    error = Broken(
        f"the pass {name} returns a program that is not well formed: {first.message}",
        first.expected,
        first.found,
        "; ".join(filter(None, [first.remedy, every])) or None,
    )
    error.at(first.equation, first.source)
    return Failure(error)


def dump(run: Run, folder: str | FilePath) -> list[FilePath]:
    """Write the programs of a run and the differences to a folder, numbered in order.

    Returns the files: ``00_given.jaxpr``, ``01_cse.jaxpr``, ``01_cse.diff``, ..., ``summary.txt``.
    Passes that did not change the program have no files. The folder is created if it does not
    exist; files of such names that an earlier run wrote are deleted.

    Raises:
        BadArgument: ``folder`` is a file.
    """
    place = FilePath(folder)
    if place.exists() and not place.is_dir():
        raise BadArgument("this is not a folder", "a folder, or a new path", str(place))
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
    """Return the name as a file name that is valid on every system."""
    return re.sub(r"[^0-9A-Za-z]+", "-", name).strip("-")[:60] or "pass"


class Culprit(NamedTuple):
    """The pass that breaks a property.

    Attributes:
        record: the run of the pass.
        position: its index among the passes that ran.
    """

    record: Record
    position: int

    def __str__(self) -> str:
        return f"{self.record.title}, pass {self.position} of the run:\n{self.record.diff}"


def bisect(
    pass_: AnyPass | Sequence[AnyPass], jaxpr: Jaxpr, holds: Callable[[Jaxpr], bool]
) -> Culprit | None:
    """Find the pass of a pipeline that breaks a property, by binary search over the programs.

    Args:
        pass_: the pipeline or list, run without verification.
        jaxpr: the initial program, for which the property holds.
        holds: the property. If several passes break it, one of them is found.

    Returns:
        The pass; None if the property holds at the end.

    Raises:
        BadArgument: the property does not hold for ``jaxpr``, or is not deterministic.
        TransformError: a pass failed before the property was broken.
    """
    if not holds(check_program(jaxpr)):
        raise BadArgument(
            "the property does not hold before the first pass",
            expected="a property of the initial program",
        )
    run = watch(pass_, jaxpr, verify=False)
    # Only passes that changed the program can have broken the property.
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
            "the property is not deterministic",
            expected="a function of the program alone",
            found=f"two answers on one program, near {run.records[changes[good]].title}",
            remedy="fix its inputs and seeds, or widen its tolerance",
        )
    return Culprit(run.records[changes[good]], changes[good])
