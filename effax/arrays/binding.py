"""Application of primitives to operands: evaluated at once, or recorded in the current trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np

from effax.arrays.array import Array
from effax.arrays.config import config
from effax.arrays.device_array import DeviceArray
from effax.arrays.devices_in_use import in_use
from effax.arrays.exclusive import is_taken_here, sharing, wait_until_free
from effax.arrays.invalid_values import run_watched
from effax.arrays.operators import ops
from effax.arrays.ref import EagerRef, Ref, TracedRef, consumed_error, eager_ref
from effax.arrays.traced_array import TracedArray
from effax.effects import ArgIndex, Row
from effax.ir.build import typing_of
from effax.ir.edit.operations import equation
from effax.ir.errors import EffaxError, TransformError
from effax.ir.eval.numpy import evaluate, literal_value
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import ForwardRule, SparseJvp
from effax.ir.source import caller
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.trace import Trace, current_trace, eager, leak_error, shown_ref, tracing
from effax.ir.types import ArrayType, RefType, Type, check_size, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.rules.custom.dense import on_given_tangents

Operand = Array | Ref | Lit
"""An operand of a primitive: an array, a reference, or a typed scalar constant."""


def handle(trace: Trace, atom: Atom) -> object:
    """The array or the reference that represents an atom of a trace."""
    if isinstance(atom.type, RefType):
        return TracedRef(trace, atom)
    return TracedArray(trace, atom)


def atom_in(trace: Trace, x: Operand) -> Atom:
    """Return the atom of an operand in a trace; an operand from outside is captured."""
    kind = type(x)
    if kind is TracedArray or kind is TracedRef:
        traced = cast(TracedArray, x)
        if kind is TracedRef and traced.owner.consumed:
            _check_not_consumed(cast(TracedRef, x))
        if traced.owner is trace and trace.alive:
            return traced.atom
        return trace.lift(traced)
    if isinstance(x, Lit):
        return x
    if isinstance(x, EagerRef):
        x.check_usable()
        return trace.capture(x, x.type, x.read_now)
    assert isinstance(x, DeviceArray)
    return trace.capture(x, x.type, x.numpy)


def _check_not_consumed(ref: TracedRef) -> None:
    how = ref.owner.consumed.get(cast(Var, ref.atom).id)
    if how is not None:
        raise consumed_error(ref, how)


@contextmanager
def annotate_errors(operands: Sequence[Operand]) -> Iterator[None]:
    """Add to errors about a reference argument where that was made."""
    try:
        yield
    except TransformError as error:
        if error.position is not None and isinstance(operands[error.position], Ref):
            shown = shown_ref(operands[error.position])
            found = error.found
            error.found = (
                shown if found is None or shown.startswith(found) else f"{found} ({shown})"
            )
        raise


def bind(prim: Primitive, *args: Operand) -> list[Array | Ref]:
    """Apply a primitive; return the handles of its results."""
    trace = current_trace()
    try:
        if trace is None:
            return _apply(prim, args)
        if trace.folds and (constants := _constants(args)) is not None:
            with eager():
                return _apply(prim, constants)
        ins = tuple([atom_in(trace, a) for a in args])
        return [cast("Array | Ref", handle(trace, v)) for v in trace.emit(prim, ins)]
    except EffaxError as error:
        raise error.at(None, _user_line()) from None


def bind1(prim: Primitive, *args: Operand) -> Array:
    """Apply a primitive of one result, an array."""
    trace = current_trace()
    if trace is not None and not trace.folds:
        try:
            (out,) = trace.emit(prim, tuple([atom_in(trace, a) for a in args]))
        except EffaxError as error:
            raise error.at(None, _user_line()) from None
        return TracedArray(trace, out)
    return cast(Array, bind(prim, *args)[0])


@contextmanager
def folding() -> Iterator[None]:
    """Run operations on concrete values in a block at once, also while a program is traced.

    Operations on symbols are added to the program.
    """
    trace = current_trace()
    before = trace is not None and trace.folds
    if trace is not None:
        trace.folds = True
    try:
        yield
    finally:
        if trace is not None:
            trace.folds = before


def _constants(args: Sequence[Operand]) -> list[Operand] | None:
    """Return operands that are concrete, with scalars as literals; None if one is a symbol."""
    found: list[Operand] = []
    for x in args:
        if isinstance(x, TracedArray) and isinstance(x.atom, Lit):
            found.append(x.atom)
        elif isinstance(x, TracedArray | TracedRef):
            return None
        else:
            found.append(x)
    return found


def _user_line() -> str | None:
    where = caller()
    return None if where is None else str(where)


def value_of(x: Operand) -> Value:
    """Return the NumPy value of an operand; for a reference, its writable buffer."""
    if isinstance(x, DeviceArray):
        return x.numpy()
    if isinstance(x, Lit):
        return literal_value(x)
    if isinstance(x, EagerRef):
        return x.memory()
    assert isinstance(x, TracedArray | TracedRef)
    raise leak_error(x)


def _apply(prim: Primitive, args: Sequence[Operand]) -> list[Array | Ref]:
    types, effects = typing_of(prim, tuple([a.type for a in args]))
    if in_use.several_devices:
        placed = ops.apply_on_devices(prim, args, types)
        if placed is not None:
            return [*placed]
    if not effects.effects or effects.side_effects:
        return _evaluated(prim, args, types)
    with sharing.lock:
        for x in args:
            # A callback may read a reference of the call that runs it: the old contents.
            if type(x) is EagerRef and x._taken_by and not _is_readable(x, effects):
                wait_until_free(x)
        sharing.eager_operations += 1
        try:
            return _evaluated(prim, args, types)
        finally:
            sharing.eager_operations -= 1


def _is_readable(ref: EagerRef, effects: Row[ArgIndex]) -> bool:
    return is_taken_here(ref) and not effects.changes_state


def _evaluated(
    prim: Primitive, args: Sequence[Operand], types: Sequence[Type]
) -> list[Array | Ref]:
    for t in types:
        if t.is_too_large:
            check_size(t)
    values = [value_of(a) for a in args]
    # A primitive that only moves elements computes no invalid value, such as a constant inf.
    if config.watched and prim.flops_per_element:
        results: Sequence[Value] = evaluate_watched(prim, values, args, types)
    elif prim.may_compile:
        from effax.arrays.compiled_evaluation import evaluate_or_compile

        results = evaluate_or_compile(prim, tuple([a.type for a in args]), values, args)
    else:
        with np.errstate(all="ignore"):
            results = prim.evaluate(*values)
    return [wrap(np.asarray(r), t) for r, t in zip(results, types, strict=True)]


def evaluate_watched(
    prim: Primitive, values: Sequence[Value], args: Sequence[Operand], types: Sequence[Type]
) -> list[Value]:
    """Return the results of an application. Raises InvalidValue for a nan, if these are watched."""
    ins = [Var(i, a.type) for i, a in enumerate(args)]
    outs = [Var(len(ins) + i, t) for i, t in enumerate(types)]
    eqn = equation(prim, ins, outs, caller())
    return run_watched(Jaxpr(ins, [eqn], outs), values, config.watched)


def wrap(value: Value, type_: Type) -> Array | Ref:
    """Return the handle of a value: an array, or a new reference that owns the buffer."""
    if isinstance(type_, ArrayType):
        return DeviceArray(value.view(), type_)
    return eager_ref(value, type_.kind)


def run(jaxpr: Jaxpr, args: Sequence[Operand]) -> list[Array]:
    """Run a program on operands: evaluate it, or inline it into the current trace."""
    trace = current_trace()
    if trace is None:
        placed = ops.run_on_devices(jaxpr, args) if in_use.several_devices else None
        if placed is not None:
            return placed
        values = [value_of(a) for a in args]
        watched = config.watched
        if watched:
            results = run_watched(jaxpr, values, watched)
        elif any(eqn.prim.may_compile for eqn in jaxpr.eqns):
            from effax.arrays.compiled_evaluation import evaluate_program

            results = evaluate_program(jaxpr, values)
        else:
            results = evaluate(jaxpr, values)
        return [
            cast(Array, wrap(np.asarray(r), t))
            for r, t in zip(results, jaxpr.out_types, strict=True)
        ]
    atoms = [atom_in(trace, a) for a in args]
    outs = trace.builder.inline_jaxpr(jaxpr, atoms)
    return [TracedArray(trace, a) for a in outs]


def program_of(function: Callable[..., list[Array]], what: str, *types: Type) -> Jaxpr:
    """Return the program of a function of arrays of these types, which closes over none."""
    trace = Trace(handle, what, None)
    with tracing(trace):
        results = function(*[trace.bind(t) for t in types])
        return trace.finish([atom_in(trace, x) for x in results]).jaxpr


@dataclass(frozen=True)
class ForwardOfFunction(ForwardRule):
    """A forward rule that is a function of arrays of these types and their tangents.

    It is traced when it is asked for, so that it may call the function that it belongs to.
    """

    function: Callable[..., list[Array]]
    types: tuple[Type, ...]
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        dots = [tangent_type(t) for t in self.types]
        jaxpr = program_of(self.function, self.label, *self.types, *dots)
        dense = SparseJvp(jaxpr, (True,) * (len(jaxpr.outs) // 2))
        return on_given_tangents(dense, self.types, (True,) * len(self.types), given)
