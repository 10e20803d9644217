"""Run times of compiled programs: each is compiled once, and calls are timed until completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from measure import Case, Thunk

import effax
import effax.lax as elax
import effax.numpy as enp

LEVEL = 0.9
"""The budget for the speed of JAX, with a tolerance of a tenth for noise."""

Function = Callable[..., Any]


class Library(NamedTuple):
    """One side: the package, its NumPy and its lax."""

    top: Any
    np: Any
    lax: Any
    wait: Callable[[Any], object]


# Calls of effax are synchronous.
OURS = Library(effax, enp, elax, lambda out: out)
THEIRS = Library(jax, jnp, jax.lax, jax.block_until_ready)

Make = Callable[[Library], tuple[Any, ...]]
"""From a library to a function and its arguments, as NumPy arrays."""


def compiled_cases() -> Iterator[Case]:
    """Yield models, linear algebra, sorting and loops."""
    for name, make in MAKERS.items():
        yield _case(f"run: {name}", make)


def _case(name: str, make: Make) -> Case:
    def side(library: Library) -> Callable[[int], Thunk]:
        def prepare(_: int) -> Thunk:
            f, *args = make(library)
            inputs = [library.top.tree.map(library.np.asarray, arg) for arg in args]
            call = library.top.jit(f)
            return lambda: library.wait(call(*inputs))

        return prepare

    return Case(name, side(OURS), side(THEIRS), LEVEL, fresh=False)


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _regular(n: int) -> np.ndarray:
    return _normal(n, n) + 8 * np.eye(n, dtype=np.float32)


def _train(lib: Library) -> tuple[Any, ...]:
    sizes = (64, 128, 128, 10)
    params = [(0.1 * _normal(a, b), np.zeros(b, np.float32)) for a, b in pairwise(sizes)]
    labels = np.eye(10, dtype=np.float32)[np.arange(128) % 10]

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = lib.np.tanh(x @ w + b)
        w, b = params[-1]
        return -lib.np.mean(lib.np.sum(lib.top.nn.log_softmax(x @ w + b) * y, axis=1))

    def step(params: Any, x: Any, y: Any) -> Any:
        slopes = lib.top.grad(loss)(params, x, y)
        return lib.top.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    return step, params, _normal(128, 64), labels


def _rnn(lib: Library) -> tuple[Any, ...]:
    def loss(w: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = lib.np.tanh(c @ w + x)
            return c, c

        return lib.np.sum(lib.lax.scan(step, lib.np.zeros((16, 64)), xs)[1] ** 2)

    return lib.top.grad(loss), 0.1 * _normal(64, 64), _normal(100, 16, 64)


def _convolution(lib: Library) -> tuple[Any, ...]:
    def loss(k: Any, x: Any) -> Any:
        return lib.np.sum(lib.lax.conv_general_dilated(x, k, (1, 1), "SAME") ** 2)

    return lib.top.grad(loss), _normal(16, 3, 3, 3), _normal(8, 3, 32, 32)


def _attention(lib: Library) -> tuple[Any, ...]:
    def loss(q: Any) -> Any:
        weights = lib.top.nn.softmax(lib.np.einsum("bhid,bhjd->bhij", q, q))
        return lib.np.sum(lib.np.einsum("bhij,bhjd->bhid", weights, q) ** 2)

    return lib.top.grad(loss), _normal(4, 4, 64, 32)


def _solve(lib: Library) -> tuple[Any, ...]:
    def total(a: Any, b: Any) -> Any:
        return lib.np.sum(lib.np.linalg.solve(a, b))

    return lib.top.grad(total), _regular(50), _normal(50)


def _many_solves(lib: Library) -> tuple[Any, ...]:
    return lib.np.linalg.solve, _normal(500, 4, 4), _normal(500, 4, 1)


def _while(lib: Library) -> tuple[Any, ...]:
    def run(x: Any) -> Any:
        return lib.lax.while_loop(lambda c: c[0] < 1000, lambda c: (c[0] + 1, c[1] * 0.99), (0, x))

    return run, _normal(10)


def _log_determinant(lib: Library) -> tuple[Any, ...]:
    return lib.top.grad(lambda a: lib.np.linalg.slogdet(a)[1]), _regular(60)


TABLE, LOOKUPS = 100_000, 1_000


def _lookups() -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(0).integers(0, TABLE, LOOKUPS).astype(np.int32)
    return rows, _normal(LOOKUPS, 64)


def _accumulation(lib: Library) -> tuple[Any, ...]:
    def add(rows: Any, values: Any) -> Any:
        r = lib.top.new_ref(lib.np.zeros((TABLE, 64)))

        def step(c: Any, at: Any) -> Any:
            r[at[0]] += at[1]
            return c, None

        lib.lax.scan(step, 0, (rows, values))
        return lib.top.freeze(r)

    return add, *_lookups()


def _gather(lib: Library) -> tuple[Any, ...]:
    def slopes(rows: Any, values: Any) -> Any:
        table = lib.np.zeros((TABLE, 64))
        return lib.top.grad(lambda t: lib.np.sum(t[rows] * values))(table)

    return slopes, *_lookups()


MAKERS: dict[str, Make] = {
    "training step": _train,
    "grad of a scan": _rnn,
    "grad of a convolution": _convolution,
    "grad of attention": _attention,
    "cholesky 60": lambda lib: (lambda a: lib.np.linalg.cholesky(a @ a.T), _regular(60)),
    "qr 60": lambda lib: (lib.np.linalg.qr, _regular(60)),
    "eigh 60": lambda lib: (lib.np.linalg.eigh, _regular(60)),
    "svd 60": lambda lib: (lib.np.linalg.svd, _regular(60)),
    "inv 60": lambda lib: (lib.np.linalg.inv, _regular(60)),
    "grad of slogdet 60": _log_determinant,
    "grad of solve 50": _solve,
    "500 systems of 4": _many_solves,
    "top_k of 300×1000": lambda lib: (lambda x: lib.lax.top_k(x, 10), _normal(300, 1000)),
    "sort 10,000": lambda lib: (lib.np.sort, _normal(10_000)),
    "while, 1,000 steps": _while,
    "1,000 lookups by a ref": _accumulation,
    "1,000 lookups, one gather": _gather,
    "grad of cumprod": lambda lib: (
        lib.top.grad(lambda x: lib.np.sum(lib.np.cumprod(x))),
        _normal(1000),
    ),
}
