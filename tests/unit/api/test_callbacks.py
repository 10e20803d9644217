"""Callbacks: what users see of them, eager and compiled, under every transformation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.experimental import io_callback
from effax.ir.analysis.check import checked
from effax.ir.errors import (
    BadArgument,
    ConcretizationError,
    IllTyped,
    NotApplicable,
    TransformError,
)
from effax.ir.text.parser import parse
from effax.ir.text.printer import references

jax: Any = effax
F32 = jax.ShapeDtypeStruct((), "float32")
Wrap = Callable[[Any], Any]
both = pytest.mark.parametrize("jit", [lambda f: f, effax.jit], ids=["eager", "jit"])


class Log(list[Any]):
    """The recorded values, as Python numbers."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        values = [np.asarray(x).tolist() for x in args]
        one = values[0] if len(values) == 1 else tuple(values)
        self.append((*values, kwargs) if kwargs else one)


@pytest.fixture
def log() -> Log:
    return Log()


def recorder(log: Log, ordered: bool = True) -> Callable[..., None]:
    return partial(jax.debug.callback, log, ordered=ordered)


@pytest.mark.slow
@both
def test_print_formats_arrays_trees_and_other_things(
    jit: Wrap, capsys: pytest.CaptureFixture[str]
) -> None:
    def f(x: Any) -> Any:
        jax.debug.print("{0} {n} {t[a]:.2f} {0}", x, n="word", t={"a": x[1]})
        jax.debug.print(ordered=True)("no arguments")
        jax.debug.print("after it", x[0], skip_format_check=True)
        return x

    jit(f)(jnp.array([1.0, 2.0]))
    assert capsys.readouterr().out == "[1. 2.] word 2.00 [1. 2.]\nno arguments\nafter it 1.0\n"


def test_print_keeps_the_print_options_of_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    with np.printoptions(precision=2):
        f = jax.jit(lambda x: jax.debug.print("{}", x))
        f(jnp.array([1.23456, 2.0]))
    f(jnp.array([1.23456, 2.0]))
    assert capsys.readouterr().out == "[1.23 2.  ]\n" * 2


