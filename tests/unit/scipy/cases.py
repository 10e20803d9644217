"""Calls of functions whose values SciPy has, at ordinary and at special points."""

from __future__ import annotations

from typing import Any

import numpy as np

INF, NAN = float("inf"), float("nan")
REAL = np.array([0.0, -0.0, 0.3, -0.3, 1.0, -1.0, 2.5, -2.5, 6.0, -6.0, 40, -40, INF, -INF, NAN])
UNIT = np.array([0.0, 1e-30, 1e-5, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0, -0.5, 1.5, NAN])
POINTS = np.array([0.0, -0.0, 0.5, 2.0, -1.0, INF, NAN])
FIRST, SECOND = (np.asarray(x).ravel() for x in np.meshgrid(POINTS, POINTS))
FINITE = ~np.isinf(FIRST + SECOND)

CASES: dict[str, list[tuple[Any, ...]]] = {
    **{
        f"special.{name}": [(REAL,)]
        for name in ("entr", "erf", "erfc", "erfcx", "expit", "log_ndtr", "ndtr")
    },
    **{f"special.{name}": [(UNIT,)] for name in ("erfinv", "logit", "ndtri")},
    "special.erfcinv": [(2 * UNIT,)],
    **{f"special.{name}": [(FIRST, SECOND)] for name in ("rel_entr", "xlog1py", "xlogy")},
    # SciPy's value is nan where an infinite term cancels a smaller one.
    "special.kl_div": [(FIRST[FINITE], SECOND[FINITE])],
    **{
        f"stats.norm.{name}": [(REAL, 0.5, 2.0), (0.0, 0.0, np.array([0.0, -1.0]))]
        for name in ("cdf", "logcdf", "logpdf", "logsf", "pdf", "sf")
    },
    **{f"stats.norm.{name}": [(UNIT, 0.5, 2.0)] for name in ("isf", "ppf")},
}
"""The arguments of the calls of each function."""
