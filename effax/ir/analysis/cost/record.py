"""The record of a program's cost, its table and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final, final

from effax.ir.work import Work
from effax.lazy.dataclasses import dataclass


@final
class WorkTable(Mapping[str, Work]):
    """An immutable map from names to work, the most operations first."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, Work]) -> None:
        ordered = sorted(rows.items(), key=lambda row: (_rank(row[1]), row[0]))
        self._rows: Final[dict[str, Work]] = dict(ordered)

    def __getitem__(self, name: str) -> Work:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __hash__(self) -> int:
        return hash(tuple(self._rows.items()))

    def __repr__(self) -> str:
        return f"WorkTable({self._rows})"


def _rank(work: Work) -> tuple[int, int]:
    return (-work.operations, -work.bytes_accessed)


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """The cost of a subjaxpr.

    Attributes:
        name: its path, ``2:scan.body/0:cond.branch 1``: positions of equations, their primitives,
            and regions.
        runs: how often it runs in one run of the whole program; at least, in a lower bound.
        each: the work of one run.
        line: the source line of its first equation that has one, else empty.
    """

    name: str
    runs: int
    each: Work
    line: str

    @property
    def total(self) -> Work:
        """The work of all runs."""
        return self.each * self.runs


@dataclass(frozen=True, slots=True)
class LoopCost:
    """A loop whose trip count depends on values.

    Attributes:
        name: its path, ``2:scan.body/0:while``.
        each: the work of one iteration, of the condition and of the body.
        line: its source line, or empty.
        trips: the trip count that was assumed; None: none, and only the first test of its
            condition is counted.
    """

    name: str
    each: Work
    line: str
    trips: int | None


