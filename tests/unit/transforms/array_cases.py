"""One application or more of every primitive on arrays, with float64 operands to differentiate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from effax.ir.dtypes import as_dtype
from effax.ir.indexing import Indexer, Mode, Pick, Span
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import elementwise as ew
from effax.ir.prims import index, linalg, reduce, shape
from effax.ir.prims.conv import ConvGeneralDilated
from effax.ir.prims.fft import Fft, FftType

F64 = as_dtype("float64")


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
        ew.Sign(), ew.Floor(), ew.Ceil(), ew.RoundEven(), ew.Exp(), ew.Exp2(), ew.Expm1(),
        ew.Cbrt(), ew.Square(), ew.Sin(), ew.Cos(), ew.Tan(), ew.Atan(), ew.Sinh(), ew.Cosh(),
        ew.Tanh(), ew.Asinh(), ew.Logistic(), ew.Erf(), ew.Erfc(), ew.Abs(), ew.IntegerPow(3),
        ew.IntegerPow(-2), ew.IntegerPow(1), ew.IntegerPow(2), ew.IntegerPow(0),
    ]  # fmt: skip
    positive = [ew.Log(), ew.Log1p(), ew.Sqrt(), ew.Rsqrt()]
    linear = [ew.Neg(), ew.Copy(), ew.ConvertElementType(F64)]
    return [
        *(Case(p, (X,)) for p in everywhere),
        *(Case(p, (POSITIVE,)) for p in positive),
        *(Case(p, (UNIT,)) for p in (ew.Asin(), ew.Acos(), ew.Atanh())),
        Case(ew.Acosh(), (POSITIVE + 1.1,)),
        *(Case(p, (X,), linear=((0,),)) for p in linear),
    ]


def _complex() -> list[Case]:
    holomorphic = [
        ew.Exp(), ew.Log(), ew.Sin(), ew.Tanh(), ew.Sqrt(), ew.Square(), ew.Logistic(),
        ew.IntegerPow(3),
    ]  # fmt: skip
    linear = [ew.Real(), ew.Imag(), ew.Conj(), ew.Neg(), ew.ConvertElementType(Z.dtype)]
    product = reduce.DotGeneral((((1,), (1,)), ((), ())))
    return [
        *(Case(p, (Z,)) for p in (*holomorphic, ew.Abs(), ew.Sign())),
        *(Case(p, (Z,), linear=((0,),)) for p in linear),
        Case(ew.ConvertElementType(Z.dtype), (X,), linear=((0,),)),
        Case(ew.Complex(), (X, Y), (0, 1), ((0, 1),)),
        Case(ew.Complex(), (S, Y), (0, 1), ((0, 1),)),
        Case(ew.Mul(), (Z, W), (0, 1), ((0,), (1,))),
        Case(ew.Div(), (Z, W), (0, 1), ((0,),)),
        Case(ew.Pow(), (Z, W), (0, 1)),
        Case(product, (Z, W), (0, 1), ((0,), (1,))),
        Case(reduce.ReduceProd((1,)), (Z,)),
    ]


def _binary() -> list[Case]:
    pairs = ((X, Y), (S, Y), (X, S), (S, normal(seed=3)))
    both = [(ew.Add(), ((0, 1),)), (ew.Sub(), ((0, 1),)), (ew.Mul(), ((0,), (1,)))]
    both += [(ew.Div(), ((0,),))]
    rough = [ew.Rem(), ew.Max(), ew.Min(), ew.Atan2()]
    which = bools(2, 3)
    return [
        *(Case(p, pair, (0, 1), linear) for p, linear in both for pair in pairs),
        *(Case(p, pair, (0, 1)) for p in rough for pair in pairs),
        Case(ew.Pow(), (POSITIVE, Y), (0, 1)),
        Case(ew.Pow(), (np.abs(S), Y), (0, 1)),
        Case(ew.Clamp(), (X, Y, X + 1), (0, 1, 2)),
        Case(ew.Clamp(), (np.asarray(-0.5), Y, np.asarray(0.5)), (0, 1, 2)),
        Case(ew.Clamp(), (X, S, X + 1), (0, 1, 2)),
        Case(ew.SelectN(), (which, X, Y), (1, 2), ((1, 2),)),
        Case(ew.SelectN(), (which, S, Y), (1, 2), ((1, 2),)),
        Case(ew.SelectN(), (which, S, S + 1), (1, 2), ((1, 2),)),
        Case(ew.SelectN(), (np.asarray(True), X, Y), (1, 2), ((1, 2),)),
        Case(ew.SelectN(), (np.asarray(True), S, Y), (1, 2), ((1, 2),)),
        Case(ew.SelectN(), (ints([2, 0, 1]), *normal(3, 3)), (1, 2, 3), ((1, 2, 3),)),
    ]


def _shapes() -> list[Case]:
    x = normal(3, 4)
    moving = [
        shape.Reshape((2, 6)), shape.Transpose((1, 0)), shape.Rev((1,)), shape.ExpandDims((0, 2)),
        shape.BroadcastInDim((2, 3, 4), (1, 2)), shape.Slice((1, 0), (3, 4)),
        shape.Slice((0, 1), (3, 4), (2, 2)), shape.Slice((1, 1), (1, 3)),
    ]  # fmt: skip
    pads = [((1, 2, 0), (0, 1, 2)), ((-1, 1, 0), (2, -2, 1)), ((-1, -1, 1), (0, 0, 0))]
    return [
        *(Case(p, (x,), linear=((0,),)) for p in moving),
        Case(shape.Squeeze((0, 2)), (normal(1, 3, 1),), linear=((0,),)),
        Case(shape.BroadcastInDim((4, 3), (0, 1)), (normal(1, 3),), linear=((0,),)),
        Case(shape.BroadcastInDim((1, 3), (0, 1)), (normal(1, 3),), linear=((0,),)),
        Case(shape.BroadcastInDim((2, 3), ()), (S,), linear=((0,),)),
        *(Case(shape.Pad(p), (x, S), (0, 1), ((0, 1),)) for p in pads),
        Case(shape.Pad(()), (S, S + 1), (0, 1), ((0, 1),)),
        Case(shape.Concatenate(1), (x, normal(3, 2), normal(3, 1)), (0, 1, 2), ((0, 1, 2),)),
        Case(shape.Concatenate(0), (x,), (0,), ((0,),)),
    ]


def _windows() -> list[Case]:
    x = normal(4, 5)
    one, two, far, before = (np.asarray(i, np.int32) for i in (1, 2, 9, -3))
    small = np.asarray(250, np.uint8)
    sliced, updated = shape.DynamicSlice((2, 3)), shape.DynamicUpdateSlice()
    update = normal(2, 3)
    return [
        *(Case(sliced, (x, *at), linear=((0,),)) for at in ((one, two), (far, before))),
        Case(shape.DynamicSlice((3,)), (normal(260), small), linear=((0,),)),
        Case(shape.DynamicSlice((4, 3)), (x, one, two), linear=((0,),)),
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
    running = [reduce.CumProd, reduce.CumMax, reduce.CumMin, reduce.CumLogSumExp]
    sizes = [normal(n, 2, seed=n) for n in (0, 1, 2, 3, 4, 7)]
    return [
        *(Case(reduce.ReduceSum(axes), (x,), linear=((0,),)) for axes in ((), (1,), (0, 2))),
        *(Case(reduce.ReduceProd(axes), (a,)) for axes in ((), (1,), (2, 0)) for a in (x, zero)),
        Case(reduce.ReduceProd((0,)), (sizes[0],)),
        *(Case(prim((0, 2)), (x,)) for prim in (reduce.ReduceMax, reduce.ReduceMin)),
        *(Case(reduce.CumSum(1, back), (x,), linear=((0,),)) for back in (False, True)),
        *(Case(prim(0, back), (a,)) for prim in running for back in (False, True) for a in sizes),
        *(Case(reduce.CumProd(1, back), (zero,)) for back in (False, True)),
        Case(reduce.Sort(1), (x,)),
        Case(reduce.Sort(0), (normal(5),)),
        *(Case(reduce.TopK(k, axis), (x,)) for k, axis in ((2, 1), (3, 0), (1, 2))),
        Case(reduce.Sort(1, 2), (ints([[1, 0, 1], [2, 2, 1]]), X, Y), (1, 2)),
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
        Case(reduce.DotGeneral(n), (normal(*a), normal(*b)), (0, 1), ((0,), (1,)))
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
        *(Case(linalg.Lu(), (x,)) for x in (a, z)),
        *(Case(linalg.Qr(), (x,)) for x in (a, z, normal(4, 2))),
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
    integral = [ew.Add(), ew.Div(), ew.Rem(), ew.And(), ew.Or(), ew.Xor(), ew.Max(), ew.ShiftLeft()]
    integral += [ew.ShiftRightLogical(), ew.ShiftRightArithmetic()]
    compared = [ew.Eq(), ew.Ne(), ew.Lt(), ew.Le(), ew.Gt(), ew.Ge()]
    f32 = X.astype(np.float32)
    return [
        *(Case(p, (i, j)) for p in integral),
        *(Case(p, (i, np.asarray(2, np.int32))) for p in integral),
        *(Case(p, (X, Y)) for p in (*compared, ew.Nextafter())),
        *(Case(p, (true, false)) for p in (ew.And(), ew.Or(), ew.Xor(), ew.Max(), ew.Min())),
        *(Case(p, (i,)) for p in (ew.Not(), ew.PopulationCount(), ew.IntegerPow(2), ew.Sign())),
        *(Case(p, (X,)) for p in (ew.IsFinite(), ew.StopGradient())),
        Case(ew.ConvertElementType(as_dtype("int32")), (X,)),
        Case(ew.BitcastConvertType(as_dtype("int32")), (f32,)),
        *(Case(p((1,)), (true,)) for p in (reduce.ReduceAnd, reduce.ReduceOr)),
        *(Case(p(1, as_dtype("int32")), (X,)) for p in (reduce.Argmax, reduce.Argmin)),
        Case(shape.Pad(((1, 1, 0), (0, 0, 1))), (i, np.asarray(5, np.int32))),
    ]


ALL: Sequence[Case] = [*DIFFERENTIABLE, *_discrete()]
