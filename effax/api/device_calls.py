"""Runs of compiled calls on other devices than the first one alone."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident

import numpy as np

from effax import tree
from effax.api.dispatch import Ready, Runner, check_aliases
from effax.arrays.device_calls import operand_buffer
from effax.arrays.device_plan import DevicePlan
from effax.arrays.exclusive import release, take
from effax.arrays.placed_array import PlacedArray
from effax.arrays.ref import EagerRef
from effax.ir.errors import LoweringError
from effax.lowering import xla
from effax.lowering.xla import Buffer, Placement


def device_runner(call: Ready, plan: DevicePlan) -> Runner:
    """Return the function that runs a call on the devices of its plan.

    An argument that is not placed is put where the compiler wants it, at each call; a reference
    that is not placed gets its new contents back.
    """
    executable = call.program.executable
    execute, places = executable.run, executable.in_places
    types, n_outs = call.jaxpr.in_types, len(call.out_types)
    out_types = plan.result_types(call.out_types, executable.out_places[:n_outs])
    donates = bool(call.program.donated or call.changed)

    def run(leaves: Sequence[object]) -> object:
        operands = [*call.consts, *leaves]
        if len(call.refs) > 1:
            check_aliases(call.jaxpr, call.consts, leaves)
        changed = [x for i in call.changed if isinstance(x := operands[i], EagerRef)]
        ticket = (get_ident(),)
        if changed:
            take(changed, ticket)
        try:
            triples = zip(operands, types, places, strict=True)
            buffers = [operand_buffer(x, t, p) for x, t, p in triples]
            if donates and len({*map(id, buffers)}) < len(buffers):
                raise _donated_twice()
            results = execute(buffers)
            pairs = zip(changed, results[n_outs:], executable.out_places[n_outs:], strict=True)
            for ref, new, place in pairs:
                _write_back(ref, new, place)
        finally:
            if changed:
                release(changed, ticket)
        made = [PlacedArray(t, x) for t, x in zip(out_types, results, strict=False)]
        return made[0] if call.is_leaf else tree.unflatten(call.out_tree, made)

    return run


def _donated_twice() -> LoweringError:
    return LoweringError(
        "a call that donates an argument has an argument twice",
        expected="each donated at most once, and not read by another argument",
        found="one array as two arguments",
        remedy="copy it: `jnp.copy(x)`",
    )


def _write_back(ref: EagerRef, new: Buffer, place: Placement) -> None:
    whole = xla.buffer_contents(xla.gathered(new, place), ref.type.inner)
    np.copyto(ref.memory(), whole)
