"""Random numbers from explicit keys. Keys, bits and samples are those of JAX.

A key is an array of two 32-bit words; equal keys give equal samples. :func:`split` and
:func:`fold_in` make new keys of a key::

    key = random.key(0)
    key, sub = random.split(key)
    x = random.normal(sub, (3,))
"""

from __future__ import annotations

from effax.random.choices import categorical as categorical
from effax.random.choices import choice as choice
from effax.random.choices import permutation as permutation
from effax.random.distributions import bernoulli as bernoulli
from effax.random.distributions import bits as bits
from effax.random.distributions import cauchy as cauchy
from effax.random.distributions import exponential as exponential
from effax.random.distributions import gumbel as gumbel
from effax.random.distributions import laplace as laplace
from effax.random.distributions import logistic as logistic
from effax.random.distributions import lognormal as lognormal
from effax.random.distributions import normal as normal
from effax.random.distributions import rademacher as rademacher
from effax.random.distributions import randint as randint
from effax.random.distributions import truncated_normal as truncated_normal
from effax.random.distributions import uniform as uniform
from effax.random.keys import PRNGKey as PRNGKey
from effax.random.keys import clone as clone
from effax.random.keys import fold_in as fold_in
from effax.random.keys import key as key
from effax.random.keys import key_data as key_data
from effax.random.keys import split as split
from effax.random.keys import wrap_key_data as wrap_key_data

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "laplace",
    "logistic",
    "lognormal",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]
