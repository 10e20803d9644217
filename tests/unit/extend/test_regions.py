"""User-defined loops, branches and calls, against ``scan``, ``while``, ``cond`` and ``jit``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from returns.unsafe import unsafe_perform_io

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend import Region, Row, Type
from effax.ir import Builder, Jaxpr, add_constants, check, evaluate, parse, size, walk
from effax.ir.build import lit
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, Jit, Scan, Sin, While
from effax.ir.types import RefType, array_type, ref_type
from effax.lowering import xla
from effax.lowering.program import compile_program
from effax.testing import check_primitive
from effax.transforms import (
    GradRef,
    GradValue,
    NonLinear,
    dce,
    discharge,
    hoist,
    inline,
    jvp,
    linearize,
    loop_carries,
    partial_eval,
    recompose,
    transpose,
    unroll,
    vmap,
)
from tests.unit.extend.region_primitives import Choose, Collect, Repeat, Titled, Until

jax: Any = effax

F, I32, B = (array_type((), name) for name in ("float32", "int32", "bool"))
R, F3, R3 = ref_type(F), array_type((3,), "float32"), ref_type(array_type((3,), "float32"))


STEP = parse("""
    { lambda ; a:Ref{f32[]} b:f32[] c:f32[] d:f32[]. let
        a[...] += c
        e:f32[] = sin b
        f:f32[] <- a[...]
        g:f32[] = mul e c
        h:f32[] = mul g 0.5:f32[]
        i:f32[] = add h f
        j:f32[] = cos d
      in (i, j) }
""")
"""``r, k, c, d -> sin(k)·c/2 + r, cos(d)``, where ``r += c`` comes first."""

COUNTED = parse("""
    { lambda ; a:Ref{f32[]} b:f32[] c:i32[] d:f32[]. let
        e:i32[] = add c 1:i32[]
        a[...] += d
        f:f32[] <- a[...]
        g:f32[] = sin b
        h:f32[] = mul g d
        i:f32[] = add h f
      in (e, i) }
""")
GOING = parse("""
    { lambda ; a:Ref{f32[]} b:f32[] c:i32[] d:f32[]. let
        e:bool[] = lt c 3:i32[]
      in (e,) }
""")
OTHER = parse("""
    { lambda ; a:Ref{f32[]} b:f32[] c:f32[] d:f32[]. let
        e:f32[] <- a[...]
        f:f32[] = mul e b
      in (c, f) }
""")
ROWS = parse("""
    { lambda ; a:f32[] b:f32[] c:Ref{f32[]} d:f32[]. let
        e:f32[] <- c[...]
        f:f32[] = mul e d
        c[...] <- f
        h:f32[] = sin a
        i:f32[] = mul h b
        j:f32[] = add i f
      in (j, e) }
""")
LINEAR = parse("""
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = mul a b
        d:f32[] = add c b
      in (d,) }
