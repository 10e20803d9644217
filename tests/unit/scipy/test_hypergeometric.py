"""Hypergeometric functions, the Faddeeva function and spherical harmonics against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.scipy.special as ours
from effax.ir.errors import BadArgument, ConcretizationError, IllTyped

theirs: Any = pytest.importorskip("scipy.special")
special: Any = ours
RNG = np.random.default_rng(0)
N = 300
A, B, C = RNG.uniform(-5, 5, N), RNG.uniform(0.2, 6, N), RNG.uniform(0.3, 6, N)
RNG_X: Any = (RNG.uniform(-90, 90, N), RNG.uniform(-1, 1, N), -(10 ** RNG.uniform(0, 2, N)))
Z = RNG.normal(size=N) * 10 ** RNG.uniform(-2, 1, N) + 1j * RNG.normal(size=N) * 3

pytestmark = pytest.mark.slow

CASES: dict[str, tuple[Callable[[Any], Any], float]] = {
    "wofz": (lambda m: m.wofz(np.where(np.abs(Z) < 20, Z, 1)), 1e-12),
    "wofz of real numbers": (lambda m: m.wofz(Z.real + 0j), 1e-13),
    "hyp1f1": (lambda m: m.hyp1f1(A, B, RNG_X[0]), 1e-10),
    "hyp1f1 of ending series": (
        lambda m: m.hyp1f1(*np.array([[-2.0, -3, 1], [0.5, 2, 3], [3, -4, 0]])),
        1e-13,
    ),
    "hyp2f1": (lambda m: m.hyp2f1(A, B, C, RNG_X[1]), 1e-10),
    "hyp2f1 of negative numbers": (lambda m: m.hyp2f1(A, B, C, RNG_X[2]), 1e-9),
    "hyp2f1 at the end": (
        lambda m: m.hyp2f1(
            *np.array([[1.0, 1, -2, 2], [1, 2, 1, 3], [2, 4, 3, 9], [0.999, 1, 5, 1]])
        ),
        1e-12,
    ),
}


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    call, bound = CASES[name]
    wanted = call(theirs)
    for found in (call(ours), effax.jit(lambda: call(ours))()):
        np.testing.assert_allclose(found, wanted, rtol=bound)


def test_spherical_harmonics() -> None:
    n = RNG.integers(0, 12, N)
    m = np.clip(RNG.integers(-12, 13, N), -n, n)
    polar, azimuth = RNG.uniform(0, np.pi, N), RNG.uniform(0, 6, N)
    wanted = theirs.sph_harm_y(n, m, polar, azimuth)
    np.testing.assert_allclose(special.sph_harm_y(n, m, polar, azimuth), wanted, atol=1e-13)
    compiled = effax.jit(lambda n: special.sph_harm_y(n, m, polar, azimuth, n_max=12))(n)
    np.testing.assert_allclose(compiled, wanted, atol=1e-13)
    assert special.sph_harm_y(1, 3, 0.5, 0.5) == 0
    with pytest.raises(ConcretizationError):
        effax.jit(lambda n: special.sph_harm_y(n, m, polar, azimuth))(n)
    with pytest.raises(BadArgument, match="derivatives"):
        special.sph_harm_y(1, 0, 0.1, 0.1, diff_n=1)
    with pytest.raises(IllTyped, match="integers"):
        special.sph_harm_y(1.0, 0, 0.1, 0.1)
