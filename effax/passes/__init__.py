"""Passes as values: the library's own, yours, and how they compose, run and are watched.

::

    from effax.passes import Pass, cse, dce, fixpoint, fold, watch

    mine = Pass("mine", lambda jaxpr: Success(jaxpr))
    small = mine | fixpoint(fold | cse | dce)
    print(watch(small, program))  # time and size of each pass
    fast = jit(f, passes=small)
"""

from __future__ import annotations

from effax.passes.library import (
    ALL,
    accumulate,
    cse,
    dce,
    dead_stores,
    fold,
    forward_stores,
    fuse_accumulations,
    hoist,
    inline,
    loop_carries,
    optimize,
    simplify,
    unroll,
    unroll_to,
)
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
    "ALL",
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
    "accumulate",
    "bisect",
    "cse",
    "dce",
    "dead_stores",
    "dump",
    "fixpoint",
    "fold",
    "forward_stores",
    "fuse_accumulations",
    "hoist",
    "inline",
    "loop_carries",
    "optimize",
    "passes_of",
    "pipeline",
    "simplify",
    "unroll",
    "unroll_to",
    "verified",
    "watch",
    "when",
]
