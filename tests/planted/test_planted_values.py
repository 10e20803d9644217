"""Faults planted in values at their limits: the sweeps over special values notice each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import effax as jax
from effax.api import jacobian, static
from effax.arrays import conversion
from effax.ir import syntax
from effax.ir.errors import EffaxError
from effax.ir.prims import sort
from effax.ir.state import clear_caches
from effax.lax import elementwise
from effax.lowering import ops
from effax.lowering.rules.common import complex_functions
from effax.numpy import arithmetic, index, lift, positions, reduce, special, statistics
from effax.random import distributions
from tests.unit import test_nn as nn
from tests.unit import test_random as samples
from tests.unit.api import test_constants as constants
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
        "wrapped",
        unchanged,
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
