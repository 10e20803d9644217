"""Special functions of complex numbers, hypergeometric functions, spherical harmonics."""

from __future__ import annotations

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import IllTyped, NotSupported
from effax.scipy import special

RNG = np.random.default_rng(0)
Z = (RNG.normal(size=30) + 1j * RNG.normal(size=30)) * 4

pytestmark = pytest.mark.slow


def close(found: object, expected: object, rtol: float = 1e-11) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=rtol, atol=rtol)


def test_gamma_in_the_plane_has_its_recurrence_values_and_cut() -> None:
    with effax.enable_x64(True):
        for run in (lambda f: f, effax.jit):
            made = run(special.loggamma)(Z)
            close(run(special.loggamma)(Z + 1) - made, np.log(Z))
            close(run(special.gamma)(Z + 1) / run(special.gamma)(Z), Z)
        close(special.loggamma(jnp.array([1 + 1j])), [-0.6509231993018556 - 0.3016403204675331j])
        # On the cut, the sign of zero is the side.
        sides = special.loggamma(jnp.array([complex(-1.5, 0.0), complex(-1.5, -0.0)]))
        close(sides.imag, [-2 * np.pi, 2 * np.pi])
        slope = effax.grad(special.loggamma, holomorphic=True)(jnp.asarray(3 + 0j))
        close(slope, special.digamma(3.0))


def test_the_error_function_in_the_plane() -> None:
    with effax.enable_x64(True):
        w = special.wofz(jnp.array([1 + 1j, 0j, 2 - 1j]))
        close(w[0], 0.30474420525691254 + 0.20821893820283163j)
        close(w[1], 1)
        close(special.erfcx(jnp.array([0.5 + 0j])), special.erfcx(jnp.array([0.5])))
        close(special.wofz(Z) + special.wofz(-Z), 2 * np.exp(-Z * Z), 1e-9)
        with pytest.raises(IllTyped, match="complex"):
            special.wofz(1.0)


def test_hypergeometric_functions_have_their_closed_forms() -> None:
    x = np.array([-30.0, -0.7, 0.0, 0.3, 0.9])
    with effax.enable_x64(True):
        close(special.hyp1f1(1.0, 2.0, x[1:]), [-np.expm1(-0.7) / 0.7, 1, *np.expm1(x[3:]) / x[3:]])
        close(special.hyp1f1(1.5, 1.5, x), np.exp(x))
        logs = [1 if t == 0 else -np.log1p(-t) / t for t in x]
        for run in (lambda f: f, effax.jit):
            close(run(special.hyp2f1)(1.0, 1.0, 2.0, x), logs)
        close(
            special.hyp2f1(0.3, 1.2, 1.2, np.array([0.5, 0.99, -3])),
            np.array([0.5, 0.01, 4]) ** -0.3,
        )
        # Γ(2)·Γ(1)/(Γ(3/2)·Γ(3/2)), by Gauss's theorem
        close(special.hyp2f1(0.5, 0.5, 2.0, 1.0), 4 / np.pi)
        assert np.isnan(special.hyp2f1(0.5, 0.5, 2.0, 1.5))


def test_spherical_harmonics_are_those_of_low_degree() -> None:
    theta, phi = np.array([0.3, 1.0, 2.0]), np.array([0.1, -2.0, 4.0])
    with effax.enable_x64(True):
        up = special.sph_harm_y(np.array([1]), np.array([1]), theta, phi)
        close(up, -np.sqrt(3 / (8 * np.pi)) * np.sin(theta) * np.exp(1j * phi))
        down = special.sph_harm_y(np.array([1]), np.array([-1]), theta, phi)
        close(down, -np.conj(up))
        made = effax.jit(lambda n: special.sph_harm_y(n, jnp.array([0]), theta, phi, n_max=2))
        close(made(np.array([2])), np.sqrt(5 / (16 * np.pi)) * (3 * np.cos(theta) ** 2 - 1))
    with pytest.raises(NotSupported, match="derivatives"):
        special.sph_harm_y(np.array([1]), np.array([1]), theta, phi, diff_n=1)


def test_the_cosine_integral_of_negative_numbers_is_that_of_their_size() -> None:
    sine, cosine = special.sici(jnp.array([-1.2, 1.2, -30.0, 30.0]))
    np.testing.assert_array_equal(np.asarray(cosine[::2]), np.asarray(cosine[1::2]))
    np.testing.assert_array_equal(np.asarray(sine[::2]), -np.asarray(sine[1::2]))
