"""Timelines: live memory, accesses to references."""

from __future__ import annotations

import pytest
from hypothesis import given

from effax import show
from effax.ir.analysis.cost.record import shown_bytes
from effax.ir.prims import BroadcastInDim
from effax.ir.source import SavedSource
from effax.ir.syntax import Jaxpr, Var
from effax.ir.text.parser import parse
from effax.ir.work import bytes_of
from effax.show.marks import SMALL
from effax.show.memory import profile
from effax.testing.strategies import ANYTHING, programs
from tests.unit.building import F32, program
from tests.unit.show.pages import chain, elements, training_step


def test_values_live_from_their_equation_to_their_last_use() -> None:
    found = profile(
        parse(
            "{ lambda ; a:f32[10]. let b:f32[10] = sin a; "
            "c:f32[5,2] = reshape[new_sizes=(5, 2)] b; d:f32[] = reduce_sum[axes=(0, 1)] c; "
            "e:f32[] = sin d in (e,) }"
        )
    )
    assert found.arguments == 40
    assert [step.live for step in found.steps] == [80, 120, 84, 48]
    assert (found.peak, found.at) == (120, 1)
    assert dict(found.largest) == {"a:f32[10]": 40, "b:f32[10]": 40, "c:f32[5,2]": 40}


def test_references_live_until_they_are_consumed_or_used_for_the_last_time() -> None:
    found = profile(
        parse(
            "{ lambda ; a:f32[10] z:Ref{f32[2]}. let b:Ref{f32[10]} = new_ref a; "
            "b[...] += a; c:f32[10] <- b[...]; d:f32[10] = sin c; e:f32[10] = sin d in (e,) }"
        )
    )
    assert found.arguments == 48
    assert [step.live for step in found.steps] == [88, 88, 128, 128, 128]
    caller, own = found.tracks
    assert (caller.label, caller.first, caller.last) == ("z:Ref{f32[2]}", 0, 4)
    assert (own.label, own.bytes, own.first, own.last) == ("b:Ref{f32[10]}", 40, 0, 2)
    words = [[t.words for t in step.touches] for step in found.steps]
    assert words == [[("alloc",)], [("accum",)], [("read",)], [], []]


def test_programs_inside_add_to_what_is_live_and_touch_the_references_of_their_caller() -> None:
    found = profile(training_step())
    (scan,) = [span for span in found.spans if span.label.startswith("scan")]
    inside = found.steps[scan.start : scan.stop]
    assert scan.start > 0 and found.steps[scan.start - 1].text == "scan"
    assert [track.label for track in found.tracks] == ["w_ref · a:Ref{f32[3]}", "e:Ref{f32[3]}"]
    track = 1
    assert any(t.track == track and t.words == ("accum",) for step in inside for t in step.touches)
    # The element of the scanned input is a copy; carry and constant are not.
    assert inside[0].live == found.steps[scan.start - 1].live + 12 + 12
    assert [span.label for span in found.spans][-2:] == ["cond false", "cond true"]


def brute_force(jaxpr: Jaxpr) -> list[int]:
    """Return the live bytes at each equation of a program without subjaxprs, by definition."""
    found = []
    for k in range(len(jaxpr.eqns)):
        live = sum(bytes_of(v.type) for v in jaxpr.binders)
        for i, eqn in enumerate(jaxpr.eqns[: k + 1]):
            for v in eqn.outs:
                later = any(v in e.ins for e in jaxpr.eqns[k:]) or v in jaxpr.outs or i == k
                live += bytes_of(v.type) if later else 0
        found.append(live)
    return found


@pytest.mark.slow
@given(programs(ANYTHING))
def test_live_bytes_agree_with_the_definition(jaxpr: Jaxpr) -> None:
    flat = [eqn for eqn in jaxpr.eqns if not eqn.prim.subjaxprs()]
    made = {v.id for eqn in flat for v in eqn.outs} | {v.id for v in jaxpr.binders}
    flat = [e for e in flat if all(not isinstance(a, Var) or a.id in made for a in e.ins)]
    made = {v.id for eqn in flat for v in eqn.outs} | {v.id for v in jaxpr.binders}
    outs = [a for a in jaxpr.outs if not isinstance(a, Var) or a.id in made]
    program = jaxpr.replace(eqns=flat, outs=outs)
    found = profile(program)
    assert [step.live for step in found.steps] == brute_force(program)
    assert found.peak == max([step.live for step in found.steps], default=found.arguments)
    assert found.at < 0 or sum(size for _, size in found.largest) == found.peak


@pytest.mark.slow
@given(programs(ANYTHING))
def test_live_values_at_the_peak_add_up_with_subjaxprs(jaxpr: Jaxpr) -> None:
    found = profile(jaxpr)
    if found.at >= 0:
        assert sum(size for _, size in found.largest) == found.peak
    for track in found.tracks:
        assert 0 <= track.first <= track.last < max(len(found.steps), 1)


def test_bytes_are_shown_in_three_digits() -> None:
    shown = [shown_bytes(n) for n in (0, 999, 1000, 1536, 999_499, 999_500, 3_210_000_000)]
    assert shown == ["0 B", "999 B", "1 kB", "1.54 kB", "999 kB", "1 MB", "3.21 GB"]


def test_a_short_timeline_names_its_equations_and_a_long_one_numbers_them() -> None:
    short = show.timeline(parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"))
    assert "sin" in [e.text for e in elements(short, "fx-d")]
    long = show.timeline(chain(480))
    assert "60" in [e.text for e in elements(long, "fx-d")]
    assert elements(long, "fx-ring") and elements(long, "fx-bar")
    empty = show.timeline(parse("{ lambda ; a:f32[]. let in (a,) }"))
    assert not elements(empty, "fx-step")


def test_labels_of_timelines_stay_inside_of_them() -> None:
    place = SavedSource("folder/file.py", 7, "a.<locals>." * 40 + "<lambda>")
    for n in (1, 3, 9, 40):
        for at in (0, n // 2, n - 1):
            made = [BroadcastInDim((9 if i == at else 1,), ()) for i in range(n)]
            jaxpr = program([F32], lambda b, x: [b(prim, x) for prim in made])  # noqa: B023
            eqns = [eqn._replace(source=place) for eqn in jaxpr.eqns]
            # The large value dies, so the peak is there.
            outs = [v for i, v in enumerate(jaxpr.outs) if i != at]
            jaxpr = jaxpr.replace(eqns=eqns, outs=outs)
            drawn = show.timeline(jaxpr)
            width = float(elements(drawn, "fx")[0].attrib["width"])
            assert width < 1100
            (peak,) = elements(drawn, "fx-top")
            found, x = peak.text or "", float(peak.attrib["x"])
            length = len(found) * SMALL
            first = x - length if peak.get("text-anchor") == "end" else x
            assert first >= 0 and first + length <= width and "file.py:7" in found


def test_names_of_references_do_not_widen_timelines_without_end() -> None:
    jaxpr = parse("{ lambda ; a:Ref{f32[2]}. let b:f32[2] <- a[...] in (b,) }")
    drawn = show.timeline(jaxpr.replace(names=["x" * 500]))
    assert float(elements(drawn, "fx")[0].attrib["width"]) < 1000
