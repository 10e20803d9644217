"""Comparisons with a tolerance, and only where results are finite."""

from __future__ import annotations

import numpy as np
import pytest

from effax.ir import evaluate, parse
from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr
from effax.passes import Guarantee, as_pass
from effax.testing import LawBroken, Tolerances, check_close, check_pass
from effax.testing.laws import pass_keeps_its_guarantees
from effax.testing.laws.instrumented import defined, evaluate_perturbed, evaluate_wide


def f32(x: float) -> np.ndarray:
    """Return a scalar in single precision."""
    return np.asarray(x, np.float32)


WIDE = parse("""{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[] = dot_general[dimension_numbers=(((0,), (0,)), ((), ()))] a b
    d:f32[] = tanh c
  in (d,) }""")
HALF = parse("""{ lambda ; a:f32[4] b:f32[4]. let
    c:bf16[4] = convert_element_type[new_dtype=bfloat16 weak_type=False] a
    d:bf16[4] = convert_element_type[new_dtype=bfloat16 weak_type=False] b
    e:bf16[] = dot_general[dimension_numbers=(((0,), (0,)), ((), ()))] c d
    f:f32[] = convert_element_type[new_dtype=float32 weak_type=False] e
    g:f32[] = tanh f
  in (g,) }""")
X = np.array([0.3, -0.7, 1.1, 0.2], np.float32)
Y = np.array([1.3, 0.4, -0.6, 0.9], np.float32)


def test_an_error_within_the_tolerance_is_accepted() -> None:
    check_close(WIDE, HALF, [X, Y], rtol=1e-2)
    check_close(WIDE, HALF, [X, Y], rtol={"float32": 1e-2})
    check_close(WIDE, HALF, [X, Y], rtol=0.0, atol=1e-2)
    with pytest.raises(AssertionError, match=r"result 0 differs(.|\n)*exact(.|\n)*is allowed"):
        check_close(WIDE, HALF, [X, Y], rtol=1e-5)


def test_an_ill_conditioned_program_does_not_accuse() -> None:
    f = parse("{ lambda ; a:f32[] b:f32[]. let c:f32[] = sub a b in (c,) }")
    g = parse("""{ lambda ; a:f32[] b:f32[]. let
        c:bf16[] = convert_element_type[new_dtype=bfloat16 weak_type=False] a
        d:bf16[] = convert_element_type[new_dtype=bfloat16 weak_type=False] b
        e:bf16[] = sub c d
        f:f32[] = convert_element_type[new_dtype=float32 weak_type=False] e
      in (f,) }""")
    near = [f32(1.0), f32(1.002)]
    check_close(f, g, near, rtol=1e-2)
    with pytest.raises(AssertionError, match="result 0 differs"):
        check_close(f, g, [f32(1.0), f32(-2.003)], rtol=1e-4)


def test_integers_are_equal_unless_rounding_decides_them() -> None:
    f = parse("{ lambda ; a:f32[] b:f32[]. let c:bool[] = lt a b in (c,) }")
    g = parse("{ lambda ; a:f32[] b:f32[]. let c:bool[] = ge a b in (c,) }")
    with pytest.raises(AssertionError, match="result 0 differs"):
        check_close(f, g, [f32(1), f32(2)], rtol=1e-2)
    check_close(f, g, [f32(1), f32(1.0001)], rtol=1e-2)


def test_where_finite() -> None:
    f = parse("{ lambda ; a:f32[]. let b:f32[] = exp a; c:f32[] = log b in (c,) }")
    g = parse("{ lambda ; a:f32[]. let b:f32[] = mul a 1.0:f32[] in (b,) }")
    big = [f32(np.inf)], [f32(-np.inf)], [f32(np.nan)], [f32(3)]
    for inputs in big:
        check_close(f, g, inputs, where_finite=True)
    quotient = parse("{ lambda ; a:f32[]. let b:f32[] = div a a in (b,) }")
    one = parse("{ lambda ; a:f32[]. let b:f32[] = integer_pow[y=0] a in (b,) }")
    check_close(quotient, one, [f32(0)], where_finite=True)
    with pytest.raises(AssertionError, match="nan"):
        check_close(quotient, one, [f32(0)])
    # A finite result that depends on an undefined value is not compared.
    hidden = parse("""{ lambda ; a:f32[] b:f32[]. let
        c:f32[] = div a a; d:bool[] = lt c 2.0:f32[]; e:bool[] = lt b 2.0:f32[] in (d, e) }""")
    assert defined(hidden, [f32(0), f32(0)]).outs == (False, True)


def test_infinite_literals_are_defined() -> None:
    masked = parse("""{ lambda ; a:bool[3] b:f32[3]. let
        c:f32[3] = broadcast_in_dim[broadcast_dimensions=() shape=(3,)] -inf:f32[]
        d:f32[3] = select_n a c b
        e:f32[3] = exp d
      in (e,) }""")
    mask = np.array([True, False, True])
    assert defined(masked, [mask, X[:3]]).outs == (True,)


def test_references_are_compared() -> None:
    f = parse("{ lambda ; a:Ref{f32[]} b:f32[]. let a[...] += b in () }")
    g = parse("{ lambda ; a:Ref{f32[]} b:f32[]. let c:f32[], a[...] <- a[...], b in () }")
    check_close(f, f, [f32(1), f32(2)], rtol=1e-3)
    with pytest.raises(AssertionError, match="final content of reference 0 differs"):
        check_close(f, g, [f32(1), f32(2)], rtol=1e-3)


def test_double_precision_and_perturbations() -> None:
    exact = evaluate_wide(WIDE, [X, Y]).outs[0]
    own = evaluate(WIDE, [X, Y])[0]
    assert exact.dtype == np.float64 and 0 < abs(exact - own) < 1e-6
    near = [evaluate_perturbed(WIDE, [X, Y], seed, lambda _: 1e-2).outs[0] for seed in range(2)]
    assert near[0] != near[1] and max(abs(near - exact)) < 3e-2
    moves = parse("{ lambda ; a:f32[4]. let b:f32[4] = rev[dimensions=(0,)] a in (b, a) }")
    outs = evaluate_perturbed(moves, [X], 0, lambda _: 1e-2).outs
    assert np.array_equal(outs[0], outs[1][::-1]) and not np.array_equal(outs[1], X)


def test_tolerances_that_are_none_are_refused() -> None:
    for bad in (-1.0, float("nan"), {"float32": -1.0}, "much"):
        with pytest.raises(BadArgument, match="`rtol` is no tolerance"):
            Tolerances(rtol=bad)  # type: ignore[arg-type]  # the test is about this
    with pytest.raises(BadArgument, match="names a dtype without rounding"):
        Tolerances(atol={"int32": 1.0})
    with pytest.raises(BadArgument, match="do not apply"):
        check_pass(exact, rtol=1e-2, guarantees=[Guarantee.SAME_BITS])


@as_pass
def exact(jaxpr: Jaxpr) -> Jaxpr:
    return HALF if jaxpr == WIDE else jaxpr


def test_the_law_of_guarantees_takes_tolerances() -> None:
    pass_keeps_its_guarantees(WIDE, 0, exact, (Guarantee.SAME_MEANING,), rtol=2e-2)
    with pytest.raises(LawBroken, match="rtol=1e-06"):
        pass_keeps_its_guarantees(WIDE, 0, exact, (Guarantee.SAME_MEANING,), rtol=1e-6)
