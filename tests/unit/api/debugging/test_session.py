from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.api.debugging import moves
from effax.debug import Session, explore
from effax.ir.errors import BadArgument, IllTyped

HERE = Path(__file__).name


def train(state: dict[str, jax.Ref], x: jax.Array) -> jax.Array:
    def body(c: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
        state["w"][0] += a  # written
        c = jax.lax.cond(a > 1, lambda c: c * 2, jnp.sin, c)
        return c, c * a

    c, ys = jax.lax.scan(body, x, jnp.arange(4.0))
    return c + jnp.sum(ys) + state["w"][0]


@pytest.fixture
def ref() -> jax.Ref:
    return jax.new_ref(jnp.zeros(2))


@pytest.fixture
def session(ref: jax.Ref) -> Session:
    return explore(train)({"w": ref}, 1.0)


def names(session: Session) -> list[str]:
    """Return the primitives of the next equations of steps into programs, to the end."""
    found: list[str] = []
    while not session.has_ended:
        if session.equation is not None:
            found.append(session.equation.prim.name)
        session = session.into()
    return found


def test_steps_are_over_or_into_programs(session: Session) -> None:
    over = session
    seen: list[str] = []
    while over.equation is not None:
        seen.append(over.equation.prim.name)
        over = over.step()
    assert seen == [eqn.prim.name for eqn in session.call.jaxpr.eqns]
    inside = names(session)
    assert inside.count("cond") == 4
    assert inside.count("mul") == 4 + 2
    assert inside.count("sin") == 2
    assert over.into().has_ended
    assert over.state.steps == len(inside)


def test_the_result_is_the_function_s_and_references_stay(session: Session, ref: jax.Ref) -> None:
    end = session.go()
    assert end.reason == "the end"
    assert ref[...].tolist() == [0, 0]
    assert float(end.result) == float(train({"w": ref}, jnp.float32(1)))
    assert ref[...].tolist() == [6, 0]
    assert session.value("state['w']").tolist() == [0, 0]
    assert end.value("state['w']").tolist() == [6, 0]
    with pytest.raises(BadArgument, match="has not ended"):
        _ = session.result


def test_out_leaves_the_whole_loop(session: Session) -> None:
    inside = session.break_at(primitive="sin").go()
    assert inside.path == ("scan, iteration 0", "cond, branch 0")
    left = inside.clear().out()
    assert left.path == ("scan, iteration 0",)
    assert left.out().path == ()


def test_breaks_stop_before_an_equation(session: Session) -> None:
    at = session.break_at(primitive="sin").go()
    assert at.equation is not None
    assert at.equation.prim.name == "sin"
    assert at.go().path == ("scan, iteration 1", "cond, branch 0")
    assert at.go().go().has_ended

    line = train.__code__.co_firstlineno + 2
    assert HERE in str(session.break_at(line=line).go().line)
    first = session.break_at(line=f"{HERE}:{line}").go()
    assert first.path == ("scan, iteration 0",)

    writes = session.break_at(write="state['w']", when="value > 2").go()
    assert writes.path == ("scan, iteration 2",)
    assert writes.value("state['w']").tolist() == [1, 0]
    assert writes.go().go().has_ended

    inside = first.clear().break_at("f")
    assert inside.breaks[-1].text == "equation 3"
    assert inside.go().state.frame.at == 3
    assert session.break_at(equation=2).go().state.frame.at == 2
    assert session.break_at(when="value.shape == (4,) and value.max() > 2").go().state.steps == 0


def test_a_run_can_be_limited(session: Session) -> None:
    some = session.go(limit=5)
    assert some.reason == "5 equations"
    assert some.go(5).state.steps >= 10


def test_back_returns_an_equation_also_within_a_move(session: Session) -> None:
    # A condition at every equation: all programs are entered.
    session = session.break_at(when="inf")
    end = session.go()
    trail = [session]
    while not trail[-1].has_ended:
        trail.append(trail[-1].into())
    places = [(s.state.steps, s.path, s.state.frame.at) for s in trail]
    for n in (1, 2, 7, 20):
        there = end.back(n)
        assert (there.state.steps, there.path, there.state.frame.at) == places[-1 - n]
    back = end.back(3).back(2)
    assert (back.state.steps, back.path, back.state.frame.at) == places[-6]
    for n in (5, 15, 25):
        now = end.back(n).value("state['w']")
        assert now.tolist() == trail[-1 - n].value("state['w']").tolist()
    assert end.undo().state is session.state
    assert end.back(1000).state is session.state
    assert session.back().state is session.state


def test_stepping_back_calls_no_callback_again() -> None:
    seen: list[float] = []

    def f(x: jax.Array) -> jax.Array:
        x = x + 1
        jax.debug.callback(lambda x: seen.append(float(x)), x)
        return x * 2

    end = explore(f)(1.0).go()
    assert seen == [2.0]
    assert end.back(2).step().value("b") == 2
    assert len(seen) <= 2


def test_values_are_found_by_variable_argument_and_expression(session: Session) -> None:
    at = session.break_at(primitive="sin").go()
    assert at.value("x") == 1
    assert at.value("a") == 1
    assert at.value("np.cos(a) + x") == pytest.approx(np.cos(1) + 1)
    assert at.value("c", level=1) == 0
    with pytest.raises(BadArgument, match=r"expected: .*of np, .*\bx, .*a\b(.|\n)*NameError"):
        at.value("nothing")
    with pytest.raises(BadArgument, match="not a variable or an expression"):
        at.value("a +")
    with pytest.raises(BadArgument, match="out of range"):
        at.value("a", level=3)
    # An expression cannot write.
    with pytest.raises(BadArgument, match="read-only"):
        at.value("a.fill(0)")


def test_big_arrays_are_shown_by_statistics() -> None:
    x = jnp.array([np.nan, np.inf, 0.0, 1.0] * 25)
    session = explore(lambda x: x * 1)(x)
    stats = session.stats("x")
    assert (stats.size, stats.nan, stats.inf, stats.zeros, stats.mean) == (100, 25, 25, 25, 0.5)
    assert "25 nan, 25 inf" in session.shown("x")
    assert "25 nan, 25 inf" in session.values()
    for dtype in ("bool", "int8", "bfloat16", "complex64"):
        assert explore(lambda x: x)(jnp.zeros(30, dtype)).stats("x").zeros == 30


def test_the_history_of_a_reference(session: Session) -> None:
    end = session.go()
    history = end.history("state['w']")
    assert [float(w.after) for w in history] == [0, 1, 3, 6]
    assert [float(w.before) for w in history] == [0, 0, 1, 3]
    assert history[2].part == "[0]"
    assert history[2].path == ("scan, iteration 2",)
    assert HERE in str(history[2].line)
    assert "addupdate in scan, iteration 2" in end.history_text("state['w']")
    assert session.history("state['w']") == ()
    with pytest.raises(BadArgument, match="x is not a reference"):
        session.history("x")


def test_origins_follow_loops_branches_and_references(session: Session) -> None:
    end = session.step(100)
    last = end.call.jaxpr.outs[0]
    found = end.origins(str(last))
    texts = [o.name for o in found]
    assert any("x (" in t for t in texts)
    assert any("state['w']" in t for t in texts)
    kinds = {o.eqn.prim.name for o in found if o.eqn is not None}
    assert {"iota", "scan", "cond", "sin", "get", "addupdate", "reduce_sum", "add"} <= kinds
    assert all(HERE in str(o.source) for o in found if o.eqn is not None)


def test_origins_are_those_of_the_part_that_was_read() -> None:
    def f(r: jax.Ref, x: jax.Array) -> jax.Array:
        r[0] = jnp.sin(x)
        r[1] = jnp.cos(x)
        r[0] = jnp.tan(x)
        y = r[0]
        r[0] = jnp.exp(x)
        return y

    session = explore(f)(jax.new_ref(jnp.zeros(2)), np.float32(1)).go()
    assert {o.eqn.prim.name for o in session.origins(str(session.call.jaxpr.outs[0])) if o.eqn} == {
        "get",
        "swap",
        "tan",
    }


def test_transformed_functions_are_explored_with_the_lines_of_the_user(ref: jax.Ref) -> None:
    def f(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(x) ** 2)

    x = jnp.arange(3.0)
    transformed = (
        jax.grad(f),
        jax.vmap(f),
        jax.jit(jax.grad(f)),
        lambda x: jax.jvp(f, (x,), (x,)),
        lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x])),
    )
    for g in transformed:
        session = explore(g)(x)
        lines = {session.line}
        while session.equation is not None:
            lines.add(session.line)
            session = session.step()
        assert all(HERE in str(line) for line in lines)
        for found, wanted in zip(
            jax.tree.leaves(session.step().result), jax.tree.leaves(g(x)), strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)

    def loss(x: jax.Array) -> jax.Array:
        return train({"w": ref}, x)

    history = explore(jax.grad(loss))(1.0).go().history("ref")
    assert len(history) == 4


