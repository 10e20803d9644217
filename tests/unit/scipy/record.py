"""Record SciPy's values: ``python -m tests.unit.scipy.record``, where SciPy is installed."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.unit.scipy.cases import CASES

FILE: Final = Path(__file__).with_name("expected.json")


def expected() -> dict[str, list[list[float]]]:
    """Return the recorded values, one list a call."""
    found: dict[str, list[list[float]]] = json.loads(FILE.read_text("utf-8"))
    return found


def computed(name: str, args: tuple[Any, ...]) -> list[float]:
    """Return SciPy's values of one call."""
    parts = name.split(".")
    module = import_module(f"scipy.{parts[0]}")
    owner = getattr(module, parts[1]) if len(parts) == 3 else module
    with np.errstate(all="ignore"):
        return np.ravel(np.asarray(getattr(owner, parts[-1])(*args), float)).tolist()


def main() -> None:
    found = {name: [computed(name, args) for args in calls] for name, calls in CASES.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
