"""The warm path of a compiled call: run it on buffers, and wrap its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Final, NamedTuple, Protocol, cast

from effax import tree
from effax.api.ref_calls import Execute, RefProgram, buffer_of, executor_with_refs
from effax.arrays.binding import Operand
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import Ref
from effax.arrays.tracing import FlatFunction
from effax.ir.syntax import Jaxpr
from effax.ir.trace import alias_error, identity
from effax.ir.types import ArrayType
from effax.lowering.program import CompiledProgram
from effax.lowering.xla import Buffer, Run
from effax.tree import PyTreeDef

Runner = Callable[[Sequence[object]], object]
"""A function that runs a compiled call on the leaves of its arguments."""

_LEAF: Final = tree.structure(0)


class _HasBuffer(Protocol):
    _buffer: Buffer


class Ready(NamedTuple):
    """A compiled call: all that is the same for each run.

    Attributes:
        program: the compiled program.
        jaxpr: the traced program, with the user's names; that of ``program`` is equal to it.
        consts: its first arguments: the arrays and references that are closed over.
        out_tree: the structure of the result.
        out_types: the types of its leaves.
        refs: positions, constants included, of the references.
        changed: positions, constants included, of the references that change.
        is_leaf: whether the result is one array.
    """

    program: CompiledProgram
    jaxpr: Jaxpr
    consts: tuple[Operand, ...]
    out_tree: PyTreeDef
    out_types: tuple[ArrayType, ...]
    refs: tuple[int, ...]
    changed: tuple[int, ...]
    is_leaf: bool


def ready(program: CompiledProgram, flat: FlatFunction) -> Ready:
    """Prepare a compiled program for calls with the structure of its function."""
    types = tuple([t for t in flat.jaxpr.out_types if isinstance(t, ArrayType)])
    done, is_leaf = program.discharged, flat.out_tree == _LEAF
    return Ready(
        program, flat.jaxpr, flat.consts, flat.out_tree, types, done.refs, done.changed, is_leaf
    )


def runner(call: Ready) -> Runner:
    """Return the function that runs a call; one without references is the fast case."""
    if call.refs or call.program.executable.calls_python:
        return partial(_run, call, _executor(call))
    run_buffers = call.program.executable.run
    return _pure_leaf(call, run_buffers) if call.is_leaf else _pure_tree(call, run_buffers)


def _pure_leaf(call: Ready, run_buffers: Run) -> Runner:
    """Return the run of a program that has no effects and one result."""
    (out_type,) = call.out_types
    consts = [buffer_of(x) for x in call.consts]

    def run_leaf(leaves: Sequence[object]) -> DeviceArray:
        try:
            buffers = [x._buffer for x in leaves]  # type: ignore[attr-defined]  # where it is missing, buffers are made; a cast costs 1%
            made = run_buffers(consts + buffers if consts else buffers)
        except (AttributeError, TypeError):
            # Nothing ran: an argument has no buffer yet, or is not an array of the library.
            made = run_buffers([*consts, *map(buffer_of, leaves)])
        return DeviceArray(None, out_type, made[0])

    return run_leaf


def _pure_tree(call: Ready, run_buffers: Run) -> Runner:
    """Return the run of a program that has no effects, whose result is a tree."""
    out_tree, out_types = call.out_tree, call.out_types
    consts = [buffer_of(x) for x in call.consts]
    is_tuple = out_tree == tree.structure((0,) * len(out_types))

    def run_tree(leaves: Sequence[object]) -> object:
        # As `run_leaf`.
        try:
            buffers = [x._buffer for x in leaves]  # type: ignore[attr-defined]  # likewise
            made = run_buffers(consts + buffers if consts else buffers)
        except (AttributeError, TypeError):
            made = run_buffers([*consts, *map(buffer_of, leaves)])
        results = [DeviceArray(None, t, x) for t, x in zip(out_types, made)]  # noqa: B905  # takes a tenth of the call
        return tuple(results) if is_tuple else tree.unflatten(out_tree, results)

    return run_tree


def run_call(call: Ready, leaves: Sequence[object]) -> object:
    """Run a call. Raises RefError, before it runs, where references are aliased."""
    return _run(call, _executor(call), leaves)


def _executor(call: Ready) -> Execute:
    """Return the function that runs a program on operands, with their buffers or new ones."""
    executable = call.program.executable
    if call.refs:
        program = RefProgram(executable, call.refs, call.changed, call.jaxpr.name_of)
        return executor_with_refs(program)
    execute = executable.run

    def with_python(operands: Sequence[object]) -> list[Buffer]:
        return execute([buffer_of(x) for x in operands])

    def on_device(operands: Sequence[object]) -> list[Buffer]:
        try:
            return execute([x._buffer for x in cast("Sequence[_HasBuffer]", operands)])
        except (AttributeError, TypeError):
            # Nothing ran: an argument has no buffer yet, or is not an array of the library.
            return with_python(operands)

    # A callback may raise the same exceptions: then the buffers are made first.
    return with_python if executable.calls_python else on_device


def _run(call: Ready, execute: Execute, leaves: Sequence[object]) -> object:
    _, jaxpr, consts, out_tree, types, refs, _, is_leaf = call
    operands: Sequence[object] = [*consts, *leaves] if consts else leaves
    if len(refs) > 1 and len({id(operands[i]) for i in refs}) < len(refs):
        check_aliases(jaxpr, consts, leaves)
    results = execute(operands)
    if is_leaf:
        return DeviceArray(None, types[0], results[0])
    # The results after those with a type are the new buffers of references.
    return tree.unflatten(out_tree, map(DeviceArray, repeat(None), types, results))


def check_aliases(jaxpr: Jaxpr, consts: Sequence[object], leaves: Sequence[object]) -> None:
    """Raise RefError for a reference that is passed twice, or passed and closed over."""
    n = len(consts)
    seen: dict[int, int] = {identity(c): -1 for c in consts if isinstance(c, Ref)}
    for i, x in enumerate(leaves):
        if not isinstance(x, Ref):
            continue
        first = seen.setdefault(identity(x), i)
        if first < 0:
            what = f"jit gets a reference as {jaxpr.name_of(n + i)} and closes over it"
            raise alias_error(what, x)
        if first != i:
            names = [jaxpr.name_of(n + k) for k in (first, i)]
            raise alias_error(f"jit gets one reference as {names[0]} and as {names[1]}", x)
