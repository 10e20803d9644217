"""Batching of whole programs: control flow, references, axes, errors, size and speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from returns.result import Failure

from effax.effects import Accum, ArgIndex, Write
from effax.ir import prims
from effax.ir.analysis.check import checked
from effax.ir.build import Builder, lit
from effax.ir.errors import NotApplicable, TransformError
from effax.ir.indexing import Indexer, Pick, Span
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import Cond, Gather, Jit, ReduceSum, Scan, While, refs, shape
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, Type, array_type, ref_type, type_of_value
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import NO_RULES
from effax.transforms.jvp import jvp
from effax.transforms.vmap.common import UnbatchedRefWrite
from effax.transforms.vmap.engine import Vmapped, vmap
from tests.counting import calls
from tests.unit import building as p
from tests.unit.building import add, count, get, number, primitives, program, run, swap
from tests.unit.transforms.array_cases import indexers

N = 3
F, F3, R, R3 = p.F, p.F3, p.R, p.R3
INT, B = array_type((), "int32"), array_type((), "bool")


def batch_of(type_: Type, seed: int) -> Value:
    """Return ``N`` batch elements: numbers from -1 to 1, integers from 0 to 2."""
    rng = np.random.default_rng(seed)
    sizes = (N, *type_.shape)
    if type_.dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, sizes), bool)
    if type_.dtype.kind in "iu":
        return np.asarray(rng.integers(0, 3, sizes), type_.dtype)
    return np.asarray(rng.uniform(-1, 1, sizes), type_.dtype)


def mapped(
    jaxpr: Jaxpr, in_axes: Sequence[int | None], out_axes: int | Sequence[int | None] | None = 0
) -> Jaxpr:
    made = vmap(jaxpr, N, in_axes, out_axes).unwrap().jaxpr
    checked(made)
    return made


def one_by_one(
    jaxpr: Jaxpr, in_axes: Sequence[int | None], args: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """Return stacked results and contents of references, from one run a batch element."""
    copies = [np.array(a) for a in args]
    rows = []
    for element in range(N):
        given = [
            a if axis is None else np.moveaxis(a, axis, 0)[element]
            for a, axis in zip(copies, in_axes, strict=True)
        ]
        outs, cells = run(jaxpr, given)
        rows.append(outs)
        feed = iter(cells)
        for i, (t, axis) in enumerate(zip(jaxpr.in_types, in_axes, strict=True)):
            if isinstance(t, RefType) and axis is None:
                copies[i][...] = next(feed)
            elif isinstance(t, RefType):
                np.moveaxis(copies[i], axis or 0, 0)[element] = next(feed)
    contents = [a for a, t in zip(copies, jaxpr.in_types, strict=True) if isinstance(t, RefType)]
    return [np.stack(column) for column in zip(*rows, strict=True)], contents


def arguments(jaxpr: Jaxpr, in_axes: Sequence[int | None], seed: int = 0) -> list[Value]:
    args = []
    for i, (type_, axis) in enumerate(zip(jaxpr.in_types, in_axes, strict=True)):
        batch = batch_of(type_, seed + i)
        args.append(batch[0] if axis is None else np.moveaxis(batch, 0, axis))
    return args


def agrees(
    jaxpr: Jaxpr, in_axes: Sequence[int | None], args: Sequence[Value] | None = None
) -> Jaxpr:
    """Return the batched program, checked against one run a batch element."""
    given = arguments(jaxpr, in_axes) if args is None else list(args)
    made = mapped(jaxpr, in_axes)
    outs, cells = run(made, given)
    wanted_outs, wanted_cells = one_by_one(jaxpr, in_axes, given)
    for found, wanted in zip([*outs, *cells], [*wanted_outs, *wanted_cells], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    return made


def changed(jaxpr: Jaxpr, index: int) -> bool:
    return any(isinstance(e, Accum | Write) for e in jaxpr.effects.on(ArgIndex(index)))


def placements(jaxpr: Jaxpr) -> Iterator[tuple[int | None, ...]]:
    """Every choice of batched inputs; references that are changed are batched in each."""
    choices: list[tuple[int | None, ...]] = [
        (0,) if isinstance(t, RefType) and changed(jaxpr, i) else (0, None)
        for i, t in enumerate(jaxpr.in_types)
    ]
    yield from product(*choices)


@pytest.mark.parametrize("name", sorted(p.PROGRAMS))
def test_vmap_equals_a_loop_over_batch_elements(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    for in_axes in placements(jaxpr):
        agrees(jaxpr, in_axes)


@pytest.mark.parametrize("name", sorted(p.PROGRAMS))
def test_vmap_over_the_last_axis_of_every_input(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    agrees(jaxpr, [len(t.shape) for t in jaxpr.in_types])


@pytest.mark.parametrize("name", sorted(p.PROGRAMS))
def test_nested_vmap_equals_one_vmap(name: str) -> None:
    """vmap(vmap(f)) over two axes = vmap(f) over both as one."""
    jaxpr = p.PROGRAMS[name]()
    every = [0] * len(jaxpr.binders)
    once = vmap(jaxpr, 2 * N, every).unwrap().jaxpr
    twice = vmap(mapped(jaxpr, every), 2, every).unwrap().jaxpr
    checked(twice)
    rng = np.random.default_rng(5)
    args = []
    for t in jaxpr.in_types:
        x = rng.uniform(0, 2, (2, N, *t.shape))
        args.append(np.asarray(x, t.dtype))
    outs, cells = run(twice, args)
    flat_outs, flat_cells = run(once, [a.reshape(2 * N, *a.shape[2:]) for a in args])
    for found, wanted in zip([*outs, *cells], [*flat_outs, *flat_cells], strict=True):
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(p.PROGRAMS))
def test_vmap_commutes_with_discharge(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    every = [0] * len(jaxpr.binders)
    args = arguments(jaxpr, every)
    outs, cells = run(mapped(jaxpr, every), args)
    pure = discharge(jaxpr).unwrap()
    batch = vmap(pure.jaxpr, N, every).unwrap().jaxpr
    found, _ = run(batch, args)
    for i, contents in zip(pure.changed, found[pure.n_outs :], strict=True):
        position = sum(isinstance(t, RefType) for t in jaxpr.in_types[:i])
        np.testing.assert_allclose(contents, cells[position], rtol=1e-9)
    for a, c in zip(found[: pure.n_outs], outs, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-9)


@pytest.mark.parametrize("name", sorted(p.PROGRAMS))
def test_vmap_commutes_with_jvp(name: str) -> None:
    jaxpr = p.PROGRAMS[name]()
    mask = tuple(t.dtype.kind == "f" for t in jaxpr.in_types)
    every = [0] * len(jaxpr.binders)
    first = jvp(mapped(jaxpr, every), mask).unwrap().jaxpr
    inner = jvp(jaxpr, mask).unwrap().jaxpr
    second = mapped(inner, [0] * len(inner.binders))
    args = arguments(inner, [0] * len(inner.binders))
    outs, cells = run(first, args)
    other_outs, other_cells = run(second, args)
    for found, wanted in zip([*outs, *cells], [*other_outs, *other_cells], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_results_have_the_requested_out_axes() -> None:
    jaxpr = program([F3, F], lambda b, x, y: [p.sin(b, x), p.sin(b, y), y, number(2.0, F)])
    made = mapped(jaxpr, [1, None], [-1, 0, None, None])
    assert [str(t) for t in made.out_types] == ["f64[3,3]", "f64[3]", "f64[]", "f64[]"]
    x, y = np.arange(9.0).reshape(3, 3), np.asarray(0.5)
    (first, second, third, fourth), _ = run(made, [x, y])
    np.testing.assert_allclose(first, np.sin(x))
    np.testing.assert_allclose(second, np.full(3, np.sin(0.5)))
    assert [float(third), float(fourth)] == [0.5, 2.0]
    assert vmap(jaxpr, N, [1, None], [0, 1, None, None]).failure().what.startswith("vmap: the")


def test_vmap_without_batched_inputs() -> None:
    jaxpr = program([F], lambda b, x: [p.sin(b, x)])
    made = vmap(jaxpr, N, [None]).unwrap()
    assert made.out_batched == (True,)
    (out,), _ = run(made.jaxpr, [np.asarray(0.3)])
    np.testing.assert_allclose(out, np.full(N, np.sin(0.3)))


def test_names_and_captured_constants_are_kept() -> None:
    jaxpr = program([F, F], lambda b, x, y: [p.mul(b, x, y)]).replace(n_consts=1, names=["w", "x"])
    made = mapped(jaxpr, [None, 0])
    assert (made.n_consts, made.names) == (1, ("w", "x"))


def test_equal_inputs_have_the_same_result() -> None:
    first, second = (vmap(p.conds(), N, [0, 0, 0, 0]).unwrap() for _ in range(2))
    assert isinstance(first, Vmapped)
    assert first.jaxpr == second.jaxpr


WRONG = [
    ([0], 0, "vmap needs one entry for each input"),
    ([0, 0, 0], 0, "vmap needs one entry for each input"),
    ([0, 0], [0, 0], "for each result"),
    ([0, 2], 0, "the batch axis of weights is out of range"),
    ([-3, 0], 0, "the batch axis of x is out of range"),
    ([0, True], 0, "the batch axis of weights is out of range"),
    ([0, 0.5], 0, "the batch axis of weights is out of range"),
    ([0, 0], 3, "the batch axis of result 0 is out of range"),
    ([0, 0], None, "result 0 is batched"),
]


@pytest.mark.parametrize(("in_axes", "out_axes", "message"), WRONG)
def test_wrong_axes_are_reported_by_argument_name(
    in_axes: list[int | None], out_axes: int | list[int | None] | None, message: str
) -> None:
    types = [F3, F]
    jaxpr = program(types, lambda b, x, w: [p.mul(b, x, w)]).replace(names=["x", "weights"])
    outcome = vmap(jaxpr, N, in_axes, out_axes)
    assert isinstance(outcome, Failure)
    assert message in str(outcome.failure())


@pytest.mark.parametrize("size", [-1, 2.5, True, "4"])
def test_a_wrong_batch_size_is_an_error(size: int) -> None:
    jaxpr = program([F], lambda b, x: [x])
    assert "batch size" in str(vmap(jaxpr, size, [0]).failure())


def test_an_empty_batch() -> None:
    made = vmap(p.straight(), 0, [0, None, 0]).unwrap().jaxpr
    outs, _ = run(made, [np.zeros(0), np.asarray(1.0), np.zeros(0)])
    assert [out.shape for out in outs] == [(0,)] * 5


def test_a_missing_rule_error_names_the_primitive_and_equation() -> None:
    jaxpr = program([F], lambda b, x: [p.sin(b, x)])
    error = vmap(jaxpr, N, [0], rules=NO_RULES).failure()
    assert isinstance(error, NotApplicable)
    assert error.equation is not None
    assert "sin" in error.equation


# Unbatched references.


def accumulating(*body: str) -> Jaxpr:
    """Adds to a shared reference: a value, at an index, in a scan, in a call, in a branch."""

    def added(b: Builder, r: Atom, x: Atom, i: Atom) -> list[Atom]:
        if "whole" in body:
            add(b, r, b(shape.BroadcastInDim((3,), ()), x))
        if "row" in body:
            add(b, r, p.sin(b, x), Pick(None), at=[i])
        if "fixed" in body:
            add(b, r, p.mul(b, x, x), Pick(1))
        if "window" in body:
            add(b, r, b(shape.BroadcastInDim((2,), ()), x), Span(None, 2), at=[i])
        return [p.mul(b, x, x)]

    types: list[Type] = [R3, F, INT]
    inner = program(types, added)

    def step(b: Builder, r: Atom, i: Atom, c: Atom, x: Atom) -> list[Atom]:
        (y,) = b.emit(Jit(inner, "add"), [r, p.mul(b, x, c), i])
        return [p.plus(b, y, c), y]

    loop = Scan(program([R3, INT, F, F], step), 2, False, 2, 1)

    def whole(b: Builder, r: Atom, x: Atom, i: Atom, xs: Atom) -> list[Atom]:
        outs: list[Atom] = list(b.emit(Jit(inner, "add"), [r, x, i]))
        if "scan" in body:
            outs += b.emit(loop, [r, i, x, xs])
        return outs

    return program([R3, F, INT, p.f(2)], whole)


SHARED = [
    ("whole",), ("row",), ("fixed",), ("window",), ("scan", "row"), ("scan", "whole", "window"),
]  # fmt: skip


@pytest.mark.parametrize("body", SHARED, ids=str)
def test_accumulations_into_a_shared_reference_are_summed(body: tuple[str, ...]) -> None:
    """An unbatched value is added once a batch element."""
    jaxpr = accumulating(*body)
    for flags in product((0, None), repeat=3):
        made = agrees(jaxpr, [None, *flags])
        assert set(made.effects) == {Accum(ArgIndex(0))}


def test_adding_to_rows_of_a_shared_table_stays_sparse() -> None:
    """One addupdate with a batch of indices: no batched table, no one-hot rows."""
    table = ref_type(p.f(1000, 4))

    def body(b: Builder, r: Atom, i: Atom, x: Atom) -> list[Atom]:
        add(b, r, x, Pick(None), Span(0, 4), at=[i])
        return []

    made = mapped(program([table, INT, p.f(4)], body), [None, 0, 0])
    assert [type(eqn.prim) for eqn in made.eqns] == [refs.AddUpdate]


def test_a_shared_reference_may_be_read() -> None:
    def body(b: Builder, r: Atom, i: Atom, x: Atom) -> list[Atom]:
        return [p.mul(b, get(b, r, Pick(None), at=[i]), x), get(b, r)]

    jaxpr = program([R3, INT, F], body)
    for flags in product((0, None), repeat=2):
        agrees(jaxpr, [None, *flags])


def test_an_unbatched_write_to_a_shared_reference_is_made_once() -> None:
    jaxpr = program([R, F, F], lambda b, r, x, y: [p.mul(b, swap(b, r, x), y), get(b, r)])
    outs, (cell,) = run(
        mapped(jaxpr, [None, None, 0]), [np.asarray(5.0), np.asarray(2.0), np.ones(N)]
    )
    assert cell == 2.0
    np.testing.assert_array_equal(outs[0], np.full(N, 5.0))


def writing(kind: str) -> Jaxpr:
    """Writes to a reference that is called ``table``, in several ways."""

    def direct(b: Builder, r: Atom, x: Atom, i: Atom) -> list[Atom]:
        if kind == "index":
            swap(b, r, number(1.0, F), Pick(None), at=[i])
        else:
            swap(b, r, x, Pick(0))
        return []

    def constant(b: Builder, r: Atom, x: Atom, i: Atom) -> list[Atom]:
        swap(b, r, number(1.0, F), Pick(0))
        return []

    types: list[Type] = [R3, F, INT]
    inner, quiet = program(types, direct), program(types, lambda b, *_: [])
    if kind == "jit":
        prim: Primitive = Jit(inner, "f")
    elif kind == "scan":
        prim = Scan(inner, 2, False, 3, 0)
    elif kind == "cond":
        types = [R3, F, INT]
        cond = Cond((quiet, program(types, constant)))
        return program(
            types,
            lambda b, r, x, i: b.emit(cond, [b(prims.Gt(), x, number(0.0, F)), r, x, i]),
        ).replace(names=["table", "x", "i"])
    else:
        return inner.replace(names=["table", "x", "i"])

    def whole(b: Builder, x: Atom, r: Atom, i: Atom) -> list[Atom]:
        return list(b.emit(prim, [r, x, i]))

    return program([F, R3, INT], whole).replace(names=["x", "table", "i"])


@pytest.mark.parametrize("kind", ["value", "index", "jit", "scan", "cond"])
def test_a_batched_write_to_a_shared_reference_is_an_error(kind: str) -> None:
    jaxpr = writing(kind)
    in_axes = [None if isinstance(t, RefType) else 0 for t in jaxpr.in_types]
    error = vmap(jaxpr, N, in_axes).failure()
    assert isinstance(error, UnbatchedRefWrite)
    assert isinstance(error, TransformError)
    assert "table is not batched" in str(error)
    assert "may differ between batch elements" in str(error)
    assert "batch the reference" in str(error)
    assert error.equation is not None


def indexing(indexer: Indexer, operands: Sequence[Value], kind: str, masked: bool) -> Jaxpr:
    """Reads, writes or adds to a part of a reference, in one branch of two where ``masked``."""
    cell = ref_type(p.f(4, 5, 3))
    (part,) = Gather(indexer).evaluate(np.zeros((4, 5, 3)), *operands)
    types: list[Type] = [cell, p.f(*part.shape), *map(type_of_value, operands)]

    def use(b: Builder, r: Atom, value: Atom, *at: Atom) -> list[Atom]:
        if kind == "add":
            b.emit(refs.AddUpdate(indexer), [r, value, *at])
            return [value]
        if kind == "swap":
            return [b(refs.Swap(indexer), r, value, *at)]
        return [b(refs.Get(indexer), r, *at)]

    def unused(b: Builder, r: Atom, value: Atom, *at: Atom) -> list[Atom]:
        return [value]

    if not masked:
        return program(types, use)
    branches = Cond((program(types, unused), program(types, use)))
    return program([*types, B], lambda b, *args: b.emit(branches, [args[-1], *args[:-1]]))


def rolled(x: Value) -> Value:
    return np.stack([np.roll(x, i) + np.asarray(i, x.dtype) for i in range(N)])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["get", "swap", "add"])
@pytest.mark.parametrize(("indexer", "operands"), indexers())
def test_every_indexer_on_a_reference(
    indexer: Indexer, operands: tuple[Value, ...], kind: str, masked: bool
) -> None:
    jaxpr = indexing(indexer, operands, kind, masked)
    mask = [np.array([True, False, True])] if masked else []
    for flags in product((0, None), repeat=1 + len(operands)):
        in_axes = [0, *flags, *[0] * masked]
        batch = arguments(jaxpr, in_axes)[:2]
        at = [o if f is None else rolled(o) for o, f in zip(operands, flags[1:], strict=True)]
        agrees(jaxpr, in_axes, [*batch, *at, *mask])
        if kind != "swap":
            agrees(jaxpr, [None, *in_axes[1:]], [batch[0][0], batch[1], *at, *mask])


# Batched predicates.


def test_batched_branches_mask_their_writes() -> None:
    jaxpr = p.conds()
    index = np.array([0, 1, 0], np.int32)
    args = [np.array([1.0, 2.0, 3.0]), index, np.array([0.1, 0.2, 0.3]), np.ones(N)]
    made = agrees(jaxpr, [0, 0, 0, 0], args)
    assert count(made, Cond) == 0
    assert count(agrees(jaxpr, [0, None, 0, 0]), Cond) == 1


def test_an_unbatched_predicate_keeps_the_cond() -> None:
    pure = Cond((program([F], lambda b, x: [b(prims.Neg(), x)]), program([F], lambda b, x: [x])))
    jaxpr = program([B, F], lambda b, q, x: b.emit(pure, [q, x]))
    assert [type(e.prim) for e in agrees(jaxpr, [None, 0]).eqns] == [Cond]
    made = agrees(jaxpr, [0, None])
    assert [type(e.prim) for e in made.eqns[-1:]] == [prims.SelectN]
    # Nothing is masked where nothing has effects, and derivatives are constant.
    assert count(made, prims.And, prims.Not) == 0


def test_three_branches_and_out_of_range_indices() -> None:
    def branch(k: float) -> Jaxpr:
        def body(b: Builder, r: Atom, x: Atom) -> list[Atom]:
            add(b, r, number(k, F))
            return [p.mul(b, x, number(k, F)), b(shape.BroadcastInDim((2,), ()), x)]

        return program([R, F], body)

    jaxpr = program(
        [R, INT, F],
        lambda b, r, i, x: b.emit(Cond(tuple(map(branch, (1.0, 10.0, 100.0)))), [i, r, x]),
    )
    index = np.array([-4, 1, 9], np.int32)
    agrees(jaxpr, [0, 0, 0], [np.zeros(N), index, np.ones(N)])
    made = mapped(jaxpr, [None, 0, 0])
    _, (cell,) = run(made, [np.zeros(()), index, np.ones(N)])
    assert cell == 111.0


def test_masked_accumulations_into_a_shared_reference() -> None:
    """In branches in loops in branches."""

    def leaf(b: Builder, r: Atom, i: Atom, x: Atom) -> list[Atom]:
        add(b, r, x, Pick(None), at=[i])
        add(b, r, number(1.0, F), Pick(0))
        return []

    types: list[Type] = [R3, INT, F]
    quiet = program(types, lambda b, r, i, x: [])
    inner = Cond((quiet, program(types, leaf)))

    def step(b: Builder, r: Atom, i: Atom, x: Atom, n: Atom) -> list[Atom]:
        b.emit(inner, [b(prims.Gt(), n, x), r, i, n])
        b.emit(Jit(program(types, leaf), "leaf"), [r, i, x])
        return []

    loop = Scan(program([R3, INT, F, F], step), 3, False, 3, 0)

    def outer(b: Builder, r: Atom, i: Atom, x: Atom, ns: Atom) -> list[Atom]:
        return list(b.emit(loop, [r, i, x, ns]))

    wide: list[Type] = [R3, INT, F, F3]
    branch = Cond((program(wide, lambda b, *_: []), program(wide, outer)))
    jaxpr = program([R3, INT, F, F3, B], lambda b, r, i, x, ns, q: b.emit(branch, [q, r, i, x, ns]))
    there = np.array([False, True, True])
    for flags in product((0, None), repeat=3):
        given = arguments(jaxpr, [None, *flags, 0])
        agrees(jaxpr, [None, *flags, 0], [*given[:-1], there])
        agrees(jaxpr, [None, *flags, None])
    agrees(jaxpr, [0, 0, 0, 0, 0], [*arguments(jaxpr, [0] * 5)[:-1], there])


def countdown(effects: bool) -> Jaxpr:
    """Iterate up to each counter; the condition adds to ``s``, the body writes ``r``."""

    def test(b: Builder, r: Atom, s: Atom, n: Atom, x: Atom) -> list[Atom]:
        if effects:
            add(b, s, number(1.0, F))
        return [b(prims.Gt(), n, lit(0, INT))]

    def step(b: Builder, r: Atom, s: Atom, n: Atom, x: Atom) -> list[Atom]:
        y = p.sin(b, p.plus(b, x, number(1.0, F)))
        if effects:
            old = swap(b, r, y)
            y = p.mul(b, y, p.plus(b, old, get(b, s)))
        return [b(prims.Sub(), n, lit(1, INT)), y]

    types: list[Type] = [R, R, INT, F]
    loop = While(program(types, test), program(types, step), 2)
    return program(types, lambda b, r, s, n, x: b.emit(loop, [r, s, n, x]))


@pytest.mark.parametrize("effects", [False, True])
def test_each_batch_element_runs_until_its_own_condition_fails(effects: bool) -> None:
    counters = np.array([0, 3, 1], np.int32)
    args: list[Value] = [np.zeros(N), np.ones(N), counters, np.array([0.1, 0.2, 0.3])]
    made = agrees(countdown(effects), [0, 0, 0, 0], args)
    assert count(made, While) == 1
    agrees(countdown(effects), [0, 0, 0, None], [*args[:3], np.asarray(0.4)])
    agrees(countdown(effects), [0, 0, None, 0], [*args[:2], np.asarray(2, np.int32), args[3]])


def test_a_loop_ends_if_the_mask_is_empty() -> None:
    """The loop ends for the elements that take the branch; for the others it would not."""
    types: list[Type] = [F]
    loop = While(
        program(types, lambda b, x: [b(prims.Ne(), x, number(0.0, F))]),
        program(types, lambda b, x: [b(prims.Sub(), x, number(1.0, F))]),
        0,
    )
    other = program(
        types, lambda b, x: b.emit(Jit(program(types, lambda c, y: c.emit(loop, [y])), "f"), [x])
    )
    cond = Cond((program(types, lambda b, x: [x]), other))
    jaxpr = program([B, F], lambda b, q, x: b.emit(cond, [q, x]))
    q = np.array([True, False, True])
    agrees(jaxpr, [0, 0], [q, np.array([2.0, 0.5, 5.0])])
    # One loop for the batch, without active elements.
    agrees(jaxpr, [0, None], [np.zeros(N, bool), np.asarray(0.5)])


def test_nested_loops_with_batched_predicates() -> None:
    inner_types: list[Type] = [R, INT, F]
    inner = While(
        program(inner_types, lambda b, r, n, x: [b(prims.Gt(), n, lit(0, INT))]),
        program(
            inner_types,
            lambda b, r, n, x: [
                b(prims.Sub(), n, lit(1, INT)),
                p.plus(b, p.sin(b, x), swap(b, r, x)),
            ],
        ),
        1,
    )

    def step(b: Builder, r: Atom, n: Atom, x: Atom) -> list[Atom]:
        _, y = b.emit(inner, [r, n, x])
        return [b(prims.Sub(), n, lit(1, INT)), y]

    outer = While(inner.cond, program(inner_types, step), 1)
    jaxpr = program(inner_types, lambda b, r, n, x: b.emit(outer, [r, n, x]))
    args: list[Value] = [np.zeros(N), np.array([2, 0, 3], np.int32), np.array([0.1, 0.2, 0.3])]
    agrees(jaxpr, [0, 0, 0], args)
    agrees(jaxpr, [0, None, 0], [args[0], args[1][0], args[2]])


def test_a_reference_made_in_a_branch_needs_no_mask() -> None:
    """Writes of inactive elements to it are not observed; their effects on ``s`` are masked."""

    def branch(b: Builder, s: Atom, x: Atom) -> list[Atom]:
        r = b(refs.NewRef(), x)
        add(b, r, x)
        add(b, s, x)
        return [b(refs.Freeze(), r)]

    types: list[Type] = [R, F]
    cond = Cond((program(types, lambda b, s, x: [x]), program(types, branch)))
    jaxpr = program([B, *types], lambda b, q, s, x: b.emit(cond, [q, s, x]))
    there = np.array([True, False, True])
    made = agrees(jaxpr, [0, 0, 0], [there, *arguments(jaxpr, [0, 0, 0])[1:]])
    assert count(made, prims.SelectN) == 2
    made = agrees(jaxpr, [0, None, None], [there, *arguments(jaxpr, [0, None, None])[1:]])
    assert [v.type for e in made.eqns for v in e.outs if isinstance(v.type, RefType)] == [R]


def test_only_references_that_take_batched_values_are_batched() -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        kept, taken, empty = b(refs.NewRef(), y), b(refs.NewRef(), y), b(refs.EmptyRef(F))
        add(b, kept, y)
        add(b, taken, x)
        swap(b, empty, p.mul(b, x, get(b, taken)))
        return [b(refs.Freeze(), r) for r in (kept, taken, empty)]

    made = agrees(program([F, F], body), [0, None])
    made_refs = [str(v.type) for e in made.eqns for v in e.outs if isinstance(v.type, RefType)]
    assert made_refs == ["Ref{f64[]}", "Ref{f64[3]}", "Ref{f64[3]}"]


def test_a_reference_that_becomes_batched_late_in_a_loop() -> None:
    """The read comes before the write, in the text; in time it comes after."""

    def step(b: Builder, r: Atom, x: Atom, c: Atom) -> list[Atom]:
        old = get(b, r)
        swap(b, r, p.mul(b, c, x))
        return [p.plus(b, old, number(1.0, F)), old]

    loop = Scan(program([R, F, F], step), 1, False, 2, 1)

    def whole(b: Builder, x: Atom, c: Atom) -> list[Atom]:
        r = b(refs.NewRef(), number(0.5, F))
        first = b.emit(loop, [r, x, c])
        return [*first, *b.emit(loop, [r, x, c]), b(refs.Freeze(), r)]

    agrees(program([F, F], whole), [0, None])


def test_a_reference_whose_axis_is_elsewhere_keeps_its_kind_of_effect() -> None:
    """Reading only, or adding only, stays that."""

    def adding(b: Builder, r: Atom, x: Atom) -> list[Atom]:
        add(b, r, x, Pick(1))
        return [x]

    adds = program([R3, F], adding)
    made = agrees(adds, [1, 0])
    assert set(made.effects) == {Accum(ArgIndex(0))}
    reads = program([R3, F], lambda b, r, x: [get(b, r, Pick(1))])
    assert agrees(reads, [1, 0]).effects == reads.effects


def test_sums_over_a_scanned_unbatched_reference() -> None:
    def step(b: Builder, x: Atom, row: Atom, y: Atom) -> list[Atom]:
        add(b, row, p.mul(b, x, y))
        return []

    loop = Scan(program([F, R, F], step), 3, False, 1, 0)
    jaxpr = program([R3, F, F3], lambda b, r, x, ys: b.emit(loop, [x, r, ys]))
    for flags in product((0, None), repeat=2):
        agrees(jaxpr, [None, *flags])


def test_batched_scans_and_calls_keep_their_structure() -> None:
    made = mapped(p.scans(), [None, 0, None])
    kinds = [type(prim) for prim in primitives(made)]
    assert kinds.count(Scan) == 2
    assert ReduceSum not in kinds
    assert count(mapped(p.jits(), [0, None]), Jit) == count(p.jits(), Jit)


@pytest.mark.slow
def test_work_is_linear_in_the_number_of_equations() -> None:
    def work(n: int) -> int:
        jaxpr = p.elementwise_chain(n)
        return calls(lambda: vmap(jaxpr, N + 1, [0, 0]).unwrap())

    vmap(p.elementwise_chain(10), N + 1, [0, 0])
    assert work(10_000) < 12 * work(1_000)


def test_deep_nests_are_batched_in_linear_time() -> None:
    """Depth 12 with two calls a level would be 4096 programs, were they not kept."""
    made = vmap(p.nested_loops(12), N, [0, None]).unwrap().jaxpr
    # One equation more: the carry, which is not batched at first, is broadcast.
    assert len(made.eqns) == len(p.nested_loops(12).eqns) + 1
