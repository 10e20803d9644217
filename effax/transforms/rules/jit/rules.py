"""The rule set of ``jit`` and ``composite``, whose derivatives are those of a plain call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from effax.ir.prims import Composite, Jit
from effax.transforms.framework.rules import NO_RULES, Rules, RuleSet
from effax.transforms.rules.jit.discharge import call_discharge
from effax.transforms.rules.jit.jvp import call_jvp
from effax.transforms.rules.jit.partial_eval import jit_split
from effax.transforms.rules.jit.transpose import call_transpose
from effax.transforms.rules.jit.vmap import call_batch

B = TypeVar("B")
P = ParamSpec("P")
T = TypeVar("T")


def _of_plain(
    rule: Callable[Concatenate[B, Jit, P], T],
) -> Callable[Concatenate[B, Composite, P], T]:
    """Return the rule of a composite: that of the plain call."""

    def applied(b: B, prim: Composite, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return rule(b, prim.plain(), *args, **kwargs)

    return applied


RULES: Final[RuleSet] = NO_RULES.extend(
    Jit,
    Rules(
        jvp=call_jvp,
        transpose=call_transpose,
        batch=call_batch,
        split=jit_split,
        discharge=call_discharge,
    ),
).extend(
    Composite,
    Rules(
        jvp=_of_plain(call_jvp),
        transpose=_of_plain(call_transpose),
        batch=_of_plain(call_batch),
        split=_of_plain(jit_split),
        discharge=_of_plain(call_discharge),
    ),
)
