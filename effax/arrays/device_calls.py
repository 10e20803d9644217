"""Operands and results of programs on other devices than the first one alone; eager operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from returns.pipeline import is_successful
from returns.unsafe import unsafe_perform_io

from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.device_plan import DevicePlan, device_plan
from effax.arrays.placed_array import PlacedArray, PlacedType, placed_types, put_value
from effax.arrays.ref import EagerRef, Ref
from effax.arrays.traced_array import TracedArray
from effax.ir.edit.operations import equation
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.trace import leak_error
from effax.ir.types import ArrayType, RefType, Type
from effax.lowering.program import CompiledProgram, compile_program
from effax.lowering.xla import Buffer, Placement


def operand_buffer(x: object, type_: Type, place: Placement) -> Buffer:
    """Return the buffer of an operand with a placement. Raises LeakedTracer."""
    if type(x) is PlacedArray and x.placed_type.place is place:
        return x.parts
    if isinstance(x, EagerRef):
        value = x.memory()
    elif isinstance(x, TracedArray):
        raise leak_error(x)
    else:
        array = as_value(x)
        assert isinstance(array, DeviceArray), "an operand of a call has a value"
        value = array.numpy()
    inner = type_.inner if isinstance(type_, RefType) else type_
    assert isinstance(inner, ArrayType), "a program has arrays and references"
    return put_value(value, inner, place)


def run_on_devices(jaxpr: Jaxpr, operands: Sequence[object]) -> list[Array] | None:
    """Run a program where its operands or its meshes are on other devices than the first.

    Returns None where they are not, or where the program changes references.
    """
    if jaxpr.effects.effects or any(isinstance(x, Ref) for x in operands):
        return None
    found = _compiled(jaxpr, placed_types(operands))
    if found is None:
        return None
    program, _, types = found
    executable = program.executable
    triples = zip(operands, jaxpr.in_types, executable.in_places, strict=True)
    results = executable.run([operand_buffer(x, t, p) for x, t, p in triples])
    return [PlacedArray(t, x) for t, x in zip(types, results, strict=True)]


@memoize(maxsize=1024)
def _compiled(
    jaxpr: Jaxpr, placed: tuple[PlacedType | None, ...]
) -> tuple[CompiledProgram, DevicePlan, list[PlacedType]] | None:
    plan = device_plan(jaxpr, placed or (None,) * len(jaxpr.binders), (), (), "an operation")
    if plan is None:
        return None
    made = compile_program(jaxpr, layout=plan.layout)
    if not is_successful(made):
        raise unsafe_perform_io(made.failure())
    program = unsafe_perform_io(made.unwrap())
    types = cast("tuple[ArrayType, ...]", jaxpr.out_types)
    return program, plan, plan.result_types(types, program.executable.out_places)


def apply_on_devices(
    prim: Primitive, args: Sequence[object], types: Sequence[Type]
) -> list[Array] | None:
    """Apply a primitive as a program of one equation; None as for :func:`run_on_devices`."""
    atoms: list[Atom] = []
    for x in args:
        type_ = cast("Array", x).type
        atoms.append(x if isinstance(x, Lit) else Var(len(atoms), type_))
    variables = [v for v in atoms if isinstance(v, Var)]
    outs = [Var(len(atoms) + i, t) for i, t in enumerate(types)]
    jaxpr = Jaxpr(variables, [equation(prim, atoms, outs)], outs)
    return run_on_devices(jaxpr, [x for x in args if not isinstance(x, Lit)])
