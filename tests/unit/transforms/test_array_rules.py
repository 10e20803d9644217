"""Rules of primitives on arrays: derivatives, transposes and batching of one application."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.build import Builder
from effax.ir.errors import NotApplicable
from effax.ir.eval.numpy import evaluate
from effax.ir.families import declared
from effax.ir.indexing import Indexer, Pick
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import AddUpdate, index
from effax.ir.registry import own_primitives
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type, array_type, ref_type, tangent_type, type_of_value
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchBuilder,
    Linear,
    RuleBuilder,
    RuleSet,
    Unsupported,
)
from effax.transforms.jvp import jvp
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.transpose.cotangent_spec import CotangentSpec, GradRef, GradValue, NonLinear
from effax.transforms.transpose.engine import transpose
from effax.transforms.vmap.engine import vmap
from tests.unit.transforms.array_cases import ALL, DIFFERENTIABLE, Case, ints, normal

STEP = 1e-6


def single(prim: Primitive, args: Sequence[Value]) -> Jaxpr:
    """Return the program of one application."""
    b = Builder([type_of_value(np.asarray(a)) for a in args])
    return b.finish(b.emit(prim, b.binders))


def subsets(positions: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all nonempty subsets."""
    for flags in product((False, True), repeat=len(positions)):
        if any(flags):
            yield tuple(i for i, flag in zip(positions, flags, strict=True) if flag)


def tangent_like(x: Value, seed: int) -> Value:
    return normal(*x.shape, seed=seed, dtype=str(x.dtype))


def pushed(
    prim: Primitive, args: Sequence[Value], tangents: dict[int, Value]
) -> tuple[list[Value], list[Value | None]]:
    """Return results and their tangents (None: zero), by the pass on one application."""
    mask = [i in tangents for i in range(len(args))]
    made = jvp(single(prim, args), mask).unwrap()
    results = evaluate(made.jaxpr, [*args, *(tangents[i] for i in sorted(tangents))])
    n = len(made.out_tangents)
    rest = iter(results[n:])
    return results[:n], [next(rest) if has else None for has in made.out_tangents]


def moved(args: Sequence[Value], tangents: dict[int, Value], step: float) -> list[Value]:
    return [a + step * tangents[i] if i in tangents else a for i, a in enumerate(args)]


@pytest.mark.slow
@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_jvp_agrees_with_finite_differences(case: Case) -> None:
    """df(x; dx) = (f(x + h·dx) - f(x - h·dx)) / 2h + O(h²), for every subset of operands."""
    plain = case.prim.evaluate(*case.args)
    for positions in subsets(case.smooth):
        tangents = {i: tangent_like(case.args[i], seed=10 + i) for i in positions}
        outs, found = pushed(case.prim, case.args, tangents)
        with np.errstate(all="ignore"):
            ahead, behind = (
                case.prim.evaluate(*moved(case.args, tangents, s)) for s in (STEP, -STEP)
            )
        for out, given, dy, high, low in zip(outs, plain, found, ahead, behind, strict=True):
            np.testing.assert_array_equal(out, given)
            if not np.issubdtype(out.dtype, np.inexact):
                assert dy is None
                continue
            wanted = (high - low) / (2 * STEP)
            given_dy = np.zeros_like(wanted) if dy is None else dy
            assert given_dy.shape == wanted.shape
            assert given_dy.dtype == wanted.dtype
            np.testing.assert_allclose(given_dy, wanted, rtol=2e-6, atol=2e-7)


def transposed(
    prim: Primitive, args: Sequence[Value], group: Sequence[int], in_place: bool
) -> Jaxpr:
    """``(*args outside of the group, [refs of the group], ct) -> cotangents of the group``."""
    rule = DEFAULT_RULES.of(prim).transpose
    assert not isinstance(rule, Unsupported)
    types = [type_of_value(a) for a in args]
    (out,) = prim.typing(*types).outs
    b = RuleBuilder(DEFAULT_RULES)
    ins: list[Atom | Linear] = []
    for i, type_ in enumerate(types):
        if i not in group:
            ins.append(b.bind(type_))
        else:
            ref = b.bind(ref_type(type_)) if in_place else None
            ins.append(Linear(type_, ref))
    made = rule(b, prim, ins, [b.bind(tangent_type(out))])
    assert len(made) == len(ins)
    assert all(made[i] is None for i in range(len(ins)) if i not in group)
    given = {i: ct for i, ct in enumerate(made) if ct is not None}
    assert all(ct.type is tangent_type(types[i]) for i, ct in given.items())
    return b.finish(list(given.values()))


def pairing(x: Value, y: Value) -> float:
    """Return JAX's pairing of a cotangent and a tangent: Re Σ x·y, without conjugation."""
    return float(np.real(np.sum(x * y)))


LINEAR = [(case, group) for case in DIFFERENTIABLE for group in case.linear]


@pytest.mark.parametrize(("case", "group"), LINEAR, ids=str)
def test_transpose_is_the_adjoint(case: Case, group: tuple[int, ...]) -> None:
    """<ct, f(x)> = <f^T(ct), x>, for every linear subset of a group, the others 0."""
    for positions in subsets(group):
        if len(case.linear) == 1:
            args = [np.zeros_like(a) if i in group else a for i, a in enumerate(case.args)]
        else:
            args = list(case.args)
        xs = {i: tangent_like(case.args[i], seed=20 + i) for i in positions}
        y = case.prim.evaluate(*(xs.get(i, a) for i, a in enumerate(args)))[0]
        ct = tangent_like(y, seed=30)
        others = [a for i, a in enumerate(args) if i not in positions]
        program = transposed(case.prim, args, positions, in_place=False)
        found = iter(evaluate(program, [*others, ct]))
        if not all(y.shape):
            assert not program.outs or pairing(ct, y) == 0
            continue
        total = sum(pairing(next(found), xs[i]) for i in positions)
        np.testing.assert_allclose(total, pairing(ct, y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("case", "group"), LINEAR, ids=str)
def test_gradient_references_end_with_what_gradient_values_are(
    case: Case, group: tuple[int, ...]
) -> None:
    """The pass on one application: ref after = ref before + the result for GradValue."""
    program = single(case.prim, case.args)
    (out,) = program.out_types
    ct = tangent_like(np.zeros(out.shape, out.dtype), seed=30)
    others = [a for i, a in enumerate(case.args) if i not in group]
    sums: list[list[Value]] = []
    for ct_spec in (GradValue(), GradRef()):
        ct_specs: list[CotangentSpec] = [
            ct_spec if i in group else NonLinear() for i in range(len(case.args))
        ]
        made = transpose(program, ct_specs).unwrap()
        cells = [np.ones_like(case.args[i]) for i in group]
        given = [*others, *cells] if isinstance(ct_spec, GradRef) else others
        found = iter(evaluate(made.jaxpr, [*given, ct]))
        if isinstance(ct_spec, GradRef):
            sums.append(cells)
        else:
            sums.append(
                [c + next(found) if has else c for c, has in zip(cells, made.nonzero, strict=True)]
            )
    for value, cell in zip(*sums, strict=True):
        np.testing.assert_allclose(cell, value, rtol=1e-12)


SPARSE = [
    (case, group) for case, group in LINEAR if DEFAULT_RULES.of(case.prim).sparse and group == (0,)
]


@pytest.mark.parametrize(("case", "group"), SPARSE, ids=str)
def test_sparse_transpose_adds_in_place(case: Case, group: tuple[int, ...]) -> None:
    """ref after = ref before + f^T(ct), with one addupdate and no array of the operand's size."""
    x = case.args[0]
    ct = tangent_like(case.prim.evaluate(*case.args)[0], seed=30)
    dense = evaluate(transposed(case.prim, case.args, group, False), [*case.args[1:], ct])
    program = transposed(case.prim, case.args, group, in_place=True)
    ref = normal(*x.shape, seed=40)
    before = ref.copy()
    assert evaluate(program, [ref, *case.args[1:], ct]) == []
    np.testing.assert_allclose(ref, before + (dense[0] if dense else 0), rtol=1e-12)
    assert [type(eqn.prim) for eqn in program.eqns] == ([AddUpdate] if ct.size else [])


def test_sparse_primitives_are_those_that_read_a_part() -> None:
    sparse = {prim for prim, rules in DEFAULT_RULES.rules.items() if rules.sparse}
    assert {prims.Slice, prims.DynamicSlice, index.Gather} <= sparse
    assert not {prims.Pad, index.Scatter, prims.ReduceSum} & sparse


def test_no_family_claims_the_primitive_of_another() -> None:
    families = declared("effax.transforms.rules", "RULES", RuleSet)
    names = [prim for family in families.values() for prim in family.rules]
    assert len(names) == len(set(names))


def test_every_primitive_of_the_library_has_rules() -> None:
    found = own_primitives().values()
    assert len(found) > 100
    assert [c.__name__ for c in found if c not in DEFAULT_RULES.rules] == []


def test_every_array_primitive_has_a_case() -> None:
    covered = {type(case.prim) for case in ALL}
    others = (
        ".refs",
        ".jit",
        ".scan",
        ".cond",
        ".while_",
        ".custom",
        ".remat",
        ".collective",
        ".shard",
        ".host",
        ".solve",
        ".keys",
        ".special",
        ".check",
    )
    arrays = {p for p in DEFAULT_RULES.rules if not p.__module__.endswith(others)}
    assert {p.__name__ for p in arrays - covered} == {"Constant", "DimValue", "Iota"}


N = 3


def stacked(x: Value, seed: int) -> Value:
    """Return ``N`` different batch elements of the type of ``x``."""
    elements = []
    for i in range(N):
        if x.dtype.kind == "b":
            elements.append(np.asarray(np.random.default_rng((seed, i)).random(x.shape) > 0.5))
        elif x.dtype.kind in "iu":
            elements.append(((np.roll(x, i) if x.ndim else x) + i).astype(x.dtype))
        elif x.dtype.names is not None:
            elements.append(np.roll(x, i))
        else:
            elements.append(np.asarray(np.roll(x, i) + x.dtype.type(0.03) * i))
    return np.stack(elements)


def batched_program(
    prim: Primitive, types: Sequence[Type], mask: Sequence[bool]
) -> tuple[Jaxpr, Sequence[bool]]:
    rule = DEFAULT_RULES.of(prim).batch
    assert not isinstance(rule, Unsupported)
    b = BatchBuilder(DEFAULT_RULES)
    outs, flags = rule(b, prim, [b.bind(t) for t in types], mask, N)
    return b.finish(outs), flags


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
def test_batching_equals_stacking(case: Case) -> None:
    """vmap(f)(xs)[i] = f(xs[i]), for every subset of batched operands."""
    for positions in subsets(range(len(case.args))):
        mask = [i in positions for i in range(len(case.args))]
        args = [
            stacked(a, i) if has else a
            for i, (a, has) in enumerate(zip(case.args, mask, strict=True))
        ]
        program, flags = batched_program(case.prim, [type_of_value(a) for a in args], mask)
        with np.errstate(all="ignore"):
            elements = [
                case.prim.evaluate(*(a[i] if has else a for a, has in zip(args, mask, strict=True)))
                for i in range(N)
            ]
        found = evaluate(program, args)
        for j, (out, flag) in enumerate(zip(found, flags, strict=True)):
            wanted = np.stack([np.asarray(outs[j]) for outs in elements])
            given = out if flag else np.broadcast_to(out, wanted.shape)
            assert given.dtype == wanted.dtype
            if given.dtype.names is not None:
                assert given.tobytes() == wanted.tobytes()
                continue
            np.testing.assert_allclose(given, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_batches_of_no_elements(case: Case) -> None:
    """The results are empty, for every subset of batched operands and two batch axes."""
    jaxpr = single(case.prim, case.args)
    for positions in subsets(range(len(case.args))):
        for last in (False, True):
            axes = [
                (a.ndim if last else 0) if i in positions else None for i, a in enumerate(case.args)
            ]
            args = [
                a if axis is None else np.zeros((*a.shape[:axis], 0, *a.shape[axis:]), a.dtype)
                for a, axis in zip(case.args, axes, strict=True)
            ]
            made = vmap(jaxpr, 0, axes).unwrap().jaxpr
            for out, type_ in zip(evaluate(made, args), jaxpr.out_types, strict=True):
                assert out.shape == (0, *type_.shape)
                assert out.dtype == type_.dtype


def test_elementwise_batching_broadcasts_scalars_no_more_than_it_must() -> None:
    x, s = normal(4, 3), normal()
    batched = type_of_value(np.zeros((N, 4, 3)))
    program, _ = batched_program(prims.Mul(), [batched, type_of_value(s)], [True, False])
    assert [eqn.prim for eqn in program.eqns] == [prims.Mul()]
    program, _ = batched_program(prims.Mul(), [batched, type_of_value(x)], [True, False])
    assert [eqn.prim.name for eqn in program.eqns] == ["broadcast_in_dim", "mul"]


def test_a_gather_at_one_place_stays_a_slice() -> None:
    """Batching the array alone adds one span to the indexer, and no pick."""
    row = index.Gather(Indexer((Pick(None),)))
    table = type_of_value(np.zeros((N, 5)))
    program, _ = batched_program(row, [table, type_of_value(ints([1, 2]))], [True, False])
    assert [eqn.prim.name for eqn in program.eqns] == ["gather"]


def slope(prim: Primitive, args: Sequence[float], position: int = 0) -> float:
    values = [np.asarray(a, np.float64) for a in args]
    _, (dy,) = pushed(prim, values, {position: np.asarray(1.0)})
    return 0.0 if dy is None else float(dy)


INF, NAN = float("inf"), float("nan")

EDGES = [
    (prims.Sqrt(), (0.0,), 0, INF),
    (prims.Cbrt(), (0.0,), 0, INF),
    (prims.Log(), (0.0,), 0, INF),
    (prims.Abs(), (0.0,), 0, 1.0),
    (prims.Sign(), (0.0,), 0, 0.0),
    (prims.Asin(), (1.0,), 0, INF),
    (prims.Acosh(), (1.0,), 0, INF),
    (prims.Tanh(), (INF,), 0, 0.0),
    (prims.Logistic(), (-INF,), 0, 0.0),
    (prims.IntegerPow(0), (0.0,), 0, 0.0),
    (prims.IntegerPow(1), (0.0,), 0, 1.0),
    (prims.IntegerPow(2), (0.0,), 0, 0.0),
    (prims.IntegerPow(-1), (0.0,), 0, -INF),
    (prims.Pow(), (0.0, 0.0), 0, 0.0),
    (prims.Pow(), (0.0, 0.0), 1, 0.0),
    (prims.Pow(), (0.0, 1.0), 0, 1.0),
    (prims.Pow(), (0.0, 2.0), 0, 0.0),
    (prims.Pow(), (0.0, 2.0), 1, 0.0),
    (prims.Pow(), (0.0, 0.5), 0, INF),
    (prims.Pow(), (-2.0, 3.0), 0, 12.0),
    (prims.Pow(), (-2.0, 3.0), 1, NAN),
    (prims.Max(), (1.0, 1.0), 0, 0.5),
    (prims.Max(), (1.0, 1.0), 1, 0.5),
    (prims.Min(), (1.0, 1.0), 1, 0.5),
    (prims.Max(), (NAN, 1.0), 0, 0.0),
    (prims.Rem(), (-5.0, 3.0), 1, 1.0),
    (prims.Clamp(), (0.0, 0.0, 1.0), 1, 0.0),
    (prims.Clamp(), (0.0, 0.5, 1.0), 1, 1.0),
    (prims.Clamp(), (0.0, 2.0, 1.0), 2, 1.0),
    (prims.Clamp(), (1.0, 0.5, 0.0), 0, 0.0),
    (prims.Nextafter(), (3.0, 4.0), 0, 1.0),
    (prims.Nextafter(), (3.0, 4.0), 1, 0.0),
    (prims.StopGradient(), (3.0,), 0, 0.0),
]


@pytest.mark.parametrize(("prim", "args", "position", "wanted"), EDGES, ids=str)
def test_derivatives_at_kinks(
    prim: Primitive, args: Sequence[float], position: int, wanted: float
) -> None:
    np.testing.assert_equal(slope(prim, args, position), wanted)


def test_a_complex_magnitude_has_slope_zero_at_zero() -> None:
    zero = np.zeros((), np.complex128)
    for prim in (prims.Abs(), prims.Sign()):
        _, (dy,) = pushed(prim, [zero], {0: np.asarray(1 + 1j)})
        assert dy == 0


def jacobian(prim: Primitive, x: Value) -> Value:
    """Row ``i``: the tangent of the result along the i-th unit vector."""
    rows = []
    for unit in np.eye(x.size):
        _, (dy,) = pushed(prim, [x], {0: unit.reshape(x.shape)})
        rows.append(np.zeros_like(prim.evaluate(x)[0]) if dy is None else dy)
    return np.stack(rows, axis=-1)


def test_equal_extreme_elements_share_the_tangent() -> None:
    for prim in (prims.ReduceMax((0,)), prims.ReduceMin((0,))):
        np.testing.assert_allclose(jacobian(prim, np.ones(4)), np.full(4, 0.25))
    pair = jacobian(prims.CumMax(0), np.ones(2))
    np.testing.assert_allclose(pair, np.array([[1, 0], [0.5, 0.5]]))


def test_products_with_zeros_have_exact_derivatives() -> None:
    one, two = np.array([0.0, 2.0, 3.0]), np.array([0.0, 0.0, 3.0])
    np.testing.assert_array_equal(jacobian(prims.ReduceProd((0,)), one), [6, 0, 0])
    np.testing.assert_array_equal(jacobian(prims.ReduceProd((0,)), two), [0, 0, 0])
    running = jacobian(prims.CumProd(0), np.array([2.0, 0.0, 3.0]))
    np.testing.assert_array_equal(running, [[1, 0, 0], [0, 2, 0], [0, 6, 0]])


@pytest.mark.parametrize("prim", [prims.ReduceProd((0,)), prims.CumProd(0)], ids=str)
def test_second_derivatives_of_products_with_zeros(prim: Primitive) -> None:
    """d²(x·y·z) along (1, 1, 0) twice is 2z, where x = y = 0."""
    x, d = np.array([0.0, 0.0, 3.0]), np.array([1.0, 1.0, 0.0])
    once = jvp(single(prim, [x]), [True]).unwrap().jaxpr
    twice = jvp(once, [True, False]).unwrap().jaxpr
    found = evaluate(twice, [x, d, d])[-1]
    np.testing.assert_allclose(np.ravel(found)[-1], 6.0)


def test_running_derivatives_take_logarithmically_many_equations() -> None:
    sizes = [
        len(jvp(single(prims.CumProd(0), [np.ones(n)]), [True]).unwrap().jaxpr.eqns)
        for n in (64, 4096)
    ]
    assert sizes[1] <= 2.2 * sizes[0]


def test_a_scatter_with_duplicates_sends_cotangents_to_the_values_that_remain() -> None:
    """Two values are written to one position: the cotangent of the first is zero."""
    prim = index.Scatter(Indexer((Pick(None),)))
    args = [np.zeros(3), np.zeros(3), ints([2, 2, 0])]
    program = transposed(prim, args, (0, 1), in_place=False)
    dx, dv = evaluate(program, [args[2], np.array([1.0, 2.0, 3.0])])
    np.testing.assert_array_equal(dx, [0, 2, 0])
    np.testing.assert_array_equal(dv, [0, 3, 1])


def test_a_clipped_read_sends_its_cotangent_to_where_it_read() -> None:
    prim = index.Gather(Indexer((Pick(None),)))
    args = [np.zeros(3), ints([7, -2, 7])]
    for in_place in (False, True):
        program = transposed(prim, args, (0,), in_place)
        ref = np.zeros(3)
        cts = np.array([1.0, 2.0, 4.0])
        given = [ref, args[1], cts] if in_place else [args[1], cts]
        outs = evaluate(program, given)
        np.testing.assert_array_equal(ref if in_place else outs[0], [2, 0, 5])


def test_a_narrow_contraction_transposes_in_the_wide_dtype() -> None:
    numbers = (((1,), (0,)), ((), ()))
    prim = prims.DotGeneral(numbers, preferred_element_type=np.dtype(np.float64))
    args = [normal(2, 3, dtype="float32"), normal(3, 4, dtype="float32")]
    program = transposed(prim, args, (0,), in_place=False)
    ct = normal(2, 4)
    (dx,) = evaluate(program, [args[1], ct])
    assert dx.dtype == np.float32
    np.testing.assert_allclose(dx, ct @ args[1].T, rtol=1e-6)


@pytest.mark.parametrize(
    ("prim", "args", "group"),
    [
        (prims.Mul(), (normal(2), normal(2)), (0, 1)),
        (prims.Div(), (normal(2), normal(2)), (1,)),
        (index.Gather(Indexer((Pick(None),))), (normal(2), normal(2)), (0, 1)),
    ],
    ids=str,
)
def test_transposing_a_nonlinear_operand_is_an_error(
    prim: Primitive, args: Sequence[Value], group: tuple[int, ...]
) -> None:
    types = [type_of_value(a) for a in args]
    b = RuleBuilder(DEFAULT_RULES)
    ins = [Linear(t, None) if i in group else b.bind(t) for i, t in enumerate(types)]
    rule = DEFAULT_RULES.of(prim).transpose
    assert not isinstance(rule, Unsupported)
    with pytest.raises(NotApplicable, match="transposed where it is not linear") as caught:
        rule(b, prim, ins, [b.bind(types[0])])
    assert prim.name in str(caught.value)
    assert "remedy" in str(caught.value)


def test_a_missing_rule_is_a_named_reason() -> None:
    outcome = jvp(single(prims.Sin(), [normal(2)]), [True], rules=NO_RULES)
    assert "no rules for sin" in str(outcome.failure())


@pytest.mark.slow
@pytest.mark.jax
def test_derivatives_at_kinks_match_jax() -> None:
    """Derivatives differ on purpose only where those of JAX are nan or undefined."""
    jax = pytest.importorskip("jax")
    lax = jax.lax
    named = {"integer_pow": None, "stop_gradient": lax.stop_gradient, "nextafter": None}
    with jax.enable_x64(True):
        for prim, args, position, wanted in EDGES:
            if isinstance(prim, prims.IntegerPow):
                f = partial(lax.integer_pow, y=prim.y)
            elif prim.name in named and named[prim.name] is None:
                continue
            else:
                f = named.get(prim.name) or getattr(lax, prim.name)
            theirs = float(jax.grad(f, argnums=position)(*args))
            assert np.isnan(theirs) or theirs == wanted, (prim, args)


@pytest.mark.slow
@pytest.mark.jax
@pytest.mark.parametrize("name", ["cummax", "cummin", "cumprod"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_tangents_with_ties_match_jax(name: str, reverse: bool) -> None:
    jax = pytest.importorskip("jax")
    ours = {"cummax": prims.CumMax, "cummin": prims.CumMin, "cumprod": prims.CumProd}[name]
    x = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 2.0, 2.0])
    with jax.enable_x64(True):
        theirs = jax.jacfwd(partial(getattr(jax.lax, name), reverse=reverse))(x)
    np.testing.assert_allclose(jacobian(ours(0, reverse), x), np.asarray(theirs))


@pytest.mark.parametrize("prim", [prims.Max(), prims.Min()])
def test_derivatives_of_extrema_do_not_compare_the_result(prim: Primitive) -> None:
    # XLA may compute an operand twice, rounded otherwise: no copy then equals the result.
    b = Builder([array_type((3,), "float32")] * 2)
    made = jvp(b.finish([b(prim, *b.binders)]), (True, True)).unwrap().jaxpr
    compared = [a for e in made.eqns if e.prim.name in ("eq", "ge", "le") for a in e.ins]
    assert compared
    assert {*compared} <= {*made.binders}
