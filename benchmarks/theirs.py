"""JAX's own passes, as they are reached in each version of it: on what ``jax.make_jaxpr`` gives."""

from __future__ import annotations

from typing import Any

import jax
from jax._src import core
from jax._src.interpreters import ad, batching, partial_eval
from jax._src.state import discharge as state

BATCH = 4


def jvp(program: Any) -> Any:
    """With a tangent for every input."""
    return ad.jvp_jaxpr(program, [True] * len(program.in_avals), False)


def vmap(program: Any) -> Any:
    """With every input batched."""
    axis = batching.AxisData(core.no_axis_name, BATCH, None, None)
    return batching.batch_jaxpr(program, axis, [True] * len(program.in_avals), False)


def check(program: Any) -> Any:
    """Well-formedness."""
    return core.check_jaxpr(_open(program))


def dce(program: Any) -> Any:
    """With the first result used."""
    bare = _open(program)
    used = [i == 0 for i in range(len(bare.outvars))]
    return partial_eval.dce_jaxpr(bare, used)


def discharge(program: Any) -> Any:
    """References become values."""
    if hasattr(state, "discharge_state2"):
        return state.discharge_state2(program)
    try:
        return state.discharge_state(program)
    except TypeError:
        return state.discharge_state(program.jaxpr, program.consts)


def equations(program: Any) -> int:
    """How many equations there are, also in the programs inside."""
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
