"""Initial values of parameters: functions of a key, a shape and a dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from effax import random as samples
from effax.arrays import creation
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axis, plain_shape, sequence_of
from effax.arrays.promotion import default_dtype
from effax.arrays.shapes import moveaxis
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import DType, is_complex, real_dtype
from effax.ir.errors import BadArgument
from effax.ir.types import Shape
from effax.numpy import ufuncs as uf
from effax.random.keys import split

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

Axes = int | Sequence[int]

# Standard deviation of normal samples truncated to (-2, 2).
_TRUNCATED: Final = 0.87962566103423978

# Standard deviation of complex normal samples truncated to a modulus of at most 2.
_TRUNCATED_DISC: Final = 0.95311164380491208


_INITIALIZER: Final = {
    "dtype": "default dtype of the results.",
    "in_axis": "axis or axes of the inputs.",
    "out_axis": "axis or axes of the outputs.",
    "batch_axis": "axis or axes that count for neither.",
}
"""Descriptions of the parameters that functions share."""


class Initializer(Protocol):
    """Function of a key, a shape and a dtype to the initial value of a parameter."""

    def __call__(
        self, key: ArrayLike, shape: Sequence[int], dtype: DTypeLike | None = None
    ) -> Array: ...


def zeros(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Return zeros; an initializer itself.

    Args:
        key: unused.
        shape: shape of the result.
        dtype: dtype of the result, float32 by default.
        out_sharding: sharding of the result.

    Returns:
        Array of zeros.

    >>> nn.initializers.zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return creation.zeros(shape, dtype, device=out_sharding)


def ones(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Return ones; an initializer itself.

    Args:
        key: unused.
        shape: shape of the result.
        dtype: dtype of the result, float32 by default.
        out_sharding: sharding of the result.

    Returns:
        Array of ones.

    >>> nn.initializers.ones(random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    return creation.ones(shape, dtype, device=out_sharding)


def _initializer(
    sample: Callable[[ArrayLike, Sequence[int], DType], Array], default: DTypeLike | None
) -> Initializer:
    """Return ``sample`` with an optional dtype."""

    def init(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        return sample(key, shape, default_dtype(dtype or default))

    return init


def _times(x: Array, scale: ArrayLike) -> Array:
    """Return the samples times a number, in their dtype."""
    return uf.multiply(x, creation.asarray(scale, x.dtype))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer with one value.

    Args:
        value: scalar.
        dtype: default dtype of the results.

    Returns:
        Initializer.

    >>> nn.initializers.constant(3.0)(random.key(0), (2,))
    Array([3., 3.], dtype=float32)
    """
    return _initializer(lambda _, shape, dtype: creation.full(shape, value, dtype), dtype)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer with uniform samples of [0, scale).

    Args:
        scale: upper bound.
        dtype: default dtype of the results.

    Returns:
        Initializer.

    >>> nn.initializers.uniform()(random.key(0), (2,)).shape
    (2,)
    """
    return _initializer(lambda *args: _times(samples.uniform(*args), scale), dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer with normal samples of mean 0.

    Args:
        stddev: standard deviation.
        dtype: default dtype of the results.

    Returns:
        Initializer.

    >>> nn.initializers.normal()(random.key(0), (2,)).shape
    (2,)
    """
    return _initializer(lambda *args: _times(samples.normal(*args), stddev), dtype)


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: float = -2.0,
    upper: float = 2.0,
) -> Initializer:
    """Return an initializer with truncated standard normal samples, times ``stddev``.

    Args:
        stddev: factor of the samples.
        dtype: default dtype of the results.
        lower: lower bound before scaling.
        upper: upper bound before scaling.

    Returns:
        Initializer.

    >>> nn.initializers.truncated_normal()(random.key(0), (2,)).shape
    (2,)
    """

    def sample(key: ArrayLike, shape: Sequence[int], dtype: DType) -> Array:
        return _times(samples.truncated_normal(key, lower, upper, shape, dtype), stddev)

    return _initializer(sample, dtype)


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return an initializer whose variance is ``scale`` over the number of inputs or outputs.

    Args:
        scale: numerator.
        mode: denominator: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
        distribution: "truncated_normal", "normal" or "uniform".
        in_axis: axis or axes of the inputs.
        out_axis: axis or axes of the outputs.
        batch_axis: axis or axes that count for neither.
        dtype: default dtype of the results.

    Returns:
        Initializer.

    Raises:
        BadArgument: an unknown mode or distribution.

    >>> nn.initializers.variance_scaling(1.0, "fan_in", "normal")(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if mode not in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"):
        raise BadArgument("unknown mode", "fan_in, fan_out, fan_avg or fan_geo_avg", mode)
    if distribution not in ("truncated_normal", "normal", "uniform"):
        raise BadArgument(
            "unknown distribution", "truncated_normal, normal or uniform", distribution
        )

    def sample(key: ArrayLike, shape: Sequence[int], kind: DType) -> Array:
        sizes = plain_shape(shape, "an initializer")
        fan_in, fan_out = _fans(sizes, in_axis, out_axis, batch_axis)
        fan = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }[mode]
        variance = creation.asarray(scale / fan, kind)
        if distribution == "normal":
            return uf.multiply(samples.normal(key, sizes, kind), uf.sqrt(variance))
        if distribution == "uniform":
            if is_complex(kind):
                # The mean square of the modulus is 1/2 on the unit disc.
                scale_of_disc = uf.sqrt(uf.multiply(2, variance))
                return uf.multiply(_of_disc(key, sizes, kind, None), scale_of_disc)
            found = samples.uniform(key, sizes, kind, -1.0, 1.0)
            return uf.multiply(found, uf.sqrt(uf.multiply(3, variance)))
        if is_complex(kind):
            deviation = uf.true_divide(uf.sqrt(variance), creation.asarray(_TRUNCATED_DISC, kind))
            return uf.multiply(_of_disc(key, sizes, kind, 2.0), deviation)
        deviation = uf.true_divide(uf.sqrt(variance), creation.asarray(_TRUNCATED, kind))
        return uf.multiply(samples.truncated_normal(key, -2, 2, sizes, kind), deviation)

    return _initializer(sample, dtype)


