"""The library's own passes, as values; each is a function of :mod:`effax.transforms`."""

from __future__ import annotations

from typing import Final

from effax.passes.steps import SIMPLIFIES, Pass
from effax.transforms.dce import dce
from effax.transforms.inline import inline

dead_code: Final = Pass("dce", lambda jaxpr: dce(jaxpr).map(lambda made: made.jaxpr), SIMPLIFIES)
inline_calls: Final = Pass("inline", inline, SIMPLIFIES)
