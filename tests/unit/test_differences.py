"""The programs of docs/differences.md print the stated output, on effax and on JAX."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"


class Program(NamedTuple):
    """A program of the page, under the heading before it."""

    heading: str
    code: str
    effax: str
    jax: str


def programs() -> list[Program]:
    found: list[Program] = []
    parts = re.split(r"^##+ (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            code, _, answers = block.partition("# effax: ")
            ours, _, theirs = answers.replace("\n#", "\n").partition(" JAX: ")
            found.append(Program(heading, code, ours, theirs))
    return found


PROGRAMS = programs()
IDS = [f"{i} {p.heading}" for i, p in enumerate(PROGRAMS)]


def printed(code: str, package: str) -> list[str]:
    """Return the words that a program prints, or the name of the error that it raises."""
    names: dict[str, Any] = {
        "jax": importlib.import_module(package),
        "jnp": importlib.import_module(f"{package}.numpy"),
        "lax": importlib.import_module(f"{package}.lax"),
        "np": np,
    }
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(code, str(PAGE), "exec"), names)
        except Exception as error:  # noqa: BLE001  which one it is is what is compared
            return [type(error).__name__]
    return re.sub(r"([\[\]])", r" \1 ", out.getvalue()).split()


def promised(text: str) -> list[str]:
    return re.sub(r"([\[\]])", r" \1 ", text).split()


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 20
    assert all(p.effax.strip() and p.jax.strip() for p in PROGRAMS)
    assert all(p.effax != p.jax for p in PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=IDS)
def test_output_on_effax(program: Program) -> None:
    assert printed(program.code, "effax") == promised(program.effax)


@pytest.mark.jax
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=IDS)
def test_output_on_jax(program: Program) -> None:
    if find_spec("jax") is None or not version("jax").startswith("0.12"):
        pytest.skip("the page speaks of jax 0.12")
    assert printed(program.code, "jax") == promised(program.jax)
