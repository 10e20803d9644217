from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest

from effax.ir.analysis.check import checked
from effax.ir.build import Builder, lit
from effax.ir.eval.numpy import evaluate, literal_value
from effax.ir.indexing import Indexer, Span
from effax.ir.prims import Add, AddUpdate, Cond, Freeze, Get, Jit, Mul, Neg, NewRef, Scan, Swap
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.text.parser import parse
from effax.ir.types import array_type, ref_type
from tests.unit.building import ALL, F32, I32, REF, VEC, WEAK, chain, program

Value = np.ndarray


def vec(*values: float) -> Value:
    return np.array(values, np.float32)


def num(value: float) -> Value:
    return np.asarray(value, np.float32)


def results(jaxpr: Jaxpr, *args: Value) -> list[object]:
    return [out.tolist() for out in evaluate(checked(jaxpr), args)]


def test_equations_are_run_in_order() -> None:
    x, y = vec(1, 2, 3), vec(4, 5, 6)
    (found,) = evaluate(chain(4), [x, y])
    np.testing.assert_allclose(found, np.sin((x + 2) * y) + y, rtol=1e-6)


def test_arguments_and_literals_may_be_results() -> None:
    jaxpr = Jaxpr(
        [Var(0, F32)], [], [Lit(2.0, F32), Var(0, F32), Lit(True, array_type((), "bool"))]
    )
    assert results(jaxpr, num(7)) == [2.0, 7.0, True]


def test_the_number_of_arguments_is_checked() -> None:
    with pytest.raises(ValueError, match="takes 2 arguments, not 1"):
        evaluate(chain(1), [vec(1, 2, 3)])


@pytest.mark.parametrize(
    ("lit", "dtype"),
    [(Lit(1.5, array_type((), "bfloat16")), "bfloat16"), (Lit(3, WEAK), "float32")],
)
def test_a_literal_has_the_dtype_of_its_type(lit: Lit, dtype: str) -> None:
    value = literal_value(lit)
    assert value.dtype.name == dtype
    assert value.shape == ()
    assert not value.flags.writeable


def test_a_reference_is_its_buffer() -> None:
    def body(b: Builder, r: Var, x: Var) -> list[Atom]:
        b.emit(AddUpdate(ALL), [r, x])
        (old,) = b.emit(Swap(ALL), [r, b(Neg(), b(Get(ALL), r))])
        return [old]

    buffer = vec(1, 2, 3)
    address = buffer.ctypes.data
    assert results(program([REF, VEC], body), buffer, vec(10, 10, 10)) == [[11, 12, 13]]
    assert buffer.tolist() == [-11, -12, -13]
    assert buffer.ctypes.data == address


def test_a_new_reference_is_a_copy_and_so_is_what_it_is_frozen_to() -> None:
    def body(b: Builder, x: Var) -> list[Atom]:
        r = b(NewRef(), x)
        before = b(Get(ALL), r)
        b.emit(AddUpdate(ALL), [r, x])
        return [before, b(Freeze(), r), x]

    x = vec(1, 2, 3)
    assert results(program([VEC], body), x) == [[1, 2, 3], [2, 4, 6], [1, 2, 3]]
    assert x.tolist() == [1, 2, 3]


def test_a_transposed_view_makes_a_reference_of_its_own() -> None:
    table = array_type((2, 3), "float32")
    jaxpr = program([table], lambda b, x: [b(Freeze(), b(NewRef(), x))])
    x = np.arange(6, dtype=np.float32).reshape(3, 2).T
    assert results(jaxpr, x) == [x.tolist()]


@pytest.mark.parametrize(("reverse", "wanted"), [(False, [1, 3, 6]), (True, [6, 5, 3])])
def test_a_scan_carries_and_stacks(reverse: bool, wanted: list[float]) -> None:
    def step(b: Builder, c: Var, x: Var) -> list[Atom]:
        total = b(Add(), c, x)
        return [total, total]

    scan = Scan(program([F32, F32], step), 3, reverse, 0, 1)
    jaxpr = program([VEC], lambda b, xs: b.emit(scan, [lit(0, F32), xs]))
    assert results(jaxpr, vec(1, 2, 3)) == [6, wanted]


def test_a_scan_without_iterations() -> None:
    scan = Scan(program([F32, F32], lambda b, c, x: [x, x]), 0, False, 0, 1)
    empty = array_type((0,), "float32")
    jaxpr = program([F32, empty], lambda b, c, xs: b.emit(scan, [c, xs]))
    assert results(jaxpr, num(5), vec()) == [5, []]


