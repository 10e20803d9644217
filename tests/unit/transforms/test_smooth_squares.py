"""Squares of magnitudes are prepared for differentiation, and nothing else is changed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from effax.ir.eval.numpy import evaluate
from effax.ir.text.parser import parse
from effax.transforms.jvp import jvp
from effax.transforms.reverse.engine import reverse
from effax.transforms.smooth_squares import DEPTH, smooth_squares

BEFORE = "{ lambda ; a:f32[]. let b:f32[] = magnitude a; c:f32[] = square b in (c,) }"
AFTER = """{ lambda ; a:f32[]. let
    b:f32[] = magnitude a
    c:f32[] = square b
    d:f32[] = straight_through c a
  in (d,) }"""

UNCHANGED = (
    "{ lambda ; a:c64[]. let b:c64[] = sqrt a; c:c64[] = square b in (c,) }",
    "{ lambda ; a:f32[]. let b:f32[] = sqrt a; c:f32[] = mul b a in (c,) }",
    """{ lambda ; a:f32[] b:f32[]. let
    c:f32[] = magnitude a
    d:f32[] = magnitude b
    e:f32[] = mul c d
  in (e,) }""",
    "{ lambda ; a:f32[]. let b:f32[] = abs a; c:f32[] = square b in (c,) }",
    "{ lambda ; a:f32[]. let b:f32[] = magnitude a; c:f32[] = integer_pow[y=3] b in (c,) }",
    "{ lambda ; a:f32[] b:f32[]. let c:f32[] = magnitude a; d:f32[] = mul c b in (d,) }",
    """{ lambda ; a:f32[]. let
    b:f32[3] = iota[dimension=0 dtype=float32 shape=(3,)]
    c:f32[3] = square b
    d:f32[] = magnitude a
  in (c, d) }""",
    "{ lambda ; a:f32[]. let b:f32[] = magnitude a; c:f32[] = cos b; d:f32[] = square c in (d,) }",
)


def test_the_square_gets_the_derivative_of_the_sum() -> None:
    assert str(smooth_squares(parse(BEFORE))) == AFTER


@pytest.mark.parametrize("text", UNCHANGED)
def test_other_programs_are_returned_as_they_are(text: str) -> None:
    jaxpr = parse(text)
    assert smooth_squares(jaxpr) == jaxpr


def test_the_square_of_a_square_root_is_nan_below_0() -> None:
    text = "{ lambda ; a:f32[]. let b:f32[] = sqrt a; c:f32[] = square b in (c,) }"
    for made in (jvp(parse(text), [True]), reverse(parse(text), [True])):
        slopes = [
            float(evaluate(made.unwrap().jaxpr, [np.asarray(v, np.float32) for v in (x, 1)])[1])
            for x in (-1.0, 0.0, 4.0)
        ]
        np.testing.assert_array_equal(slopes, [np.nan, 1.0, 1.0])


def test_equal_equations_are_one_root() -> None:
    two = BEFORE.replace("square b", "magnitude a; d:f32[] = mul b c").replace("(c,)", "(d,)")
    assert "straight_through d a" in str(smooth_squares(parse(two)))


def test_both_modes_differentiate_the_sum() -> None:
    """d(√a)² = da, at 0 too."""
    for made, args in (
        (jvp(parse(BEFORE), [True]).unwrap().jaxpr, (0.0, 3.0)),
        (reverse(parse(BEFORE), [True]).unwrap().jaxpr, (0.0, 3.0)),
    ):
        found = evaluate(made, [np.asarray(x, np.float32) for x in args])
        assert [float(x) for x in found] == [0.0, 3.0]


def test_long_chains_are_not_followed() -> None:
    lines = ["b:f32[] = magnitude a"]
    names = "bcdefghijklmnop"
    lines += [f"{y}:f32[] = mul {x} {x}" for x, y in pairwise(names)]
    jaxpr = parse("{ lambda ; a:f32[]. let " + "; ".join(lines) + f" in ({names[-1]},) }}")
    made = smooth_squares(jaxpr)
    assert len(made.eqns) <= len(jaxpr.eqns) * (DEPTH + 2)