@pytest.mark.parametrize(
    ("fmt", "args", "kwargs"),
    [
        ("{x}", (), {}),
        ("{} {}", (1,), {}),
        ("{}", (1, 2), {}),
        ("{}", (1,), {"y": 2}),
        ("{", (), {}),
        ("{x[0]}", (), {"x": {}}),
    ],
)
def test_a_format_that_does_not_fit_is_refused(
    fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(BadArgument, match=r"debug\.print"):
        jax.debug.print(fmt, *args, **kwargs)


def test_bad_arguments() -> None:
    with pytest.raises(BadArgument, match="takes a function"):
        jax.debug.callback(3)
    with pytest.raises(BadArgument, match="without a function"):
        jax.debug.callback(x=3)
    with pytest.raises(BadArgument, match="takes a format"):
        jax.debug.print(3)
    with pytest.raises(IllTyped, match=r"argument 0 of debug\.print is a reference"):
        jax.debug.print("{}", jax.new_ref(1.0))
    with pytest.raises(IllTyped, match="is not an array"):
        jax.pure_callback(lambda x: x, F32, "word")
    with pytest.raises(IllTyped, match="is not a type"):
        jax.pure_callback(lambda x: x, (F32, 3), 1.0)
    with pytest.raises(IllTyped, match="64 bits"):
        io_callback(lambda x: x, np.zeros(2), 1.0)
    with pytest.raises(BadArgument, match="vmap_method"):
        jax.pure_callback(lambda x: x, F32, 1.0, vmap_method="fast")
    with pytest.raises(BadArgument, match="not supported"):
        io_callback(lambda x: x, F32, 1.0, sharding=jax.devices()[0])


@both
def test_trees_go_in_and_come_out(jit: Wrap) -> None:
    def answer(x: Any, scale: Any = 1) -> Any:
        assert isinstance(x["a"], effax.Array)
        return {"sum": x["a"] + x["b"], "pair": (np.float32(2) * np.asarray(scale), 7.0)}

    shapes = {"sum": jax.ShapeDtypeStruct((2,), "float32"), "pair": (F32, F32)}

    def f(x: Any) -> Any:
        return io_callback(answer, shapes, {"a": x, "b": 1.0}, scale=x[0])

    found = jit(f)(jnp.array([3.0, 4.0]))
    assert found["sum"].tolist() == [4.0, 5.0]
    assert [float(x) for x in found["pair"]] == [6.0, 7.0]


@both
@pytest.mark.parametrize("call", [jax.pure_callback, io_callback])
def test_a_wrong_answer_is_a_typed_error(jit: Wrap, call: Any) -> None:
    for wrong in (np.zeros(3, np.float32), np.int32(1), "word", (1.0, 2.0)):
        with pytest.raises(IllTyped, match="callback: "):
            jit(lambda x, wrong=wrong: call(lambda _: wrong, F32, x))(1.0)


@both
def test_an_exception_is_the_callers(jit: Wrap) -> None:
    class Mine(Exception):
        pass

    def fail(x: Any) -> None:
        raise Mine(f"x is {float(x)}")

    r = jax.new_ref(jnp.zeros(2))

    def f(x: Any) -> Any:
        r[0] = x
        jax.debug.callback(fail, x)
        return x

    g = jit(f)
    for _ in range(2):
        with pytest.raises(Mine, match=r"x is 3\.0"):
            g(3.0)
    if jit is effax.jit:
        # A call that raises leaves references as they were.
        assert r[...].tolist() == [0.0, 0.0]


def test_callbacks_may_compute_and_call_compiled_functions() -> None:
    inner = jax.jit(lambda x: jnp.sin(x) * 2)

    def f(x: Any) -> Any:
        return jax.pure_callback(lambda v: inner(v) + jnp.cos(v), F32, x)

    assert np.allclose(jax.jit(f)(1.0), 2 * np.sin(1.0) + np.cos(1.0), rtol=1e-6)


@pytest.mark.slow
def test_what_a_callback_gets_is_its_own(log: Log) -> None:
    kept: list[Any] = []
    f = jax.jit(lambda x: jax.debug.callback(kept.append, x * 2))
    for i in range(5):
        f(jnp.full(64, i, "float32"))
    assert [float(x[0]) for x in kept] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert all(np.unique(np.asarray(x)).size == 1 for x in kept)


# Control flow.


@both
def test_loops_and_branches(jit: Wrap, log: Log) -> None:
    record = recorder(log)

    def cond(c: Any) -> Any:
        record("c", c[0])
        return c[0] < 2

    def body(c: Any) -> Any:
        record("b", c[0])
        n = lax.fori_loop(0, 2, lambda i, n: (record("i", i), n + i)[1], c[0])
        lax.cond(n > 1, lambda: record("big"), lambda: record("small"))
        return c[0] + 1, c[1]

    def f(x: Any) -> Any:
        record("start")
        i, x = jax.jit(lambda x: lax.while_loop(cond, body, (0, x)))(x)
        lax.scan(lambda c, y: (record("s", y), (c, None))[1], 0, jnp.arange(3), reverse=True)
        record("end", i)
        return x

    jit(f)(1.0)
    loop = [("b", 0), ("i", 0), ("i", 1), "small", ("c", 1), ("b", 1), ("i", 0), ("i", 1), "big"]
    scan = [("s", 2), ("s", 1), ("s", 0)]
    assert log == ["start", ("c", 0), *loop, ("c", 2), *scan, ("end", 2)]


@both
def test_nothing_but_effects(jit: Wrap, log: Log) -> None:
    jit(lambda: recorder(log)("x"))()
    jit(lambda: lax.fori_loop(0, 3, lambda i, _: recorder(log)(i), None))()
    assert log == ["x", 0, 1, 2]


@both
def test_answers_are_used_and_unused_ones_still_asked_for(jit: Wrap) -> None:
    count = iter(range(100))

    def ask() -> Any:
        return io_callback(lambda: np.float32(next(count)), F32, ordered=True)

    def f() -> Any:
        first, _, third = ask(), ask(), ask()
        return third * 10 + first

    assert float(jit(f)()) == 20.0
    assert next(count) == 3


def test_pure_callbacks_may_go(log: Log) -> None:
    def f(x: Any) -> Any:
        def record(v: Any) -> Any:
            log(v)
            return v

        jax.pure_callback(record, F32, x)
        return x

    jax.jit(f)(1.0)
    assert log == []
    assert jax.make_jaxpr(f)(1.0).jaxpr.effects.effects == ()


def test_tracing_runs_no_callback(log: Log) -> None:
    def f(x: Any) -> Any:
        recorder(log)(x)
        return jnp.sin(x)

    jax.make_jaxpr(f)(1.0)
    jax.eval_shape(f, 1.0)
    jax.jit(f).lower(1.0).as_text()
    assert log == []


# Derivatives.


def cubed(log: Log) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        recorder(log)("in", x)
        y = jax.jit(lambda x: (recorder(log)("mid", x * x), x * x)[1])(x)
        recorder(log, ordered=False)("out", y * x)
        return y * x

    return f


@both
@pytest.mark.parametrize(
    ("derivative", "value"),
    [
        (lambda f: jax.grad(f)(2.0), 12.0),
        (lambda f: jax.jvp(f, (2.0,), (1.0,))[1], 12.0),
        (lambda f: jax.linearize(f, 2.0)[1](1.0), 12.0),
        (lambda f: jax.vjp(f, 2.0)[1](1.0)[0], 12.0),
        (lambda f: jax.hessian(f)(2.0), 12.0),
        (lambda f: jax.grad(jax.grad(f))(2.0), 12.0),
        (lambda f: jax.grad(jax.checkpoint(f))(2.0), 12.0),
        (lambda f: jax.grad(lambda x: jax.checkpoint(f)(x) * 1)(2.0), 12.0),
        (lambda f: jax.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x))(2.0), 12.0),
        (lambda f: jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0])(2.0), 12),
    ],
)
def test_derivatives_call_back_once_with_primal_values(
    jit: Wrap, derivative: Callable[[Any], Any], value: float, log: Log
) -> None:
    f = cubed(log)
    assert float(jit(lambda: derivative(f))()) == value
    assert sorted(log, key=str) == [("in", 2.0), ("mid", 4.0), ("out", 8.0)]
    assert log.index(("in", 2.0)) < log.index(("mid", 4.0))


