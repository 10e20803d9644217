"""Factorisations of matrices in the last two axes; the leading axes are a batch.

The results of a factorisation that fails are nan. The operations of one are those that Golub and
Van Loan, "Matrix Computations", count for real matrices; of complex ones four times as many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from typing import ClassVar, cast

import numpy as np

from effax.ir.dtypes import INT32, DType, as_dtype, complex_dtype, real_dtype
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common.operands import INEXACT, arrays, check_dtype, check_same_dtype
from effax.ir.types import ArrayType, Type
from effax.ir.work import Work, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "Cholesky",
    "Eig",
    "Eigh",
    "Lu",
    "Op",
    "Qr",
    "Schur",
    "Svd",
    "TriangularSolve",
]

WORKS_IN = frozenset({"float32", "float64", "complex64", "complex128"})
"""The dtypes in which matrices are factorised; narrower ones are converted first."""


def check_matrices(prim: Primitive, x: ArrayType, square: bool) -> None:
    """Raise IllTyped unless the last two axes are matrices of floats of 32 bits or more."""
    check_dtype(prim, x, INEXACT)
    fits = x.ndim >= 2 and (not square or x.shape[-1] == x.shape[-2])
    if not fits or x.dtype.name not in WORKS_IN:
        raise IllTyped(
            f"{prim.name} takes {'square ' * square}matrices",
            expected=f"two axes or more{', the last equal' * square}, of 32-bit numbers or more",
            found=str(x),
        )


def _factorised(ins: Sequence[Type], outs: Sequence[Type], thirds: int) -> Work:
    """Return the work of a factorisation of so many thirds of an operation for each matrix."""
    *batch, _, _ = ins[0].shape
    each = 4 if ins[0].dtype.kind == "c" else 1
    return moved(ins, outs, flops=math.prod(batch) * thirds * each // 3)


def _long_and_short(type_: Type) -> tuple[int, int]:
    return max(type_.shape[-2:]), min(type_.shape[-2:])


class Op(Enum):
    """The operation on a matrix before it is used."""

    PLAIN = "plain"
    TRANSPOSE = "transpose"
    ADJOINT = "adjoint"


def _each(
    factor: Callable[[Value], tuple[Value, ...]],
    x: Value,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[DType],
) -> tuple[Value, ...]:
    """Return the factorisation of each matrix, nan where NumPy raises."""
    flat = x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])
    outs = [np.full((len(flat), *s), np.nan, d) for s, d in zip(shapes, dtypes, strict=True)]
    for i, matrix in enumerate(flat):
        try:
            results = factor(matrix)
        except np.linalg.LinAlgError:
            continue
        for out, result in zip(outs, results, strict=True):
            out[i] = result
    return tuple(o.reshape(*x.shape[:-2], *o.shape[1:]) for o in outs)


def _cholesky(a: Value) -> tuple[Value, ...]:
    factor = np.linalg.cholesky(a)
    # LAPACK does not report nan as a failure.
    return (np.full_like(factor, np.nan) if np.isnan(factor).any() else factor,)


@dataclass(frozen=True, slots=True)
class Cholesky(Primitive):
    """The lower triangular L with a = L·Lᴴ; only the lower triangle of a is read."""

    name: ClassVar[str] = "cholesky"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_matrices(self, x, square=True)
        return Typing((x,))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return _factorised(ins, outs, ins[0].shape[-1] ** 3)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        return _each(_cholesky, x, [x.shape[-2:]], [x.dtype])


@dataclass(frozen=True, slots=True)
class TriangularSolve(Primitive):
    """``triangular_solve(a, b)``: the x with op(a)·x = b; one triangle of a is read."""

    lower: bool
    op: Op = Op.PLAIN
    unit_diagonal: bool = False
    name: ClassVar[str] = "triangular_solve"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        a, b = arrays(self, ins, 2)
        check_matrices(self, a, square=True)
        check_matrices(self, b, square=False)
        check_same_dtype(self, [a, b])
        if a.shape[:-1] != b.shape[:-1]:
            raise IllTyped(
                "triangular_solve has a right-hand side of the wrong shape",
                expected=f"shape {(*a.shape[:-1], 'k')}",
                found=str(b),
            )
        return Typing((b.update(weak=a.weak and b.weak),))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        n, k = ins[1].shape[-2:]
        return _factorised(ins, outs, 3 * n * n * k)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        a, b = ins
        if not b.size:
            return (np.array(b),)
        options = {
            "alpha": 1,
            "lower": self.lower,
            "trans_a": (Op.PLAIN, Op.TRANSPOSE, Op.ADJOINT).index(self.op),
            "diag": self.unit_diagonal,
        }
        solve = _routine("blas", "trsm", b)
        flat = zip(a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:]), strict=True)
        found = [solve(a=x, b=y, **options) for x, y in flat]
        return (np.stack(found).reshape(b.shape),)


def _routine(library: str, name: str, x: Value) -> Callable[..., Value]:
    """Return SciPy's routine of the dtype, which compiled programs call too."""
    find = getattr(import_module(f"scipy.linalg.{library}"), f"get_{library}_funcs")
    return cast("Callable[..., Value]", find(name, (x,)))


