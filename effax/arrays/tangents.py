"""Tangents and cotangents as users pass and receive them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax import tree
from effax.arrays.array import Array
from effax.arrays.conversion import as_value, from_numpy
from effax.arrays.promotion import converted, yields
from effax.arrays.tracing import shown_tree
from effax.ir.dtypes import FLOAT0, is_inexact_dtype
from effax.ir.errors import IllTyped
from effax.ir.types import ArrayType, Type, tangent_type
from effax.tree import PyTreeDef


def zero_of(type_: Type) -> Array:
    """Return a cotangent of zero for a value of this type; ``float0`` for one without tangents."""
    if not is_inexact_dtype(type_.dtype):
        return from_numpy(np.zeros(type_.shape, FLOAT0))
    return from_numpy(np.zeros(type_.shape, type_.dtype))


def tangent_for(type_: Type, value: Array | None) -> Array:
    """Return a (co)tangent for the user, as weak as its primal; None is zero.

    Within programs tangents are never weak.
    """
    found = zero_of(type_) if value is None else value
    weak = isinstance(type_, ArrayType) and type_.weak and is_inexact_dtype(type_.dtype)
    return converted(found, found.dtype, True) if weak else found


def checked_cotangents(
    cts: object,
    out_tree: PyTreeDef,
    types: Sequence[Type],
    what: str,
    names: Sequence[str] | None = None,
) -> list[Array]:
    """Return the leaves of a tree of (co)tangents, checked against the types of the primals.

    Args:
        cts: the tree.
        out_tree: the structure that it must have.
        types: the types of the primals.
        what: the name of the tree in messages.
        names: the names of its leaves.

    Raises:
        IllTyped: structure, shape or dtype differ.
    """
    leaves, treedef = tree.flatten(cts)
    if treedef != out_tree:
        raise IllTyped(
            f"{what} have the wrong structure",
            expected=shown_tree(out_tree),
            found=shown_tree(treedef),
        )
    leaf_names = names or [what + path for path in tree.paths(cts)]
    return [
        checked_cotangent(x, t, name) for x, t, name in zip(leaves, types, leaf_names, strict=True)
    ]


def checked_cotangent(leaf: object, type_: Type, what: str) -> Array:
    """Return a (co)tangent of a value of this type. Raises IllTyped where it does not fit."""
    ct_spec = tangent_type(type_)
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype == ct_spec.dtype:
        # Also 64 bits, where these are off: the primal has them.
        x: Array = from_numpy(np.array(leaf))
    else:
        x = as_value(leaf, what)
    if not is_inexact_dtype(ct_spec.dtype):
        if x.shape != ct_spec.shape or x.dtype != FLOAT0:
            raise IllTyped(
                f"{what} must be zero, since {type_} has no tangents",
                expected=f"float0[{','.join(map(str, ct_spec.shape))}]",
                found=str(x.type),
                remedy=f"pass `numpy.zeros({ct_spec.shape}, effax.float0)`",
            )
        return x
    fits = x.dtype == ct_spec.dtype or yields(x.type, ct_spec.dtype, x, rounds=True)
    if x.shape != ct_spec.shape or not fits:
        raise IllTyped(f"{what} has the wrong type", expected=str(ct_spec), found=str(x.type))
    return converted(x, ct_spec.dtype, False)
