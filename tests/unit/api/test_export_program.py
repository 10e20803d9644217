"""Exported functions in traced functions, and for symbolic sizes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from returns.pipeline import is_successful

import effax
import effax.numpy as jnp
from effax import lax, nn
from effax.export import (
    Exported,
    SymbolicScope,
    deserialize,
    export,
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_shape,
)
from effax.ir.analysis.check import check
from effax.ir.edit.refine import refine
from effax.ir.errors import BadArgument, IllTyped, InconclusiveDimension, LoweringError
from effax.ir.eval.numpy import evaluate
from effax.ir.text.json import from_json, to_json
from effax.ir.text.parser import parse
from effax.ir.types import array_type, ref_type

jax: Any = effax

OLD = Path(__file__).parents[2] / "golden" / "exported-1.zip"

READ = pytest.mark.parametrize("read", [lambda e: e, lambda e: deserialize(e.serialize())])
"""The exported function itself, and as a file."""

(b,) = symbolic_shape("b")
W = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)


def struct(*shape: Any, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def model(x: Any, w: Any) -> Any:
    return nn.softmax(jnp.tanh(x @ w)).mean(0)


def rows(n: int, k: int = 3) -> Any:
    return jnp.sin(jnp.arange(1.0, n * k + 1)).reshape(n, k)


def same(found: Any, wanted: Any) -> None:
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def check_transformed(call: Any, f: Any, x: Any, w: Any) -> None:
    """The call is that of the function, under each transformation."""
    same(call(x, w), f(x, w))
    same(jax.jit(call)(x, w), f(x, w))
    wanted = jax.grad(lambda x, w: f(x, w)[0], (0, 1))(x, w)
    same(jax.grad(lambda x, w: call(x, w)[0], (0, 1))(x, w), wanted)
    same(jax.jvp(call, (x, w), (x, w))[1], jax.jvp(f, (x, w), (x, w))[1])
    xs = jnp.stack([x, x + 1])
    same(jax.vmap(call, (0, None))(xs, w), jax.vmap(f, (0, None))(xs, w))


@pytest.mark.slow
@READ
def test_an_exported_function_is_transformed_as_the_function(read: Any) -> None:
    made = read(export(model)(rows(2), W))
    check_transformed(made.call, model, rows(2), W)
    looped = lambda x: lax.scan(lambda c, _: (c + made.call(c, W)[0], None), x, None, 3)[0]  # noqa: E731
    wanted = lambda x: lax.scan(lambda c, _: (c + model(c, W)[0], None), x, None, 3)[0]  # noqa: E731
    same(looped(rows(2)), wanted(rows(2)))
    second = jax.hessian(lambda w: made.call(rows(2), w)[0])
    same(second(W), jax.hessian(lambda w: model(rows(2), w)[0])(W))


@pytest.mark.slow
@READ
def test_one_export_serves_all_batch_sizes(read: Any) -> None:
    made = read(export(model)(struct(b, 3), W))
    assert str(made.in_avals[0]) == "f32[b,3]" and made.is_symbolic
    for n in (1, 3):
        check_transformed(made.call, model, rows(n), W)
    compiled = jax.jit(jax.grad(lambda w: made.call(rows(2), w)[0]))
    same(compiled(W), jax.grad(lambda w: model(rows(2), w)[0])(W))
    same(made.call(np.asarray(rows(4)), np.asarray(W)), model(rows(4), W))


@pytest.mark.slow
def test_a_file_is_called_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(export(model)(struct(b, 3), W).serialize())
    code = f"""
import effax as jax, effax.numpy as jnp
from effax.export import deserialize
call = deserialize(open({str(file)!r}, "rb").read()).call
for n in (1, 3):
    x = jnp.sin(jnp.arange(1.0, n * 3 + 1)).reshape(n, 3)
    w = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)
    print(float(call(x, w)[0]), float(jax.grad(lambda w: call(x, w)[0])(w)[0, 0]))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [list(map(float, line.split())) for line in out.stdout.splitlines()]
    for n, (value, slope) in zip((1, 3), found, strict=True):
        np.testing.assert_allclose(value, model(rows(n), W)[0], rtol=1e-5)
        wanted = jax.grad(lambda w, n=n: model(rows(n), w)[0])(W)[0, 0]
        np.testing.assert_allclose(slope, wanted, rtol=1e-4)


X, V, K, T = struct(b, 3), struct(b), struct(b, dtype="int32"), struct(b, 5, 3)
M, Y = struct(3, 4), struct(b, 4)

