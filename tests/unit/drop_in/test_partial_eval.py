"""Test functions of ``jax.interpreters.partial_eval``, ``api_util`` and ``linear_util``."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import cache

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import Array, tree
from effax.drop_in import (
    ad,
    api_util,
    core,
    generators,
    linear_util,
    names,
    partial_eval,
    source_info,
)
from effax.drop_in.partial_eval import PartialVal

VECTOR = effax.core.ShapedArray((3,), "float32")


def test_a_flat_function_and_the_structure_of_its_result() -> None:
    def f(x: Array, *, y: dict[str, Array]) -> dict[str, Array]:
        return {"sum": x + y["a"]}

    leaves, in_tree = tree.flatten(((1.0,), {"y": {"a": 2.0}}))
    info = api_util.debug_info("test", f, (1.0,), {"y": {"a": 2.0}})
    flat, out_tree = api_util.flatten_fun(linear_util.wrap_init(f, debug_info=info), in_tree)
    with pytest.raises(linear_util.StoreException, match="empty"):
        out_tree()
    closed = effax.make_jaxpr(flat.call_wrapped)(*leaves)
    assert tree.unflatten(out_tree(), core.jaxpr_as_fun(closed)(1.0, 2.0)) == {"sum": 3.0}
    assert info.arg_names == ("x", "y['a']")


def test_transformations_written_as_generators() -> None:
    @linear_util.transformation_with_aux
    def doubled(factor: int, *args: int) -> Generator[object, object, None]:
        outs = yield [factor * x for x in args], {}
        assert isinstance(outs, list)
        yield [x + 1 for x in outs], len(args)

    fun, aux = doubled(linear_util.wrap_init(lambda *xs: list(xs)), 10)
    assert fun.call_wrapped(1, 2) == [11, 21]
    assert aux() == 2
    assert fun.__name__ == "<lambda>"


def test_arguments_at_other_positions_are_fixed() -> None:
    fun = linear_util.wrap_init(lambda x, y, z: (x, y, z))
    part, dyn = api_util.argnums_partial(fun, (2, -3), (1, 2, 3))
    assert dyn == [3, 1]
    assert part.call_wrapped(30, 10) == (10, 2, 30)
    with pytest.raises(ValueError, match="not hashable"):
        api_util.argnums_partial(fun, 0, (1, [2], 3))
    assert api_util.flatten_axes("axes", tree.structure((1, {"a": 2})), (0, None)) == [0, None]


def test_a_program_without_dead_code_states_its_inputs() -> None:
    table = jnp.arange(3.0)
    fun = linear_util.wrap_init(lambda x, y: [x * 2, y + table])
    jaxpr, avals, consts = partial_eval.trace_to_jaxpr_dynamic(fun, [VECTOR, VECTOR])
    assert avals == [VECTOR, VECTOR]
    live, used = partial_eval.dce_jaxpr(jaxpr, [False, True])
    assert used == [True, False, True]
    assert len(live.eqns) == 1
    (out,) = effax.core.eval_jaxpr(live, consts, jnp.ones(3))
    np.testing.assert_array_equal(out, [1, 2, 3])
    assert partial_eval.dce_jaxpr(jaxpr, [True, False], instantiate=True)[1] == [True] * 3


def test_known_results_are_computed_and_the_others_are_a_program() -> None:
    def f(x: Array, y: Array) -> Sequence[Array]:
        known = jnp.sin(y)
        return [known, x * known]

    fun = linear_util.wrap_init(f)
    vals = [PartialVal.unknown(VECTOR), PartialVal.known(jnp.ones(3))]
    jaxpr, outs, consts = partial_eval.trace_to_jaxpr_nounits(fun, vals)
    assert [v.is_known() for v in outs] == [True, False]
    assert outs[1].get_aval() == VECTOR
    np.testing.assert_allclose(np.asarray(outs[0].get_known()), np.sin(1.0), rtol=1e-6)
    (out,) = effax.core.eval_jaxpr(jaxpr, consts, 2 * jnp.ones(3))
    np.testing.assert_allclose(out, 2 * np.sin(1.0), rtol=1e-6)


def test_programs_are_differentiated_and_pruned() -> None:
    closed = effax.make_jaxpr(lambda x, y: (x * y, y + 1.0))(2.0, 3.0)
    moved, nonzero = ad.jvp_jaxpr(closed, [True, False], instantiate=[False, True])
    assert nonzero == [True, True]
    assert core.jaxpr_as_fun(moved)(2.0, 3.0, 1.0) == [6.0, 4.0, 3.0, 0.0]
    assert ad.jvp(lambda x: [x * x], [3.0], [1.0]) == ([9.0], [6.0])
    pruned = partial_eval.prune_closed_jaxpr_outputs(closed, [False, True])
    assert core.jaxpr_as_fun(pruned)(2.0, 3.0) == [4.0]
    _, consts, ins = partial_eval.dce_jaxpr_consts(closed.jaxpr, [False, True])
    assert (consts, ins) == ([], [False, True])


def test_name_stacks_generators_and_caches() -> None:
    with source_info.extend_name_stack("outer"), source_info.extend_name_stack("inner"):
        stack = source_info.current_name_stack()
        with source_info.reset_name_stack(), source_info.user_context(None, name_stack=stack):
            assert source_info.current().name_stack == stack == "outer/inner"
    closed = effax.make_jaxpr(lambda x: x)(1.0)
    assert not closed.eqns
    assert stack.extend("deep") == "outer/inner/deep"
    key = generators.seed_with_impl(generators.rbg_prng_impl, 3)
    assert key == effax.random.key(3, impl="rbg")
    cached = cache(object)
    names.register_backend_cache(cached, "tests.cached")
    first = cached()
    effax.clear_caches()
    assert cached() is not first
