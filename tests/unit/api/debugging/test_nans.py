from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.ir.errors import BadArgument

HERE = Path(__file__).name
X = jnp.array([1.0, -1.0])


def loss(x: jax.Array) -> jax.Array:
    y = jnp.log(x)  # the line
    return jnp.sum(y) * 2


def test_a_compiled_call_names_the_equation_and_the_line() -> None:
    f = jax.jit(loss)
    assert np.isnan(f(X))
    with (
        jax.debug_nans(),
        pytest.raises(FloatingPointError, match=r"\(nan\) encountered in log") as e,
    ):
        f(X)
    assert f"{HERE}:{loss.__code__.co_firstlineno + 1}" in str(e.value)
    with jax.debug_nans():
        assert float(f(jnp.ones(2))) == 0
        with jax.debug_nans(False):
            assert np.isnan(f(X))
    assert np.isnan(f(X))


def test_what_is_masked_does_not_raise_and_what_is_outside_of_jit_does() -> None:
    def masked(x: jax.Array) -> jax.Array:
        return jnp.where(x > 0, jnp.log(x), 0.0)

    with jax.debug_nans():
        assert jax.jit(masked)(X).tolist() == [0, 0]
        with pytest.raises(FloatingPointError, match="encountered in log"):
            masked(X)
        with pytest.raises(FloatingPointError, match=f"encountered in log(.|\n)*{HERE}"):
            jax.grad(lambda x: jnp.sum(loss(x) * x))(X)


def test_the_iteration_of_a_loop_is_named() -> None:
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda i, c: jnp.sqrt(c - i), x))
    with jax.debug_nans(), pytest.raises(FloatingPointError, match=r"sqrt, in .* iteration 2"):
        f(2.5)


def test_infinities() -> None:
    f = jax.jit(lambda x: 1 / x)
    with jax.debug_infs():
        assert f(2.0) == 0.5
        with pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div"):
            f(0.0)
    with jax.debug_nans():
        assert np.isinf(f(0.0))


def test_references_are_as_before_a_call_that_raises() -> None:
    calls: list[float] = []

    @jax.jit
    def f(r: jax.Ref, x: float) -> float:
        r[0] = 5.0
        jax.debug.callback(lambda x: calls.append(float(x)), x)
        r[1] += jnp.log(x)
        return x

    ref = jax.new_ref(jnp.zeros(2))
    with jax.debug_nans():
        with pytest.raises(FloatingPointError, match="encountered in log"):
            f(ref, -1.0)
        assert ref[...].tolist() == [0, 0]
        # The evaluation that finds the equation calls no callback again.
        assert calls == [-1.0]
        f(ref, 1.0)
        assert ref[...].tolist() == [5, 0]


def test_eager_writes_are_undone() -> None:
    ref = jax.new_ref(jnp.zeros(2))
    with jax.debug_nans(), pytest.raises(FloatingPointError, match="encountered in swap"):
        ref[...] = jnp.array([1.0, np.nan])
    assert ref[...].tolist() == [0, 0]


def test_ahead_of_time_calls_are_tested() -> None:
    compiled = jax.jit(loss).lower(X).compile()
    with jax.debug_nans(), pytest.raises(FloatingPointError, match="encountered in log"):
        compiled(X)


def test_settings_of_the_process_and_of_blocks() -> None:
    with pytest.raises(BadArgument, match="a bool"):
        jax.config.update("jax_debug_nans", 1)
    with pytest.raises(BadArgument, match="unknown setting 'debug_everything'"):
        jax.config.update("debug_everything", True)
    f = jax.jit(loss)
    seen: list[bool] = []
    jax.config.update("jax_debug_nans", True)
    try:
        with jax.enable_x64():
            assert jax.config.debug_nans
            with pytest.raises(FloatingPointError):
                f(X)

        def other() -> None:
            try:
                f(X)
            except FloatingPointError:
                seen.append(True)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with jax.debug_nans(False):
            f(X)
    finally:
        jax.config.update("jax_debug_nans", False)
    assert seen == [True]
    assert np.isnan(f(X))


@pytest.mark.slow
def test_the_environment_variable() -> None:
    code = "import effax, effax.numpy as jnp; print(effax.config.debug_nans); jnp.log(-1.0)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"JAX_DEBUG_NANS": "True", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == "True"
    assert "invalid value (nan) encountered in log" in run.stderr
