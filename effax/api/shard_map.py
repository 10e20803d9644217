"""``shard_map``: run a callable on each device of a mesh, on shards of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, ParamSpec, TypeVar, cast, overload

from effax import tree
from effax.arrays.argument_checks import as_integer, axis_names_of, check_callable
from effax.arrays.binding import Operand, bind
from effax.arrays.mesh import MESHES, AbstractMesh, Mesh, abstract, use_meshes
from effax.arrays.mesh_context import get_abstract_mesh, get_mesh, inside_of
from effax.arrays.ref import TracedRef
from effax.arrays.sharding import NamedSharding, PartitionSpec
from effax.arrays.traced_array import TracedArray
from effax.arrays.tracing import (
    FlatArgs,
    FlatFunction,
    TraceOptions,
    flat_args,
    label_of,
    like,
    result_names,
    shown_tree,
    trace_flat,
)
from effax.effects import Write
from effax.ir.axes import Axes
from effax.ir.errors import BadArgument, IllTyped, RefError
from effax.ir.partition import Spec, check_spec, local_type, names_in
from effax.ir.prims import ShardMap
from effax.ir.prims.shard import Grid, shared_write
from effax.ir.scope import axes_in_scope
from effax.ir.trace import differs_along, shown_ref
from effax.ir.types import Type
from effax.tree import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")

INFER: Final = object()
"""The specs of arguments are those of their shardings."""


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    mesh: Mesh | AbstractMesh | None = ...,
    in_specs: object = ...,
    out_specs: object,
    axis_names: Iterable[str] = ...,
    check_vma: bool = ...,
) -> Callable[P, R]: ...
@overload
def shard_map(
    *,
    mesh: Mesh | AbstractMesh | None = ...,
    in_specs: object = ...,
    out_specs: object,
    axis_names: Iterable[str] = ...,
    check_vma: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def shard_map(
    f: Callable[P, R] | None = None,
    /,
    *,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: object = INFER,
    out_specs: object,
    axis_names: Iterable[str] = (),
    check_vma: bool = True,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Run ``f`` on every device of ``mesh``, on shards of its arguments, and join its results.

    Devices run in step, and exchange values by collectives (``lax.psum``, ...) along the axes of
    the mesh. Values that ``f`` closes over are replicated. A mesh of numbers runs on one device:
    the meaning is the same.

    Args:
        f: a function of trees of arrays and references. Without it a decorator is returned.
        mesh: the devices; by default the mesh of :func:`effax.sharding.set_mesh`.
        in_specs: a ``PartitionSpec`` for all arguments, or one an argument; trees of them are
            prefixes of the arguments. Along mesh axes that a spec does not name, the argument is
            replicated. By default, the specs of the arguments' shardings over the mesh; others are
            replicated. Traced arguments, as under ``jit``, need them.
        out_specs: how the results are joined, in the same way. Along an axis of the mesh that a
            spec does not name the result must be equal on all devices.
        axis_names: the axes of the mesh along which ``f`` is for one device; by default all. Along
            the others ``f`` is for whole values, which the compiler divides.
        check_vma: whether such results are checked to be equal, by type. If not, the result of the
            first device is returned.

    Raises:
        BadArgument: the specs do not fit, or ``mesh`` is not a mesh.
        IllTyped: an argument does not divide over the mesh; a result may vary along an axis that
            its spec does not name.
        RefError: a replicated reference is written. It may be read, and added to (``addupdate``),
            which is summed over the devices. When it is compiled for devices, ``IllTyped`` for a
            collective that only a part of its devices would reach.
    """
    chosen = _mesh(mesh)
    names = _manual_names(chosen, axis_names)

    def decorate(fun: Callable[P, R]) -> Callable[P, R]:
        check_callable(fun, "shard_map")

        @like(fun)
        def mapped(*args: P.args, **kwargs: P.kwargs) -> R:
            flat_in = flat_args(fun, args, dict(kwargs))
            used = _manual_axes(chosen, names)
            specs = _in_specs(in_specs, len(args), flat_in, chosen)
            outer = MESHES.get()
            use_meshes((*outer, inside_of(chosen, [axis.name for axis in used])))
            try:
                flat = _traced(fun, flat_in, specs, used, check_vma)
            finally:
                use_meshes(outer)
            applied = _applied(flat, flat_in, specs, used, chosen.grid, out_specs, check_vma)
            return cast(R, applied)

        return mapped

    return decorate if f is None else decorate(f)


