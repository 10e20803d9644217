"""The passes of the library: exported, documented, and covered by golden files."""

from __future__ import annotations

import re
from pathlib import Path

from effax import passes, transforms
from tests.golden.subjects import SUBJECTS, TOGETHER

ROOT = Path(__file__).parents[3]
NAMES = {step.name for step in passes.ALL}


def test_all_contains_the_values_of_the_module() -> None:
    assert {"dce", "cse", "unroll", "fuse_accumulations"} <= NAMES
    assert "optimize" not in NAMES  # a composition, not one pass


def test_every_pass_is_exported_as_a_value_and_as_a_function() -> None:
    for name in NAMES:
        assert getattr(passes, name).name == name
        assert name in passes.__all__
        assert callable(getattr(transforms, name))


def test_the_table_of_the_documentation_lists_every_pass() -> None:
    page = (ROOT / "docs" / "passes.md").read_text()
    table = page.split("## Passes of the library")[1]
    rows = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    assert rows == NAMES | {"optimize"}


def test_every_pass_has_golden_files() -> None:
    folders = {TOGETHER.get(name, name) for name in NAMES}
    assert folders <= set(SUBJECTS)
    for folder in folders:
        assert [*(ROOT / "tests" / "golden" / folder).glob("*.jaxpr")], folder
