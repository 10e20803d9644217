"""Every exported name has a declared type, by pyright's report on an installed package."""

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
    """True if the type is declared completely, so that every checker infers the same."""
    why: str
    """The diagnostics about undeclared parts."""


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
        Symbol(symbol["name"], symbol["isTypeKnown"], _messages(symbol["diagnostics"]))
        for symbol in report["symbols"]
        if symbol["isExported"]
    ]


def _messages(diagnostics: list[dict[str, str]]) -> str:
    lines = [d["message"].replace("\xa0", "").split("\n") for d in diagnostics]
    return "; ".join(" ".join(line[:2]) for line in lines if "docstring" not in line[0])


def test_the_report_covers_every_part(exported: list[Symbol]) -> None:
    parts = {".".join(symbol.name.split(".")[:2]) for symbol in exported}
    assert {"effax.effects", "effax.ir", "effax.lax", "effax.numpy", "effax.testing"} <= parts
    assert len(exported) > 5000


def test_every_exported_type_is_declared(exported: list[Symbol]) -> None:
    unknown = [f"{s.name}: {s.why}" for s in exported if not s.known]
    # An unknown type makes the types that mention it partially unknown: report the cause.
    causes = [line for line in unknown if "partially unknown" not in line] or unknown
    assert not causes, "\n".join(causes)
