"""Whoever uses effax sees the type of everything: judged as pyright sees an installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import effax

ROOT = Path(effax.__file__).parents[1]


@dataclass(frozen=True)
class Symbol:
    name: str
    known: bool
    """Whether every checker would come to the same type."""
    inferred: bool
    """Whether the type is known by inference only, on which checkers may differ."""


@pytest.fixture(scope="module")
def exported() -> list[Symbol]:
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed (extra `dev`)")
    bin_folder = str(Path(sys.executable).parent)
    env = os.environ | {
        "PATH": os.pathsep.join([bin_folder, os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
    }
    command = (sys.executable, "-m", "pyright", "--verifytypes", "effax", "--ignoreexternal")
    run = subprocess.run(
        [*command, "--outputjson"], env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    report = json.loads(run.stdout)["typeCompleteness"]
    return [
        Symbol(symbol["name"], symbol["isTypeKnown"], symbol["isTypeAmbiguous"])
        for symbol in report["symbols"]
        if symbol["isExported"]
    ]


def test_the_report_covers_every_part(exported: list[Symbol]) -> None:
    parts = {".".join(symbol.name.split(".")[:2]) for symbol in exported}
    assert {"effax.effects", "effax.ir"} <= parts


def test_no_exported_type_is_unknown(exported: list[Symbol]) -> None:
    """The lowering aside, whose adapter holds objects of jaxlib, which ships no types."""
    unknown = [s.name for s in exported if not (s.known or s.inferred)]
    assert not [name for name in unknown if not name.startswith("effax.lowering.")]
