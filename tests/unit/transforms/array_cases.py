"""One application or more of every primitive on arrays, with float64 operands to differentiate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from effax.ir import prims
from effax.ir.dtypes import as_dtype
from effax.ir.indexing import Indexer, Mode, Pick, Span
from effax.ir.key_dtype import THREEFRY, records_of
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import ConvGeneralDilated, Fft, FftType, index, linalg

F64 = as_dtype("float64")
WORDS = np.asarray([[3, 7], [2**32 - 1, 5]], np.uint32)


@dataclass(frozen=True)
class Case:
    """An application.

    ``smooth`` says which operands are differentiated; ``linear`` are the groups of operands in
    which the primitive is linear, jointly inside of a group.
    """

    prim: Primitive
    args: tuple[Value, ...]
    smooth: tuple[int, ...] = (0,)
    linear: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        return f"{self.prim!r:.60}-" + "-".join(f"{a.dtype}{list(a.shape)}" for a in self.args)


def normal(*sizes: int, seed: int = 0, dtype: str = "float64") -> Value:
    """Values of both signs, none near zero."""
    generator = np.random.default_rng((seed, *sizes))
    x = generator.normal(size=sizes)
    if dtype.startswith("complex"):
        x = x + 1j * generator.normal(size=sizes)
    return np.asarray(x + 0.3 * np.sign(x), dtype)


def between(low: float, high: float, *sizes: int, seed: int = 0) -> Value:
    """Values inside of an open interval."""
    generator = np.random.default_rng((seed, *sizes))
    return np.asarray(generator.uniform(low, high, size=sizes))


def ints(*values: object) -> Value:
    """An int32 array."""
    return np.asarray(values if len(values) != 1 else values[0], np.int32)


def bools(*sizes: int) -> Value:
    """A boolean array with both values."""
    return normal(*sizes, seed=7) > 0


X, Y, S = normal(2, 3), normal(2, 3, seed=1), normal(seed=2)
Z, W = normal(2, 3, dtype="complex128"), normal(2, 3, seed=1, dtype="complex128")
POSITIVE = between(0.3, 2.0, 2, 3)
UNIT = between(-0.8, 0.8, 2, 3)


def _unary() -> list[Case]:
    everywhere = [
        prims.Sign(),
        prims.Floor(),
        prims.Ceil(),
        prims.RoundEven(),
        prims.Exp(),
        prims.Exp2(),
        prims.Expm1(),
        prims.Cbrt(),
        prims.Square(),
        prims.Sin(),
        prims.Cos(),
        prims.Tan(),
        prims.Atan(),
        prims.Sinh(),
        prims.Cosh(),
        prims.Tanh(),
        prims.Asinh(),
        prims.Logistic(),
        prims.Erf(),
        prims.Erfc(),
        prims.Abs(),
        prims.IntegerPow(3),
        prims.IntegerPow(-2),
        prims.IntegerPow(1),
        prims.IntegerPow(2),
        prims.IntegerPow(0),
    ]
    positive = [prims.Log(), prims.Log1p(), prims.Sqrt(), prims.Magnitude(), prims.Rsqrt()]
    linear = [prims.Neg(), prims.Copy(), prims.ConvertElementType(F64)]
    return [
        *(Case(p, (X,)) for p in everywhere),
        *(Case(p, (POSITIVE,)) for p in positive),
        *(Case(p, (POSITIVE,)) for p in (prims.Lgamma(), prims.Digamma())),
        *(Case(p, (X,)) for p in (prims.BesselI0e(), prims.BesselI1e())),
        *(Case(p, (UNIT,)) for p in (prims.Asin(), prims.Acos(), prims.Atanh())),
        Case(prims.Acosh(), (POSITIVE + 1.1,)),
        *(Case(p, (X,), linear=((0,),)) for p in linear),
    ]


def _complex() -> list[Case]:
    holomorphic = [
        prims.Exp(),
        prims.Log(),
        prims.Sin(),
        prims.Tanh(),
        prims.Sqrt(),
        prims.Square(),
        prims.Logistic(),
        prims.IntegerPow(3),
    ]
    linear = [
        prims.Real(),
        prims.Imag(),
        prims.Conj(),
        prims.Neg(),
        prims.ConvertElementType(Z.dtype),
    ]
    product = prims.DotGeneral((((1,), (1,)), ((), ())))
    return [
        *(Case(p, (Z,)) for p in (*holomorphic, prims.Abs(), prims.Sign())),
        *(Case(p, (Z,), linear=((0,),)) for p in linear),
        Case(prims.ConvertElementType(Z.dtype), (X,), linear=((0,),)),
        Case(prims.Complex(), (X, Y), (0, 1), ((0, 1),)),
        Case(prims.Complex(), (S, Y), (0, 1), ((0, 1),)),
        Case(prims.Mul(), (Z, W), (0, 1), ((0,), (1,))),
        Case(prims.Div(), (Z, W), (0, 1), ((0,),)),
        Case(prims.Pow(), (Z, W), (0, 1)),
        Case(product, (Z, W), (0, 1), ((0,), (1,))),
        Case(prims.ReduceProd((1,)), (Z,)),
    ]


def _binary() -> list[Case]:
    pairs = ((X, Y), (S, Y), (X, S), (S, normal(seed=3)))
    both = [(prims.Add(), ((0, 1),)), (prims.Sub(), ((0, 1),)), (prims.Mul(), ((0,), (1,)))]
    both.append((prims.StrongZeroMul(), ((0,),)))
    both += [(prims.Div(), ((0,),))]
    rough = [prims.Rem(), prims.Max(), prims.Min(), prims.Atan2()]
    which = bools(2, 3)
    return [
        *(Case(p, pair, (0, 1), linear) for p, linear in both for pair in pairs),
        *(Case(p, pair, (0, 1)) for p in rough for pair in pairs),
        Case(prims.Pow(), (POSITIVE, Y), (0, 1)),
        Case(prims.Pow(), (np.abs(S), Y), (0, 1)),
        Case(prims.Clamp(), (X, Y, X + 1), (0, 1, 2)),
        Case(prims.Clamp(), (np.asarray(-0.5), Y, np.asarray(0.5)), (0, 1, 2)),
        Case(prims.Clamp(), (X, S, X + 1), (0, 1, 2)),
        Case(prims.SelectN(), (which, X, Y), (1, 2), ((1, 2),)),
        Case(prims.SelectN(), (which, S, Y), (1, 2), ((1, 2),)),
        Case(prims.SelectN(), (which, S, S + 1), (1, 2), ((1, 2),)),
        Case(prims.SelectN(), (np.asarray(True), X, Y), (1, 2), ((1, 2),)),
        Case(prims.SelectN(), (np.asarray(True), S, Y), (1, 2), ((1, 2),)),
        Case(prims.SelectN(), (ints([2, 0, 1]), *normal(3, 3)), (1, 2, 3), ((1, 2, 3),)),
    ]


def _shapes() -> list[Case]:
    x = normal(3, 4)
    moving = [
        prims.Reshape((2, 6)), prims.Transpose((1, 0)), prims.Rev((1,)), prims.ExpandDims((0, 2)),
        prims.BroadcastInDim((2, 3, 4), (1, 2)), prims.Slice((1, 0), (3, 4)),
        prims.Slice((0, 1), (3, 4), (2, 2)), prims.Slice((1, 1), (1, 3)),
    ]  # fmt: skip
    pads = [((1, 2, 0), (0, 1, 2)), ((-1, 1, 0), (2, -2, 1)), ((-1, -1, 1), (0, 0, 0))]
    return [
        *(Case(p, (x,), linear=((0,),)) for p in moving),
        Case(prims.Squeeze((0, 2)), (normal(1, 3, 1),), linear=((0,),)),
        Case(prims.BroadcastInDim((4, 3), (0, 1)), (normal(1, 3),), linear=((0,),)),
        Case(prims.BroadcastInDim((1, 3), (0, 1)), (normal(1, 3),), linear=((0,),)),
        Case(prims.BroadcastInDim((2, 3), ()), (S,), linear=((0,),)),
        *(Case(prims.Pad(p), (x, S), (0, 1), ((0, 1),)) for p in pads),
        Case(prims.Pad(()), (S, S + 1), (0, 1), ((0, 1),)),
        Case(prims.Concatenate(1), (x, normal(3, 2), normal(3, 1)), (0, 1, 2), ((0, 1, 2),)),
        Case(prims.Concatenate(0), (x,), (0,), ((0,),)),
    ]


def _windows() -> list[Case]:
    x = normal(4, 5)
    one, two, far, before = (np.asarray(i, np.int32) for i in (1, 2, 9, -3))
    small = np.asarray(250, np.uint8)
    sliced, updated = prims.DynamicSlice((2, 3)), prims.DynamicUpdateSlice()
    update = normal(2, 3)
    return [
        *(Case(sliced, (x, *at), linear=((0,),)) for at in ((one, two), (far, before))),
        Case(prims.DynamicSlice((3,)), (normal(260), small), linear=((0,),)),
        Case(prims.DynamicSlice((4, 3)), (x, one, two), linear=((0,),)),
        *(
            Case(updated, (x, update, *at), (0, 1), ((0, 1),))
            for at in ((one, two), (far, before), (one, np.asarray(1, np.uint32)))
        ),
    ]


def indexers() -> list[tuple[Indexer, tuple[Value, ...]]]:
    """Indexers of an array of shape (4, 5, 3), with operands: duplicates and outside included."""
    rows, columns = ints([0, 3, 3]), ints([4, 0, 4])
    outside = ints([5, -1, 2])
    grid = ints([[0, 1], [1, 7]])
    start = np.asarray(1, np.int32)
    all4, all5, all3 = Span(0, 4), Span(0, 5), Span(0, 3)
    dynamic = Pick(None)
    return [
        (Indexer((dynamic, all5, all3)), (np.asarray(2, np.int32),)),
        (Indexer((dynamic, all5, all3)), (rows,)),
        (Indexer((dynamic, all5, all3), Mode.DROP), (outside,)),
        (Indexer((dynamic, all5, all3)), (outside,)),
        (Indexer((dynamic, dynamic, all3)), (rows, columns)),
        (Indexer((dynamic, all5, dynamic), Mode.DROP), (outside, ints([0, 1, 2]))),
        (Indexer((all4, dynamic, dynamic)), (grid, ints([2, 0]))),
        (Indexer((all4, dynamic, Pick(1)), Mode.DROP), (grid,)),
        (Indexer((dynamic, Pick(2), dynamic)), (grid, np.asarray(2, np.int32))),
        (Indexer((Span(None, 2), dynamic, Span(0, 2, 2))), (start, rows)),
        (Indexer((Span(None, 2), Pick(3), Span(None, 2, -1))), (np.asarray(9, np.int8), start)),
        (Indexer((dynamic, Span(None, 3, 2), dynamic)), (rows, start, ints([0, 0, 1]))),
        (Indexer((Span(3, 2, -3), Span(1, 2), Span(0, 0))), ()),
        (Indexer((Span(None, 4), Span(None, 2, -2), all3)), (start, start)),
    ]


def _indexed() -> list[Case]:
    x = normal(4, 5, 3)
    cases = []
    for indexer, operands in indexers():
        (part,) = index.Gather(indexer).evaluate(x, *operands)
        value = normal(*part.shape, seed=5)
        args = (x, value, *operands)
        cases.append(Case(index.Gather(indexer), (x, *operands), (0,), ((0,),)))
        cases.append(Case(index.Scatter(indexer), args, (0, 1), ((0, 1),)))
        cases.append(Case(index.ScatterAdd(indexer), args, (0, 1), ((0, 1),)))
        cases.append(Case(index.ScatterMul(indexer), args, (0, 1), ((0,),)))
        cases.append(Case(index.ScatterMax(indexer), args, (0, 1)))
        cases.append(Case(index.ScatterMin(indexer), args, (0, 1)))
    return cases


def _reductions() -> list[Case]:
    x = normal(3, 4, 2)
    zero = x.copy()
    zero[0, 1], zero[1, 2], zero[1, 0, 0] = 0.0, 0.0, 0.0
    running = [prims.CumProd, prims.CumMax, prims.CumMin, prims.CumLogSumExp]
    sizes = [normal(n, 2, seed=n) for n in (0, 1, 2, 3, 4, 7)]
    return [
        *(Case(prims.ReduceSum(axes), (x,), linear=((0,),)) for axes in ((), (1,), (0, 2))),
        *(Case(prims.ReduceProd(axes), (a,)) for axes in ((), (1,), (2, 0)) for a in (x, zero)),
        Case(prims.ReduceProd((0,)), (sizes[0],)),
        *(Case(prim((0, 2)), (x,)) for prim in (prims.ReduceMax, prims.ReduceMin)),
        *(Case(prims.CumSum(1, back), (x,), linear=((0,),)) for back in (False, True)),
        *(Case(prim(0, back), (a,)) for prim in running for back in (False, True) for a in sizes),
        *(Case(prims.CumProd(1, back), (zero,)) for back in (False, True)),
        Case(prims.Sort(1), (x,)),
        Case(prims.Sort(0), (normal(5),)),
        *(Case(prims.TopK(k, axis), (x,)) for k, axis in ((2, 1), (3, 0), (1, 2))),
        Case(prims.Sort(1, 2), (ints([[1, 0, 1], [2, 2, 1]]), X, Y), (1, 2)),
    ]


def _contractions() -> list[Case]:
    numbers = [
        ((((1,), (0,)), ((), ())), (2, 3), (3, 4)),
        ((((), ()), ((), ())), (2,), (3,)),
        ((((0,), (0,)), ((), ())), (3,), (3,)),
        ((((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 5)),
        ((((3, 1), (0, 3)), ((2,), (1,))), (2, 3, 5, 4), (4, 5, 6, 3)),
        ((((1,), (2,)), ((2, 0), (0, 1))), (2, 3, 4), (4, 2, 3)),
    ]
    return [
        Case(prims.DotGeneral(n), (normal(*a), normal(*b)), (0, 1), ((0,), (1,)))
        for n, a, b in numbers
    ]


def convolutions() -> list[tuple[ConvGeneralDilated, tuple[int, ...], tuple[int, ...]]]:
    """Convolutions with the shapes of their operands."""
    conv = ConvGeneralDilated
    return [
        (conv((1,), ((0, 0),), (1,), (1,)), (2, 3, 5), (4, 3, 2)),
        (conv((2,), ((1, 2),), (1,), (1,)), (2, 3, 5), (4, 3, 2)),
        (conv((2,), ((2, 0),), (3,), (2,)), (1, 2, 4), (2, 2, 3)),
        (conv((3,), ((-1, -2),), (2,), (1,)), (1, 2, 6), (2, 2, 3)),
        (conv((1,), ((1, 1),), (1,), (1,), 2), (2, 4, 5), (6, 2, 3)),
        (conv((2, 1), ((0, 1), (2, -1)), (1, 2), (2, 1), 3), (2, 3, 6, 4), (3, 1, 2, 3)),
        (conv((1, 2), ((1, 1), (0, 0)), (1, 1), (1, 1)), (2, 3, 3, 5), (2, 3, 3, 2)),
        (conv((), (), (), ()), (2, 3), (4, 3)),
        (conv((1,), ((0, 0),), (1,), (1,)), (1, 2, 2), (3, 2, 5)),
        (conv((1,), ((0, 0),), (1,), (1,)), (0, 2, 3), (3, 2, 2)),
    ]


def _convolved() -> list[Case]:
    return [
        Case(prim, (normal(*a), normal(*b, seed=1)), (0, 1), ((0,), (1,)))
        for prim, a, b in convolutions()
    ]


def _factorised() -> list[Case]:
    a, z = normal(2, 3, 3), normal(3, 3, dtype="complex128")
    positive = a @ np.swapaxes(a, -1, -2) + 2 * np.eye(3)
    hermitian = z @ z.conj().T + 2 * np.eye(3)
    triangular = [
        linalg.TriangularSolve(lower, op, unit)
        for lower, op, unit in (
            (True, linalg.Op.PLAIN, False),
            (False, linalg.Op.PLAIN, True),
            (True, linalg.Op.TRANSPOSE, False),
            (False, linalg.Op.ADJOINT, False),
        )
    ]
    return [
        *(Case(linalg.Cholesky(), (x,)) for x in (positive, hermitian)),
        *(Case(p, (a + 3 * np.eye(3), normal(2, 3, 2)), (0, 1), ((1,),)) for p in triangular),
        Case(triangular[3], (z + 3 * np.eye(3), normal(3, 1, dtype="complex128")), (0, 1), ((1,),)),
        *(Case(linalg.Lu(), (x,)) for x in (a, z, normal(4, 2), normal(2, 4))),
        Case(linalg.Eig(True), (a,)),
        Case(linalg.Eig(right=False), (z,)),
        *(Case(linalg.Qr(), (x,)) for x in (a, z, normal(4, 2), normal(2, 4))),
        Case(linalg.Eigh(), (positive,)),
        *(Case(linalg.Svd(), (x,)) for x in (a, normal(4, 2), normal(2, 4))),
        Case(linalg.Svd(vectors=False), (normal(4, 2),)),
    ]


def _transformed() -> list[Case]:
    x, z = normal(2, 5, 6), normal(2, 5, 4, dtype="complex128")
    t = FftType
    return [
        *(Case(Fft(kind, (5, 4)), (z,), linear=((0,),)) for kind in (t.FFT, t.IFFT)),
        *(Case(Fft(t.RFFT, n), (x,), linear=((0,),)) for n in ((6,), (5, 6))),
        Case(Fft(t.RFFT, (5,)), (normal(5),), linear=((0,),)),
        *(Case(Fft(t.IRFFT, n), (z,), linear=((0,),)) for n in ((6,), (7,), (5, 6), (5, 7))),
    ]


DIFFERENTIABLE: Sequence[Case] = [
    *_unary(), *_complex(), *_binary(), *_shapes(), *_windows(), *_indexed(), *_reductions(),
    *_contractions(), *_convolved(), *_factorised(), *_transformed(),
]  # fmt: skip


def _discrete() -> list[Case]:
    i, j = ints([[3, -2, 0], [7, 5, -9]]), ints([[1, 2, 3], [0, 31, 40]])
    true, false = bools(2, 3), ~bools(2, 3)
    integral = [
        prims.Add(),
        prims.Div(),
        prims.Rem(),
        prims.And(),
        prims.Or(),
        prims.Xor(),
        prims.Max(),
        prims.ShiftLeft(),
    ]
    integral += [prims.ShiftRightLogical(), prims.ShiftRightArithmetic()]
    compared = [prims.Eq(), prims.Ne(), prims.Lt(), prims.Le(), prims.Gt(), prims.Ge()]
    f32 = X.astype(np.float32)
    return [
        *(Case(p, (i, j)) for p in integral),
        *(Case(p, (i, np.asarray(2, np.int32))) for p in integral),
        *(Case(p, (X, Y)) for p in (*compared, prims.Nextafter(), prims.StraightThrough())),
        *(
            Case(p, (true, false))
            for p in (prims.And(), prims.Or(), prims.Xor(), prims.Max(), prims.Min())
        ),
        *(
            Case(p, (i,))
            for p in (prims.Not(), prims.PopulationCount(), prims.IntegerPow(2), prims.Sign())
        ),
        *(Case(p, (X,)) for p in (prims.IsFinite(), prims.StopGradient())),
        Case(prims.ConvertElementType(as_dtype("int32")), (X,)),
        Case(prims.BitcastConvertType(as_dtype("int32")), (f32,)),
        Case(prims.ReducePrecision(5, 3), (f32,)),
        *(Case(p((1,)), (true,)) for p in (prims.ReduceAnd, prims.ReduceOr)),
        *(Case(p(1, as_dtype("int32")), (X,)) for p in (prims.Argmax, prims.Argmin)),
        Case(linalg.Schur(), (normal(2, 3, 3),), ()),
        Case(prims.Pad(((1, 1, 0), (0, 0, 1))), (i, np.asarray(5, np.int32))),
        Case(prims.RandomWrap("fry"), (WORDS,)),
        Case(prims.RandomUnwrap(), (records_of(WORDS, THREEFRY),)),
        Case(prims.RngBitGenerator(as_dtype("uint16"), (2, 3)), (WORDS.reshape(4),)),
    ]


ALL: Sequence[Case] = [*DIFFERENTIABLE, *_discrete()]
