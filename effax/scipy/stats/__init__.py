"""Densities and distribution functions of SciPy's distributions, each a module."""

from effax.scipy.stats import norm as norm

__all__ = ["norm"]
