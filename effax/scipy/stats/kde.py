"""Estimation of densities from samples by Gaussian kernels."""

from __future__ import annotations

import math
from collections.abc import Callable

import effax.numpy as jnp
from effax import random, tree
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.ir.errors import BadArgument, IllTyped
from effax.scipy.linalg import solve_triangular
from effax.scipy.special import logsumexp, ndtr

__all__ = ["gaussian_kde"]


class gaussian_kde:  # noqa: N801  SciPy's name
    """A density that is a weighted mean of normal densities around samples.

    Attributes:
        dataset: samples, of shape (d, n).
        weights: their weights, of shape (n,), of sum 1.
        neff: the effective number of samples.
        covariance: covariance of the kernels, of shape (d, d).
        inv_cov: its inverse.
    """

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | ArrayLike | Callable[[gaussian_kde], ArrayLike] | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Estimate the density.

        Args:
            dataset: samples, of shape (n,) or (d, n).
            bw_method: factor of the deviation: "scott", the default, "silverman", a number, or a
                function of this object.
            weights: weights of the samples; equal ones by default.

        Raises:
            BadArgument: an unknown method.
            IllTyped: complex samples, fewer than two, or weights that do not fit.
        """
        dtype = jnp.result_type(float, dataset)
        points = jnp.atleast_2d(jnp.asarray(dataset, dtype=dtype))
        if jnp.issubdtype(dtype, jnp.complexfloating) or points.ndim != 2 or points.size < 2:
            expected = "two real samples or more, of shape (d, n)"
            raise IllTyped("gaussian_kde takes samples", expected, str(points.type))
        n = points.shape[1]
        shares = jnp.full(n, 1 / n, dtype) if weights is None else jnp.asarray(weights, dtype=dtype)
        if shares.shape != (n,):
            raise IllTyped("the weights do not fit the samples", str((n,)), str(shares.shape))
        self.dataset: Array = points
        self.weights: Array = shares / jnp.sum(shares)
        self.neff: Array = 1 / jnp.sum(self.weights**2)
        middle = jnp.sum(self.weights * points, 1, keepdims=True)
        off = points - middle
        spread = (self.weights * off) @ off.T / (1 - jnp.sum(self.weights**2))
        factor = self._factor(bw_method)
        self.covariance: Array = spread * factor**2
        self.inv_cov: Array = jnp.linalg.inv(spread) / factor**2

    def _factor(
        self, method: str | ArrayLike | Callable[[gaussian_kde], ArrayLike] | None
    ) -> Array:
        if method is None or method == "scott":
            return self.neff ** (-1 / (self.d + 4))
        if isinstance(method, str):
            if method != "silverman":
                raise BadArgument("unknown bw_method", "'scott' or 'silverman'", repr(method))
            return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))
        if callable(method):
            return as_value(method(self), "the result of bw_method")
        return as_value(method, "bw_method")

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """Return the density at points of shape (d, m), or (m,) in one dimension."""
        return jnp.exp(self.logpdf(points))

    def __call__(self, points: ArrayLike) -> Array:
        """Return the density at points."""
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at points."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density at points. Raises IllTyped for other dimensions."""
        points = jnp.atleast_2d(jnp.asarray(x, dtype=self.dataset.dtype))
        if points.shape[0] != self.d:
            if points.shape != (1, self.d):
                expected = f"points of {self.d} dimensions"
                raise IllTyped("the points do not fit the samples", expected, str(points.type))
            points = points.T
        return _log_mixture(points, self.dataset, self.weights, self.covariance)

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Return the integral of the density times that of a normal distribution.

        Raises:
            IllTyped: the sizes do not fit.
        """
        middle = jnp.atleast_1d(jnp.asarray(mean, dtype=self.dataset.dtype))
        spread = jnp.atleast_2d(jnp.asarray(cov, dtype=self.dataset.dtype))
        if middle.shape != (self.d,) or spread.shape != (self.d, self.d):
            found = f"{middle.shape} and {spread.shape}"
            raise IllTyped("mean and cov do not fit the samples", f"{self.d} dimensions", found)
        total = self.covariance + spread
        return jnp.exp(_log_mixture(middle[:, None], self.dataset, self.weights, total))[0]

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return the probability between two bounds. Raises BadArgument for more dimensions."""
        if self.d != 1:
            raise BadArgument("integrate_box_1d takes one dimension", "1", str(self.d))
        scale = jnp.sqrt(self.covariance[0, 0])
        ends = [ndtr((jnp.asarray(y) - self.dataset[0]) / scale) for y in (low, high)]
        return jnp.sum(self.weights * (ends[1] - ends[0]), -1)

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Return the integral of the product of two densities. Raises IllTyped for other sizes."""
        if other.d != self.d:
            raise IllTyped("the estimates differ in dimension", str(self.d), str(other.d))
        total = self.covariance + other.covariance
        values = jnp.exp(_log_mixture(other.dataset, self.dataset, self.weights, total))
        return jnp.sum(other.weights * values)

    def resample(self, key: ArrayLike, shape: tuple[int, ...] = ()) -> Array:
        """Return samples of the density, of shape (d, *shape)."""
        first, second = random.split(key)
        at = random.categorical(first, jnp.log(self.weights), shape=shape)
        noise = random.normal(second, (self.d, *shape), self.dataset.dtype)
        low = jnp.linalg.cholesky(self.covariance)
        return self.dataset[:, at] + jnp.tensordot(low, noise, 1)


def _log_mixture(points: Array, samples: Array, weights: Array, covariance: Array) -> Array:
    """Return the logarithm of the weighted mean of normal densities around samples."""
    low = jnp.linalg.cholesky(covariance)
    z, centres = (solve_triangular(low, x, lower=True) for x in (points, samples))
    off = z[:, :, None] - centres[:, None, :]
    size = -0.5 * jnp.sum(off * off, 0)
    scale = jnp.sum(jnp.log(jnp.diagonal(low))) + 0.5 * points.shape[0] * math.log(2 * math.pi)
    return logsumexp(size, axis=1, b=weights) - scale


_FIELDS = ("dataset", "weights", "neff", "covariance", "inv_cov")


def _unflatten(_: None, leaves: object) -> gaussian_kde:
    made = object.__new__(gaussian_kde)
    for name, leaf in zip(_FIELDS, leaves, strict=True):  # type: ignore[call-overload]  # leaves of a tree
        setattr(made, name, leaf)
    return made


tree.register_pytree_node(
    gaussian_kde, lambda kde: (tuple([getattr(kde, f) for f in _FIELDS]), None), _unflatten
)
