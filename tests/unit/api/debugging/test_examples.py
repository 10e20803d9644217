from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = ("effax.api.debugging.explore", "effax.api.debugging.difference", "effax.arrays.config")


@pytest.mark.parametrize("name", MODULES)
def test_every_example_prints_its_output(name: str) -> None:
    found = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed
