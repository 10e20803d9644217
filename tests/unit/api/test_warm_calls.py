"""Calls of a compiled function that was called before, with arguments in trees."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import tree_util
from effax.ir.errors import RefError

Pair = namedtuple("Pair", ["x", "y"])  # as users write them


class Traced:
    """A function with a count of its traces."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, tree: Any, scale: Any = 1.0) -> Any:
        self.times += 1
        return effax.tree.map(lambda x: x * scale, tree)


def _agrees(tree: Any, **kwargs: Any) -> None:
    """Three calls, one trace, and the right tree each time."""
    traced = Traced()
    f = effax.jit(traced)
    for n in (1.0, 2.0, 3.0):
        given = effax.tree.map(lambda x, n=n: x + n, tree)
        expected = effax.tree.map(
            lambda x: np.asarray(x) * np.asarray(kwargs.get("scale", 1.0)), given
        )
        found = f(given, **kwargs)
        assert effax.tree.structure(found) == effax.tree.structure(expected)
        for a, b in zip(effax.tree.leaves(found), effax.tree.leaves(expected), strict=True):
            assert np.array_equal(np.asarray(a), b)
    assert traced.times == 1


ONE, TWO = jnp.ones(3), jnp.full(2, 2.0)


@pytest.mark.parametrize(
    "tree",
    [
        {"b": ONE, "a": TWO},
        {"net": [{"w": ONE, "b": TWO}, (TWO, None)], "step": jnp.float32(1)},
        Pair(ONE, [TWO]),
        OrderedDict([("z", ONE), ("a", TWO)]),
        {1: ONE, "a": TWO},
        [],
        {2: np.ones(3, np.float32), 1: ONE},
    ],
)
def test_trees_of_every_kind(tree: Any) -> None:
    _agrees(tree)
    _agrees(tree, scale=jnp.float32(3))


def test_keywords_in_another_order_are_the_same_call() -> None:
    times = []

    @effax.jit
    def f(**kwargs: Any) -> Any:
        times.append(1)
        return kwargs["a"] - 2 * kwargs["b"]

    assert float(f(a=jnp.float32(1), b=jnp.float32(2))) == -3
    assert float(f(b=jnp.float32(2), a=jnp.float32(1))) == -3
    assert len(times) == 1


@pytest.mark.slow
def test_another_structure_is_another_call() -> None:
    f = effax.jit(lambda tree: sum(effax.tree.leaves(tree)) + len(tree))
    one = jnp.float32(1)
    for _ in range(2):
        assert float(f([one, one])) == 4
        assert float(f((one, one, one))) == 6
        assert float(f({"a": one})) == 2
        assert float(f({"a": [one, one]})) == 3
        assert float(f({"b": one, "a": None})) == 3


@pytest.mark.filterwarnings("ignore:PyTree type")
def test_a_node_of_ones_own_keeps_its_order() -> None:
    # To XLA's own flattening this is a named tuple, with its leaves the other way around.
    Flipped = namedtuple("Flipped", ["x", "y"])
    tree_util.register_pytree_node(
        Flipped,
        lambda p: ((p.y, p.x), None),
        lambda _, children: Flipped(*reversed(tuple(children))),
    )
    f = effax.jit(lambda p: p.x - 2 * p.y)
    for _ in range(3):
        assert float(f(Flipped(jnp.float32(5), jnp.float32(1)))) == 3


def test_a_registered_class_is_taken_apart() -> None:
    @tree_util.register_dataclass
    @dataclass
    class State:
        x: Any
        y: Any

    f = effax.jit(lambda s: State(s.y, s.x))
    for _ in range(2):
        out = f(State(jnp.float32(1), jnp.float32(2)))
        assert (float(out.x), float(out.y)) == (2, 1)


def test_what_types_are_allowed_may_change_between_calls() -> None:
    f = effax.jit(lambda t: t["x"] + 1)
    given = {"x": jnp.ones(2)}
    for _ in range(2):
        assert f(given).dtype == "float32"
        with effax.enable_x64():
            assert f({"x": jnp.ones(2)}).dtype == "float64"


def test_references_in_trees_are_updated_and_checked() -> None:
    @effax.jit
    def f(state: dict[str, Any], x: Any) -> Any:
        state["r"][...] += x
        return state["s"][...] + x

    state = {"r": effax.new_ref(jnp.zeros(2)), "s": effax.new_ref(jnp.ones(2))}
    for _ in range(3):
        f(state, jnp.ones(2))
    assert np.array_equal(state["r"][...], [3, 3])
    same = {"r": state["r"], "s": state["r"]}
    for _ in range(2):
        with pytest.raises(RefError, match="one reference"):
            f(same, jnp.ones(2))
    consumed = {"r": effax.new_ref(jnp.zeros(2)), "s": state["s"]}
    effax.freeze(consumed["r"])
    for _ in range(2):
        with pytest.raises(RefError):
            f(consumed, jnp.ones(2))
    assert np.array_equal(state["r"][...], [3, 3])


@pytest.mark.parametrize("error", [TypeError, AttributeError, RuntimeError])
def test_a_python_function_that_raises_is_called_once(error: type[Exception]) -> None:
    calls = []

    def record(x: Any) -> None:
        calls.append(1)
        raise error("mine")

    @effax.jit
    def f(tree: dict[str, Any]) -> Any:
        effax.debug.callback(record, tree["x"])
        return tree["x"] + 1

    for n in (1, 2, 3):
        with pytest.raises(error, match="mine"):
            f({"x": jnp.ones(2)})
        assert len(calls) == n
