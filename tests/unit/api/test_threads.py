"""Threads share functions and references: calls are atomic, and no call fails."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.api.ref_calls import RefProgram, executor_with_refs
from effax.ir.errors import LoweringError

jax: Any = effax
THREADS = 8


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(run: Callable[[int], object], n: int = THREADS) -> list[Any]:
    """Run ``run(0)``, ..., ``run(n - 1)`` in a thread each; raise the first error."""
    results: list[Any] = [None] * n
    errors: list[BaseException] = []
    start = threading.Barrier(n)

    def go(i: int) -> None:
        start.wait(60)
        try:
            results[i] = run(i)
        except BaseException as error:  # noqa: BLE001  # raised again below
            errors.append(error)

    threads = [threading.Thread(target=go, args=(i,), daemon=True) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def paused(f: Any, *operands: Any) -> tuple[Any, Any]:
    """The run of a program that waits in the middle of its next run, on request."""
    compiled = jax.jit(f).lower(*operands).compile()
    program = compiled.program
    at = SimpleNamespace(pause=False, entered=threading.Event(), go=threading.Event())

    def run(buffers: Any) -> Any:
        if at.pause:
            at.pause = False
            at.entered.set()
            assert at.go.wait(60)
        return program.executable.run(buffers)

    fake: Any = SimpleNamespace(
        run=run, run_whole=run, careful=False, contended=False, calls_python=False
    )
    done = program.discharged
    call = executor_with_refs(RefProgram(fake, done.refs, done.changed, lambda i: f"argument {i}"))
    return call, at


USES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "compiled update": (jax.jit(lambda r: r.addupdate(1.0)), lambda r: r[0]),
    "compiled read": (jax.jit(lambda r: r[0] + 0), lambda r: r[0] - 1),
    "eager update": (lambda r: r.addupdate(1.0), lambda r: r[0]),
    "eager read": (lambda r: r[...][0], lambda r: r[0] - 1),
    "eager element": (lambda r: r[0], lambda r: r[0] - 1),
    "eager write of an element": (lambda r: r.__setitem__(0, r[0] + 1), lambda r: r[0]),
    "freeze": (lambda r: jax.freeze(r)[0], lambda r: 1),
    "repr": (lambda r: float(repr(r)[5:].split(",")[0]), lambda r: r[0] - 1),
}


@pytest.mark.parametrize("name", USES)
def test_a_use_waits_for_the_call_in_progress(name: str) -> None:
    """The schedule is fixed: the use begins in the middle of an update."""
    use, total = USES[name]
    r = jax.new_ref(jnp.ones(3))
    use(jax.new_ref(jnp.ones(3)))
    call, at = paused(lambda r: r.__setitem__(..., r[...] * 10), r)
    call([r])
    at.pause = True
    first = threading.Thread(target=call, args=([r],))
    first.start()
    assert at.entered.wait(60)
    got: list[Any] = []
    second = threading.Thread(target=lambda: got.append(use(r)))
    second.start()
    second.join(0.02)
    waits = second.is_alive()
    at.go.set()
    first.join(60)
    second.join(60)
    assert waits
    assert not second.is_alive()
    seen = got[0] if got[0] is not None else total(r) - 1
    assert float(seen) == 100


def test_updates_of_one_reference() -> None:
    r = jax.new_ref(jnp.zeros(1000))

    f = jax.jit(lambda r: r.__setitem__(..., r[...] + 1))
    in_threads(lambda i: [f(r) for _ in range(100)])
    assert bool(jnp.all(r[...] == THREADS * 100))


def test_updates_of_two_references_in_both_orders() -> None:
    a, b = jax.new_ref(0.0), jax.new_ref(0.0)

    def moved(x: Any, y: Any) -> None:
        x[...] += 1
        y[...] -= 1

    move = jax.jit(moved)
    total = jax.jit(lambda x, y: x[...] + y[...])

    def run(i: int) -> None:
        for _ in range(50):
            if i % 3 == 0:
                move(a, b)
            elif i % 3 == 1:
                move(b, a)
            else:
                assert float(total(a, b)) == 0

    in_threads(run, 9)
    assert float(a[...]) == float(b[...]) == 0


def test_eager_operations_and_updates() -> None:
    r = jax.new_ref(jnp.zeros(3))
    f = jax.jit(lambda r: r.addupdate(1.0))
    kinds = [lambda: f(r), lambda: r.addupdate(1.0), lambda: r[...], lambda: r[0]]
    in_threads(lambda i: [kinds[i % 4]() for _ in range(50)])
    np.testing.assert_array_equal(r[...], [200, 200, 200])


def test_first_uses_of_a_reference_and_of_a_function() -> None:
    for _ in range(10):
        r = jax.new_ref(jnp.zeros(5))
        f = jax.jit(lambda r: r.addupdate(1.0))
        in_threads(lambda i: [f(r) for _ in range(3)])  # noqa: B023  # runs in this iteration
        assert float(r[4]) == THREADS * 3


def test_updates_with_callbacks() -> None:
    r = jax.new_ref(jnp.zeros(5))

    def one(r: Any) -> Any:
        return jax.pure_callback(lambda x: x * 0 + 1, jax.ShapeDtypeStruct((), np.float32), r[0])

    f = jax.jit(lambda r: r.__setitem__(..., r[...] + one(r)))
    in_threads(lambda i: [f(r) for _ in range(5)])
    assert float(r[4]) == THREADS * 5


def test_a_read_whose_buffer_is_donated_first_is_repeated() -> None:
    """The schedule is fixed: an update comes between the read's lookup of buffers and its run."""
    r = jax.new_ref(jnp.ones(3))
    update = jax.jit(lambda r: r.addupdate(1.0))
    update(r)
    read, at = paused(lambda r: r[...] * 2, r)
    at.pause = True
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(read([r])))
    thread.start()
    assert at.entered.wait(60)
    update(r)
    at.go.set()
    thread.join(60)
    np.testing.assert_array_equal(np.asarray(got[0][0]), [6, 6, 6])


