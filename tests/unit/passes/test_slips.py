"""Errors for common mistakes in user-defined passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from returns.result import Failure, Success

from effax.ir import parse
from effax.ir.errors import BadArgument, TransformError
from effax.passes import Guarantee, Pass, as_pass, dce, unwrap, when

SINE = parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
untyped: Any = as_pass


def forgets(jaxpr: Any) -> Any:
    unwrap(dce(jaxpr))


@pytest.mark.parametrize("pass_", [untyped(forgets), Pass("forgets", forgets)])
def test_a_pass_that_returns_none(pass_: Pass) -> None:
    with pytest.raises(TransformError, match="the pass forgets returns None") as caught:
        unwrap(pass_(SINE))
    assert caught.value.remedy == "is a `return` missing?"


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (None, "is a `return` missing?"),
        (Success(False), "convert it: `bool(...)`"),
        (0, "convert it: `bool(...)`"),
    ],
)
def test_a_condition_returns_a_boolean(given: Any, remedy: str) -> None:
    def fits(jaxpr: Any) -> Any:
        return given

    failed = when(fits, dce)(SINE)
    assert isinstance(failed, Failure)
    error = failed.failure()
    assert error.what == "the condition fits does not return a boolean" and error.remedy == remedy


@pytest.mark.parametrize("given", [True, False, np.bool_(True)])
def test_a_condition_may_return_a_numpy_boolean(given: Any) -> None:
    assert when(lambda jaxpr: given, dce)(SINE) == Success(SINE)


@pytest.mark.parametrize(
    ("laws", "remedy"),
    [
        (("SAME_BITS",), "`Guarantee.SAME_BITS`, not a string"),
        ("same bits", "`Guarantee.SAME_BITS`, not a string"),
        (("Guarantee.NEVER_LARGER",), "`Guarantee.NEVER_LARGER`, not a string"),
        (["idempotnt"], "`Guarantee.IDEMPOTENT`, not a string"),
        (Guarantee.SAME_BITS, "`(Guarantee.SAME_BITS,)`"),
        ((3,), "write a user-defined law as a test, of `self(jaxpr)`"),
    ],
)
def test_invalid_guarantees_are_errors(laws: Any, remedy: str) -> None:
    with pytest.raises(BadArgument, match="guarantees of forgets are not valid") as caught:
        untyped(forgets, laws=laws)
    assert caught.value.remedy == remedy
