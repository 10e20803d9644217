"""The derivative of a function at a point, a linear function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar, TypeVarTuple, cast

from effax import tree
from effax.api.derivatives import Residuals, TracedCall
from effax.api.vjp import only_outs
from effax.arrays.array import Array
from effax.arrays.binding import Operand, run
from effax.arrays.ref import Ref
from effax.arrays.tangents import checked_cotangent, checked_cotangents, tangent_for
from effax.arrays.tracing import shown_tree
from effax.ir.errors import IllTyped
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type, tangent_type
from effax.tree import PyTree, PyTreeDef

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


def checked_tangents(
    tangents: object, in_tree: PyTreeDef, types: Sequence[Type], names: Sequence[str]
) -> list[Operand]:
    """Return the checked leaves of a tree of tangents. Raises IllTyped."""
    leaves, treedef = tree.flatten(tangents)
    tangent_names = [f"the tangent of {name}" for name in names]
    if not any(isinstance(x, Ref | RefType) for x in (*leaves, *types)):
        what = "the tangents of the arguments"
        return cast(
            "list[Operand]", checked_cotangents(tangents, in_tree, types, what, tangent_names)
        )
    if treedef != in_tree:
        raise IllTyped(
            "the tangents have another structure than the arguments",
            expected=shown_tree(in_tree),
            found=shown_tree(treedef),
        )
    return [_checked_tangent(*xs) for xs in zip(leaves, types, tangent_names, strict=True)]


def _checked_tangent(x: object, type_: Type, what: str) -> Operand:
    if not isinstance(type_, RefType) and not isinstance(x, Ref):
        return checked_cotangent(x, type_, what)
    found = getattr(x, "type", type(x).__name__)
    if not isinstance(x, Ref) or found is not tangent_type(type_):
        raise IllTyped(
            f"{what} has the wrong type", expected=str(tangent_type(type_)), found=str(found)
        )
    return x


def with_zeros(
    tangents: Sequence[Array], mask: Sequence[bool], types: Sequence[Type]
) -> list[Array]:
    """Return a tangent for each result: zero where the mask has none."""
    present = iter(tangents)
    return [
        tangent_for(t, next(present) if has else None) for has, t in zip(mask, types, strict=True)
    ]


class _Shape(NamedTuple):
    """The static part of a linear map: its program and the structures of both sides."""

    linear: Jaxpr
    in_tangents: tuple[bool, ...]
    out_tangents: tuple[bool, ...]
    in_tree: PyTreeDef
    in_types: tuple[Type, ...]
    in_names: tuple[str, ...]
    out_tree: PyTreeDef
    out_types: tuple[Type, ...]


class LinearMap(Generic[*Ts, R]):
    """The derivative of a function at a point: maps tangents of arguments to those of results.

    It is a pytree whose leaves are its residuals, so that ``jit`` may take and return it.
    """

    def __init__(self, shape: _Shape, residuals: Sequence[Operand]) -> None:
        self._shape = shape
        self._residuals = list(residuals)

    @classmethod
    def of(cls, res: Residuals, call: TracedCall) -> LinearMap[*Ts, R]:
        """Return the linear map of a linearised call."""
        n = call.main.num_leaves
        shape = _Shape(
            linear=only_outs(res, n),
            in_tangents=res.in_tangents,
            out_tangents=res.out_tangents[:n],
            in_tree=call.args.treedef.children()[0],
            in_types=tuple([x.type for x in call.args.leaves]),
            in_names=tuple(call.args.names),
            out_tree=call.main,
            out_types=tuple(call.flat.jaxpr.out_types[:n]),
        )
        return cls(shape, res.values)

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear program: residuals, then tangents, to tangents of results."""
        return self._shape.linear

    @property
    def args(self) -> tuple[Operand, ...]:
        """Return the residuals, as the arguments of JAX's ``Partial``."""
        return tuple(self._residuals)

    @property
    def func(self) -> partial[list[Array]]:
        """Return the function of residuals and tangents, as that of JAX's ``Partial``."""
        return partial(run, self._shape.linear)

    def __call__(self, *tangents: *Ts) -> R:
        """Apply the map to tangents. Raises IllTyped where they do not fit the arguments."""
        shape = self._shape
        dots = checked_tangents(tangents, shape.in_tree, shape.in_types, shape.in_names)
        given = [d for d, m in zip(dots, shape.in_tangents, strict=True) if m]
        results = run(shape.linear, [*self._residuals, *given])
        outs = with_zeros(results, shape.out_tangents, shape.out_types)
        made: R = tree.unflatten(shape.out_tree, outs)
        return made


def _flatten(f: LinearMap[*tuple[PyTree, ...], PyTree]) -> tuple[list[Operand], _Shape]:
    return f._residuals, f._shape


def _unflatten(shape: _Shape, children: Iterable[PyTree]) -> LinearMap[*tuple[PyTree, ...], PyTree]:
    return LinearMap(shape, list(children))


tree.register_pytree_node(LinearMap, _flatten, _unflatten)
