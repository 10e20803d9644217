"""Programs that record calls of the host while they run, and comparisons of the logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from effax.effects import SideEffect
from effax.ir.build import Builder, lit
from effax.ir.edit.rewriter import Rewriter
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import Cond, DebugCallback, HostFunction, IoCallback, Jit, Remat, Scan, While
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.ir.types import ArrayType, array_type
from effax.testing.generate.values import Differs, check_equal
from effax.testing.laws.instrumented import After


class RecordedCall(NamedTuple):
    """A call: the label of the callback, and its arguments."""

    label: str
    values: tuple[Value, ...]


Log = list[RecordedCall]

_logs: Final[list[Log]] = []
"""The open logs, the innermost last. Compiled programs may call from any thread."""


@contextmanager
def recorded() -> Iterator[Log]:
    """Yield the log of the calls that recorders receive in the block."""
    log: Log = []
    _logs.append(log)
    try:
        yield log
    finally:
        _logs.pop()


@dataclass(frozen=True)
class Recorder(HostFunction):
    """Append the arguments to the log; return them if ``returns``."""

    label: str
    returns: bool = False
    arity: int = 1

    def __call__(self, *args: Value) -> Sequence[Value]:
        if _logs:
            _logs[-1].append(RecordedCall(self.label, tuple([np.array(x) for x in args])))
        return [np.array(x) for x in args] if self.returns else []


CHANNELS: Final = ("debug", "io")
"""The prefixes of labels of ordered calls: calls of one channel keep their order."""

LOOSE: Final = "loose"
"""The prefix of labels of calls that commute with everything."""


def with_callbacks(jaxpr: Jaxpr, seed: int, returns: bool = False, varied: bool = False) -> Jaxpr:
    """Insert calls of recorders, each with its own label, between equations at every depth.

    Args:
        jaxpr: the program, whose values stay the same.
        seed: determines the places of the calls.
        returns: whether some values pass through a recorder that returns them.
        varied: whether some calls have literals and earlier values as operands, are repeated, and
            are all that a branch does while the other one does nothing.
    """
    return _Inserter(np.random.default_rng([seed, 5]), returns, varied).program(jaxpr)


def with_all_calls(jaxpr: Jaxpr, seed: int) -> Jaxpr:
    """Insert calls of all kinds: the program on which side effects of a pass are compared."""
    return with_callbacks(jaxpr, seed, returns=True, varied=True)


FLAG: Final = array_type((), "bool")

_CONTROL: Final = (Jit, Remat, Cond, Scan, While)


class _Inserter:
    """Inserts calls: the source of choices, and the number of calls so far."""

    def __init__(self, rng: np.random.Generator, returns: bool, varied: bool) -> None:
        self.rng = rng
        self.returns = returns
        self.varied = varied
        self.count = 0

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        made = Rewriter(jaxpr)
        earlier: list[Atom] = [a for a in made.b.binders if isinstance(a.type, ArrayType)]
        for v in jaxpr.binders:
            if isinstance(v.type, ArrayType) and self.rng.random() < 0.5:
                made.bind([v], [self.record(made.b, made.read(v))])
        for eqn in jaxpr.eqns:
            made.bind(eqn.outs, made.b.emit(self.nested(eqn.prim), made.operands(eqn), eqn.source))
            for v in eqn.outs:
                if isinstance(v.type, ArrayType) and self.rng.random() < 0.4:
                    made.bind([v], [self.record(made.b, made.read(v))])
            earlier += [made.read(v) for v in eqn.outs if isinstance(v.type, ArrayType)]
            if self.varied:
                self.vary(made.b, earlier)
        return made.build(made.results())

    def vary(self, b: Builder, earlier: Sequence[Atom]) -> None:
        """Sometimes append a call on a literal or an earlier value, or a branch of calls."""
        one = lit(int(self.rng.integers(4)), array_type((), "int32"))
        values: list[Atom] = [one, one, *earlier[-6:]]
        value = values[self.rng.integers(len(values))]
        match self.rng.integers(8):
            case 0 | 1:
                self.call(b, value)
            case 2:
                calls = Builder([value.type])
                self.call(calls, calls.binders[0])
                branch, other = calls.finish([]), Builder([value.type]).finish([])
                flags = [a for a in earlier if a.type is FLAG] or [lit(True, FLAG)]
                which = flags[self.rng.integers(len(flags))]
                b.emit(Cond((other, branch)), [which, value])
            case _:
                pass

    def nested(self, prim: Primitive) -> Primitive:
        if not isinstance(prim, _CONTROL):
            return prim
        return prim.with_subjaxprs([self.program(inner) for inner in prim.subjaxprs()])

    def record(self, b: Builder, x: Atom) -> Atom:
        """Append a call on a value; return the atom that later equations use instead."""
        assert isinstance(x.type, ArrayType)
        ordered = bool(self.rng.integers(0, 2))
        returns = self.returns and self.rng.random() < 0.3
        if returns:
            recorder = Recorder(self.label(ordered, returns), True)
            return b(IoCallback(recorder, (x.type,), ordered), x)
        self.call(b, x, ordered)
        return x

    def call(self, b: Builder, x: Atom, ordered: bool = True) -> None:
        """Append a call without results; sometimes twice, and then it is made as often."""
        prim = DebugCallback(Recorder(self.label(ordered)), ordered)
        for _ in range(1 + (self.rng.random() < (0.25 if self.varied else 0.1))):
            b.emit(prim, [x])

    def label(self, ordered: bool, returns: bool = False) -> str:
        """Return a new label of a channel."""
        self.count += 1
        return f"{CHANNELS[returns] if ordered else LOOSE}{self.count}"


class RecordedEffect(NamedTuple):
    """An application of a primitive with side effects, and its operands."""

    prim: Primitive
    effects: frozenset[SideEffect]
    values: tuple[Value, ...]


def effects_recorder() -> tuple[list[RecordedEffect], After]:
    """Return a list and a function after equations that records side effects in it.

    Calls of recorders have their own log.
    """
    found: list[RecordedEffect] = []

    def after(eqn: Eqn, ins: Sequence[Value], outs: Sequence[Value]) -> Sequence[Value]:
        effects = frozenset([e for e in eqn.effects if isinstance(e, SideEffect) and e.observed])
        own = isinstance(eqn.prim, DebugCallback | IoCallback)
        callback = eqn.prim.callback if isinstance(eqn.prim, DebugCallback | IoCallback) else None
        if effects and not eqn.prim.subjaxprs() and not (own and isinstance(callback, Recorder)):
            found.append(RecordedEffect(eqn.prim, effects, tuple([np.array(x) for x in ins])))
        return outs

    return found, after


def check_effects_run(
    expected: Sequence[RecordedEffect], found: Sequence[RecordedEffect], values: bool = True
) -> None:
    """Raise AssertionError unless the same side effects happen, in order if they do not commute."""
    for kinds in dict.fromkeys([one.effects for one in (*expected, *found)]):
        first = [one for one in expected if one.effects == kinds]
        second = [one for one in found if one.effects == kinds]
        names = [[one.prim.name for one in several] for several in (first, second)]
        if all(x.commutes_with(y) for x in kinds for y in kinds):
            names = [sorted(several) for several in names]
            values = False
        assert names[0] == names[1], (
            f"side effects {', '.join(sorted(map(str, kinds)))} are lost, repeated or reordered:\n"
            f"  expected {' '.join(names[0]) or 'none'}\n  found    {' '.join(names[1]) or 'none'}"
        )
        for x, y in zip(first, second, strict=True) if values else ():
            for i, (a, b) in enumerate(zip(x.values, y.values, strict=True)):
                check_equal(f"operand {i} of {x.prim.name}", a, b)


def check_logs(expected: Log, found: Log, values: bool = True) -> None:
    """Raise AssertionError unless the calls are the same, and those of a channel in order."""
    if not values:
        expected, found = ([call._replace(values=()) for call in log] for log in (expected, found))
    for channel in CHANNELS:
        first = [e for e in expected if e.label.startswith(channel)]
        second = [e for e in found if e.label.startswith(channel)]
        check_same_order(first, second)
    check_same_calls(expected, found)


def check_same_order(expected: Log, found: Log) -> None:
    """Raise AssertionError unless the same calls were made in the same order."""
    labels = [e.label for e in expected], [e.label for e in found]
    assert labels[0] == labels[1], (
        "calls are lost, repeated or reordered:\n"
        f"  expected {' '.join(labels[0])}\n  found    {' '.join(labels[1])}"
    )
    for x, y in zip(expected, found, strict=True):
        _check_values(x, y)


def check_same_calls(expected: Log, found: Log) -> None:
    """Raise AssertionError unless the same calls were made, in any order."""
    left: dict[str, list[RecordedCall]] = {}
    for entry in found:
        left.setdefault(entry.label, []).append(entry)
    for entry in expected:
        others = left.get(entry.label, [])
        same = next((i for i, other in enumerate(others) if _is_same(entry, other)), None)
        if same is None:
            rest = [call for calls in left.values() for call in calls]
            raise AssertionError(
                f"call {entry.label} of {entry.values} was not made; left are {rest}"
            )
        others.pop(same)
    rest = [call for calls in left.values() for call in calls]
    assert not rest, f"unexpected calls were made: {rest}"


def check_call_order(expected: Sequence[Log], found: Log) -> None:
    """Raise AssertionError unless each call is made for batch elements in their order.

    Args:
        expected: the log of each batch element; calls that one of them repeats are not compared.
        found: the log of all of them.
    """
    counts = [Counter([call.label for call in log]) for log in expected]
    labels = {label for count in counts for label in count}
    for label in sorted(labels):
        if all(count[label] <= 1 for count in counts):
            check_same_order(
                [call for log in expected for call in log if call.label == label],
                [call for call in found if call.label == label],
            )


def _is_same(first: RecordedCall, second: RecordedCall) -> bool:
    if first.label != second.label:
        return False
    try:
        _check_values(first, second)
    except Differs:
        return False
    return True


def _check_values(first: RecordedCall, second: RecordedCall) -> None:
    for i, (x, y) in enumerate(zip(first.values, second.values, strict=True)):
        check_equal(f"argument {i} of call {first.label}", x, y)
