"""User-defined primitives under every transformation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import extend, lax
from effax.extend import ArgIndex, Linear, NotApplicable, Row, Type, Typing, Val, Value, Writer
from effax.ir.errors import BadRule, EffaxError, IllTyped
from effax.testing import check_primitive
from effax.testing.laws import LawBroken

pytestmark = pytest.mark.slow

jax: Any = effax
F3 = extend.array_type((3,), "float32")
Rule = Callable[..., Any]


class Shear(extend.ArrayPrimitive):
    """``x + y·k``, linear in both operands; the base of the primitives below."""

    __slots__ = ()
    name: ClassVar[str] = "shear"

    def typing(self, *ins: Type) -> Typing:
        x, y = ins
        if x != y:
            raise IllTyped("shear takes two arrays of one type", expected=str(x), found=str(y))
        return Typing((x,))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        x, y = ins
        return [np.asarray(x + y * x.dtype.type(3), x.dtype)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        dx, dy = [
            jnp.zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)
        ]
        return self.bind(*primals), self.bind(dx, dy)

    def transpose(self, ins: Sequence[Any | Linear], cts: Sequence[Any]) -> Sequence[Any]:
        (ct,) = cts
        return [None, None] if ct is None else [ct, ct * 3.0]

    def batch(self, ins: Sequence[Any], batched: Sequence[bool], size: int) -> tuple[Any, Any]:
        both = [
            x if has else jnp.broadcast_to(x, (size, *x.shape))
            for x, has in zip(ins, batched, strict=True)
        ]
        return self.bind(*both), [True]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        x, y = ins
        three = w.constant(3.0, y.type)
        scaled = w.op1(f"stablehlo.multiply {y}, {three} : {y.text}", y.type)
        return w.op(f"stablehlo.add {x}, {scaled} : {x.text}", x.type)


@dataclass(frozen=True, slots=True)
class Right(Shear):
    pass


def test_a_right_primitive_obeys_every_law() -> None:
    checked = check_primitive(Right(), F3, F3, linear=(True, True))
    assert not checked.refused
    assert {"transpose_is_adjoint", "lowering_agrees_with_evaluation"} <= set(checked.passed)


def test_it_works_under_compositions() -> None:
    def f(x: Any, y: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return Right().bind(c, jnp.sin(y))[0], None

        return lax.scan(step, x, None, length=2)[0].sum()

    x, y = jnp.arange(3.0), jnp.ones(3)
    for wrap in (lambda g: g, jax.jit, jax.checkpoint):
        dx, dy = jax.grad(wrap(f), (0, 1))(x, y)
        np.testing.assert_allclose(dx, np.ones(3))
        np.testing.assert_allclose(dy, 6 * np.cos(1.0) * np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f, (0, None))(jnp.ones((2, 3)), y).shape, (2,))
    program = jax.make_jaxpr(f)(x, y).jaxpr
    from effax.ir.text.parser import parse

    assert parse(str(program), extend.registry(Right)) == program


@dataclass(frozen=True, slots=True)
class BadTangent(Shear):
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outs, dots = Shear.jvp(self, primals, tangents)
        return outs, [dots[0] * 1.01]


@dataclass(frozen=True, slots=True)
class BadCotangent(Shear):
    def transpose(self, ins: Sequence[Any | Linear], cts: Sequence[Any]) -> Sequence[Any]:
        cts = Shear.transpose(self, ins, cts)
        return [None if ct is None else ct * 2.0 for ct in cts]


@dataclass(frozen=True, slots=True)
class BadBatch(Shear):
    def batch(self, ins: Sequence[Any], batched: Sequence[bool], size: int) -> tuple[Any, Any]:
        outs, flags = Shear.batch(self, ins, batched, size)
        return [outs[0][::-1]], flags


@dataclass(frozen=True, slots=True)
class BadLowering(Shear):
    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return extend.program(w, lambda x, y: x + y, ins, self.name)


@dataclass(frozen=True, slots=True)
class BadType(Shear):
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return [np.asarray(ins[0] + 3 * ins[1], np.float64)]


@dataclass(frozen=True, slots=True)
class WritesOperand(Shear):
    def evaluate(self, *ins: Value) -> Sequence[Value]:
        np.add(ins[0], 3 * ins[1], out=ins[0])
        return [ins[0]]


@pytest.mark.parametrize(
    ("prim", "law"),
    [
        (BadTangent(), "jvp_is_the_derivative"),
        (BadCotangent(), "transpose_is_adjoint"),
        (BadBatch(), "vmap_is_stacking"),
        (BadLowering(), "lowering_agrees_with_evaluation"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Shear) else x,
)
def test_a_wrong_part_breaks_a_law(prim: Shear, law: str) -> None:
    with pytest.raises(LawBroken, match=rf"a law is broken: {law}(.|\n)*As a test:"):
        check_primitive(prim, F3, F3, linear=(True, True), seeds=(0, 1))


@pytest.mark.parametrize(
    ("prim", "says"),
    [
        (BadType(), "result 0 of the evaluation of shear is of another type"),
        (WritesOperand(), "the evaluation of shear writes to an argument"),
    ],
)
def test_a_wrong_evaluation_is_named(prim: Shear, says: str) -> None:
    with pytest.raises(BadRule, match=says):
        check_primitive(prim, F3, F3)


@dataclass(frozen=True, slots=True)
class Unbatched(Shear):
    def batch(self, ins: Sequence[Any], batched: Sequence[bool], size: int) -> tuple[Any, Any]:
        raise NotApplicable("a shear has no batch rule")


def test_a_rule_that_does_not_apply_says_why() -> None:
    checked = check_primitive(Unbatched(), F3, F3)
    assert ("vmap_is_stacking", "a shear has no batch rule") in [r[:2] for r in checked.refused]
    with pytest.raises(EffaxError, match="a shear has no batch rule"):
        jax.vmap(lambda x: Unbatched().bind(x, x)[0])(jnp.ones((2, 3)))


def replaced(**methods: Rule) -> Shear:
    """A shear with other methods."""
    made: type[Shear] = type("Other", (Shear,), {"__slots__": (), **methods})
    return dataclass(frozen=True)(made)()


X, MANY = jnp.ones(3), jnp.arange(300.0)


@pytest.mark.parametrize(
    ("prim", "use", "says"),
    [
        (
            replaced(jvp=lambda self, primals, tangents: (primals, tangents)),
            lambda p: jax.jvp(lambda x: p.bind(x, x)[0], (X,), (X,)),
            r"the jvp rule of shear: wrong number of results\n *expected: 1\n *found: +2",
        ),
        (
            replaced(jvp=lambda self, primals, tangents: (primals[:1], [tangents[0].sum()])),
            lambda p: jax.jvp(lambda x: p.bind(x, x)[0], (X,), (X,)),
            r"the jvp rule of shear returns a tangent of another type\n *expected: f32\[3\]",
        ),
        (
            replaced(transpose=lambda self, ins, cts: cts),
            lambda p: jax.grad(lambda x: p.bind(x, x)[0].sum())(X),
            r"the transpose rule of shear: wrong number of cotangents",
        ),
        (
            replaced(batch=lambda self, ins, batched, size: ([ins[0]], [False])),
            lambda p: jax.vmap(lambda x: p.bind(x, x)[0])(jnp.ones((2, 3))),
            r"the batch rule of shear returns a result of another type",
        ),
        (
            replaced(jvp=lambda self, primals, tangents: ([primals[0] + MANY[:3]], tangents[:1])),
            lambda p: jax.jvp(lambda x: p.bind(x, x)[0], (X,), (X,)),
            r"closes over an array(.|\n)*found: +a value of type f32\[300\]",
        ),
        (
            replaced(lower=lambda self, w, ins: extend.program(w, lambda *x: [None], ins, "f")),
            lambda p: jax.jit(lambda x: p.bind(x, x)[0])(X),
            r"returns None for a result",
        ),
        (
            Right(),
            lambda p: p.bind(X, jnp.ones(2)),
            r"shear takes two arrays of one type",
        ),
        (Right(), lambda p: p.bind(X, "x"), r"argument 1 of shear"),
    ],
)
def test_a_rule_with_results_of_another_type_is_named(prim: Shear, use: Rule, says: str) -> None:
    with pytest.raises(EffaxError, match=says):
        use(prim)


@pytest.mark.parametrize("half", [jnp.float32(0.5), jnp.array([0.5, 0.5, 0.5]), np.full(3, 0.5)])
def test_a_rule_may_close_over_scalars_and_small_arrays(half: Any) -> None:
    prim = replaced(jvp=lambda self, primals, tangents: (self.bind(*primals), [tangents[0] * half]))
    found = jax.jvp(lambda x: prim.bind(x, X)[0], (X,), (X,))[1]
    np.testing.assert_allclose(found, 0.5 * np.ones(3))


@dataclass(frozen=True, slots=True)
class Bump(extend.RefPrimitive):
    """``ref += step·x``, and the old contents."""

    step: float
    name: ClassVar[str] = "bump"

    def typing(self, *ins: Type) -> Typing:
        ref, x = ins
        if not isinstance(ref, extend.RefType) or ref.inner != x:
            raise IllTyped("bump takes a reference and an array like it", found=f"{ref}, {x}")
        at = ArgIndex(0)
        return Typing((x,), Row([extend.Read(at), extend.Write(at)]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        ref, x = ins
        before = np.array(ref)
        ref += ref.dtype.type(self.step) * x
        return [before]

    def discharge(self, ins: Sequence[Any], is_ref: Sequence[bool]) -> tuple[Any, Any]:
        old, x = ins
        return [old], [old + self.step * x, None]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # Apply it to tangents; a reference with a zero tangent must not get a tangent.
        dref, dx = tangents
        if dref is None:
            if dx is not None:
                raise NotApplicable("a differentiated value is added to a fixed reference")
            return self.bind(*primals), [None]
        dx = jnp.zeros_like(primals[1]) if dx is None else dx
        return self.bind(*primals), self.bind(dref, dx)

    def transpose(self, ins: Sequence[Any | Linear], cts: Sequence[Any]) -> Sequence[Any]:
        # (ref, y) = (ref + s·x, ref): ct_x = s·ct_ref, and ct_ref = ct_ref + ct_y.
        ref, _ = ins
        assert isinstance(ref, Linear) and ref.ref is not None
        ct_x = ref.ref[...] * self.step
        if cts[0] is not None:
            ref.ref[...] += cts[0]
        return [None, ct_x]

    def batch(self, ins: Sequence[Any], batched: Sequence[bool], size: int) -> tuple[Any, Any]:
        ref, x = ins
        if not batched[0]:
            raise NotApplicable("batch elements would write one reference")
        wide = x if batched[1] else jnp.broadcast_to(x, (size, *x.shape))
        return self.bind(ref, wide), [True]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        raise NotApplicable("references are discharged before lowering")


def test_a_primitive_on_references_obeys_every_law() -> None:
    types = (extend.ref_type(F3), F3)
    checked = check_primitive(Bump(0.5), *types, linear=(True, True))
    assert {refused.reason for refused in checked.refused} == {
        "bump cannot be batched here: not all batch elements run it"
    }
    assert {"transpose_is_adjoint", "jvp_is_the_derivative"} <= set(checked.passed)
    (stacking,) = [r for r in checked.refused if r.law == "vmap_is_stacking"]
    assert stacking.programs == ("in a branch",)
    assert stacking.passed == ("alone", "among others", "in a scan")
    assert not set(checked.passed) & {refused.law for refused in checked.refused}


def test_a_primitive_on_references_runs_in_place_and_in_order() -> None:
    r = jax.new_ref(jnp.zeros(3))
    where = r.unsafe_buffer_pointer()

    def f(r: Any, x: Any) -> Any:
        (first,) = Bump(2.0).bind(r, x)
        (second,) = Bump(2.0).bind(r, x)
        return second - first

    for run in (f, jax.jit(f)):
        r[...] = 0.0
        np.testing.assert_allclose(run(r, X), 2 * np.ones(3))
        np.testing.assert_allclose(r[...], 4 * np.ones(3))
    assert r.unsafe_buffer_pointer() == where
    assert len(jax.make_jaxpr(f)(r, X).jaxpr.effects.effects) == 2

    def g(x: Any) -> Any:
        ref = jax.new_ref(x)
        Bump(3.0).bind(ref, x * x)
        return ref[...].sum()

    np.testing.assert_allclose(jax.grad(g)(jnp.arange(3.0)), 1 + 6 * np.arange(3.0))
    np.testing.assert_allclose(jax.vmap(jax.grad(g))(jnp.ones((2, 3))), 7 * np.ones((2, 3)))


def test_a_batch_that_does_not_apply_is_reported_with_a_remedy() -> None:
    shared, own = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.zeros((2, 3)))
    rows, which = jnp.ones((2, 3)), jnp.array([True, False])
    with pytest.raises(
        NotApplicable,
        match=r"the batch elements share a ref[\s\S]*argument 0, Ref\{f32\[3\]\}[\s\S]*in_axes",
    ):
        jax.vmap(lambda x: Bump(0.5).bind(shared, x)[0])(rows)

    def step(p: Any, r: Any, x: Any) -> Any:
        return jax.lax.cond(p, lambda: Bump(0.5).bind(r, x)[0], lambda: x)

    with pytest.raises(
        NotApplicable, match=r"not all batch elements run it[\s\S]*remedy: +apply it to every"
    ):
        jax.vmap(step)(which, own, rows)
    assert not shared[...].any() and not own[...].any()


def test_a_view_is_no_argument_of_a_primitive_and_a_copy_of_it_is() -> None:
    ref = jax.new_ref(jnp.zeros((2, 3)))
    view = ref.at[0]
    with pytest.raises(
        IllTyped, match=r"argument 0 of bump is a view[\s\S]*new_ref\(view\[...\]\)"
    ):
        Bump(1.0).bind(view, X)
    r = jax.new_ref(view[...])
    Bump(1.0).bind(r, X)
    view[...] = r[...]
    assert ref[...].tolist() == [[1.0] * 3, [0.0] * 3]


def test_the_wrong_number_of_entries_is_refused() -> None:
    with pytest.raises(EffaxError, match="linear has one entry an argument"):
        check_primitive(Right(), F3, F3, linear=(True,))
    with pytest.raises(EffaxError, match="domain has one entry an argument"):
        check_primitive(Right(), F3, F3, domain=[(0.0, 1.0)])
