"""Options of ``jit``: donation, shardings, options of the compiler; one trace for each function."""

from __future__ import annotations

import gc
import logging
import os
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, IllTyped, LoweringError

X = np.arange(4, dtype=np.float32)


def fresh() -> effax.Array:
    made: effax.Array = effax.jit(lambda x: x + 0)(X)
    return made


def test_a_donated_array_lends_its_memory_and_is_deleted() -> None:
    step = effax.jit(lambda x: x + 1, donate_argnums=0)
    x = fresh()
    address = x.unsafe_buffer_pointer()  # type: ignore[attr-defined]  # of arrays with memory
    for _ in range(3):
        y = step(x)
        assert x.is_deleted()
        assert y.unsafe_buffer_pointer() == address
        x = y
    np.testing.assert_array_equal(x, X + 3)


@pytest.mark.parametrize("use", [lambda x: x + 1, np.asarray, effax.jit(jnp.sin), repr, float])
def test_a_use_of_a_donated_array_raises(use: Callable[[Any], object]) -> None:
    x = jnp.float32(2.0)
    effax.jit(lambda x: x * 2, donate_argnums=0)(x)
    with pytest.raises(RuntimeError, match="deleted or donated"):
        use(x)


def test_memory_that_others_read_is_not_written() -> None:
    step = effax.jit(lambda x: x.at[0].set(9), donate_argnums=0)
    source = X.copy()
    x = jnp.asarray(source)
    copy, view = jnp.array(x), np.asarray(x)
    step(x)
    for kept in (source, copy, view):
        np.testing.assert_array_equal(kept, X)


def test_leaves_static_arguments_and_keywords_are_donated() -> None:
    def f(n: int, tree: dict[str, Any], *, b: Any, c: Any) -> Any:
        return tree["w"] * n, tree["v"] + 1, b - 1, c.sum()

    g = effax.jit(f, static_argnums=0, donate_argnums=1, donate_argnames=("b",))
    w, v, b, c = fresh(), jnp.ones((2, 2)), jnp.ones(3), jnp.ones(5)
    out = g(2, {"w": w, "v": v}, b=b, c=c)
    assert [x.is_deleted() for x in (w, v, b, c)] == [True, True, True, False]
    np.testing.assert_array_equal(out[0], 2 * X)
    infos = g.lower(2, {"w": X, "v": np.ones((2, 2))}, b=X, c=X).args_info
    assert infos[0][0]["w"].donated
    assert infos[1]["b"].donated
    assert not infos[1]["c"].donated
    with pytest.raises(BadArgument, match="intersect"):
        effax.jit(f, static_argnums=0, donate_argnums=(0, 1))
    with pytest.raises(BadArgument, match="donate_argnames"):
        effax.jit(f, donate_argnames="d")
    with pytest.raises(ValueError, match="donate_argnames needs it"):
        effax.jit(max, donate_argnames="d")


def test_memory_without_a_result_is_not_donated() -> None:
    x = fresh()
    with pytest.warns(UserWarning, match=r"donated buffers were not usable: f32\[4\]"):
        effax.jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert not x.is_deleted()
    with pytest.raises(RuntimeError):
        effax.jit(lambda x, y: x + y, donate_argnums=0)(x, x)


def test_an_outer_transformation_donates_nothing() -> None:
    f = effax.jit(lambda x: x * x, donate_argnums=0)
    x = fresh()
    np.testing.assert_array_equal(effax.grad(lambda x: f(x).sum())(x), 2 * X)
    np.testing.assert_array_equal(effax.jit(lambda x: f(x) + x)(x), X * X + X)
    with effax.disable_jit():
        f(x)
    assert not x.is_deleted()


def test_a_compiled_call_donates() -> None:
    compiled = effax.jit(lambda x: x * 2, donate_argnums=0).lower(X).compile()
    x = fresh()
    np.testing.assert_array_equal(compiled(x), 2 * X)
    assert x.is_deleted()
    assert compiled.donate_argnums == (0,)


