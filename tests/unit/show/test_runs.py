"""Long programs: lists of runs of equations, references and leaves by their tree paths."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from effax import show
from effax.ir.syntax import Jaxpr
from effax.ir.text.printer import eqn_str
from effax.show.boxes import Box, Program
from effax.show.layout import place
from effax.show.model import Runs, model
from effax.show.parts import LONG, MOST, EqnRun, runs_of
from tests.unit.show.pages import chain, elements, jax, long_step, placed_programs, titles
from tests.unit.show.test_layout import overlaps

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def step() -> Jaxpr:
    return long_step()


def leaves(runs: tuple[EqnRun, ...]) -> list[EqnRun]:
    return [leaf for run in runs for leaf in (leaves(run.parts) if run.parts else [run])]


def test_runs_cover_the_program_and_are_few_and_short(step: Jaxpr) -> None:
    assert len(step.eqns) > 1900
    for program in (step, chain(1200)):
        runs = runs_of(program.eqns)
        ends = [(run.start, run.stop) for run in leaves(runs)]
        assert ends[0][0] == 0 and ends[-1][1] == len(program.eqns)
        assert all(a[1] == b[0] for a, b in pairwise(ends))
        assert max(stop - start for start, stop in ends) <= LONG
        assert 2 <= len(runs) <= MOST
    assert runs_of(chain(48).eqns) == ()


def test_runs_are_named_after_scopes_and_functions(step: Jaxpr) -> None:
    found = {run.title for run in leaves(runs_of(step.eqns))}
    assert any(title.startswith("adam") for title in found)
    assert any("h3" in title for title in found)


def boxes_of(program: Program) -> list[Box]:
    inner = [box for b in program.boxes for f in b.frames for box in boxes_of(f.program)]
    return [*program.boxes, *inner]


def test_an_open_list_has_every_equation_and_nothing_overlaps(step: Jaxpr) -> None:
    made = model(step, runs=Runs.OPEN)
    assert [b.full for b in boxes_of(made) if b.kind == "eqn"] == list(map(eqn_str, step.eqns))
    for placed in placed_programs(place(made)):
        assert not overlaps(placed)
        assert all(
            box.x > -0.01 and box.x + box.width < placed.width + 0.01 for box in placed.boxes
        )
        for box in placed.boxes:
            for frame in box.frames:
                assert frame.x + frame.program.width <= box.width + 0.01
                assert frame.y + frame.program.height <= box.height + 0.01


def test_references_and_results_are_grouped_by_their_paths(step: Jaxpr) -> None:
    svg = show.svg(step)
    labels = [e.text for e in elements(svg, "fx-l")]
    for kind in ("m", "params", "v"):
        assert f"state['{kind}'].* (54 refs)" in labels
    assert len(elements(svg, "fx-rail")) == 3
    boxes = [e.text for e in elements(svg, "fx-t")]
    assert "result['loss']" in boxes and "result['norms'].*" in boxes
    tip = next(found for found in titles(svg) if found.startswith("result['norms']['h0']['b']"))
    assert "result['norms']['h17']['w']: " in tip
    page = show.html(step)
    assert "accum state[&#x27;params&#x27;].* (54 refs)" in page
    assert 'is state[&#x27;params&#x27;][&#x27;h3&#x27;][&#x27;w&#x27;]"' in page
    whole = show.timeline(step)
    assert [e.text for e in elements(whole, "fx-l")][:1] == ["state['m'].* (54 refs)"]


def test_a_folded_picture_fits_a_screen_and_an_unfolded_one_has_all(step: Jaxpr) -> None:
    svg = show.svg(step)
    root = ElementTree.fromstring(svg)
    assert float(root.get("width", "0")) < 1300 and float(root.get("height", "0")) < 1000
    assert len(titles(show.svg(step, folded=False))) > len(step.eqns)


def test_runs_are_shaded_by_the_cost_of_their_equations(step: Jaxpr) -> None:
    svg = show.svg(step, heat="flops")
    runs = [e.text or "" for e in elements(svg, "fx-d") if "flops · " in (e.text or "")]
    assert len(runs) > 5 and all(" equations · " in text for text in runs)
    shares = [float(text.rpartition(" ")[2].strip("<%")) for text in runs]
    assert 95 <= sum(shares) <= 105
    assert "fill-opacity" in svg


def test_inputs_of_a_tree_are_one_box_and_many_inputs_wrap() -> None:
    tree = {f"w{i}": 1.0 for i in range(30)}
    program = jax.make_jaxpr(lambda p, x: sum(p.values()) * x)(tree, 2.0).jaxpr
    boxes = [b for b in model(program).boxes if b.kind == "in"]
    assert [(b.text, b.detail) for b in boxes] == [("p.*", "30 arrays"), ("x", "")]
    assert "p['w3'] is " in boxes[0].full
    many: Any = jax.make_jaxpr(lambda *xs: [x + 1 for x in xs])(*map(float, range(90)))
    names = [f"a_long_name_{i}" for i in range(90)]
    named = many.jaxpr.replace(names=names, out_names=[f"{name}_too" for name in names])
    for runs in Runs:
        made = model(named, runs=runs)
        assert [b.kind for b in made.boxes].count("in") == 90
        assert place(made).width < 2000


def test_a_large_subjaxpr_has_a_row_of_its_own() -> None:
    def f(x: Any) -> Any:
        for _ in range(40):
            x = jax.numpy.sin(x) * 2.0

        def body(c: Any, _: Any) -> Any:
            for _ in range(20):
                c = jax.numpy.cos(c)
            return c, None

        return jax.lax.scan(body, x, None, length=3)[0] + 1.0

    made = model(jax.make_jaxpr(f)(1.0).jaxpr, runs=Runs.CLOSED)
    assert made.listed
    assert [b.text for b in made.boxes if b.kind == "eqn"] == ["scan", "add · 1.0"]
    assert made.boxes[-3].frames
