"""Tests of the values that equations compute: nan, infinities, positions out of bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

import numpy as np

from effax.ir.dtypes import is_inexact_dtype
from effax.ir.errors import BadArgument
from effax.ir.eval.stepping.memory import RefChange, changed_by, indexer_of
from effax.ir.eval.stepping.state import Activation, EvalEqn, State, advance, evaluate_eqn
from effax.ir.indexing import Indexer, Pick, Span, is_dynamic
from effax.ir.primitive import Value
from effax.ir.prims.index import DynamicSlice, DynamicUpdateSlice
from effax.ir.syntax import Eqn

OfValue = Callable[[Value], object]
"""A test of a value: true where it is found, for an element or for all."""


class Test(NamedTuple):
    """A test of an equation that was evaluated.

    Attributes:
        name: its name.
        of_value: the test of a result, or of the contents that were written; None: not tested.
        of_eqn: the test of the equation and its operands; None: not tested.
    """

    name: str
    of_value: OfValue | None = None
    of_eqn: Callable[[Eqn, Sequence[Value]], bool] | None = None

    def holds_for(self, value: Value) -> bool:
        """Return whether a value has what is looked for."""
        return self.of_value is not None and bool(
            np.asarray(self.of_value(np.asarray(value))).any()
        )


def has_nan(x: Value) -> np.ndarray:
    """Return where elements are nan."""
    return np.isnan(x) if is_inexact_dtype(x.dtype) else np.zeros(x.shape, bool)


def has_inf(x: Value) -> np.ndarray:
    """Return where elements are infinite."""
    return np.isinf(x) if is_inexact_dtype(x.dtype) else np.zeros(x.shape, bool)


def is_out_of_bounds(eqn: Eqn, operands: Sequence[Value]) -> bool:
    """Return whether an equation indexes outside of its first operand, and is clamped or drops."""
    shape = operands[0].shape if operands else ()
    indexer = indexer_of(eqn)
    if indexer is not None:
        return _leaves(indexer, shape, operands[len(operands) - indexer.n_operands :])
    if isinstance(eqn.prim, DynamicSlice):
        return _starts_outside(shape, eqn.prim.slice_sizes, operands[1:])
    if isinstance(eqn.prim, DynamicUpdateSlice):
        return _starts_outside(shape, operands[1].shape, operands[2:])
    return False


def _leaves(indexer: Indexer, shape: Sequence[int], operands: Sequence[Value]) -> bool:
    feed = iter(operands)
    for dim, size in zip(indexer.dims, shape, strict=True):
        if not is_dynamic(dim):
            continue
        at = np.asarray(next(feed))
        if isinstance(dim, Pick):
            low, high = -size if dim.wraps else 0, size - 1
        else:
            assert isinstance(dim, Span)
            reach = (dim.size - 1) * dim.step
            low, high = max(0, -reach), size - 1 - max(0, reach)
        if bool(((at < low) | (at > high)).any()):
            return True
    return False


def _starts_outside(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Value]) -> bool:
    return any(
        not 0 <= int(start) <= n - size for n, size, start in zip(shape, sizes, starts, strict=True)
    )


TESTS: Final = {
    "nan": Test("nan", has_nan),
    "inf": Test("inf", has_inf),
    "out_of_bounds": Test("out_of_bounds", of_eqn=is_out_of_bounds),
}
"""The tests with a name."""


def test_of(predicate: str | OfValue) -> Test:
    """Return the test of a name, or of a function of a value. Raises BadArgument."""
    if isinstance(predicate, str) and predicate in TESTS:
        return TESTS[predicate]
    if isinstance(predicate, str) or not callable(predicate):
        raise BadArgument(
            "a test of values is the name of one, or a function of a value",
            expected=f"{', '.join(map(repr, TESTS))}, or a function of a NumPy array",
            found=f"{predicate!r:.60}",
        )
    name = getattr(predicate, "__name__", type(predicate).__name__)
    return Test(name, _answering(name, predicate))


def _answering(name: str, predicate: OfValue) -> OfValue:
    """Return the predicate, which raises BadArgument if it returns None."""

    def holds(value: Value) -> object:
        found = predicate(value)
        if found is None:
            raise BadArgument(
                f"the test {name} of values returns None",
                expected="a boolean, or an array of booleans",
                remedy="is a `return` missing?",
            )
        return found

    return holds


class Hit(NamedTuple):
    """The first equation for which a test holds.

    Attributes:
        state: the state before it.
        frame: the program that contains it; its next equation is the one.
        operands: the values of its operands; of a reference, the contents before.
        results: the values of its results.
        changes: its changes of references.
        value: the value for which the test holds; None for a test of the equation.
    """

    state: State
    frame: Activation
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    changes: tuple[RefChange, ...]
    value: Value | None

    @property
    def eqn(self) -> Eqn:
        """The equation."""
        return self.frame.jaxpr.eqns[self.frame.at]


class Searched(NamedTuple):
    """The end of a search.

    Attributes:
        state: the state before the equation that was found, or the end.
        hit: the equation; None if there is none.
    """

    state: State
    hit: Hit | None


def search(
    state: State,
    test: Test,
    visit: Callable[[State], object] | None = None,
    evaluate: EvalEqn = evaluate_eqn,
) -> Searched:
    """Evaluate to the first equation for which a test holds.

    One evaluation in which each result is tested once: bisection would repeat parts of it, and
    would miss what does not last to the end, such as a nan that is masked later.
    """
    keeps = state.keeps
    state = state._replace(keeps=True)
    while not state.has_ended:
        if visit is not None:
            visit(state)
        before, state = state, advance(state, True, evaluate)
        entered = before.eqn is not None and state.frame.depth > before.frame.depth
        hit = None if entered or state.has_ended else _tested(before, state, test)
        if hit is not None:
            return Searched(hit.state._replace(keeps=keeps), hit)
        if not keeps:
            # They would grow with the evaluation.
            state = state._replace(accessed=None)
    return Searched(state._replace(keeps=keeps), None)


def _tested(before: State, after: State, test: Test) -> Hit | None:
    """Return the hit of the equation that was evaluated last, if it is one."""
    frame = after.frame
    if frame.at == 0:
        return None
    eqn = frame.jaxpr.eqns[frame.at - 1]
    results = tuple([frame.value(v) for v in eqn.outs])
    own = takewhile(lambda a: a.step == after.steps - 1, after.accesses())
    changes = tuple([a.change for a in own if a.change is not None][::-1])
    value = next(filter(test.holds_for, [*results, *[c.after for c in changes]]), None)
    calling = frame._replace(at=frame.at - 1)
    if value is None:
        entered = before.frame is not frame and before.frame.depth > frame.depth
        if test.of_eqn is None or entered or not test.of_eqn(eqn, calling.operands()):
            return None
    return _hit(before, calling, results, changes, value)


def _hit(
    before: State,
    frame: Activation,
    results: tuple[Value, ...],
    changes: tuple[RefChange, ...],
    value: Value | None,
) -> Hit:
    state = before if before.frame.depth == frame.depth else before._replace(frame=frame)
    state.memory.restore()
    eqn = frame.jaxpr.eqns[frame.at]
    refs = {*eqn.effects.refs, *changed_by(eqn)}
    operands = [np.array(x) if i in refs else x for i, x in enumerate(frame.operands())]
    return Hit(state, frame, tuple(operands), results, changes, value)
