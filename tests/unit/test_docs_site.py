"""The site of the documentation: it has every page, and the reference has every public name."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import isclass, isfunction
from pathlib import Path
from types import ModuleType

import pytest

import effax

ROOT = Path(effax.__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "site" not in path.parts)
SITE = (ROOT / "mkdocs.yml").read_text("utf-8")


def documented() -> dict[str, list[str]]:
    """Return the names that the reference has of each module; an empty list means all."""
    found: dict[str, list[str]] = {}
    for page in sorted((DOCS / "api").glob("*.md")):
        parts = re.split(r"^::: (\S+)$", page.read_text("utf-8"), flags=re.MULTILINE)
        for module, options in zip(parts[1::2], parts[2::2], strict=True):
            found[module] = re.findall(r"^ +- (\w+)$", options, re.MULTILINE)
    return found


REFERENCE = documented()


def public_names(module: str) -> list[str]:
    """Return the names that the reference shows of a module."""
    loaded = import_module(module)
    own = [n for n, v in vars(loaded).items() if not n.startswith("_") and is_ours(v)]
    return REFERENCE[module] or list(getattr(loaded, "__all__", own))


def is_ours(value: object) -> bool:
    return getattr(value, "__module__", "").startswith("effax")


def test_every_entry_of_the_navigation_is_a_page() -> None:
    entries = {*re.findall(r": ([\w/-]+\.md)$", SITE, re.MULTILINE)}
    there = {path.relative_to(DOCS).as_posix() for path in PAGES}
    assert len(entries) > 20
    assert entries <= there


@pytest.mark.parametrize("module", REFERENCE)
def test_public_names_are_documented(module: str) -> None:
    loaded = import_module(module)
    assert loaded.__doc__
    names = public_names(module)
    assert names
    for name in names:
        value = getattr(loaded, name)
        # Dtypes are classes that have a name, and nothing to say about it.
        if isfunction(value) or (isclass(value) and module not in ("effax.numpy", "effax.dtypes")):
            assert value.__doc__, f"{module}.{name}"


def test_every_public_package_is_in_the_reference() -> None:
    package = Path(effax.__file__).parent
    public = {
        f"effax.{path.parent.name}"
        for path in package.glob("*/__init__.py")
        if hasattr(import_module(f"effax.{path.parent.name}"), "__all__")
    }
    roots = {".".join(module.split(".")[:2]) for module in REFERENCE}
    assert sorted(public - roots - {"effax.api"}) == []


def test_links_lead_to_pages_of_the_site() -> None:
    for page in PAGES:
        prose = re.sub(r"```.*?```|`[^`\n]*`", "`", page.read_text("utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", prose):
            target = (page.parent / link).resolve()
            assert target.is_file(), f"{page.name}: {link}"
            assert target.is_relative_to(DOCS), f"{page.name}: {link}"


@pytest.fixture
def docstrings(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module of the site, imported without its tool."""
    tool = ModuleType("griffe")
    tool.__dict__.update(Extension=object, Object=object)
    monkeypatch.setitem(sys.modules, "griffe", tool)
    spec = spec_from_file_location("docstrings", DOCS / "site" / "docstrings.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FIELDS = """Do it, see :func:`this`.

Type:     a -> b
Laws:     tests/laws/test_it.py
Raises:   IllTyped: one thing is wrong; or another (see
          below); BadArgument: a third
          one.
Source:   a book.

Args:
    a: an input.
"""


def test_fields_of_docstrings_are_sections_of_pages(docstrings: ModuleType) -> None:
    made = docstrings.markdown(FIELDS)
    assert "see `this`." in made
    assert "```text\nType:     a -> b\nLaws:     tests/laws/test_it.py\n" in made
    section = "Raises:\n    IllTyped: one thing is wrong; or another (see below)\n"
    assert f"\n\n{section}    BadArgument: a third one.\n\n" in made
    assert "```text\nSource:   a book.\n" in made
    assert made.endswith("Args:\n    a: an input.\n")
    assert made.count("```") == 4
    assert docstrings.markdown("So::\n\n    x\n\n::\n\n    y") == "So:\n\n    x\n\n\n\n    y"


def test_docstrings_have_the_sections_that_decorators_add(docstrings: ModuleType) -> None:
    assert "Args:\n    a: array or scalar.\n" in docstrings.complete("effax.numpy.reduce.sum")


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if find_spec("mkdocs") is None or find_spec("mkdocstrings_handlers") is None:
        pytest.skip("builds the site, for which mkdocs is not installed (extra `docs`)")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "effax.transforms.jvp.jvp" in (tmp_path / "api" / "transforms.html").read_text("utf-8")
