"""Check many random functions: ``python -m tests.random_functions.run --count 1000 --jobs 2``.

Prints each seed that fails, and every minute how many were checked; ``--show SEED`` prints the
source of one.
"""

from __future__ import annotations

import argparse
import time
import traceback
from functools import partial
from multiprocessing import get_context

from tests.random_functions.checks import Skipped, check_seed
from tests.random_functions.generate import random_function


def outcome(seed: int, compiled_every: int) -> tuple[int, str, int]:
    """Return the seed, ``"right"``, ``"skipped"`` or what failed, and the number of comparisons."""
    try:
        return seed, "right", check_seed(seed, compiled=seed % compiled_every == 0)
    except Skipped:
        return seed, "skipped", 0
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        first = str(error).split("\n")[0]
        return seed, f"{type(error).__name__}: {first:.200} ({last.filename}:{last.lineno})", 0


def block(seeds: range, compiled_every: int) -> list[tuple[int, str, int]]:
    return [outcome(seed, compiled_every) for seed in seeds]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many functions")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument(
        "--compiled-every", type=int, default=7, help="which seeds are compiled too"
    )
    parser.add_argument("--show", type=int, help="print the source of a seed, and check it")
    options = parser.parse_args()
    if options.show is not None:
        print(random_function(options.show))
        print(check_seed(options.show), "comparisons agree")
        return 0
    begin, checked, failed, skipped, compared = time.monotonic(), 0, 0, 0, 0
    said = begin
    seeds = range(options.start, options.start + options.count)
    blocks = [seeds[i : i + 20] for i in range(0, len(seeds), 20)]
    check = partial(block, compiled_every=options.compiled_every)
    with get_context("spawn").Pool(options.jobs, maxtasksperchild=10) as pool:
        for results in pool.imap(check, blocks):
            checked += len(results)
            if time.monotonic() - said > 60:
                said = time.monotonic()
                print(f"{checked} of {len(seeds)} functions, {failed} failed", flush=True)
            for seed, what, count in results:
                compared += count
                skipped += what == "skipped"
                if what not in ("right", "skipped"):
                    failed += 1
                    print(f"seed {seed}: {what}", flush=True)
    print(
        f"{len(seeds)} functions, {compared} comparisons, {skipped} skipped, {failed} failed, "
        f"{time.monotonic() - begin:.0f} s"
    )
    return failed > 0


if __name__ == "__main__":
    raise SystemExit(main())
