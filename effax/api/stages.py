"""The stages of a jitted call as values: lowered for types of arguments, then compiled."""

from __future__ import annotations

from functools import partial
from typing import Generic, TypeVar, cast

from returns.io import IOFailure
from returns.unsafe import unsafe_perform_io

from effax import tree
from effax.api.debugging.nans import watched_runner
from effax.api.dispatch import ready, run_call
from effax.api.staging import shapes_of
from effax.arrays.collector import paused_collector
from effax.arrays.config import config
from effax.arrays.ref import TracedRef
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import FlatFunction, check_same_tree, input_type
from effax.ir.analysis.cost.count import count_cost
from effax.ir.errors import IllTyped
from effax.ir.syntax import Jaxpr
from effax.lowering import xla
from effax.lowering.program import CompiledProgram, compile_program, stablehlo_of
from effax.tree import PyTree, PyTreeDef

R = TypeVar("R")


def compiled(jaxpr: Jaxpr) -> CompiledProgram:
    """Compile a program, or return it from the cache. Raises what lowering or XLA reports."""
    with paused_collector():
        result = compile_program(jaxpr)
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


class _Staged:
    """The traced function of a stage, and the structures and types of its arguments and results."""

    def __init__(self, flat: FlatFunction, in_tree: PyTreeDef) -> None:
        self._flat = flat
        self._in_tree = in_tree

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


class Lowered(_Staged, Generic[R]):
    """A call that was lowered for certain types of arguments."""

    @property
    def jaxpr(self) -> Jaxpr:
        """Return the program before references are discharged."""
        return self._flat.jaxpr

    def as_text(self) -> str:
        """Return the portable StableHLO module, without calls of a platform's libraries."""
        return stablehlo_of(self._flat.jaxpr)[1].text

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

    def compile(self) -> Compiled[R]:
        """Compile the call, or return it from the cache."""
        return Compiled(compiled(self._flat.jaxpr), self._flat, self._in_tree)


class Compiled(_Staged, Generic[R]):
    """A compiled call for certain types of arguments."""

    def __init__(self, program: CompiledProgram, flat: FlatFunction, in_tree: PyTreeDef) -> None:
        super().__init__(flat, in_tree)
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
        call = ready(self._program, self._flat)
        if not config.watched:
            return cast(R, run_call(call, leaves))
        run = watched_runner(partial(run_call, call), self._flat, config.watched, "compiled")
        return cast(R, run(leaves))
