from __future__ import annotations

import pytest
from effax_passes import algebra, price
from effax_passes.algebra import RULES, Softmax
from effax_passes.laws import cheaper, derivatives_are_close

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.ir.prims import Add, Exp, Log, Mul
from effax.passes import Guarantee, unwrap
from effax.testing import LawBroken, check_law, check_pass, check_primitive, laws
from effax.transforms import FLOATS, App, Hole, RewriteRule

RTOL = {"float32": 1e-4, "bfloat16": 2e-2, "float16": 2e-3}
WHERE_FINITE = Guarantee.SAME_WHERE_FINITE


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_rule_is_true_where_its_left_side_is_finite(rule: RewriteRule) -> None:
    laws.rule_is_sound(rule, guarantee=WHERE_FINITE, rtol=RTOL)


def test_the_rules_change_rounding() -> None:
    refused: list[str] = []
    for rule in RULES:
        try:
            laws.rule_is_sound(rule)
        except LawBroken:
            refused.append(rule.name)
    assert len(refused) > len(RULES) // 2


def test_false_rules_are_refused() -> None:
    x, y = Hole("x"), Hole("y")
    for left, right in (
        (App(Mul, App(Exp, x), App(Exp, y)), App(Exp, App(Mul, x, y))),
        (App(Add, App(Log, x), App(Log, y)), App(Log, App(Add, x, y))),
    ):
        with pytest.raises(LawBroken):
            laws.rule_is_sound(
                RewriteRule("false", left, right, FLOATS), guarantee=WHERE_FINITE, rtol=RTOL
            )


def test_rewriting_keeps_results_and_ends(examples: int) -> None:
    guarantees = [WHERE_FINITE, Guarantee.IDEMPOTENT]
    report = check_pass(algebra, focus=RULES, rtol=RTOL, guarantees=guarantees, examples=examples)
    assert report.changed > examples // 2


def test_rewriting_is_never_dearer_and_keeps_derivatives(examples: int) -> None:
    assert check_law(cheaper, step=algebra, focus=RULES, examples=examples).programs
    focus = ["math.smooth", "arith.mul"]
    assert check_law(derivatives_are_close, step=algebra, focus=focus, examples=examples).programs


def test_products_of_matrices_are_associated_by_their_price() -> None:
    def f(a: Array, b: Array, v: Array) -> Array:
        return (a @ b) @ v

    matrix, vector = jnp.ones((64, 64)), jnp.ones(64)
    before = effax.make_jaxpr(f)(matrix, matrix, vector).jaxpr
    after = unwrap(algebra(before))
    assert effax.cost(after).flops == 2 * 2 * 64 * 64
    assert price(after) < price(before) / 10
    row = effax.make_jaxpr(f)(jnp.ones((1, 64)), matrix, matrix).jaxpr
    assert unwrap(algebra(row)) == row


def test_softmax_is_found_and_does_not_overflow() -> None:
    def weights(x: Array) -> Array:
        return jnp.exp(x) / jnp.sum(jnp.exp(x), axis=-1, keepdims=True)

    def first(x: Array) -> Array:
        return weights(x)[0, 0]

    x = jnp.array([[1000.0, 0.0]])
    assert jnp.isnan(weights(x)[0, 0])
    assert effax.jit(weights, passes=algebra)(x)[0, 0] == 1.0
    assert effax.jit(effax.grad(first), passes=algebra)(x * 0)[0, 0] == 0.25
    assert not check_primitive(
        Softmax((1,)), extend.array_type((2, 3), "float32"), seeds=(0,)
    ).refused
