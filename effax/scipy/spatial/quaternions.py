"""Quaternions of rotations, on the last axis: the vector part, then the scalar.

Sources: Markley 2008, Unit quaternion from rotation matrix; Bernardes and Viollet 2022, Quaternion
to Euler angles conversion; Terzakis et al. 2018, Modified Rodrigues parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import effax.numpy as jnp
from effax.arrays.array import Array
from effax.ir.errors import BadArgument

AXES: Final = "xyz"
NEAR: Final = 1e-3
"""The angle below which quotients of angles and sines are series."""
LOCKED: Final = 1e-7
"""The distance of the second Euler angle from 0 and π at which the others are not unique."""


def norm(x: Array) -> Array:
    """Return the norms, with an axis of size 1; the derivative at 0 is 0."""
    return jnp.linalg.norm(x, axis=-1, keepdims=True)


def normalized(q: Array) -> Array:
    """Return quaternions of norm 1."""
    return q / norm(q)


def vector(q: Array) -> Array:
    """Return the vector part."""
    return q[..., :3]


def scalar(q: Array) -> Array:
    """Return the scalar part, on an axis of size 1."""
    return q[..., 3:]


def product(p: Array, q: Array) -> Array:
    """Return the quaternions of q's rotation followed by p's (Hamilton)."""
    p, q = jnp.broadcast_arrays(p, q)
    across = jnp.cross(vector(p), vector(q))
    along = jnp.sum(vector(p) * vector(q), -1, keepdims=True)
    turned = scalar(p) * vector(q) + scalar(q) * vector(p) + across
    return jnp.concatenate([turned, scalar(p) * scalar(q) - along], -1)


def conjugate(q: Array) -> Array:
    """Return the quaternions of the inverse rotations."""
    return jnp.concatenate([-vector(q), scalar(q)], -1)


def canonical(q: Array) -> Array:
    """Return the one of q and -q whose last nonzero of w, x, y, z, in this order, is positive."""
    ordered = jnp.roll(q, 1, -1)
    negative = ordered[..., 3] < 0
    for i in (2, 1, 0):
        here = ordered[..., i]
        negative = jnp.where(here == 0, negative, here < 0)
    return jnp.where(negative[..., None], -q, q)


def to_matrix(q: Array) -> Array:
    """Return orthogonal matrices."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def from_matrix(m: Array) -> Array:
    """Return quaternions by the largest of the diagonal and the trace (Markley)."""
    diagonal = jnp.diagonal(m, axis1=-2, axis2=-1)
    trace = jnp.sum(diagonal, -1, keepdims=True)
    rows = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts: list[Array] = [trace[..., 0]] * 4
        parts[i] = 1 - trace[..., 0] + 2 * m[..., i, i]
        parts[j] = m[..., j, i] + m[..., i, j]
        parts[k] = m[..., k, i] + m[..., i, k]
        parts[3] = m[..., k, j] - m[..., j, k]
        rows.append(jnp.stack(parts, -1))
    of_trace = [m[..., k, j] - m[..., j, k] for j, k in ((1, 2), (2, 0), (0, 1))]
    rows.append(jnp.stack([*of_trace, 1 + trace[..., 0]], -1))
    choice = jnp.argmax(jnp.concatenate([diagonal, trace], -1), -1)
    found = jnp.take_along_axis(jnp.stack(rows, -2), choice[..., None, None], -2)
    return normalized(found[..., 0, :])


def to_rotvec(q: Array) -> Array:
    """Return the axes times the angles."""
    q = jnp.where(scalar(q) < 0, -q, q)
    size = norm(vector(q))
    angle = 2 * jnp.arctan2(size, scalar(q))
    near = angle <= NEAR
    series = 2 + angle**2 / 12 + 7 * angle**4 / 2880
    return vector(q) * jnp.where(near, series, angle / jnp.where(near, 1, size))


def from_rotvec(v: Array) -> Array:
    """Return the quaternions of rotations about vectors, by their norms."""
    angle = norm(v)
    near = angle <= NEAR
    series = 0.5 - angle**2 / 48 + angle**4 / 3840
    half = jnp.sin(angle / 2) / jnp.where(near, 1, angle)
    return jnp.concatenate([v * jnp.where(near, series, half), jnp.cos(angle / 2)], -1)


def to_mrp(q: Array) -> Array:
    """Return tangents of a quarter of the angles, along the axes."""
    sign = jnp.where(scalar(q) < 0, -1, 1).astype(q.dtype)
    return sign * vector(q) / (1 + sign * scalar(q))


def from_mrp(p: Array) -> Array:
    """Return the quaternions of modified Rodrigues parameters."""
    square = jnp.sum(p * p, -1, keepdims=True)
    return jnp.concatenate([2 * p, 1 - square], -1) / (1 + square)


def sequence(seq: str) -> tuple[list[int], bool]:
    """Return the axes, and whether they are those of the space.

    Raises:
        BadArgument: unknown axes.
    """
    extrinsic = seq.islower()
    known = seq.islower() or seq.isupper()
    axes = [AXES.find(c) for c in seq.lower()]
    twice = any(a == b for a, b in pairwise(axes))
    if not known or not 1 <= len(seq) <= 3 or -1 in axes or twice:
        raise BadArgument(
            "unknown axes of rotation",
            expected="1 to 3 of x, y, z, or X, Y, Z for moving axes, neighbours different",
            found=repr(seq),
        )
    return axes, extrinsic


def from_euler(angles: Array, axes: Sequence[int], extrinsic: bool) -> Array:
    """Return the product of the rotations about the axes; angles are on the last axis."""
    found: Array | None = None
    for i, axis in enumerate(axes):
        half = angles[..., i] / 2
        parts: list[Array] = [jnp.zeros_like(half)] * 4
        parts[axis], parts[3] = jnp.sin(half), jnp.cos(half)
        turn = jnp.stack(parts, -1)
        if found is None:
            found = turn
        else:
            found = product(turn, found) if extrinsic else product(found, turn)
    assert found is not None
    return found


def to_euler(q: Array, axes: Sequence[int], extrinsic: bool) -> Array:
    """Return angles about three axes; the third is 0 where it is not determined."""
    i, j, k = axes if extrinsic else reversed(axes)
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = q[..., i], q[..., j], q[..., k] * sign, q[..., 3]
    a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    flat, turned = jnp.abs(middle) <= LOCKED, jnp.abs(middle - jnp.pi) <= LOCKED
    first, third = half_sum - half_difference, half_sum + half_difference
    if not extrinsic:
        first, third = third, first
    opposite = 2 * half_difference * (-1 if extrinsic else 1)
    first = jnp.where(flat, 2 * half_sum, jnp.where(turned, opposite, first))
    third = jnp.where(flat | turned, 0, third)
    if not symmetric:
        first, third = (first, third * sign) if extrinsic else (first * sign, third)
        middle = middle - jnp.pi / 2
    found = jnp.stack([first, middle, third], -1)
    turns = jnp.where(found < -jnp.pi, 1, jnp.where(found > jnp.pi, -1, 0))
    return found + 2 * jnp.pi * turns
