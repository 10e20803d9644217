"""Trace Python callables to programs: ``make_jaxpr``, ``eval_shape``, ``typeof``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeGuard, cast, overload

import numpy as np

from effax import tree
from effax.api.captures import named_captures
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable, integers
from effax.arrays.array import Array
from effax.arrays.config import allowed
from effax.arrays.promotion import to_shape
from effax.arrays.ref import Ref
from effax.arrays.sharding import Sharding
from effax.arrays.tracing import (
    FlatFunction,
    TraceOptions,
    arg_names,
    input_type,
    label_of,
    like,
    trace_flat,
)
from effax.arrays.view_arguments import open_views
from effax.ir.axes import Axes, Axis
from effax.ir.build import lit
from effax.ir.dtypes import DType
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.syntax import ClosedJaxpr
from effax.ir.types import ArrayType, RefType, Shape, Type, array_type
from effax.lazy.dataclasses import dataclass
from effax.tree import PyTree, PyTreeDef


def _described(dtype: object) -> DType:
    """Return a dtype: that of arrays, or any other of NumPy, which a struct may describe."""
    try:
        return allowed(dtype)
    except IllTyped:
        if isinstance(dtype, np.dtype):
            return dtype
        if isinstance(dtype, type) and issubclass(dtype, np.generic):
            described: DType = np.dtype(cast("type[Any]", dtype))
            return described
        raise


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """The shape and dtype of an array, without its elements."""

    shape: Shape
    dtype: DType
    weak_type: bool = False
    sharding: Sharding | None = None

    def __init__(
        self,
        shape: Sequence[int],
        dtype: object,
        weak_type: bool = False,
        *,
        sharding: Sharding | None = None,
    ) -> None:
        if dtype is None:
            raise BadArgument(
                "ShapeDtypeStruct: dtype must be specified", expected="a dtype", found="None"
            )
        if isinstance(shape, int):
            raise IllTyped("ShapeDtypeStruct: 'int' object is not iterable", "a shape", str(shape))
        object.__setattr__(self, "shape", array_type(integers(shape, "shape"), "bool").shape)
        object.__setattr__(self, "dtype", _described(dtype))
        object.__setattr__(self, "weak_type", weak_type)
        object.__setattr__(self, "sharding", sharding)

    @staticmethod
    def like(x: object) -> ShapeDtypeStruct:
        """Return the struct of an array, or of another value with a shape and a dtype.

        >>> effax.ShapeDtypeStruct.like(jnp.ones((2, 3)))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        type_ = typeof(x)
        weak = isinstance(type_, ArrayType) and type_.weak
        return ShapeDtypeStruct(type_.shape, type_.dtype, weak)

    def update(self, **changes: object) -> ShapeDtypeStruct:
        """Return the struct with other values of ``shape``, ``dtype``, ``weak_type``, ``sharding``.

        >>> effax.ShapeDtypeStruct((2, 3), "float32").update(dtype="int32")
        ShapeDtypeStruct(shape=(2, 3), dtype=int32)
        """
        unknown = [name for name in changes if name not in self.__dataclass_fields__]
        if unknown:
            raise BadArgument(
                "ShapeDtypeStruct.update: unknown attribute",
                expected=", ".join(self.__dataclass_fields__),
                found=", ".join(unknown),
            )
        return replace(self, **changes)  # type: ignore[arg-type]  # checked by the constructor

    def __len__(self) -> int:
        if not self.shape:
            raise IllTyped("len() of unsized object: it has no axes", found=repr(self))
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        placed = "" if self.sharding is None else f", sharding={self.sharding}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{weak}{placed})"

    @property
    def type(self) -> ArrayType:
        """Return the array type of this shape and dtype."""
        return array_type(self.shape, self.dtype, self.weak_type)

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.type.size


def typeof(x: object) -> Type:
    """Return the type of a value or a reference; of a ``ShapeDtypeStruct`` or a type, that type.

    Raises:
        IllTyped: ``x`` is none of these.
    """
    return abstract_type(x, "the argument of typeof")


def is_abstract(x: object) -> bool:
    """Return whether ``x`` is a type or a ``ShapeDtypeStruct``."""
    return isinstance(x, ShapeDtypeStruct | ArrayType | RefType)


class _Shaped(Protocol):
    shape: Sequence[int]
    dtype: object


def is_duck_typed(x: object) -> TypeGuard[_Shaped]:
    """Return whether ``x`` is no array, and has a shape and a dtype."""
    if isinstance(x, Array | Ref | np.ndarray | np.generic):
        return False
    return hasattr(x, "shape") and hasattr(x, "dtype")