def test_a_scanned_reference_is_passed_as_views_of_its_elements() -> None:
    table = ref_type(array_type((3, 2), "float32"))
    part = ref_type(array_type((2,), "float32"))
    half = Indexer((Span(0, 2),))

    def step(b: Builder, row: Var, x: Var) -> list[Atom]:
        b.emit(AddUpdate(half), [row, x])
        return []

    pairs = array_type((3, 2), "float32")
    scan = Scan(program([part, pairs.update(shape=(2,))], step), 3, False, 0, 0)
    jaxpr = program([table, pairs], lambda b, r, xs: b.emit(scan, [r, xs]))
    buffer = np.zeros((3, 2), np.float32)
    evaluate(checked(jaxpr), [buffer, np.arange(6, dtype=np.float32).reshape(3, 2)])
    assert buffer.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_scan_over_cells_without_axes_writes_them() -> None:
    cell = ref_type(F32)

    def step(b: Builder, r: Var) -> list[Atom]:
        old = b(Get(Indexer(())), r)
        b.emit(Swap(Indexer(())), [r, b(Mul(), old, old)])
        return []

    scan = Scan(program([cell], step), 3, False, 0, 0)
    buffer = vec(1, 2, 3)
    evaluate(checked(program([REF], lambda b, r: b.emit(scan, [r]))), [buffer])
    assert buffer.tolist() == [1, 4, 9]


def test_the_condition_of_a_loop_sees_what_its_body_writes() -> None:
    text = """
    { lambda ; a:Ref{i32[]}. let
        b:i32[] = while[
          cond={ lambda ; a:Ref{i32[]} b:i32[]. let
              c:i32[] <- a[...]
              d:bool[] = lt c 5:i32[]
            in (d,) }
          body={ lambda ; a:Ref{i32[]} b:i32[]. let
              a[...] += 1:i32[]
              c:i32[] = add b 10:i32[]
            in (c,) }
          n_consts=1
        ] a 0:i32[]
      in (b,) }
    """
    buffer = np.asarray(2, np.int32)
    assert results(parse(text), buffer) == [30]
    assert buffer == 5


@pytest.mark.parametrize(("index", "wanted"), [(-3, 0), (0, 0), (1, 1), (2, 2), (9, 2)])
def test_a_branch_is_chosen_by_its_clamped_number(index: int, wanted: float) -> None:
    branches = tuple(program([], lambda b, v=v: [lit(v, F32)]) for v in range(3))
    jaxpr = program([I32], lambda b, i: b.emit(Cond(branches), [i]))
    assert results(jaxpr, np.asarray(index, np.int32)) == [wanted]


@pytest.mark.parametrize("flag", [False, True])
def test_only_the_chosen_branch_has_effects(flag: bool) -> None:
    def write(b: Builder, r: Var, value: float) -> list[Atom]:
        b.emit(AddUpdate(Indexer((Span(0, 3),))), [r, b(Mul(), b(Get(ALL), r), lit(value, VEC))])
        return []

    branches = tuple(program([REF], lambda b, r, v=v: write(b, r, v)) for v in (10.0, 20.0))
    jaxpr = program([array_type((), "bool"), REF], lambda b, p, r: b.emit(Cond(branches), [p, r]))
    buffer = vec(1, 1, 1)
    evaluate(checked(jaxpr), [np.asarray(flag), buffer])
    assert buffer.tolist() == [21, 21, 21] if flag else [11, 11, 11]


def test_evaluation_emits_no_numpy_warnings() -> None:
    text = "{ lambda ; a:f32[]. let b:f32[] = div a 0.0:f32[]; c:f32[] = sub b b in (b, c) }"
    inf, nan = evaluate(parse(text), [num(1)])
    assert np.isinf(inf)
    assert np.isnan(nan)


def test_a_program_of_many_equations_needs_no_stack() -> None:
    (found,) = evaluate(chain(9_000), [vec(1, 2, 3), vec(0.5, 0.5, 0.5)])
    assert np.isfinite(found).all()


def test_loop_bodies_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return a body, and a call in it, is looked at once, however long a loop is."""
    half = parse("{ lambda ; a:f32[3]. let b:f32[3] = mul a 0.5:f32[] in (b,) }")
    b = Builder([F32, array_type((3,), np.float32)])
    (halved,) = b.emit(Jit(half), [b.binders[1]])
    (more,) = b.emit(Add(), [b.binders[0], lit(1.0, F32)])
    body = b.finish([more, halved, more])
    evaluation = import_module("effax.ir.eval.numpy")
    prepared: list[Jaxpr] = []
    whole: Callable[[Jaxpr], Callable[..., list[Value]]] = evaluation._prepared

    def counted(jaxpr: Jaxpr) -> Callable[..., list[Value]]:
        prepared.append(jaxpr)
        return whole(jaxpr)

    monkeypatch.setattr(evaluation, "_prepared", counted)
    scan = Scan(body, length=20, reverse=False, n_consts=0, n_carry=2)
    last, small, stacked = scan.evaluate(num(0), vec(1, 1, 1))
    assert last.item() == 20
    assert small[0] == 0.5**20
    assert stacked.tolist() == list(range(1, 21))
    assert prepared == [body, half]
