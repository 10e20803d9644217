"""``vmap``: batch a callable along one more axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ParamSpec, TypeVar, cast

from effax import tree
from effax.arrays.argument_checks import as_integer, axis_name_of, axis_names_of, check_callable
from effax.arrays.binding import Operand, run
from effax.arrays.ref import Ref
from effax.arrays.ref_view import RefView
from effax.arrays.tracing import (
    FlatArgs,
    FlatFunction,
    TraceOptions,
    arg_names,
    flat_args,
    label_of,
    like,
    result_names,
    shown_tree,
    trace_flat,
)
from effax.arrays.transformed import transformed
from effax.arrays.view_arguments import BorrowedView, borrow_view, check_borrowed, has_views
from effax.ir.axes import Axes, Axis
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.trace import differs_along
from effax.ir.types import RefType, Type, ref_type
from effax.transforms.framework.pass_ import rules_or_default
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import unwrap
from effax.transforms.rules.shard.rules import dividing_batches
from effax.transforms.vmap.batch_axes import NoAxis
from effax.transforms.vmap.engine import vmap as vmap_pass
from effax.tree import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fun: Callable[P, R],
    in_axes: int | Sequence[object] | Mapping[str, object] | None = 0,
    out_axes: object = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
) -> Callable[P, R]:
    """Map ``fun`` over axes of its arguments; the results get the axis.

    Args:
        fun: a function of trees of arrays and references.
        in_axes: an axis for all arguments, or one an argument; trees of axes are prefixes of the
            arguments. None: the argument is not batched.
        out_axes: the position of the axis in the results, in the same way.
        axis_name: a string, the name of the axis for collectives in ``fun`` such as ``lax.psum``.
        axis_size: the length of the axis, needed where no argument is batched.
        spmd_axis_name: the name of an axis of a mesh, or several: the batch of a ``shard_map``
            and of a ``with_sharding_constraint`` in ``fun`` is divided over them.

    Raises:
        BadArgument: ``in_axes`` does not fit the arguments; the length is unknown; the name is not
            a string.
        IllTyped: an argument lacks the axis, or lengths differ.
        TransformError: a reference that is closed over is written; a collective along the axis is
            in a branch or a loop whose predicate is batched; a ``shard_map`` divides other
            dimensions over an axis of ``spmd_axis_name``.
    """
    check_callable(fun, "vmap")
    if axis_size is not None and as_integer(axis_size, "vmap: axis_size") < 0:
        raise BadArgument(
            "vmap: axis_size is negative", expected="at least 0", found=str(axis_size)
        )
    if in_axes is not None and not isinstance(in_axes, tuple | list):
        as_integer(in_axes, "vmap: in_axes")
    name = None if axis_name is None else axis_name_of(axis_name, "vmap: axis_name")
    over = () if spmd_axis_name is None else axis_names_of(spmd_axis_name, "vmap: spmd_axis_name")
    rules = dividing_batches(rules_or_default(None), over) if over else None

    @like(fun)
    def batched(*args: P.args, **kwargs: P.kwargs) -> R:
        axes_of: list[object] = []

        def unmapped(treedef: PyTreeDef) -> list[bool]:
            axes_of[:] = spread_axes(in_axes, len(args), treedef)
            return [axis is None for axis in axes_of]

        given, views = _with_borrowed((args, dict(kwargs)), in_axes, fun)
        flat_in = flat_args(fun, *given, unmapped)
        axes = [
            _axis(axis, x.type, name)
            for axis, x, name in zip(
                flat_in.of_operands(axes_of), flat_in.leaves, flat_in.names, strict=True
            )
        ]
        size = _common_size(axes, flat_in, axis_size)
        binds = () if name is None else (Axis(name, size),)
        flat = _traced(fun, flat_in, axes, binds)
        operands = [*flat.consts, *flat_in.leaves]
        check_borrowed(views, operands, f"vmap({label_of(fun)})")
        result = cast(R, _mapped(flat, flat_in, axes, size, out_axes, name, rules))
        for view in views:
            view.end(flat.jaxpr, operands)
        return result

    return batched


Arguments = tuple[tuple[object, ...], dict[str, object]]


def _with_borrowed(
    given: Arguments, in_axes: object, fun: Callable[..., object]
) -> tuple[Arguments, list[BorrowedView]]:
    """Return the arguments with local references in place of views that are mapped over."""
    leaves, treedef = tree.flatten(given)
    if not has_views(leaves):
        return given, []
    names = arg_names(fun, *given, len(leaves))
    axes = spread_axes(in_axes, len(given[0]), treedef)
    mapped = {
        i: borrow_view(x, names[i])
        for i, x in enumerate(leaves)
        if isinstance(x, RefView) and axes[i] is not None
    }
    operands = [mapped[i].local if i in mapped else x for i, x in enumerate(leaves)]
    return tree.unflatten(treedef, operands), list(mapped.values())


def spread_axes(in_axes: object, n_args: int, treedef: PyTreeDef) -> list[object]:
    """Return one axis a leaf of ``(args, kwargs)``; keyword arguments have it in front."""
    prefix = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if type(prefix) is int and prefix == 0:
        return [0] * treedef.num_leaves
    if isinstance(prefix, tuple) and len(prefix) != n_args:
        raise BadArgument(
            "vmap: the length of in_axes is not the number of positional arguments",
            expected=str(n_args),
            found=str(len(prefix)),
        )
    full = tree.unflatten(treedef, range(treedef.num_leaves))
    try:
        return tree.broadcast_prefix((prefix, 0), full)
    except ValueError as error:
        raise BadArgument(
            "vmap: in_axes is not a prefix of the arguments",
            expected=f"an axis, or a tree of axes above {shown_tree(treedef.children()[0])}",
            found=f"{in_axes!r:.80} ({error})",
        ) from None


def _axis(axis: object, type_: Type, name: str) -> int | None:
    """Return the axis of a leaf, counted from the front."""
    if axis is None:
        return None
    axis = as_integer(axis, f"vmap: the entry of in_axes for {name}")
    ndim = len(type_.shape)
    if not -ndim <= axis < ndim:
        raise IllTyped(
            f"vmap: {name} has no axis {axis} to map over",
            expected=f"an axis in range({-ndim}, {ndim})" if ndim else "None, for a scalar",
            found=f"{axis}, for {type_}",
            remedy="set its entry in in_axes to None, or add the axis",
        )
    return axis % ndim


def _common_size(axes: Sequence[int | None], flat_in: FlatArgs, given: int | None) -> int:
    sizes: dict[int, str] = {} if given is None else {as_integer(given, ""): "axis_size"}
    for axis, x, name in zip(axes, flat_in.leaves, flat_in.names, strict=True):
        if axis is not None:
            sizes.setdefault(x.type.shape[axis], name)
    if not sizes:
        raise BadArgument(
            "vmap: no argument is mapped, so the length of the axis is unknown",
            expected="at least one argument whose entry in in_axes is not None",
            found=", ".join(flat_in.names) + " without an axis"
            if flat_in.names
            else "no arguments",
            remedy="map at least one argument, or pass axis_size",
        )
    if len(sizes) > 1:
        found = ", ".join(f"{n} for {name}" for n, name in sizes.items())
        raise IllTyped("vmap: mapped axes have different lengths", "one length", found)
    return next(iter(sizes))


def _without_axis(type_: Type, axis: int | None) -> Type:
    if axis is None:
        return type_
    shape = type_.shape[:axis] + type_.shape[axis + 1 :]
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=shape), type_.kind)
    return type_.update(shape=shape)


def _traced(
    fun: Callable[..., object], flat_in: FlatArgs, axes: Sequence[int | None], binds: Axes
) -> FlatFunction:
    """Trace for one batch element; only values of unbatched arguments are known."""
    types = [_without_axis(x.type, a) for x, a in zip(flat_in.leaves, axes, strict=True)]
    outers: list[Operand | None] = [
        x if a is None or isinstance(x, Ref) else None
        for x, a in zip(flat_in.leaves, axes, strict=True)
    ]
    options = TraceOptions(
        outers,
        on_values=[a is None for a in axes],
        fixed=flat_in.fixed,
        binds=binds,
        differs=[differs_along(x) for x in flat_in.leaves],
    )
    label = f"vmap({label_of(fun)})"
    return trace_flat(fun, flat_in.treedef, types, flat_in.names, label, options)


def _mapped(
    flat: FlatFunction,
    flat_in: FlatArgs,
    axes: Sequence[int | None],
    size: int,
    out_axes: object,
    axis_name: str | None,
    rules: RuleSet | None,
) -> object:
    targets = _out_axes(out_axes, flat)
    in_axes = [*[None] * len(flat.consts), *axes]
    jaxpr, operands = flat.jaxpr, [*flat.consts, *flat_in.leaves]
    try:
        done = transformed(
            jaxpr,
            (vmap_pass, size, tuple(in_axes), tuple(targets), axis_name, rules),
            operands,
            lambda: unwrap(vmap_pass(jaxpr, size, in_axes, targets, rules, axis_name)),
        )
    except NoAxis as error:
        name = result_names("the result", flat.out_tree)[error.result]
        raise BadArgument(
            f"vmap: {name} is batched, and its entry in out_axes is None",
            expected="an axis",
            found="None",
            remedy="set the axis, or return a value that depends on no mapped argument",
        ) from None
    outs = run(done.jaxpr, operands)
    return tree.unflatten(flat.out_tree, outs)


def _out_axes(out_axes: object, flat: FlatFunction) -> list[int | None]:
    if type(out_axes) is int and out_axes == 0:
        return [0] * len(flat.jaxpr.outs)
    prefix = tuple(out_axes) if isinstance(out_axes, list) else out_axes
    full = tree.unflatten(flat.out_tree, range(len(flat.jaxpr.outs)))
    try:
        axes = tree.broadcast_prefix(prefix, full)
    except ValueError as error:
        raise BadArgument(
            "vmap: out_axes is not a prefix of the results",
            expected=f"an axis, or a tree of axes above {shown_tree(flat.out_tree)}",
            found=f"{out_axes!r:.80} ({error})",
        ) from None
    names = result_names("the result", flat.out_tree)
    return [
        _out_axis(axis, type_, name)
        for axis, type_, name in zip(axes, flat.jaxpr.out_types, names, strict=True)
    ]


def _out_axis(axis: object, type_: Type, name: str) -> int | None:
    if axis is None:
        return None
    axis = as_integer(axis, f"vmap: the entry of out_axes for {name}")
    ndim = len(type_.shape) + 1
    if not -ndim <= axis < ndim:
        raise BadArgument(
            f"vmap: out_axes is out of range for {name}",
            expected=f"an axis in range({-ndim}, {ndim})",
            found=f"{axis}, for {type_} of one batch element",
        )
    return axis