CASES: dict[str, tuple[Any, ...]] = {
    "elementwise": (lambda x: jnp.sin(x) * 2 + x, X),
    "broadcast": (lambda x, v: x + v[:, None] + jnp.ones(3), X, V),
    "matmul": (lambda x, m: x @ m, X, M),
    "contraction of the axis": (lambda x, y: x.T @ y, X, Y),
    "outer": (lambda v: jnp.outer(v, v), V),
    "einsum": (lambda t: jnp.einsum("bij,bkj->bik", t, t), T),
    "sums": (lambda x: (x.sum(), x.sum(0), x.max(1), x.argmax(0)), X),
    "moments": (lambda x: (x.mean(), x.mean(0), x.var(), x.std(1, keepdims=True)), X),
    "reshape": (lambda t: (t.reshape(-1), t.reshape((t.shape[0], -1)), t.reshape((-1, 3))), T),
    "reshape by sizes": (lambda x: x.reshape((x.shape[0] * 3,)), X),
    "transpose": (lambda t: t.transpose(2, 0, 1), T),
    "concatenate": (lambda x: (jnp.concatenate([x, x, jnp.ones((2, 3))]), jnp.stack([x, x])), X),
    "indices": (lambda x: (x[0], x[-1], x[:, 1], x[:, ::2], x[..., None], x[::-1]), X),
    "slices of the axis": (lambda x: (x[1:], x[:-1], x[:1]), X),
    "gather": (lambda m, i: m[i], M, K),
    "gather of pairs": (lambda x, i: x[jnp.arange(x.shape[0]), i], X, K),
    "take_along_axis": (lambda x, i: jnp.take_along_axis(x, i[:, None], 1), X, K),
    "scatter": (lambda x: (x.at[:, 0].set(1.0), x.at[0].add(1.0)), X),
    "softmax": (lambda x: (nn.softmax(x), nn.log_softmax(x), nn.logsumexp(x)), X),
    "one_hot": (lambda i: nn.one_hot(i, 4), K),
    "where": (lambda x: jnp.where(x > 0, x, 0.0), X),
    "creation": (lambda x: jnp.zeros(x.shape) + jnp.full((x.shape[0], 1), 2.0), X),
    "arange": (lambda x: (jnp.arange(x.shape[0]), jnp.arange(1, 2 * x.shape[0] + 1, 2)), X),
    "sizes as values": (lambda x: (x.sum() / x.shape[0], x.shape[0] * x, 1.0 / x.shape[0]), X),
    "pad": (lambda x: jnp.pad(x, ((1, 1), (0, 0))), X),
    "tile": (lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 2, axis=1)), X),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.cumsum(x, 0), jnp.cumsum(x, 1)), X),
    "split": (lambda x: jnp.split(x, 3, axis=1), X),
    "identity": (lambda x: jnp.eye(x.shape[0]) + jnp.tril(x @ x.T), X),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"),
        struct(b, 3, 8),
        struct(4, 3, 3),
    ),
    "scan over a fixed axis": (
        lambda t: lax.scan(
            lambda c, x: (c + x, c * 2), jnp.zeros((t.shape[0], 3)), jnp.swapaxes(t, 0, 1)
        ),
        T,
    ),
    "scan over the axis": (lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(3), x), X),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), X),
    "while_loop": (lambda x: lax.while_loop(lambda x: (x * x).sum() < 99, lambda x: x * 2, x), X),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x), X),
    "grad": (lambda x, m: jax.grad(lambda m: (nn.softmax(x @ m) ** 2).sum())(m), X, M),
    "grad of the batch": (lambda x, m: jax.grad(lambda x: jnp.tanh(x @ m).mean())(x), X, M),
    "vmap": (lambda x, m: jax.vmap(lambda r: nn.softmax(r @ m))(x), X, M),
    "vmap of grad": (jax.vmap(jax.grad(lambda r: (r * r).sum())), X),
    "jit and checkpoint": (
        jax.jit(jax.grad(jax.checkpoint(lambda x: (x**3).sum()))),
        X,
    ),
    "a reference": (lambda x: jax.freeze(_doubled(jax.new_ref(x))), X),
}


def _doubled(r: Any) -> Any:
    r[1:] *= 2.0
    r[...] += 1.0
    return r


