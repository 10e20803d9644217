from __future__ import annotations

import pytest
from effax_passes import Norm, norm, norms
from effax_passes.norm import RULES

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend import IllTyped
from effax.passes import Guarantee
from effax.testing import check_pass, check_primitive, laws
from effax.transforms import RewriteRule

RTOL = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}


def length(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x * x))


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_the_primitive_obeys_every_law(dtype: str) -> None:
    assert not check_primitive(Norm((1,)), extend.array_type((2, 3), dtype), seeds=(0,)).refused


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_rule_is_true_where_the_sum_is_finite(rule: RewriteRule) -> None:
    laws.rule_is_sound(rule, guarantee=Guarantee.SAME_WHERE_FINITE, rtol=RTOL)


@pytest.mark.slow
def test_the_pass_keeps_its_guarantees(examples: int) -> None:
    report = check_pass(norms, focus=RULES, rtol=RTOL, examples=examples)
    assert report.changed > examples // 2


def test_norms_of_large_elements_and_their_derivatives() -> None:
    x = jnp.array([3e20, 4e20])
    assert jnp.isinf(length(x))
    assert effax.jit(length, passes=norms)(x) == jnp.float32(5e20)
    slope = effax.grad(effax.apply_passes(length, norms))
    assert jnp.allclose(slope(x), jnp.array([0.6, 0.8]))
    assert not slope(jnp.zeros(2)).any() and jnp.isnan(effax.grad(length)(jnp.zeros(2))).all()


def test_norms_of_no_elements_and_of_infinities() -> None:
    for f in (length, effax.jit(length, passes=norms)):
        assert f(jnp.zeros(0)) == 0 and jnp.isinf(f(jnp.array([jnp.inf, 1.0])))
        assert jnp.isnan(f(jnp.array([jnp.nan, 1.0])))


def test_norms_are_batched() -> None:
    def length(x: Array) -> Array:
        return norm(x, (0,))

    rows = jnp.array([[3.0, 4.0], [5.0, 12.0]])
    assert (effax.vmap(length)(rows) == jnp.array([5.0, 13.0])).all()


def test_other_operands_are_refused() -> None:
    with pytest.raises(IllTyped, match="an array of floats"):
        norm(jnp.arange(3), (0,))
    with pytest.raises(IllTyped, match="distinct axes"):
        norm(jnp.ones(3), (1,))
