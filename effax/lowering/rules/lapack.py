"""Lowering of factorisations of matrices for the host's processor: LAPACK's routines.

Each is a call of a routine on a batch of matrices, and what makes of its results those of the
evaluator: nan where it failed, zeros in the other triangle, signs. The routines are jaxlib's, so
these rules are for modules that run here; ``effax.lowering.rules.linalg`` has those that run
anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from effax.ir.build import Builder
from effax.ir.dtypes import INT32, is_complex, real_dtype
from effax.ir.primitive import Typing
from effax.ir.prims import elementwise as ew
from effax.ir.prims import linalg as p
from effax.ir.prims.control import Scan
from effax.ir.prims.shape import Iota, Transpose
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, Shape, Type, array_type
from effax.lowering import xla
from effax.lowering.calls import custom_call
from effax.lowering.rules import linalg
from effax.lowering.rules.linalg import Expanded, nan_unless, types_of
from effax.lowering.writer import EMPTY_BOOK, Expansion, Val, Writer
from effax.transforms.rules import matrices as m
from effax.transforms.rules.pointwise import const, sub


@dataclass(frozen=True, slots=True)
class Routine(Expanded):
    """A call of a routine, whose results take the memory of its last operand where they can.

    Attributes:
        routine: the routine, without the letter of the dtype.
        options: ``name = letter``, each.
        outs: the types of its results.
    """

    routine: str
    options: tuple[tuple[str, str], ...]
    outs: tuple[ArrayType, ...]
    over: int = 0
    name: ClassVar[str] = "routine"

    def typing(self, *ins: Type) -> Typing:
        return Typing(self.outs)


def routine(w: Writer, prim: Routine, ins: Sequence[Val]) -> Sequence[Val]:
    text = custom_call(
        xla.lapack_target(prim.routine, ins[0].type.dtype),
        [(x.name, x.type) for x in ins],
        prim.outs,
        [f"{name} = {ord(letter)} : ui8" for name, letter in prim.options],
        columns_first=len(ins[0].shape),
        in_place=(prim.over, 0),
    )
    return w.op(text, *prim.outs)


def _info(x: ArrayType) -> ArrayType:
    """Of each matrix a number, which is 0 where all went well."""
    return array_type(x.shape[:-2], INT32)


def _of(x: ArrayType, shape: Shape | None = None) -> ArrayType:
    """An array of the same elements, not weak."""
    return array_type(x.shape if shape is None else shape, x.dtype)


def _well(b: Builder, info: Atom) -> Atom:
    return b(ew.Eq(), info, const(0, info))


def cholesky(prim: p.Cholesky, types: tuple[ArrayType, ...]) -> Jaxpr:
    """nan where it fails, zeros above the diagonal."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    if type_.size == 0:
        return b.finish([x])
    factor, info = b.emit(Routine("potrf", (("uplo", "L"),), (_of(type_), _info(type_))), [x])
    lower = m.below(b, factor)
    # The routine does not call it a failure where nan comes up.
    well = b(ew.And(), _well(b, info), linalg.has_no_nan(b, lower, 2))
    return b.finish([nan_unless(b, well, lower)])


LETTERS: Final = {p.Op.PLAIN: "N", p.Op.TRANSPOSE: "T", p.Op.ADJOINT: "C"}


def triangular_solve(w: Writer, prim: p.TriangularSolve, ins: Sequence[Val]) -> Sequence[Val]:
    _, y = ins
    if y.type.size == 0:
        return (y,)
    options = (
        ("side", "L"),
        ("uplo", "L" if prim.lower else "U"),
        ("trans_x", LETTERS[prim.op]),
        ("diag", "U" if prim.unit_diagonal else "N"),
    )
    return routine(w, Routine("trsm", options, (_of(y.type),), 1), ins)