def test_custom_rules_calls_and_programs_are_entered() -> None:
    @jax.custom_jvp
    def f(x: jax.Array) -> jax.Array:
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))

    def g(x: jax.Array) -> jax.Array:
        return jax.jit(jax.checkpoint(f))(x)

    session = explore(g)(1.0)
    paths = set()
    while not session.has_ended:
        paths.add(session.path)
        session = session.into()
    assert ("jit", "remat2", "custom_jvp_call") in paths

    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * jnp.arange(2.0))(1.0)
    assert explore(closed)(1.0).go().result[0].shape == (2,)
    assert explore(closed.jaxpr)(*closed.consts, 1.0).go().has_ended
    with pytest.raises(IllTyped, match="one argument for each input"):
        explore(closed)()
    with pytest.raises(IllTyped, match="another type"):
        explore(closed)(jnp.zeros(2))


def test_arguments_without_values_are_refused() -> None:
    with pytest.raises(BadArgument, match="needs values"):
        explore(jnp.sin)(jax.ShapeDtypeStruct((), "float32"))
    with pytest.raises(BadArgument, match="takes a function or a program"):
        explore(3)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="a tracer"):
        jax.jit(explore(jnp.sin))(1.0)


def test_static_arguments() -> None:
    def f(x: jax.Array, kind: str) -> jax.Array:
        return getattr(jnp, kind)(x)  # type: ignore[no-any-return]

    jitted = jax.jit(f, static_argnums=1)
    for session in (explore(f, static_argnums=1)(1.0, "sin"), explore(jitted)(1.0, "sin")):
        assert session.equation is not None
        assert session.equation.prim.name == "sin"


