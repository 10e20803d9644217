"""Compiled calls whose results are tested for nans, while ``debug_nans`` is on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax import tree
from effax.api.dispatch import Runner
from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.arrays.exclusive import exclusively
from effax.arrays.invalid_values import invalid_name, invalid_value
from effax.arrays.ref import EagerRef
from effax.arrays.tracing import FlatFunction
from effax.ir.primitive import Value


def watched_runner(run: Runner, flat: FlatFunction, watched: Sequence[str], label: str) -> Runner:
    """Return the run of a compiled call that tests its results and the contents of references.

    Args:
        run: the run.
        flat: the traced function.
        watched: the names of the tests.
        label: the name of the function.

    Returns:
        A run that raises ``InvalidValue`` if a test holds; references are then as before.
    """

    def run_watched(leaves: Sequence[object]) -> object:
        operands = [*flat.consts, *leaves]
        refs = [x for x in operands if isinstance(x, EagerRef)]
        before = {id(ref): ref.read_now() for ref in refs}
        result = run(leaves)
        values = [np.asarray(x.numpy()) for x in tree.leaves(result) if isinstance(x, Array)]
        alive = [ref for ref in refs if ref._ended is None]
        name = invalid_name([*values, *[ref.read_now() for ref in alive]], watched)
        if name is None:
            return result
        args = [before[id(x)] if id(x) in before else _value(x) for x in operands]
        for ref in alive:
            _restore(ref, before[id(ref)])
        raise invalid_value(flat.jaxpr, args, name, label)

    return run_watched


def _value(x: object) -> Value:
    return np.asarray(as_value(x).numpy())


def _restore(ref: EagerRef, contents: Value) -> None:
    def put() -> None:
        ref.memory()[...] = contents

    exclusively((ref,), put)
