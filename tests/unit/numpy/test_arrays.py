"""Array functions: as JAX's, and the same whether evaluated or traced."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import effax.numpy as jnp
from tests.unit.numpy.agreement import all_of_jax, check, converted, flat
from tests.unit.numpy.cases import FAMILIES, Case
from tests.unit.numpy.tracing import run_traced

NAMES = [(family, name) for family, cases in FAMILIES.items() for name in cases]


def call_of(case: Case) -> Any:
    return lambda library: case.call(library, *(converted(x, library) for x in case.args))


@cache
def results_of_jax(family: str) -> dict[str, object]:
    return all_of_jax({name: call_of(case) for name, case in FAMILIES[family].items()})


@pytest.mark.slow
@pytest.mark.jax
@pytest.mark.parametrize(("family", "name"), NAMES)
def test_results_agree_with_jax(family: str, name: str) -> None:
    case = FAMILIES[family][name]
    check(call_of(case), results_of_jax(family)[name], rtol=3e-6)


@pytest.mark.parametrize(("family", "name"), NAMES)
def test_traced_results_equal_evaluated_ones(family: str, name: str) -> None:
    case = FAMILIES[family][name]
    args = [jnp.asarray(x) for x in case.args]
    wanted = flat(case.call(jnp, *args))
    found = flat(run_traced(lambda *xs: case.call(jnp, *xs), *args))
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(
            np.asarray(a).astype(np.complex128), np.asarray(b).astype(np.complex128), rtol=1e-6
        )