def test_wrong_breaks_are_refused_with_what_there_is(session: Session) -> None:
    with pytest.raises(BadArgument, match=r"one of the primitives .*cond"):
        session.break_at(primitive="sine")
    with pytest.raises(BadArgument, match=rf"one of the lines {HERE}"):
        session.break_at(line=1)
    with pytest.raises(BadArgument, match="this is not a line"):
        session.break_at(line="here")
    with pytest.raises(BadArgument, match="no such equation"):
        session.break_at(100)
    with pytest.raises(BadArgument, match="not a variable"):
        session.break_at(write="v")
    with pytest.raises(BadArgument, match="at one place"):
        session.break_at()
    with pytest.raises(BadArgument, match="not an expression"):
        session.break_at(when="value >")
    with pytest.raises(BadArgument, match="unknown name"):
        session.break_at(when="vallue > 3")
    assert session.break_at(when="max(v for v in ins) > 3").breaks
    with pytest.raises(BadArgument, match="no break 1"):
        session.clear(1)


def test_an_error_of_the_user_s_function_stops_before_its_equation() -> None:
    def fail(x: jax.Array) -> None:
        raise ZeroDivisionError("planted")

    def f(x: jax.Array) -> jax.Array:
        x = jnp.sin(x)
        jax.debug.callback(fail, x)
        return x

    stopped = explore(f)(0.0).go()
    assert stopped.equation is not None
    assert stopped.equation.prim.name == "debug_callback"
    assert isinstance(stopped.error, ZeroDivisionError)
    assert "planted" in str(stopped)
    assert stopped.value("b") == 0


