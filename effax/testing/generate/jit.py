"""Steps of ``jit`` and ``composite``."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import Composite, Jit
from effax.ir.types import RefType
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.step import Generate, Steps
from effax.testing.generate.subjaxprs import arguments, call, fill, inside, references, results


def jit(g: ProgramBuilder, generate: Generate) -> None:
    ins = [*references(g), *arguments(g, 3)]
    inner = inside(g, [v.type for v in ins], ins)
    fill(inner, generate, 3)
    outs = [] if inner.refs and g.choose.chance(25) else results(inner, 3)
    body = inner.finish(outs)
    is_pure = not body.effects and not any(isinstance(v.type, RefType) for v in ins)
    alone = is_pure and len(ins) == 1
    prim = Composite(body, "my.f", "k = 1 : i64") if alone else Jit(body, "f")
    call(g, prim, ins, [inner.is_linear(v) for v in outs])


STEPS: Final = Steps(nested={"jit": (3, jit)})
