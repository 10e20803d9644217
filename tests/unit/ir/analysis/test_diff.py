from __future__ import annotations

import pytest

from effax.ir import prims as p
from effax.ir.analysis.diff import diff
from effax.ir.edit.alpha import renumbered
from effax.ir.edit.operations import insert, replace_eqn
from effax.ir.prims import Jit
from effax.ir.text.parser import parse
from tests.counting import calls
from tests.unit.building import chain, nested, program, writer

OLD = """
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = mul c b
        e:f32[] = jit[name=f jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }] d
      in (e,) }
"""
NEW = """
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = cos c
        e:f32[] = mul d b
        f:f32[] = jit[name=f jaxpr={ lambda ; a:f32[]. let b:f32[] = tan a in (b,) }] e
      in (f,) }
"""


@pytest.mark.parametrize("make", [nested, writer, lambda: chain(9)])
def test_equal_programs_do_not_differ(make) -> None:  # type: ignore[no-untyped-def]
    found = diff(make(), make())
    assert not found
    assert found.count("same") == len(make().eqns)
    assert not any(line.startswith(("+", "-", "~")) for line in str(found).splitlines())


def test_names_do_not_matter() -> None:
    jaxpr = parse("{ lambda ; a:f32[]. let f:f32[] = sin a in (f,) }")
    assert not diff(jaxpr, renumbered(jaxpr))


def test_a_difference_shows_edits_in_subjaxprs() -> None:
    assert (
        str(diff(parse(OLD), parse(NEW)))
        == """\
  { lambda ; a:f32[] b:f32[]. let
      c:f32[] = sin a
+     d:f32[] = cos c
-     e:f32[] = mul c b
+     e:f32[] = mul d b
~     f:f32[] = jit[name=f jaxpr={ lambda ; a:f32[]. let b:f32[] = tan a in (b,) }] e
        { lambda ; a:f32[]. let
-           b:f32[] = sin a
+           b:f32[] = tan a
          in (b,) }
    in (f,) }"""
    )


def test_what_is_equal_can_be_left_out() -> None:
    jaxpr = chain(40)
    found = diff(jaxpr, replace_eqn(jaxpr, 20, p.Cos()))
    lines = found.text(context=1).splitlines()
    assert len(lines) == 5
    assert [line[0] for line in lines] == [" ", " ", "-", "+", " "]
    assert lines[0] == "  ..."


def test_an_insertion_is_one_addition() -> None:
    jaxpr = chain(50)
    made, _ = insert(jaxpr, 7, p.Exp(), [jaxpr.binders[0]])
    found = diff(jaxpr, made)
    assert (found.count("added"), found.count("removed"), found.count("changed")) == (1, 0, 0)


def test_other_inputs_and_results_show() -> None:
    one = parse("{ lambda ; a:f32[] b:f32[]. let  in (a,) }")
    two = parse("{ lambda a:f32[]; b:f32[]. let  in (b,) }")
    assert str(diff(one, two)) == (
        "- { lambda ; a:f32[] b:f32[]. let\n+ { lambda a:f32[]; b:f32[]. let\n"
        "-   in (a,) }\n+   in (b,) }"
    )


def test_reads_on_two_sides_of_a_write_are_not_the_same() -> None:
    early = parse("""
        { lambda ; a:Ref{f32[]} b:f32[]. let
            c:f32[] <- a[...]
            a[...] <- b
          in (c,) }
    """)
    late = parse("""
        { lambda ; a:Ref{f32[]} b:f32[]. let
            a[...] <- b
            d:f32[] <- a[...]
          in (d,) }
    """)
    assert diff(early, late)


def test_the_work_grows_with_the_programs() -> None:
    def work(n: int) -> int:
        old = chain(n)
        new = replace_eqn(old, n // 2, p.Neg(), [old.eqns[n // 2].ins[0]])
        return calls(lambda: diff(old, new))

    work(12)
    # Four times as much, and some for pyrsistent's deeper trees where it is not compiled.
    assert work(1600) < 6 * work(400)


@pytest.mark.slow
def test_differences_at_great_depth_are_read_without_recursion() -> None:
    old, new = parse(OLD), parse(NEW)
    for _ in range(600):
        inside = (old, new)
        old, new = (
            program(j.in_types, lambda b, *xs: b.emit(Jit(j), xs))  # noqa: B023
            for j in inside
        )
    found = diff(old, new)
    assert found and not diff(old, old)
    lines = str(found).splitlines()
    assert sum("cos" in line for line in lines if line[0] == "+") == 1
    assert repr(found) == str(found)
    assert len(str(found)) < 200 * len(lines)


def test_a_store_is_shown_as_programs_print_it() -> None:
    text = "{ lambda ; a:Ref{f32[]} b:f32[]. let a[...] <- b; d:f32[] <- a[...] in (d,) }"
    other = text.replace("a[...] <- b;", "a[...] <- 2.0:f32[];")
    shown = str(diff(parse(text), parse(other)))
    assert "-     a[...] <- b\n+     a[...] <- 2.0:f32[]" in shown
    assert ", a[...]" not in shown
