"""Layers of neural networks as pairs of functions: initialization and application.

A layer is ``(init_fun, apply_fun)``. ``init_fun(rng, input_shape)`` returns the shape of the output
and the parameters; a size of -1, of the batch, is kept. ``apply_fun(params, inputs, **kwargs)``
returns the output; layers that draw numbers take ``rng``::

    >>> from effax.example_libraries import stax
    >>> net_init, net_apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2), stax.Softmax)
    >>> shape, params = net_init(jax.random.PRNGKey(0), (-1, 3))
    >>> shape, net_apply(params, jnp.ones((5, 3))).shape
    ((-1, 2), (5, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

import effax.numpy as jnp
from effax import lax, nn, random
from effax.api.staging import ShapeDtypeStruct, eval_shape
from effax.arrays.array import Array
from effax.ir.errors import BadArgument
from effax.tree import PyTree

__all__ = [
    "ApplyFun",
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "InitFun",
    "Initializer",
    "Layer",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Shape",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "parallel",
    "serial",
    "shape_dependent",
]

Shape: TypeAlias = tuple[int, ...]
InitFun: TypeAlias = Callable[[PyTree, PyTree], tuple[PyTree, PyTree]]
ApplyFun: TypeAlias = Callable[..., PyTree]
Layer: TypeAlias = tuple[InitFun, ApplyFun]
Initializer: TypeAlias = Callable[..., Array]

glorot_normal: Final = nn.initializers.glorot_normal
normal: Final = nn.initializers.normal


def Dense(  # noqa: N802  JAX's name
    out_dim: int,
    W_init: Initializer | None = None,  # noqa: N803
    b_init: Initializer | None = None,
) -> Layer:
    """Return the layer ``x W + b`` of ``(..., n)`` to ``(..., out_dim)``.

    Args:
        out_dim: the size of the last axis of the output.
        W_init: initializes W; None is ``glorot_normal()``.
        b_init: initializes b; None is ``normal()``.
    """
    weights, bias = W_init or glorot_normal(), b_init or normal()

    def init_fun(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
        first, second = random.split(rng)
        params = weights(first, (input_shape[-1], out_dim)), bias(second, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: object) -> PyTree:
        w, b = params
        return jnp.dot(inputs, w) + b

    return init_fun, apply_fun


def GeneralConv(  # noqa: N802  JAX's name
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    W_init: Initializer | None = None,  # noqa: N803
    b_init: Initializer | None = None,
) -> Layer:
    """Return a convolution with a bias for each channel.

    Args:
        dimension_numbers: the layouts of input, kernel and output, such as
            ``("NHWC", "HWIO", "NHWC")``.
        out_chan: the number of channels of the output.
        filter_shape: the sizes of the window.
        strides: the steps of the window; None is 1 in each direction.
        padding: as that of ``lax.conv_general_dilated``.
        W_init: initializes the kernel; None is ``glorot_normal`` over its channels.
        b_init: initializes the bias; None is ``normal(1e-6)``.
    """
    steps = tuple(strides or (1,) * len(filter_shape))

    def convolve(x: Array, w: Array) -> Array:
        return lax.conv_general_dilated(x, w, steps, padding, dimension_numbers=dimension_numbers)

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def GeneralConvTranspose(  # noqa: N802  JAX's name
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    W_init: Initializer | None = None,  # noqa: N803
    b_init: Initializer | None = None,
) -> Layer:
    """Return a transposed convolution with a bias for each channel, as ``lax.conv_transpose``.

    The arguments are those of ``GeneralConv``.
    """
    steps = tuple(strides or (1,) * len(filter_shape))

    def convolve(x: Array, w: Array) -> Array:
        return lax.conv_transpose(x, w, steps, padding, dimension_numbers=dimension_numbers)

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


Conv: Callable[..., Layer] = partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
"""``GeneralConv`` of images, channels last."""
Conv1DTranspose: Callable[..., Layer] = partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
"""``GeneralConvTranspose`` of sequences, channels last."""
ConvTranspose: Callable[..., Layer] = partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
"""``GeneralConvTranspose`` of images, channels last."""


def _convolution(
    convolve: Callable[[Array, Array], Array],
    layouts: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    w_init: Initializer | None,
    b_init: Initializer | None,
) -> Layer:
    of_input, of_kernel, of_output = layouts
    weights = w_init or glorot_normal(of_kernel.index("I"), of_kernel.index("O"))
    bias = b_init or normal(1e-6)
    bias_shape = tuple([out_chan if c == "C" else 1 for c in of_output])

    def init_fun(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[of_input.index("C")]}
        kernel = tuple([channels[c] if c in channels else next(sizes) for c in of_kernel])
        first, second = random.split(rng)
        params = weights(first, kernel), bias(second, bias_shape)
        batch = input_shape[of_input.index("N")]
        shape = tuple([1 if c == "N" else n for c, n in zip(of_input, input_shape, strict=True)])
        out = _shape_of(lambda x: convolve(x, params[0]), shape)
        return tuple(
            [batch if c == "N" else n for c, n in zip(of_output, out, strict=True)]
        ), params

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: object) -> PyTree:
        w, b = params
        return convolve(inputs, w) + b

    return init_fun, apply_fun


def _shape_of(function: Callable[[Array], PyTree], shape: Shape) -> Shape:
    """Return the shape of the result of a function of an array of floats."""
    made = eval_shape(function, ShapeDtypeStruct(shape, jnp.float32))
    return cast("Shape", made.shape)


def BatchNorm(  # noqa: N802  JAX's name
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = nn.initializers.zeros,
    gamma_init: Initializer = nn.initializers.ones,
) -> Layer:
    """Return the layer ``γ (x - mean) / √(variance + ε) + β``, with statistics of each batch.

    Args:
        axis: the axes of the statistics.
        epsilon: ε.
        center: whether β is a parameter; otherwise it is 0.
        scale: whether γ is a parameter; otherwise it is 1.
        beta_init: initializes β.
        gamma_init: initializes γ.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
        shape = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        return input_shape, (beta, gamma_init(second, shape) if scale else ())

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: object) -> PyTree:
        beta, gamma = params
        at = tuple([None if i in axes else slice(None) for i in range(jnp.ndim(inputs))])
        made = nn.standardize(inputs, axes, epsilon=epsilon)
        made = gamma[at] * made if scale else made
        return made + beta[at] if center else made

    return init_fun, apply_fun


