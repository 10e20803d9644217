"""Runs of compiled calls on other devices than the first one alone."""

from __future__ import annotations

from collections.abc import Sequence

from effax import tree
from effax.api.dispatch import Ready, Runner, check_aliases
from effax.arrays.device_calls import device_call
from effax.arrays.device_plan import DevicePlan


def device_runner(call: Ready, plan: DevicePlan) -> Runner:
    """Return the function that runs a call on the devices of its plan."""
    places = call.program.executable.out_places[: len(call.out_types)]
    out_types = plan.result_types(call.out_types, places)
    execute = device_call(call.program, call.jaxpr.in_types, out_types)

    def run(leaves: Sequence[object]) -> object:
        if len(call.refs) > 1:
            check_aliases(call.jaxpr, call.consts, leaves)
        made = execute([*call.consts, *leaves])
        return made[0] if call.is_leaf else tree.unflatten(call.out_tree, made)

    return run