def test_references_and_donated_arrays_together() -> None:
    def f(r: Any, x: Any) -> Any:
        r[...] += x
        return x * 2

    r, x = effax.new_ref(jnp.ones(4)), fresh()
    np.testing.assert_array_equal(effax.jit(f, donate_argnums=(0, 1))(r, x), 2 * X)
    np.testing.assert_array_equal(r[...], X + 1)
    assert x.is_deleted()


def test_results_have_the_given_shardings() -> None:
    mesh = effax.make_mesh((1,), ("x",), devices=effax.devices())
    rows = effax.NamedSharding(mesh, effax.P("x"))
    f = effax.jit(
        lambda x: {"a": x, "b": x * 2}, in_shardings=rows, out_shardings={"a": None, "b": rows}
    )
    out = f(X)
    assert out["b"].sharding == rows
    assert out["a"].sharding != rows
    compiled = f.lower(X).compile()
    assert compiled.input_shardings == ((rows,), {})
    assert compiled.output_shardings["b"] == compiled(X)["b"].sharding == rows
    split = effax.NamedSharding(effax.make_mesh((3,), ("x",)), effax.P("x"))
    with pytest.raises(IllTyped):
        effax.jit(jnp.sin, out_shardings=split)(X)
    with pytest.raises(BadArgument, match="set_mesh"):
        effax.jit(jnp.sin, in_shardings=effax.P("x"))(X)


def test_devices_and_platforms_that_exist() -> None:
    first = effax.devices()[0]
    assert effax.jit(jnp.sin, device=first, backend="cpu", keep_unused=True)(0.0) == 0.0
    with pytest.raises(RuntimeError, match="gpu"):
        effax.jit(jnp.sin, backend="gpu")(0.0)
    with pytest.raises(BadArgument, match="unknown device"):
        effax.jit(jnp.sin, device="gpu:1")(0.0)  # type: ignore[call-overload]  # wrong


def test_options_of_the_compiler_reach_it() -> None:
    assert effax.jit(lambda x: x * 2, compiler_options={"xla_cpu_enable_fast_math": True})(2.0) == 4
    with pytest.raises(LoweringError, match="no_such_option"):
        effax.jit(lambda x: x * 2, compiler_options={"no_such_option": True})(2.0)
    lowered = effax.jit(lambda x: x * 3).lower(2.0)
    assert lowered.compile({"xla_embed_ir_in_executable": True})(2.0) == 6
    with pytest.raises(BadArgument, match="by name"):
        lowered.compile(3)  # type: ignore[arg-type]  # wrong


def test_stages_describe_the_call() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * 2, {"s": y["a"].sum()}

    traced = effax.jit(f).trace(X, {"a": X})
    assert traced.fun_name == "f"
    assert traced.jaxpr == effax.make_jaxpr(f)(X, {"a": X})
    assert traced.effects == traced.jaxpr.effects
    assert traced.lojax is traced
    assert (traced.jaxpr.invars, traced.jaxpr.outvars) == (
        traced.jaxpr.jaxpr.invars,
        traced.jaxpr.jaxpr.outvars,
    )
    assert traced.jaxpr.pretty_print(use_color=False) == str(traced.jaxpr)
    assert traced.out_info[1]["s"] == effax.ShapeDtypeStruct((), "float32")
    assert traced.args_info[0][1]["a"].shape == (4,)
    lowered = traced.lower()
    assert isinstance(lowered, effax.stages.Lowered)
    assert isinstance(traced, effax.stages.Traced)
    assert isinstance(effax.jit(f), effax.stages.Wrapped)
    assert lowered.out_tree == traced.out_tree
    assert lowered.in_avals[0][0] == effax.typeof(X)
    assert "stablehlo.multiply" in lowered.as_text("stablehlo")
    assert lowered.as_text("hlo").startswith("HloModule")
    assert "test_jit_options.py" in lowered.as_text(debug_info=True)
    assert "stablehlo.multiply" in str(lowered.compiler_ir())
    assert lowered.compiler_ir("hlo") is not None
    with pytest.raises(BadArgument, match="dialect"):
        lowered.as_text("mhlo")
    compiled = lowered.compile()
    assert compiled.runtime_executable() is not None
    assert compiled.input_formats[0][0].layout.major_to_minor == (0,)
    assert compiled.output_formats[1]["s"].layout.major_to_minor == ()
    assert compiled.memory_analysis().argument_size_in_bytes == 32
    np.testing.assert_array_equal(compiled.call(X, {"a": X})[0], 2 * X)