def elementwise(fun: Callable[..., PyTree], **fun_kwargs: object) -> Layer:
    """Return the layer that applies a function of an array to each element, without parameters."""
    return _unchanged_shape, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


def _unchanged_shape(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
    return input_shape, ()


Tanh: Layer = elementwise(jnp.tanh)
Relu: Layer = elementwise(nn.relu)
Exp: Layer = elementwise(jnp.exp)
LogSoftmax: Layer = elementwise(nn.log_softmax, axis=-1)
Softmax: Layer = elementwise(nn.softmax, axis=-1)
Softplus: Layer = elementwise(nn.softplus)
Sigmoid: Layer = elementwise(nn.sigmoid)
Elu: Layer = elementwise(nn.elu)
LeakyRelu: Layer = elementwise(nn.leaky_relu)
Selu: Layer = elementwise(nn.selu)
Gelu: Layer = elementwise(nn.gelu)
Identity: Layer = (_unchanged_shape, lambda params, inputs, **kwargs: inputs)
"""The layer that returns its input."""


def _pooling(
    reducer: Callable[[PyTree, PyTree], PyTree],
    initial: float,
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    spec: str | None,
    average: bool = False,
) -> Layer:
    """Return a reduction of windows of the spatial axes."""
    layout = spec or f"N{'.' * len(window_shape)}C"
    steps = list(strides or (1,) * len(window_shape))

    def spread(sizes: Sequence[int]) -> Shape:
        rest = iter(sizes)
        return tuple([1 if c in "NC" else next(rest) for c in layout])

    window, moves = spread(window_shape), spread(steps)

    def pool(x: Array) -> Array:
        start = jnp.asarray(initial, x.dtype)
        return lax.reduce_window(x, start, reducer, window, moves, padding)

    def init_fun(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
        shape = tuple([1 if c == "N" else n for c, n in zip(layout, input_shape, strict=True)])
        out = list(_shape_of(pool, shape))
        out[layout.index("N")] = input_shape[layout.index("N")]
        return tuple(out), ()

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: object) -> PyTree:
        # The mean is that of the elements of a window that are not padding.
        return pool(inputs) / pool(jnp.ones_like(inputs)) if average else pool(inputs)

    return init_fun, apply_fun


def MaxPool(  # noqa: N802  JAX's name
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return the maximum of each window.

    Args:
        window_shape: the sizes of the window, of the spatial axes.
        strides: the steps of the window; None is 1 in each direction.
        padding: as that of ``lax.reduce_window``.
        spec: the layout, such as ``"NHWC"``; None: batch first, channels last.
    """
    return _pooling(lax.max, -jnp.inf, window_shape, strides, padding, spec)


def SumPool(  # noqa: N802  JAX's name
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return the sum of each window; the arguments are those of ``MaxPool``."""
    return _pooling(lax.add, 0.0, window_shape, strides, padding, spec)


def AvgPool(  # noqa: N802  JAX's name
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return the mean of each window, padding apart; the arguments are those of ``MaxPool``."""
    return _pooling(lax.add, 0.0, window_shape, strides, padding, spec, average=True)


def _flat_shape(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
    size = 1
    for n in input_shape[1:]:
        size *= n
    return (input_shape[0], size), ()


Flatten: Layer = (
    _flat_shape,
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
)
"""The layer that joins all axes but the first."""


def FanOut(num: int) -> Layer:  # noqa: N802  JAX's name
    """Return the layer that returns its input ``num`` times."""
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: sum(inputs),
)
"""The layer that adds its inputs."""


def FanInConcat(axis: int = -1) -> Layer:  # noqa: N802  JAX's name
    """Return the layer that concatenates its inputs along an axis."""

    def init_fun(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
        at = axis % len(input_shape[0])
        total = sum([shape[at] for shape in input_shape])
        return (*input_shape[0][:at], total, *input_shape[0][at + 1 :]), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:  # noqa: N802  JAX's name
    """Return the layer that keeps each element with probability ``rate``, divided by it.

    Args:
        rate: the probability that an element is kept; others become 0.
        mode: ``"train"``; with another value, the input is returned.

    Raises:
        BadArgument: applied in training without ``rng``.
    """

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: PyTree) -> PyTree:
        if mode != "train":
            return inputs
        rng = kwargs.get("rng")
        if rng is None:
            raise BadArgument(
                "a layer with Dropout draws numbers",
                expected="a key, `rng`, as an argument of apply_fun",
                found="none",
                remedy="apply_fun(params, inputs, rng=key); to evaluate, Dropout(rate, 'test')",
            )
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return _unchanged_shape, apply_fun


def serial(*layers: Layer) -> Layer:
    """Return the composition of layers; each one has its own key of ``rng``."""
    inits, applies = [init for init, _ in layers], [apply for _, apply in layers]

    def init_fun(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
        params = []
        for init in inits:
            rng, own = random.split(rng)
            input_shape, made = init(own, input_shape)
            params.append(made)
        return input_shape, params

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: PyTree) -> PyTree:
        for apply, own, rng in zip(applies, params, _keys(kwargs, len(layers)), strict=True):
            inputs = apply(own, inputs, **{**kwargs, "rng": rng})
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Return the layer that applies each of the layers to one of its inputs, as of ``FanOut``."""

    def init_fun(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
        rngs = random.split(rng, len(layers))
        made = [
            init(own, shape)
            for (init, _), own, shape in zip(layers, rngs, input_shape, strict=True)
        ]
        return [shape for shape, _ in made], [params for _, params in made]

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: PyTree) -> PyTree:
        rngs = _keys(kwargs, len(layers))
        return [
            apply(own, x, **{**kwargs, "rng": rng})
            for (_, apply), own, x, rng in zip(layers, params, inputs, rngs, strict=True)
        ]

    return init_fun, apply_fun


def _keys(kwargs: dict[str, PyTree], count: int) -> Sequence[PyTree]:
    rng = kwargs.pop("rng", None)
    return [None] * count if rng is None else list(random.split(rng, count))


def shape_dependent(make_layer: Callable[[PyTree], Layer]) -> Layer:
    """Return the layer that is made for the shape of its input.

    Args:
        make_layer: a function of the shape that returns a layer; its parameters must not depend on
            sizes that are unknown at initialization.
    """

    def init_fun(rng: PyTree, input_shape: PyTree) -> tuple[PyTree, PyTree]:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: object) -> PyTree:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
