"""The pages of docs/: their examples, run in order, print the output in their comments."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
from math import isclose
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "docs"
# The programs of these pages are shown for two libraries, or replace JAX in their process, and have
# tests of their own.
OTHERS = {"differences.md", "drop-in.md"}


def code_of(page: Path) -> str:
    """Return the examples of a page, as one program."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))


PAGES = [p for p in sorted(FOLDER.glob("*.md")) if p.name not in OTHERS and code_of(p)]


PROMISE = re.compile(r"^( *)print\(.*\)  # (.*)$", re.MULTILINE)


def promised_by(page: Path) -> list[tuple[str, str]]:
    """Return the outputs that a page promises, each with the indentation of its call.

    A promise is a comment beside the call, or the block of text after the code.
    """
    blocks = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
    found: list[tuple[str, str]] = []
    for code, shown in blocks.findall(page.read_text("utf-8")):
        found += PROMISE.findall(code)
        if shown:
            found.append(("", shown))
    return found


def words(text: str) -> list[str]:
    """Return words and brackets, so that neither spaces nor line breaks matter."""
    return re.sub(r"([\[\](){},;])", r" \1 ", text).split()


def same(found: str, wanted: str) -> bool:
    """Return whether two words are equal, or numbers equal up to rounding."""
    if found == wanted:
        return True
    try:
        return isclose(float(found), float(wanted), rel_tol=1e-4)
    except ValueError:
        return False


def test_there_are_pages() -> None:
    assert {"refs.md", "primitives.md", "pictures.md", "effects.md", "side-effects.md"} <= {
        p.name for p in PAGES
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_print_the_promised_output(page: Path) -> None:
    code = code_of(page)
    name = f"docs_{page.stem}"
    # Dataclasses look up their module.
    module = sys.modules[name] = ModuleType(name)
    # Functions that ask for source see the code, not the page.
    linecache.cache[str(page)] = (len(code), None, code.splitlines(keepends=True), str(page))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(page), "exec"), module.__dict__)
    # Reports name the module of the page as the reader's.
    found = words(out.getvalue().replace(name, "mine"))
    promised = promised_by(page)
    assert promised
    for indent, text in promised:
        # A call in the loop over two references prints twice.
        times = 2 if indent and "GradRef" in text else 1
        for _ in range(times):
            wanted = words(text)
            shown = found[: len(wanted)]
            assert len(shown) == len(wanted), text
            assert all(map(same, shown, wanted)), (shown, text)
            found = found[len(wanted) :]
    assert not found
