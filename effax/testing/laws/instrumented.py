"""Evaluate programs with a function that sees the operands and results of each equation.

It serves comparisons with a tolerance: the results of a program are perturbed by rounding each
equation at random, and values that overflow or are undefined are followed to the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from effax.ir.dtypes import DType, is_complex, is_inexact_dtype
from effax.ir.eval.numpy import evaluate, literal_value
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.syntax import Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type
from effax.testing.generate.values import Outcome, contents_of, rounding
from effax.testing.laws.derivative import double_of, retyped

After = Callable[[Eqn, Sequence[Value], Sequence[Value]], Sequence[Value]]
"""Returns the results of an equation, from its operands and results."""


@dataclass(frozen=True, slots=True, eq=False)
class InstrumentedPrimitive(Primitive):
    """An equation's primitive, whose results pass through a function."""

    prim: Primitive
    eqn: Eqn
    after: After
    name: ClassVar[str] = "observed"

    def typing(self, *ins: Type) -> Typing:
        raise NotImplementedError("evaluated only, never typed")

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        refs = [isinstance(a.type, RefType) for a in self.eqn.ins]
        before = [np.array(x) if ref else x for x, ref in zip(ins, refs, strict=True)]
        return self.after(self.eqn, before, self.prim.evaluate(*ins))


def instrumented(jaxpr: Jaxpr, after: After, types: Jaxpr | None = None) -> Jaxpr:
    """Return the program, to be evaluated only, with a function called after each equation.

    Args:
        jaxpr: the program.
        after: the function, called at every depth.
        types: the program whose equations are passed to the function; ``jaxpr`` if None.
    """
    originals = (jaxpr if types is None else types).eqns
    eqns = [
        eqn._replace(prim=InstrumentedPrimitive(_nested(eqn.prim, old.prim, after), old, after))
        for eqn, old in zip(jaxpr.eqns, originals, strict=True)
    ]
    return Jaxpr(jaxpr.binders, eqns, jaxpr.outs)


def _nested(prim: Primitive, old: Primitive, after: After) -> Primitive:
    inner = prim.subjaxprs()
    if not inner:
        return prim
    pairs = zip(inner, old.subjaxprs(), strict=True)
    return prim.with_subjaxprs([instrumented(one, after, of) for one, of in pairs])


def evaluate_wide(jaxpr: Jaxpr, inputs: Sequence[Value]) -> Outcome:
    """Return the outcome of the program in double precision, inputs as they are.

    A primitive that does not accept double precision makes the program run in its own dtypes.
    """
    return _run_wide(jaxpr, inputs, None)


def _run_wide(jaxpr: Jaxpr, inputs: Sequence[Value], after: After | None) -> Outcome:
    for wide in (retyped(jaxpr, double_of), jaxpr):
        made = wide if after is None else instrumented(wide, after, jaxpr)
        values = [np.array(x, t.dtype) for x, t in zip(inputs, wide.in_types, strict=True)]
        try:
            outs = [np.array(x) for x in evaluate(made, values)]
        except (TypeError, ValueError):
            continue
        return Outcome(outs, contents_of(jaxpr.in_types, values))
    raise ValueError("the program cannot be evaluated")


def evaluate_perturbed(
    jaxpr: Jaxpr,
    inputs: Sequence[Value],
    seed: int,
    size: Callable[[DType], float],
    trace: list[Value] | None = None,
) -> Outcome:
    """Return the outcome in double precision, each number that is computed moved at random.

    A number of a dtype is moved by ``size`` of it, relatively, or by its rounding if that is more.
    Numbers that an equation only moves or selects stay equal to its operands.

    Args:
        jaxpr: the program.
        inputs: its inputs.
        seed: the seed of the changes.
        size: the relative change of the numbers of a dtype.
        trace: a list to which all computed numbers are appended.

    Source: D. S. Parker, Monte Carlo arithmetic, 1997.
    """
    rng = np.random.default_rng([seed, 13])

    def moved(x: Value, dtype: DType) -> Value:
        if not is_inexact_dtype(dtype) or not is_inexact_dtype(x.dtype):
            return x
        relative = max(size(dtype), rounding(dtype))
        return np.asarray(x * (1 + relative * rng.uniform(-1, 1, x.shape)), x.dtype)

    def after(eqn: Eqn, ins: Sequence[Value], outs: Sequence[Value]) -> Sequence[Value]:
        if eqn.prim.subjaxprs():
            return outs
        found: list[Value] = []
        for v, out in zip(eqn.outs, outs, strict=True):
            x = np.asarray(out)
            new = x if isinstance(v.type, RefType) else moved(x, v.type.dtype)
            found.append(x if new is x else np.where(_is_of(x, ins), x, new))
            if trace is not None and new is not x:
                trace.append(found[-1])
        return found

    near = [moved(_wide(x), x.dtype) for x in inputs]
    return _run_wide(jaxpr, near, after)


