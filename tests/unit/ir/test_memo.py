"""Caches of functions of programs are bounded by the equations that they keep."""

from __future__ import annotations

import pytest

from effax.ir import memo
from effax.ir.syntax import Jaxpr
from effax.transforms.jvp import jvp
from tests.unit.building import chain


def test_results_are_memoized() -> None:
    calls = []

    @memo.memoize(maxsize=8)
    def size(jaxpr: Jaxpr) -> int:
        calls.append(jaxpr)
        return len(jaxpr.eqns)

    assert size(chain(3)) == size(chain(3)) == 3
    assert len(calls) == 1
    assert size.__name__ == "size"


def test_caches_are_cleared_when_they_keep_many_equations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memo, "EQUATIONS", 100)
    monkeypatch.setattr(memo._load, "equations", 0)

    @memo.memoize(maxsize=64)
    def size(jaxpr: Jaxpr) -> int:
        return len(jaxpr.eqns)

    size(chain(5))
    jvp(chain(2), (True, False))
    assert size.cache_info().currsize == 1
    for n in range(20):
        size(chain(n))
    jvp(chain(2), (True, False))
    assert size.cache_info().currsize == 0
    assert memo._load.equations < 100


def test_a_program_that_no_cache_keeps_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo._load, "equations", 0)
    chain(50).replace(n_consts=1)
    assert memo._load.equations == 0


def test_equations_of_arguments_and_results_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo._load, "equations", 0)

    @memo.memoize(maxsize=8)
    def pair(jaxpr: Jaxpr, mask: tuple[bool, ...]) -> tuple[Jaxpr, Jaxpr]:
        return jaxpr, jaxpr

    for _ in range(3):
        pair(chain(5), (True,))
    assert memo._load.equations == 15
