"""Compile a StableHLO module, run it, and report XLA's analyses of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import count
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np

from effax.ir.errors import EffaxError, LoweringError
from effax.ir.types import ArrayType
from effax.lowering.xla.backend import (
    EFFORTS,
    Buffer,
    Device,
    backend,
    device_list,
    handler_of,
    processes_of,
    spanning,
)
from effax.lowering.xla.host import HostCall, HostCalls, counted, parsed, running
from effax.lowering.xla.lapack import prepare_for
from effax.lowering.xla.memory import MemoryStats, trim
from effax.lowering.xla.placement import Placement, handler_at, places_of

if TYPE_CHECKING:
    from jaxlib import _jax

Optimization = Literal[0, 1, 2, 3]
"""The optimization level of XLA's code generator: 3 is its default, 0 compiles twice as fast."""


Run = Callable[[Sequence[Buffer]], list[Buffer]]
"""A call, from one buffer for each argument to one for each result."""

TRIMMED: Final = 64
"""The number of executables that are freed between two returns of memory to the system."""

_freed: Final = count()


@final
class Executable:
    """A compiled module. It keeps none of the buffers that it is called with.

    Attributes:
        loaded: jaxlib's executable.
        n_args: the number of its arguments.
        out_types: the types of its results.
        run: the call as a plain function, without the overhead of a method.
        run_whole: the same call, for programs that donate: an interrupt is raised once its results
            are assigned.
        careful: whether no call has succeeded yet, since faults of a program show in its first
            call; or ``contended``.
        contended: whether another call donated a buffer that such a call reads.
        devices: the devices that run it; empty for the first device alone.
        in_places: the placement of each argument on them.
        out_places: that of each result.
    """

    __slots__ = (
        "__weakref__",
        "_host_calls",
        "_subscripted",
        "careful",
        "contended",
        "devices",
        "in_places",
        "loaded",
        "n_args",
        "out_places",
        "out_types",
        "run",
        "run_whole",
    )

    def __init__(
        self,
        loaded: _jax.LoadedExecutable,
        n_args: int,
        out_types: Sequence[ArrayType],
        host_calls: HostCalls | None = None,
        devices: tuple[Device, ...] = (),
        in_types: Sequence[ArrayType] = (),
    ) -> None:
        self.loaded: _jax.LoadedExecutable = loaded
        self.n_args: int = n_args
        self.out_types: tuple[ArrayType, ...] = tuple(out_types)
        self.devices: tuple[Device, ...] = devices
        found: Sequence[object] = loaded.get_parameter_shardings() or () if devices else ()
        self.in_places: tuple[Placement, ...] = places_of(
            found, devices, in_types if devices else ()
        )
        found = loaded.get_output_shardings() or () if devices else ()
        self.out_places: tuple[Placement, ...] = places_of(
            found, devices, out_types if devices else ()
        )
        self._host_calls = host_calls
        made = _host_runner(self, host_calls) if host_calls and len(devices) < 2 else None
        self.run: Final = made or (_device_runner(self, host_calls) if devices else _runner(self))
        self._subscripted: list[_Subscripted] = []
        plain = host_calls is None and not devices
        self.run_whole: Final = _whole_runner(self) if plain else self.run
        self.careful: bool = True
        self.contended: bool = False
        _check_counts(self)

    def handlers(self) -> list[_jax.ResultHandler]:
        """Return jaxlib's handlers of the results."""
        if not self.devices:
            return [handler_of(type_) for type_ in self.out_types]
        pairs = zip(self.out_types, self.out_places, strict=True)
        return [handler_at(type_, place) for type_, place in pairs]

    def __del__(self, is_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        # Classes are freed by the cycle collector only, the program of XLA is freed now. At exit
        # the names of this module are gone.
        for function in self._subscripted:
            function.drop()
        if not is_exit() and next(_freed) % TRIMMED == TRIMMED - 1:
            trim()

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Run it on ``n_args`` buffers, and return one buffer for each type of ``out_types``.

        A call whose arguments do not fit raises before it donates any of them.

        Args:
            buffers: XLA checks their number and sizes in bytes, not their dtypes.

        Raises:
            LoweringError: the arguments do not fit, one is deleted or donated twice, or the
                execution failed. An exception of a Python function is raised unchanged.
            TypeError: an argument is not a buffer.
        """
        return self.run(buffers)

    @property
    def calls_python(self) -> bool:
        """True if it calls Python functions of this process."""
        return self._host_calls is not None

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates of a call: ``flops``, ``bytes accessed`` and more by name."""
        return numeric_estimates(self.loaded.cost_analysis())

    def memory_analysis(self) -> MemoryStats:
        """Return the memory of a call."""
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
        """Return the program that XLA runs, as HLO text."""
        return "\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def serialize(self) -> bytes:
        """Return the machine code, for :func:`load_executable` on this jaxlib and processor.

        Raises:
            LoweringError: it calls Python functions, which cannot be serialized.
        """
        if self._host_calls is not None:
            raise LoweringError(
                "an executable that calls Python functions cannot be serialized",
                expected="a program without callbacks",
                found=f"{len(self._host_calls.functions)} Python functions",
                remedy="compile it where it runs",
            )
        return backend().client.serialize_executable(self.loaded)


def _runner(executable: Executable) -> Run:
    """Return the call of a program without callbacks."""
    execute = executable.loaded.execute_sharded
    handlers = executable.handlers()
    n_args = executable.n_args

    def run(buffers: Sequence[Buffer]) -> list[Buffer]:
        try:
            return execute(buffers).consume_with_handlers(handlers)
        except RuntimeError as error:
            raise _not_run(n_args, buffers, error) from error

    return run


def _device_runner(executable: Executable, calls: HostCalls | None) -> Run:
    """Return the call of a program on other devices than the first one alone.

    XLA returns before it is done, and with jaxlib 0.10 many calls under way would never end. It
    checks neither placements nor whether a buffer is deleted or donated twice.
    """
    execute, wait = executable.loaded.execute_sharded, _waiting(executable.devices)
    handlers, n_args = executable.handlers(), executable.n_args
    shardings = [place.sharding for place in executable.in_places]

    def run(buffers: Sequence[Buffer]) -> list[Buffer]:
        if len(buffers) != n_args or len({*map(id, buffers)}) != n_args:
            buffers = _each_once(n_args, buffers)
        for buffer, sharding in zip(buffers, shardings, strict=True):
            if buffer._sharding is not sharding or buffer.is_deleted():
                raise _misplaced(buffer)
        try:
            made = execute(buffers, with_tokens=calls is not None)
            results: list[Buffer] = made.consume_with_handlers(handlers)
            wait(results)
        except EffaxError:
            raise
        except RuntimeError as error:
            raise _not_run(n_args, buffers, error) from error
        if calls is not None:
            calls.finish(made)
        return results

    return run if calls is None else counted(run)


def _waiting(devices: tuple[Device, ...]) -> Callable[[Sequence[Buffer]], None]:
    """Return the function that waits for results; on several processes, also for their ends."""
    members, wait = spanning(devices), backend().wait
    return wait if members is None else partial(members.wait, wait)


def _whole_runner(executable: Executable) -> Run:
    """Return the call of a program that donates its arguments.

    Python raises an interrupt after a call of C code, whose result is then lost. Subscriptions are
    followed by no such check: the caller assigns the results first.
    """
    execute = _Subscripted.of(executable.loaded.execute_sharded)
    handlers = executable.handlers()
    consume = _Subscripted.of(methodcaller("consume_with_handlers", handlers))
    executable._subscripted.extend([execute, consume])
    n_args = executable.n_args

    def run(buffers: Sequence[Buffer]) -> list[Buffer]:
        try:
            results: list[Buffer] = consume[execute[buffers]]
        except RuntimeError as error:
            raise _not_run(n_args, buffers, error) from error
        return results

    return run


class _Subscripted:
    """A function of one argument in C, called by a subscription."""

    __slots__ = ()

    def __getitem__(self, argument: object) -> Any:  # private, as the function's result
        raise NotImplementedError

    @classmethod
    def of(cls, function: Callable[..., object]) -> _Subscripted:
        """Return an object of which ``x[argument]`` is ``function(argument)``."""
        body = {"__slots__": (), "__getitem__": function}
        made: _Subscripted = type(cls.__name__, (cls,), body)()
        return made

    def drop(self) -> None:
        """Drop the reference to the function."""
        del type(self).__getitem__


def _host_runner(executable: Executable, calls: HostCalls) -> Run:
    """Return the call of a program with callbacks, which waits until its side effects are done."""
    execute = executable.loaded.execute_sharded
    handlers = executable.handlers()
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
    options: Sequence[tuple[str, object]] = (),
    devices: tuple[Device, ...] = (),
    in_types: Sequence[ArrayType] = (),
) -> Executable:
    """Compile the function ``main`` of a StableHLO module.

    Args:
        module: its text, or its portable bytecode (:func:`to_portable`). The attribute
            ``tf.aliasing_output = k : i32`` of an argument donates it, and output k is written
            into its memory.
        n_args: the number of arguments of ``main``, used or not.
        out_types: the types of its results, weakness included; they are not checked.
        optimization: the optimization level of the code generator.
        host_calls: the Python functions that the module, as text, calls by index. They take NumPy
            arrays, and return a sequence of them.
        options: options of XLA, by name.
        devices: the devices that run it, in the order of the module's meshes; by default the first.
        in_types: the types of its arguments, where there are ``devices``.

    Raises:
        LoweringError: the text does not parse or verify, XLA cannot compile it, or the counts
            differ.
        ProcessesDiffer: the devices are of several processes, which compile other programs.
        ProcessLost: such a process ended.
    """
    xla = backend()
    members = spanning(devices)
    if members is not None:
        text = _compiled_as(module, devices, options)
        members.agree("compiles a program", text, processes_of(devices))
    prepare_for(module)
    compile_options = _options(optimization, devices)
    chosen = device_list(devices) if devices else xla.device_list
    compile_options.env_option_overrides = [x for x in options if x[0] not in EFFORTS]
    for name, level in options:
        if name in EFFORTS:
            setattr(compile_options.executable_build_options, name, level)
    calls = HostCalls(host_calls) if host_calls else None
    try:
        if calls is None or isinstance(module, bytes):
            loaded = xla.client.compile_and_load(module, chosen, compile_options)
        else:
            loaded = xla.client.compile_and_load(
                parsed(module), chosen, compile_options, host_callbacks=calls.functions
            )
    except RuntimeError as error:
        raise not_compiled(module, error) from error
    return Executable(loaded, n_args, out_types, calls, devices, in_types)


