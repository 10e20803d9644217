"""The error function against that of Python, in the last place."""

from __future__ import annotations

import math

import numpy as np
import pytest

from effax.ir.prims.common.error_function import erf, erfc

EDGES = [0.25, 0.84375, 1.25, 1 / 0.35, 6.0, 26.5, 28.0]
X = np.concatenate(
    [
        np.linspace(-28.5, 28.5, 5001),
        np.random.default_rng(0).normal(size=3000),
        [np.nextafter(e, to) * s for e in EDGES for to in (0, 99) for s in (1, -1)],
        [0.0, -0.0, 1e-300, 5e-324, np.inf, -np.inf],
    ]
)


@pytest.mark.parametrize(
    ("ours", "theirs", "units"), [(erf, math.erf, 2), (erfc, math.erfc, 8)], ids=["erf", "erfc"]
)
def test_nearly_every_bit(ours: object, theirs: object, units: int) -> None:
    assert callable(ours)
    assert callable(theirs)
    wanted = np.array([theirs(v) for v in X])
    assert (np.abs(ours(X) - wanted) <= units * np.spacing(np.abs(wanted))).all()


def test_signs_nan_shapes_and_dtypes() -> None:
    assert np.signbit(erf(np.array(-0.0)))
    assert np.isnan(erf(np.array([np.nan]))).all()
    assert np.isnan(erfc(np.array([np.nan]))).all()
    for dtype in (np.float16, np.float32, np.float64):
        found = erf(np.zeros((2, 0, 3), dtype))
        assert found.shape == (2, 0, 3)
        assert found.dtype == dtype
    many = np.linspace(-3, 3, 3 << 12).reshape(3, -1)
    np.testing.assert_array_equal(erf(many)[1], erf(many[1]))
