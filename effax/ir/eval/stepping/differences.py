"""Walk two programs side by side to the first equation where their values differ.

Programs of equal structure are compared equation by equation. Otherwise, as before and after a
pass, a value of one program agrees if the other has an equal value anywhere: from a result that
differs, operands are followed back to values that agree, and the first equation on the way is where
the programs part. Values that a pass introduces and that lead back to equal ones are passed over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from effax.ir.dtypes import family
from effax.ir.eval.numpy import evaluate, literal_value
from effax.ir.eval.stepping.memory import changed_by
from effax.ir.eval.stepping.runs import RegionRun, begin, resume
from effax.ir.eval.stepping.state import evaluate_eqn
from effax.ir.primitive import Value
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType


class Tolerance(NamedTuple):
    """The difference that is allowed; None: by dtype.

    Attributes:
        rtol: relative to the element.
        atol: absolute; by default ``rtol`` times the greatest element.
    """

    rtol: float | None = None
    atol: float | None = None

    def allows(self, x: Value, y: Value) -> bool:
        """Return whether two values agree: nans in the same places, numbers up to the tolerance."""
        return x.shape == y.shape and not self.errors(x, y).any()

    def margin(self, x: Value, total: float) -> float:
        """Return how far the totals of absolute elements may be apart for a value that agrees."""
        rtol = _rtol(x) if self.rtol is None else self.rtol
        finite = _finite(x)
        scale = rtol * float(finite.max(initial=0.0)) if self.atol is None else self.atol
        return 4 * (rtol * total + x.size * scale) + 1e-30

    def errors(self, x: Value, y: Value) -> np.ndarray:
        """Return where two values of equal shape differ."""
        if family(x.dtype) not in NUMBERS or family(y.dtype) not in NUMBERS:
            return np.asarray(x != y)
        a, b = x.astype(np.complex128), y.astype(np.complex128)
        rtol = max(_rtol(x), _rtol(y)) if self.rtol is None else self.rtol
        with np.errstate(all="ignore"):
            finite = np.abs(a[np.isfinite(a)])
            scale = float(finite.max(initial=0.0))
            atol = rtol * scale if self.atol is None else self.atol
            close = np.abs(a - b) <= atol + rtol * np.abs(a)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.asarray(~(close | same))


NUMBERS = ("bool", "int", "uint", "float", "complex")


def _finite(x: Value) -> np.ndarray:
    """Return the absolute values of the finite elements."""
    if family(x.dtype) not in NUMBERS:
        return np.zeros(0)
    wide = np.abs(x.astype(np.complex128))
    return np.asarray(wide[np.isfinite(wide)])


def _rtol(x: Value) -> float:
    if family(x.dtype) not in ("float", "complex"):
        return 0.0
    bits = 8 * x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1)
    return {64: 1e-9, 32: 1e-4}.get(bits, 3e-2)


class Evaluation(Protocol):
    """A way to evaluate programs."""

    def run(self, jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
        """Return the results; references are written in place."""
        raise NotImplementedError

    def every(self, jaxpr: Jaxpr, args: Sequence[Value]) -> Values:
        """Return the values of all equations; references are copied."""
        raise NotImplementedError


class Values(NamedTuple):
    """All values of the equations of a program, not of their subjaxprs.

    Attributes:
        jaxpr: the program.
        args: its arguments; for a reference, its contents before.
        outcomes: for each equation its results, then the contents of the references it changes.
    """

    jaxpr: Jaxpr
    args: list[Value]
    outcomes: list[list[Value]]


class Maker(NamedTuple):
    """The maker of a value: an equation (-1: an argument), and the position among its outcomes."""

    eqn: int
    position: int


class Uses(NamedTuple):
    """The makers of the operands of each equation, and of the program's results and references."""

    operands: list[list[Maker | Lit]]
    ends: list[Maker | Lit]


def uses_of(jaxpr: Jaxpr) -> Uses:
    """Return the makers of all operands; that of a reference is its last change."""
    last: dict[int, Maker] = {v.id: Maker(-1, i) for i, v in enumerate(jaxpr.binders)}

    def source(a: Atom) -> Maker | Lit:
        return last[a.id] if isinstance(a, Var) else a

    operands = []
    for i, eqn in enumerate(jaxpr.eqns):
        operands.append([source(a) for a in eqn.ins])
        last.update({v.id: Maker(i, k) for k, v in enumerate(eqn.outs)})
        for k, position in enumerate(changed_by(eqn)):
            ref = eqn.ins[position]
            assert isinstance(ref, Var), "a reference is a variable"
            last[ref.id] = Maker(i, len(eqn.outs) + k)
    refs = [v for v in jaxpr.binders if isinstance(v.type, RefType)]
    return Uses(operands, [source(a) for a in (*jaxpr.outs, *refs)])