def abstract_type(x: object, name: str = "an argument") -> Type:
    """Return the type of an input, which may be passed as its type.

    Raises:
        IllTyped: ``x`` is neither an array, a reference, nor a type of one; or a 64-bit type,
            where these are not enabled.
    """
    if isinstance(x, ShapeDtypeStruct):
        return x.type
    if isinstance(x, ArrayType | RefType):
        check_enabled(x, name)
        return x
    if is_duck_typed(x):
        return array_type(tuple(x.shape), allowed(x.dtype), bool(getattr(x, "weak_type", False)))
    return input_type(x, name)


def check_enabled(type_: Type, name: str) -> None:
    """Raise IllTyped for a 64-bit type, where these are not enabled."""
    if allowed(type_.dtype) != type_.dtype:
        raise IllTyped(
            f"{name} is 64 bits wide, and such types are not enabled",
            expected=str(allowed(type_.dtype)),
            found=str(type_),
            remedy="`effax.config.update('enable_x64', True)`",
        )


def trace_abstractly(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    static: StaticArgs,
    label: str,
    axes: Axes = (),
    hoists: bool = False,
) -> tuple[FlatFunction, PyTreeDef]:
    """Trace on types; return the function, and the structure of the dynamic arguments.

    ``axes`` are named axes in scope; ``hoists`` makes literals of enclosing traces constants.
    """
    call, args, kwargs = static.split(fun, *open_views((tuple(args), dict(kwargs))))
    leaves, treedef = tree.flatten((tuple(args), dict(kwargs)))
    names = arg_names(call, args, kwargs, len(leaves))
    types = [abstract_type(x, name) for x, name in zip(leaves, names, strict=True)]
    outers = [x if isinstance(x, Ref) else None for x in leaves]
    options = TraceOptions(outers, binds=axes, hoists=hoists)
    return trace_flat(call, treedef, types, names, label, options), treedef


@overload
def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = ...,
    axis_env: Sequence[tuple[str, int]] | None = ...,
    return_shape: Literal[False] = ...,
) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = ...,
    axis_env: Sequence[tuple[str, int]] | None = ...,
    *,
    return_shape: Literal[True],
) -> Callable[..., tuple[ClosedJaxpr, PyTree]]: ...
def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[str, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., object]:
    """Return a function that traces ``fun`` for arguments of given types.

    Args:
        fun: a function of trees of arrays and references.
        static_argnums: positions of arguments that are not traced.
        axis_env: names and sizes of axes in scope, for collectives.
        return_shape: whether the tree of the results' shapes and dtypes is returned too.

    Returns:
        A function of trees of arrays, numbers and references, or of their types (a
        ``ShapeDtypeStruct``, an ``ArrayType``, a ``RefType``), that returns a ``ClosedJaxpr``;
        with ``return_shape`` a pair.

    Raises:
        BadArgument: ``fun`` is not callable.
    """
    check_callable(fun, "make_jaxpr")
    static = StaticArgs.of(fun, static_argnums, ())
    axes = tuple([Axis(name, size) for name, size in axis_env or ()])
    label = f"make_jaxpr of {label_of(fun)}"

    @like(fun)
    def traced(*args: object, **kwargs: object) -> object:
        flat, _ = trace_abstractly(fun, args, kwargs, static, label, axes, hoists=True)
        closed = ClosedJaxpr(named_captures(fun, flat), flat.consts)
        return (closed, shapes_of(flat)) if return_shape else closed

    for attribute in ("__name__", "__qualname__"):
        name = getattr(fun, attribute, type(fun).__name__)
        setattr(traced, attribute, f"make_jaxpr({name})")
    return traced


def eval_shape(fun: Callable[..., object], *args: object, **kwargs: object) -> PyTree:
    """Return the tree of shapes and dtypes of the results of ``fun``; compute nothing.

    Arguments are those of ``make_jaxpr``: values, or their types. Results may be types too.
    The static arguments of a ``jit`` function are values.
    """
    check_callable(fun, "eval_shape")
    given = getattr(fun, "static_args", None)
    static = given if isinstance(given, StaticArgs) else StaticArgs((), ())

    @like(fun)
    def valued(*args: object, **kwargs: object) -> object:
        return tree.map(_representative, fun(*args, **kwargs))

    flat, _ = trace_abstractly(valued, args, kwargs, static, f"eval_shape of {label_of(fun)}")
    return shapes_of(flat)


def _representative(x: object) -> object:
    """Return an array of a type; another value unchanged."""
    type_ = x.type if isinstance(x, ShapeDtypeStruct) else x
    if not isinstance(type_, ArrayType):
        return x
    return to_shape(lit(0, type_.update(shape=())), type_.shape)


def shapes_of(flat: FlatFunction) -> PyTree:
    """Return the tree of shapes and dtypes of the results."""
    structs = [
        ShapeDtypeStruct(t.shape, t.dtype, t.weak)
        for t in flat.jaxpr.out_types
        if isinstance(t, ArrayType)
    ]
    return tree.unflatten(flat.out_tree, structs)