@pytest.mark.slow
def test_a_callback_of_a_loop_runs_once_where_the_loop_is_repeated(log: Log) -> None:
    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            recorder(log)(c[0])
            return c[0] + 1, jnp.sin(c[1])

        return lax.while_loop(lambda c: c[0] < 3, body, (0, x))[1]

    _, pushed = jax.linearize(f, 1.0)
    assert log == [0, 1, 2]
    assert np.allclose(pushed(1.0), jax.jvp(f, (1.0,), (1.0,))[1], rtol=1e-6)
    assert log == [0, 1, 2, 0, 1, 2]


def test_checkpoint_recomputes_without_a_second_callback(log: Log) -> None:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        recorder(log)(y)
        answer = io_callback(lambda v: np.float32(v + 1), F32, lax.stop_gradient(y))
        return jnp.sin(y) * answer

    program = str(jax.make_jaxpr(jax.grad(jax.checkpoint(f)))(1.0))
    assert program.count("io_callback") == program.count("debug_callback") == 1
    assert program.count("= sin") > str(jax.make_jaxpr(jax.grad(f))(1.0)).count("= sin")
    y = np.sin(1.0)
    for jit in (lambda f: f, jax.jit):
        found = jit(jax.grad(jax.checkpoint(f)))(1.0)
        assert np.allclose(found, np.cos(y) * np.cos(1.0) * (y + 1), rtol=1e-5)
    assert len(log) == 2


@both
@pytest.mark.parametrize("call", [jax.pure_callback, io_callback])
def test_answers_have_no_derivative(jit: Wrap, call: Any) -> None:
    def f(x: Any) -> Any:
        return call(np.float32, F32, x)

    for derivative in (jax.grad(f), jax.jacfwd(f), lambda x: jax.jvp(f, (x,), (1.0,))):
        with pytest.raises(NotApplicable, match="is not differentiable") as caught:
            jit(derivative)(1.0)
        assert "custom_jvp" in str(caught.value)
        assert __file__ in str(caught.value)
    assert float(jit(jax.grad(lambda x: x * f(lax.stop_gradient(x))))(3.0)) == 3.0


def test_a_rule_around_a_callback_is_its_derivative(log: Log) -> None:
    @jax.custom_jvp  # type: ignore[untyped-decorator]  # jax is Any here
    def f(x: Any) -> Any:
        return jax.pure_callback(np.sin, F32, x, vmap_method="expand_dims")

    f.defjvp(lambda p, t: (f(*p), jnp.cos(p[0]) * t[0]))
    assert np.allclose(jax.jit(jax.grad(f))(1.0), np.cos(1.0))
    assert np.allclose(jax.vmap(jax.grad(f))(jnp.arange(3.0)), np.cos(np.arange(3.0)))

    @jax.custom_vjp  # type: ignore[untyped-decorator]  # jax is Any here
    def g(x: Any) -> Any:
        return x

    def backward(_: Any, ct: Any) -> Any:
        recorder(log)("ct", ct)
        return (ct,)

    g.defvjp(lambda x: (x, None), backward)
    assert float(jax.grad(lambda x: g(x) * 3)(1.0)) == 3.0
    assert log == [("ct", 3.0)]


