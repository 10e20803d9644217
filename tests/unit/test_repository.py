"""Files around the package agree with it: pinned tools, versions, workflows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import effax

ROOT = Path(effax.__file__).parents[1]
PINS = {
    requirement.partition("==")[0].partition("[")[0]: requirement.partition("==")[2]
    for requirement in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]["dev"]
    if "==" in requirement
}


def text(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def test_pre_commit_hooks_have_the_versions_of_the_dev_extra() -> None:
    hooks = dict(re.findall(r"repo: \S+/(\S+)\n    rev: v(\S+)", text(".pre-commit-config.yaml")))
    assert hooks == {
        "ruff-pre-commit": PINS["ruff"],
        "import-linter": PINS["import-linter"],
    }


def test_the_citation_has_the_version_of_the_package() -> None:
    assert f"\nversion: {effax.__version__}\n" in text("CITATION.cff")


def test_workflows_run_the_two_commands_on_each_supported_python() -> None:
    workflow = text(".github/workflows/test.yml")
    assert 'python: ["3.11", "3.12", "3.13"]' in workflow
    assert "make demo" in workflow
    assert "make test" in workflow
    classifiers = re.findall(r"Python :: (3\.\d+)", text("pyproject.toml"))
    assert classifiers == ["3.11", "3.12", "3.13"]


def test_a_tag_publishes_the_wheel_and_the_documentation() -> None:
    workflow = text(".github/workflows/release.yml")
    assert 'tags: ["v*"]' in workflow
    assert "python -m build" in workflow
    assert "make docs" in workflow


def test_contributing_is_short() -> None:
    path = ROOT / "CONTRIBUTING.md"
    assert len(path.read_text("utf-8").splitlines()) <= 120
