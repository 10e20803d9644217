"""Invalid uses of references: a typed error before anything runs.

Each says where the reference was made, and leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import EffaxError, RefError, TransformError
from effax.transforms.vmap.common import UnbatchedRefWrite

jax: Any = effax
Case = Callable[[Any, Any], object]
"""What is done with a reference to a scalar and one to three numbers."""

EAGER_AND_JITTED = pytest.mark.parametrize(
    "wrap",
    [lambda f: f, jax.jit, lambda f: lambda: jax.vmap(lambda _: f())(jnp.ones(2))],
    ids=["eager", "jit", "vmap"],
)


def refused(
    case: Case, wrap: Any, says: str, kind: type[EffaxError] = RefError, made: bool = True
) -> None:
    """The case raises an error of this kind that says so, and touches nothing."""
    r, v = jax.new_ref(7.0), jax.new_ref(jnp.arange(3.0))
    with pytest.raises(kind, match=says) as caught:
        wrap(lambda: case(r, v))()
    assert not made or "made at" in str(caught.value), str(caught.value)
    assert not made or "test_restrictions.py" in str(caught.value)
    assert caught.value.remedy is not None
    assert float(r[...]) == 7.0
    np.testing.assert_array_equal(v[...], np.arange(3.0))


def stash(fwd: Any, bwd: Any = None, call: Any = None) -> Any:
    f = jax.custom_vjp(call or (lambda r, x: x))
    f.defvjp(fwd, bwd or (lambda res, ct: (None, ct)))
    return f


RETURNED: dict[str, Case] = {
    "jit": lambda r, v: jax.jit(lambda: r)(),
    "jit, of an argument": lambda r, v: jax.jit(lambda r: {"k": (1.0, r)})(r),
    "jit, made inside": lambda r, v: jax.jit(lambda: [jax.new_ref(1.0)])(),
    "scan": lambda r, v: lax.scan(lambda c, _: (c, {"y": r}), 0.0, None, 3),
    "scan, an element": lambda r, v: lax.scan(lambda c, x: (c, x), 0.0, v),
    "scan, as its carry": lambda r, v: lax.scan(lambda c, _: (r, None), 0.0, None, 3),
    "scan, carried": lambda r, v: lax.scan(lambda c, _: (c, None), {"c": r}, None, 3),
    "map": lambda r, v: lax.map(lambda x: (x, r), jnp.ones(2)),
    "foreach": lambda r, v: lax.foreach(jnp.ones(2))(lambda x: r),
    "while": lambda r, v: lax.while_loop(lambda c: c < 3, lambda c: r, 0.0),
    "while, its condition": lambda r, v: lax.while_loop(lambda c: r, lambda c: c, 0.0),
    "while, carried": lambda r, v: lax.while_loop(lambda c: True, lambda c: c, (r, 1)),
    "fori_loop": lambda r, v: lax.fori_loop(0, 3, lambda i, c: [r], [0.0]),
    "cond": lambda r, v: lax.cond(True, lambda: (1.0, [r]), lambda: (1.0, [r])),
    "switch": lambda r, v: lax.switch(1, [lambda: r, lambda: r]),
    "vmap": lambda r, v: jax.vmap(lambda x: {"a": x})(v),
    "grad": lambda r, v: jax.grad(lambda x: r)(1.0),
    "grad, as aux": lambda r, v: jax.grad(lambda x: (x, [r]), has_aux=True)(1.0),
    "vjp": lambda r, v: jax.vjp(lambda x: (x, r), 1.0),
    "jvp": lambda r, v: jax.jvp(lambda x: r, (1.0,), (1.0,)),
    "linearize": lambda r, v: jax.linearize(lambda x: r, 1.0),
    "checkpoint": lambda r, v: jax.checkpoint(lambda x: (x, r))(1.0),
    "custom_vjp": lambda r, v: jax.grad(
        stash(lambda r, x: (x, r), None, lambda r, x: r), argnums=1
    )(r, 1.0),
    "a cond in a scan": lambda r, v: lax.scan(
        lambda c, _: (lax.cond(c > 0, lambda: r, lambda: r), None), 0.0, None, 3
    ),
}


@EAGER_AND_JITTED
@pytest.mark.parametrize("name", RETURNED)
def test_a_reference_is_not_returned(name: str, wrap: Any) -> None:
    refused(RETURNED[name], wrap, "is a reference")


NEW: dict[str, Any] = {
    "a new one": lambda r, x: (x, jax.new_ref(x)),
    "a new one in a tree": lambda r, x: (x, {"k": [jax.new_ref(x), r]}),
}


@EAGER_AND_JITTED
@pytest.mark.parametrize("name", NEW)
def test_a_forward_rule_returns_only_references_among_its_arguments(name: str, wrap: Any) -> None:
    f = stash(NEW[name])
    refused(lambda r, v: jax.grad(f, argnums=1)(r, 1.0), wrap, "not its argument")


@EAGER_AND_JITTED
def test_rules_do_not_return_references(wrap: Any) -> None:
    f = stash(lambda r, x: (r, None))
    refused(lambda r, v: jax.grad(f, argnums=1)(r, 1.0), wrap, "reference", EffaxError)
    g = stash(lambda r, x: (x, r), lambda r, ct: (None, r))
    refused(lambda r, v: jax.grad(g, argnums=1)(r, 1.0), wrap, "reference", EffaxError)


def two(a: Any, b: Any) -> Any:
    return a[...] + b[...]


TWICE: dict[str, tuple[str, Case]] = {
    "jit": ("as a and as b", lambda r, v: jax.jit(two)(r, r)),
    "jit, in a tree": (
        "t\\['p'\\] and as t\\['q'\\]",
        lambda r, v: jax.jit(lambda t: 0)({"p": r, "q": r}),
    ),
    "cond": ("operands\\[0\\] and as operands\\[1\\]", lambda r, v: lax.cond(True, two, two, r, r)),
    "scan": (
        "xs\\[0\\] and as xs\\[1\\]",
        lambda r, v: lax.scan(lambda c, x: (c, two(*x)), 0.0, (v, v)),
    ),
    "vmap": ("as a and as b", lambda r, v: jax.vmap(two)(v, v)),
    "grad": ("as a and as b", lambda r, v: jax.grad(lambda x, a, b: x)(1.0, r, r)),
    "vjp": ("as a and as b", lambda r, v: jax.vjp(two, r, r)),
    "checkpoint": ("as a and as b", lambda r, v: jax.checkpoint(lambda a, b: 1.0)(r, r)),
    "jit in jit": ("as a and as b", lambda r, v: jax.jit(lambda r: jax.jit(two)(r, r))(r)),
    "jit in scan": (
        "as a and as b",
        lambda r, v: lax.scan(lambda c, x: (c, jax.jit(two)(x, x)), 0.0, v),
    ),
    "with_refs": (
        "for a and for b",
        lambda r, v: jax.vjp(lambda a, b: a * b, 1.0, 2.0)[1].with_refs(r, r),
    ),
    "with_refs of references": (
        "for a and for b",
        lambda r, v: jax.vjp(two, jax.new_ref(1.0), jax.new_ref(2.0))[1].with_refs(r, r),
    ),
}


@EAGER_AND_JITTED
@pytest.mark.parametrize("name", TWICE)
def test_a_reference_is_passed_once(name: str, wrap: Any) -> None:
    says, case = TWICE[name]
    if name == "vmap":
        # What is batched differs by level; the names do not.
        wrap = (lambda f: f) if wrap is not jax.jit else wrap
    refused(case, wrap, says)


CLOSED: dict[str, tuple[str, Case]] = {
    "jit": ("as a and closes over it", lambda r, v: jax.jit(lambda a: two(a, r))(r)),
    "jit in jit": (
        "as a and closes over it",
        lambda r, v: jax.jit(lambda a: jax.jit(lambda: two(a, r))())(r),
    ),
    "three levels": (
        "as a and closes over it",
        lambda r, v: jax.jit(
            lambda a: lax.scan(lambda c, _: (jax.jit(lambda: c + two(a, r))(), None), 0.0, None, 2)
        )(r),
    ),
    "cond": ("operands\\[0\\]", lambda r, v: lax.cond(True, lambda a: two(a, r), lambda a: 1.0, r)),
    "the other branch": (
        "operands\\[0\\]",
        lambda r, v: lax.cond(True, lambda a: a[...], lambda a: r[...], r),
    ),
    "scan": (
        "as xs and closes over it",
        lambda r, v: lax.scan(lambda c, x: (c, x[...] + v[0]), 0.0, v),
    ),
    "scan, by a call": (
        "as xs and closes over it",
        lambda r, v: lax.scan(lambda c, x: (c, jax.jit(lambda: x[...] + v[0])()), 0.0, v),
    ),
    "vmap": ("as a and closes over it", lambda r, v: jax.vmap(lambda a: a[...] + v[0])(v)),
    "grad": ("as a and closes over it", lambda r, v: jax.grad(lambda x, a: x * two(a, r))(1.0, r)),
    "vjp": ("as a and closes over it", lambda r, v: jax.vjp(lambda a: two(a, r), r)),
    "checkpoint": ("as a and closes over it", lambda r, v: jax.checkpoint(lambda a: two(a, r))(r)),
    "custom_vjp": (
        "as a and closes over it",
        lambda r, v: jax.grad(
            stash(lambda a, x: (x, a), None, lambda a, x: x * two(a, r)), argnums=1
        )(r, 1.0),
    ),
}


@EAGER_AND_JITTED
@pytest.mark.parametrize("name", CLOSED)
def test_a_reference_is_passed_or_closed_over(name: str, wrap: Any) -> None:
    says, case = CLOSED[name]
    refused(case, wrap, says)


ENDS = {"freeze": jax.freeze, "free_ref": lambda r: (jax.free_ref(r), 1.0)[1]}

FOREIGN: dict[str, Callable[[Any], Case]] = {
    "jit": lambda end: lambda r, v: jax.jit(lambda: (end(r), 1.0))(),
    "jit of an argument": lambda end: lambda r, v: jax.jit(end)(r),
    "scan": lambda end: lambda r, v: lax.scan(lambda c, _: (end(r), None), 0.0, None, 3),
    "an element of a scan": lambda end: lambda r, v: lax.scan(lambda c, x: (c, end(x)), 0.0, v),
    "while": lambda end: lambda r, v: lax.while_loop(lambda c: c < 9, lambda c: end(r), 0.0),
    "cond": lambda end: lambda r, v: lax.cond(True, lambda: end(r), lambda: 1.0),
    "grad": lambda end: lambda r, v: jax.grad(lambda x: x * end(r))(1.0),
    "vjp of a reference": lambda end: lambda r, v: jax.vjp(end, r),
    "vmap": lambda end: lambda r, v: jax.vmap(end)(v),
    "checkpoint": lambda end: lambda r, v: jax.checkpoint(lambda x: x * end(r))(1.0),
}


@EAGER_AND_JITTED
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", FOREIGN)
def test_a_reference_ends_where_it_was_made(name: str, end: str, wrap: Any) -> None:
    refused(FOREIGN[name](ENDS[end]), wrap, f"{end} of a reference outside")


USES: dict[str, Callable[[Any], object]] = {
    "read": lambda r: r[...],
    "write": lambda r: r.__setitem__(..., 1.0),
    "addupdate": lambda r: jax.ref.addupdate(r, ..., 1.0),
    "freeze": jax.freeze,
    "free_ref": jax.free_ref,
    "closed over by jit": lambda r: jax.jit(lambda: r[...])(),
    "passed to jit": jax.jit(lambda a: a[...]),
    "in a scan": lambda r: lax.scan(lambda c, _: (c + r[...], None), 0.0, None, 2),
    "in a branch": lambda r: lax.cond(True, lambda: r[...], lambda: 1.0),
    "in grad": lambda r: jax.grad(lambda x: x * r[...])(1.0),
    "in vmap": lambda r: jax.vmap(lambda x: x * r[...])(jnp.ones(2)),
}


@EAGER_AND_JITTED
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("use", USES)
def test_nothing_comes_after_the_end(use: str, end: str, wrap: Any) -> None:
    def case(r: Any, v: Any) -> Any:
        made = jax.new_ref(1.0)
        ENDS[end](made)
        USES[use](made)
        return 1.0

    refused(case, wrap, f"after `{end}` consumed it")


def test_nothing_comes_after_the_end_in_a_body() -> None:
    def body(c: Any, _: Any) -> tuple[Any, None]:
        made = jax.new_ref(c)
        c = jax.freeze(made)
        return c + made[...], None

    refused(lambda r, v: lax.scan(body, 0.0, None, 2), lambda f: f, "after `freeze`")


@EAGER_AND_JITTED
def test_references_do_not_hold_references(wrap: Any) -> None:
    refused(lambda r, v: jax.new_ref(r), wrap, "inside of a reference")
    refused(lambda r, v: jax.new_ref([r, r]), wrap, "inside of a reference")
    refused(lambda r, v: v.__setitem__(0, r), wrap, "reference", EffaxError)
    refused(lambda r, v: jax.ref.swap(v, 0, r), wrap, "reference", EffaxError)
    refused(lambda r, v: jax.ref.addupdate(v, 0, r), wrap, "reference", EffaxError)


SHARED: dict[str, Callable[[Any], Any]] = {
    "a write": lambda r: lambda x: r.__setitem__(..., x),
    "by jit": lambda r: jax.jit(lambda x: r.__setitem__(..., x)),
    "in a scan": lambda r: lambda x: lax.foreach(length=2)(lambda: r.__setitem__(..., x)),
    "in a branch": lambda r: (
        lambda x: lax.cond(x > 0, lambda: r.__setitem__(..., 1.0), lambda: None)
    ),
    "in a while": lambda r: (
        lambda x: lax.while_loop(lambda c: c < x, lambda c: (r.__setitem__(..., c), c + 1)[1], 0.0)
    ),
    "a swap": lambda r: lambda x: jax.ref.swap(r, ..., x),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", SHARED)
def test_batch_elements_do_not_write_one_reference(name: str, wrap: Any) -> None:
    says = "a closed-over reference is not batched"
    refused(lambda r, v: jax.vmap(SHARED[name](r))(jnp.arange(3.0)), wrap, says, UnbatchedRefWrite)
    as_argument = jax.vmap(lambda x, o: o.__setitem__(..., x), (0, None))
    refused(lambda r, v: as_argument(jnp.ones(3), r), wrap, "o is not batched", UnbatchedRefWrite)


PLUMBING: dict[str, Callable[[Any, Any], object]] = {
    "a write": lambda r, x: r.__setitem__(..., x * 2),
    "an addition": lambda r, x: jax.ref.addupdate(r, ..., x * 2),
    "in a scan": lambda r, x: lax.foreach(length=2)(lambda: r.__setitem__(..., x)),
    "by jit": lambda r, x: jax.jit(lambda y: r.__setitem__(..., y))(x),
    "in a branch": lambda r, x: lax.cond(True, lambda: r.__setitem__(..., x), lambda: None),
    "through a local reference": lambda r, x: r.__setitem__(..., jax.new_ref(x)[...]),
}
DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: jax.grad(f)(1.0),
    "vjp": lambda f: jax.vjp(f, 1.0),
    "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: jax.linearize(f, 1.0),
    "jacfwd": lambda f: jax.jacfwd(f)(1.0),
    "hessian": lambda f: jax.hessian(f)(1.0),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("how", DERIVATIVES)
@pytest.mark.parametrize("name", PLUMBING)
def test_differentiated_values_do_not_go_into_plumbing(name: str, how: str, wrap: Any) -> None:
    def case(r: Any, v: Any) -> Any:
        def f(x: Any) -> Any:
            PLUMBING[name](r, x)
            return x * x

        return DERIVATIVES[how](f)

    refused(case, wrap, "differentiated value is written to a closed-over ref", TransformError)


def test_the_plumbing_argument_is_named() -> None:
    def f(x: Any, out: dict[str, Any]) -> Any:
        out["ref"][...] = x
        return x

    refused(lambda r, v: jax.grad(f)(1.0, {"ref": r}), lambda f: f, r"out\['ref'\]", TransformError)

    def fine(x: Any, out: Any) -> Any:
        out[...] += lax.stop_gradient(x)
        return x * x

    r = jax.new_ref(1.0)
    assert float(jax.grad(fine)(3.0, r)) == 6.0
    assert float(r[...]) == 4.0


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("how", ["grad", "value_and_grad", "jacrev", "jacfwd", "hessian"])
def test_gradients_with_respect_to_references_are_no_values(how: str, wrap: Any) -> None:
    transform = getattr(jax, how)
    by_name = how in ("grad", "value_and_grad")
    first = refused
    first(lambda r, v: transform(lambda a: a[...] ** 2)(r), wrap, "reference", EffaxError)
    says = r"respect to p\['w'\]" if by_name else "reference"
    g = transform(lambda x, p: x * p["w"][...], argnums=1)
    first(lambda r, v: g(1.0, {"w": r}), wrap, says, EffaxError)


def fails(op: Callable[[Any], object]) -> Case:
    return lambda r, v: op(r)


AS_ARRAY: dict[str, Callable[[Any], object]] = {
    "add": lambda r: r + 1,
    "radd": lambda r: 1 + r,
    "array plus ref": lambda r: jnp.ones(()) + r,
    "numpy plus ref": lambda r: np.ones(()) + r,
    "divmod": lambda r: divmod(r, 2),
    "power": lambda r: 2**r,
    "matmul": lambda r: r @ r,
    "positive": lambda r: +r,
    "negative": lambda r: -r,
    "invert": lambda r: ~r,
    "shift": lambda r: r << 1,
    "and": lambda r: r & 1,
    "less": lambda r: r < 1,
    "equal": lambda r: r == 1.0,
    "unequal": lambda r: r != np.ones(()),
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "round": round,
    "abs": abs,
    "list": list,
    "in": lambda r: 1.0 in r,
    "reversed": lambda r: list(reversed(r)),
    "format": lambda r: f"{r:.2f}",
    "index": lambda r: [1, 2][r],
    "np.asarray": np.asarray,
    "np.sin": np.sin,
    "np.add": lambda r: np.add(r, 1),
    "jnp.asarray": jnp.asarray,
    "jnp.sin": jnp.sin,
    "jnp.sum": jnp.sum,
    "jnp.where": lambda r: jnp.where(r, 1, 2),
    "jnp.stack": lambda r: jnp.stack([jnp.ones(()), r]),
    "jnp.dot": lambda r: jnp.dot(r, r),
    "lax.exp": lax.exp,
    "lax.stop_gradient": lax.stop_gradient,
    "lax.dynamic_slice": lambda r: lax.dynamic_slice(jnp.ones(3), (r,), (1,)),
    "lax.cond": lambda r: lax.cond(r, lambda: 1, lambda: 2),
    "an index": lambda r: jnp.ones(3)[r],
    ".T": lambda r: r.T,
    ".sum": lambda r: r.sum(),
    ".astype": lambda r: r.astype(int),
    ".reshape": lambda r: r.reshape(1),
    ".item": lambda r: r.item(),
    ".tolist": lambda r: r.tolist(),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", AS_ARRAY)
def test_a_reference_is_no_array(name: str, wrap: Any) -> None:
    refused(fails(AS_ARRAY[name]), wrap, "reference", EffaxError)
    refused(lambda r, v: jax.jit(AS_ARRAY[name])(r), wrap, "reference", EffaxError)


def test_what_a_reference_has_and_has_not() -> None:
    r = jax.new_ref(1.0)
    assert not hasattr(r, "astype")
    assert not hasattr(r, "nothing")
    assert r == r  # noqa: PLR0124  identity is what is tested
    assert r != jax.new_ref(1.0)
    assert r in [jax.new_ref(2.0), r]
    assert {r: 1}[r] == 1
    assert f"{r}" == repr(r)


def test_a_reference_in_a_message_has_the_name_of_the_user() -> None:
    r = jax.new_ref(7.0)
    for call in (lambda state: state["w"] + 1, lambda state: jax.freeze(state["w"])):
        with pytest.raises(RefError, match=r"found: +state\['w'\], Ref\{f32\[\]\}, made at"):
            jax.jit(call)({"w": r})
