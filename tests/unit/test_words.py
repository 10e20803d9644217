"""Names and prose have none of the words that docs/architecture.md rules out."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import effax

ROOT: Final = Path(effax.__file__).parents[1]
PAGE: Final = ROOT / "docs" / "architecture.md"
FIRST: Final = " (first word of a docstring)"
SELF: Final = "tests/unit/test_words.py"


def table() -> tuple[list[str], list[str]]:
    """Return the phrases ruled out anywhere, and the words ruled out as a docstring's first."""
    section = PAGE.read_text("utf-8").partition("### Words that are not used")[2]
    anywhere: list[str] = []
    first: list[str] = []
    for row in re.findall(r"^\| (.+?) \| .+ \|$", section, re.MULTILINE)[1:]:
        words, is_first, _ = row.partition(FIRST)
        (first if is_first else anywhere).extend(words.split(", "))
    return anywhere, first


ANYWHERE, FIRST_WORDS = table()
PHRASE: Final = re.compile(rf"\b({'|'.join(map(re.escape, ANYWHERE))})\b", re.IGNORECASE)
SINGLE: Final = {word for word in ANYWHERE if " " not in word}


def words_of(name: str) -> set[str]:
    """Return the lower-case words of an identifier in snake case or camel case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def faults_of_python(source: str) -> Iterator[str]:
    """Yield the names, comments, strings and docstrings with a word that is not used."""
    names = set[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.string not in names:
            names.add(token.string)
            if words_of(token.string) & SINGLE:
                yield f"{token.start[0]}: name {token.string}"
        elif token.type in (tokenize.COMMENT, tokenize.STRING):
            for found in PHRASE.finditer(re.sub(r"\s+", " ", token.string)):
                yield f"{token.start[0]}: {found[0]!r}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or "Return"
            if text.split()[0].rstrip(",:") in FIRST_WORDS:
                line = getattr(node, "lineno", 1)
                yield f"{line}: docstring begins with {text.split()[0]!r}"


def faults_of_prose(text: str) -> Iterator[str]:
    """Yield the lines of a page with a word that is not used."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in PHRASE.finditer(line):
            yield f"{number}: {found[0]!r}"


def files() -> Iterator[Path]:
    """Yield every Python file and every page of the repository."""
    for folder in ("effax", "tests", "examples", "benchmarks", "docs"):
        yield from sorted((ROOT / folder).rglob("*.py"))
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from sorted(ROOT.glob("*.md"))


def faults() -> Iterator[str]:
    """Yield every use of a word that is not used, with its place."""
    for path in files():
        place = path.relative_to(ROOT).as_posix()
        # The changelog lists the old names; this file quotes the words.
        if place in ("CHANGELOG.md", SELF):
            continue
        text = path.read_text("utf-8")
        if path == PAGE:
            text = text.partition("### Words that are not used")[0]
        found = faults_of_python(text) if path.suffix == ".py" else faults_of_prose(text)
        yield from (f"{place}:{fault}" for fault in found)


def test_the_table_is_read() -> None:
    assert "somebody" in ANYWHERE
    assert "the world outside" in ANYWHERE
    assert {"What", "Whose"} <= set(FIRST_WORDS)


def test_words_that_are_not_used_are_found() -> None:
    source = 'def told_of(x):\n    """What is\n    x."""\n    return "nobody"  # a lane\n'
    assert list(faults_of_python(source)) == [
        "1: name told_of",
        "4: 'nobody'",
        "4: 'lane'",
        "1: docstring begins with 'What'",
    ]
    assert list(faults_of_prose("It\ngives nothing.")) == ["2: 'gives'"]


@pytest.mark.slow
def test_no_text_has_words_that_are_not_used() -> None:
    found = list(faults())
    assert not found, f"{len(found)} uses; docs/architecture.md says what to write:\n" + "\n".join(
        found[:100]
    )


if __name__ == "__main__":  # `python -m tests.unit.test_words effax/ir` lists the faults of a room
    import sys

    for room in sys.argv[1:]:
        for file in files():
            shown = file.relative_to(ROOT).as_posix()
            if shown.startswith(room):
                text_of = file.read_text("utf-8")
                of_python = file.suffix == ".py"
                for fault in (faults_of_python if of_python else faults_of_prose)(text_of):
                    print(f"{shown}:{fault}")  # noqa: T201  # the list is the output
