"""Compiling a StableHLO module, running it, and asking XLA what it made of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np

from effax.ir.errors import BadArgument, LoweringError
from effax.ir.types import ArrayType
from effax.lowering.xla.backend import Buffer, backend, handler_of
from effax.lowering.xla.host import HostCall, HostCalls, context, parsed, running
from effax.lowering.xla.lapack import prepare_for

if TYPE_CHECKING:
    from jaxlib import _jax

Optimization = Literal[0, 1, 2, 3]
"""How hard XLA's code generator tries: 3 is its default, 0 compiles in about half the time."""


Run = Callable[[Sequence[Buffer]], list[Buffer]]
"""A call: one buffer an argument in, one a result out."""


@final
@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What a call of an executable takes, in bytes, as XLA planned it.

    Attributes:
        argument_bytes: its arguments.
        output_bytes: its outputs; on CPU with the table of their addresses, 8 bytes an output,
            where there are several.
        temp_bytes: what it needs while it runs.
        alias_bytes: the part of the outputs that reuses the memory of arguments.
        code_bytes: its code, or 0 where XLA does not tell.
        peak_bytes: the most that is in use at once.
    """

    argument_bytes: int
    output_bytes: int
    temp_bytes: int
    alias_bytes: int
    code_bytes: int
    peak_bytes: int


@final
class Executable:
    """A compiled module. It keeps none of the buffers that it is called with.

    Attributes:
        loaded: jaxlib's.
        n_args: the number of its arguments.
        out_types: the types of its results.
        run: what a call does, as a plain function: the quickest there is to call.
    """

    __slots__ = (
        "__weakref__",
        "_host_calls",
        "loaded",
        "n_args",
        "out_types",
        "run",
    )

    def __init__(
        self,
        loaded: _jax.LoadedExecutable,
        n_args: int,
        out_types: Sequence[ArrayType],
        host_calls: HostCalls | None = None,
    ) -> None:
        self.loaded: _jax.LoadedExecutable = loaded
        self.n_args: int = n_args
        self.out_types: tuple[ArrayType, ...] = tuple(out_types)
        self._host_calls = host_calls
        self.run: Final = _runner(self) if host_calls is None else _host_runner(self, host_calls)
        _check_counts(self)

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Run it: ``n_args`` buffers in, one buffer a type of ``out_types`` out.

        A call whose arguments do not fit raises before anything is donated.

        Args:
            buffers: their number and sizes in bytes are checked by XLA, their dtypes are not.

        Raises:
            LoweringError: the arguments do not fit, one is deleted or donated twice, or the
                execution failed. What a Python function raised is raised as it is.
            TypeError: an argument is no buffer.
        """
        return self.run(buffers)

    @property
    def calls_python(self) -> bool:
        """Whether it calls Python functions of this process."""
        return self._host_calls is not None

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates of a call: ``flops``, ``bytes accessed`` and more by name."""
        estimates = sorted(self.loaded.cost_analysis().items())
        return {name: float(n) for name, n in estimates if isinstance(n, int | float)}

    def memory_analysis(self) -> MemoryStats:
        """The memory of a call."""
        stats = self.loaded.get_compiled_memory_stats()
        argument, output = stats.argument_size_in_bytes, stats.output_size_in_bytes
        temp, alias = stats.temp_size_in_bytes, stats.alias_size_in_bytes
        return MemoryStats(
            argument_bytes=argument,
            output_bytes=output,
            temp_bytes=temp,
            alias_bytes=alias,
            code_bytes=stats.generated_code_size_in_bytes,
            peak_bytes=max(stats.peak_memory_in_bytes, argument + output + temp - alias),
        )

    def optimized_hlo(self) -> str:
        """The program that XLA runs, as HLO text."""
        return "\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def serialize(self) -> bytes:
        """Machine code and all, for :func:`load_executable` on this jaxlib and processor.

        Raises:
            LoweringError: it calls Python functions, which cannot be written down.
        """
        if self._host_calls is not None:
            raise LoweringError(
                "an executable that calls Python functions cannot be written down",
                expected="a program without callbacks",
                found=f"{len(self._host_calls.functions)} Python functions",
                remedy="compile it where it runs",
            )
        return backend().client.serialize_executable(self.loaded)


def _runner(executable: Executable) -> Run:
    """Calls of a program that stays on the device."""
    execute = executable.loaded.execute_sharded
    handlers = [handler_of(type_) for type_ in executable.out_types]
    n_args = executable.n_args

    def run(buffers: Sequence[Buffer]) -> list[Buffer]:
        try:
            return execute(buffers).consume_with_handlers(handlers)
        except RuntimeError as error:
            raise _not_run(n_args, buffers, error) from error

    return run


def _host_runner(executable: Executable, calls: HostCalls) -> Run:
    """Calls that return when all that they do to the world outside is done."""
    execute = executable.loaded.execute_sharded
    handlers = [handler_of(type_) for type_ in executable.out_types]
    n_args = executable.n_args

    def run(buffers: Sequence[Buffer]) -> list[Buffer]:
        try:
            with running.one():
                results = execute(buffers, with_tokens=True)
                outs = results.consume_with_handlers(handlers)
                results.consume_token().block_until_ready()
                return outs
        except RuntimeError as error:
            raised = calls.raised(str(error))
            if raised is not None:
                raise raised from None
            raise _not_run(n_args, buffers, error) from error

    return run


def compile_module(
    module: str | bytes,
    n_args: int,
    out_types: Sequence[ArrayType],
    optimization: Optimization = 3,
    host_calls: Sequence[HostCall] = (),
) -> Executable:
    """Compile a StableHLO module, whose function ``main`` is the program.

    Args:
        module: its text, or its portable bytecode (:func:`to_portable`). The attribute
            ``tf.aliasing_output = k : i32`` of an argument donates it and puts output k in its
            memory.
        n_args: the number of arguments of ``main``, used or not.
        out_types: the types of its results, which are believed, weakness included.
        optimization: how hard the code generator tries.
        host_calls: the Python functions that the module, as text, calls by their number. They get
            NumPy arrays, and give a sequence of them.

    Raises:
        LoweringError: the text does not parse or verify, XLA cannot compile it, or the counts
            differ.
    """
    xla = backend()
    prepare_for(module)
    options = _options(optimization)
    calls = HostCalls(host_calls) if host_calls else None
    try:
        if calls is None or isinstance(module, bytes):
            loaded = xla.client.compile_and_load(module, xla.device_list, options)
        else:
            loaded = xla.client.compile_and_load(
                parsed(module), xla.device_list, options, host_callbacks=calls.functions
            )
    except RuntimeError as error:
        raise _not_compiled(module, error) from error
    return Executable(loaded, n_args, out_types, calls)


def load_executable(data: bytes, n_args: int, out_types: Sequence[ArrayType]) -> Executable:
    """What :meth:`Executable.serialize` wrote, on the same jaxlib and kind of processor.

    Raises:
        LoweringError: ``data`` is something else, or comes from another jaxlib.
    """
    xla = backend()
    prepare_for(data)
    try:
        loaded = xla.client.deserialize_executable(data, xla.device_list, _options(3))
    except RuntimeError as error:
        raise LoweringError(
            "this is no executable that the installed jaxlib can load",
            found=str(error).strip(),
            remedy="compile the program again",
        ) from error
    return Executable(loaded, n_args, out_types)


def to_portable(text: str, version: str | None = None) -> bytes:
    """StableHLO text as bytecode that other versions of XLA read.

    Args:
        text: the module.
        version: the StableHLO to write for, such as ``1.8.0``; by default that of 12 weeks before
            the installed jaxlib's own.

    Raises:
        BadArgument: the installed jaxlib does not write that version.
        LoweringError: the text is wrong, or that version cannot express it.
    """
    from jaxlib import _jax

    wanted = _twelve_weeks_ago() if version is None else _known_version(version)
    try:
        return _jax.mlir.serialize_portable_artifact(text, wanted)
    except (RuntimeError, ValueError) as error:
        what = f"this module cannot be written for StableHLO {wanted}"
        raise _not_compiled(text, error, what) from error


def from_portable(data: bytes) -> str:
    """The text of a module that :func:`to_portable` wrote.

    Raises:
        LoweringError: ``data`` is something else, or a newer StableHLO's.
    """
    from jaxlib import _jax

    try:
        return str(_jax.mlir.deserialize_portable_artifact(data, context()))
    except (RuntimeError, ValueError) as error:
        raise LoweringError(
            "this is no portable StableHLO module that the installed jaxlib reads",
            found=str(error).strip(),
        ) from error


def _known_version(version: object) -> str:
    """Raises BadArgument for a version that the installed jaxlib does not write."""
    from jaxlib.mlir.dialects import stablehlo

    first, last = stablehlo.get_minimum_version(), stablehlo.get_current_version()
    parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version) if isinstance(version, str) else None
    if parts is not None and _numbers(first) <= _numbers(parts.group()) <= _numbers(last):
        return parts.group()
    raise BadArgument(
        "the installed jaxlib does not write this version of StableHLO",
        expected=f"from {first} to {last}",
        found=repr(version),
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _twelve_weeks_ago() -> str:
    from jaxlib.mlir.dialects import stablehlo

    weeks = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    return stablehlo.get_version_from_compatibility_requirement(weeks)


def _options(optimization: Optimization) -> _jax.CompileOptions:
    from jaxlib import _jax

    options = _jax.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    build = options.executable_build_options
    placed = np.array([[backend().placement[0].id]], np.int32)
    build.device_assignment = _jax.DeviceAssignment.create(placed)
    build.debug_options.xla_backend_optimization_level = optimization
    return options


def _check_counts(executable: Executable) -> None:
    has_args = len(executable.loaded.get_parameter_layouts())
    has_outs = len(executable.loaded.get_output_layouts())
    if (has_args, has_outs) != (executable.n_args, len(executable.out_types)):
        raise LoweringError(
            "the module is not of the type that was said",
            expected=f"{executable.n_args} arguments, {len(executable.out_types)} results",
            found=f"{has_args} arguments, {has_outs} results",
        )


def _not_compiled(
    module: str | bytes, error: Exception, what: str = "XLA cannot compile this module"
) -> LoweringError:
    report = str(error).strip()
    where = re.search(r"(?:^|\s)-:(\d+):\d+: ", report)
    lines = module.splitlines() if isinstance(module, str) else []
    line = int(where[1]) if where else 0
    return LoweringError(
        what,
        # What follows a parser's finding says the same of the whole module.
        found=report.split("\n<unknown>:0: ", maxsplit=1)[0],
        equation=str(lines[line - 1]).strip() if 0 < line <= len(lines) else None,
    )


def _not_run(n_args: int, buffers: Sequence[Buffer], error: RuntimeError) -> LoweringError:
    given = ", ".join(
        f"{buffer.aval.array_type}{' (deleted or donated)' * buffer.is_deleted()}"
        for buffer in buffers
    )
    return LoweringError(
        f"this call did not run: {str(error).strip()}",
        expected=f"{n_args} live buffers, of the types that it was compiled for, "
        "each donated at most once",
        found=f"({given})",
    )
