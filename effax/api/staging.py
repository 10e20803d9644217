"""Programs of Python callables as values: ``make_jaxpr``, ``eval_shape``, ``typeof``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, overload

from effax import tree
from effax.api.static import StaticArgs
from effax.checks import check_callable, integers
from effax.config import allowed
from effax.ir.dtypes import DType
from effax.ir.syntax import ClosedJaxpr
from effax.ir.types import ArrayType, Shape, Type, array_type
from effax.ref import Ref
from effax.tracing import FlatFunction, arg_names, input_type, label_of, like, trace_flat
from effax.tree import PyTree, PyTreeDef


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """The shape and dtype of an array, without its elements."""

    shape: Shape
    dtype: DType
    weak_type: bool = False

    def __init__(self, shape: Sequence[int], dtype: object, weak_type: bool = False) -> None:
        object.__setattr__(self, "shape", array_type(integers(shape, "shape"), "bool").shape)
        object.__setattr__(self, "dtype", allowed(dtype))
        object.__setattr__(self, "weak_type", weak_type)

    @property
    def type(self) -> ArrayType:
        """The array type that this stands for."""
        return array_type(self.shape, self.dtype, self.weak_type)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.type.size


def typeof(x: object) -> Type:
    """The type of a value, a reference, or a shape-and-dtype. Raises IllTyped for anything else."""
    return x.type if isinstance(x, ShapeDtypeStruct) else input_type(x, "the argument of typeof")


def trace_abstractly(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    static: StaticArgs,
    label: str,
) -> tuple[FlatFunction, PyTreeDef]:
    """Trace on types alone; gives the function and the structure of what is not static."""
    call, args, kwargs = static.split(fun, args, kwargs)
    leaves, treedef = tree.flatten((tuple(args), dict(kwargs)))
    names = arg_names(call, args, kwargs, len(leaves))
    types = [
        x.type if isinstance(x, ShapeDtypeStruct) else input_type(x, name)
        for x, name in zip(leaves, names, strict=True)
    ]
    outers = [x if isinstance(x, Ref) else None for x in leaves]
    return trace_flat(call, treedef, types, names, label, outers), treedef


@overload
def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = ...,
    return_shape: Literal[False] = ...,
) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = ...,
    *,
    return_shape: Literal[True],
) -> Callable[..., tuple[ClosedJaxpr, PyTree]]: ...
def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = (),
    return_shape: bool = False,
) -> Callable[..., ClosedJaxpr] | Callable[..., tuple[ClosedJaxpr, PyTree]]:
    """A function that gives the program of ``fun`` for arguments of the types given.

    Arguments may be arrays, numbers, references or ``ShapeDtypeStruct``s. With ``return_shape``
    it gives a pair with the tree of the results' shapes and dtypes.
    """
    check_callable(fun, "make_jaxpr")
    static = StaticArgs.of(fun, static_argnums, ())

    @like(fun)
    def traced(*args: object, **kwargs: object) -> PyTree:
        flat, _ = trace_abstractly(fun, args, kwargs, static, f"make_jaxpr of {label_of(fun)}")
        closed = ClosedJaxpr(flat.jaxpr, flat.consts)
        return (closed, shapes_of(flat)) if return_shape else closed

    return traced


def eval_shape(fun: Callable[..., object], *args: object, **kwargs: object) -> PyTree:
    """The tree of shapes and dtypes that ``fun`` gives, without computing anything."""
    check_callable(fun, "eval_shape")
    flat, _ = trace_abstractly(
        fun, args, kwargs, StaticArgs((), ()), f"eval_shape of {label_of(fun)}"
    )
    return shapes_of(flat)


def shapes_of(flat: FlatFunction) -> PyTree:
    """The tree of shapes and dtypes of the results."""
    structs = [
        ShapeDtypeStruct(t.shape, t.dtype, t.weak)
        for t in flat.jaxpr.out_types
        if isinstance(t, ArrayType)
    ]
    return tree.unflatten(flat.out_tree, structs)
