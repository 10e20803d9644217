"""Slips in passes of one's own: told by what they are."""

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


@pytest.mark.parametrize("step", [untyped(forgets), Pass("forgets", forgets)])
def test_a_pass_that_gives_nothing_lacks_a_return(step: Pass) -> None:
    with pytest.raises(TransformError, match="the pass forgets gives nothing") as caught:
        unwrap(step(SINE))
    assert caught.value.remedy == "is a `return` missing?"


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (None, "is a `return` missing?"),
        (Success(False), "`bool(...)` of it"),
        (0, "`bool(...)` of it"),
    ],
)
def test_a_condition_says_yes_or_no(given: Any, remedy: str) -> None:
    def fits(jaxpr: Any) -> Any:
        return given

    failed = when(fits, dce)(SINE)
    assert isinstance(failed, Failure)
    error = failed.failure()
    assert error.what == "the condition fits says neither yes nor no" and error.remedy == remedy


@pytest.mark.parametrize("given", [True, False, np.bool_(True)])
def test_booleans_of_numpy_are_booleans(given: Any) -> None:
    assert when(lambda jaxpr: given, dce)(SINE) == Success(SINE)


@pytest.mark.parametrize(
    ("laws", "remedy"),
    [
        (("SAME_BITS",), "`Guarantee.SAME_BITS`, which is no string"),
        ("same bits", "`Guarantee.SAME_BITS`, which is no string"),
        (("Guarantee.NEVER_LARGER",), "`Guarantee.NEVER_LARGER`, which is no string"),
        (["idempotnt"], "`Guarantee.IDEMPOTENT`, which is no string"),
        (Guarantee.SAME_BITS, "`(Guarantee.SAME_BITS,)`"),
        ((3,), "a law of your own is a test: run it on `self(jaxpr)`"),
    ],
)
def test_a_claim_by_its_name_is_told(laws: Any, remedy: str) -> None:
    with pytest.raises(BadArgument, match="claims what is no claim") as caught:
        untyped(forgets, laws=laws)
    assert caught.value.remedy == remedy
