"""Golden files: programs before and after a pass, as text.

The files in a folder have the cases of the pass of that name::

    [case squares_are_shared]
    # The two results have one definition.
    [options] used_outs=(True, False)
    { lambda ; a:f32[]. let b:f32[] = mul a a; c:f32[] = mul a a in (b, c) }
    [out]
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b, b) }

The options are keyword arguments of the pass. A pass that returns several programs has one
``[out NAME]`` section for each, and ``[results]`` for the other fields of its result. The section
of a program that the pass refuses is ``[error TYPE]``, with the message.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

Sections = tuple[tuple[str, str], ...]
"""Headers and texts, in order."""

HEADER: Final = re.compile(r"^\[(case|options|out|results|error)\b *([^\]\n]*)\](.*)$")


@dataclass(frozen=True)
class Case:
    """A program, the options of the pass, and the expected output.

    Attributes:
        name: the name of the case.
        comment: the lines after the name, without their ``#``.
        options: the text of the keyword arguments of the pass.
        program: the text of the program.
        expected: the sections of the output.
    """

    name: str
    comment: tuple[str, ...]
    options: str
    program: str
    expected: Sections

    def keywords(self) -> dict[str, object]:
        """Return the options as values."""
        call = ast.parse(f"f({self.options})", mode="eval").body
        assert isinstance(call, ast.Call)
        return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}

    def __str__(self) -> str:
        lines = [f"[case {self.name}]", *(f"# {line}" for line in self.comment)]
        lines += [f"[options] {self.options}"] * bool(self.options)
        lines.append(self.program)
        for header, text in self.expected:
            lines += [f"[{header}]", text]
        return "\n".join(lines) + "\n"


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a golden file, in order."""
    cases: list[Case] = []
    for kind, argument, text in _sections(path.read_text(encoding="utf-8")):
        if kind == "case":
            lines = text.splitlines()
            comment = tuple(line[1:].strip() for line in lines if line.startswith("#"))
            program = "\n".join(line for line in lines if not line.startswith("#"))
            cases.append(Case(argument, comment, "", program, ()))
        elif kind == "options":
            options, _, program = text.partition("\n")
            cases[-1] = replace(cases[-1], options=options.strip(), program=program)
        else:
            section = (f"{kind} {argument}".strip(), text)
            cases[-1] = replace(cases[-1], expected=(*cases[-1].expected, section))
    return cases


def write_cases(path: Path, cases: list[Case]) -> None:
    """Write the cases of a golden file, with an empty line between them."""
    path.write_text("\n".join(map(str, cases)), encoding="utf-8")


def _sections(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the argument and the text of each section."""
    header: re.Match[str] | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "[case end]"]:
        found = HEADER.match(line)
        if found is None:
            lines.append(line)
            continue
        if header is not None:
            first = [header[3].strip()] if header[3].strip() else []
            yield header[1], header[2].strip(), "\n".join([*first, *lines]).strip("\n")
        header, lines = found, []
