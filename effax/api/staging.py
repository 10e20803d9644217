"""Programs of Python callables as values: ``make_jaxpr``, ``eval_shape``, ``typeof``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, overload

from effax import tree
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable, integers
from effax.arrays.config import allowed
from effax.arrays.ref import Ref
from effax.arrays.tracing import (
    FlatFunction,
    TraceOptions,
    arg_names,
    input_type,
    label_of,
    like,
    trace_flat,
)
from effax.ir.dtypes import DType
from effax.ir.errors import IllTyped
from effax.ir.syntax import ClosedJaxpr
from effax.ir.types import ArrayType, RefType, Shape, Type, array_type
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
    """The type of a value or a reference, or that a ``ShapeDtypeStruct`` or a type stands for.

    Raises:
        IllTyped: ``x`` is none of these.
    """
    return abstract_type(x, "the argument of typeof")


def is_abstract(x: object) -> bool:
    """Whether something stands for arrays or references of a type, and is none itself."""
    return isinstance(x, ShapeDtypeStruct | ArrayType | RefType)


def abstract_type(x: object, name: str) -> Type:
    """The type of an input that may be given by its type alone.

    Raises:
        IllTyped: ``x`` is no array, no reference and no type of one; or a type of 64 bits, where
            these are not enabled.
    """
    if isinstance(x, ShapeDtypeStruct):
        return x.type
    if not isinstance(x, ArrayType | RefType):
        return input_type(x, name)
    if allowed(x.dtype) != x.dtype:
        raise IllTyped(
            f"{name} is 64 bits wide, and such types are not enabled",
            expected=str(allowed(x.dtype)),
            found=str(x),
            remedy="`effax.config.update('enable_x64', True)`",
        )
    return x


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
    types = [abstract_type(x, name) for x, name in zip(leaves, names, strict=True)]
    outers = [x if isinstance(x, Ref) else None for x in leaves]
    return trace_flat(call, treedef, types, names, label, TraceOptions(outers)), treedef


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

    Arguments are trees of arrays, numbers and references, or of what stands for them: a
    ``ShapeDtypeStruct``, an ``ArrayType``, a ``RefType``. With ``return_shape`` it gives a pair
    with the tree of the results' shapes and dtypes.
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
    """The tree of shapes and dtypes that ``fun`` gives, without computing anything.

    Arguments are those of ``make_jaxpr``: values, or their types.
    """
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
