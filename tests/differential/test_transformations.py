"""Every transformation of every small function returns the results of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.differential.cases.functions import FUNCTIONS, Make
from tests.differential.cases.transformations import TRANSFORMATIONS
from tests.differential.side_by_side import Case, assert_same, of_effax, of_jax

# JAX raises for functions with references here; effax must agree with JAX on the pure function.
WITHOUT_REFS = {"grad_of_grad", "jacobians", "hessian"}


def case_of(transform: Callable[..., object], make: Make, point: object) -> Case:
    def case(jax: Any, jnp: Any) -> object:
        return transform(jax, jnp, make(jax, jnp), point)

    return case


@pytest.mark.jax
@pytest.mark.parametrize("transform", TRANSFORMATIONS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_sides_agree(name: str, transform: Callable[..., object]) -> None:
    make, point, pure = FUNCTIONS[name]
    reference = pure if pure is not None and transform.__name__ in WITHOUT_REFS else make
    ours = of_effax(case_of(transform, make, point))
    assert_same(ours, of_jax(case_of(transform, reference, point)))
