"""JAX's passes on results of ``jax.make_jaxpr``, for each supported version of JAX."""

from __future__ import annotations

from typing import Any

import jax
from jax._src import core
from jax._src.interpreters import ad, batching, partial_eval
from jax._src.state import discharge as state

BATCH = 4


def jvp(program: Any) -> Any:
    """Apply jvp with a tangent for every input."""
    return ad.jvp_jaxpr(program, [True] * len(program.in_avals), False)


def vmap(program: Any) -> Any:
    """Apply vmap with every input batched."""
    axis = batching.AxisData(core.no_axis_name, BATCH, None, None)
    return batching.batch_jaxpr(program, axis, [True] * len(program.in_avals), False)


def check(program: Any) -> Any:
    """Check that a program is well formed."""
    return core.check_jaxpr(_open(program))


def dce(program: Any) -> Any:
    """Eliminate dead code, with only the first result used."""
    bare = _open(program)
    used = [i == 0 for i in range(len(bare.outvars))]
    return partial_eval.dce_jaxpr(bare, used)


def discharge(program: Any) -> Any:
    """Replace references by values."""
    if hasattr(state, "discharge_state2"):
        return state.discharge_state2(program)
    try:
        return state.discharge_state(program)
    except TypeError:
        return state.discharge_state(program.jaxpr, program.consts)


def equations(program: Any) -> int:
    """Return the number of equations, including those of subjaxprs."""
    count = 0
    for eqn in _open(program).eqns:
        count += 1
        for inner in core.jaxprs_in_params(eqn.params):
            count += equations(inner)
    return count


def _open(program: Any) -> Any:
    inner = getattr(program, "jaxpr", None)
    return program if inner is None else inner


VERSION = str(jax.__version__)
