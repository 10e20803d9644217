"""Run times on several CPU devices of one process: calls, collectives, transfers, lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from compiled import LEVEL, OURS, THEIRS, Library
from measure import Case, Thunk

DEVICES = 8
COUNTS = (2, 4, 8)
SIZES = {"1 kB": 1 << 8, "1 MB": 1 << 18, "64 MB": 1 << 24}
"""The sizes of a device's part, in float32."""

SIDES = (OURS, THEIRS)
Maker = Callable[[Library, int], Thunk]


def divided_cases(quick: bool) -> Iterator[Case]:
    """Yield the cases, for processes of 8 devices; few with ``quick``."""
    counts = COUNTS[1:2] if quick else COUNTS
    for n in counts:
        yield _case(f"add on {n} devices", lambda lib, n: _call(lib, n, 8, _add), n)
    yield _case("training step on 4", _training, 4)
    for name, size in list(SIZES.items())[: 2 if quick else 3]:
        for n in counts:
            yield _case(f"psum of {name} on {n}", psum_of(size), n)
    yield _case("put 1 MB on 8", _put, 8)
    yield _case("read 1 MB of 8", _read, 8)
    yield _case("lower shard_map for 8", _lower, 8)


def _case(name: str, make: Maker, n: int) -> Case:
    ours, theirs = ((lambda _, lib=lib: make(lib, n)) for lib in SIDES)
    return Case(name, ours, theirs, LEVEL, fresh=False, wall=True)


def _mesh(lib: Library, n: int) -> Any:
    return lib.top.sharding.Mesh(np.array(lib.top.devices()[:n]), ("x",))


def _rows(lib: Library, n: int, *axes: str) -> Any:
    spec = lib.top.sharding.PartitionSpec(*axes)
    return lib.top.sharding.NamedSharding(_mesh(lib, n), spec)


def _call(lib: Library, n: int, size: int, fun: Callable[[Any], Any]) -> Thunk:
    x = lib.top.device_put(np.ones((n, size), np.float32), _rows(lib, n, "x"))
    call = lib.top.jit(fun)
    return lambda: lib.wait(call(x))


def _add(x: Any) -> Any:
    return x + 1.0


def psum_of(size: int) -> Maker:
    """Return the maker of calls of psum, of parts of a size."""
    return lambda lib, n: _call(lib, n, size, _psum(lib, n))


def _psum(lib: Library, n: int) -> Callable[[Any], Any]:
    spec = lib.top.sharding.PartitionSpec
    options = {"mesh": _mesh(lib, n), "in_specs": spec("x"), "out_specs": spec()}
    fun: Callable[[Any], Any] = lib.top.shard_map(lambda part: lib.lax.psum(part, "x"), **options)
    return fun


def _training(lib: Library, n: int) -> Thunk:
    rng = np.random.default_rng(0)
    whole, rows = _rows(lib, n), _rows(lib, n, "x")
    shapes = ((64, 128), (128,), (128, 10), (10,))
    params = [
        lib.top.device_put(0.1 * rng.normal(size=s).astype(np.float32), whole) for s in shapes
    ]
    x = lib.top.device_put(rng.normal(size=(256, 64)).astype(np.float32), rows)
    y = lib.top.device_put(np.eye(10, dtype=np.float32)[np.arange(256) % 10], rows)

    def loss(params: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = params
        logits = lib.np.tanh(x @ w1 + b1) @ w2 + b2
        return -lib.np.mean(lib.np.sum(lib.top.nn.log_softmax(logits) * y, axis=1))

    def step(params: Any, x: Any, y: Any) -> Any:
        value, slopes = lib.top.value_and_grad(loss)(params, x, y)
        return [p - 0.1 * s for p, s in zip(params, slopes, strict=True)], value

    call = lib.top.jit(step)
    return lambda: lib.wait(call(params, x, y))


def _put(lib: Library, n: int) -> Thunk:
    # JAX shares memory at a multiple of 64 bytes, where NumPy's arrays begin by chance at most.
    value = np.ones(SIZES["1 MB"] + 1, np.float32)[1:].reshape(n, -1)
    rows = _rows(lib, n, "x")
    return lambda: lib.wait(lib.top.device_put(value, rows))


def _read(lib: Library, n: int) -> Thunk:
    call = lib.top.jit(_add)
    size = SIZES["1 MB"] // n
    x = lib.top.device_put(np.ones((n, size), np.float32), _rows(lib, n, "x"))
    # A new array for each, since arrays keep what was read.
    return lambda: np.asarray(call(x))


def _lower(lib: Library, n: int) -> Thunk:
    x = lib.top.device_put(np.ones((n, 8), np.float32), _rows(lib, n, "x"))
    spec = lib.top.sharding.PartitionSpec
    mesh = _mesh(lib, n)

    def run() -> object:
        # A new function for each: traces and modules are kept.
        def body(part: Any) -> Any:
            for i in range(50):
                part = lib.np.sin(part) * float(i) + lib.lax.psum(part, "x")
            return part

        fun = lib.top.shard_map(body, mesh=mesh, in_specs=spec("x"), out_specs=spec("x"))
        return lib.top.jit(fun).lower(x)

    return run