def test_objects_with_shape_and_dtype_are_types() -> None:
    duck: Any = SimpleNamespace(shape=(4,), dtype=np.dtype("float32"))
    expected = effax.ShapeDtypeStruct((4,), "float32")
    assert effax.eval_shape(lambda x: x * 2, duck) == expected
    assert effax.jit(lambda x: x * 2).lower(duck).out_info == expected
    assert effax.make_jaxpr(jnp.sin)(duck) == effax.make_jaxpr(jnp.sin)(X)
    with pytest.raises(IllTyped):
        effax.jit(jnp.sin)(duck)


@pytest.mark.slow
def test_a_function_is_traced_once_for_all_its_jits() -> None:
    traces: list[int] = []

    def f(x: Any, n: int = 2) -> Any:
        traces.append(n)
        return x * n

    for _ in range(3):
        effax.jit(f)(X)
        effax.jit(f).lower(effax.ShapeDtypeStruct((4,), "float32"))
    assert traces == [2]
    effax.jit(f, static_argnums=1)(X, 3)
    effax.jit(f, static_argnums=1)(X, 3)
    assert traces == [2, 3]
    seen = weakref.ref(f)
    del f
    gc.collect()
    assert seen() is None


def test_without_jit_functions_run_as_python() -> None:
    values: list[float] = []

    @effax.jit
    def f(x: Any) -> Any:
        values.append(float(x))
        return x + 1

    with effax.disable_jit():
        assert f(f(1.0)) == 3
        assert effax.config.jax_disable_jit
    assert values == [1.0, 2.0]
    with pytest.raises(TypeError):
        f(1.0)


