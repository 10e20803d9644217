"""User-defined primitives of very different kinds, and a subtle fault in each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend import (
    ArgIndex,
    BadRule,
    IllTyped,
    Linear,
    NotApplicable,
    Read,
    RefType,
    Row,
    Type,
    Typing,
    Val,
    Value,
    Write,
    Writer,
)
from effax.ir import Builder, Jaxpr, lit
from effax.ir.errors import BadArgument
from effax.ir.prims import Abs
from effax.testing import check_effects, check_primitive, laws
from effax.testing.laws import LawBroken
from effax.testing.primitive_checks import check_behavior
from effax.transforms import FLOATS, App, Hole, Number, RewriteRule, rewriting, unwrap
from effax.transforms.rules.default import DEFAULT_RULES

pytestmark = pytest.mark.slow

jax: Any = effax
F3, F23 = extend.array_type((3,), "float32"), extend.array_type((2, 3), "float32")
I3 = extend.array_type((3,), "int32")


@dataclass(frozen=True, slots=True)
class Soft(extend.Elementwise):
    """``log(1 + exp(x))``, elementwise."""

    name: ClassVar[str] = "soft"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})

    def function(self, x: Array) -> Array:
        return jnp.logaddexp(x, 0.0)

    def derivatives(self, x: Array) -> Array:
        return 1 / (1 + jnp.exp(-x))


@dataclass(frozen=True, slots=True)
class SinCos(extend.ArrayPrimitive):
    """``(sin(x), cos(x)·y)``: two results, two arguments."""

    name: ClassVar[str] = "sincos"

    def typing(self, *ins: Type) -> Typing:
        x, y = ins
        if not isinstance(x, extend.ArrayType) or x.shape != y.shape or x.dtype != y.dtype:
            raise IllTyped("sincos takes two arrays of one type", found=f"{x}, {y}")
        return Typing((x.strong(), x.strong()))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        x, y = ins
        return [np.asarray(np.sin(x), x.dtype), np.asarray(np.cos(x) * y, x.dtype)]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        (x, y), (dx, dy) = primals, tangents
        zeros = jnp.zeros_like(x)
        dx, dy = (zeros if t is None else t for t in (dx, dy))
        return self.bind(x, y), [jnp.cos(x) * dx, jnp.cos(x) * dy - jnp.sin(x) * y * dx]

    def transpose(self, ins: Sequence[Any], cts: Sequence[Any]) -> Sequence[Array | None]:
        raise NotApplicable("it is not linear")

    def batch(
        self, ins: Sequence[Any], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        return self.bind(*extend.with_batch_axis(ins, batched, size)), [True, True]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return extend.program(w, lambda x, y: (jnp.sin(x), jnp.cos(x) * y), ins, self.name)


@dataclass(frozen=True, slots=True)
class SegmentSum(extend.ArrayPrimitive):
    """``x[n], ids[n] -> sums[k]``: an integer parameter, an array of integers, a reduction."""

    k: int
    name: ClassVar[str] = "segment_sum"

    def typing(self, *ins: Type) -> Typing:
        x, ids = ins
        if (
            not isinstance(x, extend.ArrayType)
            or len(x.shape) != 1
            or x.shape != ids.shape
            or not extend.is_integer(ids.dtype)
        ):
            raise IllTyped("segment_sum takes x[n] and integers ids[n]", found=f"{x}, {ids}")
        return Typing((x.update(shape=(self.k,)).strong(),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        x, ids = ins
        sums = np.zeros(self.k, x.dtype)
        inside = (ids >= 0) & (ids < self.k)
        np.add.at(sums, ids[inside], x[inside])
        return [sums]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        return self.bind(*primals), self.bind(tangents[0], primals[1])

    def transpose(
        self, ins: Sequence[Any | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        (ct,), ids = cts, ins[1]
        assert not isinstance(ids, Linear)
        return [None if ct is None else self.onehot(ids, ct.dtype) @ ct, None]

    def batch(
        self, ins: Sequence[Any], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        x, ids = extend.with_batch_axis(ins, batched, size)
        return [jnp.stack([self.bind(x[i], ids[i])[0] for i in range(size)])], [True]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        # A product with zeros would turn infinities into nan.
        def sums(x: Array, ids: Array) -> Array:
            chosen = self.onehot(ids, jnp.bool_)
            return jnp.where(chosen, x[:, None], 0).sum(axis=0)

        return extend.program(w, sums, ins, self.name)

    def onehot(self, ids: Array, dtype: Any) -> Array:
        return (ids[:, None] == jnp.arange(self.k, dtype=ids.dtype)).astype(dtype)


@dataclass(frozen=True, slots=True)
class Momentum(extend.RefPrimitive):
    """``ref = beta·ref + x``, and the new contents; linear in both, in place."""

    beta: float
    name: ClassVar[str] = "momentum"

    def typing(self, *ins: Type) -> Typing:
        ref, x = ins
        if not isinstance(ref, RefType) or ref.inner != x:
            raise IllTyped("momentum takes a reference and an array like it", found=f"{ref}, {x}")
        at = ArgIndex(0)
        return Typing((x,), Row([Read(at), Write(at)]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        ref, x = ins
        ref[...] = ref.dtype.type(self.beta) * ref + x
        return [np.array(ref)]

    def discharge(
        self, ins: Sequence[Array], is_ref: Sequence[bool]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        new = self.beta * ins[0] + ins[1]
        return [new], [new, None]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        dref, dx = tangents
        if dref is None:
            raise NotApplicable("a reference that is not differentiated")
        return self.bind(*primals), self.bind(
            dref, jnp.zeros_like(primals[1]) if dx is None else dx
        )

    def transpose(
        self, ins: Sequence[Any | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        # new = b·old + x is both the contents and the result: ct = ct_ref + ct_y; old gets b·ct.
        ref, (ct_y,) = ins[0], cts
        assert isinstance(ref, Linear) and ref.ref is not None
        ct = ref.ref[...] if ct_y is None else ref.ref[...] + ct_y
        ref.ref[...] = self.beta * ct
        return [None, ct]

    def batch(
        self, ins: Sequence[Any], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        if not batched[0]:
            raise NotApplicable("batch elements would write one reference")
        return self.bind(ins[0], *extend.with_batch_axis(ins[1:], batched[1:], size)), [True]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        raise NotApplicable("references are discharged before")


@dataclass(frozen=True, slots=True)
class Repeated(extend.FunctionPrimitive):
    """A subjaxpr, run ``n`` times."""

    jaxpr: Jaxpr
    n: int
    name: ClassVar[str] = "repeated"

    def function(self, *xs: Array) -> Sequence[Array]:
        def step(_: Any, xs: Any) -> Any:
            return tuple(extend.eval_jaxpr(self.jaxpr, *xs))

        found: Sequence[Array] = jax.lax.fori_loop(0, self.n, step, xs)
        return found

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Repeated:
        (jaxpr,) = jaxprs
        return Repeated(jaxpr, self.n)


def repeated(n: int) -> Repeated:
    step = jax.make_jaxpr(lambda x, y: (jnp.sin(x) * y, y + 0.5 * x))(jnp.ones(3), jnp.ones(3))
    return Repeated(step.jaxpr, n)


@pytest.mark.parametrize(
    ("prim", "types", "options"),
    [
        (Soft(), (F3,), {}),
        (SinCos(), (F3, F3), {}),
        (SegmentSum(4), (F3, I3), {"linear": (True, False)}),
        (Momentum(0.5), (extend.ref_type(F3), F3), {"linear": (True, True)}),
        (repeated(3), (F3, F3), {}),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_a_right_one_passes(prim: Any, types: Any, options: Any) -> None:
    checked = check_primitive(prim, *types, seeds=(0,), **options)
    assert len(checked.passed) > 16


def test_a_subjaxpr_is_rewritten_by_passes_and_transformed() -> None:
    prim = repeated(3)

    def whole(x: Any) -> Any:
        a, b = prim.bind(x, x)
        return (a + b).sum()

    def plain(x: Any) -> Any:
        y = x
        for _ in range(3):
            x, y = jnp.sin(x) * y, y + 0.5 * x
        return (x + y).sum()

    x = jnp.arange(3.0)
    for t in (
        lambda f: f,
        jax.jit,
        jax.grad,
        lambda f: jax.jit(jax.hessian(f)),
        lambda f: jax.grad(jax.checkpoint(f)),
        lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2 * x])),
        lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones(3),))[1],
    ):
        np.testing.assert_allclose(t(whole)(x), t(plain)(x), rtol=1e-5, atol=1e-5)
    from effax.ir.analysis.queries import walk

    names = [place.eqn.prim.name for place in walk(jax.make_jaxpr(whole)(x).jaxpr)]
    assert "sin" in names and "repeated" in names


Method = Callable[..., Any]


def with_(base: Any, *fields: Any, **methods: Method) -> Any:
    """Return a primitive with other methods, whose class is an attribute of this module."""
    name = f"{base.__name__}{len(globals())}"
    body = {"__slots__": (), "__module__": __name__, **methods}
    globals()[name] = dataclass(frozen=True)(type(name, (base,), body))
    return globals()[name](*fields)


def ignoring_second(self: Any, ins: Any, batched: Any, size: int) -> Any:
    x, y = ins
    elements = [(x[i] if batched[0] else x, y[0] if batched[1] else y) for i in range(size)]
    outs = [self.bind(a, b) for a, b in elements]
    return [jnp.stack([o[j] for o in outs]) for j in (0, 1)], [True, True]


def only_dy(self: Any, primals: Any, tangents: Any) -> Any:
    outs, dots = SinCos.jvp(self, primals, tangents)
    factor = 1.5 if tangents[0] is None else 1.0
    return outs, [dots[0], None if dots[1] is None else factor * dots[1]]


def at_infinity(self: Any, w: Any, ins: Any) -> Any:
    return extend.program(w, lambda x: jnp.log(1 + jnp.exp(x)), ins, self.name)


def capped(self: Any, w: Any, ins: Any) -> Any:
    return extend.program(
        w, lambda x: jnp.where(jnp.isinf(x), 7.0, Soft.function(self, x)), ins, self.name
    )


def scattered(self: Any, ins: Any, cts: Any) -> Any:
    return [-ct if ct is not None else None for ct in SegmentSum.transpose(self, ins, cts)]


@pytest.mark.parametrize(
    ("prim", "types", "law", "says"),
    [
        (
            with_(
                Soft, derivatives=lambda s, x: jnp.where(x < 0, 1.01, 1) * Soft.derivatives(s, x)
            ),
            (F3,),
            "jvp_is_the_derivative",
            "tangent 0 differs",
        ),
        (
            with_(Soft, derivatives=lambda s, x: Soft.derivatives(s, jnp.clip(x, -4, None))),
            (F3,),
            "jvp_is_the_derivative",
            "not at magnitudes up to 16",
        ),
        (
            with_(Soft, derivatives=lambda s, x: jnp.where(x > 100, 2.0, Soft.derivatives(s, x))),
            (F3,),
            "jvp_is_the_derivative",
            "not at magnitudes up to 1024",
        ),
        (
            with_(
                Soft, derivatives=lambda s, x: jnp.where(abs(x) < 1e-2, 0, Soft.derivatives(s, x))
            ),
            (F3,),
            "jvp_is_the_derivative",
            "not at magnitudes up to 2⁻⁹",
        ),
        (
            with_(Soft, derivatives=lambda s, x: jnp.where(x == 0, 0, Soft.derivatives(s, x))),
            (F3,),
            "jvp_is_the_derivative",
            "not at zeros",
        ),
        (
            with_(Soft, derivatives=lambda s, x: jnp.exp(x) / (1 + jnp.exp(x))),
            (F3,),
            "jvp_is_the_derivative",
            "nan(.|\n)*not at magnitudes up to 1024",
        ),
        (with_(Soft, lower=at_infinity), (F3,), "lowering_agrees_with_evaluation", "up to 1024"),
        (with_(Soft, lower=capped), (F3,), "lowering_agrees_with_evaluation", "at infinities"),
        (with_(SinCos, batch=ignoring_second), (F3, F3), "vmap_is_stacking", "result 1 differs"),
        (with_(SinCos, jvp=only_dy), (F3, F3), "jvp_is_the_derivative", "tangent 1 differs"),
        (with_(SegmentSum, 4, transpose=scattered), (F3, I3), "transpose_is_adjoint", "<ct, f"),
        (
            with_(
                Momentum,
                0.5,
                discharge=lambda s, ins, ref: ([s.beta * ins[0] + ins[1]], [None] * 2),
            ),
            (extend.ref_type(F3), F3),
            "discharge_is_observationally_equal",
            "final content of reference 0 differs",
        ),
    ],
)
def test_a_subtle_fault_is_found(prim: Any, types: Any, law: str, says: str) -> None:
    linear = (True, False) if isinstance(prim, SegmentSum) else None
    with pytest.raises(LawBroken, match=rf"a law is broken: {law}\n(.|\n)*{says}(.|\n)*As a test:"):
        # All integers of one seed may be out of range.
        check_primitive(prim, *types, linear=linear, seeds=(0, 1) if linear else (0,))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "complex64"])
def test_a_wrong_derivative_is_found_in_every_dtype(dtype: str) -> None:
    x = extend.array_type((3,), dtype)
    wrong = with_(Cubed, derivatives=lambda s, x: 2.0 * x * x)
    with pytest.raises(LawBroken, match="a law is broken: jvp_is_the_derivative"):
        check_primitive(wrong, x, seeds=(0,))


@dataclass(frozen=True, slots=True)
class Cubed(extend.Elementwise):
    name: ClassVar[str] = "cubed"
    accepts: ClassVar[frozenset[str]] = frozenset({"int", "uint", "float", "complex"})

    def function(self, x: Array) -> Array:
        return x * x * x

    def derivatives(self, x: Array) -> Array:
        return 3.0 * x * x


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_of_integers_there_is_no_derivative_and_the_rest_is_compared(dtype: str) -> None:
    x = extend.array_type((3,), dtype)
    assert "lowering_agrees_with_evaluation" in check_primitive(Cubed(), x, seeds=(0,)).passed
    wrong = with_(
        Cubed, lower=lambda s, w, ins: extend.program(w, lambda x: x * x * (x % 9), ins, s.name)
    )
    with pytest.raises(LawBroken, match="lowering_agrees_with_evaluation"):
        check_primitive(wrong, x, seeds=(0, 1))


def weak_lie(self: Any, *ins: Any) -> Typing:
    types: Any = SinCos.typing(self, *ins).outs
    return Typing(tuple(t.update(weak=True) for t in types))


def wider_if_weak(self: Any, *ins: Any) -> Typing:
    types: Any = SinCos.typing(self, *ins).outs
    return Typing(tuple(t.update(dtype=np.dtype("float64")) if ins[0].weak else t for t in types))


BUFFER = np.zeros(3, np.float32)
KEPT: list[Any] = []


def buffered(self: Any, x: Any) -> Any:
    BUFFER[:] = x
    return [BUFFER]


def leaky(self: Any, x: Any) -> Any:
    KEPT.append(x)
    return Soft.derivatives(self, x)


def view_of_ref(self: Any, ref: Any, x: Any) -> Any:
    Momentum.evaluate(self, ref, x)
    return [ref]


def silent_write(self: Any, *ins: Any) -> Typing:
    return Typing(Momentum.typing(self, *ins).outs, Row([Read(ArgIndex(0))]))


R3 = extend.ref_type(F3)


@pytest.mark.parametrize(
    ("prim", "types", "says"),
    [
        (with_(SinCos, typing=weak_lie), (F3, F3), "typing of sincos returns a weak result"),
        (with_(SinCos, typing=wider_if_weak), (F3, F3), "only the weakness of arguments"),
        (
            with_(
                SinCos,
                typing=lambda s, *t: Typing([*t]),  # type: ignore[arg-type]  # it is about that
            ),
            (F3, F3),
            "does not return a tuple of types",
        ),
        (
            with_(SinCos, evaluate=lambda s, x, y: None),
            (F3, F3),
            "of sincos: results are not a list",
        ),
        (with_(SinCos, evaluate=lambda s, x, y: x), (F3, F3), "evaluation of sincos: results are"),
        (with_(SinCos, evaluate=lambda s, x, y: [x]), (F3, F3), "wrong number of results"),
        (with_(SinCos, evaluate=lambda s, x, y: [x, x[0]]), (F3, F3), r"result 1(.|\n)*f32\[\]"),
        (with_(SinCos, evaluate=lambda s, x, y: [x, 1 / 0]), (F3, F3), "raises ZeroDivisionError"),
        (with_(Soft, evaluate=buffered), (F3,), "result 0 of the evaluation of soft changes"),
        (with_(Soft, evaluate=lambda s, x: [np.exp(x, out=x)]), (F3,), "writes to an argument"),
        (
            with_(Soft, derivatives=leaky),
            (F3,),
            "jvp rule of soft keeps an array",
        ),
        (with_(Momentum, 0.5, evaluate=view_of_ref), (R3, F3), "is a view of reference 0"),
        (with_(Momentum, 0.5, typing=silent_write), (R3, F3), "writes to argument 0, which its"),
        (
            with_(Soft, lower=lambda s, w, ins: {"y": 1}["x"]),
            (F3,),
            "lowering of soft raises KeyError",
        ),
        (with_(Soft, batch=lambda s, *a: ([], [])), (F3,), "batch rule of soft: wrong num"),
        (with_(Soft, derivatives=lambda s, x: None), (F3,), "derivatives of soft: "),
    ],
)
def test_a_part_that_misbehaves_is_named(prim: Any, types: Any, says: str) -> None:
    with pytest.raises(BadRule, match=says):
        check_primitive(prim, *types, seeds=(0,))


@pytest.mark.parametrize(
    ("args", "error", "says"),
    [
        ((Soft, F3), BadArgument, r"the class Soft\n *remedy: +make one: `Soft\(\.\.\.\)`"),
        ((lambda x: x, F3), BadArgument, "check_grads"),
        ((Soft(), (3,)), BadArgument, r"argument 0 of soft has no type(.|\n)*array_type\("),
        ((Soft(), "float32"), BadArgument, "argument 0 of soft has no type"),
        ((Soft(),), IllTyped, r"wrong number of operands(.|\n)*say the types of its arguments"),
        ((Soft(), F3, F3), IllTyped, "wrong number of operands"),
        ((SinCos(), F3), IllTyped, "its typing raises ValueError: not enough values"),
        ((Soft(), I3), IllTyped, "soft does not take this dtype"),
    ],
)
def test_invalid_arguments_are_reported(args: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        check_primitive(*args)


@dataclass(frozen=True, slots=True)
class Doubled(extend.Elementwise):
    """A primitive without a name, whose derivative is a scalar."""

    def function(self, x: Array) -> Array:
        return 2.0 * x

    def derivatives(self, x: Array) -> float:
        return 2.0


@dataclass(frozen=True, slots=True)
class NamedDoubled(Doubled):
    name: ClassVar[str] = "doubled"


@dataclass(frozen=True, slots=True)
class Spaced(Doubled):
    name: ClassVar[str] = "two words"


@pytest.mark.parametrize("wrong", [Doubled(), Spaced()])
def test_a_name_is_asked_for(wrong: Doubled) -> None:
    for use in (lambda: check_primitive(wrong, F3), lambda: wrong(1.0), lambda: wrong.bind(X3)):
        with pytest.raises(
            BadArgument, match=rf"the class {type(wrong).__name__} has no valid name"
        ):
            use()


def test_a_derivative_may_be_a_number() -> None:
    assert check_primitive(NamedDoubled(), F3, seeds=(0,)).passed
    assert jax.grad(NamedDoubled())(1.0) == 2.0


X3 = jnp.ones(3)


def test_arrays_stand_for_their_types() -> None:
    for x in (np.ones(3, np.float32), jnp.ones(3), jax.ShapeDtypeStruct((3,), "float32")):
        assert check_primitive(Soft(), x, seeds=()) == check_primitive(Soft(), F3, seeds=())


@pytest.mark.parametrize(
    ("domain", "says"),
    [
        ([(1.0, 1.0)], r"no interval\n *expected: None, or \(low, high\)"),
        ([3], "the domain of argument 0 is no interval"),
        ((0.0, 1.0), "domain has one entry an argument"),
        (7, "domain has one entry an argument"),
    ],
)
def test_a_domain_is_an_interval_an_argument(domain: Any, says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        check_primitive(Soft(), F3, domain=domain)


@dataclass(frozen=True, slots=True)
class Root(extend.Elementwise):
    name: ClassVar[str] = "root"

    def function(self, x: Array) -> Array:
        return jnp.sqrt(x) + jnp.where(x < 1, 0 * x, 0)

    def derivatives(self, x: Array) -> Array:
        return jnp.where(x > 9, 9.0, 0.5 / jnp.sqrt(x))


def test_a_domain_narrows_what_is_tried() -> None:
    assert check_primitive(Root(), F3, domain=[(0.5, 9.0)], seeds=(0,)).passed
    for wide in ((0.5, 20.0), (0.5, np.inf)):
        with pytest.raises(LawBroken, match="jvp_is_the_derivative"):
            check_primitive(Root(), F3, domain=[wide], seeds=(0, 1))
    ids = SegmentSum(4)
    assert check_primitive(ids, F3, I3, domain=[None, (0, 3)], seeds=(0,)).passed


def test_a_derivative_of_which_differences_say_nothing_is_not_among_what_holds() -> None:
    # A discontinuity at every tiny step: finite differences do not converge.
    saw = with_(
        Soft,
        function=lambda s, x: 1e12 * x - jnp.floor(1e12 * x),
        derivatives=lambda s, x: 1e12 * jnp.ones_like(x),
        evaluate=lambda s, x: [np.asarray(1e12 * x - np.floor(1e12 * x), x.dtype)],
    )
    checked = check_primitive(saw, F3, seeds=(0,))
    assert "jvp_is_the_derivative" not in checked.passed
    assert [r.reason[:11] for r in checked.refused] == ["differences"]
    # A step function is flat almost everywhere.
    steps = with_(Soft, function=lambda s, x: jnp.round(x), derivatives=lambda s, x: 0.0 * x)
    assert "jvp_is_the_derivative" in check_primitive(steps, F3, seeds=(0,)).passed


def test_a_class_that_cannot_be_imported_is_reported() -> None:
    @dataclass(frozen=True, slots=True)
    class Inside(Soft):
        pass

    with pytest.raises(BadRule, match=r"soft cannot be pickled(.|\n)*at the top of a module"):
        check_primitive(Inside(), F3)
    with pytest.raises(LawBroken, match=r"primitives=registry\(Forgetful\)|registry\(Forgetful\)"):
        check_primitive(Forgetful(), F3, seeds=(0,))
    with pytest.raises(BadRule, match=r"not equal to a copy(.|\n)*`@dataclass\(frozen=True"):
        check_primitive(Plain(), F3)


class Plain(Soft):
    """A class with a field that is not a dataclass."""

    def __init__(self) -> None:
        object.__setattr__(self, "scale", 2.0)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, slots=True, eq=True)
class Forgetful(Soft):
    """A primitive whose text lacks a field."""

    scale: float = 2.0

    def __repr__(self) -> str:
        return "Forgetful()"

    def function(self, x: Array) -> Array:
        return jnp.logaddexp(x, 0.0) * self.scale


@dataclass(frozen=True, slots=True)
class Log(extend.SideEffect):
    file: str
    word: ClassVar[str] = "log"

    def commutes_with(self, other: extend.SideEffect) -> bool:
        return not isinstance(other, Log) or other.file != self.file


@dataclass(frozen=True, slots=True)
class Stubborn(extend.SideEffect):
    word: ClassVar[str] = "stubborn"

    def commutes_with(self, other: extend.SideEffect) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Loud(extend.SideEffect):
    word: ClassVar[str] = "LOUD!"


@dataclass(frozen=True, slots=True)
class Vague(extend.SideEffect):
    word: ClassVar[str] = "vague"

    def commutes_with(self, other: extend.SideEffect) -> Any:
        return None


class Bare(extend.SideEffect):
    word: ClassVar[str] = "bare"


LINES: list[float] = []


@dataclass(frozen=True, slots=True)
class Logged(extend.HostPrimitive):
    file: str
    name: ClassVar[str] = "logged"

    def typing(self, *ins: Type) -> Typing:
        (_,) = ins
        return Typing((), Row([Log(self.file)]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        LINES.append(float(ins[0]))
        return ()


def test_user_defined_effects_are_checked() -> None:
    assert check_effects(Log("a"), Log("b")) == (("log a", "log a"), ("log b", "log b"))
    for wrong, says in (
        (Stubborn(), r"disagree whether they commute(.|\n)*stubborn says False, io io says True"),
        (Loud(), "the kind Loud has no word"),
        (Vague(), r"`commutes_with` of the kind Vague returns no boolean"),
        (Bare(), "the kind Bare is not equal to a copy"),
    ):
        with pytest.raises(BadRule, match=says):
            check_effects(wrong)
    with pytest.raises(BadArgument, match="no side effect"):
        check_effects(Log)  # type: ignore[arg-type]  # it is about that


def test_a_host_primitive_satisfies_the_laws_and_ordered_ones_are_not_batched() -> None:
    checked = check_primitive(Logged("a"), extend.array_type((), "float32"), seeds=(0,))
    assert {"lowering_agrees_with_evaluation", "linearize_is_jvp"} <= set(checked.passed)
    assert {r.law for r in checked.refused} >= {"vmap_is_stacking"} and LINES


@dataclass(frozen=True, slots=True)
class Length(extend.Elementwise):
    """``sqrt(x² + y²)``."""

    name: ClassVar[str] = "length"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})
    commutes: ClassVar[bool] = True

    def function(self, x: Array, y: Array) -> Array:
        return jnp.sqrt(x * x + y * y)

    def derivatives(self, x: Array, y: Array) -> tuple[Array, Array]:
        return x / self.function(x, y), y / self.function(x, y)


@dataclass(frozen=True, slots=True)
class Lean(Length):
    """``sqrt(x²) + y``, with signed zeros."""

    name: ClassVar[str] = "lean"

    def function(self, x: Array, y: Array) -> Array:
        return jnp.sqrt(x * x) + y


@dataclass(frozen=True, slots=True)
class LonelyLength(Soft):
    name: ClassVar[str] = "lonely_length"
    commutes: ClassVar[bool] = True


def test_what_says_that_it_commutes_does() -> None:
    check_behavior(Length(), (F3, F3), None, DEFAULT_RULES)
    with pytest.raises(BadRule, match=r"lean, which is declared to commute, depends on the order"):
        check_behavior(Lean(), (F3, F3), None, DEFAULT_RULES)
    with pytest.raises(BadRule, match=r"is declared to commute(.|\n)*two arguments"):
        check_behavior(LonelyLength(), (F3,), None, DEFAULT_RULES)


def test_rules_apply_to_user_defined_effects_in_both_orders() -> None:
    x = Hole("x")
    rule = RewriteRule("length(x, 0) = |x|", App(Length, x, Number(0)), App(Abs, x), FLOATS)
    # The square overflows.
    with pytest.raises(LawBroken, match="inf"):
        laws.rule_is_sound(rule)
    scalar = extend.array_type((), "float32")
    b = Builder([scalar])
    jaxpr = b.finish([b(Length(), lit(0, scalar), *b.binders)])
    assert [eqn.prim.name for eqn in unwrap(rewriting([rule])(jaxpr)).eqns] == ["abs"]
