"""Times of psum over processes: a worker of ``effax.launch``, which prints a line for each size.

    python -m effax.launch -n 2 benchmarks/processes.py 127.0.0.1:PORT [--quick]

Both libraries join the same processes, each by its own service; JAX's listens on the address.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import divided
import jax
from compiled import LEVEL, OURS, THEIRS

import effax

REPETITIONS = 8


def main(address: str, quick: bool) -> None:
    """Time both sides by turns, in the same order in every process."""
    count, rank = effax.process_count(), effax.process_index()
    jax.distributed.initialize(address, count, rank)
    for name, size in list(divided.SIZES.items())[: 2 if quick else 3]:
        make = divided.psum_of(size)
        sides = [make(lib, len(lib.top.devices())) for lib in (OURS, THEIRS)]
        runs = max(1, min(50, (1 << 22) // size // 4))
        times: tuple[list[float], list[float]] = ([], [])
        for repetition in range(REPETITIONS + 1):
            for i in (0, 1) if repetition % 2 else (1, 0):
                spent = _timed(sides[i], runs)
                if repetition:
                    times[i].append(spent)
        if rank == 0:
            case = f"psum of {name}, {count} processes"
            shown = [(min(x), statistics.median(x)) for x in times]
            row = {"case": case, "times": shown, "budget": LEVEL, "repetitions": REPETITIONS}
            print(json.dumps(row))
    jax.distributed.shutdown()


def _timed(call: Callable[[], object], runs: int) -> float:
    start = time.perf_counter()
    for _ in range(runs):
        call()
    return (time.perf_counter() - start) / runs


if __name__ == "__main__":
    main(sys.argv[1], "--quick" in sys.argv)
