"""Compile a program or a StableHLO module into a function of arrays.

This path to XLA is independent of the rest of the library, without tracing and pytrees::

    from effax.lowering import compile

    add = compile('''
    func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
      %z = stablehlo.add %x, %y : tensor<3xf32>
      return %z : tensor<3xf32>
    }''')
    (z,) = add(np.ones(3, np.float32), np.ones(3, np.float32))
    add.memory_analysis().peak_bytes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import cast, final, get_args

import numpy as np

from effax.ir.analysis.check import checked
from effax.ir.dtypes import is_array_dtype
from effax.ir.errors import BadArgument, IllTyped, LoweringError
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.types import ArrayType, array_type
from effax.lazy.dataclasses import dataclass
from effax.lowering import xla
from effax.lowering.artifact import (
    DAMAGES,
    Artifact,
    damaged,
    numbers_of,
    pack,
    types_of,
    unpack,
)
from effax.lowering.mlir_text import type_of_tensor
from effax.lowering.numbers import number_as_array
from effax.lowering.program import native_rules, stablehlo_of

KIND = "compiled module"


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompiledModule:
    """A compiled module: a function of arrays.

    Attributes:
        stablehlo: the module that XLA compiled, as text; it may call platform libraries.
        in_types: the types of its arguments.
        out_types: the types of its results.
        donated: the arguments whose buffers results reuse; a call copies the arrays passed there.
        changed: the arguments that are references of the program; their new contents are the last
            results.
        executable: the function of buffers, without copies and checks.
        program: the program it was compiled from; None for a module.
    """

    stablehlo: str = field(repr=False)
    in_types: tuple[ArrayType, ...]
    out_types: tuple[ArrayType, ...]
    donated: tuple[int, ...]
    changed: tuple[int, ...]
    executable: xla.Executable = field(repr=False)
    program: Jaxpr | None = field(default=None, repr=False)

    def __call__(self, *args: object) -> tuple[np.ndarray, ...]:
        """Run it.

        Args:
            *args: NumPy arrays, or objects that NumPy converts, of the shapes and dtypes of
                ``in_types``; Python scalars are converted.

        Raises:
            IllTyped: the number of arguments differs, an array has another type, or a scalar
                cannot be converted without loss.
            LoweringError: the execution failed.
        """
        if len(args) != len(self.in_types):
            raise IllTyped(
                "a compiled module is called with another number of arguments",
                expected=f"{len(self.in_types)}: ({', '.join(map(str, self.in_types))})",
                found=str(len(args)),
            )
        arrays = [_array(x, t, i) for i, (x, t) in enumerate(zip(args, self.in_types, strict=True))]
        buffers = [
            xla.put(array, copy=True if i in self.donated else None)
            for i, array in enumerate(arrays)
        ]
        return tuple([xla.to_numpy(buffer) for buffer in self.executable(buffers)])

    def __reduce__(self) -> tuple[object, ...]:
        return (load, (self.serialize(),))

    def as_text(self) -> str:
        """Return the program that XLA runs, as HLO text."""
        return self.executable.optimized_hlo()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates of a call: ``flops``, ``bytes accessed`` and more by name."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> xla.MemoryStats:
        """Return the memory of a call, in bytes."""
        return self.executable.memory_analysis()

    def portable(self, version: str | None = None) -> bytes:
        """Return the module as StableHLO's portable bytecode, which other versions of XLA read.

        Args:
            version: the version of StableHLO to write for; by default one of 12 weeks ago.

        Raises:
            BadArgument: the installed jaxlib does not write that version.
            LoweringError: that version cannot express it, or it calls Python functions.
        """
        # A module that calls Python functions is not portable: `serialize` raises.
        if self.executable.calls_python:
            self.executable.serialize()
        if self.program is None:
            return xla.to_portable(self.stablehlo, version)
        return xla.to_portable(stablehlo_of(self.program)[1].text, version)

    def serialize(self) -> bytes:
        """Return the module as bytes, for :func:`load`.

        They contain machine code, for the same jaxlib on the same kind of processor, and the
        portable module, which others compile again.

        Raises:
            LoweringError: it calls Python functions.
        """
        header = {
            "in_types": list(map(str, self.in_types)),
            "out_types": list(map(str, self.out_types)),
            "donated": self.donated,
            "changed": self.changed,
            "made_by": _maker(),
        }
        parts = {"machine_code": self.executable.serialize(), "module": self.portable()}
        return pack(KIND, Artifact(header, parts))


def compile(
    program: Jaxpr | ClosedJaxpr | str | bytes, *, optimization: xla.Optimization = 3
) -> CompiledModule:
    """Compile a program, or a StableHLO module whose function ``main`` is one.

    The contents of a program's references are arguments, and the new contents of those that it
    changes are its last results. Its captured constants are its first arguments.

    Args:
        program: a jaxpr; or a module, as text or as portable bytecode.
        optimization: how hard XLA's code generator tries, from 0 to 3.

    Raises:
        BadArgument: ``program`` is of another class, or has values of captured constants; or the
            optimization level is unknown.
        IllTyped: a jaxpr is not well formed.
        LoweringError: a primitive has no lowering, the module does not parse, XLA cannot compile
            it, or ``main`` takes or returns values other than arrays of static shape.
        TransformError: references or dead code cannot be removed.
    """
    if isinstance(program, ClosedJaxpr):
        if program.consts:
            raise BadArgument(
                "the program has captured values, which are its first arguments here",
                expected="a program without captured values",
                found=f"{len(program.consts)} of them",
                remedy="compile its `.jaxpr`, and pass `.consts` first",
            )
        program = program.jaxpr
    if optimization not in get_args(xla.Optimization):
        levels = ", ".join(map(str, get_args(xla.Optimization)))
        raise BadArgument("unknown optimization level", levels, repr(optimization))
    if isinstance(program, Jaxpr):
        return _compiled_program(checked(program), optimization)
    if isinstance(program, bytes | bytearray):
        return _compiled_module(xla.from_portable(bytes(program)), (), optimization)
    if isinstance(program, str):
        return _compiled_module(program, (), optimization)
    raise BadArgument(
        "only programs and modules can be compiled",
        expected="a jaxpr, the text of a StableHLO module, or its portable bytecode",
        found=f"{type(program).__name__}: {program!r:.60}",
        remedy="trace a function: `make_jaxpr(f)(x)`; or use `jit`",
    )


def load(data: bytes) -> CompiledModule:
    """Read a module that :meth:`CompiledModule.serialize` wrote, with any version of jaxlib.

    Machine code runs unchecked: load trusted bytes only.

    Raises:
        BadArgument: ``data`` is not bytes.
        LoweringError: ``data`` is not such a module, or cannot be compiled here.
    """
    header, parts = unpack(KIND, data)
    try:
        return _loaded(header, parts)
    except DAMAGES as error:
        raise damaged(error) from error


def _loaded(header: Mapping[str, object], parts: Mapping[str, bytes]) -> CompiledModule:
    changed = numbers_of(header, "changed")
    text = xla.from_portable(parts["module"])
    if header.get("made_by") == _maker():
        ins, outs = _arrays(header, "in_types"), _arrays(header, "out_types")
        try:
            executable = xla.load_executable(parts["machine_code"], len(ins), outs)
        except LoweringError:
            # It may be code of another processor: compile again.
            pass
        else:
            donated = numbers_of(header, "donated")
            return CompiledModule(text, ins, outs, donated, changed, executable)
    return _compiled_module(text, changed, 3)


def _compiled_program(jaxpr: Jaxpr, optimization: xla.Optimization) -> CompiledModule:
    done, module = stablehlo_of(jaxpr, rules=native_rules())
    executable = xla.compile_module(
        module.text, len(module.in_types), module.out_types, optimization, module.host_calls
    )
    donated = tuple([i for i, _ in module.aliases])
    return CompiledModule(
        module.text, module.in_types, module.out_types, donated, done.changed, executable, jaxpr
    )


def _compiled_module(
    text: str, changed: tuple[int, ...], optimization: xla.Optimization
) -> CompiledModule:
    found = xla.signature(text)
    ins = tuple([type_of_tensor(t) for t in found.ins])
    outs = tuple([type_of_tensor(t) for t in found.outs])
    executable = xla.compile_module(text, len(ins), outs, optimization)
    return CompiledModule(text, ins, outs, found.donated, changed, executable)


def _arrays(header: Mapping[str, object], name: str) -> tuple[ArrayType, ...]:
    return cast("tuple[ArrayType, ...]", types_of(header, name))


def _maker() -> list[str]:
    """Return the versions and device on which machine code depends, as far as known."""
    from importlib.metadata import version

    return [version("jaxlib"), xla.devices()[0].platform, xla.devices()[0].device_kind]


def _array(x: object, wanted: ArrayType, position: int) -> np.ndarray:
    """Return an argument as an array of the type. Raise IllTyped if it has another."""
    what = f"argument {position} of a compiled module"
    if isinstance(x, bool | int | float | complex):
        x = number_as_array(x, wanted, what)
    array = np.asarray(x)
    numbers = is_array_dtype(array.dtype)
    found = (
        str(array_type(array.shape, array.dtype)) if numbers else f"{type(x).__name__}: {x!r:.60}"
    )
    if found != str(wanted.strong()):
        raise IllTyped(
            f"{what} has another type",
            expected=str(wanted),
            found=found,
            remedy="convert it: `np.asarray(x, dtype)`",
        )
    return array
