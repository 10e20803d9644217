"""Layout: no overlap, all operands connected, rows and rails in program order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.show.layers import WIDE, rows
from effax.show.layout import measure, place
from effax.show.model import model
from effax.show.placed import CROWD, NEAR, Placed
from effax.show.placement import GAP, Item, connect, spread
from effax.testing.strategies import ANYTHING, programs
from tests.unit.show.pages import chain, placed_programs, training_step


def overlaps(placed: Placed) -> list[tuple[str, str]]:
    """Return the pairs of boxes that overlap."""
    found = []
    for i, a in enumerate(placed.boxes):
        for b in placed.boxes[i + 1 :]:
            across = a.x < b.x + b.width and b.x < a.x + a.width
            along = a.y < b.y + b.height and b.y < a.y + a.height
            if across and along:
                found.append((a.box.full, b.box.full))
    return found


def check_geometry(placed: Placed) -> None:
    assert not overlaps(placed)
    for box in placed.boxes:
        assert box.x >= -0.01 and box.y >= 0
        assert box.x + box.width <= placed.width + 0.01
        assert box.y + box.height <= placed.height + 0.01
        for frame in box.frames:
            assert frame.x + frame.program.width <= box.width
            assert frame.y + frame.program.height <= box.height


def check_connections(placed: Placed) -> None:
    """Check that each operand has a wire or a name at its port, and comes from above."""
    made = {p.var: (p.x, b.y + b.height) for b in placed.boxes for p in b.outs}
    wires = {wire.var: wire for wire in placed.wires}
    for box in placed.boxes:
        for port in box.ins:
            assert made[port.var][1] <= box.y
            ends = [end for _, end in wires[port.var].bent]
            assert port.name or any(
                abs(x - port.x) < 0.01 and abs(y - box.y) < 0.01 for x, y in ends
            )
    for var, wire in wires.items():
        points = {p for line in wire.straight for p in line}
        for start, end in wire.bent:
            assert start in points
            assert start[1] <= end[1]
        if wire.bent:
            assert made[var] in points


def check_effects(placed: Placed) -> None:
    """Check that equations with effects are in program order, in separate rows, at the right."""
    acting = [box for box in placed.boxes if box.taps]
    acting.sort(key=lambda box: box.y)
    for first, second in pairwise(acting):
        assert first.y + first.height <= second.y
    places = {rail.rail.key: rail for rail in placed.rails}
    for box in acting:
        for x, tap in box.taps:
            rail = places[tap.rail]
            assert x == rail.x > box.x + box.width
            assert rail.top - 0.01 <= box.y + 11 <= rail.bottom + 0.01
        for other in placed.boxes:
            if other.y == box.y:
                assert other.x <= box.x


@pytest.mark.slow
@given(programs(ANYTHING))
def test_nothing_overlaps_and_everything_is_connected(jaxpr: Jaxpr) -> None:
    whole = place(model(jaxpr))
    for placed in placed_programs(whole):
        check_geometry(placed)
        check_connections(placed)
        check_effects(placed)
    kinds = [box.box.kind for box in whole.boxes]
    assert kinds.count("eqn") == len(jaxpr.eqns)
    assert kinds.count("out") == len(jaxpr.outs)
    assert whole == place(model(jaxpr))


@pytest.mark.slow
def test_long_programs_keep_to_the_same_width_and_names_replace_long_wires() -> None:
    short, long = place(model(chain(120))), place(model(chain(960)))
    assert long.width < 1.3 * short.width
    assert not overlaps(long)
    rail = long.rails[0]
    assert rail.top < 20 and rail.bottom == long.height
    lines = sum(len(wire.straight) + len(wire.bent) for wire in long.wires)
    assert lines < 12 * len(long.boxes)
    assert any(port.name == "b" for box in long.boxes for port in box.ins)


def test_rows_are_no_wider_than_they_should_be() -> None:
    text = "\n".join(f"{name}:f32[] = sin a" for name in "bcdefghijklmnopqrstuvwxyz")
    jaxpr = parse(f"{{ lambda ; a:f32[]. let\n{text}\n in (b, z) }}")
    boxes = model(jaxpr).boxes
    widths = [measure(box).width for box in boxes]
    made = rows(boxes, [w + 60 for w in widths])
    assert len(made) > 3
    for row in made:
        assert sum(widths[i] + 60 for i in row[:-1]) < WIDE
    assert sorted(i for row in made for i in row) == list(range(len(boxes)))


def test_a_value_without_operands_stands_just_above_its_first_use() -> None:
    jaxpr = parse(
        "{ lambda ; a:f32[3]. let i:i32[3] = iota[dimension=0 dtype=int32 shape=(3,)]; "
        "b:f32[3] = sin a; c:f32[3] = sin b; d:f32[3] = sin c; e:i32[3] = add i i; "
        "f:f32[3] = convert_element_type[new_dtype=float32] e; g:f32[3] = mul f d in (g,) }"
    )
    boxes = {b.box.text: b.y for b in place(model(jaxpr)).boxes}
    assert boxes["iota"] < boxes["add"]
    assert boxes["add"] - boxes["iota"] < 100


def test_few_wires_pass_through_a_row() -> None:
    n = 60
    names = [chr(97 + i // 26) + chr(97 + i % 26) for i in range(26, 26 + n)]
    made = "\n".join(f"{name}:f32[] = sin a" for name in names)
    used = ", ".join(names)
    placed = place(model(parse(f"{{ lambda ; a:f32[]. let\n{made}\n in ({used}) }}")))
    ys = sorted({box.y for box in placed.boxes})
    for y in ys:
        passing = [w for w in placed.wires for a, b in w.straight if a[1] == y and b[1] > y]
        assert len(passing) <= CROWD
    assert NEAR > 1


def test_a_lone_chain_is_straight_and_neighbours_keep_their_distance() -> None:
    column = [[Item(10.0, 30.0)] for _ in range(5)]
    for (above,), (below,) in pairwise(column):
        connect(above, 0.0, below, 0.0)
    spread(column)
    assert {round(row[0].x, 6) for row in column} == {10.0}
    crowd = [[Item(10.0, 30.0) for _ in range(4)]]
    spread(crowd)
    xs = [item.x for item in crowd[0]]
    assert all(b - a >= 40.0 + GAP - 1e-9 for a, b in pairwise(xs))


def test_a_program_that_is_not_well_formed_can_be_drawn() -> None:
    program = training_step()
    broken = program.replace(eqns=list(program.eqns)[3:], outs=[program.binders[0]])
    assert place(model(broken)).boxes
