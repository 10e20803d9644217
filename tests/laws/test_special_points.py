"""Derivatives at zeros, ties and equal singular values: random programs and public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir import prims as p
from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.generate.values import Differs
from effax.testing.laws import Passes
from effax.testing.laws.special_points import check_derivatives, special_inputs
from effax.transforms.framework.rules import JvpOut
from effax.transforms.rules.common import matrices as m
from effax.transforms.rules.common.pointwise import const, mul
from tests.laws.trying import holds
from tests.planted.planting import planted

test_random_programs = holds(laws.derivatives_are_right_at_special_points)

la: Any = jnp.linalg
SEEDS = range(20)


def by_svd(a: Any) -> Any:
    u, s, vh = la.svd(a)
    return (u * s) @ vh


def by_eigh(a: Any) -> Any:
    w, v = la.eigh(a)
    return (v * w) @ v.T


FOR_EVERY_RANK: dict[str, Callable[[Any], Any]] = {
    "det": la.det,
    "the square of det": lambda a: la.det(a) ** 2,
}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "pinv": la.pinv,
    "pinv with a cutoff": lambda a: la.pinv(a, 1e-3),
    "slogdet": lambda a: la.slogdet(a).logabsdet,
    "norm nuc": lambda a: la.norm(a, "nuc"),
    "cholesky": lambda a: la.cholesky(a @ a.T),
    "matrix_power": lambda a: la.matrix_power(a, 3),
    "the sum of squares of eigenvalues": lambda a: jnp.sum(la.eigvalsh(a) ** 2),
    "the sum of squares of singular values": lambda a: jnp.sum(la.svdvals(a) ** 2),
    "the product of factors by svd": by_svd,
    "the product of factors by eigh": by_eigh,
    "the square of a norm": lambda a: la.norm(a) ** 2,
    "the square of a deviation": lambda a: jnp.std(a) ** 2,
    "a function of the square of a norm": lambda a: jnp.exp(-(la.norm(a) ** 2) / 9),
    "an even function of a norm": lambda a: jnp.cos(la.norm(a)),
    "roots of what is constant": lambda a: jnp.sqrt(effax.nn.relu(a)) + jnp.arcsin(a.clip(-1, 1)),
    "the square of a square root": lambda a: jnp.sqrt(jnp.sum(a * a)) ** 2,
    "a product of norms": lambda a: la.norm(a) * la.norm(a),
    "the cube root of a cube": lambda a: jnp.cbrt(a**3),
    "prod": jnp.prod,
    "sinc": jnp.sinc,
    "logsumexp": effax.nn.logsumexp,
}


def program(f: Callable[[Any], Any]) -> Jaxpr:
    with effax.enable_x64():
        return effax.make_jaxpr(f)(np.zeros((4, 4))).jaxpr


def seeds(jaxpr: Jaxpr) -> list[int]:
    """Return the seeds of points where factors are well conditioned, or exactly undetermined.

    Singular values that are equal up to rounding only have vectors of rounding.
    """
    points = [(seed, special_inputs(jaxpr.in_types, seed)[0]) for seed in SEEDS]
    return [seed for seed, a in points if np.linalg.matrix_rank(a) == 4 or not a.any()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions(name: str) -> None:
    jaxpr = program(FUNCTIONS[name])
    for seed in seeds(jaxpr):
        check_derivatives(jaxpr, seed, Passes())


@pytest.mark.parametrize("name", FOR_EVERY_RANK)
def test_functions_for_every_rank(name: str) -> None:
    jaxpr = program(FOR_EVERY_RANK[name])
    for seed in SEEDS:
        check_derivatives(jaxpr, seed, Passes())


def broken_by(passes: Passes, f: Callable[[Any], Any]) -> bool:
    jaxpr = program(f)
    for seed in seeds(jaxpr):
        try:
            check_derivatives(jaxpr, seed, passes)
        except Differs:
            return True
    return False


def vectors_that_stand_still(b: Any, prim: Any, primals: Any, tangents: Any) -> JvpOut:
    """Return 0 for the rotation of vectors of equal eigenvalues into each other."""
    w, v = b.emit(prim, primals)
    inner = m.matmul(b, m.matmul(b, m.adjoint(b, v), m.hermitian(b, tangents[0])), v)
    weights = m.inverse_differences(b, w)
    known = b(p.Eq(), weights, weights)
    turn = b(p.SelectN(), known, const(0, v), mul(b, weights, inner))
    return JvpOut([w, v], [m.diagonal(b, inner), m.matmul(b, v, turn)])


def flat_at_0(b: Any, prim: Any, primals: Any, tangents: Any) -> JvpOut:
    """Return a derivative of a magnitude at 0 that is constant."""
    y = b(prim, *primals)
    zero = b(p.Eq(), y, const(0, y))
    divisor = b(p.SelectN(), zero, y, const(1, y))
    half = b(p.Div(), b(p.SelectN(), zero, const(0.5, y), const(0, y)), divisor)
    return JvpOut([y], [mul(b, tangents[0], half)])


def zero_after_zero(b: Any, prim: Any, primals: Any, tangents: Any) -> JvpOut:
    """Return the tangent 0 for the tangent 0, though a cube has it at 0."""
    y = b(prim, *primals)
    slope = mul(b, b(p.IntegerPow(-2), y), const(1 / 3, y))
    return JvpOut([y], [b(p.StrongZeroMul(), tangents[0], slope)])


def test_vectors_that_stand_still_are_noticed() -> None:
    passes = Passes(planted(p.Eigh, jvp=vectors_that_stand_still))
    assert broken_by(passes, by_eigh)


def test_tangents_of_0_beside_any_infinite_slope_are_noticed() -> None:
    passes = Passes(planted(p.Cbrt, jvp=zero_after_zero))
    assert broken_by(passes, FUNCTIONS["the cube root of a cube"])


def test_second_derivatives_of_magnitudes_of_0_are_noticed() -> None:
    passes = Passes(planted(p.Magnitude, jvp=flat_at_0))
    assert broken_by(passes, FUNCTIONS["an even function of a norm"])


def test_squares_without_tangents_are_noticed() -> None:
    def still(b: Any, prim: Any, primals: Any, tangents: Any) -> JvpOut:
        return JvpOut([b(prim, *primals)], [None])

    passes = Passes(planted(p.StraightThrough, jvp=still))
    assert broken_by(passes, FUNCTIONS["the square of a norm"])
