"""Forward mode of ``jit`` and ``remat``: a call of the differentiated jaxpr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import Jit, Remat
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import JvpOut, RuleBuilder
from effax.transforms.jvp import jvp, with_tangents


def call_jvp(
    b: RuleBuilder, prim: Jit | Remat, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    present = [t for t in tangents if t is not None]
    inner = jvp.cached(prim.jaxpr, tuple([t is not None for t in tangents]), False, b.rules)
    outs = b.emit(replace(prim, jaxpr=inner.jaxpr), [*primals, *present])
    return with_tangents(outs, inner.out_tangents)
