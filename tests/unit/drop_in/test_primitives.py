"""Primitives in JAX's form run under every transformation by their registered rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import Array
from effax.drop_in import ad, batching, core, mlir
from effax.drop_in.core import Primitive
from effax.ir.types import ArrayType
from effax.transforms.framework.pass_ import register_default_rules, rules_or_default

Pair = tuple[object, object]


def typed(x: ArrayType, *rest: ArrayType, **params: object) -> ArrayType:
    return effax.core.ShapedArray(x.shape, x.dtype)


def scaled(name: str = "scaled") -> Primitive:
    """Return a linear primitive ``x -> by·x``."""
    prim = Primitive(name)

    def times(x: Array, by: float) -> Array:
        return x * by

    prim.def_impl(times)
    prim.def_abstract_eval(typed)
    mlir.register_lowering(prim, mlir.lower_fun(times, multiple_results=False))
    ad.deflinear2(prim, lambda ct, x, by: [prim.bind(ct, by=by)])
    batching.defvectorized(prim)
    return prim


PRIM = scaled()


def f(x: Array) -> Array:
    made: Array = PRIM.bind(jnp.sin(x), by=3.0)
    return made


def g(x: Array) -> Array:
    return 3.0 * jnp.sin(x)


X = jnp.array([0.5, 1.0, 2.0])


def total(h: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: h(x).sum()


@pytest.mark.slow
@pytest.mark.parametrize("transform", [lambda h: h, effax.jit], ids=["eager", "jit"])
def test_values_and_derivatives(transform: Callable[..., Callable[..., Array]]) -> None:
    np.testing.assert_allclose(transform(f)(X), g(X), rtol=1e-6)
    np.testing.assert_allclose(transform(effax.grad(total(f)))(X), 3 * np.cos(X), rtol=1e-5)
    np.testing.assert_allclose(transform(effax.vmap(effax.grad(f)))(X), 3 * np.cos(X), rtol=1e-5)


def test_an_equation_has_the_primitive_and_its_parameters() -> None:
    (_, eqn) = effax.make_jaxpr(f)(X).eqns
    assert eqn.primitive is PRIM
    assert eqn.params == {"by": 3.0}
    again = eqn.primitive.bind(X, **eqn.primitive.get_bind_params(eqn.params))
    np.testing.assert_allclose(np.asarray(again), 3 * X)


def test_missing_rules_raise_not_implemented_errors() -> None:
    bare = Primitive("bare")
    with pytest.raises(NotImplementedError, match="Evaluation rule for 'bare' not implemented"):
        bare.bind(X)
    bare.def_impl(lambda x: x)
    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'bare'"):
        effax.jit(bare.bind)(X)
    bare.def_abstract_eval(typed)
    with pytest.raises(NotImplementedError, match="MLIR translation rule for primitive 'bare'"):
        effax.jit(bare.bind)(X)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'bare'"):
        effax.jvp(bare.bind, (X,), (X,))
    with pytest.raises(NotImplementedError, match="Batching rule for 'bare'"):
        effax.vmap(bare.bind)(X)


def test_rules_that_are_registered_after_a_use_apply() -> None:
    late = scaled("late")

    def h(x: Array) -> Array:
        made: Array = late.bind(x, by=2.0)
        return made

    assert effax.jvp(h, (X,), (X,))[1][0] == 1.0

    def jvp(primals: Sequence[Array], tangents: Sequence[Array], by: float) -> Pair:
        return late.bind(*primals, by=by), 10 * tangents[0]

    ad.primitive_jvps[late] = jvp
    assert effax.jvp(h, (X,), (X,))[1][0] == 5.0


def pair_of(x: Array, y: Array) -> list[Array]:
    return [x * y, x + y]


def two() -> Primitive:
    """Return a primitive of two results, whose second has a zero tangent."""
    prim = Primitive("two")
    prim.multiple_results = True
    prim.def_impl(pair_of)
    prim.def_abstract_eval(lambda x, y: [typed(x), typed(x)])
    mlir.register_lowering(prim, mlir.lower_fun(pair_of, multiple_results=True))

    def jvp(primals: Sequence[Array], tangents: Sequence[Array | ad.Zero]) -> Pair:
        x, y = primals
        dx, dy = (ad.instantiate_zeros(t) for t in tangents)
        outs = prim.bind(x, y)
        return outs, [dx * y + x * dy, ad.Zero.from_primal_value(y)]

    ad.primitive_jvps[prim] = jvp

    def batch(args: Sequence[Array], dims: Sequence[int | None]) -> Pair:
        x, y = (batching.bdim_at_front(a, d, 3) for a, d in zip(args, dims, strict=True))
        outs = effax.vmap(pair_of, out_axes=-1)(x, y)
        return outs, [outs[0].ndim - 1] * 2

    batching.primitive_batchers[prim] = batch
    return prim


def test_several_results_with_symbolic_zeros_and_other_batch_axes() -> None:
    prim = two()

    def h(x: Array, y: Array) -> Array:
        outs: list[Array] = prim.bind(x, y)
        return outs[0] + 7 * outs[1]

    x, y = jnp.arange(6.0).reshape(3, 2), jnp.array([2.0, 3.0])
    np.testing.assert_allclose(effax.vmap(h, (0, None))(x, y), x * y + 7 * (x + y))
    np.testing.assert_allclose(effax.jit(h)(y, y), y * y + 14 * y)
    dx, dy = effax.grad(lambda *a: h(*a).sum(), (0, 1))(y, 2 * y)
    np.testing.assert_allclose(dx, 2 * y)
    np.testing.assert_allclose(dy, y)


def test_errors_of_a_rule_are_raised_unchanged() -> None:
    prim = scaled("failing")

    def fails(*args: object, **params: object) -> Pair:
        raise RuntimeError("no derivative")

    ad.primitive_jvps[prim] = fails
    with pytest.raises(RuntimeError, match="no derivative"):
        effax.grad(lambda x: prim.bind(x, by=1.0))(1.0)


def test_primitives_of_effax_are_instances_of_those_names() -> None:
    (eqn,) = effax.make_jaxpr(jnp.sin)(X).eqns
    assert isinstance(eqn.primitive, Primitive)
    aval: object = X.aval
    assert isinstance(aval, core.AbstractValue)


def test_a_lowering_rule_calls_a_python_function() -> None:
    prim = scaled("on_the_host")
    rule = mlir.emit_python_callback

    def lower(ctx: mlir.LoweringRuleContext, x: object, by: float) -> object:
        def run(v: Array) -> list[Array]:
            return [v * by]

        outs, _, keepalive = rule(ctx, run, None, [x], ctx.avals_in, ctx.avals_out)
        ctx.module_context.add_keepalive(keepalive)
        return outs

    mlir.register_lowering(prim, lower)
    np.testing.assert_allclose(effax.jit(lambda x: prim.bind(x, by=4.0))(X), 4 * X)


def test_a_registered_rule_replaces_a_built_in_one() -> None:
    before = rules_or_default(None)
    (eqn,) = effax.make_jaxpr(jnp.cos)(X).eqns

    def jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> Pair:
        return jnp.cos(primals[0]), 100 * tangents[0]

    try:
        assert effax.grad(jnp.cos)(0.0) == 0.0
        ad.primitive_jvps[eqn.primitive] = jvp
        assert effax.grad(jnp.cos)(0.0) == 100.0
        assert effax.jit(effax.grad(jnp.cos))(0.0) == 100.0
    finally:
        register_default_rules(before)
        effax.clear_caches()
    assert effax.grad(jnp.cos)(0.0) == 0.0


def test_a_lowering_rule_builds_mlir() -> None:
    prim = scaled("in_mlir")

    def lower(ctx: mlir.LoweringRuleContext, x: object, by: float) -> list[object]:
        factor = mlir.ir_constant(np.full((3,), by, np.float32))
        return [mlir.hlo.MulOp(x, factor).result]

    mlir.register_lowering(prim, lower, platform="cpu")

    def twice(x: Array) -> Array:
        made: Array = prim.bind(prim.bind(x, by=2.0), by=3.0)
        return made

    np.testing.assert_allclose(effax.jit(twice)(X), 6 * X)


def test_a_lowering_rule_mixes_mlir_functions_and_callbacks() -> None:
    prim = Primitive("mixed")
    prim.multiple_results = True
    prim.def_abstract_eval(lambda x: [typed(x), effax.core.ShapedArray((), "float32")])

    def lower(ctx: mlir.LoweringRuleContext, x: object) -> list[object]:
        sines = mlir.lower_fun(lambda v: [jnp.sin(v)])(ctx, x)
        two = [ctx.avals_in[0]] * 2
        host = mlir.emit_python_callback(ctx, lambda v: [2 * v, 3 * v], None, [x], two[:1], two)
        total = mlir.hlo.add(mlir.hlo.add(*host[0]), sines[0])
        zero = mlir.ir_constant(np.float32(0))
        reduced = mlir.hlo.ReduceOp(
            [mlir.aval_to_ir_type(ctx.avals_out[1])],
            [x],
            [zero],
            mlir.ir.DenseI64ArrayAttr.get([0]),
        )
        scalar = mlir.aval_to_ir_type(ctx.avals_out[1])
        body = reduced.regions[0].blocks.append(scalar, scalar)
        with mlir.ir.InsertionPoint(body):
            mlir.hlo.return_([mlir.hlo.add(*body.arguments)])
        return [total, reduced.results]

    mlir.register_lowering(prim, lower)
    outs: list[Array] = effax.jit(prim.bind)(X)
    np.testing.assert_allclose(outs[0], 5 * X + np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(outs[1], X.sum(), rtol=1e-6)
    mlir.register_lowering(prim, lambda ctx, x: [x])
    with pytest.raises(RuntimeError, match="wrong number of results"):
        effax.jit(prim.bind)(X)


def test_a_lowering_with_attributes_of_mlir() -> None:
    prim = Primitive("rotated")
    prim.def_abstract_eval(typed)

    def lowered(ctx: mlir.LoweringRuleContext, x: object) -> list[object]:
        (aval,) = ctx.avals_in
        one = mlir.ir_attribute({"axis": 0, "name": "x", "scale": 2.0, "sizes": [1, True]})
        assert "axis = 0 : i64" in str(one)
        assert mlir.unflatten_ir_values_like_types([x], mlir.aval_to_ir_types(ctx, aval)) == [x]
        assert "array<i64: 1, 2>" in str(mlir.dense_int_array([1, 2]))
        assert str(mlir.i32_attr(3)) == str(mlir.ir_attribute(np.int32(3))) == "3 : i32"
        assert "dense<3>" in str(mlir.ir_attribute(np.array(3, np.int32)))
        (zero,) = mlir.ir_constants(np.zeros(3, np.float32))
        return mlir.flatten_ir_values([(mlir.hlo.add(x, zero),)])

    mlir.register_lowering(prim, lowered)
    assert effax.jit(prim.bind)(jnp.arange(3.0)).tolist() == [0.0, 1.0, 2.0]
