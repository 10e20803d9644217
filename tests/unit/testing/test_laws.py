"""User-defined laws: declarations, reports of what was tried, and errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from returns.result import Success

from effax.ir import prims as p
from effax.ir.axes import Axis
from effax.ir.errors import BadArgument, NotApplicable
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.passes import Pass
from effax.testing import (
    ANYTHING,
    NUMERIC,
    SMOOTH,
    About,
    Features,
    LawBroken,
    Passes,
    assume,
    check_law,
    check_laws,
    law,
    laws,
    step_names,
    strategies,
)
from effax.testing.generate.random_programs import subject
from effax.testing.generate.random_source import RandomSource
from effax.transforms.rules.default import DEFAULT_RULES

pytestmark = pytest.mark.slow

SINE = parse("{ lambda ; a:f64[]. let b:f64[] = sin a in (b,) }")


@law
def has_inputs(jaxpr: Jaxpr) -> None:
    """f has an input."""
    assert jaxpr.binders


@law(features=SMOOTH)
def jvp_has_the_inputs(f: Jaxpr, seed: int, passes: Passes) -> None:
    """jvp(f) takes what f takes, then tangents.

    Whatever the passes.
    """
    mask = tuple(bool(seed % 2) and t.dtype.kind == "f" for t in f.in_types)
    assume(any(mask))
    assert passes.jvp(f, mask).jaxpr.in_types[: len(f.in_types)] == f.in_types


def test_a_law_is_a_function_with_what_it_is_about() -> None:
    assert has_inputs.name == "has_inputs" and has_inputs.about is About.PROGRAMS
    assert has_inputs.features is ANYTHING
    assert jvp_has_the_inputs.equation == "jvp(f) takes what f takes, then tangents"
    assert repr(has_inputs) == "<law has_inputs: f has an input>"
    assert pickle.loads(pickle.dumps(has_inputs)) is has_inputs
    has_inputs(SINE)
    with pytest.raises(LawBroken, match="a law is broken: has_inputs\n  f has an input\n"):
        has_inputs(parse("{ lambda ; . let  in () }"))


def test_a_law_says_whether_it_says_anything() -> None:
    assert jvp_has_the_inputs.applies(SINE, 1, Passes())
    assert not jvp_has_the_inputs.applies(SINE, 0, Passes())


def test_check_law_reports_what_it_tried() -> None:
    tried = check_law(jvp_has_the_inputs, focus="scan", examples=40)
    assert tried.law == "jvp_has_the_inputs"
    assert tried.programs == len(tried.sizes) > 5
    assert tried.skipped > 5 and tried.programs + tried.skipped <= 40
    assert list(tried.sizes) == sorted(tried.sizes)
    assert dict(tried.primitives)["scan"] > tried.programs / 2
    least, most = tried.sizes[0], tried.sizes[-1]
    assert f"{tried.programs} programs of {least} to {most} equations" in str(tried)
    assert f"{tried.skipped} programs skipped" in str(tried)


def test_equal_arguments_try_equal_programs() -> None:
    assert check_law(has_inputs, examples=10) == check_law(has_inputs, examples=10)


def test_features_of_a_law_may_be_others() -> None:
    plain = Features(refs=False, control=())
    tried = check_law(has_inputs, features=plain, examples=30)
    assert not {"scan", "cond", "new_ref", "swap"} & set(dict(tried.primitives))


@pytest.mark.parametrize("about", [a for a in About if a is not About.EXPLICIT])
def test_every_kind_of_law_is_tried(about: About) -> None:
    seen: list[tuple[object, ...]] = []

    def keeps(*drawn: object) -> None:
        seen.append(drawn)

    names = ["first", "second", "third"][: about.count]
    source = f"lambda {', '.join(names)}: keeps({', '.join(names)})"
    made = law(about=about, features=NUMERIC)(eval(source, {"keeps": keeps}))
    check_law(made, examples=3)
    kinds: dict[About, tuple[type, ...]] = {
        About.PAIRS: (Jaxpr, Jaxpr),
        About.LINEAR: (Jaxpr, tuple),
        About.OPEN: (Jaxpr, Axis),
        About.OPEN_LINEAR: (Jaxpr, tuple, Axis),
    }
    assert seen
    for drawn in seen:
        assert tuple(map(type, drawn)) == kinds.get(about, (Jaxpr,))


def test_a_law_gets_what_it_names() -> None:
    given: list[object] = []

    @law
    def notes(
        f: Jaxpr, *, passes: Passes, step: object = None, seed: int = 0, more: int = 3
    ) -> None:
        given.append((passes.rules, step, more))

    step = Pass("identity", Success)
    mine = Passes(DEFAULT_RULES.extend(p.Sin, DEFAULT_RULES.rules[p.Cos]))
    check_law(notes, mine, step=step, examples=1)
    assert given == [(mine.rules, step, 3)]


def test_laws_of_ones_own_beside_those_of_the_library() -> None:
    tried = check_laws(only=["jvp_keeps_values", jvp_has_the_inputs], examples=8)
    assert [one.law for one in tried] == ["jvp_has_the_inputs", "jvp_keeps_values"]


def test_refusals_of_rules_are_reported() -> None:
    def refuses(*_: object) -> Any:
        raise NotApplicable("the sine of a batch is unknown")

    rules = replace(DEFAULT_RULES.rules[p.Sin], batch=refuses)
    passes = Passes(DEFAULT_RULES.extend(p.Sin, rules))
    tried = check_law("vmap_is_stacking", passes, focus="math.smooth", examples=40)
    assert tried.programs > 5
    ((reason, times),) = tried.refused
    assert reason == "the sine of a batch is unknown" and times > 5
    assert f"{times} programs refused: the sine" in str(tried)


@law
def says_nothing(jaxpr: Jaxpr) -> None:
    """Nothing."""
    assume(False)


@law(about=About.EXPLICIT)
def of_axes(axis: Axis) -> None:
    """An axis has a size."""
    assert axis.size


@law
def wants_more(jaxpr: Jaxpr, tolerance: float) -> None:
    """Something about a tolerance."""


def test_a_law_that_says_nothing_does_not_hold() -> None:
    with pytest.raises(BadArgument, match=r"tried on no program(.|\n)*9 programs skipped"):
        check_law(says_nothing, examples=9)
    with pytest.raises(BadArgument, match="tried on no program"):
        check_laws(only=[has_inputs, says_nothing], examples=3)


def test_hypothesis_may_assume_too() -> None:
    from hypothesis import assume as assume_of_hypothesis

    @law
    def of_scans(jaxpr: Jaxpr) -> None:
        assume_of_hypothesis("scan" in str(jaxpr))

    with pytest.warns(Warning, match="outside a property-based test"):
        tried = check_law(of_scans, examples=30)
    assert tried.skipped and tried.programs == dict(tried.primitives)["scan"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda jaxpr: None, r"this is no law(.|\n)*write `@law` above the function"),
        (3, r"this is no law\n(.|\n)*found: +3"),
        ("jvp_is_linar", r"unknown law(.|\n)*did you mean jvp_is_linear"),
        (of_axes, r"of_axes is not about random programs"),
        (laws.rule_is_sound, r"rule_is_sound is not about random programs"),
        (wants_more, r"wants_more has unknown parameters: tolerance(.|\n)*seed: an integer"),
        (laws.pass_is_a_function, r"pass_is_a_function is about a pass(.|\n)*step=\.\.\."),
    ],
)
def test_what_cannot_be_tried_is_refused(given: Any, says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        check_law(given, examples=1)


def test_a_law_of_nothing_is_refused_where_it_is_made() -> None:
    with pytest.raises(BadArgument, match=r"the law mine takes no program(.|\n)*def mine\(jaxpr"):

        @law
        def mine(seed: int) -> None:
            """Nothing."""

    with pytest.raises(BadArgument, match=r"does not take its subject(.|\n)*two programs"):

        @law(about=About.PAIRS)
        def other(jaxpr: Jaxpr) -> None:
            """A law of a pair."""


@pytest.mark.parametrize(
    ("focus", "near"),
    [("mul", "arith.mul"), ("scn", "scan"), ("refs.swp", "refs.swap"), ("dot", "contract.dot")],
)
def test_an_unknown_step_is_reported_with_similar_names(focus: str, near: str) -> None:
    with pytest.raises(BadArgument, match=rf"found: +{focus}\n +remedy: +did you mean .*{near}"):
        check_law(has_inputs, focus=focus, examples=1)


def test_unknown_features_are_refused() -> None:
    with pytest.raises(BadArgument, match="unknown control flow"):
        check_law(has_inputs, features=Features(control=("loop",)), examples=1)
    with pytest.raises(BadArgument, match="examples of at least 1"):
        check_law(has_inputs, examples=0)
    with pytest.raises(BadArgument, match="nothing is drawn"):
        subject(RandomSource(Random(0)), About.EXPLICIT)


def test_step_names_are_public() -> None:
    assert step_names is strategies.step_names
    assert {"scan", "arith.mul", "refs.swap"} <= set(step_names())


def test_laws_that_read_text_take_primitives() -> None:
    names = [law.name for law in laws.LAWS if law.takes("primitives")]
    assert names == [
        "parse_inverts_print",
        "parse_inverts_print_of_closed",
        "parse_refuses_other_texts",
        "equality_is_structural",
    ]


WITHOUT_HYPOTHESIS = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "hypothesis":
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
from effax.passes import cse
from effax.testing import check_law, check_laws, check_pass
print(check_law("jvp_keeps_values", examples=2).programs, len(check_laws(examples=1)) > 30)
print(check_pass(cse, examples=10).changed > 0)
"""


def test_laws_are_tried_without_hypothesis() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HYPOTHESIS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "True", "True"]
