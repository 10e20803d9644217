"""Random programs are varied and well typed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from returns.result import Success

from effax.ir.analysis.check import check
from effax.ir.indexing import Indexer, Pick, Span
from effax.ir.prims import AddUpdate, Cond, Scan, Swap, While
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.types import RefType, Type
from effax.testing.generate.features import Features
from effax.testing.generate.steps import step_names
from effax.testing.strategies import (
    ANYTHING,
    COMPILED,
    NUMERIC,
    SMOOTH,
    linear_programs,
    programs,
    ref_types,
    types,
)

pytestmark = pytest.mark.slow

SEARCH = settings(
    max_examples=3000,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def every_eqn(jaxpr: Jaxpr, depth: int = 0) -> Iterator[tuple[int, Eqn]]:
    for eqn in jaxpr.eqns:
        yield depth, eqn
        for inner in eqn.prim.subjaxprs():
            yield from every_eqn(inner, depth + 1)


def sample(strategy: SearchStrategy[Jaxpr], n: int) -> list[Jaxpr]:
    found: list[Jaxpr] = []

    @settings(SEARCH, max_examples=n, phases=[Phase.generate])
    @given(strategy)
    def collect(jaxpr: Jaxpr) -> None:
        found.append(jaxpr)

    collect()
    return found


def test_programs_reach_every_family() -> None:
    seen = Counter(
        eqn.prim.name for jaxpr in sample(programs(ANYTHING), 400) for _, eqn in every_eqn(jaxpr)
    )
    common = ["add", "mul", "sin", "reduce_sum", "dot_general", "gather", "scatter", "select_n"]
    common += ["new_ref", "empty_ref", "get", "swap", "addupdate", "freeze", "free_ref"]
    common += ["jit", "scan", "cond", "while", "dynamic_slice", "dynamic_update_slice", "iota"]
    assert [name for name in common if seen[name] < 10] == []
    assert len(seen) > 70


def test_programs_nest_references_and_control() -> None:
    found = sample(programs(NUMERIC), 200)
    depths = Counter(depth for jaxpr in found for depth, _ in every_eqn(jaxpr))
    assert depths[1] > 100 and depths[2] > 20
    inside = [
        eqn
        for jaxpr in found
        for depth, eqn in every_eqn(jaxpr)
        if depth and isinstance(eqn.prim, Swap | AddUpdate)
    ]
    assert len(inside) > 100
    scanned = [
        eqn
        for jaxpr in found
        for _, eqn in every_eqn(jaxpr)
        if isinstance(eqn.prim, Scan)
        and any(isinstance(a.type, RefType) for a in eqn.prim.split(eqn.ins)[2])
    ]
    assert len(scanned) > 10


def test_indexers_mix_all_kinds_of_entries() -> None:
    kinds: Counter[str] = Counter()
    for jaxpr in sample(programs(NUMERIC), 300):
        for _, eqn in every_eqn(jaxpr):
            indexer = getattr(eqn.prim, "indexer", None)
            if isinstance(indexer, Indexer):
                kinds.update(_kind(dim) for dim in indexer.dims)
                kinds.update(
                    "array" for a in eqn.ins[1:] if a.type.dtype.kind == "i" and a.type.shape
                )
                kinds[indexer.mode.value] += 1
    expected = {"int", "traced int", "slice", "step", "traced slice", "array", "clip", "drop"}
    assert expected <= {kind for kind, n in kinds.items() if n >= 10}


def _kind(dim: Pick | Span) -> str:
    if isinstance(dim, Pick):
        return "traced int" if dim.at is None else "int"
    if dim.start is None:
        return "traced slice"
    return "slice" if dim.step == 1 else "step"


@pytest.mark.parametrize("features", [ANYTHING, NUMERIC, SMOOTH, COMPILED])
def test_features_are_kept(features: Features) -> None:
    pure = replace(features, refs=False, control=("jit",))
    for jaxpr in sample(programs(pure), 60):
        assert isinstance(check(jaxpr), Success)
        for _, eqn in every_eqn(jaxpr):
            assert not eqn.effects
            assert not isinstance(eqn.prim, Scan | Cond | While)
            for v in eqn.outs:
                numbers = (*features.floats, *features.complexes, *features.ints)
                allowed = (*numbers, np.dtype(bool))
                assert v.type.dtype in allowed


@pytest.mark.parametrize("step", step_names())
def test_focus_is_met(step: str) -> None:
    plain = Counter(e.prim.name for p in sample(programs(NUMERIC), 30) for _, e in every_eqn(p))
    focused = Counter(
        e.prim.name
        for p in sample(programs(replace(NUMERIC, focus=step)), 30)
        for _, e in every_eqn(p)
    )
    gained = {name for name, n in focused.items() if n > plain[name] + 2}
    assert gained, f"no primitive is more frequent with focus {step}"


def test_given_input_types_are_used() -> None:
    @settings(SEARCH, max_examples=50)
    @given(st.lists(types(), max_size=3), st.data())
    def check_types(wanted: list[Type], data: st.DataObject) -> None:
        jaxpr = data.draw(programs(ANYTHING, in_types=wanted, steps=2))
        assert jaxpr.in_types == tuple(wanted)
        assert isinstance(check(jaxpr), Success)

    check_types()


def test_linear_programs_say_what_is_linear() -> None:
    @settings(SEARCH, max_examples=100)
    @given(linear_programs())
    def check_scaling(program: tuple[Jaxpr, tuple[bool, ...]]) -> None:
        """f(c·x) = c·f(x), fixed inputs as they are."""
        from effax.testing.generate.values import check_all, random_inputs, run

        jaxpr, linear = program
        inputs = random_inputs(jaxpr.in_types, 0)
        scaled = [x * -2.0 if has else x for x, has in zip(inputs, linear, strict=True)]
        expected, found = run(jaxpr, inputs), run(jaxpr, scaled)
        check_all("result", [x * -2.0 for x in expected.outs], found.outs)
        refs = [
            has for t, has in zip(jaxpr.in_types, linear, strict=True) if isinstance(t, RefType)
        ]
        wanted = [x * -2.0 if has else x for x, has in zip(expected.contents, refs, strict=True)]
        check_all("final content", wanted, found.contents)

    check_scaling()


def test_ref_types_are_references() -> None:
    @settings(SEARCH, max_examples=20)
    @given(ref_types())
    def check_type(type_: Type) -> None:
        assert isinstance(type_, RefType)

    check_type()
