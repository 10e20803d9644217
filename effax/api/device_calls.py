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

    consts, is_leaf, out_tree = call.consts, call.is_leaf, call.out_tree
    has_refs = len(call.refs) > 1

    def run(leaves: Sequence[object]) -> object:
        if has_refs:
            check_aliases(call.jaxpr, consts, leaves)
        made = execute([*consts, *leaves] if consts else leaves)
        return made[0] if is_leaf else tree.unflatten(out_tree, made)

    return run
