"""Groups of cases, run in subprocesses; a group that ends its process is split."""

# ruff: noqa: T201  # tables of small functions, and output

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tests.sweep.cases import FAMILIES, Case, cases_of

ROOT = Path(__file__).parents[2]
Group = tuple[str, tuple[int, ...]]


def groups_of(
    family: str, dtypes: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> Iterator[Group]:
    """Yield one group for each dtype and shape."""
    chosen = [
        (i, case)
        for i, case in enumerate(cases_of(family))
        if case.dtype in dtypes and case.shape in shapes
    ]

    def key(entry: tuple[int, Case]) -> tuple[str, tuple[int, ...]]:
        return entry[1].dtype, entry[1].shape

    for _, entries in groupby(sorted(chosen, key=key), key):
        yield family, tuple([i for i, _ in entries])


def faults_of(groups: Sequence[Group], seconds: float = 3000) -> Iterator[str]:
    """Run groups, and yield the faults: cases that end the process, are refused, or differ."""
    waiting = list(groups)
    while waiting:
        text = "\n".join(f"{family} {' '.join(map(str, numbers))}" for family, numbers in waiting)
        done = subprocess.run(
            [sys.executable, "-m", "tests.sweep"],
            cwd=ROOT,
            input=text + "\n",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
        lines = done.stdout.splitlines()
        yield from [line.removeprefix("FAULT ") for line in lines if line.startswith("FAULT ")]
        begun = sum(line.startswith("BEGIN ") for line in lines)
        if lines and lines[-1] == "DONE":
            return
        if not begun:
            raise RuntimeError(done.stderr)
        family, numbers = waiting[begun - 1]
        waiting = waiting[begun:]
        if len(numbers) == 1:
            case = list(cases_of(family))[numbers[0]]
            yield f"{case}: ends the process: {_reason(done.stderr)}"
        else:
            half = len(numbers) // 2
            waiting = [(family, numbers[:half]), (family, numbers[half:]), *waiting]


def _reason(report: str) -> str:
    lines = report.splitlines()
    return next((x for x in lines if "Check failed" in x or x.startswith("F")), " ".join(lines[:2]))


def main(dtypes: str, shapes: str, *families: str) -> None:
    """Print the faults of families, for dtypes and shapes that are separated by commas and ";"."""
    some = [tuple(int(n) for n in s.split(",") if n) for s in shapes.split(";")]
    for family in families or tuple(FAMILIES):
        for fault in faults_of(list(groups_of(family, dtypes.split(","), some))):
            print(family, fault[:400], flush=True)
        print("END", family, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