def test_a_session_is_drawn_in_a_notebook(session: Session) -> None:
    html = session.break_at(primitive="cond").go()._repr_html_()
    assert "train &gt; scan, iteration 0" in html
    assert "<details>" in html
    assert "break 1: primitive cond" in html
    assert "returned" in session.go()._repr_html_()


def test_an_interrupt_stops_at_the_state_that_was_reached() -> None:
    def interrupt(x: jax.Array) -> None:
        raise KeyboardInterrupt

    def f(x: jax.Array) -> jax.Array:
        x = jnp.sin(x)
        jax.debug.callback(interrupt, x)
        return x

    for session in (explore(f)(0.5).go(), explore(f)(0.5).step(3), explore(f)(0.5).find("nan")):
        assert session.reason == "interrupted"
        assert session.equation is not None
        assert session.equation.prim.name == "debug_callback"


@pytest.mark.slow
def test_all_kinds_of_values_are_shown() -> None:
    def f(x: jax.Array, n: jax.Array, key: jax.Array) -> object:
        return jax.jvp(lambda x: x * n, (x,), (x,)), jax.random.normal(key, (30,))

    session = explore(f)(jnp.ones(3, "bfloat16"), jnp.int8(2), jax.random.key(0))
    while not session.has_ended:
        assert session.values()
        assert session._repr_html_()
        session = session.into()
    zeros = jax.grad(lambda n: n * 1.0, allow_int=True)(2)
    assert "float0" in explore(lambda x: x)(zeros).shown("x")


def test_the_backward_pass_of_custom_rules_is_explored() -> None:
    @jax.custom_vjp
    def f(x: jax.Array) -> jax.Array:
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (jnp.tan(x) * g,))
    session = explore(jax.grad(f))(1.0)
    assert "tan" in names(session)
    assert float(session.go().result) == pytest.approx(np.tan(1))


def test_a_variable_and_an_argument_of_one_name_are_distinguished() -> None:
    def f(b: jax.Array) -> jax.Array:
        return jnp.sin(b) + 1

    session = explore(f)(2.0)
    assert session.value("b") == 2
    later = session.step()
    assert later.value("b") == pytest.approx(np.sin(2))
    assert "the argument b is a" in later.shown("b")


def test_back_from_a_found_equation(session: Session) -> None:
    found = session.find(lambda v: v == 3)
    assert found.equation is not None
    assert found.equation.prim.name == "iota"
    later = session.step().find(lambda v: v == 5)
    assert later.back().step().state.steps <= later.state.steps
    assert later.undo().state.steps == 1
    assert session.find("nan").has_ended


def test_stepping_back_through_a_long_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "BETWEEN", 16)
    monkeypatch.setattr(moves, "KEPT", 4)

    def f(r: jax.Ref) -> None:
        def body(i: jax.Array, c: jax.Array) -> jax.Array:
            r[0] += 1.0
            return c

        jax.lax.fori_loop(0, 30, body, 0)

    start = explore(f)(jax.new_ref(jnp.zeros(1)))
    trail = [start]
    while not trail[-1].has_ended:
        trail.append(trail[-1].into())
    end = start.go()
    for n in (1, 3, 4, 5, 40, 63, 64, 65, len(trail) - 2, len(trail) - 1, len(trail)):
        there, wanted = end.back(n), trail[-1 - min(n, len(trail) - 1)]
        assert there.state.frame.site.label == wanted.state.frame.site.label
        assert there.state.frame.at == wanted.state.frame.at
        assert there.value("r").tolist() == wanted.value("r").tolist()
        assert there.back(7).value("r").tolist() == end.back(n + 7).value("r").tolist()
        assert there.go().has_ended
