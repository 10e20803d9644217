"""The library's docstrings for the site: notation of reStructuredText becomes Markdown's.

Types, effects, laws and sources, which docstrings tell a line each, stay lines.
"""

from __future__ import annotations

import re

import griffe

ROLE = re.compile(r":(?:func|class|mod|meth|data|attr):`~?([^`]+)`")
FIELD = re.compile(r"(?:Type|Effects|Laws|Source):")

RAISES = re.compile(r"^Raises: +(\S.*(?:\n +\S.*)*)$", re.MULTILINE)
"""Errors beside the word, in lines that are indented under the first."""


def _section(found: re.Match[str]) -> str:
    """What a function raises as a section with an entry an error."""
    told = " ".join(found.group(1).split())
    entries = re.split(r"; (?=[A-Z]\w+: )", told)
    return "\n".join(["", "Raises:", *[f"    {entry}" for entry in entries], ""])


def markdown(text: str) -> str:
    """A docstring as Markdown."""
    lines = RAISES.sub(_section, ROLE.sub(r"`\1`", text)).split("\n")
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
        # Two colons alone announce what follows, and are not read.
        shown = "" if literal and line.strip() == "::" else line[:-1]
        out.append(shown if literal else line)
    if inside:
        out.append("```")
    return "\n".join(out)


class Docstrings(griffe.Extension):
    """Rewrites each docstring as it is collected."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