CHAOTIC: Final = 0.25
"""A number that changes by more of itself is ill-conditioned."""


def is_unstable(
    jaxpr: Jaxpr, inputs: Sequence[Value], size: Callable[[DType], float], samples: int
) -> bool:
    """Return whether a computed number changes much, or other equations run, in perturbed runs."""
    traces: list[list[Value]] = [[] for _ in range(samples)]
    for seed, trace in enumerate(traces):
        evaluate_perturbed(jaxpr, inputs, seed, size, trace)
    first, *others = traces
    return any(
        len(first) != len(other) or any(map(_changes_much, first, other)) for other in others
    )


def _changes_much(x: Value, y: Value) -> bool:
    if x.shape != y.shape:
        return True
    with np.errstate(all="ignore"):
        return bool(np.any(np.abs(x - y) > CHAOTIC * np.abs(x)))


def _wide(x: Value) -> Value:
    return x.astype(double_of(x.dtype))


def _is_of(x: Value, ins: Sequence[Value]) -> Value:
    """Return the mask of the elements that are elements of the operands, up to their signs."""
    kind = np.complex128 if is_complex(x.dtype) else np.float64
    parts = [np.abs(a.astype(kind)).reshape(-1) for a in ins if is_inexact_dtype(a.dtype)]
    known = np.concatenate([*parts, [0.0]])
    return np.isin(np.abs(x), known)


class Defined(NamedTuple):
    """Masks of the results and references of a run that depend on defined, finite values alone."""

    outs: tuple[bool, ...]
    contents: tuple[bool, ...]


def defined(jaxpr: Jaxpr, inputs: Sequence[Value]) -> Defined:
    """Return which results depend on no input that is not finite, and on no undefined value.

    A value is undefined where an equation overflows, or returns nan for operands that are numbers.
    A dependence is one of the equations at the top: of all results on all operands.
    """
    found = [False]

    def after(eqn: Eqn, ins: Sequence[Value], outs: Sequence[Value]) -> Sequence[Value]:
        found[0] |= not eqn.prim.subjaxprs() and _begins(ins, outs)
        return outs

    values = [np.array(x) for x in inputs]
    env: dict[int, Value] = dict(zip((v.id for v in jaxpr.binders), values, strict=True))
    bad = {v.id for v, x in zip(jaxpr.binders, values, strict=True) if not _is_finite(x)}
    with np.errstate(all="ignore"):
        for eqn, made in zip(jaxpr.eqns, instrumented(jaxpr, after).eqns, strict=True):
            found[0] = False
            ins = [literal_value(a) if isinstance(a, Lit) else env[a.id] for a in eqn.ins]
            env.update(zip((v.id for v in eqn.outs), made.prim.evaluate(*ins), strict=True))
            operands = [a for a in eqn.ins if isinstance(a, Var)]
            if found[0] or any(a.id in bad for a in operands):
                bad.update([v.id for v in eqn.outs])
                bad.update([a.id for a in operands if isinstance(a.type, RefType)])
    return Defined(
        tuple([isinstance(a, Lit) or a.id not in bad for a in jaxpr.outs]),
        tuple([v.id not in bad for v in jaxpr.binders if isinstance(v.type, RefType)]),
    )


def _begins(ins: Sequence[Value], outs: Sequence[Value]) -> bool:
    """Return whether a result is infinite or nan and no operand is."""
    return any(_any(test, outs) and not _any(test, ins) for test in (np.isnan, np.isinf))


def _any(test: Callable[[Value], Value], values: Sequence[Value]) -> bool:
    return any(is_inexact_dtype(x.dtype) and bool(np.any(test(x))) for x in map(np.asarray, values))


def _is_finite(x: Value) -> bool:
    return not is_inexact_dtype(x.dtype) or bool(np.all(np.isfinite(x)))
