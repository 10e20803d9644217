"""Every pass transforms a user-defined higher-order primitive by its declared rules and regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn

import numpy as np
import pytest
from returns.unsafe import unsafe_perform_io

from effax.ir import Builder, Jaxpr, check, evaluate, lit, size
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.prims import (
    Add,
    AddUpdate,
    Cos,
    DebugCallback,
    Get,
    HostFunction,
    Jit,
    Mul,
    Neg,
    NewRef,
    Scan,
    Sin,
)
from effax.ir.types import RefType, Type, array_type, ref_type
from effax.lowering import xla
from effax.lowering.program import compile_program
from effax.lowering.writer import HasLowering, Val, Writer
from effax.transforms import (
    GradRef,
    GradValue,
    HasRules,
    NonLinear,
    Rules,
    dce,
    discharge,
    jvp,
    linearize,
    partial_eval,
    recompose,
    transpose,
    vmap,
)
from effax.transforms.rules.common.by_definition import BY_DEFINITION

F = array_type((), "float32")
R = ref_type(F)


@dataclass(frozen=True, slots=True)
class Twice(HasRules, HasLowering):
    """``twice(*consts, *carry) -> carry``: the body applied to its own results."""

    body: Jaxpr
    n_consts: int
    name: ClassVar[str] = "twice"

    def typing(self, *ins: Type) -> Typing:
        return Typing(self.body.out_types, self.body.effects)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return evaluate(self.definition(), ins)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.body,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Twice:
        return replace(self, body=jaxprs[0])

    def regions(self) -> tuple[Region, ...]:
        outs = tuple(range(len(self.body.outs)))
        carry = tuple(self.n_consts + j for j in outs)
        return (Region(self.body, tuple(range(len(self.body.binders))), outs, carry),)

    def restrict(self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]) -> Twice:
        return Twice(jaxprs[0], sum(ins[: self.n_consts]))

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Twice:
        return Twice(jaxprs[0], self.n_consts + n)

    def definition(self, *ins: Type) -> Jaxpr:
        """Return two calls of the body."""
        b = Builder(self.body.in_types)
        consts, carry = b.binders[: self.n_consts], b.binders[self.n_consts :]
        for _ in range(2):
            carry = list(b.emit(Jit(self.body), [*consts, *carry]))
        return b.finish(carry)

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return w.call(self.definition(), ins, "twice")

    def rules(self) -> Rules[NoReturn]:
        return BY_DEFINITION


Form = Callable[[Jaxpr, int], Primitive]


def scan(body: Jaxpr, n_consts: int) -> Scan:
    return Scan(body, 2, False, n_consts, len(body.outs))


def made(form: Form, body: Jaxpr, n_consts: int) -> Jaxpr:
    """Return a program of one application."""
    b = Builder(body.in_types)
    jaxpr = b.finish(b.emit(form(body, n_consts), b.binders))
    check(jaxpr).unwrap()
    return jaxpr


def step() -> Jaxpr:
    """``r, a, b, c -> sin(a·b), cos b, -c``; the reference accumulates ``a``."""
    b = Builder([R, F, F, F])
    r, x, y, z = b.binders
    b.emit(AddUpdate(whole(())), [r, x])
    return b.finish([b(Sin(), b(Mul(), x, y)), b(Cos(), y), b(Neg(), z)])


def linear_step() -> Jaxpr:
    """``k, a -> k·a + a``."""
    b = Builder([F, F])
    k, x = b.binders
    return b.finish([b(Add(), b(Mul(), k, x), x)])


def run(jaxpr: Jaxpr, *values: object) -> list[np.ndarray]:
    """Return the results, then the final contents of the references."""
    buffers = [np.array(x, t.dtype) for x, t in zip(values, jaxpr.in_types, strict=True)]
    refs = [x for x, t in zip(buffers, jaxpr.in_types, strict=True) if isinstance(t, RefType)]
    outs = evaluate(jaxpr, buffers)
    return [*outs, *refs]


def assert_same(first: Jaxpr, second: Jaxpr, *values: object) -> None:
    check(first).unwrap()
    for x, y in zip(run(first, *values), run(second, *values), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def both(body: Jaxpr, n_consts: int) -> tuple[Jaxpr, Jaxpr]:
    return made(Twice, body, n_consts), made(scan, body, n_consts)


@pytest.mark.parametrize("used", [(True, False, False), (False, True, False), (False, False, True)])
def test_dce_removes_what_no_used_result_needs(used: tuple[bool, bool, bool]) -> None:
    mine, loop = (dce(jaxpr, used).unwrap() for jaxpr in both(step(), 1))
    assert mine.used_ins == loop.used_ins
    assert size(mine.jaxpr) == size(loop.jaxpr)
    assert_same(mine.jaxpr, loop.jaxpr, 1.0, 0.5, 0.3, 0.2)


def test_dce_keeps_what_the_next_run_reads() -> None:
    b = Builder([R, F])
    r, x = b.binders
    y = b(Get(whole(())), r)
    b.emit(AddUpdate(whole(())), [r, x])
    body = b.finish([y])

    def local(form: Form) -> Jaxpr:
        outer = Builder([F, F])
        ref = outer(NewRef(), outer.binders[0])
        return outer.finish(outer.emit(form(body, 1), [ref, outer.binders[1]]))

    mine, loop = (dce(local(form)).unwrap().jaxpr for form in (Twice, scan))
    assert size(mine) == size(loop)
    assert_same(mine, loop, 0.5, 0.25)


def test_vmap() -> None:
    axes = (0, 0, None, 0)
    mine, loop = (vmap(jaxpr, 3, axes).unwrap().jaxpr for jaxpr in both(step(), 1))
    row = [0.1, 0.2, 0.3]
    assert_same(mine, loop, row, row, 0.5, row)


def test_jvp() -> None:
    mask = (True, True, False, True)
    mine, loop = (jvp(jaxpr, mask, True).unwrap().jaxpr for jaxpr in both(step(), 1))
    assert_same(mine, loop, 1.0, 0.5, 0.3, 0.2, 0.0, 1.0, 2.0)


def test_partial_evaluation_recomposes_to_the_whole() -> None:
    for known in ((True, True, True, False), (False, True, True, True), (True,) * 4):
        mine = made(Twice, step(), 1)
        whole_again = recompose(partial_eval(mine, known).unwrap())
        assert_same(whole_again, mine, 1.0, 0.5, 0.3, 0.2)


def test_linearize() -> None:
    mine, loop = (linearize(jaxpr, (True,) * 2).unwrap() for jaxpr in both(linear_step(), 1))
    assert mine.out_tangents == loop.out_tangents == (True,)


@pytest.mark.parametrize("spec", [GradValue(), GradRef()])
def test_transposition(spec: GradValue | GradRef) -> None:
    mine, loop = (
        transpose(jaxpr, (NonLinear(), spec)).unwrap().jaxpr for jaxpr in both(linear_step(), 1)
    )
    args = (3.0, 10.0, 2.0) if spec == GradRef() else (3.0, 2.0)
    assert_same(mine, loop, *args)


def test_discharge() -> None:
    mine, loop = (discharge(jaxpr).unwrap() for jaxpr in both(step(), 1))
    assert mine.changed == loop.changed == (0,)
    assert_same(mine.jaxpr, loop.jaxpr, 1.0, 0.5, 0.3, 0.2)


@dataclass(frozen=True, eq=False)
class Note(HostFunction):
    """Appends its argument to a list."""

    log: list[float]
    label: str = "note"
    arity: int = 1

    def __call__(self, *args: Value) -> Sequence[Value]:
        self.log.append(float(args[0]))
        return []


def compiled(jaxpr: Jaxpr, *values: object) -> list[np.ndarray]:
    program = unsafe_perform_io(compile_program(jaxpr).unwrap())
    types = jaxpr.in_types
    given = [xla.put(np.asarray(x, t.dtype)) for x, t in zip(values, types, strict=True)]
    return [xla.to_numpy(x) for x in program.executable(given)]


@pytest.mark.slow
def test_effects_keep_their_order_when_it_is_lowered() -> None:
    log: list[float] = []
    b = Builder([R, F])
    r, x = b.binders
    b.emit(DebugCallback(Note(log), True), [x])
    b.emit(AddUpdate(whole(())), [r, x])
    body = b.finish([b(Add(), x, lit(1.0, F))])
    results = []
    for form in (Twice, scan):
        log.clear()
        outs = compiled(made(form, body, 1), 10.0, 0.0)
        assert log == [0.0, 1.0]
        results.append([x.tolist() for x in outs])
    assert results[0] == results[1] == [2.0, 11.0]
