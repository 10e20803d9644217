from __future__ import annotations

import pickle

import pytest

from effax.ir.errors import (
    BadArgument,
    BadAxis,
    BadFormat,
    BadIndex,
    BadSlice,
    EffaxError,
    IllTyped,
    LeakedTracer,
    MissingRule,
    NotApplicable,
    NotFitting,
    NotSupported,
    ParseError,
    RefError,
    TransformError,
)


def test_a_message_has_all_data_of_the_error() -> None:
    error = IllTyped("it is wrong", "this", "that", "do so")
    error.at("a:f32[] = neg b", "f.py:3 (f)")
    assert str(error) == (
        "it is wrong\n"
        "  expected: this\n"
        "  found:    that\n"
        "  equation: a:f32[] = neg b\n"
        "  at:       f.py:3 (f)\n"
        "  remedy:   do so"
    )
    assert str(IllTyped("it is wrong")) == "it is wrong"


def test_where_it_happened_first_is_kept() -> None:
    error = IllTyped("it is wrong").at("inner", None).at("outer", "f.py:3 (f)")
    assert (error.equation, error.source) == ("inner", "f.py:3 (f)")


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (IllTyped, TypeError),
        (IllTyped, ValueError),
        (RefError, IllTyped),
        (BadIndex, IndexError),
        (BadArgument, TypeError),
        (BadArgument, ValueError),
        (BadAxis, IndexError),
        (BadFormat, KeyError),
        (BadSlice, IndexError),
        (MissingRule, AttributeError),
        (NotFitting, OverflowError),
        (NotSupported, NotImplementedError),
        (ParseError, ValueError),
        (NotApplicable, TransformError),
        (NotApplicable, NotImplementedError),
        (TransformError, ValueError),
        (LeakedTracer, TypeError),
    ],
)
def test_the_error_hierarchy(kind: type[EffaxError], base: type[Exception]) -> None:
    assert issubclass(kind, EffaxError)
    assert issubclass(kind, base)


def test_errors_are_pickled_whole() -> None:
    error = ParseError("no", "a", "b", line=3, column=7, excerpt="  x\n  ^")
    back = pickle.loads(pickle.dumps(error))
    assert str(back) == str(error)
    assert (back.line, back.column) == (3, 7)
    ref_error = RefError("no")
    ref_error.rule = "alias"
    assert pickle.loads(pickle.dumps(ref_error)).rule == "alias"
