"""Calls of functions whose values SciPy has, at ordinary and at special points."""

from __future__ import annotations

from typing import Any

import numpy as np

INF, NAN = float("inf"), float("nan")
REAL = np.array([0.0, -0.0, 0.3, -0.3, 1.0, -1.0, 2.5, -2.5, 6.0, -6.0, 40, -40, INF, -INF, NAN])
UNIT = np.array([0.0, 1e-30, 1e-5, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0, -0.5, 1.5, NAN])
POINTS = np.array([0.0, -0.0, 0.5, 2.0, -1.0, INF, NAN])
FIRST, SECOND = (np.asarray(x).ravel() for x in np.meshgrid(POINTS, POINTS))
SCALE = np.array([0.3, 1.0, 2.0, 1.9375, 4.5, 25, 120, -0.5, -2.5, -3, 0, -0.0, NAN, INF, -INF])
SHAPES, PLACES = (
    x.ravel() for x in np.meshgrid([0.25, 1, 7, 60, 150, 0, INF, NAN], [0.5, 2, 50, 200, 0, INF])
)
WIDE = np.array([0.0, 0.125, 0.5, 1, 1.75, 2, 4.5, 6, 12.5, 60, INF, NAN])
FINITE = ~np.isinf(FIRST + SECOND)
XS = np.array([0.25, 0.5, 1.0, 2.25, 7.5, -1.0, 25.0, INF, -INF, NAN])
KS = np.array([0.0, 1.0, 2.0, 4.0, 1.5, -1.0, 9.0, NAN])
ALL = "cdf logcdf logpdf logsf pdf sf"
CONTINUOUS: dict[str, tuple[tuple[float, ...], str]] = {
    "beta": ((2.0, 0.75), ALL),
    "cauchy": ((), f"{ALL} isf ppf"),
    "chi2": ((3.0,), ALL),
    "expon": ((), f"{ALL} ppf"),
    "gamma": ((1.75,), ALL),
    "gumbel_l": ((), f"{ALL} ppf"),
    "gumbel_r": ((), f"{ALL} ppf"),
    "laplace": ((), "cdf logpdf pdf"),
    "logistic": ((), "cdf isf logpdf pdf ppf sf"),
    "norm": ((), f"{ALL} isf ppf"),
    "pareto": ((1.5,), f"{ALL} ppf"),
    "t": ((2.5,), "logpdf pdf"),
    "truncnorm": ((-0.75, 3.0), ALL),
    "uniform": ((), "cdf logpdf pdf ppf"),
}
"""The shapes and the functions of continuous distributions."""

DISCRETE: dict[str, tuple[float, ...]] = {
    "bernoulli": (0.25,),
    "betabinom": (4, 1.5, 0.75),
    "binom": (4, 0.25),
    "geom": (0.25,),
    "nbinom": (2.5, 0.25),
    "poisson": (2.5,),
}
"""The shapes of discrete distributions."""

MASS = ("logpmf", "pmf")

CASES: dict[str, list[tuple[Any, ...]]] = {
    **{
        f"special.{name}": [(REAL,)]
        for name in ("entr", "erf", "erfc", "erfcx", "expit", "log_ndtr", "ndtr")
    },
    **{
        f"special.{name}": [(SCALE,)]
        for name in ("digamma", "factorial", "gamma", "gammasgn", "i0e", "i1e")
    },
    **{f"special.{name}": [(SCALE[:-2],)] for name in ("gammaln", "i0", "i1", "loggamma")},
    **{f"special.{name}": [(SHAPES, PLACES)] for name in ("gammainc", "gammaincc")},
    "special.betainc": [(SHAPES, PLACES, np.resize(UNIT, SHAPES.size))],
    **{f"special.{name}": [(SHAPES[:5], PLACES[8:13])] for name in ("beta", "betaln")},
    "special.zeta": [
        (np.array([1.5, 2, 7, 20, 1, 0.5, 2, 3]), np.array([0.5, 2, 50, 9, 1, 1, -0.5, 0]))
    ],
    "special.boxcox": [(WIDE[1:], 0.25), (WIDE[1:], 0.0)],
    "special.boxcox1p": [(WIDE, 0.25), (WIDE, 0.0)],
    **{f"special.{n}": [(WIDE,)] for n in ("exp1", "dawsn", "sici", "fresnel")},
    "special.expi": [(np.concatenate([WIDE, -WIDE[:-2]]),)],
    "special.expn": [(np.array([0, 1, 2, 5])[:, None], WIDE)],
    "special.owens_t": [(WIDE[:-1, None], np.array([0.0, 0.25, 1, 3, -2, INF]))],
    "special.spence": [(WIDE[:-2],)],
    "special.comb": [(np.array([5.0, 5, 5, 20, 3.5, -1]), np.array([2.0, 0, 6, 10, 1.5, 1]))],
    "special.poch": [(np.array([2.0, 0.5, -2, 0, 30]), np.array([3.0, -0.25, 1, 2, 0.5]))],
    "special.polygamma": [(np.array([0.0, 1, 2, 5])[:, None], np.array([0.5, 3, 20, INF, NAN]))],
    **{f"special.{name}": [(UNIT,)] for name in ("erfinv", "logit", "ndtri")},
    "special.erfcinv": [(2 * UNIT,)],
    **{f"special.{name}": [(FIRST, SECOND)] for name in ("rel_entr", "xlog1py", "xlogy")},
    # SciPy's value is nan where an infinite term cancels a smaller one.
    "special.kl_div": [(FIRST[FINITE], SECOND[FINITE])],
    **{
        f"stats.{name}.{f}": [
            (XS[:7] if "gumbel" in name else XS, *shapes, 0.25, 2.0),
            (0.5, *shapes, 0.0, -1.0),
        ]
        for name, (shapes, functions) in CONTINUOUS.items()
        for f in functions.split()
        if f not in {"ppf", "isf"}
    },
    **{
        f"stats.{name}.{f}": [(UNIT, *shapes, 0.25, 2.0)]
        for name, (shapes, functions) in CONTINUOUS.items()
        for f in functions.split()
        if f in {"ppf", "isf"}
    },
    **{f"stats.{name}.{f}": [(KS, *shapes, 1)] for name, shapes in DISCRETE.items() for f in MASS},
    "stats.bernoulli.cdf": [(KS, 0.25)],
    "stats.bernoulli.ppf": [(UNIT, 0.25)],
    "stats.poisson.cdf": [(KS, 2.5)],
    "stats.poisson.entropy": [(np.array([0.0, 0.5, 30, 150, 1000, -1]),)],
    **{f"stats.gennorm.{f}": [(XS, 1.5)] for f in ("cdf", "logpdf", "pdf")},
    **{f"stats.vonmises.{f}": [(XS[:7], 1.5)] for f in ("logpdf", "pdf")},
    **{f"stats.wrapcauchy.{f}": [(XS, 0.25)] for f in ("logpdf", "pdf")},
}
"""The arguments of the calls of each function."""
