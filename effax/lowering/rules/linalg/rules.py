"""The lowering rules of factorisations of matrices."""

from __future__ import annotations

from typing import Final

from effax.ir.prims import linalg as p
from effax.lowering.rules.linalg import lapack, programs
from effax.lowering.writer import NO_RULES, Expansion, LoweringRules

RULES: Final[LoweringRules] = (
    NO_RULES.extend(p.Cholesky, Expansion(programs.cholesky_program))
    .extend(p.TriangularSolve, programs.triangular_solve)
    .extend(p.Qr, Expansion(programs.qr_program))
    .extend(p.Eigh, Expansion(programs.eigh_program))
    .extend(p.Svd, Expansion(programs.svd_program))
    .extend(p.Lu, Expansion(programs.lu_program))
    .extend(p.Eig, programs.on_host)
    .extend(p.Schur, programs.on_host)
    .extend(programs.Factor, programs.factor)
    .extend(programs.Reflections, programs.reflections)
    .extend(programs.ProductOfReflections, programs.product)
    .extend(programs.Rotations, programs.rotations)
)

HOST_RULES: Final[LoweringRules] = (
    NO_RULES.extend(p.Cholesky, Expansion(lapack.cholesky))
    .extend(p.TriangularSolve, lapack.triangular_solve)
    .extend(p.Lu, lapack.lu)
    .extend(p.Eigh, Expansion(lapack.eigh))
    .extend(p.Eig, Expansion(lapack.eig))
    .extend(p.Schur, Expansion(lapack.schur))
    .extend(p.Svd, Expansion(lapack.svd))
    .extend(programs.Reflections, lapack.reflections)
    .extend(programs.ProductOfReflections, lapack.product)
    .extend(lapack.Routine, lapack.routine)
)
"""Rules for modules that run in this process; ``Qr`` is the portable program."""
