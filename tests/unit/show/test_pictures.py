"""SVG and HTML: complete, escaped, deterministic, linear."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given

import effax
from effax import show
from effax.experimental import io_callback
from effax.ir.errors import BadArgument
from effax.ir.prims import Jit
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.text.printer import eqn_str
from effax.ir.types import array_type
from effax.testing.strategies import ANYTHING, programs
from effax.transforms.jvp import jvp
from effax.transforms.optimize.dce import dce
from tests.unit.show.pages import chain, elements, jax, titles, training_step

pytestmark = pytest.mark.slow

SCALAR = array_type((), "float32")


@given(programs(ANYTHING))
def test_every_equation_is_drawn_and_can_be_read_where_the_pointer_rests(jaxpr: Jaxpr) -> None:
    drawn = titles(show.svg(jaxpr))
    for eqn in jaxpr.eqns:
        assert eqn_str(eqn) in [found.partition("\n")[0] for found in drawn]
    ElementTree.fromstring(show.timeline(jaxpr))
    ElementTree.fromstring(show.compare(jaxpr, jaxpr))


def test_pictures_of_equal_programs_are_equal() -> None:
    first, second = training_step(), training_step()
    assert first is not second
    for picture in (show.svg, show.html, show.timeline):
        assert picture(first) == picture(second)


def test_labels_have_names_and_types_and_rails_have_accesses() -> None:
    svg = show.svg(training_step())
    labels = [e.text for e in elements(svg, "fx-l")]
    assert {"w_ref · a:Ref{f32[3]}", "a:Ref{f32[3]}", "b:f32[4,3]", "c:f32[4]"} <= set(labels)
    badges = [e[0].text for e in elements(svg, "fx-b")]
    for words in ("alloc", "accum", "read", "read and write", "read and free"):
        assert words in badges
    assert elements(svg, "fx-frame")
    assert any("pages.py:" in found for found in titles(svg))


def test_a_reference_has_one_colour_in_all_programs() -> None:
    svg = show.svg(training_step())
    hue = {e.get("class") for e in elements(svg, "fx-rail")}
    assert len(hue) == 2
    inner = [e for e in elements(svg, "fx-frame")[0].iter() if "fx-rail" in e.get("class", "")]
    assert [e.get("class") for e in inner] == ["fx-rail fx-k1"]


def test_side_effects_have_a_rail() -> None:
    def f(x: Any, r: Any) -> Any:
        io_callback(print, None, x, ordered=True)
        r[...] = x
        io_callback(print, None, x, ordered=True)
        return x

    program = jax.make_jaxpr(f)(1.0, jax.new_ref(0.0)).jaxpr
    svg = show.svg(program)
    assert len(elements(svg, "fx-k-1")) == 2 + 2
    assert [e[2].text for e in elements(svg, "fx-b")] == ["io", "RW", "io"]
    assert [e[0].text for e in elements(show.timeline(program), "fx-b")] == [
        "io",
        "read and write",
        "io",
    ]
    assert 'data-e="io ' in show.html(program)


NASTY = "<script>alert('x')</script>&\"\x00\x1b]]>\ud800"


def nasty_program() -> Jaxpr:
    x, y = Var(0, SCALAR), Var(1, SCALAR)
    inner = Jaxpr([x], [], [x], names=[NASTY])
    return Jaxpr([x], [Eqn(Jit(inner, NASTY), (x,), (y,))], [y], names=[NASTY])


def test_names_are_escaped() -> None:
    program = nasty_program()
    for drawn in (show.svg(program, title=NASTY), show.timeline(program)):
        root = ElementTree.fromstring(drawn)
        assert not [e for e in root.iter() if e.tag.endswith("script")]
    page = show.html(program, title=NASTY) + show.compare_html(program, program, titles=(NASTY, ""))
    assert "<script>alert" not in page
    page.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", page)


class Tags(HTMLParser):
    """A parser that checks that tags are closed in order."""

    VOID = ("meta", "input", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_pages_are_well_formed_and_load_nothing() -> None:
    program = training_step()
    small = dce(program, (True, False)).unwrap().jaxpr
    for page in (show.html(program), show.compare_html(program, small)):
        tags = Tags()
        tags.feed(page)
        assert not tags.open
        assert len(set(tags.ids)) == len(tags.ids)
        outside = re.findall(r"(?:src|href|url|@import|fetch)\b[^>]{0,3}[=(]", page)
        assert not outside
        assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "a:Ref{f32[3]}" in show.html(program)


def test_a_page_has_the_users_lines() -> None:
    page = show.html(training_step())
    assert 'data-c="jax.ref.addupdate(total, ..., row * c)"' in page
    assert 'data-e="accum a"' in page
    assert 'data-b="16 B"' in page


def test_removed_and_new_equations_are_marked() -> None:
    program = jax.make_jaxpr(lambda x: (effax.numpy.sin(x), effax.numpy.cos(x)))(1.0).jaxpr
    small = dce(program, (True, False)).unwrap().jaxpr
    drawn = show.compare(program, small)
    assert len(elements(drawn, "fx-gone")) == 1
    assert not elements(drawn, "fx-new")
    pushed = jvp(program, (True,)).unwrap().jaxpr
    drawn = show.compare(program, pushed)
    assert not elements(drawn, "fx-gone")
    assert len(elements(drawn, "fx-new")) == len(pushed.eqns) - len(program.eqns)


def doubled(levels: int) -> Jaxpr:
    """Return nested programs, each of which calls the next one twice."""
    x, y, z = (Var(i, SCALAR) for i in range(3))
    inner = Jaxpr([x], [Eqn(Jit(Jaxpr([x], [], [x])), (x,), (y,))], [y])
    for _ in range(levels):
        inner = Jaxpr([x], [Eqn(Jit(inner), (x,), (y,)), Eqn(Jit(inner), (y,), (z,))], [z])
    return inner


def test_a_repeated_subjaxpr_is_drawn_once() -> None:
    program = doubled(40)
    drawn = show.svg(program, depth=100)
    assert len(drawn) < 500_000
    assert "drawn before" in drawn
    assert len(show.timeline(program)) < 500_000
    assert "(2 equations)" in show.svg(program, depth=1)


def nested(levels: int) -> Jaxpr:
    """Return deeply nested programs."""
    x, y = Var(0, SCALAR), Var(1, SCALAR)
    inner = Jaxpr([x], [], [x])
    for level in range(levels):
        inner = Jaxpr([x], [Eqn(Jit(inner, f"f{level}"), (x,), (y,))], [y])
    return inner


def test_nesting_deeper_than_the_stack_is_drawn() -> None:
    program = nested(1500)
    for drawn in (show.svg(program, depth=10_000), show.timeline(program)):
        ElementTree.fromstring(drawn)
    assert "1500 with those of subjaxprs" in show.html(program)


def test_a_thousand_equations_are_drawn_in_proportional_size_and_time() -> None:
    def cost(n: int) -> tuple[int, float, int]:
        program = chain(n)
        start = time.process_time()
        size = len(show.html(program))
        return size, time.process_time() - start, len(program.eqns)

    small, _, few = cost(240)
    large, seconds, many = cost(1200)
    assert large / small < 1.1 * many / few
    assert seconds < 10


def test_programs_with_values_are_drawn_and_anything_else_is_an_error() -> None:
    closed = jax.make_jaxpr(lambda x: x + 1)(1.0)
    assert show.svg(closed) == show.svg(closed.jaxpr)
    with pytest.raises(BadArgument, match="make_jaxpr"):
        show.svg(print)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(AttributeError, match="no attribute 'png'"):
        show.png  # noqa: B018  that is the point
    assert {"svg", "html"} <= set(dir(show))


def test_notebooks_show_programs() -> None:
    closed = jax.make_jaxpr(lambda x: effax.numpy.sin(x) + 1)(1.0)
    shown = closed._repr_html_()
    assert shown == closed.jaxpr._repr_html_()
    assert shown is not None and "<svg" in shown and "sin a" in shown
    long = closed.jaxpr.replace(
        eqns=[replace_outs(closed.jaxpr.eqns[0], i) for i in range(1, 500)], outs=[]
    )
    drawn = long._repr_html_()
    assert drawn is not None and "499 equations" in drawn and len(drawn) < 20_000
    many = long.replace(eqns=[replace_outs(long.eqns[0], i) for i in range(1, 5_002)])
    assert many._repr_html_() is None


def replace_outs(eqn: Eqn, i: int) -> Eqn:
    return eqn._replace(outs=(Var(i, eqn.outs[0].type),))


def test_names_are_shortened_not_lost() -> None:
    program = nasty_program()
    eqn = program.eqns[0]
    assert isinstance(eqn.prim, Jit)
    long = program.replace(eqns=[eqn._replace(prim=replace(eqn.prim, label="f" * 300))])
    drawn = show.svg(long)
    assert "…" in drawn
    assert "f" * 300 in drawn
