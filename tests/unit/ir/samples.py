"""At least one application of every primitive, for tests that run on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from effax.ir import prims as p
from effax.ir.axes import Axis
from effax.ir.build import typing_of
from effax.ir.dtypes import as_dtype, family
from effax.ir.eval.spmd import Devices
from effax.ir.indexing import Indexer, Mode, Pick, Span, row, whole
from effax.ir.key_dtype import KeyDType, key_dtype_of_tag, records_of
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import (
    AddUpdate,
    Cond,
    ConvGeneralDilated,
    EmptyRef,
    Fft,
    FftType,
    FreeRef,
    Freeze,
    Gather,
    Get,
    HostFunction,
    Jit,
    LinearSolve,
    NewRef,
    Root,
    Scan,
    Scatter,
    ScatterAdd,
    ScatterMax,
    ScatterMin,
    ScatterMul,
    Swap,
    While,
    check,
    collective,
    custom,
    host,
    keys,
    linalg,
    remat,
    shard,
)
from effax.ir.registry import own_primitives
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type
from effax.transforms.rules.custom.dense import DenseForward, DenseReverse
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.vmap.engine import vmap
from tests.unit.building import chain, nested, program

INT32 = as_dtype("int32")
PARTS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "int": ("int8", "int32"),
    "uint": ("uint8",),
    "float": ("float32", "bfloat16"),
    "complex": ("complex64",),
}


class Sample(NamedTuple):
    """A primitive and the types of its arguments."""

    prim: Primitive
    ins: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.prim.name}-{'-'.join(map(str, self.ins))}"

    @property
    def eqn(self) -> Eqn:
        """The application on arguments a, b, c, ..."""
        outs, effects = typing_of(self.prim, self.ins)
        args = [Var(i, t) for i, t in enumerate(self.ins)]
        results = [Var(len(args) + i, t) for i, t in enumerate(outs)]
        return Eqn(self.prim, tuple(args), tuple(results), effects)

    @property
    def program(self) -> Jaxpr:
        """A program of that equation alone, without results that are references."""
        eqn = self.eqn
        outs = [v for v in eqn.outs if isinstance(v.type, ArrayType)]
        return Jaxpr([a for a in eqn.ins if isinstance(a, Var)], [eqn], outs)


def arr(sizes: str, dtype: str = "float32", weak: bool = False) -> ArrayType:
    """Return the array type of sizes such as ``2,3``."""
    return array_type([int(n) for n in sizes.split(",") if n], dtype, weak)


def elementwise() -> list[Sample]:
    """Return elementwise primitives without parameters, in every family of dtypes they take."""
    return [
        Sample(prim(), (arr("2,3", dtype),) * prim.arity)
        for _, prim in sorted(own_primitives().items())
        if issubclass(prim, p.Elementwise)
        for kind in sorted(prim.accepts)
        for dtype in PARTS.get(kind, ())
    ]


WHOLE, AT = whole((4, 3)), row((4, 3))
DROPPED = Indexer((Pick(None), Span(2, 3, -1)), Mode.DROP)
MIXED = Indexer((Span(None, 2, 2), Pick(1)))
INDEX, INDICES = arr("", "int32"), arr("5", "int32")
TABLE = arr("4,3")
REF = ref_type(TABLE)

CONVERSIONS = [
    Sample(p.Abs(), (arr("3", "complex64"),)),
    Sample(p.Abs(), (arr("3", weak=True),)),
    Sample(p.Real(), (arr("3", "complex64"),)),
    Sample(p.Imag(), (arr("3", "complex128"),)),
    Sample(p.Complex(), (arr("3"), arr("3"))),
    Sample(p.IntegerPow(3), (arr("3", "int8"),)),
    Sample(p.IntegerPow(-2), (arr("3"),)),
    Sample(p.ConvertElementType(as_dtype("bfloat16")), (arr("3", "int32"),)),
    Sample(p.ConvertElementType(INT32, True), (arr("3"),)),
    Sample(p.ReducePrecision(5, 10), (arr("3"),)),
    Sample(p.BitcastConvertType(as_dtype("uint32")), (arr("3"),)),
    Sample(p.StraightThrough(), (arr("3"), arr("3"))),
    Sample(p.StrongZeroMul(), (arr("3"), arr("3"))),
    Sample(p.SelectN(), (arr("3", "bool"), arr("3"), arr("3"))),
    Sample(p.SelectN(), (INDEX, arr("3"), arr("3"), arr("3"))),
    Sample(p.Add(), (arr("2,3", weak=True), arr("", weak=True))),
]

SHAPES = [
    Sample(p.Reshape((3, 2)), (arr("2,3"),)),
    Sample(p.BroadcastInDim((4, 3), (1,)), (arr("3"),)),
    Sample(p.BroadcastInDim((), ()), (arr(""),)),
    Sample(p.Transpose((1, 0)), (arr("2,3"),)),
    Sample(p.Squeeze((0,)), (arr("1,3"),)),
    Sample(p.ExpandDims((0, 2)), (arr("3"),)),
    Sample(p.Concatenate(0), (arr("2"), arr("3"))),
    Sample(p.Pad(((1, -1, 2), (0, 0, 0))), (arr("2,3"), arr(""))),
    Sample(p.Rev((0,)), (arr("3", "bool"),)),
    Sample(p.Slice((0, 1), (2, 3)), (arr("2,3"),)),
    Sample(p.Slice((0,), (5,), (2,)), (arr("5"),)),
    Sample(p.Iota(INT32, (3, 2), 1), ()),
    Sample(p.DimValue(3), ()),
    Sample(p.Constant(p.ConstantArray(np.arange(3, dtype=np.int32))), ()),
    Sample(p.Constant(p.ConstantArray(np.array([True, False])), False), ()),
    Sample(p.DynamicSlice((2, 2)), (arr("2,3"), INDEX, INDEX)),
    Sample(p.DynamicUpdateSlice(), (arr("2,3"), arr("1,2"), INDEX, INDEX)),
]

DOT = (((1,), (0,)), ((), ()))
REDUCTIONS = [
    *(
        Sample(prim((0,)), (arr("2,3"),))
        for prim in (p.ReduceSum, p.ReduceProd, p.ReduceMax, p.ReduceMin)
    ),
    *(
        Sample(prim((0, 1)), (arr("2,3", dtype),))
        for prim in (p.ReduceAnd, p.ReduceOr)
        for dtype in ("bool", "uint8")
    ),
    *(Sample(prim(1, INT32), (arr("2,3"),)) for prim in (p.Argmax, p.Argmin)),
    Sample(p.Argmax(0, INT32), (arr("3"),)),
    *(
        Sample(prim(0, reverse), (arr("3", dtype),))
        for prim in (p.CumSum, p.CumProd, p.CumMax, p.CumMin)
        for reverse, dtype in ((False, "int8"), (True, "bfloat16"))
    ),
    Sample(p.CumLogSumExp(0), (arr("3"),)),
    Sample(p.CumLogSumExp(0, True), (arr("3", "bfloat16"),)),
    Sample(p.Sort(0, 2), (arr("3"), arr("3", "int32"), arr("3", "complex64"))),
    Sample(p.TopK(2, 1), (arr("2,3"),)),
    Sample(p.TopK(0, 0), (arr("3", "uint8"),)),
    Sample(p.DotGeneral(DOT), (arr("2,3"), arr("3,4"))),
    Sample(
        p.DotGeneral(DOT, as_dtype("float32"), "highest"),
        (arr("2,3", "bfloat16"), arr("3,4", "bfloat16")),
    ),
]

FACTORISED = [
    Sample(linalg.Cholesky(), (arr("2,3,3"),)),
    Sample(linalg.TriangularSolve(True, linalg.Op.ADJOINT, True), (arr("3,3"), arr("3,2"))),
    Sample(linalg.Lu(), (arr("3,3", "complex64"),)),
    Sample(linalg.Lu(), (arr("2,2,3"),)),
    Sample(linalg.Eig(True, True), (arr("2,3,3"),)),
    Sample(linalg.Schur(), (arr("3,3"),)),
    Sample(linalg.Schur(False), (arr("3,3", "complex64"),)),
    Sample(linalg.Qr(), (arr("4,2"),)),
    Sample(linalg.Qr(True), (arr("4,2"),)),
    Sample(linalg.Eigh(), (arr("3,3", "complex64"),)),
    Sample(linalg.Svd(), (arr("2,4"),)),
    Sample(linalg.Svd(vectors=False), (arr("2,4"),)),
]

TRANSFORMED = [
    Sample(Fft(FftType.FFT, (3,)), (arr("2,3", "complex64"),)),
    Sample(Fft(FftType.RFFT, (2, 3)), (arr("2,3"),)),
    Sample(Fft(FftType.IRFFT, (4,)), (arr("2,3", "complex64"),)),
]

CONVOLVED = [
    Sample(ConvGeneralDilated((2,), ((1, 0),), (1,), (2,)), (arr("2,3,6"), arr("4,3,2"))),
    Sample(
        ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), 2, "highest", as_dtype("float32")),
        (arr("1,4,3", "bfloat16"), arr("2,2,2", "bfloat16")),
    ),
]

INDEXED = [
    Sample(Gather(WHOLE), (TABLE,)),
    Sample(Gather(AT), (TABLE, INDEX)),
    Sample(Gather(DROPPED), (TABLE, INDICES)),
    Sample(Scatter(MIXED), (TABLE, arr("2"), INDEX)),
    Sample(ScatterAdd(DROPPED), (TABLE, arr("5,3"), INDICES)),
    *(
        Sample(prim(DROPPED), (TABLE, arr("5,3"), INDICES))
        for prim in (ScatterMul, ScatterMax, ScatterMin)
    ),
    Sample(Get(WHOLE), (REF,)),
    Sample(Get(MIXED), (REF, INDEX)),
    Sample(Swap(WHOLE), (REF, TABLE)),
    Sample(Swap(AT), (REF, arr("3"), INDEX)),
    Sample(AddUpdate(WHOLE), (REF, TABLE)),
    Sample(AddUpdate(DROPPED), (REF, arr("5,3"), INDICES)),
]

REFERENCES = [
    Sample(NewRef(), (arr("3"),)),
    Sample(EmptyRef(TABLE), ()),
    Sample(Freeze(), (REF,)),
    Sample(FreeRef(), (REF,)),
]


def control() -> list[Sample]:
    """Return primitives with subjaxprs."""
    inner = chain(2)
    loop = nested()
    rule = program([arr("3")] * 4, lambda b, x, y, dx, dy: [x, dy])
    fwd = program([arr("3")] * 2, lambda b, x, y: [x, y])
    sums = program([arr("3")] * 2, lambda b, x, y: [b(p.Mul(), x, y)])
    scans, whiles, conds = (
        [eqn for eqn in loop.eqns if isinstance(eqn.prim, prim)] for prim in (Scan, While, Cond)
    )
    loops = [Sample(q.prim, tuple(a.type for a in q.ins)) for q in (*scans, *whiles, *conds)]
    call = (arr("3"), arr("3"))
    alone = program([arr("3")] * 2, lambda b, x, y: [y])
    tangent = program([arr("3")] * 3, lambda b, x, y, t: [t])
    both = DenseReverse(fwd, fwd, (), (True, False), "f")
    names = remat.SavePolicy(remat.Kept.THESE_NAMES, ("a", "b"))
    return [
        *loops,
        Sample(Jit(inner, "<lambda>"), call),
        Sample(Jit(inner, "a name of many words"), call),
        Sample(p.Composite(inner, "my.f", 'k = "a", l = [1 : i64]', 2), call),
        Sample(remat.Remat(inner), call),
        Sample(remat.Remat(inner, names, False, True), call),
        Sample(remat.Name("a"), (arr("3"),)),
        Sample(remat.Name("of two words"), (arr(""),)),
        Sample(remat.OptimizationBarrier(), call),
        Sample(custom.CustomJvp(inner, DenseForward(rule, 0, 1, "f"), 0, "f"), call),
        Sample(custom.CustomVjp(inner, both, 0, "f"), call),
        Sample(custom.CustomLinear(fwd, 1, (arr("3"),), "f"), call),
        Sample(LinearSolve(alone, fwd, None, None, 1), call),
        Sample(LinearSolve(alone, alone, alone, fwd, 1), call),
        Sample(Root(alone, fwd, tangent, 1), call),
        Sample(custom.CustomLinear(sums, 1, (arr("3"),), "f", sums, True), call),
    ]


AXIS = Axis("i", 2)
COLLECTIVES = [
    Sample(collective.Psum(AXIS), (arr("2,3", "int8"),)),
    Sample(collective.Psum(AXIS), (arr("", weak=True),)),
    Sample(collective.PsumInvariant(AXIS), (arr("3", "bfloat16"),)),
    Sample(collective.AllGatherInvariant(AXIS, 0), (arr("3"),)),
    Sample(collective.Pmax(AXIS), (arr("3"),)),
    Sample(collective.Pmin(AXIS), (arr("3", "bool"),)),
    Sample(collective.AllGather(AXIS, 1), (arr("3"),)),
    Sample(collective.ReduceScatter(AXIS, 1), (arr("3,2"),)),
    Sample(collective.AllToAll(AXIS, 0, 1), (arr("2,3", "bfloat16"),)),
    Sample(collective.PPermute(AXIS, ((0, 1),)), (arr("3"),)),
    Sample(collective.Pvary(AXIS), (arr("3", "complex64"),)),
    Sample(collective.AxisIndex(Axis("several words", 3)), ()),
]

MESH = (AXIS, Axis("j", 2))


def sharded() -> list[Sample]:
    """Return programs on the devices of a mesh, with and without collectives."""
    total = collective.Psum(AXIS)
    inner = program([arr("3"), arr("2")], lambda b, x, y: [b(total, x), b(p.Neg(), y)])
    over_i, over_both = (("i",),), (("j", "i"),)
    divided = shard.ShardMap(inner, MESH, (over_i, over_both), ((), over_both))
    alike = shard.ShardMap(inner, MESH, ((), over_both), ((), over_both), False)
    grid = (MESH, (3, 2, 1, 0, *range(4, 2 * AXIS.size)))
    placed = shard.ShardMap(inner, MESH, (over_i, over_both), ((), over_both), True, grid)
    constraint = shard.ShardingConstraint(((), ("j",)), grid, (0,))
    return [
        Sample(divided, (arr("6"), arr("8"))),
        Sample(alike, (arr("3"), arr("8"))),
        Sample(placed, (arr("6"), arr("8"))),
        Sample(constraint, (arr("3,2"),)),
    ]


@dataclass(frozen=True)
class Doubled(HostFunction):
    """A Python function that programs call."""

    label: str = "doubled"
    arity: int = 1

    def __call__(self, *args: Value) -> Sequence[Value]:
        return [2 * args[0]]


FAILURES = check.Failures.of([check.NanFailure("sin"), check.IndexFailure((2, 3))])

CALLBACKS = [
    Sample(check.Check(FAILURES), (arr("", "int32"), arr("3", "int32"))),
    Sample(host.DebugCallback(Doubled(), True), (arr("3"),)),
    Sample(host.PureCallback(Doubled(), (arr("3"),), "expand_dims"), (arr("3"),)),
    Sample(host.DceSink(), (arr("3"),)),
    Sample(host.IoCallback(Doubled("two words"), (arr(""),)), (arr(""),)),
]


@dataclass(frozen=True)
class BatchAll(custom.VmapRule):
    """A batching rule that returns a program with all results batched."""

    of: Jaxpr
    label: str = "batch_all"

    def __call__(self, size: int, batched: tuple[bool, ...], /) -> custom.BatchedProgram:
        inner = vmap.cached(self.of, batched, size, DEFAULT_RULES)
        return custom.BatchedProgram(inner.jaxpr, inner.out_batched)


ASKED = [
    Sample(custom.CustomVmap(chain(2), BatchAll(chain(2)), 0, "f"), (arr("3"), arr("3"))),
]


KEYS = [
    Sample(keys.RandomWrap("fry"), (arr("3,2", "uint32"),)),
    Sample(keys.RandomUnwrap(), (array_type((3,), key_dtype_of_tag("fry")),)),
    Sample(keys.RngBitGenerator(as_dtype("uint32"), (5,)), (arr("4", "uint32"),)),
]


SAMPLES: list[Sample] = [
    *elementwise(),
    *CONVERSIONS,
    *SHAPES,
    *REDUCTIONS,
    *CONVOLVED,
    *TRANSFORMED,
    *FACTORISED,
    *INDEXED,
    *REFERENCES,
    *control(),
    *COLLECTIVES,
    *sharded(),
    *CALLBACKS,
    *KEYS,
    *ASKED,
]


def run(sample: Sample, args: Sequence[Value]) -> Sequence[Value]:
    """Return the results on these arguments."""
    with np.errstate(all="ignore"):
        if isinstance(sample.prim, collective.Collective):
            alike = [args] * sample.prim.axis.size
            return sample.prim.evaluate_spmd(Devices((sample.prim.axis,)), alike)[-1]
        return sample.prim.evaluate(*args)


def values(sample: Sample, seed: int = 0) -> list[Value]:
    """Return random arguments of a sample; a reference is its buffer."""
    rng = np.random.default_rng(seed)
    return [value(type_, rng) for type_ in sample.ins]


def value(type_: Type, rng: np.random.Generator) -> Value:
    """Return a random value of a type."""
    inner = type_.inner if isinstance(type_, RefType) else type_
    x: Value = np.asarray(rng.normal(size=inner.shape)) * 3
    dtype: object = inner.dtype  # a dtype of keys is none of NumPy
    if isinstance(dtype, KeyDType):
        words = rng.integers(0, 2**32, (*inner.shape, *dtype.words), np.uint32)
        return records_of(words, dtype)
    kind = family(inner.dtype)
    if kind == "bool":
        x = x > 0
    elif kind in ("int", "uint"):
        x = np.abs(np.trunc(x)) % 5
    elif kind == "complex":
        x = x + 1j * rng.normal(size=inner.shape)
    return x.astype(inner.dtype)
