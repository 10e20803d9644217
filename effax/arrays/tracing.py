"""Tracing of Python callables on trees to programs on lists of arrays and references."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import WRAPPER_ASSIGNMENTS, cache, partial, wraps
from inspect import CO_VARARGS
from types import CodeType, MethodType
from typing import Final, NamedTuple, TypeVar, cast
from weakref import ReferenceType, ref

import numpy as np

from effax import tree
from effax.arrays.array import Array
from effax.arrays.binding import Operand, atom_in, handle
from effax.arrays.config import allowed, config
from effax.arrays.conversion import (
    NOT_NUMBERS,
    as_argument,
    as_value,
    is_python_scalar,
    python_kind,
)
from effax.arrays.device_array import DeviceArray
from effax.arrays.promotion import literal
from effax.arrays.ref import EagerRef, Ref, TracedRef
from effax.arrays.traced_array import TracedArray
from effax.arrays.view_arguments import has_views, open_views
from effax.effects import Rule
from effax.ir.analysis.variance import Names
from effax.ir.axes import Axes
from effax.ir.build import Builder
from effax.ir.edit.without_io import silent
from effax.ir.errors import ConcretizationError, EffaxError, IllTyped, RefError
from effax.ir.eval.numpy import evaluate
from effax.ir.late_text import LateText
from effax.ir.recursion import call_with_fresh_stack
from effax.ir.state import cached
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.trace import Trace, current_trace, identity, leak_error, shown_ref, tracing
from effax.ir.types import ArrayType, Type, array_type
from effax.tree import PyTreeDef

F = TypeVar("F")
T = TypeVar("T")


class FlatArgs(NamedTuple):
    """The flattened arguments of a call: operands, their structure, and their names in messages.

    ``fixed`` has the leaves that are not traced, by their position in the structure.
    """

    leaves: list[Operand]
    treedef: PyTreeDef
    names: list[str]
    fixed: dict[int, object]

    def of_operands(self, of_leaves: Sequence[T]) -> list[T]:
        """Select the operands' entries from a sequence with one entry a leaf."""
        if not self.fixed:
            return list(of_leaves)
        return [x for i, x in enumerate(of_leaves) if i not in self.fixed]


class FlatFunction(NamedTuple):
    """A traced callable: the program, the values of its constants, the results' structure."""

    jaxpr: Jaxpr
    consts: tuple[Operand, ...]
    out_tree: PyTreeDef


def flat_args(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    untouched: Callable[[PyTreeDef], Sequence[bool]] | None = None,
) -> FlatArgs:
    """Flatten the arguments of a call.

    Args:
        fun: the callable, for the names of its arguments.
        args: positional arguments.
        kwargs: keyword arguments.
        untouched: returns for the structure of ``(args, kwargs)`` which leaves are not transformed;
            those of them that are not arrays, such as Python's numbers, are fixed.

    Raises:
        IllTyped: a leaf is not an array; the error names the argument.
    """
    leaves, treedef = tree.flatten((tuple(args), dict(kwargs)))
    if has_views(leaves):
        args, kwargs = open_views((tuple(args), dict(kwargs)))
        leaves, treedef = tree.flatten((args, kwargs))
    names = arg_names(fun, args, kwargs, len(leaves))
    fixed: dict[int, object] = {}
    if untouched is not None:
        flags = untouched(treedef)
        fixed = {i: x for i, x in enumerate(leaves) if flags[i] and not isinstance(x, _ARRAYS)}
    operands: list[Operand] = [
        x if isinstance(x, Array | Ref) else as_argument(x, names[i])
        for i, x in enumerate(leaves)
        if i not in fixed
    ]
    return FlatArgs(operands, treedef, [n for i, n in enumerate(names) if i not in fixed], fixed)


_ARRAYS = (Array, Ref, np.ndarray, np.generic)
_LEAVES = (*_ARRAYS, int, float, complex)


def arg_names(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    n_leaves: int,
) -> list[str]:
    """Return the name of each leaf: ``x``, ``params['w'][0]``, ``rest[1]``, ..."""
    heads = argument_names(fun, len(args))
    if n_leaves == len(args) and not kwargs and not any(map(_is_container, args)):
        return heads
    names: list[str] = []
    by_name = sorted(kwargs)
    for head, arg in zip([*heads, *by_name], [*args, *(kwargs[k] for k in by_name)], strict=True):
        names.extend(head + path for path in tree.paths(arg))
    return names


