from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as enp
from effax import lax
from effax.api import autodiff
from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.build import Builder, lit
from effax.ir.edit.alpha import renumbered
from effax.ir.eval.numpy import evaluate
from effax.ir.syntax import Jaxpr
from effax.ir.types import is_inexact
from effax.testing.laws.reverse import reverse_is_linearize_then_transpose
from effax.transforms.framework.dead_code import without_dead
from effax.transforms.linearize import linearize
from effax.transforms.reverse.engine import Reverse, reverse
from effax.transforms.reverse.plan import Fused, plan_reverse
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.transpose.engine import CotangentSpec, GradValue, NonLinear, transpose
from tests.unit import building as p

RULES = DEFAULT_RULES
x = enp.arange(1.0, 4.0) / 4


def made(f: Callable[..., Any], *args: Any) -> Jaxpr:
    return effax.make_jaxpr(f)(*args).jaxpr


def pulled(jaxpr: Jaxpr, *mask: bool) -> Reverse:
    found = reverse(jaxpr, mask or (True,) * len(jaxpr.binders)).unwrap()
    check(found.jaxpr).unwrap()
    assert found.jaxpr == renumbered(found.jaxpr)
    assert without_dead(found.jaxpr, RULES) == found.jaxpr
    return found


def is_fused(jaxpr: Jaxpr, *mask: bool) -> bool:
    cts = [is_inexact(t) for t in jaxpr.out_types]
    return isinstance(plan_reverse(jaxpr, mask or (True,) * len(jaxpr.binders), cts, RULES), Fused)


def composed_size(jaxpr: Jaxpr) -> int:
    done = linearize(jaxpr, [True] * len(jaxpr.binders)).unwrap()
    ct_specs: list[CotangentSpec] = [
        *[NonLinear()] * len(done.residuals),
        *[GradValue()] * len(jaxpr.binders),
    ]
    return len(done.primal.eqns) + len(transpose(done.linear, ct_specs).unwrap().jaxpr.eqns)


@pytest.mark.parametrize("name", sorted(p.PROGRAMS))
def test_reverse_equals_linearize_then_transpose(name: str) -> None:
    reverse_is_linearize_then_transpose(p.PROGRAMS[name]())


def primitives(jaxpr: Jaxpr) -> list[str]:
    return [eqn.prim.name for eqn in jaxpr.eqns]


