"""Compiled programs with callbacks: order, errors, memory, serialization."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest
from returns.unsafe import unsafe_perform_io

from effax.effects import Io, Row, SideEffect
from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.errors import BadRule, EffaxError, IllTyped, LoweringError
from effax.ir.eval.numpy import evaluate
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import (
    AddUpdate,
    Cond,
    DebugCallback,
    Get,
    HostFunction,
    IoCallback,
    Jit,
    PureCallback,
    Scan,
    While,
)
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type, array_type, ref_type
from effax.lowering import xla
from effax.lowering.program import compile_program, stablehlo_of
from effax.lowering.rules.default import DEFAULT
from effax.lowering.stablehlo import lower
from effax.lowering.tokens import TokenCall, WithToken, thread_token
from effax.lowering.writer import TOKEN
from tests.unit.lowering.compiled import program

F = array_type((), "float32")
B = array_type((), "bool")
N = array_type((), "int32")
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, eq=False)
class Calls(HostFunction):
    """Log the arguments, and return the result of ``answer``."""

    log: list[object]
    answer: Callable[..., Sequence[Value]] = lambda *_: []
    label: str = "calls"
    arity: int = 1

    def __call__(self, *args: Value) -> Sequence[Value]:
        self.log.append([x.tolist() for x in args] if len(args) != 1 else args[0].tolist())
        return self.answer(*args)


@pytest.fixture
def log() -> list[object]:
    return []


def logger(log: list[object], ordered: bool = True) -> DebugCallback:
    return DebugCallback(Calls(log), ordered)


def ran(jaxpr: Jaxpr, *args: object) -> list[object]:
    """Return the results of the compiled program."""
    made = unsafe_perform_io(compile_program(jaxpr).unwrap())
    types = jaxpr.in_types
    buffers = [xla.put(np.asarray(x, t.dtype)) for x, t in zip(args, types, strict=True)]
    return [xla.to_numpy(out).tolist() for out in made.executable(buffers)]


def body(types: Sequence[Type], make: Callable[..., Sequence[Atom]]) -> Jaxpr:
    return program(types, make)


def test_calls_are_in_program_order_through_control_flow(
    log: list[object],
) -> None:
    callback = logger(log)

    def step(b: Builder, i: Atom, x: Atom) -> list[Atom]:
        b.emit(callback, [x])
        return [b(p.Add(), i, lit(1, N)), b(p.Add(), x, lit(1, F))]

    def again(b: Builder, i: Atom, x: Atom) -> list[Atom]:
        b.emit(logger(log, ordered=False), [i])
        return [b(p.Lt(), i, lit(2, N))]

    loop = While(body([N, F], again), body([N, F], step), 0)
    quiet = body([F], lambda b, x: [x])
    loud = body([F], lambda b, x: (b.emit(callback, [b(p.Neg(), x)]), [x])[1])
    inner = body([F], lambda b, x: b.emit(loop, [lit(0, N), x])[1:])

    def everything(b: Builder, x: Atom) -> list[Atom]:
        b.emit(callback, [lit(-1, F)])
        (y,) = b.emit(Jit(inner), [x])
        (z,) = b.emit(Cond((quiet, loud)), [b(p.Gt(), y, x), y])
        elements = Scan(body([F], lambda b, x: (b.emit(callback, [x]), [x])[1]), 3, True, 0, 1)
        (z,) = b.emit(elements, [z])
        b.emit(callback, [z])
        return [z]

    jaxpr = body([F], everything)
    found = ran(jaxpr, 5.0)
    compiled = list(log)
    log.clear()
    assert [x.tolist() for x in evaluate(jaxpr, [np.array(5.0, np.float32)])] == found
    assert compiled == log == [-1.0, 0, 5.0, 1, 6.0, 2, -7.0, 7.0, 7.0, 7.0, 7.0]


def test_every_dtype_and_shape_is_passed(log: list[object]) -> None:
    values: list[Value] = [
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.array(True),
        np.array([1 + 2j], np.complex64),
        np.arange(24, dtype=np.float64).reshape(2, 3, 4),
        np.array([1.5, -2.0], ml_dtypes.bfloat16),
        np.zeros((0, 3), np.float32),
        np.array(7, np.uint32),
    ]
    types = [array_type(x.shape, x.dtype) for x in values]
    turn = Calls(log, lambda *xs: [np.array(x, order="F") for x in reversed(xs)], arity=len(types))
    for prim in (PureCallback(turn, tuple(reversed(types))), IoCallback(turn, tuple(types[::-1]))):
        jaxpr = body(types, lambda b, *xs, prim=prim: b.emit(prim, xs))
        made = unsafe_perform_io(compile_program(jaxpr).unwrap())
        outs = made.executable([xla.put(x) for x in values])
        for x, out in zip(reversed(values), outs, strict=True):
            assert xla.to_numpy(out).dtype == x.dtype
            assert np.array_equal(xla.to_numpy(out), x)


def test_a_program_of_callbacks_only(log: list[object]) -> None:
    silent_loop = Scan(
        body([], lambda b: (b.emit(logger(log), [lit(2, F)]), [])[1]), 2, False, 0, 0
    )
    assert ran(body([], lambda b: (b.emit(silent_loop, []), [])[1])) == []
    assert log == [2.0, 2.0]


def test_calls_are_neither_merged_nor_removed(log: list[object]) -> None:
    """XLA must neither merge equal calls nor remove those whose results are not used."""
    ask = IoCallback(Calls(log, lambda x: [x]), (F,), True)
    loose = IoCallback(Calls(log, lambda x: [x]), (F,))

    def everything(b: Builder, x: Atom) -> list[Atom]:
        for prim in (ask, ask, loose, loose):
            b.emit(prim, [x])
        return [x]

    assert ran(body([F], everything), 1.0) == [1.0]
    assert log == [1.0] * 4
    log.clear()
    pure = PureCallback(Calls(log, lambda x: [x]), (F,))
    ran(body([F], lambda b, x: (b.emit(pure, [x]), [b(pure, x)])[1]), 1.0)
    assert log == [1.0]


class Stop(BaseException):
    """A BaseException that is not an Exception."""


@pytest.mark.parametrize("raised", [ValueError("x = 3"), Stop("now"), IllTyped("no")])
def test_exceptions_of_callbacks_are_raised(raised: BaseException, log: list[object]) -> None:
    def fail(x: Value) -> Sequence[Value]:
        if x == 3:
            raise raised
        return [x]

    jaxpr = body([F], lambda b, x: [b(PureCallback(Calls(log, fail), (F,)), x)])
    for _ in range(2):
        assert ran(jaxpr, 2.0) == [2.0]
        with pytest.raises(type(raised)) as caught:
            ran(jaxpr, 3.0)
        assert caught.value is raised
        assert not isinstance(caught.value, LoweringError)


def test_each_thread_gets_its_own_error(log: list[object]) -> None:
    ready = threading.Barrier(2)

    def fail(x: Value) -> Sequence[Value]:
        ready.wait(10)
        raise ValueError(f"of {float(x)}")

    jaxpr = body([F], lambda b, x: [b(IoCallback(Calls(log, fail), (F,)), x)])
    compile_program(jaxpr)
    messages: dict[float, str] = {}

    def call(x: float) -> None:
        try:
            ran(jaxpr, x)
        except ValueError as error:
            messages[x] = str(error)

    threads = [threading.Thread(target=call, args=(x,)) for x in (1.0, 2.0)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert messages == {1.0: "of 1.0", 2.0: "of 2.0"}


def test_references_are_not_donated_during_a_call(log: list[object]) -> None:
    ref = ref_type(array_type((3,), "float32"))
    adds = AddUpdate(whole((3,)))

    def add(b: Builder, r: Atom, x: Atom) -> list[Atom]:
        b.emit(adds, [r, b(Get(whole((3,))), r)])
        b.emit(logger(log), [x])
        return []

    loud = body([ref, F], add)
    quiet = body([ref], lambda b, r: (b.emit(adds, [r, b(Get(whole((3,))), r)]), [])[1])
    assert stablehlo_of(loud)[1].aliases == ()
    assert stablehlo_of(quiet)[1].aliases == ((0, 0),)


def test_an_executable_with_callbacks_is_not_serialized(log: list[object]) -> None:
    jaxpr = body([F], lambda b, x: (b.emit(logger(log), [x]), [x])[1])
    made = unsafe_perform_io(compile_program(jaxpr).unwrap())
    with pytest.raises(LoweringError, match="cannot be serialized"):
        made.executable.serialize()
    assert len(made.module.host_calls) == 1


def test_equal_programs_are_equal_modules(log: list[object]) -> None:
    callback = logger(log)
    one, two = (
        stablehlo_of(body([F], lambda b, x: (b.emit(callback, [x]), [x])[1])) for _ in range(2)
    )
    assert one == two


def test_effects_need_a_token_before_lowering(log: list[object]) -> None:
    leaf = body([F], lambda b, x: (b.emit(logger(log), [x]), [x])[1])
    nested = body([F], lambda b, x: b.emit(Jit(leaf), [x]))
    nothing = body([F], lambda b, x: (b.emit(Jit(leaf.replace(outs=[])), [x]), [x])[1])
    for jaxpr in (leaf, nested, nothing):
        with pytest.raises(LoweringError, match="has some") as caught:
            raise lower(jaxpr).failure()
        assert "tokens.thread_token" in str(caught.value)
    assert thread_token(body([F], lambda b, x: [x]), DEFAULT) is not None
    pure = body([F], lambda b, x: [b(p.Neg(), x)])
    assert thread_token(pure, DEFAULT) is pure


@dataclass(frozen=True, slots=True)
class Holder(Primitive):
    """A user-defined primitive with a subjaxpr, without regions."""

    jaxpr: Jaxpr
    name: ClassVar[str] = "holder"

    def typing(self, *ins: Type) -> Typing:
        return Typing(self.jaxpr.out_types, self.jaxpr.effects)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return evaluate(self.jaxpr, ins)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)


def test_effects_in_primitives_without_regions_are_rejected(log: list[object]) -> None:
    leaf = body([F], lambda b, x: (b.emit(logger(log), [x]), [x])[1])
    with pytest.raises(BadRule, match="holder runs a subjaxpr with effects") as caught:
        body([F], lambda b, x: b.emit(Holder(leaf), [x]))
    assert "RegionPrimitive" in str(caught.value)


@dataclass(frozen=True, slots=True)
class Beep(SideEffect):
    """A user-defined kind of effect."""

    word: ClassVar[str] = "beep"


@dataclass(frozen=True, slots=True)
class Beeps(Primitive):
    """A user-defined primitive without a lowering rule."""

    log: tuple[list[object]]
    name: ClassVar[str] = "beeps"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins, Row([Beep()]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        self.log[0].append(ins[0].tolist())
        return [2 * ins[0]]

    def __hash__(self) -> int:
        return id(self.log[0])


def test_a_primitive_without_a_rule_runs_on_the_host(log: list[object]) -> None:
    beeps = Beeps((log,))

    def everything(b: Builder, x: Atom) -> list[Atom]:
        y = b(beeps, x)
        b.emit(logger(log), [y])
        return [b(beeps, y)]

    assert ran(body([F], everything), 1.0) == [4.0]
    assert log == [1.0, 2.0, 2.0]


def test_tokens_have_types_and_meanings(log: list[object]) -> None:
    callback = logger(log)
    outs, row = WithToken(callback).typing(ref_type(TOKEN), F)
    assert outs == () and str(row) == "{write 0, io debug}"
    outs, row = TokenCall(callback).typing(TOKEN, F)
    assert outs == (TOKEN,) and list(row) == [Io("debug")]
    token, one, two = np.array(0, np.int32), np.array(1.0, np.float32), np.array(2.0, np.float32)
    assert WithToken(callback).evaluate(token, one) == ()
    assert TokenCall(callback).evaluate(token, two) == (token,)
    assert log == [1.0, 2.0]


def test_a_side_effect_with_a_reference_is_rejected(log: list[object]) -> None:
    @dataclass(frozen=True, slots=True)
    class Mixed(Primitive):
        name: ClassVar[str] = "mixed"

        def typing(self, *ins: Type) -> Typing:
            return Typing((), Row([*AddUpdate(whole((3,))).typing(*ins).effects, Beep()]))

        def evaluate(self, *ins: Value) -> Sequence[Value]:
            return ()

    types: list[Type] = [ref_type(array_type((3,), "float32")), array_type((3,), "float32")]
    jaxpr = body(types, lambda b, r, x: (b.emit(Mixed(), [r, x]), [])[1])
    with pytest.raises(EffaxError, match="a side effect and accesses a reference"):
        stablehlo_of(jaxpr)


ASYNCHRONOUS = """
import time, numpy as np
from effax.lowering import xla
xla.start(asynchronous=True)
import effax as jax, effax.numpy as jnp
log = []
def slow(x):
    time.sleep(0.05)
    log.append(float(x))
f = jax.jit(lambda x: jax.debug.callback(slow, jnp.sum(x)))
f(np.ones(100_000, np.float32))
print(log)
def fail(x):
    raise KeyError("failed")
try:
    jax.jit(lambda x: jax.debug.callback(fail, x))(1.0)
except KeyError as error:
    print(error)
"""


@pytest.mark.slow
def test_an_asynchronous_client_waits_for_effects() -> None:
    run = subprocess.run(
        [sys.executable, "-c", ASYNCHRONOUS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.split("\n")[:2] == ["[100000.0]", "'failed'"]
