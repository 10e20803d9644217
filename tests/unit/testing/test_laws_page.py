"""The tables of docs/laws.md say what the code says; its examples are run with the other pages'."""

from __future__ import annotations

import re
from pathlib import Path

from effax.testing import About, Features, laws, step_names
from effax.testing.generate import features as all_features
from effax.testing.laws.law import LAW_PARAMETERS

PAGE = (Path(__file__).parents[3] / "docs" / "laws.md").read_text("utf-8")


def rows(header: str) -> list[list[str]]:
    """The cells of the table under a header."""
    _, rest = PAGE.split(f"{header}\n|---", maxsplit=1)
    table = rest.split("\n\n", maxsplit=1)[0].splitlines()[1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]


def test_every_law_is_listed_with_its_equation() -> None:
    found = [
        [cell.replace("\\|", "|") for cell in row]
        for row in rows("| law | says | about | of primitives |")
    ]
    wanted = [
        [
            f"`{law.name}`",
            f"`{' '.join(law.equation.split())}`",
            law.about.name.lower().replace("_", " "),
            "yes" if law.of_primitives else "",
        ]
        for law in laws.LAWS
    ]
    assert found == wanted


def test_every_kind_of_law_is_listed() -> None:
    found = rows("| `about` | first arguments |")
    assert found == [[f"`About.{about.name}`", about.value] for about in About]


def test_what_a_law_may_take_is_listed() -> None:
    assert [row[0] for row in rows("| name | value |")] == [f"`{n}`" for n in LAW_PARAMETERS]


def test_every_step_is_listed() -> None:
    listed = [name for row in rows("| | |") for name in re.findall(r"`([\w.]+)`", row[1])]
    assert sorted(listed) == sorted(set(step_names()))


def test_features_that_are_listed_exist() -> None:
    for name, _ in rows("| features | programs |"):
        assert isinstance(getattr(all_features, name.strip("`")), Features)
