"""Symbolic shapes of arguments: ``symbolic_shape("b, 3")``, ``symbolic_args_specs``."""

from __future__ import annotations

from collections.abc import Sequence

from effax import tree
from effax.api.staging import ShapeDtypeStruct, abstract_type
from effax.ir.errors import BadArgument
from effax.ir.symbolic import SymbolicScope
from effax.ir.text.dims import read_dim, split_dims
from effax.ir.types import Shape
from effax.tree import PyTree


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int] | None = None,
) -> Shape:
    """Return a shape with symbolic sizes.

    Names denote sizes of at least 1, or of 0 under a constraint such as ``"b >= 0"``; equal names
    under equal constraints are equal sizes.

    Args:
        shape_spec: sizes such as ``"b, 4*b + 1, 3"``; ``_`` is the size in ``like``, a last ``...``
            (or None) the rest of its sizes.
        constraints: comparisons of sizes, such as ``"a >= 2*b"``, ``"b <= 64"``, ``"a == 4*c"``.
        scope: the constraints of other sizes, instead of ``constraints``.
        like: the shape that completes ``shape_spec``.

    Raises:
        BadArgument: ``shape_spec`` or a constraint cannot be read, or ``like`` does not fit.

    >>> export.symbolic_shape("b, 2*b, 3")
    (b, 2*b, 3)
    """
    if scope is not None and constraints:
        raise BadArgument("symbolic_shape takes `constraints` or `scope`", "one of them", "both")
    chosen = SymbolicScope(tuple(constraints)) if scope is None else scope
    # Read once, so that errors are raised here.
    _ = chosen.equal, chosen.at_least_zero
    text = "..." if shape_spec is None else shape_spec.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1].rstrip().removesuffix(",")
    parts = [part.strip() for part in split_dims(text)]
    rest: Shape = ()
    if parts and parts[-1] == "...":
        parts.pop()
        rest = _like(like, text)[len(parts) :]
    sizes = [
        _like(like, text)[i] if part == "_" else read_dim(part, chosen)
        for i, part in enumerate(parts)
    ]
    if like is not None and len(sizes) + len(rest) != len(like):
        raise BadArgument(
            "a symbolic shape has another number of axes than `like`", str(tuple(like)), repr(text)
        )
    return (*sizes, *rest)


def _like(like: Sequence[int] | None, text: str) -> Shape:
    if like is None:
        raise BadArgument(
            "`_` and `...` take their sizes from `like`", "a shape as `like`", repr(text)
        )
    return tuple(like)


def symbolic_args_specs(
    args: object,
    shapes_specs: object,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> PyTree:
    """Return the tree of shapes and dtypes of arguments, with symbolic sizes.

    Args:
        args: tree of arrays, or of their types.
        shapes_specs: a shape for :func:`symbolic_shape`, or a tree of them that is a prefix of
            ``args``; None: the shape of the argument.
        constraints: comparisons of sizes.
        scope: the constraints of other sizes, instead of ``constraints``.

    Raises:
        BadArgument: ``shapes_specs`` is not a prefix of ``args``, or as for ``symbolic_shape``.

    >>> export.symbolic_args_specs((jnp.ones((2, 3)), jnp.ones(3)), ("b, _", None))
    (ShapeDtypeStruct(shape=(b, 3), dtype=float32), ShapeDtypeStruct(shape=(3,), dtype=float32))
    """
    leaves, treedef = tree.flatten(args)
    try:
        specs = tree.broadcast_prefix(shapes_specs, args)
    except ValueError as error:
        raise BadArgument(
            "the symbolic shapes are not a prefix of the arguments", found=str(error)
        ) from None
    types = [abstract_type(x, "an argument of symbolic_args_specs") for x in leaves]
    shapes = [
        symbolic_shape(spec, constraints=constraints, scope=scope, like=t.shape)
        for spec, t in zip(specs, types, strict=True)
    ]
    made = [ShapeDtypeStruct(s, t.dtype) for s, t in zip(shapes, types, strict=True)]
    return tree.unflatten(treedef, made)