def made_value(values: Values, source: Maker | Lit) -> Value:
    """Return the value of a maker."""
    if isinstance(source, Lit):
        return literal_value(source)
    made = values.args if source.eqn < 0 else values.outcomes[source.eqn]
    return np.asarray(made[source.position])


class OnNumpy:
    """The evaluator."""

    def run(self, jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
        """Return the results; references are written in place."""
        return evaluate(jaxpr, args)

    def every(self, jaxpr: Jaxpr, args: Sequence[Value]) -> Values:
        """Return the values of all equations; references are copied."""
        own = [_copied(v, x) for v, x in zip(jaxpr.binders, args, strict=True)]
        env: dict[int, Value] = {v.id: x for v, x in zip(jaxpr.binders, own, strict=True)}
        before = [np.array(x) for x in own]
        outcomes: list[list[Value]] = []
        for eqn in jaxpr.eqns:
            operands = [literal_value(a) if isinstance(a, Lit) else env[a.id] for a in eqn.ins]
            outs = evaluate_eqn(eqn, operands)
            env.update({v.id: x for v, x in zip(eqn.outs, outs, strict=True)})
            made = [_copied(v, x) for v, x in zip(eqn.outs, outs, strict=True)]
            outcomes.append([*made, *[np.array(operands[i]) for i in changed_by(eqn)]])
        return Values(jaxpr, before, outcomes)


def _copied(v: Var, x: Value) -> Value:
    return np.array(x, order="C") if isinstance(v.type, RefType) else np.asarray(x)


class Parting(NamedTuple):
    """The place where two programs part.

    Attributes:
        path: the runs that lead to the programs.
        left: the equation of the first program; None if it has none there.
        right: the equation of the second program.
        left_value: the value of the first program that differs.
        right_value: the value of the second.
        left_operands: the values of the operands of ``left``.
        right_operands: the values of the operands of ``right``.
    """

    path: tuple[str, ...]
    left: Eqn | None
    right: Eqn | None
    left_value: Value
    right_value: Value
    left_operands: tuple[Value, ...]
    right_operands: tuple[Value, ...]


class _Side(NamedTuple):
    """The values of one of the programs, and the makers of its operands."""

    values: Values
    uses: Uses

    @classmethod
    def of(cls, values: Values) -> _Side:
        return cls(values, uses_of(values.jaxpr))

    def value(self, maker: Maker | Lit) -> Value:
        return made_value(self.values, maker)

    def operands(self, at: int | None) -> tuple[Value, ...]:
        return () if at is None else tuple(map(self.value, self.uses.operands[at]))

    def eqn(self, at: int | None) -> Eqn | None:
        return None if at is None else self.values.jaxpr.eqns[at]


class Walk(NamedTuple):
    """A comparison of two programs.

    Attributes:
        left: the evaluation of the first program, and of its subjaxprs.
        right: that of the second.
        allowed: the tolerance.
    """

    left: Evaluation
    right: Evaluation
    allowed: Tolerance

    def parting(self, left: Values, right: Values, path: tuple[str, ...] = ()) -> Parting | None:
        """Return the first place where the programs part; None if results and references agree.

        Args:
            left: the values of the first program.
            right: the values of the second.
            path: the runs that lead to the programs.
        """
        sides = _Side.of(left), _Side.of(right)
        ends = zip(sides[0].uses.ends, sides[1].uses.ends, strict=True)
        wrong = next((p for p in ends if not self._agree(sides, p)), None)
        if wrong is None:
            return None
        if _corresponds(left.jaxpr, right.jaxpr):
            place = self._in_step(left, right)
            if place is not None:
                return self._inside(sides, (place, place), wrong, path)
        places = (
            _leaving(sides[0], wrong[0], _Known(right, self.allowed)),
            _leaving(sides[1], wrong[1], _Known(left, self.allowed)),
        )
        return self._inside(sides, places, wrong, path)

    def _agree(self, sides: tuple[_Side, _Side], ends: tuple[Maker | Lit, Maker | Lit]) -> bool:
        return self.allowed.allows(sides[0].value(ends[0]), sides[1].value(ends[1]))

    def _in_step(self, left: Values, right: Values) -> int | None:
        """Return the first equation of which an outcome differs, in programs that correspond."""
        for i, both in enumerate(zip(left.outcomes, right.outcomes, strict=True)):
            if not self._equal(*both):
                return i
        return None

    def _equal(self, xs: Sequence[Value], ys: Sequence[Value]) -> bool:
        pairs = zip(xs, ys, strict=True)
        return all(self.allowed.allows(np.asarray(x), np.asarray(y)) for x, y in pairs)

    def _inside(
        self,
        sides: tuple[_Side, _Side],
        places: tuple[int | None, int | None],
        ends: tuple[Maker | Lit, Maker | Lit],
        path: tuple[str, ...],
    ) -> Parting:
        """Return the place within two equations that run regions alike; else the equations."""
        left, right = sides
        i, j = places
        operands = left.operands(i), right.operands(j)
        if i is not None and j is not None:
            eqns = left.values.jaxpr.eqns[i], right.values.jaxpr.eqns[j]
            nested = self._nested(eqns, operands, path)
            if nested is not None:
                return nested
        values = self._outcomes(left.values, right.values, places)
        if values is None:
            values = left.value(ends[0]), right.value(ends[1])
        return Parting(path, left.eqn(i), right.eqn(j), *values, *operands)

    def _outcomes(
        self, left: Values, right: Values, places: tuple[int | None, int | None]
    ) -> tuple[Value, Value] | None:
        """Return the first outcomes of equal shape that differ."""
        i, j = places
        if i is None or j is None:
            return None
        for a, b in zip(left.outcomes[i], right.outcomes[j], strict=False):
            x, y = np.asarray(a), np.asarray(b)
            if x.shape == y.shape and not self.allowed.allows(x, y):
                return x, y
        return None

    def _nested(
        self,
        eqns: tuple[Eqn, Eqn],
        operands: tuple[Sequence[Value], Sequence[Value]],
        path: tuple[str, ...],
    ) -> Parting | None:
        """Run the regions of two equations in step; return the first place where they part."""
        x, y = [begin(e, _own(e, xs)) for e, xs in zip(eqns, operands, strict=True)]
        while isinstance(x, RegionRun) and isinstance(y, RegionRun):
            if (x.plan.kind, x.region) != (y.plan.kind, y.region):
                return None
            args = x.arguments(), y.arguments()
            before = [[np.array(v) for v in side] for side in args]
            outs = self.left.run(x.jaxpr, args[0]), self.right.run(y.jaxpr, args[1])
            ends = [*outs[0], *_refs(x, args[0])], [*outs[1], *_refs(y, args[1])]
            if len(ends[0]) != len(ends[1]):
                return None
            if not self._equal(*ends):
                every = self.left.every(x.jaxpr, before[0]), self.right.every(y.jaxpr, before[1])
                label = f"{eqns[0].prim.name}, {x.label}" if x.label else eqns[0].prim.name
                return self.parting(*every, (*path, label))
            x, y = resume(x, outs[0]), resume(y, outs[1])
        return None


def _own(eqn: Eqn, operands: Sequence[Value]) -> list[Value]:
    """Return the operands, with copies of the contents of references."""
    pairs = zip(eqn.ins, operands, strict=True)
    return [np.array(x) if isinstance(a.type, RefType) else x for a, x in pairs]


def _refs(run: RegionRun, args: Sequence[Value]) -> list[Value]:
    pairs = zip(run.jaxpr.binders, args, strict=True)
    return [x for v, x in pairs if isinstance(v.type, RefType)]


def _corresponds(left: Jaxpr, right: Jaxpr) -> bool:
    """Return whether two programs have the same equations up to parameters and dtypes."""
    return len(left.eqns) == len(right.eqns) and all(
        type(x.prim) is type(y.prim)
        and [v.type.shape for v in x.outs] == [v.type.shape for v in y.outs]
        and [a.id if isinstance(a, Var) else -1 for a in x.ins]
        == [a.id if isinstance(a, Var) else -1 for a in y.ins]
        for x, y in zip(left.eqns, right.eqns, strict=True)
    )


class _Known:
    """The values of a program, to look up equal ones: by shape, and by the sum of the elements."""

    def __init__(self, values: Values, allowed: Tolerance) -> None:
        self._allowed = allowed
        by_shape: defaultdict[tuple[int, ...], list[tuple[float, Value]]] = defaultdict(list)
        for made in [values.args, *values.outcomes]:
            for value in made:
                x = np.asarray(value)
                by_shape[x.shape].append((float(_finite(x).sum()), x))
        self._values = {k: sorted(found, key=_total) for k, found in by_shape.items()}

    def __contains__(self, x: Value) -> bool:
        found, total = self._values.get(x.shape, []), float(_finite(x).sum())
        margin = self._allowed.margin(x, total)
        first = bisect_left(found, total - margin, key=_total)
        last = bisect_right(found, total + margin, key=_total)
        return any(self._allowed.allows(y, x) for _, y in found[first:last])


def _total(entry: tuple[float, Value]) -> float:
    return entry[0]


def _leaving(side: _Side, end: Maker | Lit, known: _Known) -> int | None:
    """Return the first equation towards ``end`` of which the other program has no equal value.

    Equations before the last equal values on the way are not among them.
    """
    found: set[int] = set()
    waiting = [end]
    while waiting:
        maker = waiting.pop()
        if isinstance(maker, Lit) or maker.eqn < 0 or maker.eqn in found:
            continue
        if maker != end and side.value(maker) in known:
            continue
        found.add(maker.eqn)
        waiting += side.uses.operands[maker.eqn]
    return min(found, default=None)
