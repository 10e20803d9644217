"""Shared configuration of the tests: Hypothesis profiles, an option, skips without JAX."""

from __future__ import annotations

import gc
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

# `fast` is deterministic and for every run; `brief` is its beginning, for a second Python, where
# little but XLA differs; `laws` (make laws) searches for counterexamples.
settings.register_profile(
    "fast",
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "laws",
    max_examples=1000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("brief", settings.get_profile("fast"), max_examples=8)
settings.load_profile("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the expected output in tests/golden",
    )


def pytest_collection_finish() -> None:
    """Leave the collected tests, most objects of the process, out of garbage collections."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_spec("jax") is not None:
        return
    skip = pytest.mark.skip(reason="compares with JAX, which is not installed (extra `bench`)")
    for item in items:
        if item.get_closest_marker("jax") is not None:
            item.add_marker(skip)