@pytest.mark.parametrize("name", CASES)
def test_operations_on_symbolic_sizes(name: str) -> None:
    f, *types = CASES[name]
    closed = jax.make_jaxpr(f)(*types)
    assert from_json(to_json(closed.jaxpr)) == closed.jaxpr
    assert parse(str(closed.jaxpr)) == closed.jaxpr
    assert is_successful(check(closed.jaxpr))
    rng = np.random.default_rng(0)
    for n in (1, 4):
        shapes = [tuple(n if is_symbolic_dim(k) else k for k in t.shape) for t in types]
        args = [
            rng.normal(size=s).astype(t.dtype)
            if t.dtype == np.float32
            else rng.integers(0, 3, s).astype(t.dtype)
            for s, t in zip(shapes, types, strict=True)
        ]
        refined = refine(closed.jaxpr, {"b": n})
        assert is_successful(check(refined))
        found = evaluate(refined, [*map(np.asarray, closed.consts), *map(np.array, args)])
        same(found, f(*map(jnp.asarray, args)))


def test_results_have_symbolic_types() -> None:
    made = export(lambda x: (x.reshape(-1), x[1:], jnp.concatenate([x, x])))(struct(b, 3))
    assert list(map(str, made.out_avals)) == ["f32[3*b]", "f32[b - 1,3]", "f32[2*b,3]"]
    shapes = jax.eval_shape(lambda x: x.sum(1), struct(b, 3))
    assert shapes.shape == (b,)


@pytest.mark.slow
@READ
def test_references_of_symbolic_sizes(read: Any) -> None:
    def update(r: Any, x: Any) -> Any:
        r[...] += x.sum(0)
        return r[0]

    made = read(export(update)(ref_type(array_type((3,), "float32")), struct(b, 3)))
    assert made.changed == (0,)
    r = jax.new_ref(jnp.zeros(3))
    for n in (2, 4):
        made.call(r, jnp.ones((n, 3)))
    jax.jit(made.call)(r, jnp.ones((1, 3)))
    np.testing.assert_array_equal(r[...], [7.0, 7.0, 7.0])


@READ
def test_constraints_are_kept(read: Any) -> None:
    n, m = symbolic_shape("n, m", constraints=["n >= m", "m >= 2"])
    made = read(export(lambda x, y: x[: y.shape[0]] + y[1:].sum())(struct(n), struct(m)))
    np.testing.assert_array_equal(made.call(jnp.ones(6), jnp.ones(4)), [4.0] * 4)
    for sizes in ((3, 4), (4, 1)):
        with pytest.raises(IllTyped, match="do not satisfy a constraint"):
            made.call(*map(jnp.ones, sizes))
    p, q = symbolic_shape("p, q", constraints=["p == 2*q"])
    made = read(export(lambda x, y: x.reshape(2, -1) + y)(struct(p), struct(q)))
    assert made.call(jnp.ones(6), jnp.ones(3)).shape == (2, 3)
    with pytest.raises(IllTyped, match="another size"):
        made.call(jnp.ones(7), jnp.ones(3))


def test_sizes_that_do_not_fit_are_refused() -> None:
    made = export(lambda x, y: x.sum() + y.sum())(struct(2 * b, 3), struct(b))
    assert float(made.call(jnp.ones((4, 3)), jnp.ones(2))) == 14.0
    for shapes, message in (
        (((3, 3), (2,)), "axis 0 of x of a call"),
        (((4, 3), (3,)), "axis 0 of y of a call"),
        (((0, 3), (0,)), r"for b >= 1(.|\n)*`b >= 0`"),
        (((4, 2), (2,)), "x of an exported function"),
        (((4, 3, 1), (2,)), "x of an exported function"),
    ):
        with pytest.raises(IllTyped, match=message):
            made.call(*map(jnp.ones, shapes))
    a, c = symbolic_shape("a, c")
    with pytest.raises(IllTyped, match="does not determine"):
        export(lambda x: x)(struct(a * c))
    with pytest.raises(InconclusiveDimension, match="inconclusive"):
        export(lambda x, y: x if x.shape[0] > y.shape[0] else y)(struct(a), struct(c))
    with pytest.raises(IllTyped, match="do not broadcast"):
        export(lambda x, y: x + y)(struct(a), struct(c))
    with pytest.raises(InconclusiveDimension, match="as a Python integer"):
        export(lambda x: sum(x[i] for i in range(x.shape[0])))(struct(a))
    with pytest.raises(LoweringError, match="symbolic sizes"):
        made.mlir_module()


def test_exports_call_exports() -> None:
    inner = export(lambda x: x * 2)(struct(b, 3))
    (k,) = symbolic_shape("k")
    outer = deserialize(export(lambda x: inner.call(x).sum(1))(struct(2 * k, 3)).serialize())
    assert str(outer.out_avals[0]) == "f32[2*k]"
    np.testing.assert_array_equal(outer.call(jnp.ones((4, 3))), [6.0] * 4)
    fixed = export(inner.call)(struct(5, 3))
    assert fixed.call(jnp.ones((5, 3))).shape == (5, 3) and not fixed.is_symbolic


