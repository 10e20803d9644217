"""``jit``: a callable compiled by XLA, references updated in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from operator import is_
from typing import Final, Generic, NamedTuple, ParamSpec, Self, TypeVar, cast, overload
from weakref import ref

from returns.io import IOFailure
from returns.unsafe import unsafe_perform_io

from effax import tree
from effax.api.custom.rule_tracing import knots
from effax.api.dispatch import Runner, ready, run, runner
from effax.api.staging import is_abstract, shapes_of, trace_abstractly
from effax.api.static import StaticArgs, is_stale, watched
from effax.arrays.argument_checks import check_callable
from effax.arrays.binding import atom_in, bind
from effax.arrays.device_array import Array, DeviceArray, TracedArray, as_value
from effax.arrays.ref import EagerRef, Ref, TracedRef
from effax.arrays.tracing import (
    FlatFunction,
    arg_names,
    flat_args,
    input_type,
    shown_tree,
    trace_flat,
)
from effax.config import config
from effax.ir.errors import IllTyped
from effax.ir.prims.control import Jit
from effax.ir.scope import axes_in_scope, checked_axes
from effax.ir.syntax import Jaxpr
from effax.ir.trace import alias_error, current_trace, differs_along, identity
from effax.ir.types import Type
from effax.lowering.program import CompiledProgram, compile_program, stablehlo_of
from effax.lowering.xla import MemoryStats, backend
from effax.passes.pipeline import Step, passes_of
from effax.passes.watch import run_verified
from effax.transforms.framework.runner import unwrap
from effax.tree import PyTree, PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Key = tuple[object, ...]

_CALLS: Final = 4096
"""How many kinds of calls one function remembers; the oldest go first."""

_WITH_TYPE: Final = (DeviceArray, EagerRef)
"""Classes of which every instance keeps its type as ``_type``."""


class _Call(NamedTuple):
    """One call taken apart: the callable left, its dynamic leaves, their tree, a cache key."""

    fun: Callable[..., object]
    args: Sequence[object]
    kwargs: Mapping[str, object]
    leaves: list[PyTree]
    treedef: PyTreeDef
    key: Key


class JitFunction(Generic[P, R]):
    """A compiled callable. Calling it traces once for each structure and types of arguments."""

    def __init__(
        self, fun: Callable[P, R], static: StaticArgs, inline: bool, passes: Step | None = None
    ) -> None:
        self._passes = passes
        self._fun = fun
        self._static = static
        self._inline = inline
        self._runners: dict[Key, Runner] = {}
        # Of calls with arrays and references alone: their types are the key. Those whose arguments
        # are trees have a key with the structure that XLA's own flattening gives.
        self._plain: dict[Key, Runner] = {}
        self._trees: dict[Key, Runner] = {}
        self._traced: dict[Key, FlatFunction] = {}
        self._watched: dict[int, object] = {}
        self._label = getattr(fun, "__name__", type(fun).__name__)
        update_wrapper(self, fun, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if current_trace() is not None:
            return cast(R, self._staged(self._taken_apart(args, kwargs)))
        if self._plain and not kwargs:
            try:
                key: Key = (config.generation, *[x._type for x in args])  # type: ignore[attr-defined]  # asked for below
                warm = self._plain.get(key)
            except AttributeError:
                warm = None
            if warm is not None:
                return cast(R, warm(args))
        if self._trees:
            found = self._among_trees(args, kwargs)
            if found is not None:
                return cast(R, found[0](found[1]))
        return cast(R, self._called(args, kwargs))

    def _among_trees(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Runner, list[PyTree]] | None:
        """What runs a call on trees that was seen before, and the leaves to run it on."""
        try:
            leaves, key = _structured(args, kwargs)
        except (AttributeError, TypeError, ValueError):
            return None
        warm = self._trees.get(key)
        return None if warm is None else (warm, leaves)

    def _called(self, args: Sequence[PyTree], kwargs: Mapping[str, object]) -> object:
        call = self._taken_apart(args, kwargs)
        warm = self._runners.get(call.key)
        if warm is None:
            flat = self._trace(call)
            warm = runner(ready(_compiled(flat.jaxpr), flat))
            self._keep(self._runners, call.key, warm)
            if not any(self._static):
                self._keep_plain(args, kwargs, call.leaves, warm)
        return warm(call.leaves)

    def _keep_plain(
        self,
        args: Sequence[PyTree],
        kwargs: Mapping[str, object],
        leaves: list[PyTree],
        warm: Runner,
    ) -> None:
        """Remember a call under a key that is quicker to make, where there is one."""
        if not _are_plain(leaves):
            return
        if not kwargs and _are_plain(args):
            self._keep(self._plain, (config.generation, *[x._type for x in args]), warm)
            return
        try:
            found, key = _structured(args, kwargs)
        except (AttributeError, TypeError, ValueError):
            return
        # Nodes of the user's own may be leaves for XLA, or have their leaves in another order.
        if len(found) == len(leaves) and all(map(is_, found, leaves)):
            self._keep(self._trees, key, warm)

    @overload
    def __get__(self, instance: None, owner: type | None = ...) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = ...) -> Callable[..., R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Bind as a method: the instance becomes the first argument."""
        return self if instance is None else partial(cast("Callable[..., R]", self), instance)

    def _taken_apart(self, args: Sequence[object], kwargs: Mapping[str, object]) -> _Call:
        fun: Callable[..., object] = self._fun
        static_key: object = None
        if self._static.nums or self._static.names:
            static_key = self._static.key(fun, args, kwargs)
            fun, args, kwargs = self._static.split(fun, args, kwargs)
        leaves, treedef = tree.flatten((args, dict(kwargs)))
        try:
            types = [x._type if type(x) in _WITH_TYPE else input_type(x) for x in leaves]
        except IllTyped:
            # Say which argument it was; names are looked up only when something is wrong.
            flat_args(fun, args, kwargs)
            raise
        axes = axes_in_scope()
        state: object = config.generation
        if axes:
            # What the function is, traced here, depends on the axes and on what differs.
            state = (state, axes, tuple([differs_along(x) for x in leaves]))
        key = (treedef, static_key, state, *types)
        return _Call(fun, args, kwargs, leaves, treedef, key)

    def _trace(self, call: _Call) -> FlatFunction:
        found = self._traced.get(call.key)
        if found is not None:
            _check_aliases(found, call)
            return found
        names = arg_names(call.fun, call.args, call.kwargs, len(call.leaves))
        outers = [x if isinstance(x, Ref) else None for x in call.leaves]
        types = cast("tuple[Type, ...]", call.key[3:])
        label = f"jit({self._label})"
        with knots() as seen:
            differs = [differs_along(x) for x in call.leaves] if checked_axes() else None
            traced = trace_flat(
                call.fun, call.treedef, types, names, label, outers, differs=differs
            )
            flat = self._through(traced)
        closed = not any(isinstance(c, TracedArray | TracedRef) for c in flat.consts)
        if closed and not seen.escape:
            self._keep(self._traced, call.key, flat)
        return flat

    def _through(self, flat: FlatFunction) -> FlatFunction:
        """The call with its program transformed by the passes that were given."""
        if self._passes is None:
            return flat
        made = run_verified(self._passes, flat.jaxpr)
        return flat._replace(jaxpr=unwrap(made))

    def _keep(self, table: dict[Key, T], key: Key, value: T) -> None:
        """Remember something about a kind of call, as long as its static arguments live."""
        table[key] = value
        if len(table) > _CALLS:
            table.pop(next(iter(table)))
        if table is not self._plain and table is not self._trees and key[1] is not None:
            mine = ref(self)

            def forget(gone: object) -> None:
                this = mine()
                if this is not None:
                    this._forget(gone)

            self._watched.update((id(w), w) for w in watched(key[1], forget))

    def _forget(self, gone: object) -> None:
        """Drop what is kept for a static argument that is gone."""
        self._watched.pop(id(gone), None)
        for table in (self._runners, self._traced):
            for key in [k for k in list(table) if k[1] is not None and is_stale(k[1])]:
                table.pop(key, None)

    def _staged(self, call: _Call) -> object:
        """The call inside of another trace: one equation, or its equations where inlined."""
        flat = self._trace(call)
        operands = [x if isinstance(x, Array | Ref) else as_value(x) for x in call.leaves]
        args = [*flat.consts, *operands]
        if self._inline:
            trace = current_trace()
            assert trace is not None
            atoms = [atom_in(trace, a) for a in args]
            outs: Sequence[object] = [
                TracedArray(trace, a) for a in trace.builder.inline_jaxpr(flat.jaxpr, atoms)
            ]
        else:
            outs = bind(Jit(flat.jaxpr, self._label), *args)
        return tree.unflatten(flat.out_tree, outs)

    def lower(self, *args: object, **kwargs: object) -> Lowered[R]:
        """Trace and lower for these arguments, or their types; compile nothing.

        A type is a ``ShapeDtypeStruct``, an ``ArrayType``, or the ``RefType`` of a reference.
        """
        return Lowered(*self._traced_for(args, kwargs))

    def trace(self, *args: object, **kwargs: object) -> Jaxpr:
        """The program for these arguments, or for their types."""
        return self._traced_for(args, kwargs)[0].jaxpr

    def eval_shape(self, *args: object, **kwargs: object) -> PyTree:
        """The tree of shapes and dtypes for these arguments, or for their types."""
        return shapes_of(self._traced_for(args, kwargs)[0])

    def _traced_for(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[FlatFunction, PyTreeDef]:
        if any(map(is_abstract, tree.leaves((args, kwargs)))):
            label = f"jit({self._label})"
            flat, treedef = trace_abstractly(self._fun, args, kwargs, self._static, label)
            return self._through(flat), treedef
        call = self._taken_apart(args, kwargs)
        return self._trace(call), call.treedef

    def clear_cache(self) -> None:
        """Forget what was traced and compiled for this callable."""
        self._runners.clear()
        self._plain.clear()
        self._trees.clear()
        self._traced.clear()
        self._watched.clear()


def _structured(args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[list[PyTree], Key]:
    """The leaves of a call, and the key of its structure and types.

    Raises AttributeError where a leaf is neither an array nor a reference with memory; TypeError or
    ValueError where keys of a dict have no hash or no order.
    """
    found, structure = backend().flatten((args, kwargs) if kwargs else args)
    leaves: list[PyTree] = found
    return leaves, (structure, config.generation, *[x._type for x in leaves])


def _are_plain(args: Sequence[object]) -> bool:
    """Whether every argument is an array or a reference with memory."""
    return all([type(x) in _WITH_TYPE for x in args])  # noqa: C419  # a list is faster


def _check_aliases(flat: FlatFunction, call: _Call) -> None:
    """A kept trace was checked for other references: check those of this call. Raises RefError."""
    seen: dict[int, int] = {identity(c): -1 for c in flat.consts if isinstance(c, Ref)}
    n = len(flat.consts)
    for i, x in enumerate(call.leaves):
        if not isinstance(x, Ref):
            continue
        first = seen.setdefault(identity(x), i)
        if first < 0:
            raise alias_error(
                f"jit gets a reference as {flat.jaxpr.name_of(n + i)} and closes over it", x
            )
        if first != i:
            names = [flat.jaxpr.name_of(n + k) for k in (first, i)]
            raise alias_error(f"jit gets one reference as {names[0]} and as {names[1]}", x)


def _compiled(jaxpr: Jaxpr) -> CompiledProgram:
    result = compile_program(jaxpr)
    if isinstance(result, IOFailure):
        raise unsafe_perform_io(result.failure())
    return unsafe_perform_io(result.unwrap())


class Lowered(Generic[R]):
    """A call that was lowered for certain types of arguments."""

    def __init__(self, flat: FlatFunction, in_tree: PyTreeDef) -> None:
        self._flat = flat
        self._in_tree = in_tree

    @property
    def flat(self) -> FlatFunction:
        """The traced function: its program, and what that is closed over."""
        return self._flat

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of ``(args, kwargs)``."""
        return self._in_tree

    @property
    def jaxpr(self) -> Jaxpr:
        """The program, references and all."""
        return self._flat.jaxpr

    def as_text(self) -> str:
        """The StableHLO module that runs anywhere; for a platform, its libraries are called."""
        return stablehlo_of(self._flat.jaxpr)[1].text

    def compile(self) -> Compiled[R]:
        """Compile it, or find it among the programs compiled before."""
        return Compiled(_compiled(self._flat.jaxpr), self._flat, self._in_tree)


class Compiled(Generic[R]):
    """A compiled call for certain types of arguments."""

    def __init__(self, program: CompiledProgram, flat: FlatFunction, in_tree: PyTreeDef) -> None:
        self._program = program
        self._flat = flat
        self._in_tree = in_tree

    @property
    def program(self) -> CompiledProgram:
        """The compiled program, which runs on buffers."""
        return self._program

    def as_text(self) -> str:
        """The optimised program, as XLA's HLO text."""
        return self._program.executable.optimized_hlo()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates: flops, bytes accessed, ..."""
        return self._program.executable.cost_analysis()

    def memory_analysis(self) -> MemoryStats:
        """Bytes for arguments, results and temporaries."""
        return self._program.executable.memory_analysis()

    def __call__(self, *args: object, **kwargs: object) -> R:
        leaves, treedef = tree.flatten((args, kwargs))
        if any(isinstance(x, TracedArray | TracedRef) for x in leaves):
            raise IllTyped(
                "a compiled call is part of no other program",
                expected="arrays and references",
                found="traced values",
                remedy="call the function that it was compiled from",
            )
        n_consts = len(self._flat.consts)
        if treedef != self._in_tree:
            raise IllTyped(
                "a compiled call gets another structure of arguments than it was compiled for",
                expected=shown_tree(self._in_tree),
                found=shown_tree(treedef),
            )
        wanted = self._flat.jaxpr.in_types[n_consts:]
        for i, (x, type_) in enumerate(zip(leaves, wanted, strict=True)):
            found = input_type(x, self._flat.jaxpr.name_of(n_consts + i))
            if found.shape != type_.shape or found.dtype != type_.dtype:
                name = self._flat.jaxpr.name_of(n_consts + i)
                raise IllTyped(
                    f"a compiled call gets another type as {name}",
                    expected=str(type_),
                    found=str(found),
                )
        result: R = run(ready(self._program, self._flat), leaves)
        return result


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    inline: bool = ...,
    passes: Step | Sequence[Step] | None = ...,
) -> JitFunction[P, R]: ...
@overload
def jit(
    *,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    inline: bool = ...,
    passes: Step | Sequence[Step] | None = ...,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(
    fun: Callable[P, R] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    inline: bool = False,
    passes: Step | Sequence[Step] | None = None,
) -> JitFunction[P, R] | Callable[[Callable[P, R]], JitFunction[P, R]]:
    """Compile ``fun`` with XLA, once for each structure and types of its arguments.

    References that it takes or closes over are updated in place: their addresses stay the same.

    Args:
        fun: a function of trees of arrays and references. Without one, as in
            ``@jit(static_argnums=1)``, a decorator is given.
        static_argnums: positions of arguments that are compared by value and not traced.
        static_argnames: names of such arguments.
        inline: inside of another trace, put the equations in the place of one call.
        passes: what the program goes through before it is compiled or called: a pass, a pipeline,
            or a list of these (``effax.passes``).

    Raises:
        BadArgument: ``fun`` is not callable, a static argument does not exist, or what is given
            as passes is none. When called: ``TransformError`` where a pass fails, ``Broken`` where
            it gives a program that is not well formed or of another type.
    """
    through = None if passes is None else passes_of(passes)

    def compiled(fun: Callable[P, R]) -> JitFunction[P, R]:
        check_callable(fun, "jit")
        static = StaticArgs.of(fun, static_argnums, static_argnames)
        return JitFunction(fun, static, inline, through)

    return compiled if fun is None else compiled(fun)
