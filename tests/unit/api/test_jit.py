"""jit: values, caches, static arguments, references in place, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, IllTyped, LeakedTracer, RefError


def test_it_is_traced_once_for_each_type() -> None:
    calls = []

    @effax.jit
    def f(x: Any) -> Any:
        calls.append(x.type)
        return x + 1

    for value in (1.0, 2.0, jnp.ones(3), jnp.zeros(3), 1):
        f(value)
    assert [str(t) for t in calls] == ["~f32[]", "f32[3]", "~i32[]"]


def test_equal_programs_compile_once() -> None:
    from effax.lowering import program

    effax.jit(lambda x: x * 3.25 + 1)(jnp.ones(7))
    before = len(program._cache.programs)
    effax.jit(lambda y: y * 3.25 + 1)(jnp.ones(7))
    assert len(program._cache.programs) == before


def test_trees_in_and_out() -> None:
    out = effax.jit(lambda p, *, k: {"sum": p["a"] + p["b"][0] + k, "none": None})(
        {"a": 1.0, "b": [2.0]}, k=3.0
    )
    assert float(out["sum"]) == 6.0
    assert out["none"] is None


def test_static_arguments_are_values() -> None:
    def f(x: Any, n: int, mode: str = "add") -> Any:
        return x + n if mode == "add" else x * n

    by_number = effax.jit(f, static_argnums=1, static_argnames="mode")
    assert float(by_number(2.0, 3)) == 5.0
    assert float(by_number(2.0, 4, mode="mul")) == 8.0
    assert float(by_number(2.0, n=5)) == 7.0


def test_static_arguments_that_cannot_be() -> None:
    with pytest.raises(BadArgument, match="static_argnums is out of range"):
        effax.jit(lambda x: x, static_argnums=3)
    with pytest.raises(BadArgument, match="name"):
        effax.jit(lambda x: x, static_argnames="y")
    with pytest.raises(BadArgument, match="hashable"):
        effax.jit(lambda x, y: x, static_argnums=1)(1.0, [1])


def test_constants_are_arguments_of_the_module() -> None:
    table = jnp.asarray(np.linspace(0.123456, 9.87, 1000, dtype=np.float32))
    lowered = effax.jit(lambda i: table[i]).lower(3)
    assert "dense<[" not in lowered.as_text()
    assert len(lowered.as_text()) < 3000
    assert float(effax.jit(lambda i: table[i])(0)) == pytest.approx(0.123456)


def test_lowered_and_compiled_have_text_and_analyses() -> None:
    lowered = effax.jit(lambda x: jnp.sin(x) @ x).lower(jnp.ones((4, 4)))
    assert "stablehlo" in lowered.as_text()
    compiled = lowered.compile()
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    expected = np.full(4, 4 * np.sin(1.0))
    np.testing.assert_allclose(compiled(jnp.ones((4, 4)))[0], expected, rtol=1e-6)
    with pytest.raises(IllTyped, match="wrong type"):
        compiled(jnp.ones((3, 3)))


def test_a_closed_over_reference_is_updated_in_place() -> None:
    ref = effax.new_ref(jnp.zeros(3))

    @effax.jit
    def bump() -> None:
        ref[1] += 1.0

    address = ref.unsafe_buffer_pointer()
    for _ in range(3):
        bump()
        ref[0] += 1.0
    np.testing.assert_array_equal(ref[...], [3, 3, 0])
    assert ref.unsafe_buffer_pointer() == address


def test_a_reference_argument_is_updated_in_place() -> None:
    @effax.jit
    def f(ref: effax.Ref, x: Any) -> Any:
        old = ref[...]
        ref[...] = old * x
        return old

    ref = effax.new_ref(jnp.arange(3.0))
    address = ref.unsafe_buffer_pointer()
    np.testing.assert_array_equal(f(ref, 2.0), [0, 1, 2])
    np.testing.assert_array_equal(f(ref, 2.0), [0, 2, 4])
    np.testing.assert_array_equal(ref[...], [0, 4, 8])
    assert ref.unsafe_buffer_pointer() == address


@pytest.mark.slow
def test_one_element_of_a_large_reference_moves_no_more() -> None:
    ref = effax.new_ref(jnp.zeros(25_000_000))

    def poke(ref: effax.Ref, i: Any) -> None:
        ref[i] = 1.0

    compiled = effax.jit(poke).lower(ref, 3).compile()
    stats: Any = compiled.memory_analysis()
    assert stats.temp_bytes < 10_000
    assert not [line for line in compiled.as_text().splitlines() if "copy(" in line]
    compiled(ref, 7)
    assert float(ref[7]) == 1.0
    assert float(jnp.sum(ref[...])) == 1.0


def test_aliases_are_refused_each_time() -> None:
    @effax.jit
    def two(x_ref: effax.Ref, y_ref: effax.Ref) -> None:
        x_ref[...] = y_ref[...]

    one, other = effax.new_ref(1.0), effax.new_ref(2.0)
    with pytest.raises(RefError, match="x_ref"):
        two(one, one)
    two(one, other)
    with pytest.raises(RefError, match="one reference"):
        two(one, one)

    @effax.jit
    def closes(y_ref: effax.Ref) -> None:
        y_ref[...] = one[...]

    with pytest.raises(RefError, match="closes over"):
        closes(one)
    closes(other)
    with pytest.raises(RefError, match="closes over"):
        closes(one)
    assert float(one[...]) == float(other[...]) == 2.0


def test_a_returned_reference_is_refused_by_its_path() -> None:
    @effax.jit
    def f(ref: effax.Ref) -> dict[str, effax.Ref]:
        ref[...] = 5.0
        return {"kept": ref}

    ref = effax.new_ref(0.0)
    with pytest.raises(RefError, match="kept"):
        f(ref)
    assert float(ref[...]) == 0.0


def test_freezing_a_reference_of_the_caller_is_refused() -> None:
    ref = effax.new_ref(1.0)
    with pytest.raises(RefError, match="scope"):
        effax.jit(effax.freeze)(ref)
    assert float(ref[...]) == 1.0


def test_a_leaked_tracer_is_named_where_it_is_used() -> None:
    kept = []

    @effax.jit
    def f(x: Any) -> Any:
        kept.append(x + 1)
        return x

    f(1.0)
    with pytest.raises(LeakedTracer, match="escaped from jit"):
        kept[0] + 1
    with pytest.raises(LeakedTracer):
        effax.jit(lambda y: y + kept[0])(1.0)


def test_a_string_is_refused_by_the_name_of_the_argument() -> None:
    def f(x: Any, label: object) -> Any:
        return x

    with pytest.raises(IllTyped, match="label"):
        effax.jit(f)(1.0, "text")


def test_methods() -> None:
    class Model:
        scale = 3.0

        @effax.jit
        def __call__(self: Any, x: Any) -> Any:
            return x * self.scale

    effax.tree.register_pytree_node(Model, lambda m: ((), None), lambda _, __: Model())
    assert float(Model()(2.0)) == 6.0


def test_nested_jit_keeps_the_call() -> None:
    inner = effax.jit(lambda x: x + 1)
    text = str(effax.make_jaxpr(lambda x: inner(x) * 2)(1.0))
    assert "jit[" in text
    inlined = effax.jit(lambda x: x + 1, inline=True)
    assert "jit[" not in str(effax.make_jaxpr(lambda x: inlined(x) * 2)(1.0))
