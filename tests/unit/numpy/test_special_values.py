"""Elementwise functions at special values of each dtype: eager = compiled = NumPy's.

NumPy computes in double precision and rounds once. A function of the lists that is added is tried
at zeros of both signs, infinities, nan, the extremes, small and large numbers, and of complex
numbers on both sides of each branch cut.
"""

from __future__ import annotations

import pytest

from tests.unit.numpy import special_values as sv
from tests.unit.numpy.test_elementwise import BINARY, UNARY

DTYPES = [
    *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
    *("float16", "bfloat16", "float32", "complex64"),
]
# A sum near 1 of large terms cancels: the error is relative to the terms.
CANCEL = ("logaddexp2",)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("names", [UNARY, BINARY], ids=["unary", "binary"])
def test_eager_results_are_those_of_numpy(names: list[str], dtype: str) -> None:
    args = (sv.special(dtype),) if names is UNARY else sv.pairs(dtype)
    lines = []
    for name, found in sv.accepted(names, args).items():
        wanted = sv.expected(name, args, [x.dtype for x in found])
        if wanted is not None:
            roundings = sv.TOLERANCES.get(name, 16)
            lines += [f"{name}: {t}" for t in sv.differences(found, wanted, args, False, roundings)]
    assert not lines, "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("names", [UNARY, BINARY], ids=["unary", "binary"])
def test_compiled_results_are_the_eager_ones(names: list[str], dtype: str) -> None:
    args = (sv.special(dtype),) if names is UNARY else sv.pairs(dtype)
    eager = sv.accepted(names, args)
    found = sv.compiled(list(eager), args)
    lines = []
    for name in eager:
        if name not in CANCEL:
            roundings = sv.TOLERANCES.get(name, 16)
            new = sv.differences(found[name], eager[name], args, roundings=roundings)
            lines += [f"{name}: {t}" for t in new]
    assert not lines, "\n".join(lines)
