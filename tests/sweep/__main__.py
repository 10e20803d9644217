"""Compile groups of cases, each in one program, and compare them with eager evaluation.

Each line of the input is a group: a family and the numbers of its cases. ``BEGIN`` is printed
before a group, so that the caller knows which group ended the process.
"""

# ruff: noqa: T201  # tables of small functions, and output

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import effax
from effax.ir.errors import EffaxError, LoweringError
from tests.sweep.cases import Case, cases_of

jax: Any = effax
USER_ERRORS = (EffaxError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
Expected = tuple[Case, Any]


def evaluated(cases: Sequence[Case]) -> Iterator[Expected]:
    """Yield the cases that are well typed, with their values by eager evaluation."""
    for case in cases:
        try:
            yield case, case.run(jax.numpy.asarray(case.argument()))
        except USER_ERRORS:
            continue


def faults(cases: Sequence[Expected]) -> Iterator[str]:
    """Compile all cases in one program; bisect to those at fault."""
    if not cases:
        return
    try:
        found = jax.jit(lambda *xs: [c.run(x) for (c, _), x in zip(cases, xs, strict=True)])(
            *[jax.numpy.asarray(c.argument()) for c, _ in cases]
        )
    except USER_ERRORS as error:
        if len(cases) == 1:
            kind = "refused" if isinstance(error, LoweringError) else "fails compiled only"
            yield f"{cases[0][0]}: {kind}: {error}"
            return
        half = len(cases) // 2
        yield from faults(cases[:half])
        yield from faults(cases[half:])
        return
    for (case, expected), value in zip(cases, found, strict=True):
        wrong = difference(expected, value)
        if wrong:
            yield f"{case}: {wrong}"


def difference(expected: Any, found: Any) -> str:
    """Return how two trees of arrays differ; empty if they are equal up to rounding."""
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"eager {a.dtype}{a.shape}, compiled {b.dtype}{b.shape}"
        u, v = np.asarray(a), np.asarray(b)
        if u.dtype.kind not in "?bui":
            u, v = u.astype("complex128"), v.astype("complex128")
        with np.errstate(all="ignore"):
            if not np.allclose(u, v, 3e-2, 3e-3, equal_nan=True):
                return f"eager {u.ravel()[:4]}, compiled {v.ravel()[:4]}"
    return ""


def main(lines: Iterator[str], say: Callable[[str], None]) -> None:
    """Run each group of the input."""
    with effax.enable_x64():
        for line in lines:
            family, *numbers = line.split()
            say(f"BEGIN {line.strip()}")
            every = list(cases_of(family))
            for fault in faults(list(evaluated([every[int(n)] for n in numbers]))):
                say(f"FAULT {fault!r}")
    say("DONE")


main(iter(sys.stdin.readline, ""), lambda text: print(text, flush=True))