def rule_with_factor_three() -> Any:
    f = jax.custom_vjp(lambda x: jnp.sum(x * x))
    f.defvjp(lambda x: (jnp.sum(x * x), x), lambda x, ct: (3 * ct * x,))
    return f


@READ
@pytest.mark.parametrize("size", [2, b])
def test_rules_that_are_functions_keep_their_derivatives(read: Any, size: Any) -> None:
    made = read(export(rule_with_factor_three())(struct(size)))
    x = jnp.array([1.0, 2.0])
    assert float(made.call(x)) == 5.0
    for g in (jax.grad(made.call), jax.jit(jax.grad(made.call))):
        np.testing.assert_array_equal(g(x), [3.0, 6.0])
    np.testing.assert_array_equal(jax.vmap(jax.grad(made.call))(x[None]), [[3.0, 6.0]])


def test_what_a_file_cannot_have_is_reported() -> None:
    f = rule_with_factor_three()

    def with_ref(r: Any, x: Any) -> Any:
        r[...] += 1.0
        return f(x)

    cell = ref_type(array_type((), "float32"))
    made = export(with_ref)(cell, struct(2))
    assert float(jax.jit(made.call)(jax.new_ref(0.0), jnp.ones(2))) == 2.0
    read = deserialize(made.serialize())
    assert float(read.call(jax.new_ref(0.0), jnp.ones(2))) == 2.0
    with pytest.raises(IllTyped, match="without a program"):
        jax.jit(read.call)(jax.new_ref(0.0), jnp.ones(2))
    with pytest.raises(LoweringError, match="rules that are Python functions"):
        export(with_ref)(cell, struct(b)).serialize()
    old: Exported = deserialize(OLD.read_bytes())
    assert old.program is None


@pytest.mark.slow
@READ
def test_a_constraint_allows_the_size_0(read: Any) -> None:
    (n,) = symbolic_shape("n", constraints=["n >= 0"])

    def f(x: Any, w: Any) -> Any:
        joined = jnp.concatenate([x, x * 2])
        return joined @ w, jnp.sum(jnp.tanh(x), 0), x[:, None] + w.T, jnp.where(x > 0, x, 1)

    made = read(export(f)(struct(n, 3), struct(3, 2)))
    for size in (0, 1, 2):
        x, w = jnp.ones((size, 3)), jnp.ones((3, 2))
        for call in (made.call, jax.jit(made.call)):
            for a, b in zip(call(x, w), f(x, w), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)
    slopes = jax.grad(lambda x, w: made.call(x, w)[1].sum())(jnp.ones((0, 3)), jnp.ones((3, 2)))
    assert slopes.shape == (0, 3)
    with pytest.raises(InconclusiveDimension):
        export(lambda x: x[0])(struct(n))
    few = export(lambda x: x)(struct(*symbolic_shape("n", constraints=["n >= 0", "n <= 2"])))
    with pytest.raises(IllTyped, match="do not satisfy a constraint"):
        few.call(jnp.ones(3))


def test_symbolic_shapes() -> None:
    x, y = symbolic_shape("x, 2*x")
    assert y == 2 * x and symbolic_shape("(x,)") == (x,) and symbolic_shape("") == ()
    assert symbolic_shape("x, _, ...", like=(2, 3, 4, 5)) == (x, 3, 4, 5)
    assert symbolic_shape(None, like=(2, 3)) == (2, 3)
    scope = SymbolicScope(("n >= 4",))
    assert symbolic_shape("n", scope=scope) == symbolic_shape("n", constraints=["n >= 4"])
    assert symbolic_shape("n") != symbolic_shape("n", scope=scope)
    for spec, options, message in (
        ("n +", {}, "cannot be read"),
        ("n, _", {}, "from `like`"),
        ("n", {"like": (2, 3)}, "another number of axes"),
        ("n", {"constraints": ["n"]}, "cannot be read"),
        ("n", {"constraints": ["n >= 1"], "scope": scope}, "or `scope`"),
    ):
        with pytest.raises(BadArgument, match=message):
            symbolic_shape(spec, **options)


def test_symbolic_arguments() -> None:
    args = {"x": jnp.ones((2, 3)), "w": (jnp.ones(3), np.ones((2, 2), np.int32))}
    found = symbolic_args_specs(args, {"x": "b, ...", "w": None})
    assert found["x"].shape == (b, 3) and found["w"][0].shape == (3,)
    assert found["w"][1].dtype == np.int32
    assert symbolic_args_specs(args["x"], "b, c").shape[0] == b
    with pytest.raises(BadArgument, match="not a prefix"):
        symbolic_args_specs(args, {"y": "b"})
