"""Passes as values: the library's passes, user-defined passes, composition and watching.

::

    from effax.passes import as_pass, cse, dce, fixpoint, fold, unwrap, watch


    @as_pass
    def mine(jaxpr):
        return jaxpr


    small = mine | fixpoint(fold | cse | dce)
    unwrap(small(program))  # the program; raises the error of a failure
    print(watch(small, program))  # time and size of each pass
    fast = jit(f, passes=small)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.passes.guarantees import EXACT, SIMPLIFIES, Guarantee
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
    from effax.passes.lift import Change, as_pass
    from effax.passes.pipeline import (
        AnyPass,
        Fixpoint,
        Pass,
        Pipeline,
        When,
        fixpoint,
        guarantees_of,
        passes_of,
        pipeline,
        when,
    )
    from effax.passes.watch import Broken, Culprit, Record, Run, bisect, dump, verified, watch
    from effax.transforms.framework.rewriter import Transform
    from effax.transforms.framework.runner import unwrap
else:
    __getattr__, __dir__ = _lazy(__name__)

__all__ = [
    "ALL",
    "EXACT",
    "SIMPLIFIES",
    "AnyPass",
    "Broken",
    "Change",
    "Culprit",
    "Fixpoint",
    "Guarantee",
    "Pass",
    "Pipeline",
    "Record",
    "Run",
    "Transform",
    "When",
    "accumulate",
    "as_pass",
    "bisect",
    "cse",
    "dce",
    "dead_stores",
    "dump",
    "fixpoint",
    "fold",
    "forward_stores",
    "fuse_accumulations",
    "guarantees_of",
    "hoist",
    "inline",
    "loop_carries",
    "optimize",
    "passes_of",
    "pipeline",
    "simplify",
    "unroll",
    "unroll_to",
    "unwrap",
    "verified",
    "watch",
    "when",
]
