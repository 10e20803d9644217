from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as enp
from effax.ir import prims
from effax.ir.build import Builder
from effax.ir.errors import NotApplicable, TransformError
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Jaxpr
from effax.testing.laws.reverse import reverse_is_linearize_then_transpose
from effax.transforms.framework.rules import JvpOut, RuleBuilder, RuleSet, Unsupported
from effax.transforms.reverse.engine import reverse
from effax.transforms.reverse.plan import Composed, Fused, plan_reverse
from effax.transforms.rules.default import DEFAULT_RULES
from tests.unit import building as p

RULES = DEFAULT_RULES
x = enp.arange(1.0, 4.0) / 4


def made(f: Callable[..., Any], *args: Any) -> Jaxpr:
    return effax.make_jaxpr(f)(*args).jaxpr


def reason_of(jaxpr: Jaxpr, *mask: bool) -> str:
    """Return the reason of the plan, which the record of ``reverse`` repeats."""
    plan = plan_reverse(jaxpr, mask, [True] * len(jaxpr.outs), RULES)
    assert isinstance(plan, Composed)
    assert reverse(jaxpr, mask).unwrap().reason == plan.reason
    return plan.reason


def test_plan_reverse_fuses_pure_programs() -> None:
    jaxpr = made(lambda x: enp.sum(enp.sin(x)), x)
    assert isinstance(plan_reverse(jaxpr, [True], [True], RULES), Fused)
    assert reverse(jaxpr, [True]).unwrap().reason is None


def test_plan_reverse_composes_for_a_reference() -> None:
    jaxpr = made(lambda r, x: enp.sin(x) * r[...], effax.new_ref(x), x)
    assert reason_of(jaxpr, False, True) == "r is a reference"


def test_plan_reverse_composes_for_an_effect() -> None:
    jaxpr = made(lambda x: effax.freeze(effax.new_ref(enp.sin(x))), x)
    assert reason_of(jaxpr, True) == "new_ref has effects"
    assert "cos" in str(reverse(jaxpr, [True]).unwrap().jaxpr)


def test_composed_for_an_effect_of_a_derivative() -> None:
    @effax.custom_jvp
    def f(x: Any) -> Any:
        return enp.sin(x)

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        effax.debug.print("a rule")
        return enp.sin(primals[0]), tangents[0] * enp.cos(primals[0])

    assert reason_of(made(f, x), True) == "the derivative of custom_jvp_call has effects"


def test_composed_for_a_rule_that_changes_a_type() -> None:
    def strong(
        b: RuleBuilder,
        prim: Primitive,
        primals: Sequence[Atom],
        tangents: Sequence[Atom | None],
    ) -> JvpOut:
        return JvpOut([b(prims.ConvertElementType(p.F32.dtype), b(prim, *primals))], tangents)

    rules = RULES.extend(prims.Sin, replace(RULES.of(prims.Sin()), jvp=strong))
    plan = plan_reverse(made(enp.sin, 1.0), [True], [True], rules)
    assert isinstance(plan, Composed)
    assert plan.reason == "the jvp rule of sin changes the type of a result"


def test_composed_for_a_cotangent_that_is_not_used() -> None:
    jaxpr = made(lambda x: enp.exp(x)[2:2], x)
    assert reason_of(jaxpr, True) == "slice does not use the cotangent of a result"
    reverse_is_linearize_then_transpose(jaxpr)


def without(prim: prims.Neg, **rules: Any) -> RuleSet:
    return RULES.extend(type(prim), replace(RULES.of(prim), **rules))


@pytest.mark.parametrize("rule", ["jvp", "transpose"])
def test_a_missing_rule_is_reported_at_its_equation(rule: str) -> None:
    jaxpr = made(lambda x: -enp.sin(x), x)
    rules = without(prims.Neg(), **{rule: Unsupported("a test")})
    error = reverse(jaxpr, [True], rules=rules).failure()
    assert isinstance(error, NotApplicable)
    assert error.what == f"neg has no {rule} rule: a test"
    assert str(error).count("equation:") == 1
    assert error.equation == str(jaxpr.eqns[1])
    assert error.source == str(jaxpr.eqns[1].source)


def test_a_rule_that_raises_runs_once() -> None:
    runs: list[str] = []

    def fails(*_: object) -> Any:
        runs.append("neg")
        raise NotApplicable("a test")

    rules = without(prims.Neg(), transpose=fails)
    assert reverse(made(lambda x: -x, x), [True], rules=rules).failure().what == "a test"
    assert runs == ["neg"]


def test_a_transpose_rule_that_no_cotangent_reaches_does_not_run() -> None:
    b = Builder([p.F3])
    (v,) = b.binders
    jaxpr = b.finish([b(prims.Neg(), v), b(prims.Sin(), v)])
    rules = without(prims.Neg(), transpose=Unsupported("a test"))
    found = reverse(jaxpr, [True], [False, True], rules).unwrap()
    assert found.reason is None
    out = evaluate(found.jaxpr, [np.ones(3), np.ones(3)])[-1]
    np.testing.assert_allclose(out, np.cos(np.ones(3)), rtol=1e-6)


@pytest.mark.parametrize(
    ("mask", "cts", "what"),
    [
        ((True, True), (True,), "entry for each input"),
        ((True,), (True, True), "cts"),
    ],
)
def test_masks_of_the_wrong_length_are_errors(mask: Any, cts: Any, what: str) -> None:
    error = reverse(made(enp.sin, x), mask, cts).failure()
    assert isinstance(error, TransformError)
    assert what in str(error)


def test_integers_have_neither_tangents_nor_cotangents() -> None:
    jaxpr = made(lambda n: n + 1, enp.arange(3))
    assert "has no tangents" in str(reverse(jaxpr, [True]).failure())
    assert "has no cotangent" in str(reverse(jaxpr, [False], [True]).failure())