def test_a_transposed_program_refuses_side_effects_that_it_would_drop(log: Log) -> None:
    @jax.custom_jvp  # type: ignore[untyped-decorator]  # jax is Any here
    def f(x: Any) -> Any:
        return x

    def rule(primals: Any, tangents: Any) -> Any:
        recorder(log)("dx", tangents[0])
        return primals[0], tangents[0]

    f.defjvp(rule)
    jax.jvp(f, (1.0,), (2.0,))
    assert log == [("dx", 2.0)]
    with pytest.raises(NotApplicable, match="depends on linear inputs"):
        jax.grad(f)(1.0)


def test_python_control_flow_does_not_run_callbacks_early(log: Log) -> None:
    def f(x: Any) -> Any:
        recorder(log)("f", x)
        y = jax.jit(lambda x: (recorder(log)("g", x), x * 2)[1])(x)
        return y if y > 3 else -y

    assert float(jax.grad(f)(2.0)) == 2.0
    assert log == [("f", 2.0), ("g", 2.0)]

    def hears(x: Any) -> Any:
        y = io_callback(lambda: np.float32(1), F32)
        return x if y > 0 else -x

    with pytest.raises(ConcretizationError):
        jax.grad(hears)(2.0)


# Batching.


@pytest.mark.slow
@both
def test_batch_elements_call_back_in_order(jit: Wrap, log: Log) -> None:
    def f(x: Any, y: Any) -> Any:
        recorder(log)("x", x, y)
        recorder(log)("same")
        return x + y

    out = jit(jax.vmap(f, in_axes=(0, None)))(jnp.arange(3.0), 5.0)
    assert out.tolist() == [5.0, 6.0, 7.0]
    assert log == [("x", 0.0, 5.0), ("x", 1.0, 5.0), ("x", 2.0, 5.0), "same", "same", "same"]
    log.clear()
    jit(jax.vmap(jax.vmap(recorder(log))))(jnp.arange(4.0).reshape(2, 2))
    assert log == [0.0, 1.0, 2.0, 3.0]
    log.clear()
    nested = jax.vmap(jax.vmap(jax.vmap(f, (0, None)), (1, None)), (None, 0))
    jit(nested)(jnp.arange(6.0).reshape(2, 3), jnp.arange(2.0))
    calls = [("x", x, y) for y in (0.0, 1.0) for x in (0.0, 3.0, 1.0, 4.0, 2.0, 5.0)]
    assert [call for call in log if call != "same"] == calls
    assert log.count("same") == 12
    log.clear()

    def chosen(x: Any) -> None:
        lax.cond(x > 0, lambda: recorder(log)(x), lambda: None)

    jit(jax.vmap(jax.vmap(chosen)))(jnp.arange(6.0).reshape(2, 3))
    assert log == [1.0, 2.0, 3.0, 4.0, 5.0]
    log.clear()
    jit(jax.vmap(recorder(log)))(jnp.zeros(0))
    assert log == []


@pytest.mark.slow
@both
def test_a_masked_batch_element_does_not_call_back(jit: Wrap, log: Log) -> None:
    def f(n: Any) -> Any:
        lax.cond(n > 1, lambda: recorder(log)("big", n), lambda: recorder(log)("small"))

        def body(i: Any) -> Any:
            recorder(log)("loop", n, i)
            return i + 1

        return lax.while_loop(lambda i: i < n, body, 0)

    out = jit(jax.vmap(f))(jnp.array([2, 0, 1]))
    assert out.tolist() == [2, 0, 1]
    assert log[:3] == ["small", "small", ("big", 2)]
    assert log[3:] == [("loop", 2, 0), ("loop", 1, 0), ("loop", 2, 1)]