def argument_names(fun: Callable[..., object], n_args: int) -> list[str]:
    """Return the name of each argument by position."""
    given, rest = _parameters(fun)
    n = len(given)
    return [given[i] if i < n else f"{rest}[{i - n}]" for i in range(n_args)]


def _parameters(fun: object) -> tuple[Sequence[str], str]:
    """Return the names of positional parameters, and of the variadic one."""
    fun = _innermost(fun)
    own = getattr(fun, "parameters_left", None)
    if own is not None:
        inner: object = getattr(fun, "fun", None)
        return own(*_parameters(inner)), "args"
    if isinstance(fun, MethodType):
        names, rest = _parameters(fun.__func__)
        return names[1:], rest
    if isinstance(fun, partial):
        names, rest = _parameters(fun.func)
        return names[len(fun.args) :], rest
    code = getattr(fun, "__code__", None)
    if code is not None:
        return code.co_varnames[: code.co_argcount], _variadic(code)
    code = getattr(getattr(fun, "__call__", None), "__code__", None)  # noqa: B004  it is callable
    if code is None:
        return (), "args"
    return code.co_varnames[1 : code.co_argcount], _variadic(code)


def _innermost(fun: object) -> object:
    """Return the innermost wrapped callable with the same parameters."""
    while not isinstance(fun, MethodType | partial) and not hasattr(fun, "parameters_left"):
        wrapped = getattr(fun, "__wrapped__", None)
        if wrapped is None:
            break
        fun = wrapped
    return fun


def _variadic(code: CodeType) -> str:
    if not code.co_flags & CO_VARARGS:
        return "args"
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def label_of(fun: object) -> str:
    """Return the name of a callable, or of the callable under a ``partial``, for messages."""
    while isinstance(fun, partial):
        fun = fun.func
    return getattr(fun, "__name__", type(fun).__name__)


def like(fun: Callable[..., object]) -> Callable[[F], F]:
    """Return the decorator that copies name, docstring and signature of ``fun``.

    ``functools.wraps`` copies the attributes too, which are the state of a compiled or custom
    function. A callable object may have a name that is no string: then nothing is copied.
    """
    named = isinstance(getattr(fun, "__name__", ""), str)
    copied = WRAPPER_ASSIGNMENTS if named else ()
    return cast("Callable[[F], F]", wraps(fun, copied, ()))


def _is_container(x: object) -> bool:
    return not isinstance(x, _LEAVES)


def input_type(x: object, what: str = "an argument") -> Type:
    """Return the type of a value as an input of a program. Raises IllTyped for other objects."""
    if isinstance(x, Array | Ref):
        return x.type
    if is_python_scalar(x):
        return array_type((), allowed(python_kind(x)), not isinstance(x, bool))
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind not in NOT_NUMBERS:
        return array_type(x.shape, allowed(x.dtype, of_value=True))
    return as_argument(x, what).type


class TraceOptions(NamedTuple):
    """The knowledge of a trace beyond the types of its inputs; none by default.

    Attributes:
        outers: the values passed for the inputs, each None where it is unknown.
        on_values: whether Python may read values of inputs (no compilation is under way): one
            answer for all inputs, or one each.
        fixed: leaves of the structure that are not inputs, by position.
        binds: the named axes that the function binds for its collectives.
        captured: values that become the first constants of the program, even if their trace has
            ended or no equation uses them.
        differs: the checked axes along which each input may vary.
        checked: whether variance is tracked along the axes in ``binds``.
        memory: the memory of another trace, of which this one is a part.
        hoists: whether literals of enclosing traces become constants.
    """

    outers: Sequence[object] | None = None
    on_values: bool | Sequence[bool] = False
    fixed: Mapping[int, object] | None = None
    binds: Axes = ()
    captured: Sequence[Operand] = ()
    differs: Sequence[Names] | None = None
    checked: bool = False
    memory: dict[object, object] | None = None
    hoists: bool = False

    def inputs(self, trace: Trace, types: Sequence[Type], names: Sequence[str]) -> list[object]:
        """Bind one input of ``trace`` for each type."""
        n = len(types)
        known = [self.on_values] * n if isinstance(self.on_values, bool) else self.on_values
        bound: list[object] = []
        for i, type_ in enumerate(types):
            outer = None if self.outers is None else self.outers[i]
            value = _value_getter(outer) if known[i] and outer is not None else None
            axes = None if self.differs is None else self.differs[i]
            bound.append(trace.bind(type_, outer, names[i], value, axes))
        return bound

    def with_fixed(self, inputs: Sequence[object]) -> Sequence[object]:
        """Return all leaves of the structure: the inputs, and the fixed leaves among them."""
        fixed = self.fixed
        if not fixed:
            return inputs
        rest = iter(inputs)
        return [fixed[i] if i in fixed else next(rest) for i in range(len(inputs) + len(fixed))]


