"""checkpoint: the same numbers, fewer residuals, effects never twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import checkpoint_policies as policies
from effax import lax
from effax.ad_checkpoint import checkpoint_name
from effax.ir.analysis.check import checked
from effax.ir.errors import BadArgument, RefError, TransformError
from effax.ir.prims import DotGeneral, Remat, Sin
from effax.ir.recursion import postorder
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.transforms.linearize import linearize

F = Callable[..., Any]
jax: Any = effax


def layer(x: Any, w: Any) -> Any:
    return jnp.sin(checkpoint_name(jnp.sin(x @ w), "inner"))


def through_refs(x: Any, w: Any) -> Any:
    """Internal references, initialised by a constant, by an input, and not at all."""
    zero, given, empty = jax.new_ref(jnp.zeros(3)), jax.new_ref(x), jax.empty_ref((3,))
    zero[1] = jnp.sin(x[0])
    given[0] += zero[1] * x[2]
    empty[...] = jnp.sin(given[...])
    return jax.freeze(empty) @ w


def looping(x: Any, w: Any) -> Any:
    def body(c: Any, i: Any) -> tuple[Any, Any]:
        c = jnp.sin(c @ w + i)
        return c, jnp.sum(c)

    c, ys = jax.lax.scan(body, x, jnp.arange(3.0))
    return c * ys


def choosing(x: Any, w: Any) -> Any:
    return jax.lax.cond(x[0] > 0.2, lambda: jnp.sin(x @ w), lambda: jnp.cos(x) @ w)


def dots_by_hand(prim: Any, *avals: Any, **params: Any) -> bool:
    """As JAX calls policies: what is applied, to what types, with which parameters."""
    assert all(hasattr(a, "shape") for a in avals)
    return str(prim) == "dot_general" and not any(params["dimension_numbers"][1])


EITHER = policies.save_from_both_policies(
    policies.dots_saveable, policies.save_only_these_names("inner")
)

FUNCTIONS = [layer, through_refs, looping, choosing]
POLICIES = [
    None,
    policies.everything_saveable,
    policies.nothing_saveable,
    EITHER,
    dots_by_hand,
    policies.dots_saveable,
    policies.dots_with_no_batch_dims_saveable,
    policies.save_only_these_names("inner"),
    policies.save_anything_except_these_names("inner"),
    policies.save_any_names_but_these("other"),
]
X = jnp.asarray([0.3, -0.7, 1.1])
W = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32))


def loss(f: F) -> F:
    return lambda x, w: jnp.sum(f(x, w) ** 2)


TRANSFORMED: dict[str, Callable[[F], F]] = {
    "call": lambda f: f,
    "grad": lambda f: jax.grad(loss(f), argnums=(0, 1)),
    "jit of grad": lambda f: jax.jit(jax.grad(loss(f), argnums=(0, 1))),
    "grad of jit": lambda f: jax.grad(jax.jit(loss(f)), argnums=(0, 1)),
    "jvp": lambda f: lambda x, w: jax.jvp(f, (x, w), (jnp.cos(x), w)),
    "linearize": lambda f: lambda x, w: jax.linearize(f, x, w)[1](x, w),
    "vmap": lambda f: lambda x, w: jax.vmap(f, (0, None))(jnp.stack([x, 2 * x]), w),
    "grad of vmap": lambda f: jax.grad(
        lambda x, w: jnp.sum(jax.vmap(f, (None, 0))(x, jnp.stack([w, 2 * w])) ** 2)
    ),
    "vmap of grad": lambda f: (
        lambda x, w: jax.vmap(jax.grad(loss(f)), (0, None))(jnp.stack([x, 2 * x]), w)
    ),
    "hessian": lambda f: jax.hessian(loss(f)),
    "jacrev": jax.jacrev,
    "twice in reverse": lambda f: jax.grad(
        lambda x, w: jnp.sum(jax.grad(loss(f))(x, w) ** 2), argnums=1
    ),
    "in a scan": lambda f: jax.grad(
        lambda x, w: jnp.sum(jax.lax.scan(lambda c, _: (f(c, w), None), x, None, 3)[0])
    ),
    "in a checkpoint": lambda f: jax.grad(
        loss(jax.checkpoint(f, policy=policies.dots_saveable)), argnums=(0, 1)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_numbers_are_those_of_the_function_itself(f: F, how: str) -> None:
    transform = TRANSFORMED[how]
    wanted = jax.tree.leaves(transform(f)(X, W))
    chosen = POLICIES if how in ("grad", "jit of grad") else [None, policies.dots_saveable]
    for policy in chosen:
        made = jax.tree.leaves(transform(jax.checkpoint(f, policy=policy))(X, W))
        assert len(made) == len(wanted)
        for a, b in zip(made, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def program(f: F, *args: Any) -> Jaxpr:
    made: Jaxpr = jax.make_jaxpr(f)(*args).jaxpr
    checked(made)
    assert parse(str(made), references=references(made)) == made
    return made


def known_and_unknown(policy: Any, f: F = layer) -> tuple[Any, Any]:
    """The equations of the forward and of the backward pass."""
    again = jax.checkpoint(f, policy=policy)
    made = program(jax.grad(lambda x: jnp.sum(again(x, W))), X)
    first, last = [eqn for eqn in made.eqns if isinstance(eqn.prim, Remat)]
    assert not cast(Remat, first.prim).differentiated
    assert cast(Remat, last.prim).differentiated
    return first, last


def count(eqn: Any, prim: type) -> int:
    return sum(isinstance(e.prim, prim) for e in eqn.prim.jaxpr.eqns)


@pytest.mark.parametrize(
    ("policy", "n_kept", "sines", "dots"),
    [
        (None, 0, 1, 2),
        (policies.nothing_saveable, 0, 1, 2),
        # d(x·w), sin and cos of both levels are needed; their values are kept.
        (policies.everything_saveable, 2, 0, 1),
        (policies.dots_saveable, 1, 1, 1),
        (policies.dots_with_no_batch_dims_saveable, 1, 1, 1),
        # The name is kept; what is under it is needed for cos(x·w).
        (policies.save_only_these_names("inner"), 1, 0, 2),
        (policies.save_any_names_but_these("other"), 1, 0, 2),
        (policies.save_any_names_but_these("inner"), 0, 1, 2),
        (EITHER, 2, 0, 1),
        (policies.save_from_both_policies(dots_by_hand, policies.nothing_saveable), 1, 1, 1),
        (policies.save_from_both_policies(policies.everything_saveable, dots_by_hand), 2, 0, 1),
        (dots_by_hand, 1, 1, 1),
    ],
)
def test_what_a_policy_keeps(policy: Any, n_kept: int, sines: int, dots: int) -> None:
    first, last = known_and_unknown(policy)
    assert len(first.outs) == 1 + n_kept
    assert count(last, Sin) == sines
    assert count(last, DotGeneral) == dots


def test_references_made_inside_are_computed_again_too() -> None:
    first, _ = known_and_unknown(None, through_refs)
    assert len(first.outs) == 1
    first, last = known_and_unknown(policies.dots_saveable, through_refs)
    assert len(first.outs) == 1
    assert count(last, Sin) == 1


def test_an_inner_policy_keeps_no_more_than_the_outer_one() -> None:
    inner = jax.checkpoint(layer, policy=policies.everything_saveable)
    first, _ = known_and_unknown(policies.nothing_saveable, lambda x, w: jnp.sin(inner(x, w)))
    assert len(first.outs) == 1


def test_a_barrier_keeps_both_computations_apart() -> None:
    def lowered(**options: Any) -> str:
        f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), **options)
        return str(jax.jit(jax.value_and_grad(f)).lower(1.0).as_text())

    assert lowered().count("stablehlo.optimization_barrier") == 1
    assert lowered().count("stablehlo.sine") == 3
    assert "optimization_barrier" not in lowered(prevent_cse=False)


@pytest.mark.slow
def test_less_memory_is_used() -> None:
    def deep(x: Any, n: int, wrap: Callable[[F], F]) -> Any:
        @wrap
        def block(x: Any) -> Any:
            for _ in range(10):
                x = jnp.sin(x) * 1.5
            return x

        return jnp.sum(jax.lax.scan(lambda c, _: (block(c), None), x, None, n)[0])

    def memory_of(wrap: Callable[[F], F]) -> int:
        lowered = jax.jit(jax.grad(lambda x: deep(x, 16, wrap))).lower(jnp.ones(4096))
        stats = lowered.compile().memory_analysis()
        return int(stats.temp_bytes)

    assert memory_of(jax.checkpoint) < memory_of(lambda f: f) / 4


def test_effects_on_references_from_outside_are_an_error() -> None:
    r = jax.new_ref(jnp.zeros(3))

    def writes(x: Any) -> Any:
        r[...] = x
        return x

    def reads_and_adds(x: Any) -> Any:
        r.addupdate(x)
        return x * r[...]

    def adds(x: Any, out: dict[str, Any]) -> Any:
        out["total"][...] += x
        return x

    for f in (writes, reads_and_adds):
        for run in (jax.checkpoint(f), jax.jit(jax.checkpoint(f))):
            with pytest.raises(RefError, match="closed-over reference") as caught:
                run(X)
            assert "test_remat.py" in str(caught.value)
    with pytest.raises(RefError, match=r"accum of its argument out\['total'\]"):
        jax.checkpoint(adds)(X, {"total": r})
    with pytest.raises(RefError, match="twice"):
        jax.grad(lambda x: jnp.sum(jax.checkpoint(writes)(x)))(X)
    np.testing.assert_array_equal(r[...], np.zeros(3))


def test_a_plumbing_reference_is_written_once() -> None:
    @effax.custom_vjp
    def stash(ref: Any, x: Any) -> Any:
        return x

    def bwd(ref: Any, ct: Any) -> tuple[None, Any]:
        ref[...] += ct
        return None, ct

    stash.defvjp(lambda ref, x: (x, ref), bwd)

    @effax.checkpoint
    def f(x: Any, ref: Any) -> Any:
        return jnp.sin(stash(ref, jnp.sin(x)))

    x = 0.7
    for wrap in (lambda f: f, jax.jit):
        ref = jax.new_ref(0.0)
        g = wrap(jax.grad(f))(x, ref)
        np.testing.assert_allclose(ref[...], np.cos(np.sin(x)), rtol=1e-6)
        np.testing.assert_allclose(g, np.cos(np.sin(x)) * np.cos(x), rtol=1e-6)

        def loops(x: Any, ref: Any) -> Any:
            return jax.lax.scan(lambda c, _: (f(c, ref), None), x, None, 2)[0]

        ref = jax.new_ref(0.0)
        wrap(jax.grad(loops))(x, ref)
        y = np.sin(np.sin(x))
        outer = np.cos(np.sin(y))
        inner = np.cos(np.sin(x))
        np.testing.assert_allclose(ref[...], outer + outer * np.cos(y) * inner, rtol=1e-6)


def test_a_gradient_reference_is_added_to_in_place() -> None:
    table, grads = jnp.arange(10.0), jax.new_ref(jnp.zeros(10))
    f = jax.checkpoint(lambda t, i: jnp.sin(t[i]))

    def step(i: Any) -> None:
        _, pull = jax.vjp(lambda t: f(t, i), table)
        pull.with_refs(grads)(1.0)

    text = str(jax.make_jaxpr(step)(3))
    assert "+=" in text
    assert "f32[10] = broadcast" not in text
    jax.jit(step)(3)
    step(3)
    np.testing.assert_allclose(grads[...], 2 * np.cos(3.0) * np.eye(10)[3], rtol=1e-6)


def test_static_arguments() -> None:
    def f(x: Any, n: int, *, flip: bool = False) -> Any:
        for _ in range(n):
            x = jnp.sin(x)
        return -x if flip else x

    by_position = jax.checkpoint(f, static_argnums=1)
    by_name = jax.checkpoint(f, static_argnums=(1,), static_argnames="flip")
    assert float(by_position(0.5, 2)) == pytest.approx(np.sin(np.sin(0.5)))
    assert float(by_name(0.5, 2, flip=True)) == pytest.approx(-np.sin(np.sin(0.5)))
    assert by_name.__name__ == "f"


def test_bad_arguments() -> None:
    with pytest.raises(BadArgument, match="takes a function"):
        jax.checkpoint(3)
    with pytest.raises(BadArgument, match="policy"):
        jax.checkpoint(layer, policy=3)
    with pytest.raises(BadArgument, match="policy"):
        policies.save_from_both_policies(policies.dots_saveable, cast(Any, "dots"))
    with pytest.raises(BadArgument, match="name is a string"):
        checkpoint_name(X, cast(Any, 3))


def test_policies_are_parts_of_programs() -> None:
    for policy in (EITHER, dots_by_hand):
        jaxpr = jax.make_jaxpr(jax.checkpoint(layer, policy=policy))(X, W).jaxpr
        assert jaxpr == jax.make_jaxpr(jax.checkpoint(layer, policy=policy))(X, W).jaxpr
        assert parse(str(jaxpr), references=references(jaxpr)) == jaxpr


def test_a_policy_must_say_yes_or_no() -> None:
    def policy(prim: Any, *avals: Any, **params: Any) -> Any:
        return "offload"

    with pytest.raises(TransformError, match="must return a boolean") as caught:
        jax.grad(lambda x: jax.checkpoint(layer, policy=policy)(x, W).sum())(X)
    assert caught.value.found == "str: 'offload', for dot_general"


def test_nothing_is_offloaded() -> None:
    with pytest.raises(BadArgument, match="cannot be moved to another memory") as caught:
        policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    assert "dots_with_no_batch_dims_saveable" in str(caught.value.remedy)
    with pytest.raises(BadArgument, match="cannot be moved to another memory"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["b"],
            offload_src="device",
            offload_dst="pinned_host",
        )


def test_as_a_decorator_with_options() -> None:
    @partial(jax.remat, policy=policies.dots_saveable)
    def f(x: Any) -> Any:
        return jnp.sin(x @ W)

    assert "DOTS" in str(jax.make_jaxpr(f)(X))


def test_names_leave_values_as_they_are() -> None:
    tree = {"a": X, "b": (1.0, W)}
    made = checkpoint_name(tree, "kept")
    assert jax.tree.structure(made) == jax.tree.structure(tree)
    for a, b in zip(jax.tree.leaves(made), jax.tree.leaves(tree), strict=True):
        np.testing.assert_array_equal(a, b)
    assert "name[name=kept]" in str(jax.make_jaxpr(lambda x: checkpoint_name(x, "kept"))(1.0))


def primitives_in(jaxpr: Jaxpr) -> list[str]:
    return [eqn.prim.name for each in postorder(jaxpr) for eqn in each.eqns]


def compiled_layer(x: Any, w: Any) -> Any:
    inner = effax.jit(lambda x: jnp.tanh(x @ w))
    h = effax.jit(lambda x: jnp.sin(inner(x) @ w))(x)
    return jnp.sum(jnp.cos(h) @ w)


@pytest.mark.parametrize("differentiated", ["x", "w", "both"])
def test_a_policy_is_asked_inside_of_compiled_functions(differentiated: str) -> None:
    x, w = jnp.arange(3.0), jnp.arange(9.0).reshape(3, 3) / 9
    kept = effax.checkpoint(compiled_layer, policy=policies.dots_saveable)
    mask = [differentiated in ("x", "both"), differentiated in ("w", "both")]
    done = linearize(effax.make_jaxpr(kept)(x, w).jaxpr, mask).unwrap()
    # What is computed again are the functions between the products, not the products.
    assert primitives_in(done.primal).count("dot_general") == 3
    again = [e for e in primitives_in(done.linear) if e in ("tanh", "sin", "cos")]
    assert again
    # Products with tangents only: one a layer and differentiated operand.
    n_tangent = {"x": 3, "w": 5, "both": 6}[differentiated]
    assert primitives_in(done.linear).count("dot_general") == n_tangent
    for got, expected in zip(
        effax.grad(kept, argnums=(0, 1))(x, w),
        effax.grad(compiled_layer, argnums=(0, 1))(x, w),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_a_policy_in_calls_that_double_makes_each_program_once() -> None:
    def nested(levels: int) -> Any:
        f = effax.jit(lambda x: checkpoint_name(jnp.sin(x), "s"))
        for _ in range(levels):
            f = effax.jit(partial(twice, f))
        return effax.checkpoint(f, policy=policies.save_only_these_names("s"))

    sizes = []
    for levels in (3, 5):
        done = linearize(effax.make_jaxpr(nested(levels))(0.5).jaxpr, [True]).unwrap()
        sizes.append(sum(len(p.eqns) for p in {*postorder(done.primal), *postorder(done.linear)}))
    assert sizes[1] < 2 * sizes[0]
    assert effax.grad(nested(3))(0.5) == pytest.approx(
        float(effax.grad(plain_sines)(0.5)), rel=1e-5
    )


def twice(f: Any, x: Any) -> Any:
    return f(f(x))


def plain_sines(x: Any) -> Any:
    for _ in range(8):
        x = jnp.sin(x)
    return x


WEIGHTS = np.arange(1.0, 4.0, dtype=np.float32)


def weighted(x: Any, r: Any) -> Any:
    return jnp.sum(jnp.sin(x) * r[...])


def in_a_scan(x: Any, wrap: Callable[[F], F]) -> Any:
    """A reference that is read in a checkpoint, and written between the iterations."""
    count = jax.new_ref(0.0)

    def step(c: Any, _: Any) -> Any:
        y = wrap(lambda c: jnp.sin(c) * count[...])(c)
        count[...] = count[...] + 1
        return y + c, None

    return lax.scan(step, x, None, length=3)[0]


def written_after(x: Any, wrap: Callable[[F], F]) -> Any:
    r = jax.new_ref(WEIGHTS)
    y = wrap(lambda x: weighted(x, r))(x)
    r[...] = 100.0
    return y


def of_two(x: Any, wrap: Callable[[F], F]) -> Any:
    """A reference that depends on the argument, and one of its own."""
    r = jax.new_ref(jnp.sum(x))

    def f(y: Any) -> Any:
        own = jax.new_ref(y * r[...])
        own[...] = own[...] ** 2
        return jnp.sum(own[...] * r[...])

    return wrap(f)(x)


READERS: dict[str, Callable[[Any, Any], Any]] = {
    "written after": written_after,
    "scan": lambda x, wrap: in_a_scan(x[0], wrap),
    "two": of_two,
    "argument": lambda x, wrap: wrap(weighted)(x, jax.new_ref(WEIGHTS)),
    "nested": lambda x, wrap: wrap(lambda x: 2 * wrap(weighted)(x, jax.new_ref(WEIGHTS)))(x),
    "index": lambda x, wrap: wrap(lambda x, r, i: jnp.sum(jnp.sin(x)) * r[i])(
        x, jax.new_ref(WEIGHTS), jnp.int32(2)
    ),
    "cond": lambda x, wrap: lax.cond(
        x[0] > 0, wrap(weighted), lambda x, r: x[0], x, jax.new_ref(WEIGHTS)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_reads_of_references_are_residuals(wrap: Any, name: str) -> None:
    f = READERS[name]
    x = jnp.asarray([0.5, 1.0, 1.5])
    checkpoints: list[Any] = [
        jax.checkpoint,
        lambda f: jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable),
    ]
    for transform in (jax.grad, jax.jacfwd, jax.hessian, lambda f: jax.vmap(jax.grad(f))):
        at = x if transform in (jax.grad, jax.jacfwd, jax.hessian) else jnp.stack([x, 2 * x])
        expected = transform(lambda x: f(x, lambda g: g))(at)
        for checkpoint in checkpoints:
            found = wrap(transform(lambda x: f(x, checkpoint)))(at)  # noqa: B023  # runs now
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_reference_from_outside_is_read_once() -> None:
    r = jax.new_ref(WEIGHTS)
    x = jnp.ones(3)
    pulled = jax.vjp(jax.checkpoint(lambda x: weighted(x, r)), x)[1]
    r[...] = 100.0
    np.testing.assert_allclose(pulled(1.0)[0], np.cos(1) * WEIGHTS, rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_bounded_loop_reads_a_reference(wrap: Any) -> None:
    def f(x: Any, loop: bool) -> Any:
        if not loop:
            return jnp.sin(jnp.sin(x) * x) * jnp.sin(x) * x
        n = jax.new_ref(jnp.int32(2))
        return lax.while_loop(
            lambda c: c[0] < n[...],
            lambda c: (c[0] + 1, jnp.sin(c[1]) * c[1]),
            (jnp.int32(0), x),
            max_steps=5,
        )[1]

    expected = jax.grad(lambda x: f(x, False))(1.2)
    np.testing.assert_allclose(wrap(jax.grad(lambda x: f(x, True)))(1.2), expected, rtol=1e-6)


def test_a_jitted_part_is_compiled_with_the_whole() -> None:
    f = jax.checkpoint(lambda x, r: r[0] * jax.jit(jnp.sin)(x))
    x = jnp.arange(3.0)
    np.testing.assert_allclose(f(x, jax.new_ref(jnp.full(2, 2.0))), 2 * jnp.sin(x), rtol=1e-6)


def test_a_tree_of_flags_prevents_cse_where_one_is_set() -> None:
    def prevents(flags: Any) -> bool:
        again = jax.checkpoint(layer, prevent_cse=flags)
        (eqn,) = jax.make_jaxpr(again)(X, W).eqns
        return bool(eqn.prim.prevent_cse)

    assert prevents((False, {"w": True}))
    assert not prevents((False, False))
