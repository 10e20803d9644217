from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

from effax.ir.dtypes import (
    FLOAT0,
    DType,
    as_dtype,
    canonical,
    complex_dtype,
    dtype_of_short_name,
    dtype_words,
    family,
    int_bounds,
    is_array_dtype,
    promote,
    real_dtype,
    short_name,
)

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["bfloat16", "float16", "float32", "float64"]
STRONG = ["bool", *INTEGERS, *FLOATS, "complex64", "complex128"]
NARROW = ["int2", "int4", "uint2", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]
EVERY: list[DType] = [as_dtype(name) for name in (*STRONG, *NARROW)] + [FLOAT0]
OPERANDS: list[tuple[DType, bool]] = [
    *((as_dtype(name), False) for name in STRONG),
    *((as_dtype(name), True) for name in ("int32", "int64", "float32", "float64", "complex64")),
]


def shown(operand: object) -> str:
    assert isinstance(operand, tuple)
    dtype, weak = operand
    return f"{'~' if weak else ''}{short_name(dtype)}"


@pytest.mark.parametrize("dtype", EVERY, ids=short_name)
def test_short_names_are_read_back(dtype: DType) -> None:
    assert dtype_of_short_name(short_name(dtype)) == dtype
    assert short_name(dtype) in dtype_words()
    assert is_array_dtype(dtype)


def test_short_names_are_those_of_jax() -> None:
    names = {short_name(as_dtype(name)) for name in STRONG}
    integers = {f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}
    assert names == integers | {"bool", "bf16", "f16", "f32", "f64", "c64", "c128"}


def test_a_word_that_is_no_dtype() -> None:
    with pytest.raises(KeyError):
        dtype_of_short_name("f33")
    with pytest.raises(TypeError):
        as_dtype("f33")


def test_everything_that_numpy_takes_for_a_dtype() -> None:
    assert as_dtype("float32") == as_dtype(np.float32) == as_dtype(np.dtype("f4")) == np.float32
    assert as_dtype(ml_dtypes.bfloat16) == as_dtype("bfloat16") == np.dtype(ml_dtypes.bfloat16)
    assert as_dtype(bool) == np.bool_


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("bool", "bool"),
        ("int8 int32 int64 int4", "int"),
        ("uint8 uint64 uint4", "uint"),
        ("bfloat16 float16 float64 float8_e4m3fn", "float"),
        ("complex64 complex128", "complex"),
    ],
)
def test_families(names: str, expected: str) -> None:
    assert {family(as_dtype(name)) for name in names.split()} == {expected}
    assert family(FLOAT0) == "void"


@pytest.mark.parametrize(
    ("name", "bounds"),
    [("int8", (-128, 127)), ("uint16", (0, 65535)), ("int4", (-8, 7)), ("uint2", (0, 3))],
)
def test_bounds_of_integers(name: str, bounds: tuple[int, int]) -> None:
    assert int_bounds(as_dtype(name)) == bounds


def test_narrow_and_paired_dtypes() -> None:
    assert canonical(as_dtype("int64")) == np.int32
    assert canonical(as_dtype("float16")) == np.float16
    assert real_dtype(as_dtype("complex128")) == np.float64
    assert real_dtype(as_dtype("int8")) == np.int8
    assert complex_dtype(as_dtype("float64")) == np.complex128
    assert complex_dtype(as_dtype("float32")) == np.complex64


def test_promotion_is_commutative_idempotent_and_associative_among_strong_dtypes() -> None:
    strong = [(as_dtype(name), False) for name in STRONG]
    for a, b in product(strong, repeat=2):
        assert promote([a, b], wide=True) == promote([b, a], wide=True)
        assert promote([a, a], wide=True) == a
    for a, b, c in product(strong, repeat=3):
        left = promote([promote([a, b], wide=True), c], wide=True)
        assert (
            left == promote([a, promote([b, c], wide=True)], wide=True) == promote([a, b, c], True)
        )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("~i32", "i8", "i8"),
        ("~f32", "i32", "~f32"),
        ("~f32", "bf16", "bf16"),
        ("~f32", "f16", "f16"),
        ("~c64", "f32", "c64"),
        ("~i32", "bool", "~i32"),
        ("~i32", "~f32", "~f32"),
        ("i32", "u32", "i32"),
        ("u64", "i8", "~f32"),
        ("i64", "f16", "f16"),
        ("bf16", "f16", "f32"),
        ("f64", "f32", "f32"),
    ],
)
def test_promotion_while_64_bits_are_disabled(first: str, second: str, expected: str) -> None:
    def read(text: str) -> tuple[DType, bool]:
        return dtype_of_short_name(text.lstrip("~")), text.startswith("~")

    assert shown(promote([read(first), read(second)])) == expected
    assert shown(promote([read(second), read(first)])) == expected


def test_narrow_floats_promote_only_with_themselves_and_weak_scalars() -> None:
    narrow = (as_dtype("float8_e4m3fn"), False)
    assert promote([narrow, narrow]) == narrow
    assert promote([narrow, (as_dtype("float32"), True)]) == narrow
    assert promote([narrow, (as_dtype("int32"), True)]) == narrow
    with pytest.raises(TypeError, match="convert it explicitly"):
        promote([narrow, (as_dtype("float32"), False)])


PAIRS = list(product(OPERANDS, repeat=2))


@pytest.mark.jax
@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
def test_promotion_is_that_of_jax(wide: bool) -> None:
    import jax

    pairs = [pair for pair in PAIRS if wide or all(canonical(d) == d for d, _ in pair)]
    differ = []
    with jax.enable_x64(wide):
        for pair in pairs:
            structs = [jax.ShapeDtypeStruct((), d, weak_type=weak) for d, weak in pair]
            met = jax.eval_shape(jax.numpy.add, *structs)
            if promote(pair, wide) != (met.dtype, met.weak_type):
                differ.append((*map(shown, pair), shown(promote(pair, wide)), met))
    assert not differ


@pytest.mark.jax
def test_promotion_of_strong_dtypes_is_promote_types() -> None:
    import jax.numpy as jnp

    for first, second in product(STRONG, repeat=2):
        met, _ = promote([(as_dtype(first), False), (as_dtype(second), False)])
        assert met == canonical(as_dtype(str(jnp.promote_types(first, second))))
