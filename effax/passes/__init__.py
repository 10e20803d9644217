"""Passes as values: the library's own, yours, and how they compose, run and are watched.

::

    from effax.passes import Pass, cse, dce, fixpoint, fold, watch

    mine = Pass("mine", lambda jaxpr: Success(jaxpr))
    small = mine | fixpoint(fold | cse | dce)
    print(watch(small, program))  # time and size of each pass
    fast = jit(f, passes=small)
"""

from __future__ import annotations

from effax.passes.library import dead_code as dce
from effax.passes.library import inline_calls as inline
from effax.passes.steps import (
    SIMPLIFIES,
    Claim,
    Fixpoint,
    Pass,
    Pipeline,
    Step,
    Transform,
    When,
    fixpoint,
    passes_of,
    pipeline,
    when,
)
from effax.passes.watch import Broken, Culprit, Record, Run, bisect, dump, verified, watch

__all__ = [
    "SIMPLIFIES",
    "Broken",
    "Claim",
    "Culprit",
    "Fixpoint",
    "Pass",
    "Pipeline",
    "Record",
    "Run",
    "Step",
    "Transform",
    "When",
    "bisect",
    "dce",
    "dump",
    "fixpoint",
    "inline",
    "passes_of",
    "pipeline",
    "verified",
    "watch",
    "when",
]