@dataclass(frozen=True, slots=True)
class Lu(Primitive):
    """``(lu, pivots, permutation)`` with a[permutation] = L·U.

    ``lu`` has U and, below its diagonal, L, whose diagonal is 1. Step k exchanges rows k and
    ``pivots[k]``, the first of the greatest magnitude; as in LAPACK, the magnitude of a complex
    number is the sum of those of its parts. If a matrix yields nan, its ``lu`` is nan and no rows
    are exchanged.
    """

    name: ClassVar[str] = "lu"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_matrices(self, x, square=False)
        *batch, m, n = x.shape
        pivots, order = (
            x.update(shape=(*batch, k), dtype=INT32, weak=False) for k in (min(m, n), m)
        )
        return Typing((x, pivots, order))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        m, n = _long_and_short(ins[0])
        return _factorised(ins, outs, n * n * (3 * m - n))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        *batch, m, n = ins[0].shape
        lu = np.array(ins[0]).reshape(math.prod(batch), m, n)
        order = np.tile(np.arange(m, dtype=np.int32), (len(lu), 1))
        steps = np.arange(min(m, n), dtype=np.int32)
        pivots = np.tile(steps, (len(lu), 1))
        for i, x in enumerate(lu if lu.size else ()):
            failed = np.isnan(x).any()
            lu[i], pivots[i], _ = _routine("lapack", "getrf", x)(x)
            if failed or np.isnan(lu[i]).any():
                lu[i], pivots[i] = np.nan, steps
        each = np.arange(len(lu))
        for k in steps:
            p = pivots[:, k]
            order[each, p], order[:, k] = order[:, k].copy(), order[each, p].copy()
        return (
            lu.reshape(ins[0].shape),
            pivots.reshape(*batch, len(steps)),
            order.reshape(*batch, m),
        )


@dataclass(frozen=True, slots=True)
class Qr(Primitive):
    """``(q, r)`` with a = q·r, q's columns orthonormal and r upper triangular.

    q is square if ``full``; otherwise it has no more columns than a.
    """

    full: bool = False
    name: ClassVar[str] = "qr"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_matrices(self, x, square=False)
        *batch, m, n = x.shape
        k = m if self.full else min(m, n)
        return Typing((x.update(shape=(*batch, m, k)), x.update(shape=(*batch, k, n))))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        # R, and Q from its reflections, cost the same.
        m, n = _long_and_short(ins[0])
        return _factorised(ins, outs, 4 * n * n * (3 * m - n))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        q, r = np.linalg.qr(ins[0], "complete" if self.full else "reduced")
        return q.astype(ins[0].dtype, copy=False), r.astype(ins[0].dtype, copy=False)


def leading_signs(v: Value) -> Value:
    """Return the sign of each column's leading component, 1 or -1; of complex columns, 1.

    Eigenvectors are determined up to sign. Dividing by this one makes them unique, so that NumPy
    and XLA agree. The leading component is that of the greatest magnitude, weighted to prefer
    earlier rows, so that rounding does not decide between equal ones.
    """
    if v.dtype.kind == "c" or not v.size:
        return np.ones((*v.shape[:-2], 1, v.shape[-1]), v.dtype)
    n = v.shape[-2]
    weighted = v * (1 - np.arange(n) / (8 * n)).astype(v.dtype)[:, None]
    up, down = weighted.max(axis=-2, keepdims=True), weighted.min(axis=-2, keepdims=True)
    return np.where(-down > up, -1, 1).astype(v.dtype)


def _eigh(a: Value) -> tuple[Value, ...]:
    name = "heevd" if a.dtype.kind == "c" else "syevd"
    w, v, info = _routine("lapack", name, a)(a, lower=1)
    if info:
        raise np.linalg.LinAlgError
    return w, v * leading_signs(v)


def _svd(a: Value) -> tuple[Value, ...]:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    signs = leading_signs(np.swapaxes(vh, -1, -2))
    return u * signs, s, np.swapaxes(signs, -1, -2) * vh