@dataclass(frozen=True, slots=True)
class LiveValue:
    """A value that is live at the peak: its name, and its bytes."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run of a program.

    Attributes:
        total: the work of all equations, each as often as it runs.
        by_primitive: the same by the name of the primitive.
        by_line: the same by source line, ``file:line``; ``""`` for equations without one.
        programs: the subjaxprs, in program order, one entry for each distinct one.
        loops: the loops with an unknown trip count.
        argument_bytes: the bytes of the arguments, captured constants and references included.
        result_bytes: the bytes of the results.
        peak_bytes: the most bytes that are live at once.
        live_at_peak: the values that are live then, the largest first.
    """

    total: Work
    by_primitive: WorkTable
    by_line: WorkTable
    programs: tuple[ProgramCost, ...]
    loops: tuple[LoopCost, ...]
    argument_bytes: int
    result_bytes: int
    peak_bytes: int
    live_at_peak: tuple[LiveValue, ...]

    @property
    def flops(self) -> int:
        """The arithmetic operations, without transcendental functions."""
        return self.total.flops

    @property
    def transcendentals(self) -> int:
        """The elements of transcendental functions."""
        return self.total.transcendentals

    @property
    def bytes_read(self) -> int:
        """The bytes that equations read."""
        return self.total.bytes_read

    @property
    def bytes_written(self) -> int:
        """The bytes that equations write."""
        return self.total.bytes_written

    @property
    def bytes_accessed(self) -> int:
        """The bytes that equations read or write."""
        return self.total.bytes_accessed

    @property
    def collectives(self) -> int:
        """The exchanges of values between devices."""
        return self.total.collectives

    @property
    def collective_bytes(self) -> int:
        """The bytes that are exchanged between devices."""
        return self.total.collective_bytes

    @property
    def is_lower_bound(self) -> bool:
        """Return whether a loop runs an unknown number of times, of which none is counted."""
        return any(loop.trips is None for loop in self.loops)

    def as_dict(self) -> dict[str, object]:
        """Return the cost as dicts, lists, strings and integers."""
        return {
            **asdict(self.total),
            "argument_bytes": self.argument_bytes,
            "result_bytes": self.result_bytes,
            "peak_bytes": self.peak_bytes,
            "is_lower_bound": self.is_lower_bound,
            "by_primitive": {name: asdict(work) for name, work in self.by_primitive.items()},
            "by_line": {name: asdict(work) for name, work in self.by_line.items()},
            "programs": [asdict(program) for program in self.programs],
            "loops": [asdict(loop) for loop in self.loops],
            "live_at_peak": [asdict(live) for live in self.live_at_peak],
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return the cost as JSON, with the names of the attributes as keys.

        Args:
            indent: the spaces a level is indented by; None for one line.
        """
        import json

        return json.dumps(self.as_dict(), indent=indent)

    def __str__(self) -> str:
        least = "at least " if self.is_lower_bound else ""
        head = [
            least + _totals(self.total),
            f"peak {shown_bytes(self.peak_bytes)}, arguments {shown_bytes(self.argument_bytes)}",
        ]
        if self.collectives:
            exchanged = shown_bytes(self.collective_bytes)
            head.append(f"{scaled(self.collectives, 'collective')}, {exchanged} exchanged")
        head += [_loop_text(loop) for loop in self.loops]
        return "\n".join([*head, *_tables(self)])


ROWS: Final = 12
"""The most rows of a table in the text of a cost."""


def _totals(work: Work) -> str:
    operations = f"{scaled(work.flops, 'flop')}, {scaled(work.transcendentals, 'transcendental')}"
    read, written = shown_bytes(work.bytes_read), shown_bytes(work.bytes_written)
    return f"{operations}, {read} read, {written} written"


def _loop_text(loop: LoopCost) -> str:
    where = f" at {loop.line}" if loop.line else ""
    each = f"{scaled(loop.each.flops, 'flop')}, {shown_bytes(loop.each.bytes_accessed)}"
    if loop.trips is None:
        return f"{loop.name}{where}: unknown trip count, not counted; an iteration is {each}"
    return f"{loop.name}{where}: assumed trip count {loop.trips}; an iteration is {each}"


def _tables(cost: Cost) -> list[str]:
    lines = [(_short(name), work) for name, work in cost.by_line.items()]
    programs = [(f"{p.name} × {p.runs}", p.total) for p in cost.programs]
    parts = [
        ("primitive", list(cost.by_primitive.items())),
        ("line", lines),
        ("subjaxpr × runs", programs),
    ]
    return [text for title, rows in parts if rows for text in ("", *_table(title, rows))]


def _short(line: str) -> str:
    return line.replace("\\", "/").rpartition("/")[2] or "(no line)"


def _table(title: str, rows: Iterable[tuple[str, Work]]) -> list[str]:
    every = list(rows)
    cells = [(title, "flops", "transc.", "read", "written")]
    cells += [
        (
            name,
            scaled(work.flops, ""),
            scaled(work.transcendentals, ""),
            shown_bytes(work.bytes_read),
            shown_bytes(work.bytes_written),
        )
        for name, work in every[:ROWS]
    ]
    more = [f"({len(every) - ROWS} more)"] if len(every) > ROWS else []
    return [*_aligned(cells), *more]


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows with the first column to the left, and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]


UNITS: Final = ("", "k", "M", "G", "T", "P", "E")


def _in_units(count: int) -> tuple[str, str]:
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return (str(count) if unit == 0 else f"{value:.3g}"), UNITS[unit]


def scaled(count: int, what: str) -> str:
    """Return a count in powers of 1000: ``512 flops``, ``1.5 Mflops``; the bare number of ""."""
    number, unit = _in_units(count)
    plural = "" if number == "1" and not unit else "s"
    return f"{number} {unit}{what}{plural}" if what else f"{number}{unit}"


def shown_bytes(count: int) -> str:
    """Return a size in powers of 1000: ``512 B``, ``1.5 kB``, ``3.2 MB``."""
    number, unit = _in_units(count)
    return f"{number} {unit}B"
