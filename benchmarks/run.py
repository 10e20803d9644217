"""Compare the speed of effax and JAX, and print a table.

    python benchmarks/run.py [--quick] [--only PATTERN] [--json FILE]

The exit status is 0 also if budgets are not met.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from measure import QUICK, Case, Effort, Measured, measure

MAX_RATIO = 1.25
"""The greatest ratio of the times for an equation in programs of 10,000 and of 100."""
MAX_EXPONENT = 1.05
"""The greatest exponent of time, in the size of the result, that counts as linear."""

SIZES = (100, 1_000, 10_000)
DEPTHS = 6
SCALED = ("trace", "jvp", "vmap", "grad", "check", "print")


@dataclass(frozen=True)
class Row:
    """One line of the report."""

    name: str
    effax: str
    jax: str
    ratio: str = ""
    median: str = ""
    budget: str = ""
    met: bool | None = None
    repetitions: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the columns."""
        met = "" if self.met is None else "yes" if self.met else "NO"
        return (
            self.name,
            self.effax,
            self.jax,
            self.ratio,
            self.median,
            self.budget,
            met,
            self.repetitions,
        )


HEAD = ("", "effax µs", "JAX µs", "ratio", "of medians", "budget", "met", "repetitions")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _options(argv)
    # Threads of OpenBLAS spin while they wait, which dominates times on a busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import theirs
    except ImportError:
        print("JAX is not installed; a comparison needs it (pip install 'effax[bench]').")
        return 0
    effort = QUICK if options.quick else Effort()
    if options.quick and options.on_devices:
        effort = replace(effort, seconds=0.5)
    sizes = SIZES[:2] if options.quick else SIZES
    depths = 4 if options.quick else DEPTHS
    if not options.on_devices:
        print(_preamble(theirs.VERSION, effort), flush=True)
        print(_line(HEAD), flush=True)
    results: list[Measured] = []
    for case in _divided(options.quick) if options.on_devices else _cases(sizes, depths):
        if re.search(options.only, case.name):
            _run(case, effort, results)
    for row in (*_linearity(results, sizes), *_growth(results)):
        print(_line(row.cells()))
    if options.json is not None:
        records = json.loads(options.json.read_text()) if options.on_devices else []
        records += [_record(m) for m in results]
        options.json.write_text(json.dumps(records, indent=1) + "\n")
    if not options.on_devices:
        _run_on_devices(sys.argv[1:] if argv is None else argv)
        if re.search(options.only, "psum of 1 kB, 2 processes"):
            for count in (2,) if options.quick else (2, 4):
                _run_on_processes(count, options.quick)
    return 0


def _run_on_devices(argv: Sequence[str]) -> None:
    """Run the cases for several devices, whose number is fixed when XLA starts, in a process."""
    env = {**os.environ, "JAX_NUM_CPU_DEVICES": "8"}
    subprocess.run([sys.executable, __file__, *argv, "--on-devices"], env=env, check=False)


def _run_on_processes(count: int, quick: bool) -> None:
    """Run the cases for processes of one device each."""
    from effax.lowering.xla.processes import free_port

    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    worker = [str(Path(__file__).with_name("processes.py")), address, *["--quick"] * quick]
    launch = [sys.executable, "-m", "effax.launch", "-n", str(count), "--devices", "1", *worker]
    done = subprocess.run(launch, capture_output=True, text=True, check=False, timeout=600)
    for line in done.stdout.splitlines():
        if '"case"' in line:
            found = json.loads(line[line.index("{") :])
            ours, theirs = found["times"]
            least, median = theirs[0] / ours[0], theirs[1] / ours[1]
            row = Row(
                found["case"],
                _micros(ours[0]),
                _micros(theirs[0]),
                _times(least),
                _times(median),
                "level",
                min(least, median) >= found["budget"],
                str(found["repetitions"]),
            )
            print(_line(row.cells()), flush=True)
    if done.returncode:
        print(f"psum: {count} processes: not measured: {done.stderr[-300:]}", flush=True)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time effax against JAX.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, smaller programs")
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases with this in the name")
    parser.add_argument("--on-devices", action="store_true", help="the cases for several devices")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write times to a file, but those of several processes",
    )
    return parser.parse_args(argv)


