"""Densities and distribution functions, each distribution a module; statistics of samples."""

from effax.scipy.stats import bernoulli as bernoulli
from effax.scipy.stats import beta as beta
from effax.scipy.stats import betabinom as betabinom
from effax.scipy.stats import binom as binom
from effax.scipy.stats import cauchy as cauchy
from effax.scipy.stats import chi2 as chi2
from effax.scipy.stats import dirichlet as dirichlet
from effax.scipy.stats import expon as expon
from effax.scipy.stats import gamma as gamma
from effax.scipy.stats import gennorm as gennorm
from effax.scipy.stats import geom as geom
from effax.scipy.stats import gumbel_l as gumbel_l
from effax.scipy.stats import gumbel_r as gumbel_r
from effax.scipy.stats import laplace as laplace
from effax.scipy.stats import logistic as logistic
from effax.scipy.stats import multinomial as multinomial
from effax.scipy.stats import multivariate_normal as multivariate_normal
from effax.scipy.stats import nbinom as nbinom
from effax.scipy.stats import norm as norm
from effax.scipy.stats import pareto as pareto
from effax.scipy.stats import poisson as poisson
from effax.scipy.stats import t as t
from effax.scipy.stats import truncnorm as truncnorm
from effax.scipy.stats import uniform as uniform
from effax.scipy.stats import vonmises as vonmises
from effax.scipy.stats import wrapcauchy as wrapcauchy
from effax.scipy.stats.kde import gaussian_kde as gaussian_kde
from effax.scipy.stats.ranks import ModeResult as ModeResult
from effax.scipy.stats.ranks import mode as mode
from effax.scipy.stats.ranks import rankdata as rankdata
from effax.scipy.stats.ranks import sem as sem

__all__ = [
    "ModeResult", "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet",
    "expon", "gamma", "gaussian_kde", "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace",
    "logistic", "mode", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto",
    "poisson", "rankdata", "sem", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip
