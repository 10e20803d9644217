"""Work is counted by primitive, line and subjaxpr, as often as each equation runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

import effax
import effax.numpy as jnp
from effax import extend, lax
from effax.ir import BadArgument, Jaxpr, Type, Work, array_type, moved, parse
from effax.ir.analysis.cost import count
from effax.ir.prims import Jit
from effax.show.memory import profile
from effax.testing import check_law, law
from tests.unit.ir.samples import SAMPLES

F = array_type((4, 8), "float32")
SQUARE = array_type((8, 8), "float32")


def cost_of(text: str, trips: int | None = None) -> effax.ir.Cost:
    return effax.cost(parse(text), trips=trips)


def work(prim: str, *ins: str, outs: str) -> Work:
    """Return the work of one equation, written as in programs."""
    names = "abcdefg"[: len(ins)]
    binders = " ".join([f"{n}:{t}" for n, t in zip(names, ins, strict=True)])
    text = f"{{ lambda ; {binders}. let h:{outs} = {prim} {' '.join(names)} in (h,) }}"
    return effax.cost(parse(text)).total


def test_elementwise_work() -> None:
    assert work("add", "f32[4,8]", "f32[4,8]", outs="f32[4,8]") == Work(32, 0, 256, 128)
    assert work("add", "c64[8]", "c64[8]", outs="c64[8]").flops == 16
    assert work("mul", "c64[8]", "c64[8]", outs="c64[8]").flops == 48
    assert work("tanh", "f32[8]", outs="f32[8]") == Work(0, 8, 32, 32)
    assert work("integer_pow[y=3]", "f32[8]", outs="f32[8]").flops == 16
    assert work("lt", "f32[8]", "f32[8]", outs="bool[8]") == Work(8, 0, 64, 8)


def test_work_of_views_and_moves() -> None:
    assert work("reshape[new_sizes=(32,)]", "f32[4,8]", outs="f32[32]") == Work()
    turned = work("transpose[permutation=(1, 0)]", "f32[4,8]", outs="f32[8,4]")
    assert turned == Work(0, 0, 128, 128)
    part = "slice[limit_indices=(2,) start_indices=(0,) strides=(1,)]"
    assert work(part, "f32[80]", outs="f32[2]") == Work(0, 0, 8, 8)


def test_work_of_contractions_and_reductions() -> None:
    dims = "dot_general[dimension_numbers=(((1,), (0,)), ((), ()))]"
    assert work(dims, "f32[4,8]", "f32[8,3]", outs="f32[4,3]") == Work(192, 0, 224, 48)
    assert work(dims, "c64[4,8]", "c64[8,3]", outs="c64[4,3]").flops == 768
    assert work("reduce_sum[axes=(0,)]", "f32[4,8]", outs="f32[8]").flops == 24
    assert work("cholesky", "f32[6,6]", outs="f32[6,6]").flops == 72


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 1, 5), {"window_strides": (1,), "padding": "SAME"}),
        ((2, 3, 7), {"window_strides": (2,), "padding": [(2, 1)], "rhs_dilation": (2,)}),
        ((1, 1, 6), {"window_strides": (2,), "padding": [(3, 3)], "lhs_dilation": (3,)}),
        ((1, 1, 6), {"window_strides": (1,), "padding": [(-1, -2)], "lhs_dilation": (2,)}),
    ],
)
def test_a_convolution_counts_pairs_of_elements(
    shape: tuple[int, ...], options: dict[str, object]
) -> None:
    # With ones as operands, the sum of the result is the number of products.
    x, w = jnp.ones(shape), jnp.ones((2, shape[1], 3))

    def conv(x: effax.Array, w: effax.Array) -> effax.Array:
        convolved: Callable[..., effax.Array] = lax.conv_general_dilated
        return convolved(x, w, **options)

    assert effax.cost(conv)(x, w).flops == 2 * int(jnp.sum(conv(x, w)))


def test_loops_multiply_by_their_trip_count() -> None:
    def f(x: effax.Array) -> effax.Array:
        return lax.fori_loop(0, 7, lambda i, x: lax.scan(step, x, None, length=3)[0], x)

    def step(x: effax.Array, _: None) -> tuple[effax.Array, None]:
        return jnp.sin(x @ x), None

    found = effax.cost(f)(SQUARE)
    assert found.by_primitive["dot_general"].flops == 21 * 2 * 8**3
    assert found.transcendentals == 21 * 64
    inner = found.programs[-1]
    assert (inner.runs, inner.each.transcendentals) == (21, 64)
    assert inner.name == "0:scan.body/1:scan.body"
    assert effax.cost(effax.jit(f))(SQUARE).total == found.total


def test_a_loop_of_unknown_trip_count_is_a_lower_bound() -> None:
    def f(x: effax.Array) -> effax.Array:
        return lax.while_loop(lambda x: jnp.sum(x) < 9.0, lambda x: x @ x, x)

    found = effax.cost(f)(SQUARE)
    assert found.is_lower_bound
    assert (found.flops, found.loops[0].each.flops) == (64, 64 + 2 * 8**3)
    assert "unknown trip count" in str(found)
    assumed = effax.cost(f, trips=5)(SQUARE)
    assert not assumed.is_lower_bound
    assert assumed.flops == 6 * 64 + 5 * 2 * 8**3
    with pytest.raises(BadArgument, match="trips is negative"):
        effax.cost(f, trips=-1)(SQUARE)


def test_neither_a_function_nor_a_jaxpr_is_refused() -> None:
    with pytest.raises(BadArgument, match="cost takes a function or a jaxpr"):
        effax.cost(3)  # type: ignore[call-overload]  # it is refused


def test_of_branches_the_most_expensive_one_counts() -> None:
    def f(p: effax.Array, x: effax.Array) -> effax.Array:
        return lax.cond(p, lambda x: x @ x, lambda x: x + 1, x)

    found = effax.cost(f)(array_type((), "bool"), SQUARE)
    assert found.flops == 2 * 8**3
    assert sorted(p.runs for p in found.programs) == [0, 1]


def test_an_access_at_an_index_costs_the_bytes_of_the_slice() -> None:
    refs = "{ lambda ; a:Ref{f32[100,8]} b:i32[] c:f32[8]. let "
    read = cost_of(refs + "d:f32[8] <- a[b,:] in (d,) }")
    assert (read.bytes_read, read.bytes_written) == (32 + 4, 32)
    store = cost_of(refs + "a[b,:] <- c in () }")
    assert (store.bytes_read, store.bytes_written) == (32 + 4, 32)
    add = cost_of(refs + "a[b,:] += c in () }")
    assert (add.flops, add.bytes_read, add.bytes_written) == (8, 64 + 4, 32)
    swap = cost_of(refs + "d:f32[8], a[b,:] <- a[b,:], c in (d,) }")
    assert (swap.bytes_read, swap.bytes_written) == (64 + 4, 64)


def test_collectives_are_counted_on_one_device() -> None:
    mesh = effax.make_mesh((2,), ("i",), devices=effax.devices()[:1] * 2)

    def f(x: effax.Array) -> object:
        return effax.shard_map(
            lambda x: lax.psum(x * 2.0, "i"),
            mesh=mesh,
            in_specs=effax.P("i"),
            out_specs=effax.P(),
        )(x)

    found = effax.cost(f)(F)
    assert (found.collectives, found.collective_bytes) == (1, 64)
    assert found.by_primitive["mul"].flops == 16


def test_work_by_line() -> None:
    def f(x: effax.Array) -> effax.Array:
        y = x @ x
        return jnp.sin(y)

    lines = {n.rpartition(":")[2]: w for n, w in effax.cost(f)(SQUARE).by_line.items()}
    first = f.__code__.co_firstlineno
    assert lines[str(first + 1)].flops == 2 * 8**3
    assert lines[str(first + 2)].transcendentals == 64
    assert all(__file__ in name for name in effax.cost(f)(SQUARE).by_line)


@dataclass(frozen=True, slots=True)
class Smooth(extend.FunctionPrimitive):
    """A function as a primitive."""

    name: ClassVar[str] = "smooth"

    def function(self, x: effax.Array) -> effax.Array:
        return jnp.tanh(x) * 2.0


@dataclass(frozen=True, slots=True)
class Declared(Smooth):
    """The same, with declared work."""

    name: ClassVar[str] = "declared_smooth"

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        return moved(ins, outs, flops=100)


def test_a_primitive_of_a_user_declares_its_work() -> None:
    derived = effax.cost(lambda x: Smooth().bind(x)[0])(F)
    assert (derived.transcendentals, derived.flops) == (32, 32)
    assert [*derived.by_primitive] == ["smooth"]
    assert effax.cost(lambda x: Declared().bind(x)[0])(F).total == Work(100, 0, 128, 128)


@dataclass(frozen=True, slots=True)
class Repeat(extend.RegionPrimitive):
    """A loop of a user."""

    body: Jaxpr
    times: int
    name: ClassVar[str] = "repeat"

    def regions(self) -> tuple[extend.Region, ...]:
        return (extend.loop_region(self.body, self.times),)


def test_a_loop_of_a_user_multiplies() -> None:
    body = effax.make_jaxpr(jnp.sin)(F).jaxpr
    found = effax.cost(lambda x: Repeat(body, 5).bind(x)[0])(F)
    assert (found.transcendentals, found.programs[0].runs) == (5 * 32, 5)


def test_solvers_count_what_they_run() -> None:
    def f(b: effax.Array) -> object:
        solve = lambda matvec, b: b / 2.0  # noqa: E731
        return lax.custom_linear_solve(lambda x: x * 2.0, b, solve, symmetric=True)

    assert effax.cost(f)(array_type((8,), "float32")).flops == 8


def test_a_symbolic_size_is_refused() -> None:
    (size,) = effax.export.symbolic_shape("b")
    with pytest.raises(BadArgument, match="x has a symbolic size"):
        effax.cost(lambda x: x + 1)(array_type((size,), "float32"))


def test_every_primitive_has_work() -> None:
    for sample in SAMPLES:
        found = effax.cost(sample.program)
        assert min(found.flops, found.bytes_read, found.bytes_written) >= 0
        assert found.peak_bytes >= found.argument_bytes


@law
def live_values_are_those_of_the_program(jaxpr: Jaxpr) -> None:
    """The peak of f is at most all that is live in f, as it is written, and its results."""
    found = effax.cost(jaxpr)
    assert found.argument_bytes <= found.peak_bytes
    assert found.peak_bytes <= profile(jaxpr).peak + found.result_bytes


def test_peaks_of_random_programs_are_bounded() -> None:
    check_law(live_values_are_those_of_the_program, examples=30)


def doubled(depth: int) -> Jaxpr:
    """Return a program that contains the same subjaxpr twice, at each of ``depth`` levels."""
    jaxpr = effax.make_jaxpr(lambda x: jnp.sin(x) + 1.0)(1.0).jaxpr
    for _ in range(depth):
        prim = Jit(jaxpr)
        b = effax.ir.Builder([array_type((), "float32", True)])
        jaxpr = b.finish([b(prim, b(prim, b.binders[0]))])
    return jaxpr


@pytest.mark.slow
def test_time_is_linear_in_distinct_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    real = count.work_of

    def counted(eqn: effax.ir.Eqn, used: set[int]) -> Work:
        seen.append(eqn)
        return real(eqn, used)

    monkeypatch.setattr(count, "work_of", counted)
    found = effax.cost(doubled(100))
    assert len(seen) == 2 + 2 * 100
    assert found.flops == found.transcendentals == 2**100
    assert effax.cost(doubled(600)).peak_bytes == 8
