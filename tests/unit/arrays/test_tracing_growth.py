"""Names of leaves are made for errors only: no work that grows with the square of their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import effax as jax
from effax import tree
from effax.ir.errors import IllTyped

N = 30


def call_python(xs: list[np.ndarray]) -> object:
    return jax.experimental.io_callback(lambda *_: None, None, *xs)


def return_constants(xs: list[np.ndarray]) -> object:
    return jax.make_jaxpr(lambda x: [*xs, x])(1.0)


@pytest.mark.parametrize("call", [call_python, return_constants])
def test_paths_are_not_made_for_each_leaf(
    call: Callable[[Any], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Mock(wraps=tree.paths)
    monkeypatch.setattr(tree, "paths", asked)
    call([np.ones(2, np.float32)] * N)
    assert asked.call_count < N


@pytest.mark.parametrize("call", [call_python, return_constants])
def test_errors_name_the_leaf(call: Callable[[Any], object]) -> None:
    with pytest.raises(IllTyped, match=r"(argument 1|result\[1\]) of .* is not an array"):
        call([np.ones(2), "text"])