@pytest.mark.slow
@both
def test_io_callbacks_are_called_for_each_batch_element(jit: Wrap) -> None:
    count = iter(range(100))

    def f(x: Any) -> Any:
        return x + io_callback(lambda: np.float32(next(count)), F32)

    assert jit(jax.vmap(f))(jnp.full(3, 10.0)).tolist() == [10.0, 11.0, 12.0]
    g = jax.vmap(lambda x: io_callback(lambda v: np.float32(v * 2), F32, x))
    assert jit(g)(jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(TransformError, match="is ordered"):
        jit(jax.vmap(lambda x: io_callback(lambda v: v, F32, x, ordered=True)))(jnp.arange(3.0))
    mapped = jit(lambda xs: lax.map(lambda x: io_callback(lambda v: v, F32, x, ordered=True), xs))
    assert mapped(jnp.arange(3.0)).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.slow
@both
@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((), ())] * 3),
        ("sequential_unrolled", [((), ())] * 3),
        ("expand_dims", [((3,), (1,))]),
        ("broadcast_all", [((3,), (3,))]),
        ("legacy_vectorized", [((3,), ())]),
    ],
)
def test_pure_callbacks_are_batched_as_they_say(jit: Wrap, method: str, shapes: list[Any]) -> None:
    seen: list[Any] = []

    def add(x: Any, y: Any) -> Any:
        seen.append((np.shape(x), np.shape(y)))
        return np.asarray(x) + np.asarray(y)

    def f(x: Any, y: Any) -> Any:
        return jax.pure_callback(add, F32, x, y, vmap_method=method)

    out = jit(jax.vmap(f, in_axes=(0, None)))(jnp.arange(3.0), 1.0)
    assert out.tolist() == [1.0, 2.0, 3.0]
    assert seen == shapes


def test_a_batch_without_a_method_is_refused() -> None:
    with pytest.raises(NotApplicable, match="needs a method of batching the function"):
        jax.vmap(lambda x: jax.pure_callback(lambda v: v, F32, x))(jnp.arange(3.0))


@both
def test_devices_of_a_mesh_call_back(jit: Wrap, log: Log) -> None:
    def f(x: Any) -> Any:
        recorder(log)("here", x.sum())
        return x * 2

    mesh = jax.make_mesh((1,), ("i",))
    mapped = jax.shard_map(f, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))
    assert jit(mapped)(jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    element = lambda x: recorder(log)(lax.psum(x, "j"), lax.axis_index("j"))  # noqa: E731
    jit(jax.vmap(element, axis_name="j"))(jnp.arange(2.0))
    assert log == [("here", 3.0), (1.0, 0), (1.0, 1)]


# Programs as values.


def test_programs_are_compared_by_what_they_call(log: Log) -> None:
    def make(f: Callable[..., Any], *more: Any) -> Any:
        return jax.make_jaxpr(lambda x: jax.debug.callback(f, x, *more))(1.0).jaxpr

    assert make(log.append) == make(log.append)
    assert make(log.append, "a") == make(log.append, "a") != make(log.append, "b")
    assert make(lambda x: None) != make(lambda x: None)
    # What has no hash is compared by which one it is.
    assert make(log) == make(log) != make(Log())


def test_programs_are_read_back_with_what_they_refer_to(log: Log) -> None:
    def f(x: Any) -> Any:
        jax.debug.print("{}", x)
        jax.debug.callback(lambda x: log(x, 1), x)
        lax.fori_loop(0, 2, lambda i, _: jax.debug.callback(lambda x: None, i), None)
        return jax.pure_callback(np.sin, F32, x)

    jaxpr = checked(jax.make_jaxpr(f)(1.0).jaxpr)
    named = references(jaxpr)
    assert list(named) == ["print", "lambda", "lambda1", "sin"]
    assert parse(str(jaxpr), references=named) == jaxpr
    with pytest.raises(effax.ir.errors.ParseError, match="names a Python object"):
        parse(str(jaxpr))


def test_the_type_says_what_a_function_does(log: Log) -> None:
    def f(x: Any) -> Any:
        jax.debug.callback(log, x)
        io_callback(log, None, x, ordered=True)
        return x

    assert str(jax.make_jaxpr(f)(1.0).jaxpr.effects) == "{io debug?, io io}"


# Waiting.


def test_the_barrier_waits_for_other_threads(log: Log) -> None:
    jax.effects_barrier()
    entered, go_on = threading.Event(), threading.Event()

    def slow(x: Any) -> None:
        entered.set()
        assert go_on.wait(10)
        log(x)

    f = jax.jit(lambda x: jax.debug.callback(slow, x))
    thread = threading.Thread(target=f, args=(1.0,))
    thread.start()
    assert entered.wait(10)
    threading.Timer(0.05, go_on.set).start()
    jax.effects_barrier()
    assert log == [1.0]
    thread.join()
    # From inside of a callback it does not wait for itself.
    jax.jit(lambda x: jax.debug.callback(lambda _: jax.effects_barrier(), x))(1.0)
