"""Programs that tell what they do while they run, and the logs that they leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from effax.ir.build import Builder
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import Cond, DebugCallback, HostFunction, IoCallback, Jit, Remat, Scan, While
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.types import ArrayType
from effax.testing.generate.values import Differs, check_equal


class RecordedCall(NamedTuple):
    """What was told: by which callback, and the values."""

    label: str
    values: tuple[Value, ...]


Log = list[RecordedCall]

_logs: Final[list[Log]] = []
"""The logs that are open, the innermost one last. Compiled programs may call from any thread."""


@contextmanager
def recorded() -> Iterator[Log]:
    """The log of what recorders are told in the block."""
    log: Log = []
    _logs.append(log)
    try:
        yield log
    finally:
        _logs.pop()


@dataclass(frozen=True)
class Recorder(HostFunction):
    """Writes its arguments into the log, and gives them back where it is asked to."""

    label: str
    answers: bool = False
    arity: int = 1

    def __call__(self, *args: Value) -> Sequence[Value]:
        if _logs:
            _logs[-1].append(RecordedCall(self.label, tuple([np.array(x) for x in args])))
        return [np.array(x) for x in args] if self.answers else []


CHANNELS: Final = ("debug", "io")
"""What the labels of ordered calls begin with: calls of one channel keep their order."""

LOOSE: Final = "loose"
"""What the labels of those begin with that commute with everything."""


def with_callbacks(jaxpr: Jaxpr, seed: int, answers: bool = False) -> Jaxpr:
    """The program with calls of recorders between its equations, those of held programs included.

    It computes the same. No two calls have one label.

    Args:
        jaxpr: the program.
        seed: decides where calls are.
        answers: whether some values go through a recorder that gives them back.
    """
    return _Inserter(np.random.default_rng([seed, 5]), answers).program(jaxpr)


_HOLDING: Final = (Jit, Remat, Cond, Scan, While)


class _Inserter:
    """One run: where choices come from, and how many calls there are."""

    def __init__(self, rng: np.random.Generator, answers: bool) -> None:
        self.rng = rng
        self.answers = answers
        self.count = 0

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        b = Builder(jaxpr.in_types)
        env: dict[int, Atom] = {v.id: w for v, w in zip(jaxpr.binders, b.binders, strict=True)}

        def value(atom: Atom) -> Atom:
            return atom if isinstance(atom, Lit) else env[atom.id]

        for v in jaxpr.binders:
            if isinstance(v.type, ArrayType) and self.rng.random() < 0.5:
                env[v.id] = self.told(b, env[v.id])
        for eqn in jaxpr.eqns:
            outs = b.emit(self.held(eqn.prim), [value(a) for a in eqn.ins], eqn.source)
            for v, out in zip(eqn.outs, outs, strict=True):
                is_array = isinstance(out.type, ArrayType)
                env[v.id] = self.told(b, out) if is_array and self.rng.random() < 0.4 else out
        return b.finish([value(a) for a in jaxpr.outs], jaxpr.n_consts, jaxpr.names)

    def held(self, prim: Primitive) -> Primitive:
        if not isinstance(prim, _HOLDING):
            return prim
        return prim.with_subjaxprs([self.program(held) for held in prim.subjaxprs()])

    def told(self, b: Builder, x: Atom) -> Atom:
        """Tell a value; gives what stands for it from now on."""
        assert isinstance(x.type, ArrayType)
        self.count += 1
        ordered = bool(self.rng.integers(0, 2))
        asked = self.answers and self.rng.random() < 0.3
        label = f"{CHANNELS[asked] if ordered else LOOSE}{self.count}"
        if asked:
            return b(IoCallback(Recorder(label, True), (x.type,), ordered), x)
        b.emit(DebugCallback(Recorder(label), ordered), [x])
        return x


def check_logs(expected: Log, found: Log) -> None:
    """Raise AssertionError unless the same calls were made, those of a channel in one order."""
    for channel in CHANNELS:
        first = [e for e in expected if e.label.startswith(channel)]
        second = [e for e in found if e.label.startswith(channel)]
        check_same(first, second)
    check_as_often(expected, found)


def check_same(expected: Log, found: Log) -> None:
    """Raise AssertionError unless the same calls were made in the same order."""
    labels = [e.label for e in expected], [e.label for e in found]
    assert labels[0] == labels[1], (
        "calls are lost, made twice, or made in another order:\n"
        f"  expected {' '.join(labels[0])}\n  found    {' '.join(labels[1])}"
    )
    for x, y in zip(expected, found, strict=True):
        _check_values(x, y)


def check_as_often(expected: Log, found: Log) -> None:
    """Raise AssertionError unless the same calls were made, in whatever order."""
    left: dict[str, list[RecordedCall]] = {}
    for entry in found:
        left.setdefault(entry.label, []).append(entry)
    for entry in expected:
        others = left.get(entry.label, [])
        same = [i for i, other in enumerate(others) if _is_same(entry, other)]
        assert same, f"call {entry.label} of {entry.values} was not made; left are {others}"
        others.pop(same[0])
    more = [entry for others in left.values() for entry in others]
    assert not more, f"calls were made that were not to be: {more}"


def _is_same(first: RecordedCall, second: RecordedCall) -> bool:
    try:
        _check_values(first, second)
    except Differs:
        return False
    return True


def _check_values(first: RecordedCall, second: RecordedCall) -> None:
    for i, (x, y) in enumerate(zip(first.values, second.values, strict=True)):
        check_equal(f"argument {i} of call {first.label}", x, y)