@pytest.mark.slow
def test_first_traces_compiles_and_clear_caches() -> None:
    """Threads trace, transform and compile the same programs while the caches are cleared."""

    def loss(x: Any, n: int) -> Any:
        return jnp.sum(lax.fori_loop(0, n, lambda _, c: jnp.sin(c) * 1.5, x))

    expected = {n: np.asarray(jax.grad(loss)(jnp.ones(3), n)) for n in (1, 2)}
    shared = jax.jit(jax.grad(loss), static_argnums=1)

    def run(i: int) -> None:
        if i == 0:
            for _ in range(10):
                effax.clear_caches()
            return
        for n in (1, 2, 1):
            np.testing.assert_allclose(shared(jnp.ones(3), n), expected[n], rtol=1e-6)
            fresh = jax.jit(partial(jax.grad(loss)), static_argnums=1)
            np.testing.assert_allclose(fresh(jnp.ones(3), n), expected[n], rtol=1e-6)

    in_threads(run, 4)


def test_static_arguments_that_are_collected_meanwhile() -> None:
    class Key:
        pass

    f = jax.jit(lambda x, key: x + 1, static_argnums=1)

    def run(i: int) -> None:
        for _ in range(10):
            assert float(f(jnp.ones(()), Key())) == 2

    in_threads(run, 4)


def test_a_failure_in_one_thread_is_not_one_in_another() -> None:
    r = jax.new_ref(jnp.zeros(3))
    good = jax.jit(lambda r: r.addupdate(1.0))

    def fails(buffers: Any) -> Any:
        raise LoweringError("this call failed: planted")

    fake: Any = SimpleNamespace(
        run=fails, run_whole=fails, careful=True, contended=False, calls_python=False
    )
    bad = executor_with_refs(RefProgram(fake, (0,), (0,), str))

    def run(i: int) -> None:
        for _ in range(20):
            if i % 2:
                good(r)
            else:
                with pytest.raises(LoweringError, match="planted"):
                    bad([r])

    in_threads(run, 4)
    np.testing.assert_array_equal(r[...], [40, 40, 40])