def load_executable(
    data: bytes,
    n_args: int,
    out_types: Sequence[ArrayType],
    devices: tuple[Device, ...] = (),
    in_types: Sequence[ArrayType] = (),
) -> Executable:
    """Load the bytes of :meth:`Executable.serialize`, of the same jaxlib and kind of processor.

    The other arguments are those of :func:`compile_module`.

    Raises:
        LoweringError: ``data`` is not an executable, or is of another jaxlib.
    """
    xla = backend()
    prepare_for(data)
    chosen = device_list(devices) if devices else xla.device_list
    try:
        loaded = xla.client.deserialize_executable(data, chosen, _options(3, devices))
    except RuntimeError as error:
        raise LoweringError(
            "the installed jaxlib cannot load this executable",
            found=str(error).strip(),
            remedy="compile the program again",
        ) from error
    return Executable(loaded, n_args, out_types, None, devices, in_types)


def _compiled_as(
    module: str | bytes, devices: tuple[Device, ...], options: Sequence[tuple[str, object]]
) -> str:
    """Return all that processes must agree on before they compile."""
    text = module if isinstance(module, str) else f"bytecode {sha256(module).hexdigest()}"
    return f"devices {[d.id for d in devices]}, options {list(options)}\n{text}"


def numeric_estimates(found: Mapping[str, object]) -> dict[str, float]:
    """Return the numbers among XLA's estimates; it leaves out counts that are zero."""
    every = {"flops": 0.0, "transcendentals": 0.0, "bytes accessed": 0.0, **found}
    return {name: float(n) for name, n in sorted(every.items()) if isinstance(n, int | float)}


