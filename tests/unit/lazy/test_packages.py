"""Packages import their names on first use, and only those."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import cast

import pytest

import effax
from effax.lazy import packages
from tests import name_index

ROOT = Path(effax.__file__).parents[1]

MOST_OF_FIRST_JIT = 330
"""The most modules of effax that the first jitted call loads."""


def loaded_by(code: str) -> list[str]:
    """Return the modules of effax, and whether NumPy is loaded, after a program."""
    show = "import sys; print(*[m for m in sys.modules if m.split('.')[0] in ('effax', 'numpy')])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


def test_an_import_loads_names_only() -> None:
    assert set(loaded_by("import effax as jax, effax.numpy as jnp")) == {
        "effax", "effax.lazy", "effax.lazy.index", "effax.lazy.packages", "effax.numpy",
        "effax.version",
    }  # fmt: skip


@pytest.mark.slow
def test_a_first_call_loads_what_it_needs() -> None:
    code = "import effax, effax.numpy as jnp\neffax.jit(lambda x: x * 2 + 1)(jnp.ones(3))"
    loaded = [name for name in loaded_by(code) if name.startswith("effax")]
    assert len(loaded) <= MOST_OF_FIRST_JIT
    late = ("effax.show", "effax.testing", "effax.export", "effax.drop_in", "effax.scipy")
    assert not [name for name in loaded if name.startswith((*late, "effax.numpy.linalg"))]


@pytest.mark.slow
def test_the_index_is_up_to_date() -> None:
    assert name_index.page() == name_index.PAGE.read_text("utf-8"), "run `make surface`"


def test_functions_win_over_modules_of_their_name() -> None:
    for package, name in (("effax.random", "gamma"), ("effax.transforms", "jvp")):
        assert isinstance(import_module(f"{package}.{name}"), ModuleType)
        assert isinstance(getattr(import_module(package), name), FunctionType)


@pytest.mark.parametrize("entries", [{}, {"relu": ("effax.nn.attention", "relu")}])
def test_a_name_that_the_index_lacks_or_that_moved_is_found(
    entries: dict[str, packages.Origin], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(packages._known, "effax.nn", entries)
    vars(effax.nn).pop("relu", None)
    assert effax.nn.relu.__module__ == "effax.nn.activations"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'sine'"):
        effax.numpy.sine  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(effax, "__wrapped__")


def test_all_names_are_listed() -> None:
    assert {"jit", "numpy", "float0", "config"} <= set(dir(effax))
    listed = set(cast("list[str]", getattr(effax.numpy, "__all__")))  # noqa: B009  computed
    assert {"sin", "linalg", "bfloat16"} <= listed
    assert not {"annotations", "TYPE_CHECKING"} & listed