def test_enable_x64_is_of_its_thread() -> None:
    inside, outside = threading.Event(), threading.Event()
    double = jax.jit(lambda x: x * jnp.arange(3.0))

    def wide() -> str:
        with effax.enable_x64():
            inside.set()
            assert outside.wait(60)
            return str(double(jnp.arange(3.0)).dtype)

    def narrow() -> str:
        assert inside.wait(60)
        found = str(double(jnp.arange(3.0)).dtype)
        outside.set()
        return found

    assert in_threads(lambda i: [wide, narrow][i](), 2) == ["float64", "float32"]
    assert effax.config.enable_x64 is False


def test_the_setting_of_the_process_is_that_of_new_threads() -> None:
    effax.config.update("enable_x64", True)
    try:
        assert in_threads(lambda _: str(jnp.arange(3.0).dtype), 2) == ["float64"] * 2
        with effax.enable_x64(False):
            effax.config.update("enable_x64", True)
            assert jnp.arange(3.0).dtype == np.float32
            assert in_threads(lambda _: str(jnp.arange(3.0).dtype), 1) == ["float64"]
        assert jnp.arange(3.0).dtype == np.float64
    finally:
        effax.config.update("enable_x64", False)


def test_contexts_of_one_thread_are_not_seen_in_another() -> None:
    """Named scopes, pauses of tracing and 64-bit types, in two threads that take turns."""
    turns = [threading.Semaphore(1), threading.Semaphore(0)]
    seen: list[list[str]] = [[], []]

    def step(i: int, note: str) -> None:
        turns[i].acquire(timeout=60)
        seen[i].append(note)
        turns[1 - i].release()

    def run(i: int) -> Any:
        name = f"scope{i}"

        def f(x: Any) -> Any:
            step(i, "begin")
            with jax.named_scope(name):
                step(i, "scoped")
                with effax.enable_x64(bool(i)):
                    y = x * jnp.arange(2.0)
                    step(i, "made")
            step(i, "end")
            return y

        return jax.make_jaxpr(f)(1.0)

    first, second = in_threads(run, 2)
    assert (first.jaxpr.out_types[0].dtype, second.jaxpr.out_types[0].dtype) == (
        np.float32,
        np.float64,
    )
    for i, program in enumerate((first, second)):
        assert {eqn.source.scopes for eqn in program.jaxpr.eqns} == {(f"scope{i}",)}


def widened(x: Any) -> Any:
    with effax.enable_x64():
        return jnp.sum(jnp.asarray(x, "float64") * jnp.arange(3.0) + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_enable_x64_inside_of_a_traced_function(wrap: Any) -> None:
    x = jnp.ones(3)
    assert wrap(widened)(x).dtype == np.float64
    assert float(wrap(widened)(x)) - 3 > 1e-12
    for transformed in (
        jax.grad(widened),
        lambda x: jax.value_and_grad(widened)(x)[1],
        lambda x: jax.vjp(widened, x)[1](np.float64(1))[0],
        jax.grad(jax.checkpoint(widened)),
        jax.jacrev(widened),
        jax.jacfwd(widened),
    ):
        np.testing.assert_array_equal(wrap(transformed)(x), [0, 1, 2])
    assert wrap(jax.vmap(widened))(jnp.ones((2, 3))).dtype == np.float64
    assert wrap(lambda x: jax.jvp(widened, (x,), (x,))[1])(x).dtype == np.float64
    np.testing.assert_array_equal(wrap(jax.hessian(widened))(x), np.zeros((3, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_derivatives_of_64_bit_arrays_outside_of_the_block(wrap: Any) -> None:
    with effax.enable_x64():
        x = jnp.arange(1.0, 4.0)
    cube = lambda x: jnp.sum(x * x * x)  # noqa: E731
    for f, expected in (
        (jax.grad(cube), [3, 12, 27]),
        (jax.jacrev(cube), [3, 12, 27]),
        (jax.jacfwd(cube), [3, 12, 27]),
        (jax.hessian(cube), np.diag([6.0, 12, 18])),
    ):
        found = wrap(f)(x)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-12)