def _mesh(mesh: object) -> Mesh:
    """Return a mesh; None is the one in use. Raises BadArgument."""
    found = get_mesh() if mesh is None else mesh
    if isinstance(found, AbstractMesh) and not found.empty:
        in_use = get_mesh()
        same = isinstance(in_use, Mesh) and abstract(in_use) == found
        return in_use if same and isinstance(in_use, Mesh) else found.on_devices()
    if not isinstance(found, Mesh):
        raise BadArgument(
            "shard_map: mesh is not a mesh",
            expected="a Mesh: `effax.make_mesh((4,), ('x',))`, or one in use by `set_mesh`",
            found=f"{type(mesh).__name__}: {mesh!r:.60}",
        )
    return found


def _manual_names(mesh: Mesh, axis_names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the axes along which the function is for one device, none for the rest.

    Raises BadArgument for a name that the mesh does not have.
    """
    used = axis_names_of(tuple(axis_names), "shard_map: axis_names") if axis_names else ()
    unknown = [name for name in used if name not in mesh.axis_names]
    if unknown:
        raise BadArgument(
            "shard_map: axis_names has names that the mesh does not have",
            expected=", ".join(map(repr, mesh.axis_names)),
            found=", ".join(map(repr, unknown)),
        )
    return used


def _manual_axes(mesh: Mesh, names: tuple[str, ...]) -> Axes:
    """Return the named axes, by default those that no enclosing ``shard_map`` took."""
    if names:
        return tuple([axis for axis in mesh.axes if axis.name in names])
    taken = get_abstract_mesh().manual_axes
    return tuple([axis for axis in mesh.axes if axis.name not in taken]) or mesh.axes


def _in_specs(in_specs: object, n_args: int, flat_in: FlatArgs, mesh: Mesh) -> list[Spec]:
    """Return one spec a leaf of ``(args, kwargs)``; keyword arguments are replicated."""
    if in_specs is INFER:
        pairs = zip(flat_in.leaves, flat_in.names, strict=True)
        return [_spec_of(x, mesh, name) for x, name in pairs]
    prefix = tuple(in_specs) if isinstance(in_specs, list) else in_specs
    if isinstance(prefix, tuple) and len(prefix) != n_args:
        raise BadArgument(
            "shard_map: the length of in_specs is not the number of positional arguments",
            expected=str(n_args),
            found=str(len(prefix)),
        )
    shown = shown_tree(flat_in.treedef.children()[0])
    return _broadcast(
        (prefix, PartitionSpec()), flat_in.treedef, "in_specs", "the arguments", shown
    )


def _spec_of(x: Operand, mesh: Mesh, name: str) -> Spec:
    """Return the spec of an operand that is divided over the mesh, or that of a whole one.

    Raises BadArgument for a traced array, whose sharding is not known yet.
    """
    if isinstance(x, TracedArray | TracedRef) and x.type.shape:
        raise BadArgument(
            f"shard_map: the sharding of {name} is not known while it is traced",
            expected="in_specs",
            found=str(x.type),
            remedy="pass in_specs, such as `P('x')`",
        )
    sharding = getattr(x, "sharding", None)
    if isinstance(sharding, NamedSharding) and sharding.mesh == mesh:
        return sharding.spec.spec
    return ()


def _broadcast(prefix: object, treedef: PyTreeDef, what: str, of: str, shown: str) -> list[Spec]:
    full = tree.unflatten(treedef, range(treedef.num_leaves))
    try:
        specs = tree.broadcast_prefix(prefix, full)
    except ValueError as error:
        raise BadArgument(
            f"shard_map: {what} is not a prefix of {of}",
            expected=f"a PartitionSpec, or a tree of them above {shown}",
            found=f"{prefix!r:.80} ({error})",
        ) from None
    return [_spec(spec, what) for spec in specs]


def _spec(spec: object, what: str) -> Spec:
    if spec is None:
        return ()
    if isinstance(spec, PartitionSpec):
        return spec.spec
    raise BadArgument(
        f"shard_map: an entry of {what} is not a PartitionSpec",
        expected="P(), P('x'), ...",
        found=f"{type(spec).__name__}: {spec!r:.60}",
        remedy="use `P()` to replicate",
    )


def _traced(
    fun: Callable[..., object],
    flat_in: FlatArgs,
    specs: Sequence[Spec],
    axes: Axes,
    check_vma: bool,
) -> FlatFunction:
    bound = {axis.name for axis in axes_in_scope()} & {axis.name for axis in axes}
    if bound:
        raise BadArgument(
            "shard_map: the mesh has an axis whose name is already bound",
            expected="names that are not in scope",
            found=", ".join(sorted(bound)),
        )
    types: list[Type] = [
        local_type(x.type, spec, axes, name)
        for x, spec, name in zip(flat_in.leaves, specs, flat_in.names, strict=True)
    ]
    pairs = zip(flat_in.leaves, specs, strict=True)
    differs = [differs_along(x) | set(names_in(spec)) for x, spec in pairs]
    options = TraceOptions(flat_in.leaves, binds=axes, differs=differs, checked=check_vma)
    label = f"shard_map({label_of(fun)})"
    return trace_flat(fun, flat_in.treedef, types, flat_in.names, label, options)


def _applied(
    flat: FlatFunction,
    flat_in: FlatArgs,
    specs: Sequence[Spec],
    axes: Axes,
    grid: Grid | None,
    out_specs: object,
    check_vma: bool,
) -> object:
    operands: list[Operand] = [*flat.consts, *flat_in.leaves]
    prefix = tuple(out_specs) if isinstance(out_specs, list) else out_specs
    outs = _broadcast(prefix, flat.out_tree, "out_specs", "the results", shown_tree(flat.out_tree))
    names = result_names("the result", flat.out_tree)
    for type_, spec, name in zip(flat.jaxpr.out_types, outs, names, strict=True):
        check_spec(spec, axes, len(type_.shape), name)
    whole: tuple[Spec, ...] = ((),) * len(flat.consts)
    prim = ShardMap(flat.jaxpr, axes, (*whole, *specs), tuple(outs), bool(check_vma), grid)
    for effect in flat.jaxpr.effects:
        if isinstance(effect, Write) and prim.unnamed(prim.in_specs[effect.ref]):
            raise _written(prim, effect.ref, operands[effect.ref])
    try:
        results = bind(prim, *operands)
    except IllTyped as error:
        for i, name in enumerate(names):
            # Name results by their path in the tree.
            error.what = error.what.replace(f"shard_map: result {i} ", f"shard_map: {name} ")
        raise
    return tree.unflatten(flat.out_tree, results)


def _written(prim: ShardMap, position: int, ref: Operand) -> RefError:
    """Return the error for a write, with the reference's name and the line that made it."""
    return shared_write(prim, position, shown_ref(ref))


@overload
def smap(
    f: Callable[P, R],
    /,
    *,
    in_axes: object = ...,
    out_axes: object,
    axis_name: str | Sequence[str],
) -> Callable[P, R]: ...
@overload
def smap(
    *, in_axes: object = ..., out_axes: object, axis_name: str | Sequence[str]
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def smap(
    f: Callable[P, R] | None = None,
    /,
    *,
    in_axes: object = INFER,
    out_axes: object,
    axis_name: str | Sequence[str],
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Run ``f`` on each device along one axis of the mesh in use, on parts of its arguments.

    Args:
        f: a function of trees of arrays and references. Without it a decorator is returned.
        in_axes: the dimension of all arguments that is divided, or one an argument; None: it is
            replicated. By default that of their shardings.
        out_axes: the dimension along which results are joined, in the same way.
        axis_name: the name of the axis, or of several.

    Raises:
        BadArgument: there is no mesh in use (``set_mesh``); as :func:`shard_map`.

    >>> with effax.sharding.set_mesh(effax.make_mesh((2,), ("x",))):
    ...     effax.smap(lambda x: x / lax.psum(x, "x"), in_axes=0, out_axes=0, axis_name="x")(
    ...         jnp.array([1.0, 3.0])
    ...     )
    Array([0.25, 0.75], dtype=float32)
    """
    names = axis_names_of(axis_name, "smap: axis_name")

    def specs(axes: object, what: str) -> object:
        if axes is INFER:
            return INFER
        given = tuple(axes) if isinstance(axes, list) else axes
        return tree.map(lambda axis: _along(axis, names, what), given, is_leaf=lambda x: x is None)

    in_specs, out_specs = specs(in_axes, "in_axes"), specs(out_axes, "out_axes")
    made = partial(shard_map, in_specs=in_specs, out_specs=out_specs, axis_names=names)
    return made if f is None else made(f)


def _along(axis: object, names: tuple[str, ...], what: str) -> PartitionSpec:
    """Return the spec that divides one dimension. Raises BadArgument for another value."""
    if axis is None:
        return PartitionSpec()
    at = as_integer(axis, f"smap: an entry of {what}")
    if at < 0:
        raise BadArgument(
            f"smap: an entry of {what} is negative",
            expected="a dimension counted from the front",
            found=str(at),
        )
    return PartitionSpec(*[None] * at, names)
