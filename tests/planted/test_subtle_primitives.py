"""Primitives that are wrong at few places are refused by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from effax import Array, extend
from effax.extend import Type, Value
from effax.ir.build import Builder
from effax.ir.errors import BadRule
from effax.testing import LawBroken, check_primitive
from effax.testing.laws import derivative, jvp_is_the_derivative
from tests.planted.subtle_primitives import WRONG, Scaled


@pytest.mark.parametrize(("prim", "types"), WRONG, ids=lambda x: getattr(x, "name", ""))
@pytest.mark.slow
def test_a_wrong_primitive_is_refused(prim: extend.Primitive, types: tuple[Type, ...]) -> None:
    """All are refused with any seed; nan is tried at those of the library too."""
    with pytest.raises((LawBroken, BadRule)):
        check_primitive(prim, *types, seeds=(4,))


@dataclass(frozen=True, slots=True)
class SizeTimes(Scaled):
    """``|x|·y``, without the tangent of x: a complex step does not show it."""

    name: ClassVar[str] = "size_times"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        x, y = ins
        return [np.asarray(np.abs(x) * y)]

    def jvp(
        self, primals: Sequence[Array], tangents: Sequence[Array | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        (x, y), (_, dy) = primals, tangents
        return [abs(x) * y], [None if dy is None else abs(x) * dy]


def test_a_complex_step_of_zero_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    # As for a primitive of the library, whose derivatives are complex steps.
    monkeypatch.setattr(derivative, "is_foreign", lambda jaxpr: False)
    b = Builder([extend.array_type((3,), "float64")] * 2)
    jaxpr = b.finish(b.emit(SizeTimes(), b.binders))
    with pytest.raises(LawBroken, match="tangent 0 differs"):
        jvp_is_the_derivative(jaxpr)
