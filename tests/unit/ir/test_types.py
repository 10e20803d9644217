from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from effax.ir.dtypes import FLOAT0
from effax.ir.errors import IllTyped
from effax.ir.types import (
    ArrayType,
    RefKind,
    Type,
    array_type,
    is_inexact,
    ref_type,
    tangent_type,
    type_of_value,
)

F32 = array_type((2, 3), "float32")
WEAK = array_type((), "float32", weak=True)
TYPES: list[Type] = [
    F32,
    WEAK,
    array_type((0,), "int8"),
    array_type((1, 2, 3), ml_dtypes.bfloat16),
    array_type((), "bool"),
    array_type((4,), FLOAT0),
    ref_type(F32),
    ref_type(array_type((), "complex64")),
]


def test_equal_types_are_one_object() -> None:
    assert array_type((2, 3), np.float32) is F32
    assert array_type(list(np.array([2, 3])), np.dtype("float32")) is F32
    assert ref_type(F32) is ref_type(array_type((2, 3), "f4"), RefKind.ARRAY)


def test_foreign_byte_order_is_taken_as_native() -> None:
    assert array_type((2, 3), ">f4") is F32


def test_a_reference_has_the_attributes_of_its_contents() -> None:
    r, x = ref_type(F32), F32
    assert (r.shape, r.dtype, r.ndim, r.size, r.weak) == (x.shape, x.dtype, 2, 6, False)


def test_types_that_differ_are_different() -> None:
    assert len({id(t) for t in TYPES}) == len(TYPES)
    assert WEAK is not array_type((), "float32")


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_copies_and_pickles_are_the_same_object(type_: Type) -> None:
    assert pickle.loads(pickle.dumps(type_)) is type_
    assert copy.deepcopy(type_) is type_
    assert copy.copy(type_) is type_


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_types_are_immutable(type_: Type) -> None:
    for name in ("shape", "dtype", "inner", "color"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(type_, name, ())
        with pytest.raises(AttributeError, match="immutable"):
            delattr(type_, name)


def test_a_type_prints_as_in_jax_and_unlike_any_other() -> None:
    assert [str(t) for t in TYPES] == [
        "f32[2,3]",
        "~f32[]",
        "i8[0]",
        "bf16[1,2,3]",
        "bool[]",
        "float0[4]",
        "Ref{f32[2,3]}",
        "Ref{c64[]}",
    ]
    assert repr(F32) == str(F32)


def test_sizes_are_plain_integers() -> None:
    made = array_type(tuple(np.array([7, 1])), "int16")
    assert [type(n) for n in made.shape] == [int, int]
    assert made.shape == (7, 1)


@pytest.mark.parametrize("shape", [(-1,), (2.0, 3.5), ("3",), (None,)])
def test_bad_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(IllTyped, match="shape"):
        array_type(shape, "float32")


@pytest.mark.parametrize("dtype", ["U3", "O", "datetime64[s]", np.longdouble, [("a", "i4")]])
def test_dtypes_that_arrays_cannot_have_are_refused(dtype: object) -> None:
    with pytest.raises(IllTyped, match="dtype"):
        array_type((), dtype)


def test_none_is_no_dtype() -> None:
    with pytest.raises(TypeError, match="None"):
        array_type((), None)


def test_a_reference_is_never_weak() -> None:
    assert ref_type(WEAK) is ref_type(WEAK.strong())
    assert not ref_type(WEAK).inner.weak


def test_update_and_measures() -> None:
    assert F32.update(shape=(6,)) is array_type((6,), "float32")
    assert F32.update(dtype=np.dtype("int8")).update(weak=True) is array_type((2, 3), "i1", True)
    assert (F32.ndim, F32.size, array_type((0, 5), "f4").size, WEAK.size) == (2, 6, 0, 1)
    assert (ref_type(F32).shape, ref_type(F32).dtype) == (F32.shape, F32.dtype)


def test_types_of_values_and_tangents() -> None:
    assert type_of_value(np.zeros((2, 3), np.float32)) is F32
    assert type_of_value(np.float32(1)) is array_type((), "float32")
    assert tangent_type(WEAK) is WEAK.strong()
    assert tangent_type(ref_type(F32)) is ref_type(F32)


@pytest.mark.parametrize(
    ("dtype", "expected"), [("float16", True), ("complex64", True), ("int32", False), ("?", False)]
)
def test_only_inexact_values_have_tangents(dtype: str, expected: bool) -> None:
    type_: ArrayType = array_type((), dtype)
    assert is_inexact(type_) is is_inexact(ref_type(type_)) is expected