@dataclass(frozen=True, slots=True)
class Eigh(Primitive):
    """``(w, v)`` with a·v = v·diag(w) for Hermitian a, w ascending; the lower triangle is read."""

    name: ClassVar[str] = "eigh"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_matrices(self, x, square=True)
        values = x.update(shape=x.shape[:-1], dtype=real_dtype(x.dtype))
        return Typing((values, x))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return _factorised(ins, outs, 27 * ins[0].shape[-1] ** 3)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        shapes, dtypes = [x.shape[-1:], x.shape[-2:]], [real_dtype(x.dtype), x.dtype]
        return _each(_eigh, x, shapes, dtypes)


def leading_phases(v: Value) -> Value:
    """Return the conjugate phase of each complex column's leading component; see above."""
    if not v.size:
        return np.ones((*v.shape[:-2], 1, v.shape[-1]), v.dtype)
    n = v.shape[-2]
    weighted = np.abs(v) * (1 - np.arange(n) / (8 * n))[:, None]
    lead = np.take_along_axis(v, weighted.argmax(axis=-2, keepdims=True), -2)
    phase: Value = np.conj(lead) / np.abs(lead)
    return phase.astype(v.dtype)


def _eig(a: Value, left: bool, right: bool) -> tuple[Value, ...]:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError
    found = import_module("scipy.linalg").eig(a, None, left, right, check_finite=False)
    w, *vectors = found if left or right else (found,)
    return w, *(v * leading_phases(v + 0j) for v in vectors)


@dataclass(frozen=True, slots=True)
class Eig(Primitive):
    """``(w, left, right)`` with a·right = right·diag(w) and leftᴴ·a = diag(w)·leftᴴ, all complex.

    Vectors that are not asked for are left out. Columns have norm 1, and their leading components
    are real and positive.
    """

    left: bool = False
    right: bool = True
    name: ClassVar[str] = "eig"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_matrices(self, x, square=True)
        vectors = x.update(dtype=complex_dtype(x.dtype))
        values = vectors.update(shape=x.shape[:-1])
        return Typing((values, *[vectors] * (self.left + self.right)))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return _factorised(
            ins, outs, (75 if self.left or self.right else 30) * ins[0].shape[-1] ** 3
        )

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        shapes = [x.shape[-1:], *[x.shape[-2:]] * (self.left + self.right)]
        wide = [complex_dtype(x.dtype)] * len(shapes)
        return _each(lambda a: _eig(a, self.left, self.right), x, shapes, wide)


def _schur(a: Value) -> tuple[Value, ...]:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError
    t, q = import_module("scipy.linalg").schur(a, check_finite=False)
    return t, q


@dataclass(frozen=True, slots=True)
class Schur(Primitive):
    """``(t, q)`` with a = q·t·qᴴ, q unitary and t upper triangular; without ``vectors``, ``(t,)``.

    For real a, t has blocks of 2 by 2 on its diagonal, for pairs of conjugate eigenvalues.
    """

    vectors: bool = True
    name: ClassVar[str] = "schur"

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_matrices(self, x, square=True)
        return Typing((x,) * (1 + self.vectors))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return _factorised(ins, outs, (75 if self.vectors else 60) * ins[0].shape[-1] ** 3)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        return _each(_schur, x, [x.shape[-2:]] * 2, [x.dtype] * 2)[: 1 + self.vectors]


@dataclass(frozen=True, slots=True)
class Svd(Primitive):
    """``(u, s, vh)`` with a = u·diag(s)·vh, s descending; no more columns of u than of a.

    Without ``vectors``, ``(s,)``.
    """

    vectors: bool = True
    name: ClassVar[str] = "svd"
    may_compile: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_matrices(self, x, square=False)
        *batch, m, n = x.shape
        k = min(m, n)
        values = x.update(shape=(*batch, k), dtype=real_dtype(x.dtype))
        if not self.vectors:
            return Typing((values,))
        return Typing((x.update(shape=(*batch, m, k)), values, x.update(shape=(*batch, k, n))))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        m, n = _long_and_short(ins[0])
        values = 4 * n * n * (3 * m - n)
        return _factorised(ins, outs, 3 * (6 * m + 20 * n) * n * n if self.vectors else values)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        m, n = x.shape[-2:]
        k = min(m, n)
        real = real_dtype(x.dtype)
        if not self.vectors:
            return _each(lambda a: (np.linalg.svd(a, compute_uv=False),), x, [(k,)], [real])
        return _each(_svd, x, [(m, k), (k,), (k, n)], [x.dtype, real, x.dtype])


def work_dtype(dtype: DType) -> DType:
    """Return the dtype in which matrices of ``dtype`` are factorised."""
    return dtype if dtype.name in WORKS_IN else as_dtype("float32")
