"""The reference evaluator: what programs mean, on NumPy values.

A reference is a writable array, updated in place. Everything else is never written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from effax.ir.axes import open_program
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr, Lit


@lru_cache(maxsize=1 << 12)
def literal_value(lit: Lit) -> Value:
    """The NumPy value of a literal."""
    value = np.asarray(lit.value, lit.type.dtype)
    value.setflags(write=False)
    return value


def evaluate(jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
    """Run a program on NumPy values.

    Args:
        jaxpr: the program; its constants are among its binders.
        args: one array for each binder; for a reference, its buffer, which is written in place.

    Returns:
        One array for each result.

    Raises:
        UnboundAxis: the program has free axes; nothing is run.
    """
    if jaxpr.free_axes:
        raise open_program(jaxpr.free_axes, "evaluated")
    if len(args) != len(jaxpr.binders):
        raise ValueError(f"the program takes {len(jaxpr.binders)} arguments, not {len(args)}")
    env: list[Value | None] = [None] * jaxpr.size
    for v, value in zip(jaxpr.binders, args, strict=True):
        env[v.id] = value
    with np.errstate(all="ignore"):
        for prim, ins, outs, _, _ in jaxpr.eqns:
            values = [literal_value(a) if type(a) is Lit else env[a.id] for a in ins]
            results = prim.evaluate(*values)  # type: ignore[arg-type]  # bound before use
            for v, result in zip(outs, results, strict=True):
                env[v.id] = result
    return [literal_value(a) if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs]  # type: ignore[misc]  # bound before use