def loss(n: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x
        for i in range(n):
            y = [enp.sin(y), y * x, y + 0.5, enp.tanh(y), y - x, enp.exp(y), y / x, 1.5 - y][i % 8]
        return enp.sum(y)

    return f


def test_reverse_has_the_equations_of_both_programs() -> None:
    jaxpr = made(loss(40), x)
    assert is_fused(jaxpr)
    assert len(pulled(jaxpr).jaxpr.eqns) == composed_size(jaxpr)


def test_sources_are_those_of_the_equations() -> None:
    jaxpr = made(loss(8), x)
    wanted = {str(eqn.source) for eqn in jaxpr.eqns}
    assert {str(eqn.source) for eqn in pulled(jaxpr).jaxpr.eqns} == wanted


def test_control_flow_and_custom_rules_are_fused() -> None:
    @effax.custom_vjp
    def triple(x: Any) -> Any:
        return 3 * x

    triple.defvjp(lambda x: (3 * x, None), lambda _, ct: (5 * ct,))

    def f(x: Any) -> Any:
        y = effax.jit(enp.sin)(x)
        y = lax.cond(y[0] > 0, enp.cos, enp.tanh, y)
        y, _ = lax.scan(lambda c, _: (enp.sin(c) * 2, None), triple(y), None, length=3)
        return enp.sum(y * y)

    jaxpr = made(f, x)
    assert is_fused(jaxpr)
    reverse_is_linearize_then_transpose(jaxpr)
    assert "custom" not in str(pulled(jaxpr).jaxpr)


def test_a_dead_sin_keeps_its_cos() -> None:
    """The sine is dead, its cosine is not."""
    b = Builder([p.F3])
    (v,) = b.binders
    s = b(prims.Sin(), v)
    jaxpr = b.finish([b(prims.Add(), s, lit(1.0, p.F3))])
    grads = pulled(jaxpr).jaxpr
    assert primitives(grads) == ["sin", "cos", "add", "mul"]
    ends = without_dead(grads.replace(outs=grads.outs[1:]), RULES)
    assert primitives(ends) == ["cos", "mul"]


def test_dead_equations_stay_out_of_the_gradient() -> None:
    def f(x: Any) -> Any:
        enp.sin(x)
        effax.jit(lambda a: (enp.exp(a), enp.cos(a)))(x)
        return enp.sum(effax.jit(lambda a: (enp.exp(a), enp.tanh(a)))(x)[1])

    grads = pulled(made(f, x)).jaxpr
    assert not any(name in str(grads) for name in ("sin", "cos", "exp"))


def test_a_result_without_a_cotangent_is_only_computed() -> None:
    jaxpr = made(lambda x: (enp.sum(x * 2), enp.sin(x)), x)
    found = reverse(jaxpr, [True], [True, False]).unwrap()
    assert len(found.jaxpr.binders) == 2
    assert "cos" not in str(found.jaxpr)


def test_zero_cotangents_are_not_instantiated() -> None:
    b = Builder([p.F3, p.F3])
    first, second = b.binders
    jaxpr = b.finish([b(prims.Floor(), first), b(prims.Sin(), second)])
    found = pulled(jaxpr)
    assert found.nonzero == (False, True)
    assert primitives(found.jaxpr) == ["floor", "sin", "cos", "mul"]


def test_results_may_be_inputs_literals_and_the_same_twice() -> None:
    b = Builder([p.F3])
    (v,) = b.binders
    y = b(prims.Sin(), v)
    jaxpr = b.finish([y, v, y, lit(2.0, p.F3)])
    reverse_is_linearize_then_transpose(jaxpr)
    found = pulled(jaxpr).jaxpr
    assert len(found.binders) == 5
    out = evaluate(found, [np.ones(3), *[np.ones(3)] * 3, np.ones(())])[-1]
    np.testing.assert_allclose(out, 1 + 2 * np.cos(1.0))


def parts(n: int) -> Jaxpr:
    return made(lambda x: [x[i : i + 1] for i in range(n)], x)


def test_one_use_in_part_is_a_value_and_two_add_in_place() -> None:
    assert "new_ref" not in primitives(pulled(parts(1)).jaxpr)
    assert is_fused(parts(2))
    found = primitives(pulled(parts(2)).jaxpr)
    assert [found.count(name) for name in ("new_ref", "addupdate", "freeze")] == [1, 2, 1]


def _rows(x: Any) -> Any:
    """A loop that picks elements of an array of which it is also the initial state."""
    pick = lambda c, i: (c * x[i], x[i] + c)  # noqa: E731
    return lax.scan(pick, x[0], enp.arange(3))


def _branch(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda x: x[1] * x[2], lambda x: x[0], x) + x[1]


def _middle(x: Any) -> Any:
    y = enp.exp(x)
    return y[0] * y[1] * enp.sum(y)


def _squares(x: Any) -> Any:
    y = x * x
    return y[0] * y[0] + enp.dot(y, y)


def _sorted_with_itself(x: Any) -> Any:
    return lax.sort((x, x), num_keys=1)


def _loop_over_itself(x: Any) -> Any:
    return lax.scan(lambda c, i: (c * x[i] + x[0], None), x[1], enp.arange(3))[0] * x[2]


IN_PLACE: dict[str, Callable[[Any], Any]] = {
    "products of elements": lambda x: x[0] * x[1] + x[2] * x[0],
    "whole uses before": lambda x: enp.sum(enp.sin(x)) * x[0] * x[1],
    "whole uses after": lambda x: enp.sum(enp.sin(x) * x[1]) * enp.sum(x),
    "a middle value": _middle,
    "one twice in an equation": _squares,
    "slices": lambda x: enp.sum(x[:2] * x[1:]) + x[-1],
    "positions": lambda x: enp.sum(x[enp.array([0, 0, 2])]) * x[1],
    "a call": lambda x: effax.jit(lambda x: x[0] * x[1])(x) * effax.jit(lambda x: x[2])(x),
    "a loop": _rows,
    "a branch": _branch,
    "twice in one equation": _sorted_with_itself,
    "a loop in which it is used twice": _loop_over_itself,
    "one that is also a result": lambda x: (x[0] * x[1], x),
    "an unused one": lambda x: (x[0] * x[1], lax.stop_gradient(x)[2]),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_cotangents_of_parts_are_summed_in_place(name: str) -> None:
    jaxpr = made(IN_PLACE[name], x)
    reverse_is_linearize_then_transpose(jaxpr)
    mask = [is_inexact(type_) for type_ in jaxpr.in_types]
    assert is_fused(jaxpr, *mask)
    pulled(jaxpr, *mask)


def test_cotangents_of_slices_are_not_padded() -> None:
    """The equations of n picks grow with n, and none of them makes an array of zeros."""
    sizes = [len(pulled(parts(n)).jaxpr.eqns) for n in (2, 3)]
    assert sizes[1] - sizes[0] <= 3
    zeros = [eqn for eqn in pulled(parts(3)).jaxpr.eqns if eqn.prim.name in ("scatter_add", "pad")]
    assert not zeros


def test_programs_with_references_are_composed() -> None:
    jaxpr = made(lambda x: effax.freeze(effax.new_ref(enp.sin(x))), x)
    assert not is_fused(jaxpr)
    assert "cos" in primitives(pulled(jaxpr).jaxpr)


def nested_sizes() -> list[int]:
    def f(x: Any) -> Any:
        return enp.sin(x * 1.5) * enp.tanh(x) * x

    sizes = []
    for _ in range(6):
        f = effax.grad(f)
        sizes.append(len(made(f, 1.0).eqns))
    return sizes


def test_nested_gradients_are_no_larger_than_by_both_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = nested_sizes()
    monkeypatch.setattr(autodiff, "reversed_call", lambda *_: None)
    assert all(n <= before for n, before in zip(sizes, nested_sizes(), strict=True))
    growth = [larger / n for n, larger in pairwise(sizes)]
    assert max(growth) < 3


def test_grad_emits_no_dead_or_duplicate_equations() -> None:
    """No equation is traced twice, and none is dead except for the result that grad drops."""
    jaxpr = made(effax.value_and_grad(loss(16)), x)
    assert len(jaxpr.eqns) == composed_size(made(loss(16), x))
    assert without_dead(jaxpr, RULES) == jaxpr


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, effax.jit])
def test_grad_evaluates_and_compiles_the_same(
    wrap: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    value, gradient = wrap(effax.value_and_grad(loss(12)))(x)
    monkeypatch.setattr(autodiff, "reversed_call", lambda *_: None)
    wanted, slope = effax.value_and_grad(loss(12))(x)
    np.testing.assert_allclose(np.asarray(value), np.asarray(wanted), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(gradient), np.asarray(slope), rtol=1e-5)


def test_grad_of_a_constant_is_zero() -> None:
    value, gradient = effax.value_and_grad(lambda x: enp.sum(enp.floor(x)))(x)
    assert (float(value), np.asarray(gradient).tolist()) == (0.0, [0.0, 0.0, 0.0])
