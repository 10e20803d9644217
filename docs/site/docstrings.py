"""Convert the library's docstrings from reStructuredText to Markdown for the site.

Fields of one line (types, effects, laws, sources) are kept as preformatted text.
"""

from __future__ import annotations

import re
from importlib import import_module
from inspect import getdoc

import griffe

ROLE = re.compile(r":(?:func|class|mod|meth|data|attr):`~?([^`]+)`")
FIELD = re.compile(r"(?:Type|Effects|Laws|Source):")

RAISES = re.compile(r"^Raises: +(\S.*(?:\n +\S.*)*)$", re.MULTILINE)
"""A ``Raises:`` field, with indented continuation lines."""


def _section(found: re.Match[str]) -> str:
    """Return a section with one entry for each error."""
    text = " ".join(found.group(1).split())
    entries = re.split(r"; (?=[A-Z]\w+: )", text)
    return "\n".join(["", "Raises:", *[f"    {entry}" for entry in entries], ""])


def markdown(text: str) -> str:
    """Convert a docstring to Markdown."""
    lines = RAISES.sub(_section, ROLE.sub(r"`\1`", text)).split("\n")
    out: list[str] = []
    inside = False
    for i, line in enumerate(lines):
        continued = inside and bool(line.strip()) and not re.match(r"[A-Z]\w*:", line)
        if FIELD.match(line) or continued:
            if not inside:
                out += ["", "```text"]
            inside = True
            out.append(line)
            continue
        if inside:
            out += ["```", ""]
            inside = False
        literal = line.endswith("::") and i + 1 < len(lines) and not lines[i + 1].strip()
        # A line of two colons only introduces a literal block, and is dropped.
        shown = "" if literal and line.strip() == "::" else line[:-1]
        out.append(shown if literal else line)
    if inside:
        out.append("```")
    return "\n".join(out)


def complete(path: str) -> str:
    """Return the docstring of a module's function, with the sections that decorators add."""
    module, _, name = path.rpartition(".")
    return getdoc(getattr(import_module(module), name)) or ""


class Docstrings(griffe.Extension):
    """Convert each docstring when it is collected."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            at_top = obj.is_function and obj.parent is not None and obj.parent.is_module
            obj.docstring.value = markdown(complete(obj.path) if at_top else obj.docstring.value)
