"""The library's docstrings for the site: notation of reStructuredText becomes Markdown's.

Types, effects, laws and sources, which docstrings tell a line each, stay lines.
"""

from __future__ import annotations

import re

import griffe

ROLE = re.compile(r":(?:func|class|mod|meth|data|attr):`~?([^`]+)`")
FIELD = re.compile(r"(?:Type|Effects|Laws|Source):")


def markdown(text: str) -> str:
    """A docstring as Markdown."""
    lines = ROLE.sub(r"`\1`", text).split("\n")
    out: list[str] = []
    inside = False
    for i, line in enumerate(lines):
        goes_on = inside and bool(line.strip()) and not re.match(r"[A-Z]\w*:", line)
        if FIELD.match(line) or goes_on:
            if not inside:
                out += ["", "```text"]
            inside = True
            out.append(line)
            continue
        if inside:
            out += ["```", ""]
            inside = False
        literal = line.endswith("::") and i + 1 < len(lines) and not lines[i + 1].strip()
        out.append(line[:-1] if literal else line)
    if inside:
        out.append("```")
    return "\n".join(out)


class Docstrings(griffe.Extension):
    """Rewrites each docstring as it is collected."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
