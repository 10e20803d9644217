"""The reference evaluator, which defines the meaning of programs on NumPy values.

A reference is a writable array, updated in place. All other arrays are read-only by convention, so
results may share memory with operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from effax.ir.axes import open_program
from effax.ir.dtypes import FLOAT0
from effax.ir.eval.bounds import METER, metered
from effax.ir.primitive import Value
from effax.ir.recursion import kind_may_have_subjaxprs, kinds_of, with_fresh_stack
from effax.ir.state import cached
from effax.ir.syntax import Atom, Jaxpr, Lit


@cached(maxsize=1 << 12)
def literal_value(lit: Lit) -> Value:
    """Return the NumPy value of a literal."""
    dtype = lit.type.dtype
    value = np.zeros((), dtype) if dtype == FLOAT0 else np.asarray(lit.value, dtype)
    value.setflags(write=False)
    return value


def evaluate(jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
    """Run a program on NumPy values.

    Args:
        jaxpr: the program; its constants are among its binders.
        args: one array for each binder; for a reference, its buffer, which is written in place.

    Returns:
        One array for each result.

    Raises:
        UnboundAxis: the program has free axes; nothing is run.
        Unfinished: a bound of the context (:mod:`effax.ir.eval.bounds`) is exceeded.
    """
    if jaxpr.free_axes:
        raise open_program(jaxpr.free_axes, "evaluated")
    if len(args) != len(jaxpr.binders):
        raise ValueError(f"the program takes {len(jaxpr.binders)} arguments, not {len(args)}")
    meter = METER.get()
    if meter is not None:
        meter.count(len(jaxpr.eqns))
    env: list[Value | None] = [None] * jaxpr.size
    for v, value in zip(jaxpr.binders, args, strict=True):
        env[v.id] = value
    with np.errstate(all="ignore"):
        for prim, ins, outs, _, _ in jaxpr.eqns:
            values = [literal_value(a) if type(a) is Lit else env[a.id] for a in ins]
            results = prim.evaluate(*values)  # type: ignore[arg-type]  # bound before use
            for v, result in zip(outs, results, strict=True):
                env[v.id] = result
    return [literal_value(a) if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs]  # type: ignore[misc]  # bound before use


def prepare(jaxpr: Jaxpr) -> Callable[..., list[Value]]:
    """Return a function that evaluates a program repeatedly.

    It is :func:`evaluate` with the work common to all calls done once, at the first call. The
    caller turns off NumPy's warnings.
    """
    kept: list[Callable[..., list[Value]]] = []

    def run(*args: Value) -> list[Value]:
        if not kept:
            kept.append(_prepared(jaxpr))
        return kept[0](*args)

    return run


def _prepared(jaxpr: Jaxpr) -> Callable[..., list[Value]]:
    if jaxpr.free_axes:
        raise open_program(jaxpr.free_axes, "evaluated")
    # An environment has the variables by number, followed by the literals.
    start = cast("list[Value]", [None] * jaxpr.size)  # None is never read: bound before use
    places: dict[Lit, int] = {}

    def place(atom: Atom) -> int:
        if not isinstance(atom, Lit):
            return atom.id
        if atom not in places:
            places[atom] = len(start)
            start.append(literal_value(atom))
        return places[atom]

    steps = [
        (eqn.prim.prepare(), [place(a) for a in eqn.ins], [v.id for v in eqn.outs])
        for eqn in jaxpr.eqns
    ]
    binders, returned = [v.id for v in jaxpr.binders], [place(a) for a in jaxpr.outs]

    def run(*args: Value) -> list[Value]:
        env = start.copy()
        for k, value in zip(binders, args, strict=True):
            env[k] = value
        for apply, ins, outs in steps:
            results = apply(*[env[k] for k in ins])
            for k, value in zip(outs, results, strict=True):
                env[k] = value
        return [env[k] for k in returned]

    run_metered = metered(run, len(steps))
    nests = any(map(kind_may_have_subjaxprs, kinds_of(jaxpr)))
    return with_fresh_stack(run_metered) if nests else run_metered
