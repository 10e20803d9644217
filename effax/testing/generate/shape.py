"""Steps that move elements; all are linear."""

from __future__ import annotations

from math import prod
from typing import Final

from effax.ir import prims as p
from effax.ir.dtypes import family, is_float
from effax.ir.prims import Neg
from effax.ir.syntax import Atom, Var
from effax.ir.types import ArrayType, Shape
from effax.testing.generate.program_builder import MAX_ELEMENTS, ProgramBuilder
from effax.testing.generate.step import Steps

STEPS_OF_STRIDES: Final = (1, 2, 3)


def reshape(g: ProgramBuilder) -> None:
    x = g.any_array()
    n = prod(x.type.shape)
    shapes: list[Shape] = [(n,), (1, n), (n, 1)]
    shapes += [(k, n // k) for k in (2, 3, 4) if n and n % k == 0]
    if n == 1:
        shapes.append(())
    g.one(p.Reshape(g.choose.pick(shapes)), x)


def broadcast(g: ProgramBuilder) -> None:
    x = g.any_array()
    shape = x.type.shape
    n = g.size_of_axis()
    if prod(shape) * n > MAX_ELEMENTS or len(shape) >= 4:
        g.one(p.Rev((0,) if shape else ()), x)
        return
    axes = range(len(shape))
    places = [((n, *shape), tuple(a + 1 for a in axes)), ((*shape, n), tuple(axes))]
    if 1 in shape:
        at = shape.index(1)
        places.append(((*shape[:at], n, *shape[at + 1 :]), tuple(axes)))
    sizes, dims = g.choose.pick(places)
    g.one(p.BroadcastInDim(sizes, dims), x)


def transpose(g: ProgramBuilder) -> None:
    x = g.any_array(2)
    if len(x.type.shape) == 2 and prod(x.type.shape) <= 12 and g.choose.chance(50):
        # The only transposition of two axes is its own inverse.
        x = g.wider(x)
    axes = list(range(len(x.type.shape)))
    order = []
    while axes:
        # The last axis first: the simplest choice changes the order.
        order.append(axes.pop(-1 - g.choose.below(len(axes))))
    g.one(p.Transpose(tuple(order)), x)


def squeeze(g: ProgramBuilder) -> None:
    x = g.any_array()
    shape = x.type.shape
    if 1 in shape:
        g.one(p.Squeeze((shape.index(1),)), x)
    else:
        g.one(p.ExpandDims((g.choose.below(len(shape) + 1),)), x)


def concatenate(g: ProgramBuilder) -> None:
    x = g.any_array(1)
    axis = g.choose.below(len(x.type.shape))
    shape = x.type.shape

    def fits(v: Var) -> bool:
        other = v.type.shape
        return (
            v.type.dtype == x.type.dtype
            and len(other) == len(shape)
            and all(i == axis or n == m for i, (n, m) in enumerate(zip(shape, other, strict=True)))
            and g.is_linear(v) == g.is_linear(x)
            and v is not x
        )

    others = [g.maybe(fits) or _varied(g, x) for _ in range(1 + g.choose.chance(20))]
    if prod(shape) + sum(prod(v.type.shape) for v in others) > MAX_ELEMENTS:
        others = []
    parts = [x, *others]
    g.one(p.Concatenate(axis), *(reversed(parts) if g.choose.chance(30) else parts))


def _varied(g: ProgramBuilder, x: Var) -> Var:
    """Return another array of the same type."""
    return g.one(Neg(), x) if is_float(x.type.dtype) else x


def pad(g: ProgramBuilder) -> None:
    x = g.any_array()
    config = []
    for n in x.type.shape:
        low, high, inner = g.choose.pick(
            ((0, 1, 0), (1, 0, 0), (0, 0, 1), (-1, 1, 0), (1, -1, 1), (2, 0, 0), (-1, -1, 0))
        )
        fits = low + n + max(n - 1, 0) * inner + high >= 0
        config.append((low, high, inner) if fits else (0, 0, 0))
    sizes = [
        low + n + max(n - 1, 0) * inner + high
        for n, (low, high, inner) in zip(x.type.shape, config, strict=True)
    ]
    value = _padding(g, x)
    if prod(sizes) > MAX_ELEMENTS:
        config = [(0, 0, 0)] * len(sizes)
    g.one(p.Pad(tuple(config)), x, value)


def _padding(g: ProgramBuilder, x: Var) -> Atom:
    if g.is_linear(x):
        found = g.maybe(
            lambda v: g.is_linear(v) and not v.type.shape and v.type.dtype == x.type.dtype
        )
        return g.literal(x.type.dtype, 0.0) if found is None else found
    found = g.maybe(
        lambda v: not g.is_linear(v) and not v.type.shape and v.type.dtype == x.type.dtype
    )
    return g.literal(x.type.dtype) if found is None else found


def reverse(g: ProgramBuilder) -> None:
    x = g.any_array(1)
    axes = g.choose.subset(range(len(x.type.shape)))
    g.one(p.Rev(tuple(axes or [0])), x)


def slice_(g: ProgramBuilder) -> None:
    x = g.any_array(1)
    spans = [static_span(g, n) for n in x.type.shape]
    starts, limits, strides = zip(*spans, strict=True)
    plain = all(s == 1 for s in strides)
    g.one(p.Slice(starts, limits, None if plain else strides), x)


def static_span(g: ProgramBuilder, n: int) -> tuple[int, int, int]:
    """Return start, limit and stride on an axis; all of it is the simplest."""
    if not g.choose.chance(60):
        return 0, n, 1
    start = g.choose.below(n + 1)
    limit = n - g.choose.below(n - start + 1)
    return start, limit, g.choose.pick(STEPS_OF_STRIDES)


def iota(g: ProgramBuilder) -> None:
    shape = tuple(g.size_of_axis() for _ in range(1 + g.choose.below(2)))
    dtype = g.choose.pick((*g.features.ints, *g.features.floats))
    g.one(p.Iota(dtype, shape, g.choose.below(len(shape))))


def part_like(g: ProgramBuilder, x: Var, shape: Shape) -> Atom:
    """Return a value of the dtype and linearity of ``x`` in another shape."""
    assert isinstance(x.type, ArrayType)
    return g.value(x.type.update(shape=shape, weak=False), g.is_linear(x))


def is_real(v: Var) -> bool:
    """Return whether the elements are ordered numbers."""
    return family(v.type.dtype) in ("float", "int", "uint")


STEPS: Final = Steps(
    linear=(
        (1, reshape),
        (2, broadcast),
        (1, transpose),
        (1, squeeze),
        (2, slice_),
        (1, concatenate),
        (1, pad),
        (1, reverse),
        (1, iota),
    )
)
