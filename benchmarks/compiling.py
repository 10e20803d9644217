"""Times to compile: trace, lower and compile a function that was not compiled before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import programs
from compiled import OURS, THEIRS, Library
from measure import Case, Thunk

LEVEL = 0.9
"""The budget for the speed of JAX, with a tolerance of a tenth for noise."""

Make = Callable[[Library, float], tuple[Any, ...]]
"""From a library and a constant to a function and its arguments."""


def compiling_cases(full: bool) -> Iterator[Case]:
    """Yield programs; the largest ones if ``full``."""
    yield _lowering()
    yield _case("compile: new small program", _small, 1.3)
    yield _case("compile: scalar, 1,000 eqns", _scalar)
    if full:
        yield _case("compile: perceptron, 50", _perceptron)
        yield _case("compile: transformer, 4", transformer)


def _lowering() -> Case:
    """Return a case of the module of a traced function; the unit is an equation."""
    n = 1_000

    def traced(library: Library, seed: int) -> Any:
        f = programs.elementwise(library.np, n, 1.0 + seed / 4096)
        return library.top.jit(f).trace(library.np.ones(programs.WIDTH))

    def prepare_ours(seed: int) -> Thunk:
        stage = traced(OURS, seed)
        # The text is the module; JAX's is made of objects of MLIR.
        return lambda: stage.lower().as_text()

    def prepare_theirs(seed: int) -> Thunk:
        lower: Thunk = traced(THEIRS, seed).lower
        return lower

    return Case("lower to StableHLO 1,000", prepare_ours, prepare_theirs, 8, n)


def _case(name: str, make: Make, budget: float = LEVEL) -> Case:
    def side(library: Library) -> Callable[[int], Thunk]:
        def prepare(seed: int) -> Thunk:
            f, *args = make(library, 1.0 + seed / 4096)
            inputs = [library.top.tree.map(library.np.asarray, arg) for arg in args]
            return lambda: library.top.jit(f).lower(*inputs).compile()

        return prepare

    return Case(name, side(OURS), side(THEIRS), budget)


def _normal(*shape: int) -> np.ndarray:
    return 0.1 * np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _small(lib: Library, constant: float) -> tuple[Any, ...]:
    return (lambda x: lib.np.sum(lib.np.sin(x * constant) ** 2)), _normal(64)


def _scalar(lib: Library, constant: float) -> tuple[Any, ...]:
    return programs.elementwise(lib.np, 1_000, constant), np.float32(0.5)


def _step(lib: Library, loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(params: Any, *args: Any) -> Any:
        slopes = lib.top.grad(loss)(params, *args)
        return lib.top.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    return step


def _perceptron(lib: Library, constant: float) -> tuple[Any, ...]:
    def loss(params: Any, x: Any) -> Any:
        for w, b in params:
            x = lib.np.tanh(x @ w + b)
        return lib.np.mean(x**2) * constant

    sizes = (32,) * 51
    return (
        _step(lib, loss),
        [(_normal(a, b), _normal(b)) for a, b in pairwise(sizes)],
        _normal(16, 32),
    )


def transformer(lib: Library, constant: float) -> tuple[Any, ...]:
    """Return a training step of four layers, and its arguments."""
    heads, width, words, length, batch = 4, 64, 128, 32, 4

    def norm(x: Any) -> Any:
        return (x - lib.np.mean(x, -1, keepdims=True)) / lib.np.std(x, -1, keepdims=True)

    def split(x: Any) -> Any:
        return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    def block(p: Any, x: Any) -> Any:
        q, k, v = (split(part) for part in lib.np.split(norm(x) @ p["qkv"], 3, -1))
        scores = lib.np.einsum("bhid,bhjd->bhij", q, k) / (width // heads) ** 0.5
        mask = lib.np.tril(lib.np.ones((length, length), bool))
        weights = lib.top.nn.softmax(lib.np.where(mask, scores, -1e9))
        heard = lib.np.einsum("bhij,bhjd->bhid", weights, v).transpose(0, 2, 1, 3)
        x = x + heard.reshape(batch, length, width) @ p["out"]
        return x + lib.top.nn.gelu(norm(x) @ p["up"]) @ p["down"]

    def loss(params: Any, tokens: Any) -> Any:
        x = params["words"][tokens] * constant
        for p in params["layers"]:
            x = block(p, x)
        found = lib.top.nn.log_softmax(norm(x) @ params["words"].T)
        return -lib.np.mean(lib.np.take_along_axis(found, tokens[..., None], -1))

    layer = {
        "qkv": _normal(width, 3 * width),
        "out": _normal(width, width),
        "up": _normal(width, 4 * width),
        "down": _normal(4 * width, width),
    }
    params = {"words": _normal(words, width), "layers": [dict(layer) for _ in range(4)]}
    tokens = np.arange(batch * length, dtype=np.int32).reshape(batch, length) % words
    return _step(lib, loss), params, tokens
