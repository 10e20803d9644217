"""Fourier transforms against NumPy, eager and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, IllTyped
from tests.unit.transforms.array_cases import normal

X, Z = normal(4, 6, dtype="float32"), normal(4, 5, dtype="complex64")
C = normal(2, 3, 2, 4, dtype="float32")

CALLS: dict[str, Any] = {
    "fft": lambda f: f.fft(Z),
    "fft real": lambda f: f.fft(X, 8),
    "fft cut": lambda f: f.fft(Z, 3, 0, "ortho"),
    "ifft": lambda f: f.ifft(Z, norm="forward"),
    "rfft": lambda f: f.rfft(X, axis=0),
    "rfft odd": lambda f: f.rfft(X, 5, norm="forward"),
    "irfft": lambda f: f.irfft(Z),
    "irfft odd": lambda f: f.irfft(Z, 7, norm="ortho"),
    "hfft": lambda f: f.hfft(Z),
    "ihfft": lambda f: f.ihfft(X, norm="ortho"),
    "fft2": lambda f: f.fft2(C, norm="ortho"),
    "ifft2": lambda f: f.ifft2(Z, s=(2, 7)),
    "rfft2": lambda f: f.rfft2(C, axes=(0, 2)),
    "irfft2": lambda f: f.irfft2(Z),
    "fftn": lambda f: f.fftn(C),
    "ifftn": lambda f: f.ifftn(C, axes=(1, 3, 0)),
    "rfftn": lambda f: f.rfftn(C),
    "irfftn": lambda f: f.irfftn(C),
    "irfftn sizes": lambda f: f.irfftn(C, s=(3, 5), axes=(0, 1)),
    "fftfreq": lambda f: f.fftfreq(5, 0.5),
    "rfftfreq": lambda f: f.rfftfreq(6),
    "fftshift": lambda f: f.fftshift(X),
    "ifftshift": lambda f: f.ifftshift(Z, 1),
    "fftshift axes": lambda f: f.fftshift(C, (0, 3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_transforms_agree_with_numpy(name: str) -> None:
    ours, theirs = CALLS[name](jnp.fft), CALLS[name](np.fft)
    assert ours.shape == theirs.shape
    assert ours.dtype.kind == theirs.dtype.kind
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_compiled_as_evaluated() -> None:
    found = effax.jit(lambda: {name: call(jnp.fft) for name, call in CALLS.items()})()
    for name, call in CALLS.items():
        np.testing.assert_allclose(
            np.asarray(found[name]), np.asarray(call(jnp.fft)), rtol=1e-4, atol=1e-4, err_msg=name
        )


def test_bad_input() -> None:
    with pytest.raises(IllTyped, match="rfft takes real arrays"):
        jnp.fft.rfft(Z)
    with pytest.raises(BadArgument, match="unknown norm"):
        jnp.fft.fft(Z, norm="sideways")
    with pytest.raises(BadArgument, match="of no elements"):
        jnp.fft.fft(Z, 0)
    with pytest.raises(BadArgument, match="one length per axis"):
        jnp.fft.fftn(Z, s=(2, 3), axes=(0,))