ABSTRACT: Final = TraceOptions()
"""The options of a trace on types alone."""


def trace_flat(
    fun: Callable[..., object],
    treedef: PyTreeDef,
    types: Sequence[Type],
    names: Sequence[str],
    label: str,
    options: TraceOptions = ABSTRACT,
) -> FlatFunction:
    """Trace ``fun`` on a tree of inputs of these types.

    Args:
        fun: the callable.
        treedef: the structure of ``(args, kwargs)``.
        types: the types of the inputs.
        names: the user's names of the inputs.
        label: the name of the traced call in messages.
        options: values, axes and constants that the trace knows.

    Raises:
        RefError: a reference is passed twice, passed and closed over, or returned.
        IllTyped: a result is not an array.
    """
    if config.no_tracing:
        raise ForbiddenBySetting(
            f"{label} is traced, and no_tracing is on", remedy="call it once before the block"
        )
    if not config.check_tracer_leaks:
        return _traced(fun, treedef, types, names, label, options)[0]
    flat, trace = _traced(fun, treedef, types, names, label, options)
    check_collected(trace)
    return flat


class ForbiddenBySetting(EffaxError, RuntimeError):
    """A function would be traced, or a program run, where the settings forbid it."""


def check_collected(trace: ReferenceType[Trace]) -> None:
    """Raise LeakedTracer where a value of a trace that has ended is still referenced."""
    gc.collect()
    alive = trace()
    if alive is None:
        return
    kept = [x for x in gc.get_referrers(alive) if isinstance(x, TracedArray | TracedRef)]
    if kept:
        error = leak_error(kept[0])
        error.what = f"Leaked trace: {error.what}"
        raise error


def _traced(
    fun: Callable[..., object],
    treedef: PyTreeDef,
    types: Sequence[Type],
    names: Sequence[str],
    label: str,
    options: TraceOptions,
) -> tuple[FlatFunction, ReferenceType[Trace]]:
    """Return the result of :func:`trace_flat`, and the trace weakly."""
    on_values = options.on_values is not False
    trace = Trace(handle, label, current_trace(), on_values, options.binds, options.checked)
    trace.hoists = options.hoists
    if options.memory is not None:
        trace.memory = options.memory
    with tracing(trace):
        for x in options.captured:
            trace.capture(x, x.type, _value_getter(x))
        inputs = options.inputs(trace, types, names)
        args, kwargs = tree.unflatten(treedef, options.with_fixed(inputs))
        # A deeply nested trace may need more of Python's stack than is left.
        if trace.parent is None:
            result = fun(*args, **kwargs)
        else:
            result = call_with_fresh_stack(fun, *args, **kwargs)
        leaves, out_tree = tree.flatten(result)
        outs = [_result_atom(trace, x, i, result, "the result") for i, x in enumerate(leaves)]
    traced = trace.finish(outs, _out_names(out_tree))
    flat = FlatFunction(traced.jaxpr, cast("tuple[Operand, ...]", traced.consts), out_tree)
    return flat, ref(trace)


def _value_getter(outer: object) -> Callable[[], np.ndarray]:
    if isinstance(outer, DeviceArray):
        return outer.numpy
    if isinstance(outer, EagerRef):
        return outer.read_now
    if isinstance(outer, TracedArray | TracedRef):
        return lambda: outer.owner.value_of(outer.atom)
    return lambda: np.asarray(outer)


