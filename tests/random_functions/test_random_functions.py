"""Random functions: values and derivatives of every transformation, and finite differences.

``python -m tests.random_functions.run --count 10000`` checks more.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.random_functions.checks import Disagrees, Skipped, apart, check_seed, compare
from tests.random_functions.generate import random_function


def test_sources_depend_on_the_seed_only() -> None:
    assert random_function(3) == random_function(3)
    assert random_function(3) != random_function(4)


def test_a_difference_is_reported() -> None:
    with pytest.raises(Disagrees, match=r"grad: 1\.0 and 1\.1"):
        compare("grad", 1.0, 1.1, 1e-3)
    with pytest.raises(Disagrees):
        compare("grad", float("nan"), 1.0, 1e-3)


def test_ties_are_broken() -> None:
    assert len({*map(float, apart([0.0, 0.0, 0.0]))}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 42, 7))
def test_random_functions_agree_with_finite_differences(first: int) -> None:
    checked = 0
    for seed in range(first, first + 7):
        with suppress(Skipped):
            checked += check_seed(seed, compiled=seed % 7 == 0) > 0
    assert checked >= 4
