"""The stages of a jitted call as values: traced for types of arguments, lowered, compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Generic, TypeVar, cast

from returns.io import IOFailure
from returns.unsafe import unsafe_perform_io

from effax import tree
from effax.api.debugging.nans import watched_runner
from effax.api.device_calls import device_runner
from effax.api.dispatch import Runner, ready, run_call, runner
from effax.api.jit_options import CallPlan, checked_compiler_options
from effax.api.monitoring import COMPILE, log, timed
from effax.api.staging import shapes_of
from effax.arrays.collector import paused_collector
from effax.arrays.config import config
from effax.arrays.layout import row_major
from effax.arrays.ref import TracedRef
from effax.arrays.sharding import Sharding, SingleDeviceSharding
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import FlatFunction, check_same_tree, input_type
from effax.effects import ArgIndex, Row
from effax.ir.analysis.cost.count import count_cost
from effax.ir.dtypes import DType
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.types import Shape, Type
from effax.lazy.dataclasses import dataclass
from effax.lowering import xla
from effax.lowering.layout import DeviceLayout
from effax.lowering.persistent import PersistentCache
from effax.lowering.program import (
    CompiledProgram,
    CompilerOptions,
    compile_program,
    stablehlo_of,
)
from effax.tree import PyTree, PyTreeDef

R = TypeVar("R")

_NO_OPTIONS: Final = CallPlan()


def compiled(
    jaxpr: Jaxpr,
    donated: tuple[int, ...] = (),
    options: CompilerOptions = (),
    layout: DeviceLayout | None = None,
) -> CompiledProgram:
    """Compile a program, or return it from the cache. Raises what lowering or XLA reports.

    Args:
        jaxpr: the program.
        donated: the positions of inputs whose memory results may reuse.
        options: options of XLA.
        layout: the devices and placements, where it is not the first device that runs it.
    """
    with paused_collector():
        result = compile_program(jaxpr, donated, options, persistent_cache(), layout)
    if isinstance(result, IOFailure):
        raise unsafe_perform_io(result.failure())
    return unsafe_perform_io(result.unwrap())


def estimates(jaxpr: Jaxpr) -> dict[str, float]:
    """Return the cost of a program, by names that differ from XLA's."""
    cost = count_cost(jaxpr)
    counts = {
        "flops": cost.flops,
        "transcendentals": cost.transcendentals,
        "bytes read": cost.bytes_read,
        "bytes written": cost.bytes_written,
        "bytes accessed": cost.bytes_accessed,
        "collectives": cost.collectives,
        "peak bytes": cost.peak_bytes,
    }
    return {f"effax {name}": float(count) for name, count in counts.items()}


def persistent_cache() -> PersistentCache | None:
    """Return the directory of compiled programs that the settings name, or None."""
    directory = config.compilation_cache_dir
    if directory is None or not config.enable_compilation_cache:
        return None
    seconds, least, most = (
        str(config.read(name))
        for name in (
            "persistent_cache_min_compile_time_secs",
            "persistent_cache_min_entry_size_bytes",
            "compilation_cache_max_size",
        )
    )
    raises = bool(config.read("raise_persistent_cache_errors"))
    return PersistentCache(str(directory), float(seconds), int(least), int(most), raises)


def compiled_call(flat: FlatFunction, plan: CallPlan, name: str) -> CompiledProgram:
    """Compile a traced call as its plan says; log it, and warn of unused donations."""
    n = len(flat.consts)
    log(f"Compiling jit({name}) with global shapes and types {list(flat.jaxpr.in_types[n:])}")
    with timed(COMPILE, f"XLA compilation of jit({name})"):
        donated = tuple([i + n for i in plan.donated])
        program = compiled(flat.jaxpr, donated, plan.compiler_options, plan.layout)
    plan.warn_of_unused(program, flat)
    return program


def call_runner(program: CompiledProgram, flat: FlatFunction, plan: CallPlan) -> Runner:
    """Return the function that runs a compiled call, on the devices of its plan."""
    call = ready(program, flat)
    return runner(call) if plan.devices is None else device_runner(call, plan.devices)


@dataclass(frozen=True)
class ArgInfo:
    """The type of a leaf of the arguments, and whether its memory is donated."""

    aval: Type
    donated: bool

    @property
    def _aval(self) -> Type:
        return self.aval

    @property
    def shape(self) -> Shape:
        """Return the shape."""
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        """Return the dtype."""
        return self.aval.dtype


