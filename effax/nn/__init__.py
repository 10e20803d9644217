"""Functions of neural networks, with JAX's names and signatures."""

from __future__ import annotations

from effax.nn import initializers as initializers
from effax.nn.activations import celu as celu
from effax.nn.activations import elu as elu
from effax.nn.activations import gelu as gelu
from effax.nn.activations import glu as glu
from effax.nn.activations import hard_sigmoid as hard_sigmoid
from effax.nn.activations import hard_silu as hard_silu
from effax.nn.activations import hard_swish as hard_swish
from effax.nn.activations import hard_tanh as hard_tanh
from effax.nn.activations import identity as identity
from effax.nn.activations import leaky_relu as leaky_relu
from effax.nn.activations import log_sigmoid as log_sigmoid
from effax.nn.activations import mish as mish
from effax.nn.activations import relu as relu
from effax.nn.activations import relu6 as relu6
from effax.nn.activations import selu as selu
from effax.nn.activations import sigmoid as sigmoid
from effax.nn.activations import silu as silu
from effax.nn.activations import soft_sign as soft_sign
from effax.nn.activations import softplus as softplus
from effax.nn.activations import squareplus as squareplus
from effax.nn.activations import swish as swish
from effax.nn.activations import tanh as tanh
from effax.nn.normalization import log_softmax as log_softmax
from effax.nn.normalization import logmeanexp as logmeanexp
from effax.nn.normalization import logsumexp as logsumexp
from effax.nn.normalization import one_hot as one_hot
from effax.nn.normalization import softmax as softmax
from effax.nn.normalization import standardize as standardize

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "initializers",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]
