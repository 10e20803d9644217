"""Examples in docstrings outside of the array functions print what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import effax

ROOT: Final = Path(effax.__file__).parent
ROOMS: Final = (
    *("effects", "ir", "transforms", "lowering", "passes", "arrays", "api"),
    *("extend", "show", "tree"),
)
GLOBALS: Final = {
    "effax": effax,
    "jax": effax,
    "jnp": effax.numpy,
    "np": np,
    "lax": effax.lax,
    "export": effax.export,
}


def modules() -> list[str]:
    """Return the modules of the rooms that have examples."""
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    found = [file.relative_to(ROOT.parent) for file in files if ">>> " in file.read_text("utf-8")]
    return [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in found]


@pytest.mark.parametrize("module", modules())
def test_examples_print_what_they_show(module: str) -> None:
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder().find(import_module(module), extraglobs=GLOBALS):
        runner.run(example, out=report.append)
    assert report == []
