"""Rotations in three dimensions, and interpolation between them, with SciPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import effax.numpy as jnp
from effax import random
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.ir.errors import BadArgument, IllTyped
from effax.scipy.spatial import quaternions as qs
from effax.tree import register_dataclass

__all__ = ["Rotation", "Slerp"]


@register_dataclass
@dataclass(frozen=True)
class Rotation:
    """A rotation, or several: a pytree of quaternions of norm 1, scalars last.

    ``p * q`` is q's rotation followed by p's.

    Attributes:
        quat: array of shape (4,), or (n, 4).

    >>> from effax.scipy.spatial.transform import Rotation
    >>> Rotation.from_euler("z", 90, degrees=True).apply(jnp.array([1.0, 0.0, 0.0])).round(3)
    Array([-0.,  1.,  0.], dtype=float32)
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Return the rotations of a sequence as one object."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Return rotations about axes, in sequence.

        Args:
            seq: up to three of "xyz" for axes of the space, or of "XYZ" for axes that turn with it.
            angles: array of shape (len(seq),) or (n, len(seq)); for one axis a scalar, or (n,).
            degrees: whether angles are in degrees; else in radians.

        Raises:
            BadArgument: unknown axes.
            IllTyped: angles do not fit.
        """
        axes, extrinsic = qs.sequence(seq)
        given = _inexact(angles)
        if len(axes) == 1 and (given.ndim < 2 or given.shape[-1] != 1):
            given = given[..., None]
        if given.ndim not in (1, 2) or given.shape[-1] != len(axes):
            expected = f"shape ({len(axes)},) or (n, {len(axes)})"
            raise IllTyped("the angles do not fit the axes", expected, str(given.type))
        return cls(qs.from_euler(jnp.deg2rad(given) if degrees else given, axes, extrinsic))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Return the rotations of orthogonal matrices of shape (3, 3) or (n, 3, 3)."""
        return cls(qs.from_matrix(_fitting(matrix, (3, 3), "matrices")))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Return the rotations of modified Rodrigues parameters of shape (3,) or (n, 3)."""
        return cls(qs.from_mrp(_fitting(mrp, (3,), "modified Rodrigues parameters")))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Return the rotations of quaternions of shape (4,) or (n, 4), scalars last."""
        return cls(qs.normalized(_fitting(quat, (4,), "quaternions")))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Return the rotations about vectors of shape (3,) or (n, 3), by their norms."""
        v = _fitting(rotvec, (3,), "rotation vectors")
        return cls(qs.from_rotvec(jnp.deg2rad(v) if degrees else v))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """Return the identity, or ``num`` of it."""
        one = jnp.array([0, 0, 0, 1], dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Return uniformly distributed rotations."""
        shape = (4,) if num is None else (num, 4)
        return cls(qs.normalized(random.normal(random_key, shape)))

    def __getitem__(self, indexer: object) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:
        return Rotation(qs.product(self.quat, other.quat))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Return vectors of shape (3,) or (n, 3), rotated; by the inverse if asked."""
        v = _fitting(vectors, (3,), "vectors")
        matrix = self.as_matrix()
        turned = jnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return jnp.matmul(turned, v[..., None], precision="highest")[..., 0]

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return angles about three axes; see :meth:`from_euler`.

        Raises:
            BadArgument: unknown axes, or other than three.
        """
        axes, extrinsic = qs.sequence(seq)
        if len(axes) != 3:
            raise BadArgument("Euler angles are about three axes", "3 letters", repr(seq))
        angles = qs.to_euler(self.quat, axes, extrinsic)
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Return orthogonal matrices."""
        return qs.to_matrix(self.quat)

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters."""
        return qs.to_mrp(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return axes times angles."""
        v = qs.to_rotvec(self.quat)
        return jnp.rad2deg(v) if degrees else v

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return quaternions: of both signs, unless ``canonical``; scalars last by default."""
        q = qs.canonical(self.quat) if canonical else self.quat
        return jnp.roll(q, 1, -1) if scalar_first else q

    def inv(self) -> Rotation:
        """Return the inverse rotations."""
        return Rotation(qs.conjugate(self.quat))

    def magnitude(self) -> Array:
        """Return the angles, from 0 to π."""
        size = qs.norm(qs.vector(self.quat))
        return (2 * jnp.arctan2(size, jnp.abs(qs.scalar(self.quat))))[..., 0]

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """Return the mean rotation: the leading eigenvector of the quaternions' products."""
        q = jnp.atleast_2d(self.quat)
        w = jnp.ones(q.shape[0], q.dtype) if weights is None else jnp.asarray(weights, q.dtype)
        if w.shape != q.shape[:1]:
            raise IllTyped("the weights do not fit the rotations", str(q.shape[:1]), str(w.shape))
        products = jnp.matmul((w[:, None] * q).T, q, precision="highest")
        return Rotation(jnp.linalg.eigh(products).eigenvectors[:, -1])

    @property
    def single(self) -> bool:
        """Return whether this is one rotation."""
        return self.quat.ndim == 1


@register_dataclass
@dataclass(frozen=True)
class Slerp:
    """Interpolation at constant angular velocity between rotations at times; see :meth:`init`."""

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Return the interpolation of rotations at increasing times.

        Raises:
            BadArgument: fewer than two rotations.
            IllTyped: not a vector of times, one for each rotation.

        >>> from effax.scipy.spatial.transform import Rotation, Slerp
        >>> ends = Rotation.from_euler("z", jnp.array([0.0, 1.0]))
        >>> Slerp.init(jnp.array([0.0, 2.0]), ends)(1.0).magnitude()
        Array(0.5, dtype=float32)
        """
        if rotations.single or len(rotations) < 2:
            raise BadArgument("Slerp interpolates between rotations", "two or more", "one")
        given = _inexact(times)
        if given.shape != (len(rotations),):
            expected = f"times of shape ({len(rotations)},)"
            raise IllTyped("Slerp takes a time for each rotation", expected, str(given.type))
        steps = Rotation(rotations.quat[:-1]).inv() * Rotation(rotations.quat[1:])
        return cls(given, jnp.diff(given), rotations, steps.as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """Return the rotations at times, of shape () or (n,), between the first and the last."""
        at = _inexact(times)
        if at.ndim > 1:
            raise IllTyped("Slerp is called with a scalar or a vector", "1 axis", str(at.type))
        place = jnp.searchsorted(self.times, at, side="right") - 1
        place = jnp.clip(place, 0, self.timedelta.shape[0] - 1)
        share = ((at - self.times[place]) / self.timedelta[place])[..., None]
        turned = Rotation.from_rotvec(self.rotvecs[place] * share)
        return Rotation(self.rotations.quat[place]) * turned


def _inexact(x: ArrayLike) -> Array:
    value = jnp.asarray(x)
    return value.astype(jnp.result_type(value, float))


def _fitting(x: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    value = _inexact(x)
    if value.ndim not in (len(shape), len(shape) + 1) or value.shape[-len(shape) :] != shape:
        raise IllTyped(f"{what} have another shape", f"{shape} or (n, ...)", str(value.type))
    return value
