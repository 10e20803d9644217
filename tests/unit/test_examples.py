"""The examples do what they say: each is run, and held to what it is for."""

from __future__ import annotations

import contextlib
import io
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import EffaxError, NotApplicable
from effax.ir.prims import elementwise as ew

FOLDER = Path(__file__).parents[2] / "examples"
jax: Any = effax


def example(name: str) -> ModuleType:
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    # Dataclasses look their own module up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def xent() -> Any:
    return example("softmax_cross_entropy")


@pytest.fixture(scope="module")
def intervals() -> Any:
    return example("intervals")


@pytest.mark.parametrize("name", ["softmax_cross_entropy", "unnormalised", "intervals"])
def test_it_runs(name: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        example(name).main()
    assert out.getvalue()


def test_cross_entropy_has_the_derivatives_of_its_parts(xent: Any) -> None:
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(4, 6)).astype(np.float32))
    labels = jnp.asarray(np.array([0, 5, 2, 2], np.int32))
    for transform in (
        lambda f: f,
        jax.jit,
        jax.grad,
        lambda f: jax.jit(jax.grad(f)),
        jax.hessian,
        lambda f: jax.vmap(lambda row, label: f(row[None], label[None])),
        lambda f: lambda x, y: jax.jvp(lambda x: f(x, y), (x,), (jnp.cos(x),))[1],
    ):
        found = transform(xent.mean_loss)(x, labels)
        np.testing.assert_allclose(found, transform(xent.plain_loss)(x, labels), atol=2e-6)


def test_cross_entropy_of_large_logits_is_finite(xent: Any) -> None:
    x = jnp.array([[1e4, 0.0], [0.0, -1e4]])
    labels = jnp.array([1, 0])
    np.testing.assert_allclose(jax.jit(xent.softmax_cross_entropy)(x, labels)[0], [1e4, 0.0])


def test_cross_entropy_names_what_it_cannot_take(xent: Any) -> None:
    with pytest.raises(EffaxError, match="an integer for each row"):
        xent.softmax_cross_entropy(jnp.ones((2, 3)), jnp.ones(2))


def test_unnormalised_keeps_differences_of_the_log_density_and_drops_its_constants() -> None:
    page = example("unnormalised")

    def density(x: Any, mu: Any, sigma: Any) -> Any:
        prior = -jnp.log(sigma) * 3 - (mu**2 + 7.0)
        return (page.gaussian(x, mu, sigma) / 2.0 - sigma) + jax.jit(lambda p: p - 1.0)(prior)

    args = (jnp.arange(4.0), jnp.float32(0.3), jnp.float32(1.7))
    program = jax.make_jaxpr(density)(*args).jaxpr
    for which, moved in (("mu", 1), ("sigma", 2)):
        mask = tuple(i == moved for i in range(3))
        less = page.unnormalised(program, mask).unwrap()
        assert len(less.eqns) < len(program.eqns), which
        other = tuple(x + 0.5 if i == moved else x for i, x in enumerate(args))

        def change(jaxpr: Any, other: Any = other) -> Any:
            first, second = (
                effax.ir.evaluate(jaxpr, [np.asarray(x) for x in xs])[0] for xs in (args, other)
            )
            return second - first

        np.testing.assert_allclose(change(less), change(program), rtol=1e-5)
    kept = {
        type(eqn.prim) for eqn in page.unnormalised(program, (False, True, False)).unwrap().eqns
    }
    assert ew.Log not in kept


def test_unnormalised_leaves_what_is_not_a_term() -> None:
    page = example("unnormalised")
    program = jax.make_jaxpr(lambda x, c: jnp.exp(x + c))(1.0, 2.0).jaxpr
    assert page.unnormalised(program, (True, False)).unwrap() == program


def test_intervals_hold_every_sample(intervals: Any) -> None:
    rng = np.random.default_rng(0)

    def f(x: Any, y: Any) -> Any:
        a = jnp.sin(3 * x) * jnp.exp(-y) + x**2 / (y + 3.0)
        return jax.jit(lambda a: jnp.maximum(a - x**3, jnp.cos(a)))(a).sum() - jnp.sqrt(y**2).sum()

    low = rng.uniform(-2, 1, (2, 3)).astype(np.float32)
    high = low + rng.uniform(0, 2, (2, 3)).astype(np.float32)
    found = intervals.bounds(f, (low[0], high[0]), (low[1], high[1]))
    for _ in range(200):
        x, y = low + (high - low) * rng.uniform(size=(2, 3)).astype(np.float32)
        assert found[0] - 1e-4 <= float(f(x, y)) <= found[1] + 1e-4


def test_intervals_are_exact_where_a_variable_occurs_once(intervals: Any) -> None:
    for f, box, expected in (
        (lambda x: x**2, (-1.0, 2.0), (0.0, 4.0)),
        (jnp.sin, (0.0, 4.0), (np.sin(4.0), 1.0)),
        (lambda x: 1.0 / x, (2.0, 4.0), (0.25, 0.5)),
        (lambda x: 1.0 / x, (-1.0, 1.0), (-np.inf, np.inf)),
        (lambda x: -x - 1.0, (0.0, 1.0), (-2.0, -1.0)),
    ):
        np.testing.assert_allclose(intervals.bounds(f, box), expected, rtol=1e-6)


def test_intervals_name_what_they_have_no_rule_for(intervals: Any) -> None:
    with pytest.raises(NotApplicable, match="no rule for sort"):
        intervals.bounds(jnp.sort, (np.zeros(2, np.float32), np.ones(2, np.float32)))


def test_the_pictures_of_the_documentation_are_those_of_the_example() -> None:
    made = example("pictures").pictures()
    folder = FOLDER.parent / "docs" / "pictures"
    kept = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert len(kept) == 3
    for name, text in kept.items():
        assert text == made[name], f"make it again: python examples/pictures.py --out {folder}"
    assert "fx-e" in made["step.html"]