def _of_disc(key: ArrayLike, shape: Shape, dtype: DType, radius: float | None) -> Array:
    """Return complex samples of a disc: uniform on the unit disc, or normal within a radius.

    The square of the modulus of a normal sample is exponential: its inverse distribution function
    is -log(1 - t), for t below 1 - exp(-radius²).
    """
    of_modulus, of_angle = split(key)
    part = real_dtype(dtype)
    t = samples.uniform(of_modulus, shape, part)
    if radius is not None:
        t = uf.negative(uf.log(uf.subtract(1, uf.multiply(1 - math.exp(-(radius**2)), t))))
    angle = uf.multiply(2 * math.pi, samples.uniform(of_angle, shape, part))
    turn = uf.exp(uf.multiply(1j, uf.astype(angle, dtype)))
    return uf.multiply(uf.astype(uf.sqrt(t), dtype), turn)


def _fans(shape: Shape, in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """Return the number of inputs per output, and of outputs per input."""
    if len(shape) < 2 and in_axis == -2:
        raise BadArgument(
            "a shape of fewer than 2 axes has no inputs and outputs",
            expected="at least 2 axes, or `in_axis`",
            found=str(shape),
        )

    def size(axes: Axes) -> int:
        return math.prod(
            shape[plain_axis(a, len(shape), "an initializer")] for a in sequence_of(axes)
        )

    n_in, n_out, n_batch = size(in_axis), size(out_axis), size(batch_axis)
    field = math.prod(shape) / n_in / n_out / n_batch
    return n_in * field, n_out * field


@shared_docs(_INITIALIZER, "Initializer.")
def glorot_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer with uniform samples of variance 1 over the mean of inputs and outputs.

    >>> nn.initializers.glorot_uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


@shared_docs(_INITIALIZER, "Initializer.")
def glorot_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer with truncated normal samples of variance 2 over inputs plus outputs.

    >>> nn.initializers.glorot_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


@shared_docs(_INITIALIZER, "Initializer.")
def lecun_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer with uniform samples of variance 1 over the number of inputs.

    >>> nn.initializers.lecun_uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


@shared_docs(_INITIALIZER, "Initializer.")
def lecun_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer with truncated normal samples of variance 1 over the number of inputs.

    >>> nn.initializers.lecun_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


@shared_docs(_INITIALIZER, "Initializer.")
def he_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer with uniform samples of variance 2 over the number of inputs.

    >>> nn.initializers.he_uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


@shared_docs(_INITIALIZER, "Initializer.")
def he_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer with truncated normal samples of variance 2 over the number of inputs.

    >>> nn.initializers.he_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer with random orthogonal matrices, times ``scale``.

    Args:
        scale: factor of the matrices.
        column_axis: axis of the columns; the others are flattened into rows. The rows are
            orthonormal where there are fewer of them, else the columns.
        dtype: default dtype of the results.

    Returns:
        Initializer. Raises BadArgument for a shape of less than two axes.

    Source: Saxe, McClelland, Ganguli, "Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks" (2014).

    >>> x = nn.initializers.orthogonal()(random.key(0), (4, 2))
    >>> bool(jnp.allclose(x.T @ x, jnp.eye(2), atol=1e-6))
    True
    """

    def sample(key: ArrayLike, shape: Sequence[int], dtype: DType) -> Array:
        sizes = _checked_shape(shape, 2, math.inf, "orthogonal")
        axis = plain_axis(column_axis, len(sizes), "orthogonal")
        rest, columns = sizes[:axis] + sizes[axis + 1 :], sizes[axis]
        matrix = samples.orthogonal(key, math.prod(rest), dtype=dtype, m=columns)
        return uf.multiply(moveaxis(matrix.reshape(*rest, columns), -1, axis), scale)

    return _initializer(sample, dtype)


def delta_orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of kernels of convolutions that are orthogonal at their center, else 0.

    Args:
        scale: factor of the matrices.
        column_axis: axis of the columns of the matrix at the center.
        dtype: default dtype of the results.

    Returns:
        Initializer of kernels of shape (window, inputs, outputs), with one to three axes of the
        window. Raises BadArgument for another shape, or fewer outputs than inputs.

    Source: Xiao et al., "Dynamical isometry and a mean field theory of CNNs" (2018).

    >>> nn.initializers.delta_orthogonal()(random.key(0), (3, 1, 1)).ravel()
    Array([0., 1., 0.], dtype=float32)
    """

    def sample(key: ArrayLike, shape: Sequence[int], dtype: DType) -> Array:
        sizes = _checked_shape(shape, 3, 5, "delta_orthogonal")
        if sizes[-1] < sizes[-2]:
            raise BadArgument(
                "delta_orthogonal: there are fewer outputs than inputs",
                expected="a last axis at least as long as the one before",
                found=str(sizes),
            )
        matrix = orthogonal(scale, column_axis)(key, sizes[-2:], dtype)
        center = tuple([(n - 1) // 2 for n in sizes[:-2]])
        return creation.zeros(sizes, dtype).at[center].set(matrix)

    return _initializer(sample, dtype)


def _checked_shape(shape: Sequence[int], least: int, most: float, what: str) -> Shape:
    sizes = plain_shape(shape, what)
    if not least <= len(sizes) <= most:
        raise BadArgument(
            f"{what} initializes no array of this shape",
            expected=f"{least} axes or more" if most == math.inf else f"{least} to {most} axes",
            found=str(sizes),
        )
    return sizes


xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal
