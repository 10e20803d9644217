"""Bad input as data: a call, and the error that refuses it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import EffaxError
from effax.ir.trace import current_trace

# What is wrong is wrong in types too, so the library is taken as untyped.
jax: Any = effax


class Bad(NamedTuple):
    """A call that must be refused, and what its error says."""

    call: Callable[[], object]
    error: type[EffaxError]
    says: str
    found: str


def vector() -> Any:
    return jnp.arange(3.0)


def matrix() -> Any:
    return jnp.ones((2, 3))


def total(w: Any) -> Any:
    return (w**2).sum()


def check(bad: Bad) -> None:
    """The call raises, the error says what and where, and nothing is left of it."""
    with pytest.raises(bad.error, match=bad.says) as caught:
        bad.call()
    error = caught.value
    if bad.found:
        assert error.expected is not None
        assert error.found is not None
        assert re.search(bad.found, error.found), error.found
    assert current_trace() is None