def test_traces_and_compilations_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    durations: list[str] = []
    effax.monitoring.register_event_duration_secs_listener(lambda name, *_: durations.append(name))
    with effax.log_compiles(), caplog.at_level(logging.WARNING):
        effax.jit(lambda x: x * 5 - 1)(X)
    effax.monitoring.clear_event_listeners()
    messages = [record.getMessage() for record in caplog.records]
    assert [m.split(" ")[0] for m in messages] == ["Finished", "Compiling", "Finished"]
    assert "for jit" in messages[0]
    assert len(durations) == 2
    caplog.clear()
    effax.jit(lambda x: x * 6 - 1)(X)
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def check_least_recently_used(directory: Path, file: Path, other: Path) -> None:
    """Check that a write removes the entries that were not used for longest."""
    os.utime(file, (1, 1))
    os.utime(other, (2, 2))
    (directory / "part-left").touch()
    os.utime(directory / "part-left", (1, 1))
    effax.clear_caches()
    effax.jit(lambda x: x * 11 + 1)(X)
    size = file.stat().st_size
    effax.config.update("jax_compilation_cache_max_size", 2 * size + size // 2)
    effax.jit(lambda x: x * 14 + 1)(X)
    assert file.exists()
    assert not other.exists()
    assert len([*directory.iterdir()]) == 2


@pytest.mark.slow
def test_compiled_programs_are_kept_in_a_directory(tmp_path: Any) -> None:
    directory = tmp_path / "cache"
    effax.config.update("jax_compilation_cache_dir", str(directory))
    effax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    try:
        effax.jit(lambda x: x * 11 + 1)(X)
        (file,) = directory.iterdir()
        effax.clear_caches()
        before = file.stat().st_ino
        np.testing.assert_array_equal(effax.jit(lambda x: x * 11 + 1)(X), X * 11 + 1)
        assert file.stat().st_ino == before
        whole = file.read_bytes()
        for damaged in (b"broken", whole[:-1], whole[:99] + b"?" + whole[100:]):
            file.write_bytes(damaged)
            effax.clear_caches()
            with pytest.warns(UserWarning, match="damaged"):
                effax.jit(lambda x: x * 11 + 1)(X)
            assert file.read_bytes() != damaged
        effax.clear_caches()
        effax.jit(lambda x: x * 13 + 1)(X)
        (other,) = set(directory.iterdir()) - {file}
        other.write_bytes(whole)
        effax.clear_caches()
        with pytest.warns(UserWarning, match="no executable of this program"):
            np.testing.assert_array_equal(effax.jit(lambda x: x * 13 + 1)(X), X * 13 + 1)
        check_least_recently_used(directory, file, other)
    finally:
        effax.config.update("jax_compilation_cache_dir", None)
        effax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
        effax.config.update("jax_compilation_cache_max_size", 1 << 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        effax.jit(lambda x: x * 12 + 1)(X)


def test_misses_of_the_cache_are_explained(caplog: pytest.LogCaptureFixture) -> None:
    @effax.jit
    def f(x: Any, y: Any) -> Any:
        return x * y

    with effax.explain_cache_misses():
        f(1.0, X)
        f(1.0, X)
        f(1.0, X[:2])
        f(jnp.float32(1.0), X)
        with effax.numpy_rank_promotion("warn"):
            f(1.0, X)
    first, shape, weak, setting = [record.getMessage() for record in caplog.records]
    assert "TRACING CACHE MISS of f: never seen function" in first
    assert "different input types: at y, now f32[2] and before f32[4]" in shape
    assert "at x, now f32[]{weak_type=False} and before f32[]{weak_type=True}" in weak
    assert "different tracing context: now" in setting


def test_functions_that_cannot_be_compiled_are_refused() -> None:
    def rows(x: Any) -> Any:
        yield x

    with pytest.raises(TypeError, match="generator"):
        effax.jit(rows)
    with pytest.raises(TypeError, match="staticmethod"):
        effax.jit(staticmethod(lambda x: x))
    with pytest.raises(BadArgument, match="argnames"):
        effax.jit(lambda x, /: x, static_argnames="x")


def test_a_jitted_function_shows_the_function() -> None:
    def f(x: Any) -> Any:
        return x

    f.unit = "m"  # type: ignore[attr-defined]  # of the function
    jitted: Any = effax.jit(f)
    assert repr(jitted) == f"<PjitFunction of {f!r}>"
    assert jitted.unit == "m"
    assert effax.jit(partial(f)).trace(1.0).fun_name == "f"
    with pytest.raises(AttributeError, match="no_such"):
        _ = jitted.no_such


def test_none_leaves_the_sharding_of_a_subtree_to_the_compiler() -> None:
    f: Any = effax.jit(
        lambda x: (x, {"a": x["a"]}), in_shardings=(None,), out_shardings=(None, None)
    )
    assert f({"a": 1.0, "b": 2.0})[1]["a"] == 1.0


def test_a_call_is_inlined_early_or_is_one_equation() -> None:
    def equations(mode: effax.Inline) -> list[str]:
        inner = effax.jit(lambda x: x * 2, inline=mode)
        return [eqn.prim.name for eqn in effax.make_jaxpr(inner)(1.0).eqns]

    assert equations(effax.Inline.JAX_EARLY) == ["mul"]
    assert all(equations(mode) == ["jit"] for mode in list(effax.Inline)[1:])


@pytest.mark.slow
def test_levels_of_effort() -> None:
    def compiled(level: object) -> Any:
        options: Any = {"optimization_level": level, "memory_fitting_level": level}
        return effax.jit(lambda x: x + 1, compiler_options=options)

    assert all(compiled(x)(1.0) == 2 for x in (effax.CompilerEffortLevel.O1, "O0", 29))
    with pytest.raises(BadArgument, match="optimization_level does not have this value"):
        compiled("O9")