""")


class Case(NamedTuple):
    mine: Primitive
    own: Primitive
    types: tuple[Type, ...]
    values: tuple[object, ...]


CASES = {
    "repeat": Case(Repeat(STEP, 3), Scan(STEP, 3, False, 2, 2), (R, F, F, F), (1.0, 0.5, 0.3, 0.2)),
    "until": Case(
        Until(GOING, COUNTED), While(GOING, COUNTED, 2), (R, F, I32, F), (1, 0.5, 0, 0.3)
    ),
    "choose": Case(
        Choose((OTHER, STEP)), Cond((OTHER, STEP)), (B, R, F, F, F), (True, 1.0, 0.5, 0.3, 0.2)
    ),
    "titled": Case(Titled(STEP, "x"), Jit(STEP), (R, F, F, F), (1.0, 0.5, 0.3, 0.2)),
    "collect": Case(
        Collect(ROWS, 3, 1, 1),
        Scan(ROWS, 3, False, 1, 1),
        (F, F, R3, F3),
        (0.5, 0.3, [1.0, 2.0, 3.0], [0.1, 0.2, 0.3]),
    ),
}


def made(prim: Primitive, types: Sequence[Type]) -> Jaxpr:
    """Return a program of one application."""
    b = Builder(types)
    jaxpr = b.finish(b.emit(prim, b.binders))
    check(jaxpr).unwrap()
    return jaxpr


def run(jaxpr: Jaxpr, *values: object) -> list[np.ndarray]:
    """Return the results, then the final contents of the references."""
    buffers = [np.array(x, t.dtype) for x, t in zip(values, jaxpr.in_types, strict=True)]
    outs = [np.array(x) for x in evaluate(jaxpr, buffers)]
    return [*outs, *[x for x, t in zip(buffers, jaxpr.in_types, strict=True) if is_ref(t)]]


def is_ref(type_: Type) -> bool:
    return isinstance(type_, RefType)


def assert_same(first: Jaxpr, second: Jaxpr, values: Sequence[object]) -> None:
    check(first).unwrap()
    assert first.effects == second.effects
    for x, y in zip(run(first, *values), run(second, *values), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def both(case: Case) -> tuple[Jaxpr, Jaxpr]:
    return made(case.mine, case.types), made(case.own, case.types)


Both = tuple[Jaxpr, Jaxpr]


def test_types_effects_and_values_follow(case: Case, both: Both) -> None:
    mine, own = both
    assert mine.out_types == own.out_types
    assert mine.eqns[0].effects == own.eqns[0].effects != Row()
    assert_same(mine, own, case.values)
    assert parse(str(mine), extend.registry(type(case.mine))) == mine


def test_dead_results_and_carries_are_dropped(case: Case, both: Both) -> None:
    n = len(both[0].outs)
    for used in [tuple([i == j for i in range(n)]) for j in range(n)]:
        mine, own = (dce(jaxpr, used, keep_inputs=False).unwrap() for jaxpr in both)
        assert mine.used_ins == own.used_ins
        assert size(mine.jaxpr) == size(own.jaxpr)
        assert type(mine.jaxpr.eqns[0].prim) is type(case.mine)
        values = [x for x, has in zip(case.values, mine.used_ins, strict=True) if has]
        assert_same(mine.jaxpr, own.jaxpr, values)


def test_invariant_equations_leave_the_loop(case: Case, both: Both) -> None:
    mine, own = (hoist(jaxpr).unwrap() for jaxpr in both)
    assert [eqn.prim for eqn in mine.eqns[:-1]] == [eqn.prim for eqn in own.eqns[:-1]]
    assert (Sin() in [eqn.prim for eqn in mine.eqns]) == case.mine.may_repeat()
    assert type(mine.eqns[-1].prim) is type(case.mine)
    assert_same(mine, own, case.values)


def test_invariant_reads_leave_the_loop() -> None:
    body = parse("""
        { lambda ; a:Ref{f32[]} b:f32[]. let
            c:f32[] <- a[...]
            d:f32[] = mul b c
          in (d,) }
    """)
    moved = hoist(made(Repeat(body, 3), (R, F))).unwrap()
    assert [eqn.prim.name for eqn in moved.eqns] == ["get", "repeat"]
    assert [eqn.prim.name for eqn in dce(moved).unwrap().jaxpr.eqns] == ["get", "repeat"]
    assert_same(moved, made(Scan(body, 3, False, 1, 1), (R, F)), (2.0, 3.0))


def test_carries_that_never_change_become_constants() -> None:
    body = parse("{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (a, c) }")
    moved = dce(loop_carries(made(Repeat(body, 3), (F, F))).unwrap()).unwrap().jaxpr
    (loop,) = moved.eqns
    assert len(loop.outs) == 1 and moved.outs[0] == moved.binders[0]
    assert_same(moved, made(Scan(body, 3, False, 0, 2), (F, F)), (2.0, 3.0))


def test_loops_are_unrolled(case: Case, both: Both) -> None:
    mine, own = (unroll(jaxpr, growth=100).unwrap() for jaxpr in both)
    values = case.values
    assert size(mine) == size(own)
    assert_same(mine, own, values)


def test_jvp(case: Case, both: Both) -> None:
    mask = tuple([t.dtype.kind == "f" for t in case.types])
    mine, own = (jvp(jaxpr, mask, True).unwrap().jaxpr for jaxpr in both)
    tangents = [x for x, has in zip(case.values, mask, strict=True) if has]
    assert_same(mine, own, [*case.values, *tangents])


@pytest.mark.parametrize("every", [True, False])
def test_vmap(case: Case, both: Both, every: bool) -> None:
    axes: list[int | None] = [0 if every else None] * len(case.types)
    axes[case.types.index(F)] = 0
    mine, own = (vmap(jaxpr, 2, axes).unwrap().jaxpr for jaxpr in both)
    values = [
        np.stack([np.asarray(x)] * 2) if axis == 0 else x
        for x, axis in zip(case.values, axes, strict=True)
    ]
    assert_same(mine, own, values)


def test_partial_evaluation_recomposes_to_the_whole(case: Case, both: Both) -> None:
    n = len(case.types)
    for known in [(True,) * (n - 1) + (False,), (False,) + (True,) * (n - 1), (True,) * n]:
        mine, own = (partial_eval(jaxpr, known).unwrap() for jaxpr in both)
        assert mine.known_outs == own.known_outs
        assert_same(recompose(mine), both[0], case.values)


def test_discharge(case: Case, both: Both) -> None:
    mine, own = (discharge(jaxpr).unwrap() for jaxpr in both)
    assert mine.changed == own.changed and not mine.jaxpr.effects
    assert_same(mine.jaxpr, own.jaxpr, case.values)


@pytest.mark.slow
def test_lowering(case: Case, both: Both) -> None:
    outs = []
    for jaxpr in both:
        program = unsafe_perform_io(compile_program(jaxpr).unwrap())
        given = [np.asarray(x, t.dtype) for x, t in zip(case.values, case.types, strict=True)]
        outs.append([xla.to_numpy(x) for x in program.executable([xla.put(x) for x in given])])
    for x, y in zip(*outs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_linearize_and_transpose() -> None:
    both = made(Repeat(LINEAR, 3), (F, F)), made(Scan(LINEAR, 3, False, 1, 1), (F, F))
    mine, own = (linearize(jaxpr, (True, True)).unwrap() for jaxpr in both)
    assert mine.out_tangents == own.out_tangents == (True,)
    for spec, values in ((GradValue(), (3.0, 2.0)), (GradRef(), (3.0, 10.0, 2.0))):
        mine_t, own_t = (transpose(jaxpr, (NonLinear(), spec)).unwrap().jaxpr for jaxpr in both)
        assert_same(mine_t, own_t, values)


@pytest.mark.slow
def test_every_law_accepts_them() -> None:
    assert not check_primitive(Repeat(LINEAR, 2), F, F, linear=(False, True), seeds=(0,)).refused


@pytest.mark.slow
@pytest.mark.parametrize("name", ["repeat", "choose", "titled", "collect"])
def test_every_law_accepts_references_in_them(name: str) -> None:
    case = CASES[name]
    assert not check_primitive(case.mine, *case.types, seeds=(0,)).refused


def test_walk_reports_their_regions_and_trip_counts() -> None:
    inner = made(Repeat(LINEAR, 3), (F, F))
    outer = made(Repeat(parse(str(inner), extend.registry(Repeat)), 5), (F, F))
    found = {str(place): place.trip_count for place in walk(outer)}
    assert found["0:repeat.body/0:repeat.body/0:mul"] == 15
    chosen = made(CASES["choose"].mine, CASES["choose"].types)
    assert any(str(place).startswith("0:choose.branch 1/0:") for place in walk(chosen))


def repeat(f: Callable[..., Any], n: int, *args: Any) -> Any:
    """Apply ``f(*consts, carry)`` to its own result ``n`` times, on the constants."""
    traced = jax.make_jaxpr(f)(*args)
    return Repeat(traced.jaxpr, n).bind(*traced.consts, *args)[0]


def step(r: Any, k: Any, c: Any) -> Any:
    r[...] += c
    return k * jnp.sin(c) + 0.1 * r[...]


def with_mine(k: Any, c: Any) -> Any:
    r = effax.new_ref(c * 0.1)
    out = repeat(step, 3, r, k, c)
    return out * r[...]


def with_loop(k: Any, c: Any) -> Any:
    r = effax.new_ref(c * 0.1)
    out = jax.lax.fori_loop(0, 3, lambda i, c: step(r, k, c), c)
    return out * r[...]


def nested(f: Any) -> Any:
    """Return a function that applies ``f`` in a scan and in a branch."""

    def whole(k: Any, c: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            y = jax.lax.cond(c > 0.2, lambda: f(k, c * x), lambda: c + x)
            return y, y

        last, all_ = jax.lax.scan(body, c, jnp.array([0.5, 0.3]))
        return last + all_.sum()

    return whole


def stacked(f: Any) -> Any:
    """Return a function that takes ``f`` of two batch elements."""
    return lambda k, c: jax.vmap(f)(jnp.stack([k, 2 * k]), jnp.stack([c, 2 * c]))


TRANSFORMS = {
    "eager": lambda f: f,
    "jit": jax.jit,
    "grad": lambda f: jax.grad(f, (0, 1)),
    "jit of grad": lambda f: jax.jit(jax.grad(f, (0, 1))),
    "hessian": jax.hessian,
    "vmap of grad": lambda f: stacked(jax.grad(f, (0, 1))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformed_functions_agree_with_a_loop(name: str) -> None:
    k, c = jnp.float32(0.8), jnp.float32(0.5)
    transform = TRANSFORMS[name]
    for f, g in ((with_mine, with_loop), (nested(with_mine), nested(with_loop))):
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5),
            transform(f)(k, c),
            transform(g)(k, c),
        )


def test_references_are_written_eagerly_and_under_jit() -> None:
    k, c = jnp.float32(0.8), jnp.float32(0.5)
    body = jax.make_jaxpr(step)(effax.new_ref(c), k, c).jaxpr
    first, second = effax.new_ref(c), effax.new_ref(c)
    x = Repeat(body, 3).bind(first, k, c)[0]
    y = jax.jit(lambda r: Repeat(body, 3).bind(r, k, c)[0])(second)
    np.testing.assert_allclose(x, y, rtol=1e-6)
    np.testing.assert_allclose(first[...], second[...], rtol=1e-6)


def test_side_effects_keep_their_order() -> None:
    log: list[float] = []

    def noisy(c: Any) -> Any:
        effax.debug.callback(lambda c: log.append(float(c)), c, ordered=True)
        return c + 1

    for transform in (lambda f: f, jax.jit, lambda f: jax.jit(jax.grad(f))):
        log.clear()
        transform(lambda c: repeat(noisy, 3, c) * 1.0)(jnp.float32(1.0)).block_until_ready()
        assert log == [1.0, 2.0, 3.0]


@dataclass(frozen=True, slots=True)
class Times(extend.RegionPrimitive):
    """``times(n, *consts, *carry)``: a loop of a number of iterations that is an operand."""

    body: Jaxpr
    name: ClassVar[str] = "times"

    def regions(self) -> tuple[Region, ...]:
        loop = extend.loop_region(self.body, None)
        args = tuple([a + 1 for a in loop.args])
        carry_to = tuple([None if c is None else c + 1 for c in loop.carry_to])
        return (loop._replace(args=args, carry_to=carry_to),)

    def function(self, *args: Any, **kwargs: Any) -> Sequence[Array]:
        n, *rest = args
        consts, carry = rest[: -len(self.body.outs)], rest[-len(self.body.outs) :]

        def body(i: Any, state: Any) -> Any:
            return extend.eval_jaxpr(self.body, *consts, *state)

        found: Sequence[Array] = jax.lax.fori_loop(0, n, body, list(carry))
        return found


def test_a_function_defines_regions_of_another_form() -> None:
    prim, n = Times(LINEAR), jnp.int32(3)
    k, c = jnp.float32(0.5), jnp.float32(2.0)
    np.testing.assert_allclose(prim.bind(n, k, c)[0], 2 * 1.5**3)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(lambda c: prim.bind(n, k, c)[0]))(c), 1.5**3)
    np.testing.assert_allclose(
        jax.vmap(lambda n: prim.bind(n, k, c)[0])(jnp.array([1, 3], "int32")), [3.0, 6.75]
    )
    reads = parse("{ lambda ; a:Ref{f32[]} b:f32[]. let c:f32[] <- a[...] in (c,) }")
    program = jax.make_jaxpr(lambda r: Times(reads).bind(n, r, c)[0])(effax.new_ref(k)).jaxpr
    assert [e.word for e in program.effects] == ["read"]


@dataclass(frozen=True, slots=True)
class One(extend.RegionPrimitive):
    """The first of the results of a program that runs once."""

    f: Jaxpr
    name: ClassVar[str] = "one"

    def regions(self) -> tuple[Region, ...]:
        return (Region(self.f, (0,), (0, None), (None, None), repeats=False, name="f"),)

    def function(self, *args: Any, **kwargs: Any) -> Array:
        return extend.eval_jaxpr(self.f, *args)[0]


@dataclass(frozen=True, slots=True)
class Second(One):
    """The second result, in regions that follow the program and a function that does not."""

    def regions(self) -> tuple[Region, ...]:
        discarded = (None,) * (len(self.f.outs) - 1)
        nowhere = (*discarded, None)
        return (Region(self.f, (0,), (*discarded, 0), nowhere, repeats=False, name="f"),)

    def function(self, *args: Any, **kwargs: Any) -> Array:
        return extend.eval_jaxpr(self.f, *args)[1]


@pytest.mark.parametrize(("cls", "wanted"), [(One, 0.0), (Second, 1.0)])
def test_a_discarded_result_is_kept_if_the_fields_need_it(cls: type[One], wanted: float) -> None:
    prim = cls(parse("{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = cos a in (b, c) }"))
    for transform in (lambda f: f, jax.jit):
        np.testing.assert_allclose(transform(lambda x: prim.bind(x)[0])(jnp.float32(0)), wanted)
    jaxpr = made(prim, (F,))
    assert dce(jaxpr).unwrap().jaxpr == jaxpr
    assert prim.restrict([SINE], (True,), (True,)) is None
    assert prim.with_constants([LINEAR], 1) is None


def test_a_discarded_result_is_kept_where_effects_are_ordered() -> None:
    log: list[float] = []

    def noisy(x: Any) -> Any:
        effax.debug.callback(lambda x: log.append(float(x)), x, ordered=True)
        return jnp.sin(x), 2 * x

    prim = One(jax.make_jaxpr(noisy)(jnp.float32(0)).jaxpr)
    found = jax.jit(lambda x: prim.bind(x)[0] + prim.bind(x + 1)[0])(jnp.float32(0))
    np.testing.assert_allclose(found, np.sin(1), rtol=1e-6)
    assert log == [0.0, 1.0]


SINE = parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")


@dataclass(frozen=True, slots=True)
class Strict(Repeat):
    """A loop of three operands at most."""

    def regions(self) -> tuple[Region, ...]:
        if len(self.body.binders) > 3:
            raise ValueError("at most three operands")
        return (extend.loop_region(self.body, self.times),)


def test_loops_are_kept_whole_if_they_cannot_take_more_operands() -> None:
    body = parse("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = cos a
            e:f32[] = mul c b
            f:f32[] = add d e
          in (f,) }
    """)
    jaxpr = made(Strict(body, 3), (F, F))
    assert hoist(jaxpr).unwrap() == jaxpr
    same = parse("{ lambda ; a:f32[] b:f32[] c:f32[]. let d:f32[] = mul c b in (a, b, d) }")
    jaxpr = made(Strict(same, 3), (F, F, F))
    assert loop_carries(jaxpr).unwrap() == jaxpr
    with pytest.raises(BadArgument, match="repeat cannot have these operands"):
        add_constants(jaxpr, 0, [lit(1.0, F)])


@dataclass(frozen=True, slots=True)
class Derived(Repeat):
    """A loop with its own derivative."""

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        return self.bind(*primals), [7.0 * tangents[-1]]


def test_a_rule_may_be_overridden() -> None:
    assert Derived.has_own_rules and not Repeat.has_own_rules
    f = lambda c: Derived(LINEAR, 3).bind(jnp.float32(0.5), c)[0]  # noqa: E731
    np.testing.assert_allclose(jax.jit(jax.grad(f))(jnp.float32(2.0)), 7.0)
    np.testing.assert_allclose(f(jnp.float32(2.0)), 2 * 1.5**3)


@dataclass(frozen=True, slots=True)
class Plain(Titled):
    """A call that may be inlined."""

    is_call: ClassVar[bool] = True


def test_a_call_may_be_inlined() -> None:
    assert inline(made(Plain(STEP, "x"), (R, F, F, F))).unwrap() == STEP
    kept = made(Titled(STEP, "x"), (R, F, F, F))
    assert inline(kept).unwrap() == kept