class _Staged:
    """The traced function of a stage, and the structures and types of its arguments and results.

    Args:
        flat: the traced function.
        in_tree: the structure of ``(args, kwargs)``.
        plan: what the options of ``jit`` mean for the call.
        name: the name of the function.
    """

    def __init__(
        self,
        flat: FlatFunction,
        in_tree: PyTreeDef,
        plan: CallPlan = _NO_OPTIONS,
        name: str = "<unnamed function>",
    ) -> None:
        self._flat = flat
        self._in_tree = in_tree
        self._plan = plan
        self._name = name

    @property
    def flat(self) -> FlatFunction:
        """Return the traced function: its program, and the values that it closes over."""
        return self._flat

    @property
    def in_tree(self) -> PyTreeDef:
        """Return the structure of ``(args, kwargs)``."""
        return self._in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        """Return the structure of the results."""
        return self._flat.out_tree

    @property
    def in_avals(self) -> PyTree:
        """Return the tree of types of ``(args, kwargs)``."""
        types = self._flat.jaxpr.in_types[len(self._flat.consts) :]
        return tree.unflatten(self._in_tree, types)

    @property
    def out_info(self) -> PyTree:
        """Return the tree of shapes and dtypes of the results."""
        return shapes_of(self._flat)

    @property
    def args_info(self) -> PyTree:
        """Return the tree of an :class:`ArgInfo` for each leaf of ``(args, kwargs)``."""
        types = self._flat.jaxpr.in_types[len(self._flat.consts) :]
        infos = [ArgInfo(t, i in self._plan.donated) for i, t in enumerate(types)]
        return tree.unflatten(self._in_tree, infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Return the positions of the leaves of ``(args, kwargs)`` that are donated."""
        return self._plan.donated


class Traced(_Staged, Generic[R]):
    """A call that was traced for certain types of arguments.

    >>> traced = effax.jit(lambda x: x + 1).trace(1.0)
    >>> traced.jaxpr
    { lambda ; a:~f32[]. let
        b:~f32[] = add a 1.0:~f32[]
      in (b,) }
    >>> traced.lower().compile()(2.0)
    Array(3., dtype=float32, weak_type=True)
    """

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """Return the program, and the values that it closes over."""
        return ClosedJaxpr(self._flat.jaxpr, self._flat.consts)

    @property
    def lojax(self) -> Traced[R]:
        """Return itself: its program has no types of users to lower."""
        return self

    @property
    def fun_name(self) -> str:
        """Return the name of the function."""
        return self._name

    @property
    def effects(self) -> Row[ArgIndex]:
        """Return the effects over the binders of the program."""
        return self._flat.jaxpr.effects

    @property
    def out_avals(self) -> PyTree:
        """Return the tree of types of the results."""
        return tree.unflatten(self.out_tree, self._flat.jaxpr.out_types)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered[R]:
        """Return the call, lowered. Modules are portable: ``lowering_platforms`` is ignored."""
        del lowering_platforms
        return Lowered(self._flat, self._in_tree, self._plan, self._name)


class Lowered(_Staged, Generic[R]):
    """A call that was lowered for certain types of arguments."""

    @property
    def jaxpr(self) -> Jaxpr:
        """Return the program before references are discharged."""
        return self._flat.jaxpr

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the portable StableHLO module, without calls of a platform's libraries.

        Args:
            dialect: ``stablehlo``, or ``hlo`` for XLA's text before optimisation.
            debug_info: whether the text has the source line of each equation, as comments.

        Raises BadArgument for another dialect.
        """
        n = len(self._flat.consts)
        donated = [i + n for i in self._plan.donated]
        layout = self._plan.layout
        text = stablehlo_of(self._flat.jaxpr, donated=donated, layout=layout)[1].text
        if _is_hlo(dialect):
            text = xla.computation_of(text).as_hlo_module().to_string()
        return text + self._sources() if debug_info else text

    def _sources(self) -> str:
        """Return the program with its source lines, as comments."""
        lines = [f"// {eqn.prim.name}: {eqn.source}\n" for eqn in self._flat.jaxpr.eqns]
        return "".join([f"// loc: jit({self._name})\n", *lines])

    def compiler_ir(self, dialect: str | None = None) -> object:
        """Return the module as an object: jaxlib's ``ir.Module``, or its ``XlaComputation``.

        Args:
            dialect: ``stablehlo`` or ``hlo``.

        Raises BadArgument for another dialect.
        """
        if _is_hlo(dialect):
            return xla.computation_of(self.as_text())
        return xla.module_of(self.as_text())

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates for the module before it is optimised, and those of effax.

        XLA's are under its names: ``flops``, ``transcendentals``, ``bytes accessed``, ...; it
        counts the body of a loop once. Those of :func:`effax.cost` are under ``effax flops``,
        ``effax transcendentals``, ``effax bytes read``, ``effax bytes written``, ``effax bytes
        accessed``, ``effax collectives`` and ``effax peak bytes``.

        >>> lowered = effax.jit(lambda x: x @ x).lower(jnp.ones((4, 4)))
        >>> lowered.cost_analysis()["flops"], lowered.cost_analysis()["effax flops"]
        (128.0, 128.0)
        """
        return xla.module_cost(self.as_text()) | estimates(self._flat.jaxpr)

    def compile(self, compiler_options: Mapping[str, object] | None = None) -> Compiled[R]:
        """Compile the call, or return it from the cache.

        Args:
            compiler_options: options of XLA by name, beside those of ``jit``.

        Raises:
            BadArgument: they are not a dict of names.
            LoweringError: XLA has no such option, or refuses its value.
        """
        further = checked_compiler_options(compiler_options)
        options = {**dict(self._plan.compiler_options), **dict(further)}
        plan = self._plan._replace(compiler_options=tuple(options.items()))
        program = compiled_call(self._flat, plan, self._name)
        return Compiled(program, self._flat, self._in_tree, plan, self._name)


def _is_hlo(dialect: str | None) -> bool:
    if dialect not in (None, "stablehlo", "hlo"):
        raise BadArgument("unknown dialect", "'stablehlo' or 'hlo'", repr(dialect))
    return dialect == "hlo"


class Compiled(_Staged, Generic[R]):
    """A compiled call for certain types of arguments."""

    def __init__(
        self,
        program: CompiledProgram,
        flat: FlatFunction,
        in_tree: PyTreeDef,
        plan: CallPlan = _NO_OPTIONS,
        name: str = "<unnamed function>",
    ) -> None:
        super().__init__(flat, in_tree, plan, name)
        self._program = program

    @property
    def program(self) -> CompiledProgram:
        """Return the compiled program, which runs on buffers."""
        return self._program

    def as_text(self) -> str:
        """Return the optimised program as XLA's HLO text."""
        return self._program.executable.optimized_hlo()

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates for the optimised program, and those of effax.

        The names are those of :meth:`Lowered.cost_analysis`.
        """
        return self._program.executable.cost_analysis() | estimates(self._flat.jaxpr)

    def memory_analysis(self) -> xla.MemoryStats:
        """Return the bytes of arguments, results and temporaries."""
        return self._program.executable.memory_analysis()

    @property
    def input_shardings(self) -> PyTree:
        """Return the tree of shardings of ``(args, kwargs)``."""
        places = [place or _on_first_device() for place in self._in_places()]
        return tree.unflatten(self._in_tree, self._chosen(places, self._ins()))

    @property
    def on_devices(self) -> bool:
        """Return whether arguments and results are on several devices."""
        return self._plan.devices is not None

    def _ins(self) -> list[tuple[xla.Placement, int]]:
        n = len(self._flat.consts)
        types = self._flat.jaxpr.in_types[n:]
        places = self._program.executable.in_places[n:]
        return [(p, len(t.shape)) for p, t in zip(places, types, strict=False)]

    def _chosen(
        self, places: Sequence[Sharding], found: Sequence[tuple[xla.Placement, int]]
    ) -> Sequence[Sharding]:
        """Return shardings; those that the compiler chose, where there are several devices."""
        devices = self._plan.devices
        return places if devices is None else [devices.sharding(p, n) for p, n in found]

    @property
    def output_shardings(self) -> PyTree:
        """Return the tree of shardings of the results."""
        given = self._plan.outs or [None] * self.out_tree.num_leaves
        types, chosen = self._flat.jaxpr.out_types, self._program.executable.out_places
        found = [(p, len(t.shape)) for p, t in zip(chosen, types, strict=False)]
        places = self._chosen([place or _on_first_device() for place in given], found)
        return tree.unflatten(self.out_tree, places)

    @property
    def input_formats(self) -> PyTree:
        """Return the tree of layouts and shardings of ``(args, kwargs)``."""
        return _formats(self.in_avals, self.input_shardings)

    @property
    def output_formats(self) -> PyTree:
        """Return the tree of layouts and shardings of the results."""
        types = tree.unflatten(self.out_tree, self._flat.jaxpr.out_types)
        return _formats(types, self.output_shardings)

    def _in_places(self) -> Sequence[Sharding | None]:
        return self._plan.ins or [None] * self._in_tree.num_leaves

    def runtime_executable(self) -> object:
        """Return jaxlib's executable."""
        return self._program.executable.loaded

    def call(self, *args: object, **kwargs: object) -> R:
        """Call it, as ``compiled(*args, **kwargs)``."""
        return self(*args, **kwargs)

    def __call__(self, *args: object, **kwargs: object) -> R:
        leaves, treedef = tree.flatten((args, kwargs))
        if any(isinstance(x, TracedArray | TracedRef) for x in leaves):
            raise IllTyped(
                "a compiled call cannot be traced",
                expected="arrays and references",
                found="traced values",
                remedy="call the function that it was compiled from",
            )
        check_same_tree(treedef, self._in_tree, "the arguments of a compiled call")
        jaxpr, n_consts = self._flat.jaxpr, len(self._flat.consts)
        for i, (x, type_) in enumerate(zip(leaves, jaxpr.in_types[n_consts:], strict=True)):
            name = jaxpr.name_of(n_consts + i)
            found = input_type(x, name)
            if found.shape != type_.shape or found.dtype != type_.dtype:
                raise IllTyped(
                    f"{name} of a compiled call has the wrong type",
                    expected=str(type_),
                    found=str(found),
                )
        run: Runner = partial(run_call, ready(self._program, self._flat))
        if self._plan.devices is not None:
            run = call_runner(self._program, self._flat, self._plan)
        if config.watched:
            run = watched_runner(run, self._flat, config.watched, "compiled")
        return cast(R, self._plan.runner(run, self._program, n_consts)(leaves))


def _formats(types: PyTree, shardings: PyTree) -> PyTree:
    return tree.map(lambda t, place: row_major(t.ndim, place), types, shardings)


def _on_first_device() -> Sharding:
    return SingleDeviceSharding(xla.first_device())
