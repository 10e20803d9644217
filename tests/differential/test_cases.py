"""Every case of `cases/` returns the results of JAX."""

from __future__ import annotations

import pytest

from tests.differential.cases import (
    axes,
    batching,
    batching_rules,
    callbacks,
    control,
    custom,
    nested,
    programs,
    randomness,
    references,
    solvers,
    values,
)
from tests.differential.side_by_side import Case, cases_of, check, skip_before

MODULES = (
    axes,
    batching,
    callbacks,
    control,
    custom,
    batching_rules,
    nested,
    programs,
    randomness,
    references,
    solvers,
    values,
)

CASES = [
    pytest.param(case, id=f"{module.__name__.rpartition('.')[2]}-{case.__name__}")
    for module in MODULES
    for case in cases_of(module)
]

SINCE = {
    "accumulated_gradients": "0.12",
    "entries_of_with_refs": "0.12",
    # JAX 0.10 differentiates the inner call of the rule twice, by the wrong rule.
    "forward_rules_in_loops": "0.12",
    "gradient_of_reference_arguments": "0.12",
    "reverse_over_forward_of_references": "0.12",
}


@pytest.mark.jax
@pytest.mark.parametrize("case", CASES)
def test_both_sides_agree(case: Case) -> None:
    skip_before(case.__name__, SINCE)
    check(case)
