from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.debug import Found, first
from effax.ir import evaluate, parse
from effax.ir.errors import BadArgument
from effax.ir.syntax import ClosedJaxpr

HERE = Path(__file__).name


def rerun(found: Found) -> list[np.ndarray]:
    """Return the results of the shortest program, read back from its text."""
    closed: object = parse(found.text)
    assert isinstance(closed, ClosedJaxpr)
    assert str(closed) == found.text
    return evaluate(closed.jaxpr, [np.asarray(c) for c in closed.consts])


def loop(x: jax.Array) -> jax.Array:
    def body(c: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = jnp.log(c - a)  # nan where a > c
        return jnp.where(a < 0, y, c), y

    return jnp.sum(jax.lax.scan(body, x, jnp.arange(5.0))[0])


def test_the_first_nan_is_found_where_it_is_masked_later() -> None:
    found = first(loop)(jnp.array([9.0, 2.5]))
    assert found is not None
    assert found.equation.prim.name == "log"
    assert found.path == ("scan, iteration 3",)
    assert found.iterations == (3,)
    assert found.element == (1,)
    assert HERE in str(found.line)
    (name,) = found.inputs
    assert found.inputs[name][1] < 0
    assert np.isnan(found.value[1])
    assert not found.is_passed_on
    # The shortest program has the one element.
    assert len(found.program.jaxpr.eqns) == 1
    (result,) = rerun(found)
    assert result.shape == ()
    assert np.isnan(result)
    shown = str(found)
    for part in ("nan in loop > scan, iteration 3, at [1]", "log", HERE, "result"):
        assert part in shown
    assert "shortest program" in found._repr_html_()


def test_the_slice_leads_from_the_inputs_of_the_iteration() -> None:
    found = first(loop)(jnp.array([9.0, 2.5]))
    assert found is not None
    sliced = found.sliced
    assert [eqn.prim.name for eqn in sliced.jaxpr.eqns] == ["sub", "log"]
    (result,) = evaluate(sliced.jaxpr, [np.asarray(c) for c in sliced.consts])
    np.testing.assert_array_equal(result, found.value)


def test_a_found_equation_can_be_explored() -> None:
    found = first(loop)(jnp.array([9.0, 2.5]))
    assert found is not None
    session = found.explore()
    assert session.equation == found.equation
    assert session.path == found.path
    assert session.value("c").tolist() == found.hit.frame.env[2].tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("predicate", "function", "primitive"),
    [
        ("inf", lambda x: jnp.exp(x * 100) * 0, "exp"),
        ("nan", lambda x: jnp.sum(jnp.sqrt(x - 2)), "sqrt"),
        ("out_of_bounds", lambda x: x[jnp.arange(3) + 1], "gather"),
        (lambda v: v.max(initial=0) > 3, lambda x: jnp.cumsum(x + 1), "add"),
        (lambda v: v > 5, lambda x: x * 3, "mul"),
    ],
)
def test_each_predicate(predicate: object, function: object, primitive: str) -> None:
    found = first(function, predicate)(jnp.arange(3.0))  # type: ignore[arg-type]
    if primitive == "add":
        assert found is None or found.equation.prim.name in ("add", "cumsum")
        return
    assert found is not None
    assert found.equation.prim.name == primitive
    results = rerun(found)
    if callable(predicate) or predicate != "out_of_bounds":
        assert any(map(found.test.holds_for, results))


def test_nothing_is_found_where_there_is_nothing() -> None:
    assert first(loop)(jnp.array([9.0, 8.0])) is None
    assert first(lambda x: x[jnp.array([0, 2])], "out_of_bounds")(jnp.arange(3.0)) is None
    assert first(lambda: 1.0)() is None


def test_writes_to_references_are_tested() -> None:
    def f(r: jax.Ref, x: jax.Array) -> None:
        r[0] += x
        r[0] -= jnp.inf

    ref = jax.new_ref(jnp.array([jnp.inf, 0.0]))
    found = first(f)(ref, np.float32(1))
    assert found is not None
    assert np.isnan(found.value)
    assert ref[1] == 0

    def g(r: jax.Ref, x: jax.Array) -> None:
        jax.ref.addupdate(r, 0, x)

    found = first(g)(jax.new_ref(jnp.array([jnp.inf, 0.0])), np.float32(-np.inf))
    assert found is not None
    assert found.equation.prim.name == "addupdate"
    # The reference is made from its contents before.
    assert [eqn.prim.name for eqn in found.program.jaxpr.eqns] == [
        "new_ref",
        "addupdate",
        "freeze",
    ]
    assert any(np.isnan(x).any() for x in rerun(found))


def test_positions_out_of_bounds_of_references_and_slices() -> None:
    def f(r: jax.Ref, i: jax.Array) -> jax.Array:
        return r[i]

    ref = jax.new_ref(jnp.arange(3.0))
    found = first(f, "out_of_bounds")(ref, 3)
    assert found is not None
    assert found.equation.prim.name == "get"
    assert first(f, "out_of_bounds")(ref, 2) is None
    assert rerun(found)
    window = first(lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,)), "out_of_bounds")
    assert window(jnp.arange(3.0), 2) is not None
    assert window(jnp.arange(3.0), 1) is None


def test_large_constants_are_written_out() -> None:
    x = jnp.arange(3000.0).reshape(50, 60).at[7, 5].set(jnp.inf)
    found = first(lambda x: x @ jnp.zeros((60, 2)))(x)
    assert found is not None
    assert found.equation.prim.name == "dot_general"
    assert np.isnan(rerun(found)[0]).any()


def test_gradients_batches_and_whiles() -> None:
    def norm(x: jax.Array) -> jax.Array:
        return jnp.sqrt(jnp.sum(x * x))

    found = first(jax.vmap(jax.grad(norm)), "nan")(jnp.array([[1.0, 2.0], [0.0, 0.0]]))
    assert found is not None
    assert found.element is not None
    assert found.element[0] == 1
    assert HERE in str(found.line)

    def halved(x: jax.Array) -> jax.Array:
        return jax.lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] - 2), (0, x))[1]

    found = first(halved, lambda v: v == -3)(5.0)
    assert found is not None
    assert found.iterations == (3,)
    assert found.path == ("while, iteration 3",)


def test_an_argument_that_has_it_is_mentioned() -> None:
    found = first(lambda x: x * 2)(jnp.array([1.0, jnp.nan]))
    assert found is not None
    assert found.is_passed_on
    assert "an operand has it already" in str(found)


def test_wrong_predicates_are_refused() -> None:
    with pytest.raises(BadArgument, match="'out_of_bounds'"):
        first(jnp.sin, "negative")
    with pytest.raises(BadArgument, match="function of a NumPy array"):
        first(jnp.sin, 3)  # type: ignore[arg-type]


def test_a_predicate_without_an_answer_is_an_error() -> None:
    with pytest.raises(BadArgument, match="returns None"):
        first(jnp.sin, lambda value: None)(jnp.ones(2))