def _options(optimization: Optimization, devices: tuple[Device, ...] = ()) -> _jax.CompileOptions:
    from jaxlib import _jax

    options = _jax.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    build = options.executable_build_options
    if len(devices) > 1:
        options.num_partitions = build.num_partitions = len(devices)
        build.num_replicas = 1
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_parameters = [True]
        build.allow_spmd_sharding_propagation_to_output = [True]
    placed = np.array([[d.id for d in devices or backend().placement]], np.int32)
    build.device_assignment = _jax.DeviceAssignment.create(placed)
    build.debug_options.xla_backend_optimization_level = optimization
    return options


def _check_counts(executable: Executable) -> None:
    has_args = len(executable.loaded.get_parameter_layouts())
    has_outs = len(executable.loaded.get_output_layouts())
    if (has_args, has_outs) != (executable.n_args, len(executable.out_types)):
        raise LoweringError(
            "the module has another number of arguments or results",
            expected=f"{executable.n_args} arguments, {len(executable.out_types)} results",
            found=f"{has_args} arguments, {has_outs} results",
        )


def not_compiled(
    module: str | bytes, error: Exception, what: str = "XLA cannot compile this module"
) -> LoweringError:
    """Return the error for a module that XLA refuses, with the line that it reports."""
    report = str(error).strip()
    where = re.search(r"(?:^|\s)-:(\d+):\d+: ", report)
    lines = module.splitlines() if isinstance(module, str) else []
    line = int(where[1]) if where else 0
    return LoweringError(
        what,
        # After the parser's error, the report repeats it for the whole module.
        found=report.split("\n<unknown>:0: ", maxsplit=1)[0],
        equation=str(lines[line - 1]).strip() if 0 < line <= len(lines) else None,
    )


