"""Names of leaves in groups of subtrees."""

from __future__ import annotations

import pytest

from effax.ir.text.paths import counted_groups, path_groups

STATE = [f"state['{kind}']['h{i}']['{name}']" for kind in "mv" for i in range(4) for name in "wb"]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([], []),
        (["x", "p['w']", "p['b']"], ["x", "p['w']", "p['b']"]),
        ([*STATE, "x"], ["state['m'].* (8 refs)", "state['v'].* (8 refs)", "x"]),
        (
            STATE[:10],
            [
                *[f"state['m']['h{i}'].* (2 refs)" for i in range(4)],
                "state['v']['h0'].* (2 refs)",
            ],
        ),
        ([f"p.layers[{i}].w" for i in range(9)], ["p.layers.* (9 refs)"]),
        ([f"x{i}" for i in range(10)], [f"x{i}" for i in range(10)]),
        ([f"p['a[0].{i}']" for i in range(9)], ["p.* (9 refs)"]),
        (["same"] * 9, ["same.* (9 refs)"]),
    ],
)
def test_names_are_listed_while_they_are_few_and_grouped_by_subtrees_else(
    names: list[str], shown: list[str]
) -> None:
    assert counted_groups(names, "ref") == shown


def test_a_group_that_lacks_members_says_how_many_there_are() -> None:
    some = [name for name in STATE if name != STATE[0]]
    assert counted_groups(some, "ref", STATE, 2)[0] == "state['m'].* (7 of 8 refs)"


def test_each_name_is_in_one_group() -> None:
    found = [i for group in path_groups([*STATE, "x", "y[0]"], 3) for i in group.members]
    assert sorted(found) == list(range(len(STATE) + 2))