def lu(prim: p.Lu, types: tuple[ArrayType, ...]) -> Jaxpr:
    """The routine counts pivots from 1; from them follows the permutation."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    order_type = array_type(type_.shape[:-1], INT32)
    if type_.size == 0:
        return b.finish([x, *[linalg.zeros(b, order_type)] * 2])
    outs = (_of(type_), order_type, _info(type_))
    factors, pivots, _ = b.emit(Routine("getrf", (), outs), [x])
    rows = sub(b, pivots, const(1, pivots))
    return b.finish(linalg.lu_results(b, factors, rows, _permutation(b, rows)))


def _permutation(b: Builder, pivots: Atom) -> Atom:
    """What becomes of ``0, 1, 2, ...`` when entries k and ``pivots[k]`` change places, in order."""
    *batch, n = pivots.type.shape
    start = b(Iota(INT32, (*batch, n), len(batch)))
    body = Builder(
        [array_type((*batch, n), INT32), array_type((), INT32), array_type(batch, INT32)]
    )
    order, k, pivot = body.binders
    places = body(Iota(INT32, (*batch, n), len(batch)))
    at_k = body(ew.Eq(), places, k)
    at_pivot = body(ew.Eq(), places, linalg.along_rows(body, pivot, n))
    step = body.finish([linalg.exchanged(body, order, at_k, at_pivot, 1)])
    each = b(Transpose((len(batch), *range(len(batch)))), pivots) if batch else pivots
    (found,) = b.emit(Scan(step, n, False, 0, 1), [start, b(Iota(INT32, (n,), 0)), each])
    return found


def reflections(w: Writer, prim: linalg.Reflections, ins: Sequence[Val]) -> Sequence[Val]:
    return routine(w, Routine("geqrf", (), types_of(prim, ins)), ins)


def product(w: Writer, prim: linalg.ProductOfReflections, ins: Sequence[Val]) -> Sequence[Val]:
    return routine(w, Routine("orgqr", (), types_of(prim, ins)), ins)


def eigh(prim: p.Eigh, types: tuple[ArrayType, ...]) -> Jaxpr:
    """nan where it fails; the signs of real vectors are the evaluator's."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    values = array_type(type_.shape[:-1], real_dtype(type_.dtype))
    if type_.size == 0:
        return b.finish([linalg.zeros(b, values), linalg.zeros(b, _of(type_))])
    options = (("mode", "V"), ("uplo", "L"))
    v, w, info = b.emit(Routine("syevd", options, (_of(type_), values, _info(type_))), [x])
    v_, w_ = (nan_unless(b, _well(b, info), x) for x in (v, w))
    real = not is_complex(type_.dtype)
    return b.finish([w_, linalg.flipped(b, v_, linalg.signs(b, v_)) if real else v_])


def svd(prim: p.Svd, types: tuple[ArrayType, ...]) -> Jaxpr:
    """nan where it fails; the signs of real vectors are the evaluator's."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    *batch, rows, columns = type_.shape
    k = min(rows, columns)
    s_type = array_type((*batch, k), real_dtype(type_.dtype))
    u_type, vh_type = _of(type_, (*batch, rows, k)), _of(type_, (*batch, k, columns))
    if type_.size == 0:
        return b.finish([linalg.zeros(b, t) for t in (u_type, s_type, vh_type)])
    outs = (_of(type_), s_type, u_type, vh_type, _info(type_))
    _, *found, info = b.emit(Routine("gesdd", (("mode", "S"),), outs), [x])
    well = _well(b, info)
    s, u, vh = [nan_unless(b, well, part) for part in found]
    if not is_complex(type_.dtype):
        v = m.swapped(b, vh)
        flips = linalg.signs(b, v)
        u, vh = linalg.flipped(b, u, flips), m.swapped(b, linalg.flipped(b, v, flips))
    return b.finish([u, s, vh])


LAPACK: Final = (
    EMPTY_BOOK.extend(p.Cholesky, Expansion(cholesky))
    .extend(p.TriangularSolve, triangular_solve)
    .extend(p.Lu, Expansion(lu))
    .extend(p.Eigh, Expansion(eigh))
    .extend(p.Svd, Expansion(svd))
    .extend(linalg.Reflections, reflections)
    .extend(linalg.ProductOfReflections, product)
    .extend(Routine, routine)
)
"""Qr is the program that runs anywhere, of reflections by LAPACK."""
