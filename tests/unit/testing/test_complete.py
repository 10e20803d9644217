"""The lists of ``effax.testing`` are complete."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

import pytest

from effax.ir import walk
from effax.ir.registry import own_primitives
from effax.testing import generate, laws
from effax.testing.generate.catalogue import catalogue
from effax.testing.laws import Law

CASES: Final = "it needs operands that random values are not; array_cases.py has cases"
OF_AXES: Final = "it is made of others by `shard_map`"
OF_HOST: Final = "`effax.testing.laws.recording` inserts calls"
WITHOUT: Final[dict[str, str]] = {
    **dict.fromkeys(("cholesky", "eig", "eigh", "fft", "lu", "qr", "schur", "svd"), CASES),
    "triangular_solve": CASES,
    **dict.fromkeys(("conv_general_dilated", "cumlogsumexp"), CASES),
    **dict.fromkeys(("scatter_max", "scatter_min", "scatter_mul"), CASES),
    **dict.fromkeys(("debug_callback", "io_callback", "pure_callback"), OF_HOST),
    "all_gather_invariant": OF_AXES,
    "sharding_constraint": "tests/unit/devices place its results on devices",
    **dict.fromkeys(
        (
            "regularized_incomplete_beta",
            "regularized_incomplete_beta_grad_a",
            "regularized_incomplete_beta_grad_b",
        ),
        CASES,
    ),
    "dce_sink": "it has no results: tests/unit/lax/test_barriers.py",
    "check": "laws of `checkify` make programs with checks",
    "bitcast_convert_type": "rounding decides its results",
    "custom_lin": "partial evaluation makes it of `custom_vjp_call`",
    "dim_value": "it needs symbolic sizes, which are not evaluated",
    "straight_through": "its derivative is not that of its value",
}
"""Primitives that no random program has, and the reason."""


def test_every_law_is_in_laws() -> None:
    modules = [import_module(f"{laws.__name__}.{m.name}") for m in iter_modules(laws.__path__)]
    defined = {
        name
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Law) and value.check.__module__ == module.__name__
    }
    assert defined == {law.name for law in laws.LAWS}


@pytest.mark.slow
def test_every_primitive_has_a_generator() -> None:
    """A primitive is in the source of a family of generators, or in the catalogue of pairs."""
    folder = Path(*generate.__path__)
    text = "".join([path.read_text("utf-8") for path in sorted(folder.glob("*.py"))])
    written = {*re.findall(r"\b[A-Z][A-Za-z0-9]+\b", text)}
    drawn = {place.eqn.prim.name for jaxpr in catalogue() for place in walk(jaxpr)}
    lacking = {
        name
        for name, cls in own_primitives().items()
        if name not in drawn and cls.__name__ not in written
    }
    assert lacking == {*WITHOUT}
