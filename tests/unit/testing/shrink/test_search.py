"""Programs that break a law are shrunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest
from returns.result import Success

from effax.ir import prims as p
from effax.ir.analysis.queries import size, walk
from effax.ir.edit.operations import everywhere, insert, replace_eqn
from effax.ir.prims import AddUpdate, Cond, DotGeneral, Freeze, Get, Jit, Rev, Scan, Swap, While
from effax.ir.syntax import Jaxpr, Lit
from effax.ir.types import RefType
from effax.passes import SIMPLIFIES, Guarantee, Pass
from effax.testing import (
    NUMERIC,
    About,
    Features,
    Law,
    LawBroken,
    Passes,
    check_law,
    check_laws,
    check_pass,
    law,
)
from effax.transforms.framework.rules import BatchOut
from effax.transforms.rules.common.pointwise import mul, unary_jvp
from effax.transforms.rules.default import DEFAULT_RULES

pytestmark = pytest.mark.slow


def reported(check: Callable[[], object]) -> LawBroken:
    """Return the error that a check must raise."""
    with pytest.raises(LawBroken) as broken:
        check()
    return broken.value


def sizes(broken: LawBroken) -> int:
    """Return the number of equations in a report."""
    return sum(size(x) for x in broken.arguments.values() if isinstance(x, Jaxpr))


def kinds(jaxpr: Jaxpr) -> set[type]:
    """The classes of all primitives, at every depth."""
    return {type(place.eqn.prim) for place in walk(jaxpr)}


def never(*wanted: type) -> Law[...]:
    """The law that no program has all of these."""

    @law(features=NUMERIC)
    def lacks(jaxpr: Jaxpr) -> None:
        assert not kinds(jaxpr) >= set(wanted)

    return lacks


@law(features=NUMERIC)
def no_scan_swaps(jaxpr: Jaxpr) -> None:
    """No scan has a swap in its body."""
    for place in walk(jaxpr):
        assert not (isinstance(place.eqn.prim, Scan) and Swap in kinds(place.eqn.prim.jaxpr))


@pytest.mark.parametrize(
    ("forbidden", "focus", "most"),
    [
        pytest.param(never(Get), "", 1, id="get"),
        pytest.param(never(Freeze), "", 2, id="freeze"),
        pytest.param(never(Jit), "", 2, id="jit"),
        pytest.param(never(While, AddUpdate), "", 5, id="addupdate beside while"),
        pytest.param(never(Cond, Swap), "", 4, id="swap beside cond"),
        pytest.param(no_scan_swaps, "scan", 4, id="swap in scan"),
    ],
)
def test_programs_get_small(forbidden: Law[...], focus: str, most: int) -> None:
    broken = reported(lambda: check_law(forbidden, focus=focus, examples=300))
    assert sizes(broken) <= most, str(broken)


def test_linear_programs_stay_linear() -> None:
    @law(about=About.LINEAR, features=NUMERIC)
    def no_products(jaxpr: Jaxpr, linear: tuple[bool, ...]) -> None:
        assert DotGeneral not in kinds(jaxpr)

    broken = reported(lambda: check_law(no_products))
    assert sizes(broken) == 1
    assert sum(broken.arguments["linear"]) == 1  # type: ignore[call-overload]  # a mask


def test_pairs_still_fit() -> None:
    @law(about=About.PAIRS, features=NUMERIC)
    def no_sines(first: Jaxpr, second: Jaxpr) -> None:
        assert p.Sin not in kinds(second)

    broken = reported(lambda: check_law(no_sines, examples=200))
    # The inputs of the second program are the results of the first: its loops stay.
    assert sizes(broken) <= 2
    first, second = broken.arguments["first"], broken.arguments["second"]
    assert isinstance(first, Jaxpr) and isinstance(second, Jaxpr)
    refs = [t for t in first.in_types if isinstance(t, RefType)]
    assert second.in_types == (*first.out_types, *refs)


def flipped(jaxpr: Jaxpr) -> Success[Jaxpr]:
    """The operands of the first sum the other way round: a second run puts them back."""
    for i, eqn in enumerate(jaxpr.eqns):
        if isinstance(eqn.prim, p.Add) and eqn.ins[0] != eqn.ins[1]:
            return Success(replace_eqn(jaxpr, i, p.Add(), eqn.ins[::-1]))
    return Success(jaxpr)


def doubled(jaxpr: Jaxpr) -> Success[Jaxpr]:
    """``x + y`` as ``2·x``, for all x and y of one type: it means something else."""

    def at_top(program: Jaxpr) -> Jaxpr:
        for i, eqn in enumerate(program.eqns):
            x = eqn.ins[0] if eqn.ins else None
            if isinstance(eqn.prim, p.Add) and x is not None and x.type.dtype == "float64":
                two = Lit(2.0, x.type.update(shape=()))  # type: ignore[union-attr]  # of an array
                if not x.type.shape:
                    program = replace_eqn(program, i, p.Mul(), [x, two])
        return program

    return Success(everywhere(at_top, jaxpr))


def copied(jaxpr: Jaxpr) -> Success[Jaxpr]:
    """A sine computed twice."""
    for i, eqn in enumerate(jaxpr.eqns):
        if isinstance(eqn.prim, p.Sin):
            return Success(insert(jaxpr, i, p.Sin(), eqn.ins)[0])
    return Success(jaxpr)


@pytest.mark.parametrize(
    ("step", "says", "most"),
    [
        (Pass("flips", flipped, SIMPLIFIES), "changes the program again", 2),
        (Pass("doubles", doubled), "differs", 2),
        (Pass("copies", copied, (Guarantee.NEVER_LARGER,)), "makes the program grow", 2),
    ],
    ids=["idempotent", "meaning", "larger"],
)
def test_faults_of_passes_are_small(step: Pass, says: str, most: int) -> None:
    deep = Features(steps=40, depth=3)
    broken = reported(lambda: check_pass(step, features=deep, examples=100))
    assert says in str(broken)
    assert sizes(broken) <= most, str(broken)


def reversed_elements(b: Any, prim: Any, ins: Any, batched: Any, size: int) -> BatchOut:
    """The batch rule of sine with the batch elements in the other order."""
    outs, flags = DEFAULT_RULES.rules[p.Sin].batch(b, prim, ins, batched, size)  # type: ignore[operator]  # it has one
    return BatchOut([b(Rev((0,)), outs[0])], flags)


WRONG_SINE: Final = partial(unary_jvp, lambda b, d, x, y: mul(b, d, x))


@pytest.mark.parametrize(
    ("rules", "only", "focus"),
    [
        ({"jvp": WRONG_SINE}, "jvp_is_the_derivative", "math.smooth"),
        ({"jvp": WRONG_SINE}, "vjp_is_adjoint_to_jvp", "math.smooth"),
        ({"batch": reversed_elements}, "vmap_is_stacking", "scan"),
        ({"batch": reversed_elements}, "vmap_commutes_with_jvp", "cond"),
    ],
)
def test_faults_of_rules_are_small(rules: dict[str, object], only: str, focus: str) -> None:
    wrong = replace(DEFAULT_RULES.rules[p.Sin], **rules)  # type: ignore[arg-type]  # dataclasses.replace checks the names
    passes = Passes(DEFAULT_RULES.extend(p.Sin, wrong))
    if only == "vjp_is_adjoint_to_jvp":
        # What is wrong in one way everywhere is its own adjoint.
        check_law(only, passes, focus=focus, examples=20)
        return
    broken = reported(lambda: check_law(only, passes, focus=focus, examples=300))
    assert sizes(broken) <= 4, str(broken)


def test_one_fault_is_reported_once() -> None:
    wrong = replace(DEFAULT_RULES.rules[p.Sin], batch=reversed_elements)
    passes = Passes(DEFAULT_RULES.extend(p.Sin, wrong))
    only = ["vmap_commutes_with_jvp", "vmap_is_stacking", "jvp_keeps_values"]
    broken = reported(
        lambda: check_laws(passes, only=only, focus="math.smooth", examples=99, seed=1)
    )
    assert broken.law.name == "vmap_is_stacking"
    assert "vmap_commutes_with_jvp" in broken.others
    assert str(broken).count("As a test:") == 1


def test_the_search_is_bounded_and_the_same_twice() -> None:
    first, second = (
        reported(lambda: check_law(never(While, AddUpdate), examples=300)) for _ in range(2)
    )
    assert first.arguments == second.arguments
