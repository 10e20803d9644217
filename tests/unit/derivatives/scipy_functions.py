"""Calls of SciPy's functions with derivatives, and the reason for each without."""

from __future__ import annotations

import numpy as np

import effax.numpy as jnp
import effax.scipy.linalg as jsl
from effax.scipy import special
from tests.unit.derivatives.functions import (
    CREATES,
    A,
    Call,
    M,
    P,
    Q,
    Table,
    U,
    X,
    Y,
    of_symmetric,
    on,
    several,
)

INTEGRALS = ("dawsn", "exp1", "expi", "fresnel", "sici", "spence")
INCOMPLETE = ("gammainc", "gammaincc")

SPECIAL: Table = {
    **on("entr", special, P),
    **on("digamma factorial gamma gammaln i0 i0e i1 i1e loggamma", special, P),
    **on("beta betaln", special, P, Q),
    **{n: Call(getattr(special, n), (P,), compiled=False) for n in INTEGRALS},
    "expn": Call(lambda x: special.expn(2, x), (P,), order=1, compiled=False),
    "bessel_jn": Call(lambda x: special.bessel_jn(x, v=2), (P,), compiled=False),
    **on("boxcox boxcox1p owens_t", special, P, Q),
    **{n: Call(getattr(special, n), (P, Q), compiled=False) for n in ("comb", "poch")},
    **{n: Call(getattr(special, n), (P, Q), order=1, compiled=False) for n in INCOMPLETE},
    "betainc": Call(special.betainc, (P, Q, Q / 2), order=1, compiled=False),
    **several(special, {"gamma of negative numbers": (-P, []), "multigammaln": (P + 1, [2])}),
    "polygamma": Call(lambda x: special.polygamma(2, x), (P,), compiled=False),
    "zeta": Call(lambda q: special.zeta(2.5, q), (P,), compiled=False),
    **on("erf erfc erfcx expit log_ndtr ndtr", special, X),
    "hyp1f1": Call(special.hyp1f1, (P, Q, X), order=1, compiled=False),
    "hyp2f1": Call(special.hyp2f1, (P, Q, P + 1, U), order=1, compiled=False),
    "sph_harm_y": Call(
        lambda t, p: special.sph_harm_y(np.array([0, 1, 2]), np.array([0, -1, 1]), t, p).real,
        (P, Q),
        compiled=False,
    ),
    "wofz": Call(lambda x, y: special.wofz(jnp.asarray(x) + 1j * y).imag, (X, Y), compiled=False),
    "gamma of complex numbers": Call(
        lambda x, y: special.gamma(jnp.asarray(x) + 1j * y).imag, (X, Y), compiled=False
    ),
    **on("erfinv", special, U),
    **on("erfcinv logit ndtri", special, P / 3),
    **on("xlogy xlog1py", special, X, P),
    **on("rel_entr kl_div", special, P, Q),
    **on("logsumexp softmax log_softmax", special, X),
}

LINALG: Table = {
    **on("lu lu_factor hankel circulant companion fiedler toeplitz", jsl, A),
    **{n: Call(getattr(jsl, n), (A,), compiled=False) for n in ("det", "inv", "svd")},
    **on("fiedler_companion", jsl, X),
    **on("block_diag", jsl, A, M),
    **on("leslie", jsl, X, X[:2]),
    **on("solve solve_triangular", jsl, A, X),
    "lu_solve": Call(lambda a, b: jsl.lu_solve(jsl.lu_factor(a), b, 1), (A, X)),
    "cho_solve": Call(
        lambda a, b: jsl.cho_solve(jsl.cho_factor(a @ a.T + jsl.hilbert(3)), b), (A, X)
    ),
    "cho_factor": Call(of_symmetric(lambda a: jsl.cho_factor(a)[0]), (A,)),
    "solve positive": Call(
        lambda a, b: of_symmetric(lambda c: jsl.solve(c, b, assume_a="pos"))(a), (A, X)
    ),
    "eigh_tridiagonal": Call(jsl.eigh_tridiagonal, (X, X[:2]), compiled=False),
    **on("expm polar", jsl, A),
    "expm_frechet": Call(jsl.expm_frechet, (A, M[:1] * X[:, None]), compiled=False),
    "qr_multiply": Call(jsl.qr_multiply, (A, X), compiled=False),
    "hessenberg": Call(lambda a: jsl.hessenberg(a, calc_q=True), (A,), compiled=False),
    "sqrtm": Call(of_symmetric(jsl.sqrtm), (A,), compiled=False),
    "solve_sylvester": Call(jsl.solve_sylvester, (A, A + 1, A * 2), compiled=False),
    "rsf2csf": Call(jsl.rsf2csf, (A, A), compiled=False),
    "cholesky": Call(of_symmetric(jsl.cholesky), (A,)),
    "eigh": Call(of_symmetric(jsl.eigh), (A,)),
    "eigh generalized": Call(of_symmetric(lambda a: jsl.eigh(a, a * a, type=1)), (A,)),
    **several(
        jsl,
        {
            "convolution_matrix": (X, [2]),
            "qr": (A, []),
            "svd of values": (M, [{"compute_uv": False}]),
        },
    ),
}

TABLES = {"scipy.special": SPECIAL, "scipy.linalg": LINALG}

WITHOUT = {
    "scipy.special": {"gammasgn": "it is constant almost everywhere", "bernoulli": CREATES},
    "scipy.linalg": {
        **dict.fromkeys(
            ["dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"], CREATES
        ),
        **dict.fromkeys(["schur", "funm"], "Schur's form has no derivative"),
    },
}
