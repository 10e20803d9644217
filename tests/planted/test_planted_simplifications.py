"""Bugs planted in the passes that make programs smaller: the law of passes notices each."""

from __future__ import annotations

import sys
from dataclasses import replace
from operator import attrgetter
from typing import Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from effax.ir import prims as p
from effax.ir.state import clear_caches
from effax.ir.syntax import Jaxpr
from effax.passes import (
    Pass,
    accumulate,
    cse,
    dead_stores,
    fold,
    forward_stores,
    fuse_accumulations,
    hoist,
    loop_carries,
    unroll_to,
)
from effax.testing import Inconclusive, laws
from effax.testing.laws import LawBroken
from effax.testing.strategies import NUMERIC, redundant_programs, seeds
from effax.transforms.optimize import licm
from effax.transforms.optimize.rewrite import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    App,
    Hole,
    Number,
    RewriteRule,
)
from effax.transforms.rules.while_.unroll import _trips as right_trips

TRIES: Final = 800

right_movable = licm._movable_in


def nothing(*_: object) -> None:
    """In the place of what takes note of a change."""


def one_too_many(*args: object) -> int | None:
    found = right_trips(*args)  # type: ignore[arg-type]
    return None if found is None else found + 1


def whatever_is_changed(region: object, types: object, fed: object, changed: object) -> object:
    return right_movable(region, types, fed, set())  # type: ignore[arg-type]


def carries_are_constants(region: object, types: object, fed: object, changed: object) -> object:
    return right_movable(region, types, set(), changed)  # type: ignore[arg-type]


def all_carries(eqn: object, ins: object, used: object) -> list[int]:
    regions = eqn.prim.regions()  # type: ignore[attr-defined]
    return [arg for _, arg in licm._results_of(regions) if ins[arg].type.dtype.kind == "f"][:1]  # type: ignore[index]


def first_branch(eqn: object, ins: object) -> Jaxpr | None:
    subjaxprs = eqn.prim.subjaxprs()  # type: ignore[attr-defined]
    if type(eqn.prim).__name__ != "Cond" or ins[0].type.shape or len(subjaxprs) < 2:  # type: ignore[attr-defined,index]
        return None
    given = tuple(a.type for a in ins[1:]), tuple(v.type for v in eqn.outs)  # type: ignore[attr-defined,index]
    return subjaxprs[0] if given == (subjaxprs[0].in_types, subjaxprs[0].out_types) else None


BUGS: Final[tuple[tuple[str, Pass, str, str, object], ...]] = (
    ("reads are shared across writes", cse, "cse", "_changed", nothing),
    ("whatever is pure or not is shared", cse, "cse", "_repeatable", lambda eqn: bool(eqn.outs)),
    ("a cond takes its first branch", fold, "fold", "_branch_taken", first_branch),
    ("stores do not overlap", forward_stores, "forward_stores", "_overlap", nothing),
    ("calls leave stores as they are", forward_stores, "forward_stores", "_forget", nothing),
    (
        "repeated and dropped positions hold what was stored",
        forward_stores,
        "forward_stores",
        "Position.is_distinct",
        property(lambda self: True),
    ),
    ("parts are always disjoint", forward_stores, "forward_stores", "disjoint", lambda a, b: True),
    ("reads do not see stores", dead_stores, "dead_stores", "_uncover", nothing),
    (
        "calls do not see stores",
        dead_stores,
        "dead_stores",
        "Read",
        type("Unsupported", (), {}),
    ),
    (
        "a sum may be stored after another store",
        accumulate,
        "accumulate",
        "_not_commuting",
        lambda kind, eqn: [],
    ),
    ("what is loaded is used once", accumulate, "accumulate", "_once", lambda a, uses: True),
    (
        "sums wait over reads",
        fuse_accumulations,
        "accumulate",
        "_not_commuting",
        lambda kind, eqn: [],
    ),
    ("what is written is constant", hoist, "licm", "_movable_in", whatever_is_changed),
    ("what is carried is constant", hoist, "licm", "_movable_in", carries_are_constants),
    ("what may change may leave", hoist, "licm", "_may_move", lambda eqn, stable: True),
    ("a carry never changes", loop_carries, "licm", "_unchanged", all_carries),
    ("a loop makes one step more", unroll_to(60), "rules.while_.unroll", "_trips", one_too_many),
)


ENDING: Final = replace(NUMERIC, control=("jit", "cond", "scan"))
"""Programs that end, whatever is done to them: a wrong condition may hold for ever."""


def hold(step: Pass, tries: int) -> None:
    """Try the law on random programs: the same ones, whatever the pass."""
    features = NUMERIC if step.name.startswith("unroll") else ENDING

    @settings(
        max_examples=tries,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        database=None,
        derandomize=True,
        deadline=None,
    )
    @given(st.data(), seeds)
    def holds(data: st.DataObject, seed: int) -> None:
        laws.pass_keeps_its_guarantees(data.draw(redundant_programs(features)), seed, step)

    holds()


@pytest.fixture
def clean() -> object:
    yield
    clear_caches()


@pytest.mark.parametrize(
    ("step", "module", "name", "wrong"), [bug[1:] for bug in BUGS], ids=[bug[0] for bug in BUGS]
)
def test_is_caught(
    step: Pass,
    module: str,
    name: str,
    wrong: object,
    clean: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clear_caches()
    place = module if "." in module else f"optimize.{module}"
    owner: object = sys.modules[f"effax.transforms.{place}"]
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, last, wrong)
    with pytest.raises(LawBroken):
        hold(step, TRIES)


x, y = Hole("x"), Hole("y")

WRONG_RULES: Final = (
    RewriteRule("x + 0 = x, of floats", App(p.Add, x, Number(0)), x, FLOATS),
    RewriteRule("0 - x = -x, of floats", App(p.Sub, Number(0), x), App(p.Neg, x), FLOATS),
    RewriteRule("x - x = 0, of floats", App(p.Sub, x, x), Number(0), FLOATS),
    RewriteRule("x · 0 = 0, of floats", App(p.Mul, x, Number(0)), Number(0), FLOATS),
    RewriteRule("x / x = 1", App(p.Div, x, x), Number(1), REALS),
    RewriteRule("x - y = y - x", App(p.Sub, x, y), App(p.Sub, y, x), NUMBERS),
    RewriteRule("-(x - y) = y - x", App(p.Neg, App(p.Sub, x, y)), App(p.Sub, y, x), FLOATS),
    RewriteRule("x · 1 = x, of complex", App(p.Mul, x, Number(1)), x, NUMBERS),
    RewriteRule("max(x, y) = x", App(p.Max, x, y), x, REALS),
    RewriteRule("log(exp(x)) = x", App(p.Log, App(p.Exp, x)), x, FLOATS),
    RewriteRule("-(-x) = -x", App(p.Neg, App(p.Neg, x)), App(p.Neg, x), INTEGERS),
)


@pytest.mark.parametrize("rule", WRONG_RULES, ids=attrgetter("name"))
def test_a_wrong_rule_is_caught(rule: RewriteRule) -> None:
    with pytest.raises(LawBroken):
        laws.rule_is_sound(rule)


def test_a_rule_that_never_applies_is_caught() -> None:
    rule = RewriteRule("x · 1 = x", App(p.Mul, x, Number(1)), x, REALS, where=lambda match: False)
    with pytest.raises(Inconclusive, match="does not apply"):
        laws.rule_is_sound(rule)
