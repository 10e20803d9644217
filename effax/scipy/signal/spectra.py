"""Trends and spectra of signals.

Source: Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

import effax.numpy as jnp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import plain_axis
from effax.arrays.shared_docs import shared_docs
from effax.ir.dtypes import is_complex
from effax.ir.errors import BadArgument, IllTyped

__all__ = ["csd", "detrend", "istft", "stft", "welch"]

PARAMETERS: Final = {
    "x": "signal.",
    "y": "other signal; None for ``x``.",
    "fs": "samples in a unit of time.",
    "window": "'hann', 'hamming', 'blackman', 'boxcar', or an array of weights.",
    "nperseg": "size of a segment.",
    "noverlap": "number of samples that segments share; half of a segment by default.",
    "nfft": "size of the transform, to which segments are filled with zeros.",
    "detrend": "'constant' or 'linear', what is subtracted from segments; False for nothing.",
    "return_onesided": "whether a real signal has frequencies from 0 on only.",
    "scaling": "'density' or 'spectrum'.",
    "axis": "axis of time.",
    "average": "'mean' or 'median' of the segments.",
    "padded": "whether the signal is filled with zeros to whole segments.",
}


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] = 0,
    overwrite_data: None = None,
) -> Array:
    """Return data without their mean or their linear trend.

    Args:
        data: array.
        axis: axis of time.
        type: "constant" for the mean, or "linear".
        bp: indices at which further trends begin.
        overwrite_data: accepted as in SciPy, without effect.

    Returns:
        Inexact array of the shape of ``data``.

    Raises:
        BadArgument: an unknown type.

    >>> signal.detrend(jnp.array([1.0, 2.0, 3.0]), type="constant")
    Array([-1.,  0.,  1.], dtype=float32)
    """
    if type not in ("constant", "linear"):
        raise BadArgument("unknown type of detrend", "'constant' or 'linear'", repr(type))
    values = jnp.asarray(data, dtype=jnp.result_type(float, data))
    place = plain_axis(axis, values.ndim, "detrend")
    last = jnp.moveaxis(values, place, -1)
    if type == "constant":
        return values - jnp.mean(values, place, keepdims=True)
    n = last.shape[-1]
    cuts = sorted({0, n, *np.ravel(np.asarray(bp, int)).tolist()})
    parts = [_without_line(last[..., a:b]) for a, b in pairwise(cuts)]
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, place)


def _without_line(x: Array) -> Array:
    n = x.shape[-1]
    time = jnp.asarray(np.arange(n) - (n - 1) / 2, jnp.real(x).dtype)
    square = max(n * (n * n - 1) / 12, 1e-30)
    slope = jnp.sum(x * time, -1, keepdims=True) / square
    return x - jnp.mean(x, -1, keepdims=True) - slope * time


def _window(window: str | ArrayLike, size: int) -> Array:
    """Return the weights of a segment; named windows are periodic."""
    turn = 2 * np.pi * np.arange(size) / size
    terms = {
        "hann": [0.5, 0.5],
        "hamming": [0.54, 0.46],
        "blackman": [0.42, 0.5, 0.08],
        "boxcar": [1.0],
        "rectangular": [1.0],
    }
    if isinstance(window, str) and window == "triang":
        # The first of one weight more, which are symmetric.
        half = np.minimum(np.arange(size) + 1, size + 1 - np.arange(size))
        return jnp.asarray((2 * half - size % 2) / (size + 2 - size % 2), float)
    if isinstance(window, str):
        if window not in terms:
            raise BadArgument("unknown window", ", ".join(sorted([*terms, "triang"])), repr(window))
        found = sum((-1) ** k * c * np.cos(k * turn) for k, c in enumerate(terms[window]))
        return jnp.asarray(np.broadcast_to(found, size), float)
    weights = jnp.asarray(window)
    if weights.shape != (size,):
        raise IllTyped("the window does not fit a segment", f"{size} weights", str(weights.type))
    return weights


def _segments(x: Array, size: int, step: int) -> Array:
    """Return the segments of the last axis, of shape (..., count, size)."""
    count = (x.shape[-1] - size) // step + 1
    return x[..., np.arange(count)[:, None] * step + np.arange(size)]


def _sizes(
    length: int, nperseg: int | None, noverlap: int | None, nfft: int | None
) -> tuple[int, int, int]:
    size = min(256 if nperseg is None else int(nperseg), length)
    shared = size // 2 if noverlap is None else int(noverlap)
    transform = size if nfft is None else int(nfft)
    if size < 1 or not 0 <= shared < size or transform < size:
        found = f"nperseg={size}, noverlap={shared}, nfft={transform}"
        raise BadArgument("segments do not fit", "0 <= noverlap < nperseg <= nfft", found)
    return size, shared, transform


def _flattened(x: Array, detrend_: str | bool) -> Array:
    return x if not detrend_ else detrend(x, type=str(detrend_))


def _spectra(
    x: Array, weights: Array, shared: int, nfft: int, trend: str | bool, onesided: bool
) -> Array:
    """Return the transforms of segments, of shape (..., frequencies, segments)."""
    size = weights.shape[0]
    parts = _flattened(_segments(x, size, size - shared), trend) * weights
    transform = jnp.fft.rfft if onesided else jnp.fft.fft
    return jnp.swapaxes(transform(parts, nfft), -1, -2)


def _frequencies(nfft: int, fs: ArrayLike, onesided: bool) -> Array:
    plain = np.fft.rfftfreq(nfft) if onesided else np.fft.fftfreq(nfft)
    return jnp.asarray(plain, float) * fs


@shared_docs(PARAMETERS, "``(frequencies, densities)``.")
def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | bool = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Return the cross spectral density of two signals, by Welch's method.

    Raises:
        BadArgument: an unknown option, or segments that do not fit.

    >>> signal.csd(jnp.ones(4), None, nperseg=4, detrend=False)[0]
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    if scaling not in ("density", "spectrum") or average not in ("mean", "median"):
        expected = "'density' or 'spectrum', 'mean' or 'median'"
        raise BadArgument("unknown scaling or average", expected, f"{scaling!r}, {average!r}")
    signals = [
        jnp.asarray(s, dtype=jnp.result_type(float, s)) for s in ([x] if y is None else [x, y])
    ]
    signals = [jnp.moveaxis(s, plain_axis(axis, s.ndim, "csd"), -1) for s in signals]
    length = max(s.shape[-1] for s in signals)
    signals = [jnp.pad(s, [*[(0, 0)] * (s.ndim - 1), (0, length - s.shape[-1])]) for s in signals]
    size, shared, transform = _sizes(length, nperseg, noverlap, nfft)
    onesided = return_onesided and not any(is_complex(s.dtype) for s in signals)
    weights = _window(window, size)
    spectra = [_spectra(s, weights, shared, transform, detrend, onesided) for s in signals]
    power = jnp.conj(spectra[0]) * spectra[-1]
    total = jnp.sum(weights**2) * fs if scaling == "density" else jnp.sum(weights) ** 2
    power = power / total
    if onesided:
        twice = np.full(power.shape[-2], 2.0)
        twice[0] = 1
        if transform % 2 == 0:
            twice[-1] = 1
        power = power * jnp.asarray(twice, jnp.real(power).dtype)[:, None]
    found = jnp.mean(power, -1) if average == "mean" else _median(power)
    found = jnp.real(found) if y is None else found
    return _frequencies(transform, fs, onesided), jnp.moveaxis(found, -1, axis)


def _median(power: Array) -> Array:
    """Return the median of the segments, without its bias for a noise."""
    count = power.shape[-1]
    odd = np.arange(3, count + 1, 2)
    bias = 1 + float(np.sum(1 / odd - 1 / (odd - 1)))
    parts = jnp.median(jnp.real(power), -1) + 1j * jnp.median(jnp.imag(power), -1)
    return parts / bias


@shared_docs(PARAMETERS, "``(frequencies, densities)``.")
def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | bool = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Return the power spectral density of a signal, by Welch's method.

    Raises:
        BadArgument: an unknown option, or segments that do not fit.

    >>> signal.welch(jnp.ones(4), nperseg=4)[1]
    Array([0., 0., 0.], dtype=float32)
    """
    return csd(
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


@shared_docs(
    PARAMETERS,
    "``(frequencies, times, transforms)``.",
    boundary="'zeros', 'even', 'odd', 'constant', or None: extension at both ends.",
)
def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | bool = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Return the Fourier transforms of overlapping segments.

    Raises:
        BadArgument: an unknown option, or segments that do not fit.

    >>> signal.stft(jnp.ones(8), nperseg=4)[2].shape
    (3, 5)
    """
    values = jnp.asarray(x, dtype=jnp.result_type(float, x))
    values = jnp.moveaxis(values, plain_axis(axis, values.ndim, "stft"), -1)
    size, shared, transform = _sizes(values.shape[-1], nperseg, noverlap, nfft)
    step, half = size - shared, size // 2
    onesided = return_onesided and not is_complex(values.dtype)
    if boundary is not None:
        values = _extended(values, boundary, half)
    if padded:
        rest = -(values.shape[-1] - size) % step % size
        values = jnp.pad(values, [*[(0, 0)] * (values.ndim - 1), (0, rest)])
    weights = _window(window, size)
    found = _spectra(values, weights, shared, transform, detrend, onesided) / jnp.sum(weights)
    first = 0.0 if boundary is not None else size / 2
    times = jnp.asarray(np.arange(found.shape[-1]) * step + first, float) / fs
    place = plain_axis(axis, values.ndim, "stft")
    return _frequencies(transform, fs, onesided), times, jnp.moveaxis(found, -2, place)


def _extended(x: Array, how: str, n: int) -> Array:
    modes = {"zeros": "constant", "even": "reflect", "constant": "edge"}
    pads = [*[(0, 0)] * (x.ndim - 1), (n, n)]
    if how in modes:
        return jnp.pad(x, pads, mode=modes[how])
    if how != "odd":
        raise BadArgument("unknown boundary", "zeros, even, odd or constant", repr(how))
    return 2 * jnp.pad(x, pads, mode="edge") - jnp.pad(x, pads, mode="reflect")


def istft(
    Zxx: ArrayLike,  # noqa: N803  SciPy's name
    fs: ArrayLike = 1.0,
    window: str | ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Return the signal whose transforms :func:`stft` returns.

    Args:
        Zxx: transforms.
        fs: samples in a unit of time.
        window: window of the transforms.
        nperseg: size of a segment; by the number of frequencies by default.
        noverlap: number of samples that segments share; half of a segment by default.
        nfft: size of the transform; ``nperseg`` by default.
        input_onesided: whether frequencies begin at 0.
        boundary: whether the signal was extended at both ends.
        time_axis: axis of the segments.
        freq_axis: axis of the frequencies.

    Returns:
        ``(times, signal)``, the samples at ``time_axis`` of the axes that remain.

    Raises:
        BadArgument: segments that do not fit.

    >>> signal.istft(signal.stft(jnp.ones(8), nperseg=4)[2])[1]
    Array([1., 1., 1., 1., 1., 1., 1., 1.], dtype=float32)
    """
    given = jnp.asarray(Zxx, dtype=jnp.result_type(complex, Zxx))
    spectra = jnp.moveaxis(given, (freq_axis, time_axis), (-2, -1))
    bins, count = spectra.shape[-2:]
    whole = 2 * (bins - 1) if input_onesided else bins
    size, shared, transform = _sizes(
        whole if nperseg is None else int(nperseg),
        nperseg or whole,
        noverlap,
        nfft or (whole if nperseg is None else max(whole, int(nperseg))),
    )
    weights = _window(window, size)
    back = jnp.fft.irfft if input_onesided else jnp.fft.ifft
    parts = back(jnp.swapaxes(spectra, -1, -2), transform)[..., :size]
    parts = parts * (weights * jnp.sum(weights))
    step = size - shared
    at = (np.arange(count)[:, None] * step + np.arange(size)).ravel()
    length = size + (count - 1) * step
    flat = jnp.reshape(parts, (*parts.shape[:-2], -1))
    total = jnp.zeros((*parts.shape[:-2], length), parts.dtype).at[..., at].add(flat)
    power = jnp.real(weights * jnp.conj(weights))
    squares = jnp.zeros(length, power.dtype).at[at].add(jnp.tile(power, count))
    total = total / jnp.where(squares > 1e-10, squares, 1)
    if boundary:
        total = total[..., size // 2 : length - size // 2]
    times = jnp.asarray(np.arange(total.shape[-1]), float) / fs
    place, other = (i % given.ndim for i in (time_axis, freq_axis))
    return times, jnp.moveaxis(total, -1, place - (other < place))