class _DeferredResult:
    """A result of a program whose arguments may be known, computed on first use."""

    __slots__ = ("_all", "_index")

    def __init__(self, all_: Callable[[], Sequence[np.ndarray]], index: int) -> None:
        self._all = all_
        self._index = index

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._all()[self._index])


def results_of(flat: FlatFunction, leaves: Sequence[Operand]) -> list[_DeferredResult]:
    """Return the results of a program on arguments, as values for inputs of another trace.

    Reading one raises ConcretizationError where an argument is unknown. References are returned
    unchanged.
    """

    @cache
    def run() -> Sequence[np.ndarray]:
        # Side effects happen when the program runs, and not before.
        quiet = silent(flat.jaxpr)
        if quiet is None or any(eqn.prim.free_axes() for eqn in quiet.eqns):
            raise ConcretizationError(
                "the value depends on side effects, or on other batch elements",
                remedy="use `lax.cond` or `numpy.where` instead of Python control flow",
            )
        values = [_value_getter(x)() for x in (*flat.consts, *leaves)]
        with np.errstate(all="ignore"):
            return evaluate(quiet, [np.array(x) for x in values])

    return [_DeferredResult(run, i) for i in range(len(flat.jaxpr.outs))]


def _result_atom(trace: Trace, x: object, index: int, result: object, name: str) -> Atom:
    if isinstance(x, TracedArray) and x.owner is trace:
        return x.atom
    if isinstance(x, Ref):
        path = tree.paths(result)[index]
        what = f"{trace.label}: {name}{path} is a reference"
        raise RefError.against(Rule.ESCAPE, what, "an array", shown_ref(x))
    if is_python_scalar(x):
        return literal(x, cast(ArrayType, input_type(x)))
    shown = LateText(lambda: f"{name}{tree.paths(result)[index]} of {trace.label}")
    return atom_in(trace, as_value(x, shown))


@cached(maxsize=1 << 9)
def _out_names(treedef: PyTreeDef) -> tuple[str, ...]:
    """Return the names of the results of a program: none for a single result."""
    return () if treedef.is_leaf() else tuple(result_names("result", treedef))


def result_names(what: str, treedef: PyTreeDef) -> list[str]:
    """Return the name of each leaf of a result: ``the result['loss']``."""
    return [what + path for path in tree.paths(tree.unflatten(treedef, range(treedef.num_leaves)))]


def shown_tree(treedef: PyTreeDef) -> str:
    """Return the text of a structure, for messages."""
    return str(tree.unflatten(treedef, ["*"] * treedef.num_leaves)).replace("'*'", "*")


def check_same_tree(found: PyTreeDef, expected: PyTreeDef, what: str) -> None:
    """Raise IllTyped unless the structures are equal."""
    if found != expected:
        raise IllTyped(
            f"{what} has another structure",
            expected=shown_tree(expected),
            found=shown_tree(found),
        )


def shared_consts(
    flats: Sequence[FlatFunction], first: Sequence[Operand] = ()
) -> tuple[list[Operand], list[Jaxpr]]:
    """Return the programs over one list of constants: ``first``, then theirs in order."""
    union: dict[int, Operand] = {identity(c): c for c in first}
    for flat in flats:
        for c in flat.consts:
            union.setdefault(identity(c), c)
    keys = list(union)
    jaxprs = [_over_consts(flat, keys, [union[k].type for k in keys]) for flat in flats]
    return list(union.values()), jaxprs


def _over_consts(flat: FlatFunction, keys: Sequence[int], types: Sequence[Type]) -> Jaxpr:
    if [identity(c) for c in flat.consts] == list(keys):
        return flat.jaxpr
    n = len(flat.consts)
    b = Builder([*types, *flat.jaxpr.in_types[n:]])
    place = dict(zip(keys, b.binders, strict=False))
    args = [*(place[identity(c)] for c in flat.consts), *b.binders[len(keys) :]]
    outs = b.inline_jaxpr(flat.jaxpr, args)
    names = [*[""] * len(keys), *flat.jaxpr.names[n:]]
    return b.finish(outs, len(keys), names)
