"""The settings of JAX: names, blocks, environment variables, and the effect of those with one."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.arrays.config import SETTINGS, setting
from effax.ir.errors import BadArgument, IllTyped, LeakedTracer

A = np.ones((2, 2), np.float32)


def test_settings_are_read_under_both_names() -> None:
    assert effax.config.jax_numpy_rank_promotion == effax.config.numpy_rank_promotion == "allow"
    assert effax.config.values["jax_platforms"] == effax.config.read("platforms")
    assert {"enable_pgle", "transfer_guard", "compilation_cache_dir"} <= set(SETTINGS)
    with pytest.raises(AttributeError, match="no_such"):
        effax.config.update("jax_no_such", True)
    with pytest.raises(BadArgument, match="bool"):
        effax.config.update("jax_enable_checks", "yes")
    with pytest.raises(ValueError, match="strict"):
        effax.config.update("jax_numpy_dtype_promotion", "lax")
    with pytest.raises(ValueError, match="cpu"):
        effax.config.update("jax_platforms", "tpu")


def test_accepted_settings_have_blocks() -> None:
    with effax.enable_checks(), effax.transfer_guard("log"), effax.softmax_custom_jvp(False):
        assert effax.config.jax_enable_checks
        assert effax.config.jax_transfer_guard == "log"
    assert not effax.config.jax_enable_checks


@pytest.mark.slow
def test_environment_variables_set_settings() -> None:
    code = (
        "import effax, effax.numpy as jnp; c = effax.config; "
        "print(jnp.ones(1).dtype, c.jax_numpy_rank_promotion, c.jax_log_compiles)"
    )
    given = {"JAX_ENABLE_X64": "1", "JAX_NUMPY_RANK_PROMOTION": "raise", "JAX_LOG_COMPILES": "off"}
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["float64", "raise", "False"]


def test_strict_promotion_of_dtypes_keeps_numbers_of_weak_type() -> None:
    with effax.numpy_dtype_promotion("strict"):
        assert (jnp.arange(2) + 1).dtype == np.int32
        assert (jnp.float32(1) * 2).dtype == np.float32
        for wrong in (lambda: jnp.arange(2) + 1.0, lambda: jnp.arange(2) + jnp.ones(2)):
            with pytest.raises(IllTyped, match="strict"):
                wrong()
        with pytest.raises(IllTyped, match="strict"):
            effax.jit(lambda x: x + jnp.arange(2))(jnp.ones(2))
    assert (jnp.arange(2) + jnp.ones(2)).dtype == np.float32


def test_promotion_of_ranks_raises_or_warns() -> None:
    add = effax.jit(lambda x, y: x + y)
    assert add(A, A[0]).shape == (2, 2)
    with effax.numpy_rank_promotion("raise"):
        assert add(A, 1.0).shape == (2, 2)
        with pytest.raises(IllTyped, match="numpy_rank_promotion"):
            add(A, A[0])
        with pytest.raises(IllTyped, match="numpy_rank_promotion"):
            jnp.asarray(A) + A[0]
        with pytest.raises(IllTyped, match="numpy_rank_promotion"):
            jnp.where(A[0] > 0, A, 1.0)
    with effax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="ranks"):
        jnp.asarray(A) + A[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jnp.asarray(A) + A[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("float32", "highest"),
        ("high", "high"),
        ("BF16_BF16_F32_X3", "high"),
        ("F32_F32_F32", "highest"),
        ("fastest", None),
    ],
)
def test_default_precision_of_products(value: str, expected: str | None) -> None:
    def precision() -> object:
        prim = effax.make_jaxpr(jnp.dot)(A, A).eqns[0].prim
        return getattr(prim, "precision", "no product")

    with effax.default_matmul_precision(value):
        assert precision() == expected
    assert precision() is None
    dot = effax.jit(jnp.dot)
    dot(A, A)
    with effax.default_matmul_precision(value):
        assert ("HIGH" in dot.lower(A, A).as_text()) == (expected is not None)


def test_a_device_is_the_first_one() -> None:
    first = effax.devices()[0]
    with effax.default_device(first):
        assert effax.config.jax_default_device == first
        assert jnp.ones(1).devices() == {first}
    with pytest.raises(BadArgument, match="first device"):
        effax.config.update("jax_default_device", "tpu:0")


@pytest.mark.slow
def test_traced_values_that_outlive_their_trace_are_found() -> None:
    kept: list[object] = []

    def f(x: effax.Array) -> effax.Array:
        kept.append(x)
        return x * 2

    def scanned(x: effax.Array) -> effax.Array:
        return effax.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]

    with effax.checking_leaks():
        for use in (effax.jit(f), effax.vmap(f), effax.grad(lambda x: f(x).sum()), scanned):
            with pytest.raises(LeakedTracer, match="Leaked trace"):
                use(jnp.ones(2))
        kept.clear()
        sin = effax.remat(effax.jit(jnp.sin))
        effax.grad(lambda x: effax.lax.cond(x > 0, sin, jnp.cos, x))(1.0)
        effax.vjp(sin, 1.0)[1](1.0)
    effax.jit(f)(jnp.ones(3))


def test_traces_and_calls_can_be_forbidden() -> None:
    f = effax.jit(lambda x: x + 1)
    f(1.0)
    with effax.no_tracing():
        assert f(1.0) == 2
        with pytest.raises(RuntimeError, match="no_tracing"):
            f(np.ones(2))
    with effax.no_execution(), pytest.raises(RuntimeError, match="no_execution"):
        f(1.0)
    assert f(1.0) == 2


def test_the_number_of_devices_is_fixed_once_xla_runs() -> None:
    effax.devices()
    with pytest.raises(RuntimeError, match="before backends are initialized"):
        effax.config.update("jax_num_cpu_devices", 3)


def test_rules_run_with_the_width_of_their_call() -> None:
    @effax.custom_jvp
    def f(x: effax.Array) -> effax.Array:
        return x**2.0

    @f.defjvp
    def _(primals: tuple[effax.Array], tangents: tuple[effax.Array]) -> object:
        assert effax.config.x64_enabled
        return f(*primals), tangents[0] * jnp.sin(primals[0])

    @effax.custom_vjp
    def h(x: effax.Array) -> effax.Array:
        return x**2.0

    h.defvjp(lambda x: (h(x), jnp.sin(x)), lambda res, ct: (res * ct,))
    for ruled in (f, h):

        def wide(x: float) -> effax.Array:
            with effax.enable_x64():
                return ruled(jnp.array(x, jnp.float64))  # noqa: B023  # called in this step

        assert wide(5.0).dtype == np.float64
        for run in (effax.grad(wide), effax.jit(effax.grad(effax.grad(wide)))):
            assert effax.typeof(run(5.0)).dtype == np.float32


def test_numbers_combine_in_64_bits_where_these_are_enabled_within_a_function() -> None:
    @effax.jit
    def f(n: int, x: float) -> tuple[object, object]:
        with effax.enable_x64():
            return 2 + n, jnp.multiply(x, 3.0)

    assert [effax.typeof(y).dtype for y in f(1, 1.0)] == ["int64", "float64"]


def test_a_function_is_traced_anew_for_each_value_of_a_context() -> None:
    context = effax.make_user_context("a")
    seen: list[object] = []
    x = jnp.ones(())

    @effax.jit
    def f(x: effax.Array) -> effax.Array:
        seen.append(context.value)
        return x

    for value in ("b", "a", "b"):
        with context(value):
            f(x)
    context.set_global("c")
    f(x)
    assert seen == ["b", "a", "c"]
    assert context.get_global() == "c"
    context.set_global("a")
    f(x)
    assert seen == ["b", "a", "c"]


def test_requests_of_64_bits_are_granted_or_refused() -> None:
    wide = np.arange(3) + (1 << 40)
    with setting("explicit_x64_dtypes", "allow"):
        assert int(jnp.array(wide, dtype=jnp.int64)[0]) == 1 << 40
        assert jnp.max(jnp.int64(1), initial=0).dtype == np.int64
        assert effax.ShapeDtypeStruct((), np.int64).dtype == np.int64
        assert jnp.asarray(np.arange(3)).dtype == np.int32
        assert jnp.zeros(2, float).dtype == np.float32
    with setting("explicit_x64_dtypes", "error"):
        with pytest.raises(BadArgument, match="Explicitly requested dtype"):
            jnp.ones(2, "float64")
        assert jnp.asarray(np.arange(3)).dtype == np.int32
    assert jnp.ones(2, "float64").dtype == np.float32
