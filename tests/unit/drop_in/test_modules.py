"""Modules of JAX have the names of effax, and clear errors for the others."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

import effax
from effax.drop_in.modules import (
    MODULES,
    OWN,
    PUBLIC,
    MissingAttribute,
    MissingModule,
    effax_name,
    missing,
    module_of,
    names_of,
)
from effax.drop_in.sources import SOURCES
from tests import surface

OF_EFFAX: Final = {
    "effax.ad", "effax.checkpoint", "effax.drop_in", "effax.effects", "effax.extend", "effax.ir",
    "effax.launch", "effax.lowering", "effax.passes", "effax.show", "effax.testing",
    "effax.transforms",
}  # fmt: skip
"""Public modules that JAX does not have, or that have another meaning there."""


def test_every_public_module_of_jax_is_listed() -> None:
    public = [m for m in surface.MODULES if ".".join(m.split(".")[:2]) not in OF_EFFAX]
    assert sorted(map(effax_name, PUBLIC)) == sorted(public)


def test_the_page_lists_the_modules() -> None:
    page = Path(effax.__file__).parents[1] / "docs" / "drop-in.md"
    listed = page.read_text("utf-8").split("## Modules")[1].split("\n- ")[0]
    others = [name for name in SOURCES if not name.startswith("jax._src")]
    assert re.findall(r"`(jax[\w.]*)`", listed) == list(dict.fromkeys([*PUBLIC, *others]))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_module_has_the_public_names_of_that_of_effax(name: str) -> None:
    target, module = import_module(effax_name(name)), module_of(name)
    for public in surface.public_names(effax_name(name)):
        value = getattr(target, public)
        if public in OWN.get(name, {}):
            assert getattr(module, public) == OWN[name][public]
        elif not isinstance(value, ModuleType):
            assert getattr(module, public) is value
        elif f"{name}.{public}" in MODULES:
            assert getattr(module, public) is module_of(f"{name}.{public}")


def test_values_are_the_same_objects() -> None:
    module = module_of("jax.numpy")
    assert module.sin is effax.numpy.sin
    assert module.newaxis is None
    assert module.__doc__ == effax.numpy.__doc__
    assert "sin" in dir(module)


def test_the_version_is_that_of_jax() -> None:
    module = module_of("jax")
    assert module.__version__ == "0.12.0"
    assert module.__version_info__ == (0, 12, 0)


def test_names_that_are_not_of_jax_are_missing() -> None:
    module = module_of("jax")
    assert not hasattr(module, "show")
    assert not hasattr(module, "annotations")


def test_a_missing_name_has_similar_ones_in_its_error() -> None:
    with pytest.raises(MissingAttribute, match=r"effax lacks jax\.grda\n.*such as jax\.grad\n"):
        getattr(module_of("jax"), "grda")  # noqa: B009


def test_a_missing_name_has_the_same_name_elsewhere_in_its_error() -> None:
    with pytest.raises(MissingAttribute, match=r"such as jax\.nn\.logsumexp, .*\n.*issue"):
        getattr(module_of("jax.numpy"), "logsumexp")  # noqa: B009


def test_a_missing_module_is_an_import_error() -> None:
    error = missing(MissingModule, "jax.unknown.name")
    assert isinstance(error, ModuleNotFoundError)
    assert "effax lacks jax.unknown.name" in str(error)
    assert "expected" not in str(error)


def test_names_of_a_module_include_its_modules() -> None:
    assert {"numpy", "grad", "tree_util"} <= set(names_of("jax"))
    assert "linalg" in names_of("jax.numpy")
