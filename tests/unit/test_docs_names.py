"""The pages of docs/ use public names only, in examples whose functions have types."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from tests.surface import MODULES, PAGE

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
UNTYPED: Final = {"differences.md"}
"""The programs of that page are those of JAX's users."""


@cache
def names_of(module: str) -> frozenset[str]:
    """Return the public names of a module, and the public modules in it."""
    inner = [m.rpartition(".")[2] for m in MODULES if m.rpartition(".")[0] == module]
    return frozenset([*import_module(module).__all__, *inner])


def code_of(page: Path) -> ast.Module:
    """Return the examples of a page, as one program."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return ast.parse("\n".join(blocks))


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the public modules that a program imports, each with its name there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from [(a.asname or "effax", a.name) for a in node.names if a.name in MODULES]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in MODULES:
                    yield alias.asname or alias.name, full


def used(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that a program takes from modules of effax: (module, name)."""
    modules = dict(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "effax":
            yield from [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Attribute):
            module = module_of(node.value, modules)
            if module is not None:
                yield module, node.attr


def module_of(node: ast.expr, modules: dict[str, str]) -> str | None:
    """Return the public module that an expression names."""
    if isinstance(node, ast.Name):
        return modules.get(node.id)
    if isinstance(node, ast.Attribute):
        outer = module_of(node.value, modules)
        return f"{outer}.{node.attr}" if f"{outer}.{node.attr}" in MODULES else None
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_are_public(page: Path) -> None:
    found = sorted(set(used(code_of(page))))
    assert [(m, n) for m, n in found if m not in MODULES or n not in names_of(m)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_dotted_names_in_texts_are_public(page: Path) -> None:
    texts = re.findall(r"`(effax(?:\.\w+)+)[`(]", page.read_text("utf-8"))
    unknown = []
    for text in texts:
        module = text
        while module not in MODULES:
            module = module.rpartition(".")[0]
        rest = text[len(module) + 1 :].split(".")
        if rest[0] and rest[0] not in names_of(module):
            unknown.append(text)
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_functions_of_examples_have_types(page: Path) -> None:
    if page.name in UNTYPED:
        return
    untyped = [
        node.name
        for node in ast.walk(code_of(page))
        if isinstance(node, ast.FunctionDef)
        and (node.returns is None or None in [a.annotation for a in arguments(node)])
    ]
    assert untyped == []


def arguments(node: ast.FunctionDef) -> list[ast.arg]:
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    rest = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [a for a in [*every, *rest] if a.arg not in ("self", "cls")]


def test_signatures_on_pages_are_those_of_the_surface() -> None:
    surface = joined(PAGE.read_text("utf-8"))
    texts = [page.read_text("utf-8") for page in PAGES]
    blocks = [b for text in texts for b in re.findall(r"```py\n(.*?)```", text, re.DOTALL)]
    parts = [re.split(r"^(?=\w)", block, flags=re.MULTILINE) for block in blocks]
    signatures = [part for found in parts for part in found if part.startswith("def ")]
    assert len(signatures) > 10
    assert [s for s in signatures if joined(s) not in surface] == []


def joined(text: str) -> str:
    """Return a text without spaces, and without the comma before a closing parenthesis."""
    return re.sub(r",\)", ")", re.sub(r"\s", "", text))
