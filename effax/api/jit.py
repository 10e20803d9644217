"""``jit``: a callable compiled by XLA, references updated in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Generic, NamedTuple, ParamSpec, TypeVar, cast, overload

from effax import tree
from effax.api.call_cache import (
    KINDS,
    WITH_TYPE,
    CacheEntry,
    CallCache,
    CallSignature,
    cache_of,
)
from effax.api.call_keys import ShortKey, flat_key
from effax.api.debugging.nans import watched_runner
from effax.api.dispatch import Runner, check_aliases
from effax.api.explain_misses import explain_miss
from effax.api.host_arguments import leaves_arguments_alone
from effax.api.jit_options import (
    UNSPECIFIED,
    CompilerOptions,
    Inline,
    JitOptions,
    checked_compiler_options,
)
from effax.api.methods import BindsAsMethod
from effax.api.monitoring import TRACE, timed, warn
from effax.api.stages import Lowered, Traced, call_runner, compiled_call
from effax.api.staging import abstract_type, shapes_of
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable
from effax.arrays.array import Array
from effax.arrays.binding import Operand, atom_in, bind
from effax.arrays.config import config
from effax.arrays.conversion import as_value
from effax.arrays.placed_array import placed_types
from effax.arrays.ref import Ref, TracedRef
from effax.arrays.sharding import Sharding
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import (
    FlatFunction,
    ForbiddenBySetting,
    TraceOptions,
    arg_names,
    flat_args,
    input_type,
    label_of,
    trace_flat,
)
from effax.arrays.view_arguments import has_views, open_views
from effax.ir.axes import Axes
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Jit
from effax.ir.scope import axes_in_scope, checked_axes
from effax.ir.trace import current_trace, differs_along
from effax.lowering.xla import Device
from effax.passes.pipeline import AnyPass, passes_of
from effax.passes.watch import run_verified
from effax.transforms.framework.runner import unwrap
from effax.tree import PyTree

P = ParamSpec("P")
R = TypeVar("R")


class _Call(NamedTuple):
    """A call: the function of its dynamic arguments, their leaves, and its signature."""

    fun: Callable[..., object]
    args: Sequence[object]
    kwargs: Mapping[str, object]
    leaves: list[object]
    signature: CallSignature


class JitFunction(BindsAsMethod[R], Generic[P, R]):
    """A compiled callable, traced and compiled once for each signature of its calls."""

    def __init__(self, fun: Callable[P, R], static: StaticArgs, options: JitOptions) -> None:
        self._options = options
        self._fun = fun
        self._static = static
        self._has_static = any(static)
        self._cache = cache_of(fun, static) if options.are_plain else CallCache(static)
        self._name: str = getattr(fun, "__name__", None) or label_of(fun)
        update_wrapper(self, fun, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if current_trace() is not None:
            if config.disable_jit:
                return self._fun(*args, **kwargs)
            return cast(R, self._staged(args, kwargs))
        cache = self._cache
        warm: Runner | None = None
        if cache.by_types:
            # `types_key`, inlined: a further call would cost a tenth of a warm call on arrays.
            try:
                key: ShortKey = (config.call_key, *[x._type for x in args])  # type: ignore[attr-defined]  # where it is missing, the other tables are searched
                if kwargs:
                    key = (*key, *kwargs, *[x._type for x in kwargs.values()])  # type: ignore[attr-defined]  # likewise
                warm = cache.by_types.get(key)
            except AttributeError:
                pass
        if warm is None and cache.by_kind:
            warm = cache.by_kind.get(flat_key(self._static, args, kwargs))
        if warm is not None:
            return warm((*args, *kwargs.values()) if kwargs else args)  # type: ignore[return-value]  # a cast costs 1%
        if cache.by_structure:
            found = cache.find_tree(args, kwargs)
            if found is not None:
                return cast(R, found[0](found[1]))
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        call = self._flatten_call(args, kwargs, ())
        entry = cache.entry(call.signature) or self._traced(call)
        runner = entry.runner or self._compile(entry, args, kwargs, call.leaves)
        if len(entry.indexed) < KINDS:
            cache.index(args, kwargs, call.leaves, call.signature.types, entry)
        return cast(R, runner(call.leaves))

    def _flatten_call(
        self,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        axes: Axes,
        abstract: bool = False,
    ) -> _Call:
        fun: Callable[..., object] = self._fun
        static = None
        if self._has_static:
            static = self._static.values_of(fun, args, kwargs, self._cache.on_collected)
            fun, args, kwargs = self._static.split(fun, args, kwargs)
        leaves, structure = tree.flatten((args, dict(kwargs)))
        if has_views(leaves):
            args, kwargs = open_views((tuple(args), dict(kwargs)))
            leaves, structure = tree.flatten((args, kwargs))
        of = abstract_type if abstract else input_type
        try:
            types = tuple([x._type if type(x) in WITH_TYPE else of(x) for x in leaves])
        except IllTyped:
            # Name the argument; names are looked up on errors only.
            flat_args(fun, args, kwargs)
            raise
        varying = tuple([differs_along(x) for x in leaves]) if axes else ()
        placed = placed_types(leaves)
        signature = CallSignature(structure, types, static, config.call_key, axes, varying, placed)
        return _Call(fun, args, kwargs, leaves, signature)

    def _traced(self, call: _Call) -> CacheEntry:
        """Trace a call, and cache the entry where its program is valid in any context."""
        names = arg_names(call.fun, call.args, call.kwargs, len(call.leaves))
        outers = [x if isinstance(x, Ref) else None for x in call.leaves]
        differs = [differs_along(x) for x in call.leaves] if checked_axes() else None
        options = TraceOptions(outers, differs=differs)
        structure, types = call.signature.structure, call.signature.types
        if config.explain_cache_misses:
            warn(explain_miss(self._fun, names, call.signature, self._cache.entries))
        with timed(TRACE, f"tracing {self._name} for jit"):
            flat = trace_flat(call.fun, structure, types, names, self._label, options)
        entry = CacheEntry(self._through_passes(flat))
        closed = not any(isinstance(c, TracedArray | TracedRef) for c in flat.consts)
        if closed:
            self._cache.add(call.signature, entry)
        return entry

    def _through_passes(self, flat: FlatFunction) -> FlatFunction:
        passes = self._options.passes
        if passes is None:
            return flat
        return flat._replace(jaxpr=unwrap(run_verified(passes, flat.jaxpr)))

    def _compile(
        self,
        entry: CacheEntry,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        leaves: Sequence[object],
    ) -> Runner:
        """Compile an entry."""
        if config.no_execution:
            raise ForbiddenBySetting(f"{self._label} is called, and no_execution is on")
        with entry.lock:
            made = entry.runner
            if made is None:
                entry.runner = made = self._made_runner(entry, args, kwargs, leaves)
        return made

    def _made_runner(
        self,
        entry: CacheEntry,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        leaves: Sequence[object],
    ) -> Runner:
        flat = entry.flat
        plan = self._options.plan(flat, self._static, args, kwargs, leaves, self._name)
        program = compiled_call(flat, plan, self._name)
        made = call_runner(program, flat, plan)
        if config.watched:
            made = watched_runner(made, flat, config.watched, self._name)
        else:
            entry.reads = leaves_arguments_alone(program)
        return plan.runner(made, program, len(flat.consts))

    def _program_of(self, call: _Call) -> FlatFunction:
        """Return the program of a call whose entry was traced with other references."""
        entry = self._cache.entry(call.signature)
        if entry is None:
            return self._traced(call).flat
        check_aliases(entry.flat.jaxpr, entry.flat.consts, call.leaves)
        return entry.flat

    def _staged(self, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Add the call to the trace: one equation, or its equations where inlined."""
        call = self._flatten_call(args, kwargs, axes_in_scope())
        flat = self._program_of(call)
        leaves = [x if isinstance(x, Array | Ref) else as_value(x) for x in call.leaves]
        ins, results = self._options.shardings(flat, self._static, args, kwargs)
        given = cast("list[Operand]", _constrained(leaves, ins))
        operands = [*flat.consts, *given]
        if self._options.inline:
            trace = current_trace()
            assert trace is not None
            atoms = [atom_in(trace, x) for x in operands]
            outs: Sequence[object] = [
                TracedArray(trace, a) for a in trace.builder.inline_jaxpr(flat.jaxpr, atoms)
            ]
        else:
            outs = bind(Jit(flat.jaxpr, self._name), *operands)
        return tree.unflatten(flat.out_tree, _constrained(outs, results))

    def lower(self, *args: object, **kwargs: object) -> Lowered[R]:
        """Trace and lower for these arguments, or their types; compile nothing.

        A type is a ``ShapeDtypeStruct``, an ``ArrayType``, or the ``RefType`` of a reference.
        """
        return self.trace(*args, **kwargs).lower()

    def trace(self, *args: object, **kwargs: object) -> Traced[R]:
        """Return the call, traced for these arguments or their types; its program is ``jaxpr``."""
        flat, call = self._traced_for(args, kwargs)
        structure = call.signature.structure
        plan = self._options.plan(flat, self._static, args, kwargs, call.leaves, self._name)
        return Traced(flat, structure, plan, self._name)

    def eval_shape(self, *args: object, **kwargs: object) -> PyTree:
        """Return the tree of shapes and dtypes for these arguments, or for their types."""
        return shapes_of(self._traced_for(args, kwargs)[0])

    def _traced_for(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[FlatFunction, _Call]:
        call = self._flatten_call(args, kwargs, axes_in_scope(), abstract=True)
        return self._program_of(call), call

    def traced_call(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[FlatFunction, Sequence[object]]:
        """Return the program of a call, its passes applied, and the leaves of the arguments."""
        call = self._flatten_call(args, kwargs, axes_in_scope())
        return self._program_of(call), call.leaves

    def __repr__(self) -> str:
        try:
            return f"<PjitFunction of {self._fun!r}>"
        except Exception:  # noqa: BLE001  of the user's callable
            return "<PjitFunction>"

    def __getattr__(self, name: str) -> object:
        """Return an attribute that the user set on the function."""
        own = vars(self).get("_fun")
        if own is not None and name in getattr(own, "__dict__", ()):
            return getattr(own, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, object]:
        """Return the state of a copy, and the name of the function as JAX's."""
        return {**vars(self), "function_name": self._name}

    def _cache_size(self) -> int:
        return len(self._cache.entries)

    @property
    def _label(self) -> str:
        return f"jit({self._name})"

    @property
    def static_args(self) -> StaticArgs:
        """Return which arguments are static."""
        return self._static

    def clear_cache(self) -> None:
        """Remove all traced and compiled programs of this callable."""
        self._cache.clear()


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Sequence[str] | None = ...,
    keep_unused: bool = ...,
    inline: bool | Inline = ...,
    in_shardings: PyTree = ...,
    out_shardings: PyTree = ...,
    device: Device | None = ...,
    backend: str | None = ...,
    compiler_options: CompilerOptions | None = ...,
    passes: AnyPass | Sequence[AnyPass] | None = ...,
) -> JitFunction[P, R]: ...
@overload
def jit(
    *,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Sequence[str] | None = ...,
    keep_unused: bool = ...,
    inline: bool | Inline = ...,
    in_shardings: PyTree = ...,
    out_shardings: PyTree = ...,
    device: Device | None = ...,
    backend: str | None = ...,
    compiler_options: CompilerOptions | None = ...,
    passes: AnyPass | Sequence[AnyPass] | None = ...,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(
    fun: Callable[P, R] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool | Inline = False,
    in_shardings: PyTree = UNSPECIFIED,
    out_shardings: PyTree = UNSPECIFIED,
    device: Device | None = None,
    backend: str | None = None,
    compiler_options: CompilerOptions | None = None,
    passes: AnyPass | Sequence[AnyPass] | None = None,
) -> JitFunction[P, R] | Callable[[Callable[P, R]], JitFunction[P, R]]:
    """Compile ``fun`` with XLA, once for each structure and types of its arguments.

    References that it takes or closes over are updated in place: their addresses stay the same.

    Args:
        fun: a function of trees of arrays and references. Without it, as in
            ``@jit(static_argnums=1)``, a decorator is returned.
        static_argnums: positions of arguments that are compared by value and not traced.
        static_argnames: names of such arguments.
        donate_argnums: positions of arguments whose memory results reuse, where shape and dtype
            are equal; a later use of such an argument raises.
        donate_argnames: names of such arguments.
        keep_unused: accepted; arguments that the program does not use are kept anyway.
        inline: True, or ``effax.Inline.JAX_EARLY``: within another trace, inline the equations
            instead of adding one call.
        in_shardings: the sharding of each argument, or a tree prefix of the positional ones, under
            :func:`effax.sharding.set_mesh` also a ``PartitionSpec``.
        out_shardings: that of each result, in the same way; by default the compiler's choice.
        device: None, or the device that runs the function; arguments that are placed are on it.
        backend: None, or the platform of the devices.
        compiler_options: options of XLA by name.
        passes: a pass, a pipeline (``effax.passes``), or a list of these, applied to the program of
            ``fun`` before it is compiled, or before an outer transformation sees it: ``grad(jit(f,
            passes=p))`` is the derivative of ``p(f)``, ``jit(grad(f), passes=p)`` that of ``f``,
            transformed by ``p``.

    Returns:
        A :class:`JitFunction` of the same arguments and results.

    Raises:
        BadArgument: ``fun`` is not callable, a static or donated argument does not exist or is
            both, or ``passes`` has something that is not a pass. When called: ``TransformError``
            where a pass fails, ``Broken`` where its result is not well formed or has another type;
            ``LoweringError`` where XLA has no such option.

    >>> x = jnp.ones(3)
    >>> effax.jit(lambda x: x + 1, donate_argnums=0)(x)
    Array([2., 2., 2.], dtype=float32)
    >>> x.is_deleted()
    True
    """
    del keep_unused
    pipeline = None if passes is None else passes_of(passes)

    def decorator(fun: Callable[P, R]) -> JitFunction[P, R]:
        _check_jittable(fun)
        static = StaticArgs.of(fun, static_argnums, static_argnames)
        donate = StaticArgs.of(fun, donate_argnums, donate_argnames, "donate")
        static.check_disjoint(donate)
        options = JitOptions(
            inline=inline is Inline.JAX_EARLY if isinstance(inline, Inline) else bool(inline),
            passes=pipeline,
            donate=donate,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            device=device,
            backend=backend,
            compiler_options=checked_compiler_options(compiler_options),
        )
        return JitFunction(fun, static, options)

    return decorator if fun is None else decorator(fun)


def _constrained(xs: Sequence[object], shardings: Sequence[Sharding | None]) -> list[object]:
    """Return values with the shardings that options decide."""
    if not shardings:
        return [*xs]
    pairs = zip(xs, shardings, strict=True)
    return [x.placed(s) if isinstance(x, Array) and s is not None else x for x, s in pairs]


def _check_jittable(fun: object) -> None:
    """Raise BadArgument unless a function has a result that may be traced."""
    if isinstance(fun, staticmethod):
        raise BadArgument(
            "jit: staticmethod arguments are not supported",
            expected="a function",
            found=repr(fun),
            remedy="`@staticmethod` above `@jit`",
        )
    check_callable(fun, "jit")
