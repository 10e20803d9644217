"""Compiled evaluation outside of ``jit``: heavy operations, and loops of many steps.

NumPy's matrix products and factorisations copy operands and wait for threads; XLA's do not. A step
of a loop costs Python's time an equation. So products and factorisations of many operations are
compiled, alone; and a loop whose steps evaluate many equations is compiled: one of known length at
once, another after its first steps, from the values that it has then, or at once if its program is
known already. Executables are cached by value. The results of NumPy and XLA agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Final, cast

import numpy as np
from returns.io import IOSuccess
from returns.unsafe import unsafe_perform_io

from effax.arrays.device_array import DeviceArray
from effax.ir.analysis.queries import size
from effax.ir.build import Builder, typing_of
from effax.ir.eval.numpy import evaluate, literal_value, prepare
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import Scan, While
from effax.ir.state import cached
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.types import ArrayType, RefType, Type
from effax.lowering.program import CompiledProgram, compile_program, known_program

FLOPS: Final = 1 << 20
"""The operations from which a product is compiled: NumPy's threads begin about there."""

EQUATIONS: Final = 10_000
"""The equations of a loop that are evaluated before it is compiled, in about the time for that."""


def evaluate_or_compile(
    prim: Primitive,
    types: tuple[Type, ...],
    values: Sequence[Value],
    operands: Sequence[object] = (),
) -> Sequence[Value]:
    """Evaluate a primitive on NumPy, or compiled where that is faster.

    References are their buffers, which are written in place. Buffers of ``operands`` that are
    arrays are created once and kept.
    """
    if isinstance(prim, While) and _compiles(prim, types):
        program = known_program(_application(prim, types))
        return _looped(prim, types, values) if program is None else _run(program, values)
    heavy = prim.may_compile and not isinstance(prim, While) and _is_heavy(prim, types)
    program = _program(prim, types) if heavy else None
    if program is not None:
        return _run(program, values, operands)
    with np.errstate(all="ignore"):
        return prim.evaluate(*values)


def evaluate_program(jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
    """Evaluate a program on NumPy values as :func:`effax.ir.eval.numpy.evaluate` does.

    Its heavy products and long loops run compiled.
    """
    if jaxpr.free_axes:
        return evaluate(jaxpr, args)
    env = {v.id: value for v, value in zip(jaxpr.binders, args, strict=True)}

    def value_of(atom: Atom) -> Value:
        return literal_value(atom) if isinstance(atom, Lit) else env[atom.id]

    with np.errstate(all="ignore"):
        for eqn in jaxpr.eqns:
            results = evaluate_or_compile(
                eqn.prim, tuple([a.type for a in eqn.ins]), [value_of(a) for a in eqn.ins]
            )
            env.update(zip([v.id for v in eqn.outs], map(np.asarray, results), strict=True))
    return [value_of(a) for a in jaxpr.outs]


@cached(maxsize=1 << 10)
def _is_heavy(prim: Primitive, types: tuple[Type, ...]) -> bool:
    if isinstance(prim, Scan):
        heavy = prim.length * size(prim.jaxpr) >= EQUATIONS or _has_product(prim.jaxpr)
        return heavy and prim.length > 1 and _compiles(prim, types)
    return prim.work(types, typing_of(prim, types).outs).flops >= FLOPS


def _has_product(jaxpr: Jaxpr) -> bool:
    """Return whether a program has a heavy product, at its top level."""
    return any(
        _is_heavy(eqn.prim, tuple([a.type for a in eqn.ins]))
        for eqn in jaxpr.eqns
        if eqn.prim.may_compile and not isinstance(eqn.prim, Scan | While)
    )


def _compiles(prim: Primitive, types: tuple[Type, ...]) -> bool:
    """Return whether a loop may be compiled: it has no side effects, and binds its axes."""
    return not prim.free_axes() and not typing_of(prim, types).effects.side_effects


def _looped(prim: While, types: tuple[Type, ...], values: Sequence[Value]) -> Sequence[Value]:
    """Evaluate steps of a loop, and run the rest compiled if there are many."""
    consts, carry = values[: prim.n_consts], tuple(values[prim.n_consts :])
    predicate, step = prepare(prim.cond), prepare(prim.body)
    steps = EQUATIONS // (1 + size(prim.cond) + size(prim.body))
    if _has_product(prim.body):
        steps = 1
    with np.errstate(all="ignore"):
        for _ in range(max(steps, 1)):
            if not predicate(*consts, *carry)[0]:
                return carry
            carry = tuple(step(*consts, *carry))
    program = _program(prim, types)
    rest = [*consts, *carry]
    return prim.evaluate(*rest) if program is None else _run(program, rest)


def _program(prim: Primitive, types: tuple[Type, ...]) -> CompiledProgram | None:
    """Return the executable of an application; None if the primitive cannot be lowered."""
    found = compile_program(_application(prim, types))
    return unsafe_perform_io(found.unwrap()) if isinstance(found, IOSuccess) else None


@cached(maxsize=1 << 8)
def _application(prim: Primitive, types: tuple[Type, ...]) -> Jaxpr:
    b = Builder(types)
    return b.finish(b.emit(prim, b.binders))


def _run(
    program: CompiledProgram, values: Sequence[Value], operands: Sequence[object] = ()
) -> list[Value]:
    """Run an application on NumPy values; references are written in place."""
    from effax.lowering import xla

    types = program.jaxpr.in_types
    buffers = [
        x.buffer
        if type(x) is DeviceArray
        else xla.put(v, copy=True if isinstance(t, RefType) else None)
        for v, x, t in zip(values, operands or repeat(None), types, strict=False)
    ]
    outs = [xla.to_numpy(buffer) for buffer in program.executable(buffers)]
    results = program.jaxpr.out_types
    for i, contents in zip(program.discharged.changed, outs[len(results) :], strict=True):
        values[i][...] = xla.buffer_contents(contents, cast("RefType", types[i]).inner)
    return [
        xla.buffer_contents(out, cast("ArrayType", t))
        for out, t in zip(outs, results, strict=False)
    ]
