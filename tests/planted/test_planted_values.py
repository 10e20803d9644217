"""Faults planted in values at their limits: the sweeps over special values notice each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import effax as jax
from effax.api import jacobian, static
from effax.arrays import conversion
from effax.ir import prims as p
from effax.ir import syntax
from effax.ir.errors import EffaxError
from effax.ir.indexing import Pick
from effax.ir.prims import sort
from effax.ir.state import clear_caches
from effax.lax import elementwise
from effax.lowering import ops
from effax.lowering.rules.common import complex_functions
from effax.numpy import (
    arithmetic,
    factors,
    index,
    lift,
    positions,
    reduce,
    special,
    spectral,
    statistics,
)
from effax.random import distributions
from effax.transforms import confine_nan as confinement
from effax.transforms import smooth_squares as squares
from effax.transforms.rules import arith as rules_of_arithmetic
from effax.transforms.rules import math as rules_of_math
from effax.transforms.rules.common import pointwise
from tests.unit import test_nn as nn
from tests.unit import test_random as samples
from tests.unit.api import test_constants as constants
from tests.unit.derivatives import test_infinite_slopes as slopes
from tests.unit.derivatives import test_magnitudes as magnitudes
from tests.unit.derivatives import test_matrices as matrices
from tests.unit.numpy import special_values as sv
from tests.unit.numpy import test_values as values
from tests.unit.transforms import test_confine_nan as confined


class Fault(NamedTuple):
    """A wrong definition in place of a right one, and the check that notices it."""

    owner: object
    name: str
    wrong: object
    check: Callable[[], object]


def unchanged(x: Any, *_: object) -> Any:
    return x


def compiled_complex(name: str) -> None:
    args = (sv.special("complex64"),)
    eager = sv.accepted([name], args)[name]
    lines = sv.differences(sv.compiled([name], args)[name], eager, args)
    assert not lines, lines


def float_in_place_of_narrow(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def in_doubles(check: Callable[[], object]) -> None:
    with jax.enable_x64():
        check()


def powers_of_two() -> None:
    x = np.arange(-126, 128).astype(np.float32)
    np.testing.assert_array_equal(jax.numpy.exp2(x), np.ldexp(np.float32(1), x.astype(int)))


def eager_is_numpys(name: str) -> None:
    args = (sv.special("float32"),)
    found = sv.accepted([name], args)[name]
    wanted = sv.expected(name, args, [x.dtype for x in found])
    assert wanted is not None
    lines = sv.differences(found, wanted, args, False)
    assert not lines, lines


def inverse_of_the_range(a: Any, da: Any) -> list[Any]:
    b = jax.numpy.linalg.pinv(a)
    return [b, -b @ da @ b]


def strong_zero_product(b: Any, x: Any, y: Any) -> Any:
    return b(p.StrongZeroMul(), x, y)


FAULTS: Final = {
    "a nan literal without its sign": Fault(
        syntax,
        "signed_nan",
        lambda x: (x, "nan"),
        lambda: constants.test_a_value_does_not_depend_on_earlier_ones("jit"),
    ),
    "static arguments compared by ==": Fault(
        static,
        "_exact",
        unchanged,
        lambda: constants.test_a_value_does_not_depend_on_earlier_ones("static tuple"),
    ),
    "sines by exponentials": Fault(
        complex_functions,
        "is_complex",
        lambda dtype: False,
        lambda: compiled_complex("sinh"),
    ),
    "branches without the sign of zero": Fault(
        complex_functions,
        "_with_sign",
        lambda w, x, sign: x,
        lambda: compiled_complex("arcsin"),
    ),
    "a magnitude by XLA": Fault(
        complex_functions,
        "parts",
        lambda w, x: (ops.real(w, x),) * 2,
        values.test_the_magnitude_of_a_number_with_an_infinite_part_is_infinite,
    ),
    "quotients by zero by XLA": Fault(
        arithmetic,
        "_by_zero",
        unchanged,
        lambda: values.test_division_of_integers_is_numpys_for_every_divisor("divmod", "int8"),
    ),
    "multiples rounded down": Fault(
        arithmetic,
        "_rounded_integers",
        lambda x, unit: x // unit * unit,
        lambda: values.test_integers_are_rounded_to_tens("int32", -1),
    ),
    "nan of narrow floats sorted by NumPy": Fault(
        sort,
        "comparable",
        float_in_place_of_narrow,
        lambda: values.test_nan_of_either_sign_sorts_last("float8_e5m2"),
    ),
    "running sums in the operand's dtype": Fault(
        reduce,
        "_accumulator",
        unchanged,
        lambda: values.test_cumulative_results_widen_as_sums_do("cumsum", "int8"),
    ),
    "exponents in their own dtype": Fault(
        special,
        "_bounded",
        unchanged,
        values.test_ldexp_takes_any_integers,
    ),
    "a divisor that is not positive": Fault(
        statistics,
        "_divisor",
        lambda count, fewer: count - fewer,
        lambda: values.test_no_degree_of_freedom_is_nan(False),
    ),
    "a line through infinity": Fault(
        lift,
        "isinf",
        lambda x: jax.numpy.zeros(x.shape, bool),
        lambda: values.test_interpolation_beside_an_infinity([0, 1, np.inf], [0, 1, 2]),
    ),
    "positions that are not wrapped": Fault(
        index,
        "wrapping_pick",
        lambda at: Pick(None),
        values.test_negative_positions_of_take_along_axis_count_from_the_end,
    ),
    "narrow positions": Fault(
        positions,
        "integer_positions",
        unchanged,
        lambda: values.test_positions_of_narrow_dtypes_do_not_overflow(
            lambda n, i: n.unravel_index(i, (2, 500)), "int8", [100, 127, 3]
        ),
    ),
    "integers of 64 bits that wrap": Fault(
        conversion,
        "_check_kept",
        unchanged,
        lambda: values.test_a_64_bit_integer_that_does_not_fit_is_an_error(values.WIDE[0]),
    ),
    "samples of a tail by the error function": Fault(
        distributions,
        "TAIL",
        99.0,
        lambda: samples.test_samples_of_a_far_tail_have_its_distribution(10.0, 11.0),
    ),
    "a slope that is not bounded": Fault(
        elementwise,
        "clamp",
        lambda low, x, high: x,
        lambda: nn.test_values_and_slopes_at_large_numbers_are_those_of_double_precision(
            "gelu", "float16"
        ),
    ),
    "an inverse of the range only": Fault(
        spectral,
        "_pseudo_inverse_jvp",
        inverse_of_the_range,
        lambda: in_doubles(matrices.test_pinv_of_matrices_of_one_rank),
    ),
    "a determinant by quotients": Fault(
        spectral,
        "_products_of_others",
        lambda s: jax.numpy.prod(s, -1, keepdims=True) / s,
        lambda: in_doubles(lambda: matrices.test_det_of_every_rank(0, "float64")),
    ),
    "a nuclear norm by singular vectors": Fault(
        factors,
        "nuclear_norm",
        spectral._sum_of_values,
        lambda: in_doubles(
            lambda: matrices.test_the_nuclear_norm_of_equal_singular_values((3, 3), "float64")
        ),
    ),
    "a power of a half by NumPy": Fault(
        p.Pow,
        "ufunc",
        staticmethod(np.power),
        lambda: values.test_the_power_of_a_half_is_not_a_square_root("float32"),
    ),
    "a power of two by exp2": Fault(p.Exp2, "ufunc", staticmethod(np.exp2), powers_of_two),
    "a sine of π·x": Fault(
        special,
        "_sin_pi",
        lambda x: jax.numpy.sin(x * float(np.pi)),
        lambda: eager_is_numpys("sinc"),
    ),
    "a product with zero": Fault(
        rules_of_math,
        "slope_product",
        pointwise.mul,
        lambda: slopes.test_a_function_that_is_constant_near_a_point_has_the_derivative_0(
            "arccosh of maximum"
        ),
    ),
    "a strong zero for every slope": Fault(
        rules_of_math,
        "mul",
        pointwise.slope_product,
        lambda: slopes.test_derivatives_at_infinite_slopes_are_right_or_nan("cbrt(x ** 3)"),
    ),
    "a strong zero in reverse mode": Fault(
        rules_of_arithmetic,
        "mul",
        strong_zero_product,
        slopes.test_the_slope_and_cotangents_are_multiplied_as_usual,
    ),
    "squares of roots by the chain rule": Fault(
        squares,
        "_may_have_squares",
        lambda jaxpr: False,
        lambda: magnitudes.test_the_second_derivative_of_a_square_at_0("of a square root"),
    ),
    "equal equations that are two roots": Fault(
        squares._Squares,
        "_same",
        lambda self, x, y: x == y,
        lambda: magnitudes.test_the_second_derivative_of_a_square_at_0("a product of two calls"),
    ),
    "regions that are not confined": Fault(
        confinement,
        "_confine_regions",
        lambda *_: False,
        lambda: confined.test_a_nan_element_stays_in_its_row_and_column_through_regions("scan"),
    ),
    "zero times nan": Fault(
        jacobian,
        "confine_nan",
        unchanged,
        lambda: confined.test_a_nan_element_stays_in_its_row_and_column("chain", jax.jacrev),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[name]
    clear_caches()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(fault.owner, fault.name, fault.wrong)
            with pytest.raises((AssertionError, EffaxError, pytest.fail.Exception)):
                fault.check()
    finally:
        clear_caches()
    fault.check()
