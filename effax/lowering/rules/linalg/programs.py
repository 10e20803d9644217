"""Lowering of factorisations of matrices on every backend.

Cholesky and triangular solves are operations of StableHLO, and XLA expands calls of ``Qr`` and
``Eigh``. The others are programs of these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final

from effax.ir import prims
from effax.ir.build import Builder, lit
from effax.ir.dtypes import INT32, is_complex, real_dtype
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import (
    Argmax,
    BroadcastInDim,
    Concatenate,
    Iota,
    Pad,
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceSum,
    Rev,
    Scan,
    Slice,
    Transpose,
)
from effax.ir.prims import linalg as p
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, Type, array_type
from effax.lazy.dataclasses import dataclass
from effax.lowering import ops
from effax.lowering.writer import Val, Writer
from effax.transforms.rules.common import matrices as m
from effax.transforms.rules.common.pointwise import add, const, div, mul, neg, scaled, sub, where


@dataclass(frozen=True, slots=True)
class Expanded(Primitive):
    """A call that XLA expands: a factorisation in the packed form of its algorithm."""

    name: ClassVar[str] = "expanded"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        raise NotImplementedError(f"{self.name} is created by lowering and cannot be evaluated")


@dataclass(frozen=True, slots=True)
class Factor(Expanded):
    """Cholesky's factor; elements above its diagonal are undefined."""

    name: ClassVar[str] = "factor"

    def typing(self, *ins: Type) -> Typing:
        return Typing((array_type(ins[0].shape, ins[0].dtype),))


def factor(w: Writer, prim: Factor, ins: Sequence[Val]) -> Sequence[Val]:
    (x,) = ins
    return (w.op1(f"stablehlo.cholesky {x}, lower = true : {x.text}", x.type),)


