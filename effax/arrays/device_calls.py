"""Operands and results of programs on other devices than the first one alone; eager operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from threading import get_ident
from typing import cast

import numpy as np
from returns.pipeline import is_successful
from returns.unsafe import unsafe_perform_io

from effax.arrays.array import Array
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.device_plan import device_plan
from effax.arrays.exclusive import release, take
from effax.arrays.mesh import Mesh
from effax.arrays.placed_array import (
    PlacedArray,
    PlacedType,
    placed_array,
    placed_type,
    placed_types,
    put_value,
)
from effax.arrays.placed_ref import PlacedRef
from effax.arrays.ref import EagerRef, Ref
from effax.arrays.sharding import NamedSharding, PartitionSpec, Sharding
from effax.arrays.traced_array import TracedArray
from effax.ir.edit.operations import equation
from effax.ir.errors import LoweringError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.trace import leak_error
from effax.ir.types import ArrayType, RefType, Type
from effax.lowering import xla
from effax.lowering.program import CompiledProgram, compile_program
from effax.lowering.xla import Buffer, Placement


def operand_buffer(x: object, type_: Type, place: Placement) -> Buffer:
    """Return the buffer of an operand with a placement. Raises LeakedTracer."""
    if type(x) is PlacedArray and x._type.place is place:
        return x.parts
    if isinstance(x, EagerRef):
        x.check_usable()
        if type(x) is PlacedRef and x.contents.place is place and x._buffer is not None:
            return x._buffer
        value = x.memory()
    elif isinstance(x, TracedArray):
        raise leak_error(x)
    else:
        array = as_value(x)
        assert isinstance(array, DeviceArray), "an operand of a call has a value"
        value = whole_value(array)
    inner = type_.inner if isinstance(type_, RefType) else type_
    assert isinstance(inner, ArrayType), "a program has arrays and references"
    return put_value(value, inner, place)


def whole_value(x: DeviceArray) -> np.ndarray:
    """Return the value of an array; of one with parts in other processes, all call it."""
    if not isinstance(x, PlacedArray) or x.is_readable:
        return x.numpy()
    source = _over_own_mesh(x)
    sharding = source.sharding
    assert isinstance(sharding, NamedSharding), "a mesh of the parts was made"
    return _moved(source, sharding.with_spec(PartitionSpec())).numpy()


def with_sharding(x: DeviceArray, sharding: Sharding) -> PlacedArray:
    """Return an array with a sharding over devices; if it has it already, itself.

    Where the devices are of several processes, all call it, with the same value.

    Raises:
        IllTyped: the sharding does not divide it.
        ProcessesDiffer: the processes have other values.
    """
    place = placed_type(x.type, sharding).place
    members = xla.spanning(place.devices)
    if members is None or (isinstance(x, PlacedArray) and x.placed_type.place is place):
        return placed_array(x, sharding)
    if not isinstance(x, PlacedArray) or x.is_fully_addressable:
        value = np.ascontiguousarray(x.numpy())
        text = f"{x.type}, {sha256(value.tobytes()).hexdigest()}"
        members.agree("places an array", text, xla.processes_of(place.devices))
        return placed_array(x, sharding)
    if isinstance(x.sharding, NamedSharding) and x.placed_type.place.devices == place.devices:
        return _moved(x, sharding)
    return placed_array(DeviceArray(whole_value(x), x.type), sharding)


def _moved(x: PlacedArray, sharding: Sharding) -> PlacedArray:
    """Return an array with another sharding over the same devices, by a program on them."""
    v = Var(0, x.type)
    found = _compiled(Jaxpr([v], [], [v]), (x.placed_type,), (sharding,))
    assert found is not None, "an array over several devices has a plan"
    return found([x])[0]


def _over_own_mesh(x: PlacedArray) -> PlacedArray:
    """Return the array over a mesh; one of its parts for a placement that none in use describes.

    No device sends its part: the mesh has the devices in the order of the parts.
    """
    place = x.placed_type.place
    if isinstance(x.sharding, NamedSharding):
        return x
    order = [k for having in place.parts for k in having]
    grid = np.empty(len(order), object)
    grid[:] = [place.devices[k] for k in order]
    tiles = place.tiles[: x.ndim]
    names = [f"parts{d}" for d in range(len(tiles))]
    mesh = Mesh(grid.reshape(*tiles, -1), [*names, "copies"])
    made = placed_type(x.type, NamedSharding(mesh, PartitionSpec(*names)))
    parts = {i: xla.read_part(x.parts, place, k) for i, k in enumerate(order) if k in place.local}
    return PlacedArray(made, xla.put_parts(parts, x.parts.aval.array_type, made.place))


def device_call(
    program: CompiledProgram, types: Sequence[Type], out_types: Sequence[PlacedType]
) -> Callable[[Sequence[object]], list[PlacedArray]]:
    """Return the function that runs a program on operands, and updates references.

    An operand that is not placed is put where the compiler wants it, at each call; a reference
    that is not placed gets its new contents back.
    """
    executable, positions = program.executable, program.discharged.changed
    execute, places, n_outs = executable.run, executable.in_places, len(out_types)
    donates = bool(program.donated or positions)

    def run_pure(operands: Sequence[object]) -> list[PlacedArray]:
        triples = zip(operands, types, places, strict=True)
        results = execute([operand_buffer(x, t, p) for x, t, p in triples])
        return [PlacedArray(t, x) for t, x in zip(out_types, results, strict=True)]

    def run(operands: Sequence[object]) -> list[PlacedArray]:
        changed = [x for i in positions if isinstance(x := operands[i], EagerRef)]
        ticket = (get_ident(),)
        if changed:
            take(changed, ticket)
        try:
            triples = zip(operands, types, places, strict=True)
            buffers = [operand_buffer(x, t, p) for x, t, p in triples]
            if len({*map(id, buffers)}) < len(buffers):
                raise _donated_twice()
            results = execute(buffers)
            pairs = zip(changed, results[n_outs:], executable.out_places[n_outs:], strict=True)
            for ref, new, place in pairs:
                _write_back(ref, new, place)
        finally:
            if changed:
                _end_lost(changed)
                release(changed, ticket)
        return [PlacedArray(t, x) for t, x in zip(out_types, results, strict=False)]

    return run if donates else run_pure


def _donated_twice() -> LoweringError:
    return LoweringError(
        "a call that donates an argument has an argument twice",
        expected="each donated at most once, and not read by another argument",
        found="one array as two arguments",
        remedy="copy it: `jnp.copy(x)`",
    )


def _write_back(ref: EagerRef, new: Buffer, place: Placement) -> None:
    if isinstance(ref, PlacedRef):
        ref.replace_buffer(new, place)
    else:
        whole = xla.buffer_contents(xla.gathered(new, place), ref.type.inner)
        np.copyto(ref.memory(), whole)


def _end_lost(refs: Sequence[EagerRef]) -> None:
    """End the references whose contents a call that failed had donated."""
    for ref in refs:
        if isinstance(ref, PlacedRef) and ref._buffer is not None and ref._buffer.is_deleted():
            ref._ended = "a call that failed"


def run_on_devices(jaxpr: Jaxpr, operands: Sequence[object]) -> list[Array] | None:
    """Run a program where its operands or its meshes are on other devices than the first.

    Returns None where they are not, where the program has effects on no placed reference, and where
    it calls Python functions on several devices.
    """
    has_refs = any(isinstance(x, Ref) for x in operands)
    if jaxpr.effects.effects or has_refs:
        placed = any(type(x) is PlacedRef for x in operands)
        if not placed or any(isinstance(t, RefType) for t in jaxpr.out_types):
            return None
    found = _compiled(jaxpr, placed_types(operands))
    return None if found is None else [*found(operands)]


@memoize(maxsize=1024)
def _compiled(
    jaxpr: Jaxpr, placed: tuple[PlacedType | None, ...], outs: tuple[Sharding, ...] = ()
) -> Callable[[Sequence[object]], list[PlacedArray]] | None:
    plan = device_plan(jaxpr, placed or (None,) * len(jaxpr.binders), (), outs, "an operation")
    if plan is None:
        return None
    made = compile_program(jaxpr, layout=plan.layout)
    if not is_successful(made):
        raise unsafe_perform_io(made.failure())
    program = unsafe_perform_io(made.unwrap())
    if program.executable.calls_python and len(plan.layout.devices) > 1:
        # Each device would call the function.
        return None
    types = cast("tuple[ArrayType, ...]", jaxpr.out_types)
    chosen = program.executable.out_places[: len(types)]
    return device_call(program, jaxpr.in_types, plan.result_types(types, chosen))


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
