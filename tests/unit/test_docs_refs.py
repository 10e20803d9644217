"""docs/refs.md: its examples, run from top to bottom, print what their comments say."""

from __future__ import annotations

import contextlib
import io
import re
from math import isclose
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "refs.md"


def words(text: str) -> list[str]:
    """Words and brackets, so that neither spaces nor line breaks matter."""
    return re.sub(r"([\[\](),])", r" \1 ", text).split()


def same(found: str, wanted: str) -> bool:
    """Whether two words are equal, or numbers that differ in the last places."""
    try:
        return isclose(float(found), float(wanted), rel_tol=1e-5)
    except ValueError:
        return found == wanted


def test_the_examples_print_what_they_say() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(PAGE), "exec"), {"__name__": "refs"})
    found = words(out.getvalue())
    promised = re.findall(r"^( *)print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert len(promised) > 30
    for indent, text in promised:
        # What is printed in a loop is printed as often as the loop says.
        times = 2 if indent and "GradRef" in text else 1
        for _ in range(times):
            wanted = words(text)
            shown = found[: len(wanted)]
            assert len(shown) == len(wanted), text
            assert all(map(same, shown, wanted)), (shown, text)
            found = found[len(wanted) :]
    assert not found
