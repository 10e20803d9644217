"""The examples run, and have the properties that they demonstrate."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import extend
from effax.ir import prims
from effax.ir.errors import EffaxError, NotApplicable
from effax.testing import check_primitive

pytestmark = pytest.mark.slow

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
def test_the_example_runs(name: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        example(name).main()
    assert out.getvalue()


def test_a_gpt_trains_and_its_step_is_drawn_counted_optimized_and_debugged(tmp_path: Path) -> None:
    gpt = example("gpt")
    settings = gpt.Settings(layers=1, heads=2, width=16, context=16, batch=4, steps=40, rate=0.02)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        report = gpt.run(settings, tmp_path)
    shown = out.getvalue()
    assert "read,accum state['params']['block0'].* (6 refs)" in shown
    assert np.mean(report.losses[-5:]) < report.losses[0] - 1.5
    assert report.cost.by_primitive["dot_general"].flops > report.cost.flops / 2
    assert report.sizes[1] < report.sizes[0] and "results differ by 0.0e+00" in shown
    assert report.found.equation.prim.name == "mul" and report.found.element == (0, 0, 0)
    assert report.found.equation.source.function == "norm"
    page = (tmp_path / "step.html").read_text("utf-8")
    assert "state[&#x27;params&#x27;][&#x27;block0&#x27;].* (6 refs)" in page
    assert (tmp_path / "step.svg").is_file() and (tmp_path / "memory.svg").is_file()


def test_models_train_alike_on_the_devices_of_one_process_and_of_several() -> None:
    pytest.importorskip("sklearn")
    program = str(FOLDER / "distributed.py")
    launch = ["-m", "effax.launch", "-n", "2", "--devices", "2"]
    found = []
    for command in ([], launch):
        models = ["--models", "divided embedding"] if command else []
        done = subprocess.run(
            [sys.executable, *command, program, "--steps", "3", "--batch", "40", *models],
            env=os.environ | {"PYTHONPATH": str(FOLDER.parent), "JAX_NUM_CPU_DEVICES": "4"},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert f"4 devices, of {2 if command else 1} processes" in done.stdout
        lines = re.findall(r"(\w+ \w+): step (\d) loss (\S+)", done.stdout)
        found.append({(name, int(step)): float(loss) for name, step, loss in lines})
    alone, together = found
    assert len(alone) == 9 and len(together) == 3
    for (name, step), loss in together.items():
        np.testing.assert_allclose(loss, alone[name, step], rtol=1e-5)
    for step in range(3):
        data, tensor = alone["data parallel", step], alone["tensor parallel", step]
        np.testing.assert_allclose(data, tensor, rtol=1e-5)


def run_at(folder: Path, *command: str) -> str:
    """Run a module in a folder, with effax on the path; return its output if it fails."""
    env = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    run = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr if run.returncode else ""


def test_the_package_of_passes_keeps_its_laws() -> None:
    options = ("-q", "-p", "no:cacheprovider", "-m", "not slow", "--examples", "10")
    assert not run_at(FOLDER / "passes", "pytest", *options)


def test_the_package_of_passes_is_typed_without_a_cast_or_an_ignore() -> None:
    pytest.importorskip("mypy")
    assert not run_at(FOLDER.parent, "mypy", "--strict", str(FOLDER / "passes"))
    sources = {path.name: path.read_text("utf-8") for path in FOLDER.glob("passes/*/*.py")}
    assert len(sources) > 10
    escapes = re.compile(r"\bcast\(|type: ignore|pyright:|\bAny\b|import _|effax\.\w+\._")
    assert not [name for name, text in sources.items() if escapes.search(text)]


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


@pytest.mark.parametrize(("dtype", "labels"), [("bfloat16", "int32"), ("float32", "uint8")])
def test_cross_entropy_obeys_every_law(xent: Any, dtype: str, labels: str) -> None:
    types = extend.array_type((2, 5), dtype), extend.array_type((2,), labels)
    assert not check_primitive(xent.SoftmaxCrossEntropy(), *types, seeds=(0,)).refused


def test_cross_entropy_at_corners(xent: Any) -> None:
    f = xent.softmax_cross_entropy
    # A logit may be masked; its label then has no probability.
    masked = jnp.array([[0.0, -jnp.inf, 0.0], [0.0, -jnp.inf, 0.0]])
    loss, slope = jax.jit(f)(masked, jnp.array([0, 1]))
    np.testing.assert_allclose(loss, [np.log(2), np.inf], rtol=1e-6)
    np.testing.assert_allclose(slope, [[-0.5, 0, 0.5], [0.5, -1, 0.5]])
    assert np.isfinite(jax.grad(xent.mean_loss)(masked, jnp.array([0, 2]))).all()
    # A label outside names no class, also where its dtype counts fewer than there are.
    for label in (-1, 3, 100):
        np.testing.assert_allclose(f(jnp.zeros((1, 3)), jnp.array([label]))[0], np.log(3))
    many = f(jnp.zeros((1, 300)), jnp.array([7], "int8"))[1]
    np.testing.assert_allclose(many.sum(), 0.0, atol=1e-6)
    # Half a thousand terms of bfloat16 are more than bfloat16 can count.
    narrow = f(jnp.zeros((1, 512), "bfloat16"), jnp.array([0]))[0]
    assert narrow.dtype.name == "bfloat16" and abs(float(narrow[0]) - np.log(512)) < 0.02
    with pytest.raises(EffaxError, match="at least one class"):
        f(jnp.zeros((1, 0)), jnp.array([0]))


def test_cross_entropy_of_large_logits_is_finite(xent: Any) -> None:
    x = jnp.array([[1e4, 0.0], [0.0, -1e4]])
    labels = jnp.array([1, 0])
    np.testing.assert_allclose(jax.jit(xent.softmax_cross_entropy)(x, labels)[0], [1e4, 0.0])


def test_cross_entropy_rejects_operands_by_name(xent: Any) -> None:
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
    assert prims.Log not in kept


def test_unnormalised_keeps_values_that_are_not_terms() -> None:
    page = example("unnormalised")
    program = jax.make_jaxpr(lambda x, c: jnp.exp(x + c))(1.0, 2.0).jaxpr
    assert page.unnormalised(program, (True, False)).unwrap() == program


def test_unnormalised_follows_terms_through_references_branches_and_loops() -> None:
    page = example("unnormalised")

    def density(x: Any, c: Any) -> Any:
        total = jax.new_ref(c * c)
        total[...] += jnp.sin(x) + jnp.exp(c)
        y = jax.lax.cond(x > 0, lambda x: x + c, lambda x: -x, x)
        z = jax.lax.fori_loop(0, 3, lambda i, s: s * x + c, x)
        return jax.freeze(total) + y + z - c + jnp.log(c)

    args = (np.float32(0.7), np.float32(1.3))
    program = jax.make_jaxpr(density)(*args).jaxpr
    less = page.unnormalised(program, (True, False)).unwrap()
    kept = {type(eqn.prim) for eqn in less.eqns}
    assert prims.Sin in kept and not kept & {prims.Exp, prims.Log}

    def at(jaxpr: Any, x: float) -> float:
        values = [np.asarray(v, np.float32) for v in (x, args[1])]
        return float(effax.ir.evaluate(jaxpr, values)[0])

    for x in (-0.4, 0.2, 2.0):
        found, expected = (at(p, x) - at(p, 0.7) for p in (less, program))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_unnormalised_keeps_terms_that_are_rounded() -> None:
    page = example("unnormalised")

    for dtype, gone in (("int32", False), ("bfloat16", True)):
        program = jax.make_jaxpr(lambda x, c, d=dtype: (x + c).astype(d))(1.0, 0.5).jaxpr
        less = page.unnormalised(program, (True, False)).unwrap()
        assert (prims.Add not in {type(eqn.prim) for eqn in less.eqns}) == gone
        assert less.out_types == program.out_types


def test_unnormalised_rejects_programs_that_are_not_densities() -> None:
    page = example("unnormalised")

    def printing(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x

    program = jax.make_jaxpr(printing)(1.0).jaxpr
    with pytest.raises(NotApplicable, match="expected a log-density"):
        raise page.unnormalised(program, (True,)).failure()
    with pytest.raises(NotApplicable, match="2 for 1 inputs"):
        raise page.unnormalised(jax.make_jaxpr(jnp.sin)(1.0).jaxpr, (True, True)).failure()


def test_intervals_contain_every_sample(intervals: Any) -> None:
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


@pytest.mark.parametrize(
    ("f", "box", "expected"),
    [
        (lambda x: 1.0 / x, (0.0, 4.0), (0.25, np.inf)),
        (lambda x: 1.0 / x, (-4.0, 0.0), (-np.inf, -0.25)),
        (lambda x: 1.0 / x**2, (-1.0, 2.0), (0.25, np.inf)),
        (lambda x: x * (1.0 / x), (0.0, 1.0), (0.0, np.inf)),
        (jnp.log, (-1.0, 1.0), (-np.inf, 0.0)),
        (jnp.sqrt, (-1.0, 4.0), (0.0, 2.0)),
        (jnp.cos, (-1.0, 1.0), (np.cos(1.0), 1.0)),
        (jnp.cos, (3.0, 4.0), (-1.0, np.cos(4.0))),
        (jnp.sin, (-np.inf, np.inf), (-1.0, 1.0)),
        (jnp.sin, (1e8, 1e8 + 8), (-1.0, 1.0)),
        (jnp.abs, (-3.0, 1.0), (0.0, 3.0)),
        (lambda x: jnp.where(x > 0, x, 2.0 - x), (-1.0, 5.0), (-3.0, 5.0)),
        (lambda x: jnp.where(x > 0, x, 9.0), (1.0, 5.0), (1.0, 5.0)),
        (lambda x: jax.lax.cond(x > 0, lambda x: x, lambda x: -x, x), (-1.0, 3.0), (-3.0, 3.0)),
        (lambda x: jax.lax.cond(x > 0, lambda x: x, lambda x: -x, x), (1.0, 3.0), (1.0, 3.0)),
        (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * x, x), (1.0, 2.0), (1.0, 16.0)),
        (lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x)[1].sum(), (0.0, 1.0), (0.0, 3.0)),
        (
            lambda x: jax.lax.while_loop(lambda c: c < 10.0, lambda c: 2 * c, x),
            (1.0, 2.0),
            (8.0, 32.0),
        ),
        (
            lambda x: jax.lax.while_loop(lambda c: c < 1000.0, lambda c: c + 1.0, x),
            (1.0, 2.0),
            (101.0, np.inf),
        ),
    ],
)
def test_intervals_at_corners(intervals: Any, f: Any, box: Any, expected: Any) -> None:
    shape = (3,) if box == (0.0, 1.0) and expected == (0.0, 3.0) else ()
    ends = tuple(np.full(shape, end, np.float32) for end in box)
    low, high = intervals.bounds(f, ends)
    # No tighter than it can be, and hardly wider.
    assert low <= expected[0] and high >= expected[1]
    np.testing.assert_allclose((low, high), expected, rtol=1e-4, atol=1e-6)


def test_intervals_are_rounded_outward(intervals: Any) -> None:
    x = np.float32(0.1)
    low, high = intervals.bounds(lambda x: (x + 0.2) * x / 3.0 + jnp.exp(x), (x, x))
    exact = (float(x) + float(np.float32(0.2))) * float(x) / 3.0 + np.exp(float(x))
    assert low < exact < high and high - low < 2e-6
    many = np.full(1000, x)
    low, high = intervals.bounds(jnp.sum, (many, many))
    assert low <= 1000 * float(x) <= high


def test_intervals_name_a_loop_that_does_not_end(intervals: Any) -> None:
    def f(x: Any) -> Any:
        return jax.lax.while_loop(lambda c: c < 1.0, lambda c: jnp.negative(-c), x)

    with pytest.raises(NotApplicable, match="does not end"):
        intervals.bounds(f, (-2.0, -1.0))


def test_intervals_name_primitives_without_a_rule(intervals: Any) -> None:
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
