"""A law of the library's as a test, on the programs that it says it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given

from effax.testing.generate.features import Features
from effax.testing.laws import Law
from effax.testing.laws.runner import run
from effax.testing.strategies import seeds, subjects


def holds(law: Law[...], features: Features | None = None) -> Callable[[], None]:
    """The test that a law holds for the library.

    Args:
        law: the law.
        features: other programs than those on which it is tried.
    """

    @given(subjects(law.about, features or law.features), seeds)
    def test(drawn: tuple[Any, ...], seed: int) -> None:
        run(law, drawn, seed, {})

    test.__doc__ = law.equation
    return test
