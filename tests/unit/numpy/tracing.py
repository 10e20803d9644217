"""Tracing of functions on values, and evaluation of the traced programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from effax.arrays.array import Array
from effax.arrays.binding import atom_in, handle, value_of
from effax.arrays.conversion import as_value
from effax.ir.eval.numpy import evaluate
from effax.ir.syntax import Jaxpr
from effax.ir.trace import Trace, Traced, tracing


def _trace(function: Callable[..., Any], args: tuple[Array, ...]) -> Traced:
    trace = Trace(handle, "test", None)
    with tracing(trace):
        out = function(*[trace.bind(a.type) for a in args])
        outs = out if isinstance(out, list | tuple) else [out]
        return trace.finish([atom_in(trace, as_value(x)) for x in outs])


def traced(function: Callable[..., Any], *args: Array) -> Jaxpr:
    """Return the program of a function on arguments of these types."""
    return _trace(function, args).jaxpr


def run_traced(function: Callable[..., Any], *args: Array) -> Any:
    """Return the results of the traced program: one array, or a list of them."""
    made = _trace(function, args)
    consts = [value_of(cast(Array, c)) for c in made.consts]
    results = evaluate(made.jaxpr, [*consts, *(np.asarray(a) for a in args)])
    return results[0] if len(results) == 1 else results
