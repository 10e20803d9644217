from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--examples", type=int, default=40, help="random programs of a test")


@pytest.fixture
def examples(request: pytest.FixtureRequest) -> int:
    """Return the number of random programs of a test."""
    found: object = request.config.getoption("--examples")
    assert isinstance(found, int)
    return found