def _each_once(n_args: int, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
    """Return the buffers; a program may read one twice. Raises LoweringError for another count."""
    if len(buffers) == n_args:
        return buffers
    raise LoweringError(
        "this call has another number of arguments",
        expected=f"{n_args} buffers",
        found=str(len(buffers)),
    )


def _misplaced(buffer: Buffer) -> LoweringError:
    if buffer.is_deleted():
        return LoweringError(
            "an argument has been deleted or donated",
            expected="live buffers, each donated at most once",
            found=f"{buffer.aval.array_type} (deleted or donated)",
        )
    return LoweringError(
        "an argument is on other devices than the program",
        expected="the placements that the program was compiled for",
        found=str(buffer.aval.array_type),
    )


def _not_run(n_args: int, buffers: Sequence[Buffer], error: RuntimeError) -> LoweringError:
    report = str(error).strip()
    if "INVALID_ARGUMENT" not in report:
        return LoweringError(f"this call failed: {report}")
    given = ", ".join(
        f"{buffer.aval.array_type}{' (deleted or donated)' * buffer.is_deleted()}"
        for buffer in buffers
    )
    lost = any(buffer.is_deleted() for buffer in buffers)
    return LoweringError(
        "an argument has been deleted or donated" if lost else f"this call failed: {report}",
        expected=f"{n_args} live buffers, of the types that it was compiled for, "
        "each donated at most once",
        found=f"({given})",
    )
