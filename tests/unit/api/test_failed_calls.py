"""A compiled call that raises leaves every reference as it was, or reports which ones are lost."""

from __future__ import annotations

import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.api.ref_calls import RefProgram, executor_with_refs
from effax.arrays.exclusive import release, take
from effax.ir.errors import LoweringError, RefError
from effax.lowering.program import CompiledProgram

jax: Any = effax


def too_large(x: Any) -> Any:
    """A number whose computation needs 256 GiB."""
    shape = (1 << 15, 1 << 15, 1 << 6)
    large: Any = lax.sort(x + lax.broadcasted_iota("float32", shape, 0))
    return large[5, 5, 5]


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_a_first_call_without_memory_leaves_the_references(wrap: Any) -> None:
    r, s = jax.new_ref(jnp.arange(3.0)), jax.new_ref(1.0)

    def f(r: Any, x: Any) -> Any:
        r[...] = r[...] + 1
        s[...] = s[...] * 2
        return too_large(x)

    for _ in range(2):
        with pytest.raises(LoweringError, match="memory"):
            wrap(f)(r, 1.0)
        np.testing.assert_array_equal(r[...], [0, 1, 2])
        assert float(s[...]) == 1
    jax.jit(lambda r: r.addupdate(1.0))(r)
    np.testing.assert_array_equal(r[...], [1, 2, 3])


def test_the_error_of_a_failed_call_says_first_what_xla_said() -> None:
    r = jax.new_ref(0.0)

    def f(r: Any, x: Any) -> Any:
        r[...] = 1.0
        return too_large(x)

    with pytest.raises(LoweringError) as caught:
        jax.jit(f)(r, 1.0)
    assert str(caught.value).startswith("this call failed: RESOURCE_EXHAUSTED")
    assert "live buffers" not in str(caught.value)


def failing_later(f: Any, *operands: Any) -> tuple[Any, Any]:
    """The run of a program that fails when asked to, after it has donated, and the switch."""
    compiled = jax.jit(f).lower(*operands).compile()
    program: CompiledProgram = compiled.program
    run = program.executable.run
    switch = SimpleNamespace(fails=False)

    def maybe(buffers: Any) -> Any:
        results = run(buffers)
        if switch.fails:
            raise LoweringError("this call failed: RESOURCE_EXHAUSTED")
        return results

    fake: Any = SimpleNamespace(
        run=maybe, run_whole=maybe, careful=True, contended=False, calls_python=False
    )
    done = program.discharged
    name_of = compiled._flat.jaxpr.name_of
    return executor_with_refs(RefProgram(fake, done.refs, done.changed, name_of)), switch


def test_a_later_failure_names_the_references_that_are_lost() -> None:
    def step(params: Any, other: Any, x: Any) -> None:
        params["w"][...] = params["w"][...] + x * other[...]

    w, other, x = jax.new_ref(jnp.zeros(2)), jax.new_ref(2.0), jnp.ones(())
    run, switch = failing_later(step, {"w": w}, other, x)
    run([w, other, x])
    run([w, other, x])
    np.testing.assert_array_equal(w[...], [4, 4])
    switch.fails = True
    with pytest.raises(LoweringError) as caught:
        run([w, other, x])
    said = str(caught.value)
    assert said.startswith("this call failed: RESOURCE_EXHAUSTED\n")
    assert "params['w'], Ref{f32[2]}, made at" in said
    assert "other" not in said
    assert "test_failed_calls.py" in said
    with pytest.raises(RefError, match="after `a call that failed`"):
        w[...]
    assert float(other[...]) == 2


def test_a_failed_call_releases_the_references() -> None:
    r, x = jax.new_ref(0.0), jnp.ones(())
    run, switch = failing_later(lambda r, x: r.addupdate(x), r, x)
    switch.fails = True
    with pytest.raises(LoweringError):
        run([r, x])
    assert float(r[...]) == 0
    switch.fails = False
    run([r, x])
    assert float(r[...]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupt_leaves_a_call_done_or_undone(kind: type[BaseException]) -> None:
    def stop(*_: object) -> None:
        raise kind

    before = signal.signal(signal.SIGALRM, stop)
    r = jax.new_ref(jnp.zeros((300, 300)))
    f = jax.jit(lambda r: r.__setitem__(..., r[...] + 1 + 0 * (r[...] @ r[...] @ r[...])))
    f(r)
    calls = 1
    try:
        for k in range(20):
            signal.setitimer(signal.ITIMER_REAL, 0.0005 * (k + 1))
            try:
                while True:
                    f(r)
                    calls += 1
            except kind:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    n = float(r[0, 0])
    # A call that was interrupted at its end is not counted.
    assert calls <= n <= calls + 20
    assert bool(jnp.all(r[...] == n))


def test_a_callback_reads_a_reference_of_its_call_and_does_not_write_it() -> None:
    r = jax.new_ref(1.0)
    seen: list[float] = []

    def reads(x: Any) -> Any:
        seen.append(float(r[...]))
        return x

    def writes(x: Any) -> Any:
        r[...] = 7.0
        return x

    def f(callback: Any) -> Any:
        def run(r: Any) -> None:
            shape = jax.ShapeDtypeStruct((), np.float32)
            r[...] = 2 * jax.pure_callback(callback, shape, r[...])

        return jax.jit(run)

    f(reads)(r)
    assert seen == [1]
    assert float(r[...]) == 2
    with pytest.raises(RefError, match="interrupted"):
        f(writes)(r)
    assert float(r[...]) == 2


def test_a_reference_that_is_taken_is_waited_for() -> None:
    r = jax.new_ref(1.0)
    ticket = (0,)
    take((r,), ticket)
    got: list[float] = []
    thread = threading.Thread(target=lambda: got.append(float(r[...])))
    thread.start()
    time.sleep(0.02)
    assert not got
    release((r,), ticket)
    thread.join(10)
    assert got == [1]
