"""What functions of programs remember is bounded by how much is built."""

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


def test_the_cache_is_cleared_after_many_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "EQUATIONS", 100)
    monkeypatch.setattr(memo.built, "equations", 0)

    @memo.memoize(maxsize=8)
    def size(jaxpr: Jaxpr) -> int:
        return len(jaxpr.eqns)

    size(chain(5))
    jvp(chain(2), (True, False))
    assert size.cache_info().currsize == 1
    for _ in range(30):
        chain(5)
    jvp(chain(2), (True, False))
    assert size.cache_info().currsize == 0
    assert memo.built.equations < 100


def test_shared_equations_are_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    jaxpr = chain(50)
    monkeypatch.setattr(memo.built, "equations", 0)
    jaxpr.replace(n_consts=1)
    assert memo.built.equations == 0
