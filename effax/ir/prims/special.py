"""Special functions: gamma and its kin, incomplete gamma and beta, Bessel, zeta.

Their meaning is a formula, which lowering writes as a program: evaluated and compiled values agree
to a few units of the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from effax.ir.prims.common.operands import FLOATS, Binary, Elementwise, Meaning, Unary
from effax.ir.prims.common.special import bessel, gamma, incomplete
from effax.ir.prims.common.special.reals import RealValue, on_numpy

__all__ = [
    "BesselI0e",
    "BesselI1e",
    "Digamma",
    "Igamma",
    "IgammaGradA",
    "Igammac",
    "Lgamma",
    "Polygamma",
    "RandomGammaGrad",
    "RegularizedIncompleteBeta",
    "RegularizedIncompleteBetaGradA",
    "RegularizedIncompleteBetaGradB",
    "Zeta",
    "ZetaGradX",
]


class Formula(Elementwise):
    """A function of floats that is a formula."""

    __slots__ = ()
    transcendental = True
    accepts: ClassVar[frozenset[str]] = FLOATS
    formula: ClassVar[Callable[..., RealValue]]


class Lgamma(Formula, Unary):
    """log |Γ(x)|."""

    name = "lgamma"
    formula: ClassVar[Callable[..., RealValue]] = gamma.lgamma
    ufunc: ClassVar[Meaning] = on_numpy(gamma.lgamma)


class Digamma(Formula, Unary):
    """The derivative of log Γ(x)."""

    name = "digamma"
    formula: ClassVar[Callable[..., RealValue]] = gamma.digamma
    ufunc: ClassVar[Meaning] = on_numpy(gamma.digamma)


class Polygamma(Formula, Binary):
    """``polygamma(n, x)``: the n-th derivative of digamma."""

    name = "polygamma"
    formula: ClassVar[Callable[..., RealValue]] = gamma.polygamma
    ufunc: ClassVar[Meaning] = on_numpy(gamma.polygamma)


class Zeta(Formula, Binary):
    """``zeta(x, q)``: Hurwitz's zeta function, the sum of (q + k)^-x."""

    name = "zeta"
    formula: ClassVar[Callable[..., RealValue]] = gamma.zeta
    ufunc: ClassVar[Meaning] = on_numpy(gamma.zeta)


class ZetaGradX(Formula, Binary):
    """The derivative of ``zeta(x, q)`` in ``x``."""

    name = "zeta_grad_x"
    formula: ClassVar[Callable[..., RealValue]] = gamma.zeta_grad_x
    ufunc: ClassVar[Meaning] = on_numpy(gamma.zeta_grad_x)


class Igamma(Formula, Binary):
    """``igamma(a, x)``: the regularized lower incomplete gamma function."""

    name = "igamma"
    formula: ClassVar[Callable[..., RealValue]] = incomplete.igamma
    ufunc: ClassVar[Meaning] = on_numpy(incomplete.igamma)


class Igammac(Formula, Binary):
    """``igammac(a, x)``: the regularized upper incomplete gamma function."""

    name = "igammac"
    formula: ClassVar[Callable[..., RealValue]] = incomplete.igammac
    ufunc: ClassVar[Meaning] = on_numpy(incomplete.igammac)


class IgammaGradA(Formula, Binary):
    """The derivative of ``igamma(a, x)`` in ``a``."""

    name = "igamma_grad_a"
    formula: ClassVar[Callable[..., RealValue]] = incomplete.igamma_grad_a
    ufunc: ClassVar[Meaning] = on_numpy(incomplete.igamma_grad_a)


class RandomGammaGrad(Formula, Binary):
    """``random_gamma_grad(a, x)``: the derivative of a gamma variate x in its shape a."""

    name = "random_gamma_grad"
    formula: ClassVar[Callable[..., RealValue]] = incomplete.random_gamma_grad
    ufunc: ClassVar[Meaning] = on_numpy(incomplete.random_gamma_grad)


class RegularizedIncompleteBeta(Formula):
    """``regularized_incomplete_beta(a, b, x)``."""

    name = "regularized_incomplete_beta"
    arity = 3
    formula: ClassVar[Callable[..., RealValue]] = incomplete.betainc
    ufunc: ClassVar[Meaning] = on_numpy(incomplete.betainc)


class RegularizedIncompleteBetaGradA(Formula):
    """The derivative of ``regularized_incomplete_beta(a, b, x)`` in ``a``."""

    name = "regularized_incomplete_beta_grad_a"
    arity = 3
    formula: ClassVar[Callable[..., RealValue]] = incomplete.betainc_grad_a
    ufunc: ClassVar[Meaning] = on_numpy(incomplete.betainc_grad_a)


class RegularizedIncompleteBetaGradB(Formula):
    """The derivative of ``regularized_incomplete_beta(a, b, x)`` in ``b``."""

    name = "regularized_incomplete_beta_grad_b"
    arity = 3
    formula: ClassVar[Callable[..., RealValue]] = incomplete.betainc_grad_b
    ufunc: ClassVar[Meaning] = on_numpy(incomplete.betainc_grad_b)


class BesselI0e(Formula, Unary):
    """``exp(-|x|)·I0(x)``: a modified Bessel function of order 0."""

    name = "bessel_i0e"
    formula: ClassVar[Callable[..., RealValue]] = bessel.i0e
    ufunc: ClassVar[Meaning] = on_numpy(bessel.i0e)


class BesselI1e(Formula, Unary):
    """``exp(-|x|)·I1(x)``: a modified Bessel function of order 1."""

    name = "bessel_i1e"
    formula: ClassVar[Callable[..., RealValue]] = bessel.i1e
    ufunc: ClassVar[Meaning] = on_numpy(bessel.i1e)
