"""Rotations against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import random
from effax.ir.errors import BadArgument, IllTyped
from effax.scipy.spatial.transform import Rotation, Slerp

theirs: Any = pytest.importorskip("scipy.spatial.transform")
Q: Any = np.random.default_rng(0).normal(size=(6, 4))
V = Q[:, :3]

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("q", [Q, Q[0]], ids=["several", "one"])
def test_representations(q: Any) -> None:
    ours, other = Rotation.from_quat(q), theirs.Rotation.from_quat(q)
    for name in ("as_matrix", "as_mrp", "as_rotvec", "as_quat", "magnitude"):
        same(getattr(ours, name)(), getattr(other, name)())
    same(ours.as_quat(canonical=True, scalar_first=True), other.as_quat(True, scalar_first=True))
    same(ours.apply(V[0]), other.apply(V[0]))
    same(ours.apply(V, inverse=True), other.apply(V, inverse=True))
    same((ours * ours.inv()).magnitude(), 0)
    for seq in ("xyz", "ZYX", "zxz", "YXY"):
        same(ours.as_euler(seq), other.as_euler(seq))
    same(effax.jit(lambda r: r.as_euler("xyz", degrees=True))(ours), other.as_euler("xyz", True))
    for name in ("from_mrp", "from_rotvec"):
        same(getattr(Rotation, name)(V).as_matrix(), getattr(theirs.Rotation, name)(V).as_matrix())
    same(Rotation.from_matrix(other.as_matrix()).as_matrix(), other.as_matrix())


def test_angles_about_axes() -> None:
    for seq, angles in (("xyz", V), ("ZX", V[:, :2]), ("y", V[:, :1]), ("y", 0.3), ("XYX", V[0])):
        wanted = theirs.Rotation.from_euler(seq, angles, degrees=True).as_matrix()
        same(Rotation.from_euler(seq, angles, degrees=True).as_matrix(), wanted)
    locked = Rotation.from_euler("xyz", jnp.array([0.2, jnp.pi / 2, 0.1]))
    same(Rotation.from_euler("xyz", locked.as_euler("xyz")).as_matrix(), locked.as_matrix())


def test_collections_and_interpolation() -> None:
    r, other = Rotation.from_quat(Q), theirs.Rotation.from_quat(Q)
    same(r.mean(np.arange(6.0)).as_matrix(), other.mean(np.arange(6.0)).as_matrix())
    same(Rotation.concatenate([r, r[0]]).as_quat(), np.concatenate([other.as_quat()] * 2)[:7])
    assert len(r) == 6 and r[0].single and Rotation.random(random.key(0), 3).quat.shape == (3, 4)
    same(Rotation.identity(2).as_matrix(), np.stack([np.eye(3)] * 2))
    times, at = np.arange(6.0), np.array([0, 0.3, 2.5, 5.0])
    wanted = theirs.Slerp(times, other)(at).as_matrix()
    slerp = Slerp.init(times, r)
    same(slerp(at).as_matrix(), wanted)
    same(effax.vmap(lambda t: slerp(t).as_matrix())(at), wanted)


def test_derivatives_at_the_identity() -> None:
    turned = effax.grad(lambda v: Rotation.from_rotvec(v).apply(jnp.ones(3))[0])(jnp.zeros(3))
    same(turned, [0, 1, -1])
    back = effax.jacfwd(lambda v: Rotation.from_rotvec(v).as_rotvec())(jnp.zeros(3))
    same(back, np.eye(3))


def test_bad_input() -> None:
    for seq in ("xx", "xZ", "w", ""):
        with pytest.raises(BadArgument, match="axes"):
            Rotation.from_euler(seq, V)
    with pytest.raises(BadArgument, match="three axes"):
        Rotation.identity().as_euler("x")
    for f in (Rotation.from_quat, Rotation.from_matrix):
        with pytest.raises(IllTyped, match="another shape"):
            f(V)
    with pytest.raises(TypeError, match="subscriptable"):
        Rotation.identity()[0]
    with pytest.raises(BadArgument, match="two or more"):
        Slerp.init(np.arange(1.0), Rotation.identity(1))
    with pytest.raises(IllTyped, match="a time for each"):
        Slerp.init(np.arange(3.0), Rotation.from_quat(Q))
