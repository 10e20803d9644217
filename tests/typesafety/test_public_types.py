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
CORE = ("effax.effects", "effax.ir", "effax.transforms", "effax.lowering")


@dataclass(frozen=True)
class Symbol:
    name: str
    known: bool
    """Whether every checker would come to the same type."""
    inferred: bool
    """Whether the type is known by inference only, on which checkers may differ."""

    @property
    def in_core(self) -> bool:
        return self.name.startswith(tuple(f"{package}." for package in CORE))


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
    assert not [s.name for s in exported if not (s.known or s.inferred)]


def test_the_front_door_leaves_no_type_to_inference(exported: list[Symbol]) -> None:
    assert not [s.name for s in exported if s.inferred and not s.in_core]