def _cases(sizes: tuple[int, ...], depths: int) -> Iterable[Case]:
    import cases
    import compiled
    import compiling
    import eager
    import starting

    full = len(sizes) > 2
    # Time calls first, while the heap is small.
    yield from cases.call_cases()
    yield from eager.eager_cases()
    yield from compiled.compiled_cases()
    yield from compiling.compiling_cases(full)
    yield from cases.program_cases(sizes)
    yield from cases.function_cases(1_000 if full else 100)
    yield from cases.growth_cases(depths)
    yield from starting.starting_cases(full)


def _divided(quick: bool) -> Iterable[Case]:
    import divided

    yield from divided.divided_cases(quick)


def _run(case: Case, effort: Effort, results: list[Measured]) -> None:
    try:
        measured = measure(case, effort)
    except Exception as error:  # noqa: BLE001  a failure must not end the report
        print(f"{case.name:<26}not measured: {type(error).__name__}: {error!s:.200}", flush=True)
        return
    results.append(measured)
    print(_line(_row(measured).cells()), flush=True)


def _row(m: Measured) -> Row:
    budget = m.case.budget
    met = None if budget is None else min(m.ratio, m.median_ratio) >= budget
    shown = "" if budget is None else "level" if budget < 1 else f"{budget:g}"
    ours, theirs = m.least
    return Row(
        m.case.name,
        _micros(ours),
        _micros(theirs),
        _times(m.ratio),
        _times(m.median_ratio),
        shown,
        met,
        str(m.repetitions),
    )


def _linearity(results: Sequence[Measured], sizes: tuple[int, ...]) -> Iterable[Row]:
    """Yield the ratio of the times for an equation in the largest and the smallest programs."""
    by_name = {m.case.name: m for m in results}
    for what in SCALED:
        small, large = (by_name.get(f"{what} {n:,}") for n in (sizes[0], sizes[-1]))
        if small is None or large is None:
            continue
        ours, its = (b / a for a, b in zip(small.least, large.least, strict=True))
        name = f"{what}: {sizes[-1]:,} / {sizes[0]:,}"
        yield Row(name, f"×{ours:.2f}", f"×{its:.2f}", "", "", f"×{MAX_RATIO}", ours <= MAX_RATIO)


def _growth(results: Sequence[Measured]) -> Iterable[Row]:
    """Yield the exponent of the time of nested ``grad`` in the size of its result."""
    nested = [m for m in results if m.case.name.startswith("grad nested")]
    if len(nested) < 4:
        return
    first, last = nested[-3], nested[-1]
    ours, its = (
        _exponent(first.least[i] * u, last.least[i] * v, u, v)
        for i, (u, v) in enumerate(zip(first.units, last.units, strict=True))
    )
    yield Row(
        "grad nested: exponent", f"{ours:.2f}", f"{its:.2f}", "", "", "1", ours <= MAX_EXPONENT
    )


def _exponent(time: float, later: float, size: int, larger: int) -> float:
    return math.log(later / time) / math.log(larger / size)


def _preamble(jax_version: str, effort: Effort) -> str:
    import effax

    return f"""\
effax {effax.__version__} against JAX {jax_version}, Python {platform.python_version()}, \
{os.cpu_count()} CPUs.
CPU time of the process in microseconds, on several devices wall time, for an equation of the
program or a call: the minimum of {effort.least} to {effort.most} warm repetitions of each side,
alternating, without gc.
ratio: JAX's minimum over effax's; a budget is met if the ratio and the ratio of medians reach it.
"level" has a tolerance of a tenth. Nested grad: for an equation of each side's own result.
"""


def _line(cells: Sequence[str]) -> str:
    widths = (26, 10, 10, 8, 12, 8, 5, 13)
    rest = [f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return f"{cells[0]:<{widths[0]}}" + "".join(rest)


def _micros(seconds: float) -> str:
    micros = seconds * 1e6
    return f"{micros:.2f}" if micros < 100 else f"{micros:,.0f}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio >= 2 else f"{ratio:.2f}"


def _record(m: Measured) -> dict[str, object]:
    return {
        "case": m.case.name,
        "budget": m.case.budget,
        "ratio": m.ratio,
        "ratio_of_medians": m.median_ratio,
        "units": m.units,
        "effax": {"cpu": m.effax.cpu, "wall": m.effax.wall},
        "jax": {"cpu": m.jax.cpu, "wall": m.jax.wall},
    }


if __name__ == "__main__":
    sys.exit(main())
