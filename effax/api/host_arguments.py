"""NumPy arrays and numbers as arguments of compiled calls.

A transfer of an array to XLA takes as long as a small call. A program that only reads its arguments
runs on copies in memory that its calls reuse, each call on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from effax.api.dispatch import Runner
from effax.api.ref_calls import PLAIN, buffer_of
from effax.api.static import StaticArgs
from effax.arrays.device_array import DeviceArray
from effax.ir.types import ArrayType, Type
from effax.lowering import xla
from effax.lowering.program import CompiledProgram
from effax.lowering.xla import Buffer

MOST_BYTES: Final = 1 << 14
"""The size of the largest array for which memory is kept: beyond it, to copy is what takes time."""

_Convert: TypeAlias = Callable[[object], object]
_Pick: TypeAlias = Callable[[Sequence[object]], Sequence[object]]


class _Copy:
    """Memory that XLA reads, and NumPy writes between calls."""

    __slots__ = ("_buffer", "memory")

    def __init__(self, type_: ArrayType) -> None:
        self._buffer: Buffer = xla.new_ref_buffer(np.zeros(type_.shape, type_.dtype))
        self.memory: np.ndarray = xla.raw_view(self._buffer)


def leaves_arguments_alone(program: CompiledProgram) -> bool:
    """Return whether a program is done with the memory of its arguments when a call returns."""
    run = program.executable
    changes = program.donated or program.discharged.refs or run.calls_python or run.devices
    return not (changes or xla.backend().asynchronous)


def call_in_order(
    run: Runner,
    reads: bool,
    static: StaticArgs,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    leaves: Sequence[object],
    types: Sequence[Type],
) -> Runner | None:
    """Return the function that runs a call on its arguments in the order in which they are passed.

    These are static arguments and host values too. None if arguments are trees.

    Args:
        run: the function that runs it on its leaves, as arrays and references.
        reads: whether its program :func:`leaves_arguments_alone`.
        static: the static arguments.
        args: the positional arguments of one such call.
        kwargs: its keyword arguments.
        leaves: its leaves.
        types: the types of these.
    """
    values = [*args, *kwargs.values()]
    names = sorted([name for name in kwargs if name not in static.names])
    order = [i for i in range(len(args)) if i not in static.nums]
    order += [len(args) + list(kwargs).index(name) for name in names]
    if len(order) != len(leaves) or not all(
        x is values[i] for x, i in zip(leaves, order, strict=True)
    ):
        return None
    on_hosts = _on_hosts(run, reads, leaves, types)
    return on_hosts if order == [*range(len(values))] else _picked(on_hosts, order)


def _picked(run: Runner, order: Sequence[int]) -> Runner:
    if len(order) > 1:
        pick: _Pick = itemgetter(*order)
        return lambda values: run(pick(values))
    return lambda values: run([values[i] for i in order])


def _on_hosts(run: Runner, reads: bool, leaves: Sequence[object], types: Sequence[Type]) -> Runner:
    """Return a run that takes NumPy arrays and numbers where these leaves are ones."""
    hosts = [
        (i, t, _is_copied(x, t) and reads)
        for i, (x, t) in enumerate(zip(leaves, types, strict=True))
        if isinstance(t, ArrayType) and not isinstance(x, DeviceArray)
    ]
    copied = [(i, t) for i, t, is_copied in hosts if is_copied]
    others = [(i, t) for i, t, is_copied in hosts if not is_copied]
    return _on_arrays(_on_copies(run, copied) if copied else run, others)


def _is_copied(x: object, type_: ArrayType) -> bool:
    is_small = 0 < type_.size * type_.dtype.itemsize <= MOST_BYTES
    return is_small and isinstance(x, np.ndarray | np.generic) and x.dtype == type_.dtype in PLAIN


def _on_arrays(run: Runner, places: Sequence[tuple[int, ArrayType]]) -> Runner:
    def run_on_arrays(leaves: Sequence[object]) -> object:
        leaves = [*leaves]
        for i, type_ in places:
            leaves[i] = DeviceArray(None, type_, buffer_of(leaves[i]))
        return run(leaves)

    return run_on_arrays if places else run


def _on_copies(run: Runner, places: Sequence[tuple[int, ArrayType]]) -> Runner:
    free: list[Sequence[tuple[int, _Copy]]] = []

    def run_on_copies(leaves: Sequence[object]) -> object:
        try:
            copies = free.pop()
        except IndexError:
            copies = [(i, _Copy(type_)) for i, type_ in places]
        leaves = [*leaves]
        for i, copy in copies:
            copy.memory[...] = leaves[i]
            leaves[i] = copy
        result = run(leaves)
        free.append(copies)
        return result

    return run_on_copies
