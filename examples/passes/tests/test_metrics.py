from __future__ import annotations

from collections.abc import Iterator

import pytest
from effax_passes import Metric, Observe, observe, without_metrics
from effax_passes.laws import metrics_are_not_results
from effax_passes.metrics import records

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.ir import IllTyped, Jaxpr
from effax.passes import optimize, unwrap
from effax.testing import LawBroken, check_effects, check_law, check_primitive


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    records.clear()
    yield
    records.clear()


START = jnp.float32(4.0)


def step(x: Array) -> Array:
    def body(i: Array, c: Array) -> Array:
        observe("size", c * c)
        return c * 0.5

    observe("start", x)
    return observe("loss", effax.lax.fori_loop(0, 2, body, x))


def traced() -> Jaxpr:
    return effax.make_jaxpr(step)(START).jaxpr


def test_metrics_commute_under_different_keys_only() -> None:
    found = check_effects(Metric("a"), Metric("b"))
    assert found == (("metric a", "metric a"), ("metric b", "metric b"))


def test_the_primitive_obeys_every_law_but_those_of_batches() -> None:
    checked = check_primitive(Observe("c"), extend.array_type((), "float32"), seeds=(0,))
    assert {refused.reason.split(":")[0] for refused in checked.refused} == {"vmap"}


def test_passes_and_derivatives_keep_each_record() -> None:
    assert effax.jit(effax.grad(step), passes=optimize)(START) == 0.25
    assert records == {"start": [4.0], "size": [16.0, 4.0], "loss": [1.0]}


def test_metrics_are_removed_by_key() -> None:
    without = effax.jit(step, passes=without_metrics("size", "start"))
    assert without(START) == 1.0
    assert records == {"loss": [1.0]}
    assert not unwrap(without_metrics()(traced())).effects


def test_metrics_do_not_change_results() -> None:
    metrics_are_not_results(traced(), seed=0, step=without_metrics())
    assert check_law(metrics_are_not_results, step=without_metrics(), examples=20).programs == 20
    with pytest.raises(LawBroken):
        metrics_are_not_results(traced(), seed=0, step=without_metrics("loss"))


def test_a_metric_is_a_number() -> None:
    with pytest.raises(IllTyped, match="a float without axes"):
        observe("a", jnp.ones(2))
