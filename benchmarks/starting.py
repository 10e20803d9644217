"""Costs of a process: its import, its first results, and a first step from a cache on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from measure import Case, Thunk

_IMPORT = "import {library} as lib, {library}.numpy as np"
_JIT = "{imports}; lib.jit(lambda x: np.sin(x) * x)(np.ones(3)).block_until_ready()"
_REF = """{imports}
r = lib.new_ref(np.zeros(3))
@lib.jit
def add(x):
    r[...] += x
add(np.ones(3))
print(r[...])
"""
_STEP = """
import sys, time
sys.path.insert(0, {here!r})
import compiling
from compiled import OURS as lib
f, *args = compiling.transformer(lib, 1.0)
args = [lib.top.tree.map(lib.np.asarray, arg) for arg in args]
lib.top.jit(lambda x: x + 1)(1.0)
start = time.perf_counter()
lib.top.jit(f)(*args)
print(time.perf_counter() - start)
"""


class _Spent:
    """Seconds that processes of cases have spent, as a clock."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


_spent = _Spent()


def starting_cases(full: bool) -> Iterator[Case]:
    """Yield processes with bytecode, in CPU time, and where ``full`` a step with a cache."""
    yield _process("start: import", 3, _IMPORT)
    yield _process("start: first jitted result", 2.5, _JIT)
    if full:
        yield _process("start: first update of a ref", 2.5, _REF)
        yield _cached_step()


def _process(name: str, budget: float, code: str) -> Case:
    def side(library: str) -> Callable[[int], Thunk]:
        imports = _IMPORT.format(library=library)
        text = code.format(library=library, imports=imports)
        return lambda _: lambda: _run_for_cpu_time(text)

    return Case(name, side("effax"), side("jax"), budget, fresh=False, clock=_spent)


def _run_for_cpu_time(code: str) -> None:
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    _spent.seconds += sum(after[2:4]) - sum(before[2:4])


def _cached_step() -> Case:
    """Return a case of one library: the first step of a second process, and of the first one."""
    folder = tempfile.TemporaryDirectory()
    code = _STEP.format(here=str(Path(__file__).parent))

    def prepare_cached(_: int) -> Thunk:
        # The folder is there as long as this function.
        cached = {**os.environ, "JAX_COMPILATION_CACHE_DIR": folder.name}
        _run_for_printed_time(code, cached)
        return lambda: _run_for_printed_time(code, cached)

    def prepare_plain(_: int) -> Thunk:
        return lambda: _run_for_printed_time(code, dict(os.environ))

    # The second side is this library too, without the cache.
    name = "start: step, cached / not"
    return Case(name, prepare_cached, prepare_plain, 10, fresh=False, clock=_spent)


def _run_for_printed_time(code: str, env: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", code], check=True, env=env, capture_output=True)
    _spent.seconds += float(done.stdout)
