"""Interpolation on grids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.ir.errors import BadArgument, IllTyped

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """Values between the points of a rectangular grid.

    Attributes:
        grid: places of the grid along each axis, ascending.
        values: values at the points of the grid; further axes hold several values for each.
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = float("nan"),
    ) -> None:
        """Set the grid.

        Args:
            points: places along each axis, ascending vectors.
            values: array whose first axes are those of the grid.
            method: "linear" or "nearest".
            bounds_error: must be False.
            fill_value: value outside of the grid; None extrapolates.

        Raises:
            BadArgument: an unknown method, or ``bounds_error``.
            IllTyped: the places do not fit the values.
        """
        if method not in ("linear", "nearest"):
            raise BadArgument("unknown method", "'linear' or 'nearest'", repr(method))
        if bounds_error:
            raise BadArgument("points outside are no error", "bounds_error=False", "True")
        self.method = method
        self.fill_value = fill_value
        self.values: Array = jnp.asarray(values, dtype=jnp.result_type(float, values))
        self.grid: tuple[Array, ...] = tuple(
            [jnp.asarray(p, dtype=jnp.result_type(float, p)) for p in points]
        )
        sizes = [p.size for p in self.grid]
        if [p.ndim for p in self.grid] != [1] * len(sizes) or sizes != [
            *self.values.shape[: len(sizes)]
        ]:
            raise IllTyped("the places do not fit the values", str(self.values.shape), str(sizes))

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Array:
        """Return the values at points.

        Args:
            xi: points of shape (..., d), or a sequence of their d coordinates.
            method: "linear" or "nearest"; that of the grid by default.

        Raises:
            BadArgument: an unknown method.
            IllTyped: the points have another dimension.
        """
        chosen = self.method if method is None else method
        if chosen not in ("linear", "nearest"):
            raise BadArgument("unknown method", "'linear' or 'nearest'", repr(chosen))
        parts = xi if isinstance(xi, list | tuple) else None
        points = (
            jnp.asarray(xi)
            if parts is None
            else jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, parts)), -1)
        )
        d = len(self.grid)
        if points.ndim == 1 and d == 1 and parts is None:
            points = points[:, None]
        if points.shape[-1:] != (d,):
            raise IllTyped("the points have another dimension", f"(..., {d})", str(points.type))
        flat = jnp.reshape(points, (-1, d)).astype(jnp.result_type(float, points))
        found = self._interpolated([flat[:, k] for k in range(d)], chosen)
        return jnp.reshape(found, (*points.shape[:-1], *self.values.shape[d:]))

    def _interpolated(self, xs: list[Array], method: str) -> Array:
        corners, outside = [], jnp.zeros(xs[0].shape, bool)
        for x, grid in zip(xs, self.grid, strict=True):
            low = jnp.clip(jnp.searchsorted(grid, x, side="right") - 1, 0, max(grid.size - 2, 0))
            high = jnp.minimum(low + 1, grid.size - 1)
            width = grid[high] - grid[low]
            part = (x - grid[low]) / jnp.where(width == 0, 1, width)
            if method == "nearest":
                part = jnp.where(part <= 0.5, 0.0, 1.0)
            corners.append([(low, 1 - part), (high, part)])
            outside = outside | (x < grid[0]) | (x > grid[-1])
        rest = (1,) * (self.values.ndim - len(xs))
        total = jnp.zeros((xs[0].size, *self.values.shape[len(xs) :]), self.values.dtype)
        for corner in product(*corners):
            weight = corner[0][1]
            for _, part in corner[1:]:
                weight = weight * part
            value = self.values[tuple([index for index, _ in corner])]
            total = total + jnp.reshape(weight, (-1, *rest)) * value
        if self.fill_value is None:
            return total
        return jnp.where(jnp.reshape(outside, (-1, *rest)), self.fill_value, total)
