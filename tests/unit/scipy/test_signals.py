"""Convolutions, spectra, and interpolation, by their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, IllTyped
from effax.scipy import cluster, integrate, ndimage, signal
from effax.scipy import linalg as jsl
from effax.scipy.interpolate import RegularGridInterpolator
from effax.testing import check_grads

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=7), RNG.normal(size=3)


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_are_numpys(mode: Any) -> None:
    z = X + 1j * X[::-1]
    for x in (X, z):
        wanted = np.convolve(x, Y, mode)
        np.testing.assert_allclose(signal.convolve(x, Y, mode), wanted, atol=1e-12)
        np.testing.assert_allclose(signal.fftconvolve(x, Y, mode), wanted, atol=1e-12)
        np.testing.assert_allclose(signal.convolve(x, Y, mode, "fft"), wanted, atol=1e-12)
        wanted = np.correlate(x, Y * (1 + 1j), mode)
        np.testing.assert_allclose(signal.correlate(x, Y * (1 + 1j), mode), wanted, atol=1e-12)
    both = np.outer(np.convolve(X, Y, mode), np.convolve(X, Y, mode))
    found = signal.convolve2d(np.outer(X, X), np.outer(Y, Y), mode)
    np.testing.assert_allclose(found, both, atol=1e-12)
    flipped = signal.correlate2d(np.outer(X, X), np.outer(Y, Y)[::-1, ::-1], mode)
    np.testing.assert_allclose(flipped, both, atol=1e-12)


def test_refused_convolutions() -> None:
    with pytest.raises(BadArgument, match="unknown mode of convolve"):
        signal.convolve(X, Y, "other")
    with pytest.raises(IllTyped, match="takes other arrays"):
        signal.convolve(X, Y[None])
    with pytest.raises(BadArgument, match="fills with zeros"):
        signal.convolve2d(X[None], Y[None], boundary="wrap")


def test_trends() -> None:
    line = 2.0 * np.arange(9) + 1
    np.testing.assert_allclose(signal.detrend(line), 0, atol=1e-12)
    np.testing.assert_allclose(signal.detrend(line, type="constant"), line - 9)
    bent = np.concatenate([line[:4], line[4:] * -3])
    np.testing.assert_allclose(signal.detrend(bent, bp=4), 0, atol=1e-11)


def test_spectra() -> None:
    time = np.arange(64)
    wave = np.cos(2 * np.pi * time / 8)
    places, power = signal.welch(wave, nperseg=32, scaling="spectrum")
    assert places[int(jnp.argmax(power))] == 1 / 8
    np.testing.assert_allclose(jnp.max(power), 0.5, rtol=1e-6)
    noise = RNG.normal(size=64)
    density = signal.welch(noise, window="boxcar", nperseg=64, detrend=False)[1]
    np.testing.assert_allclose(jnp.sum(density) / 64, np.mean(noise**2), rtol=1e-10)
    cross = signal.csd(wave, 2 * wave, nperseg=32, scaling="spectrum")[1]
    np.testing.assert_allclose(cross, 2 * power, atol=1e-12)
    with pytest.raises(BadArgument, match="segments do not fit"):
        signal.welch(wave, nperseg=8, noverlap=8)
    with pytest.raises(BadArgument, match="unknown window"):
        signal.welch(wave, window="other")


@pytest.mark.parametrize("noverlap", [None, 12])
def test_a_signal_is_restored_from_its_transforms(noverlap: int | None) -> None:
    x = RNG.normal(size=(2, 50))

    def restored(x: Any) -> Any:
        transforms = signal.stft(x, nperseg=16, noverlap=noverlap)[2]
        return signal.istft(transforms, nperseg=16, noverlap=noverlap)[1][..., :50]

    np.testing.assert_allclose(restored(x), x, atol=1e-12)
    check_grads(restored, (x,), order=1)


def test_points_between_elements() -> None:
    image = np.arange(12.0).reshape(3, 4)
    at = [np.array([0.5, 1.0, 2.5, -0.25]), np.array([1.5, 0.0, 3.0, -1.0])]
    found = ndimage.map_coordinates(image, at, 1, "nearest")
    np.testing.assert_allclose(found, [3.5, 4, 11, 0])
    line = np.arange(4.0)
    outside = np.array([-1.0, -2.0, 4.0, 5.0])
    for mode, wanted in {
        "constant": [9, 9, 9, 9],
        "nearest": [0, 0, 3, 3],
        "wrap": [3, 2, 0, 1],
        "mirror": [1, 2, 2, 1],
        "reflect": [0, 1, 3, 2],
    }.items():
        for order in (0, 1):
            values = ndimage.map_coordinates(line, [outside], order, mode, cval=9.0)
            np.testing.assert_allclose(values, wanted, err_msg=mode)
    check_grads(
        lambda x, a, b: ndimage.map_coordinates(x, [a, b], 1), (image, at[0][:1], at[1][:1])
    )
    with pytest.raises(BadArgument, match="up to order 1"):
        ndimage.map_coordinates(line, [outside], 3)


@pytest.mark.slow
def test_grids() -> None:
    grid = (np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0]))
    values = grid[0][:, None] + 10 * grid[1]
    points = np.array([[0.5, 1.0], [2.0, 0.0], [4.0, 1.0]])
    inside = RegularGridInterpolator(grid, values)
    np.testing.assert_allclose(inside(points), [10.5, 2, np.nan])
    np.testing.assert_allclose(effax.jit(inside)(points), [10.5, 2, np.nan])
    beyond = RegularGridInterpolator(grid, values, fill_value=None)
    np.testing.assert_allclose(beyond((points[:, 0], points[:, 1])), [10.5, 2, 14])
    np.testing.assert_allclose(inside(np.array([0.75, 1.75]), "nearest"), 21)
    with pytest.raises(IllTyped, match="do not fit the values"):
        RegularGridInterpolator(grid, values[:2])


def test_integrals_and_codes() -> None:
    x = np.array([0.0, 1.0, 3.0])
    assert integrate.trapezoid(x, x) == 4.5
    np.testing.assert_allclose(integrate.trapezoid(np.ones((3, 2)), x, axis=0), [3, 3])
    codes, off = cluster.vq.vq(
        np.array([[0.0, 3.0], [5.0, 5.0]]), np.array([[4.0, 5.0], [0.0, 0.0]])
    )
    np.testing.assert_array_equal(codes, [1, 0])
    np.testing.assert_allclose(off, [3, 1])


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3)])
@pytest.mark.parametrize("unit", [1, 1 + 1j])
def test_packed_reflections(shape: tuple[int, ...], unit: complex) -> None:
    a = RNG.normal(size=shape) * unit + RNG.normal(size=shape)
    h, taus = jnp.linalg.qr(a, mode="raw")
    packed = jnp.matrix_transpose(h)
    rows = shape[-2]
    q = lax.linalg.ormqr(
        packed, taus, jnp.broadcast_to(jnp.eye(rows, dtype=a.dtype), (*shape[:-2], rows, rows))
    )
    np.testing.assert_allclose(q @ jnp.triu(packed), a, atol=1e-12)
    adjoint = jnp.conj(jnp.matrix_transpose(q))
    np.testing.assert_allclose(
        lax.linalg.ormqr(packed, taus, a, transpose=True), adjoint @ a, atol=1e-12
    )
    wide = jnp.matrix_transpose(a)
    np.testing.assert_allclose(
        lax.linalg.ormqr(packed, taus, wide, left=False), wide @ q, atol=1e-12
    )
    if shape[-2] >= shape[-1]:
        part = lax.linalg.householder_product(packed, taus)
        np.testing.assert_allclose(part, q[..., : shape[-1]], atol=1e-12)


def test_least_squares_and_tensors() -> None:
    a, b = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
    numpys: Any = np.linalg.lstsq(a, b)
    for found, wanted in zip(jnp.linalg.lstsq(a, b), numpys, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert jnp.linalg.lstsq(a[:2], b[:2], numpy_resid=True)[1].shape == (0,)
    t, y = RNG.normal(size=(2, 3, 6)), RNG.normal(size=(2, 3))
    np.testing.assert_allclose(jnp.linalg.tensorsolve(t, y), np.linalg.tensorsolve(t, y))
    np.testing.assert_allclose(jnp.linalg.tensorinv(t), np.linalg.tensorinv(t), atol=1e-12)
    with pytest.raises(IllTyped, match="do not fit"):
        jnp.linalg.tensorsolve(t, y[0])


def test_exponentials_of_matrices() -> None:
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    for angle in (0.1, 3.0, 50.0):
        wanted = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        np.testing.assert_allclose(jsl.expm(turn * angle), wanted, atol=1e-11)
    both = jsl.expm(np.stack([turn, np.zeros((2, 2))]))
    np.testing.assert_allclose(both[1], np.eye(2))
    assert jnp.isnan(jsl.expm(turn * 1e9)).all()
    u, _ = jsl.polar(RNG.normal(size=(4, 2)))
    np.testing.assert_allclose(u.T @ u, np.eye(2), atol=1e-12)
    w, v = jsl.eigh_tridiagonal(np.arange(3.0), np.ones(2), select="i", select_range=(1, 2))
    assert w.shape == (2,) and v.shape == (3, 2)
