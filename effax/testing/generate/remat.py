"""Steps of ``remat``."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import Kept, Remat, SavePolicy
from effax.testing.generate import refs
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.step import Generate, Steps
from effax.testing.generate.subjaxprs import arguments, call, inside, results

POLICIES = (
    None,
    SavePolicy(Kept.EVERYTHING),
    SavePolicy(Kept.DOTS),
    SavePolicy(Kept.THESE_NAMES, ("a",)),
    SavePolicy(Kept.ANYTHING_BUT_THESE_NAMES, ("a",)),
)


def remat(g: ProgramBuilder, generate: Generate) -> None:
    ins = arguments(g, 3)
    inner = inside(g, [v.type for v in ins], ins)
    generate(inner, 3)
    refs.consume_rest(inner)
    outs = results(inner, 3)
    flags = [inner.is_linear(v) for v in outs]
    call(g, Remat(inner.finish(outs), g.choose.pick(POLICIES)), ins, flags)


STEPS: Final = Steps(nested={"remat": (2, remat)})