def cholesky_program(prim: p.Cholesky, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of Cholesky; nan where the diagonal of the factor is not positive."""
    b = Builder(types)
    (x,) = b.binders
    if 0 in x.type.shape:
        return b.finish([x])
    found = b(Factor(), x)
    diagonal = m.real(b, m.diagonal(b, found))
    well = b(ReduceAnd((len(x.type.shape) - 2,)), b(prims.Gt(), diagonal, const(0, diagonal)))
    return b.finish([nan_unless(b, well, m.below(b, found))])


def per_matrix(b: Builder, which: Atom, yes: Atom, no: Atom) -> Atom:
    """Select ``yes`` for each matrix for which ``which``, a boolean per matrix, is true."""
    shape = yes.type.shape
    axes = tuple(range(len(which.type.shape)))
    whole = which if shape == which.type.shape else b(BroadcastInDim(shape, axes), which)
    return where(b, whole, yes, no)


def nan_unless(b: Builder, well: Atom, x: Atom) -> Atom:
    """Return ``x``, nan for each matrix whose factorisation failed."""
    return per_matrix(b, well, x, const(math.nan, x))


def has_no_nan(b: Builder, x: Atom, axes: int) -> Atom:
    """Return, for each matrix, whether its elements, on the last ``axes`` axes, have no nan."""
    n = len(x.type.shape)
    return b(ReduceAnd(tuple(range(n - axes, n))), b(prims.Eq(), x, x))


TRANSPOSES: Final = {
    p.Op.PLAIN: "NO_TRANSPOSE",
    p.Op.TRANSPOSE: "TRANSPOSE",
    p.Op.ADJOINT: "ADJOINT",
}


def triangular_solve(w: Writer, prim: p.TriangularSolve, ins: Sequence[Val]) -> Sequence[Val]:
    a, b = ins
    if b.type.size == 0:
        return (b,)
    settings = (
        f"left_side = true, lower = {str(prim.lower).lower()}, "
        f"unit_diagonal = {str(prim.unit_diagonal).lower()}, "
        f"transpose_a = #stablehlo<transpose {TRANSPOSES[prim.op]}>"
    )
    signature = ops.signature(ins, b.type)
    return (
        w.op1(f'"stablehlo.triangular_solve"({a}, {b}) <{{{settings}}}> : {signature}', b.type),
    )


@dataclass(frozen=True, slots=True)
class Reflections(Expanded):
    """Householder reflections whose product is q: ``(r and reflections, factors)``."""

    name: ClassVar[str] = "reflections"

    def typing(self, *ins: Type) -> Typing:
        (x,) = ins
        *batch, rows, columns = x.shape
        factors = array_type((*batch, min(rows, columns)), x.dtype)
        return Typing((array_type(x.shape, x.dtype), factors))


@dataclass(frozen=True, slots=True)
class ProductOfReflections(Expanded):
    """The product of reflections, of the shape of the packed reflections."""

    name: ClassVar[str] = "product_of_reflections"

    def typing(self, *ins: Type) -> Typing:
        return Typing((array_type(ins[0].shape, ins[0].dtype),))


@dataclass(frozen=True, slots=True)
class Rotations(Expanded):
    """Eigenvectors and eigenvalues ``(v, w)`` of Hermitian matrices, by Jacobi rotations."""

    name: ClassVar[str] = "rotations"

    def typing(self, *ins: Type) -> Typing:
        (x,) = ins
        values = array_type(x.shape[:-1], real_dtype(x.dtype))
        return Typing((array_type(x.shape, x.dtype), values))


def reflections(w: Writer, prim: Reflections, ins: Sequence[Val]) -> Sequence[Val]:
    types = types_of(prim, ins)
    return w.op(f"stablehlo.custom_call @Qr({ins[0]}) : {ops.signature(ins, *types)}", *types)


def product(w: Writer, prim: ProductOfReflections, ins: Sequence[Val]) -> Sequence[Val]:
    (type_,) = types_of(prim, ins)
    target = "ProductOfElementaryHouseholderReflectors"
    text = f"stablehlo.custom_call @{target}({ins[0]}, {ins[1]}) : {ops.signature(ins, type_)}"
    return (w.op1(text, type_),)


def rotations(w: Writer, prim: Rotations, ins: Sequence[Val]) -> Sequence[Val]:
    types = types_of(prim, ins)
    # Lower triangle, sorted, at most 100 sweeps, relative tolerance.
    settings = '{backend_config = "1,1,100,1e-6"}'
    text = f"stablehlo.custom_call @Eigh({ins[0]}) {settings} : {ops.signature(ins, *types)}"
    return w.op(text, *types)


def types_of(prim: Expanded, ins: Sequence[Val]) -> tuple[ArrayType, ...]:
    outs = prim.typing(*[x.type for x in ins]).outs
    return tuple([t for t in outs if isinstance(t, ArrayType)])


def zeros(b: Builder, type_: Type) -> Atom:
    return b(BroadcastInDim(type_.shape, ()), lit(0, type_))


def _cut(b: Builder, x: Atom, rows: slice, columns: slice) -> Atom:
    """Return a submatrix of each matrix."""
    shape = x.type.shape
    spans = [range(n) for n in shape[:-2]]
    spans += [range(n)[s] for n, s in zip(shape[-2:], (rows, columns), strict=True)]
    starts = tuple([s.start for s in spans])
    return b(Slice(starts, tuple([s.stop for s in spans])), x)


def qr_program(prim: p.Qr, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of QR: ``r`` is the upper triangle, ``q`` the product of reflections."""
    b = Builder(types)
    (x,) = b.binders
    outs = prim.typing(*types).outs
    if 0 in x.type.shape:
        return b.finish([_identity(b, outs[0]), zeros(b, outs[1])])
    return b.finish(_qr(b, x, prim.full))


def _identity(b: Builder, type_: Type) -> Atom:
    if not type_.shape[-1] or 0 in type_.shape:
        return zeros(b, type_)
    shape = type_.shape
    rows, columns = (b(Iota(INT32, shape, i)) for i in (len(shape) - 2, len(shape) - 1))
    return b(prims.ConvertElementType(type_.dtype), b(prims.Eq(), rows, columns))


def _qr(b: Builder, x: Atom, full: bool) -> list[Atom]:
    *_, rows, columns = x.type.shape
    packed, factors = b.emit(Reflections(), [x])
    k = rows if full else min(rows, columns)
    of_q: Atom = packed
    if rows < columns:
        of_q = _cut(b, packed, slice(None), slice(rows))
    elif full and rows > columns:
        still = [(0, 0, 0)] * (len(x.type.shape) - 1)
        of_q = b(Pad((*still, (0, rows - columns, 0))), packed, const(0, x))
    q = b(ProductOfReflections(), of_q, factors)
    return [q, m.above(b, _cut(b, packed, slice(k), slice(None)))]


def eigh_program(prim: p.Eigh, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of the eigendecomposition, which reads the lower triangle."""
    b = Builder(types)
    (x,) = b.binders
    if 0 in x.type.shape:
        return b.finish([zeros(b, t) for t in prim.typing(*types).outs])
    v, w = eigenvectors(b, m.hermitian(b, x))
    well = has_no_nan(b, w, 1)
    v, w = nan_unless(b, well, v), nan_unless(b, well, w)
    return b.finish([w, v if is_complex(x.type.dtype) else flipped(b, v, signs(b, v))])


def eigenvectors(b: Builder, h: Atom) -> tuple[Atom, Atom]:
    """Return ``(v, w)`` of Hermitian matrices, to the precision of their dtype.

    XLA's rotations end at about 1e-8, at any tolerance. Two steps of T. Ogita and K. Aishima,
    "Iterative refinement for symmetric eigenvalue decomposition" (2018), refine them:
    with R = 1 - VᴴV and S = VᴴHV, V becomes V + V·E, where E_ij = (S_ij + w_j R_ij)/(w_j - w_i),
    or R_ij/2 where that is not small.
    """
    v: Atom
    w: Atom
    v, w = b.emit(Rotations(), [h])
    if real_dtype(h.type.dtype).itemsize == 4:
        return v, w
    one = m.diagonal_matrix(b, m.diagonal(b, b(prims.IntegerPow(0), h)))
    for _ in range(2):
        rest = sub(b, one, m.matmul(b, m.adjoint(b, v), v))
        inner = m.matmul(b, m.adjoint(b, v), m.matmul(b, h, v))
        scale = add(b, const(1, w), m.real(b, m.diagonal(b, rest)))
        w = mul(b, m.real(b, m.diagonal(b, inner)), scale)
        columns = m.across_rows(b, w)
        off = add(b, inner, mul(b, m.like(b, columns, h), rest))
        gap = sub(b, columns, m.across_columns(b, w))
        apart = b(prims.Lt(), b(prims.Abs(), off), scaled(b, b(prims.Abs(), gap), 0.01))
        safe = m.like(b, where(b, apart, gap, const(1, gap)), h)
        step = where(b, apart, div(b, off, safe), scaled(b, rest, 0.5))
        v = add(b, v, m.matmul(b, v, step))
    return v, w


def signs(b: Builder, v: Atom) -> Atom:
    """Return the sign of each column's leading component; see ``leading_signs``."""
    shape = v.type.shape
    n = len(shape)
    rows = b(Iota(v.type.dtype, shape, n - 2))
    weights = add(b, const(1, v), scaled(b, rows, -1 / (8 * shape[-2])))
    weighted = mul(b, v, weights)
    up, down = b(ReduceMax((n - 2,)), weighted), b(ReduceMin((n - 2,)), weighted)
    return where(b, b(prims.Gt(), neg(b, down), up), const(-1, up), const(1, up))


def phases(b: Builder, v: Atom) -> Atom:
    """Return the conjugate phase of each column's leading component; see ``leading_phases``."""
    lead = b(prims.Conj(), m.leading(b, v, m.leading_places(b, v)))
    return div(b, lead, m.like(b, b(prims.Abs(), lead), lead))


def flipped(b: Builder, columns: Atom, by: Atom) -> Atom:
    """Scale each column."""
    return mul(b, columns, m.across_rows(b, by, columns.type.shape[-2]))


def svd_program(prim: p.Svd, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of the SVD, of the adjoint if there are more columns than rows."""
    b = Builder(types)
    (x,) = b.binders
    if 0 in x.type.shape:
        return b.finish([zeros(b, t) for t in prim.typing(*types).outs])
    wide = x.type.shape[-2] < x.type.shape[-1]
    u, s, v = _tall_svd(b, m.adjoint(b, x) if wide else x)
    if wide:
        u, v = v, u
    if prim.vectors and not is_complex(x.type.dtype):
        flips = signs(b, v)
        u, v = flipped(b, u, flips), flipped(b, v, flips)
    well = has_no_nan(b, s, 1)
    outs = (u, s, m.adjoint(b, v)) if prim.vectors else (s,)
    return b.finish([nan_unless(b, well, part) for part in outs])


def _tall_svd(b: Builder, x: Atom) -> tuple[Atom, Atom, Atom]:
    """Return ``(u, s, v)``.

    With x = q·r, the eigenvectors of [0, rᴴ; r, 0] are (v; u)/√2, with eigenvalues ±s. Their v is
    orthonormalized by QR, which completes it for singular values of 0; then QR of r·v = u·s, whose
    columns are orthogonal, yields u and s.
    """
    n = x.type.shape[-1]
    q, r = _qr(b, x, full=False)
    zero = zeros(b, r.type)
    axis = len(r.type.shape)
    upper = b(Concatenate(axis - 1), zero, m.adjoint(b, r))
    lower = b(Concatenate(axis - 1), r, zero)
    vectors, _ = eigenvectors(b, b(Concatenate(axis - 2), upper, lower))
    descending = b(Rev((axis - 1,)), _cut(b, vectors, slice(n), slice(n, 2 * n)))
    v, _ = _qr(b, scaled(b, descending, 2**0.5), full=False)
    u, triangle = _qr(b, m.matmul(b, r, v), full=False)
    values = m.diagonal(b, triangle)
    size = b(prims.Abs(), values)
    vanishes = b(prims.Eq(), values, const(0, values))
    phases = where(b, vanishes, const(1, values), b(prims.Sign(), values))
    return m.matmul(b, q, mul(b, u, m.across_rows(b, phases))), size, v


def on_host(w: Writer, prim: p.Eig | p.Schur, ins: Sequence[Val]) -> Sequence[Val]:
    """Call the evaluation, as there is no other program."""
    outs = prim.typing(*[x.type for x in ins]).outs
    return w.host_call(prim.evaluate, ins, [t for t in outs if isinstance(t, ArrayType)])


def lu_program(prim: p.Lu, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of LU by columns: exchange rows, divide by the pivot, eliminate."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    outs = prim.typing(*types).outs
    order_shape, n = outs[2].shape, min(type_.shape[-2:])
    if type_.size == 0:
        rows = b(Iota(INT32, order_shape, len(order_shape) - 1))
        return b.finish([x, zeros(b, outs[1]), rows])
    order = b(Iota(INT32, order_shape, len(order_shape) - 1))
    loop = Scan(_lu_step(type_), n, False, 0, 2)
    strong = array_type(type_.shape, type_.dtype)
    start = x if x.type == strong else b(prims.ConvertElementType(type_.dtype), x)
    lu, order, pivots = b.emit(loop, [start, order, b(Iota(INT32, (n,), 0))])
    return b.finish(lu_results(b, lu, _last(b, pivots), order))


def lu_results(b: Builder, lu: Atom, pivots: Atom, order: Atom) -> list[Atom]:
    """Return the results; for a matrix with nan, nan and the identity permutation."""
    well = has_no_nan(b, lu, 2)
    axis = len(order.type.shape) - 1
    rows = [per_matrix(b, well, x, b(Iota(INT32, x.type.shape, axis))) for x in (pivots, order)]
    return [nan_unless(b, well, lu), *rows]


def _last(b: Builder, stacked: Atom) -> Atom:
    """Move the leading axis to the end."""
    n = len(stacked.type.shape)
    return stacked if n == 1 else b(Transpose((*range(1, n), 0)), stacked)


def _lu_step(type_: ArrayType) -> Jaxpr:
    shape = type_.shape
    *_, height, n = shape
    ndim, lead = len(shape), shape[:-1]
    b = Builder([array_type(shape, type_.dtype), array_type(lead, INT32), array_type((), INT32)])
    lu: Atom
    order: Atom
    lu, order, k = b.binders
    rows, columns = (b(Iota(INT32, shape, i)) for i in (ndim - 2, ndim - 1))
    places = b(Iota(INT32, lead, ndim - 2))
    in_column = b(prims.Eq(), columns, k)
    size = _magnitude(b, lu)
    # The first nan is the pivot, as in the evaluator.
    size = where(b, b(prims.Ne(), size, size), const(float("inf"), size), size)
    open_ = b(prims.And(), in_column, b(prims.Ge(), rows, k))
    candidates = b(ReduceMax((ndim - 1,)), where(b, open_, size, const(-1, size)))
    pivot = b(Argmax(ndim - 2, INT32), candidates)
    at_k = b(prims.Eq(), places, k)
    at_pivot = b(prims.Eq(), places, along_rows(b, pivot, height))
    order = exchanged(b, order, at_k, at_pivot, 1)
    lu = exchanged(b, lu, m.across_columns(b, at_k, n), m.across_columns(b, at_pivot, n), 2)
    row = b(ReduceSum((ndim - 2,)), where(b, b(prims.Eq(), rows, k), lu, const(0, lu)))
    column = b(ReduceSum((ndim - 1,)), where(b, in_column, lu, const(0, lu)))
    top = b(ReduceSum((ndim - 2,)), where(b, at_k, column, const(0, column)))
    # Below a pivot of 0 all elements are 0: any divisor will do.
    divisor = where(b, b(prims.Eq(), top, const(0, top)), const(1, top), top)
    factor = m.across_columns(b, div(b, column, along_rows(b, divisor, height)), n)
    below, right = b(prims.Gt(), rows, k), b(prims.Gt(), columns, k)
    reduced = sub(b, lu, mul(b, factor, m.across_rows(b, row, height)))
    inner = where(b, right, reduced, where(b, in_column, factor, lu))
    return b.finish([where(b, below, inner, lu), order, pivot])


def _magnitude(b: Builder, x: Atom) -> Atom:
    """Return |re| + |im|, by which pivots are chosen."""
    if not is_complex(x.type.dtype):
        return b(prims.Abs(), x)
    return add(b, b(prims.Abs(), b(prims.Real(), x)), b(prims.Abs(), b(prims.Imag(), x)))


def along_rows(b: Builder, x: Atom, n: int) -> Atom:
    """Broadcast one value per matrix along its rows."""
    lead = x.type.shape
    return b(BroadcastInDim((*lead, n), tuple(range(len(lead)))), x)


def exchanged(b: Builder, x: Atom, first: Atom, second: Atom, axes: int) -> Atom:
    """Exchange rows ``first`` and ``second``; ``axes`` is the number of axes of a matrix of x."""
    shape = x.type.shape
    axis = len(shape) - axes
    dims = tuple([i for i in range(len(shape)) if i != axis])
    kept = [
        b(BroadcastInDim(shape, dims), b(ReduceSum((axis,)), where(b, here, x, const(0, x))))
        for here in (first, second)
    ]
    return where(b, first, kept[1], where(b, second, kept[0], x))
