"""Taylor mode: the derivatives of a function along a curve, to any order at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, cast

from effax import tree
from effax.api.derivatives import traced_call
from effax.arrays.array import Array
from effax.arrays.binding import annotate_errors, run
from effax.arrays.conversion import as_value
from effax.arrays.creation import zeros
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.types import ArrayType, Type, is_inexact, tangent_type
from effax.transforms.discharge import discharge
from effax.transforms.framework.runner import unwrap
from effax.transforms.jet import jet as jet_pass
from effax.tree import PyTree

__all__ = ["fact", "jet", "zero_series"]


class _ZeroSeries:
    """A series of zeros of any shape, in place of the coefficients of an argument."""

    def __repr__(self) -> str:
        return "zero_series"


zero_series: Final = _ZeroSeries()


def fact(n: int) -> int:
    """Return the factorial of a number.

    >>> fact(4)
    24
    """
    return math.factorial(n)


def jet(
    fun: Callable[..., object],
    primals: Sequence[object],
    series: Sequence[object],
    factorial_scaled: bool = True,
) -> tuple[PyTree, PyTree]:
    """Return ``fun`` on power series: its value and its derivatives along a curve.

    With the curve ``x(t) = x_0 + x_1 t + x_2 t²/2! + ...``, the results are the derivatives of
    ``fun(x(t))`` at 0 of order 0, 1, 2, ...; the cost grows with the square of the order for most
    functions, where iterated ``jvp`` doubles it with each order.

    Source: Griewank and Walther, "Evaluating Derivatives" (2008), 13.

    Args:
        fun: function of trees of arrays, without references of the caller.
        primals: its arguments x_0.
        series: for each argument the derivatives x_1, x_2, ..., each a tree like the argument, as
            many for each; or ``zero_series``.
        factorial_scaled: whether series are of derivatives; otherwise of the coefficients of tⁿ.

    Returns:
        The result, and a tree like it with a list of derivatives in place of each array.

    Raises:
        BadArgument: series of other lengths than the first, or not one an argument.
        IllTyped: a derivative has another structure or shape than its argument.
        TransformError: a primitive has no derivative, or a reference of the caller is used.

    >>> from effax.experimental.jet import jet
    >>> jet(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],))[1]
    [Array(1., dtype=float32), Array(1., dtype=float32), Array(1., dtype=float32)]
    """
    order = _order(primals, series)
    call = traced_call(fun, tuple(primals), {}, "jet", False)
    types = [x.type for x in call.args.leaves]
    terms = _terms(primals, series, types, order)
    mask = [term is not None for term in terms]
    pure = unwrap(discharge(call.flat.jaxpr)).jaxpr
    n_outs = len(call.flat.jaxpr.outs)
    forced = [
        *[is_inexact(t) for t in call.flat.jaxpr.out_types],
        *[False] * (len(pure.outs) - n_outs),
    ]
    with annotate_errors(call.operands):
        done = unwrap(jet_pass(pure, (*[False] * call.n_consts, *mask), order, forced))
    scales = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    given = [
        _in_type(x / s, t)
        for term, t in zip(terms, types, strict=True)
        if term is not None
        for x, s in zip(term, scales, strict=True)
    ]
    results = run(done.jaxpr, [*call.operands, *given])
    rest = iter(results[len(pure.outs) :])
    outs: list[list[Array]] = [
        [next(rest) * s for s in scales] if has else [zeros(y.shape, y.dtype) for _ in scales]
        for y, has in zip(results[:n_outs], done.out_series, strict=False)
    ]
    main = call.main
    return tree.unflatten(main, results[:n_outs]), tree.unflatten(main, outs)


def _in_type(x: Array, type_: Type) -> Array:
    wanted = tangent_type(type_)
    assert isinstance(wanted, ArrayType)
    return x.astype(wanted.dtype)


def _order(primals: Sequence[object], series: Sequence[object]) -> int:
    if not isinstance(primals, tuple | list) or not isinstance(series, tuple | list):
        raise BadArgument("jet takes arguments and series in tuples", "two tuples")
    if len(primals) != len(series):
        raise BadArgument(
            "jet takes a series for each argument", str(len(primals)), str(len(series))
        )
    lengths = {len(cast("Sequence[object]", s)) for s in series if s is not zero_series}
    if len(lengths) > 1:
        raise BadArgument("series of jet have inconsistent lengths", "one length", str(lengths))
    return lengths.pop() if lengths else 0


def _terms(
    primals: Sequence[object], series: Sequence[object], types: Sequence[Type], order: int
) -> list[list[Array] | None]:
    """Return the coefficients of each leaf; None for those without."""
    found: list[list[Array] | None] = []
    for i, (primal, terms) in enumerate(zip(primals, series, strict=True)):
        leaves, structure = tree.flatten(primal)
        columns: list[list[Array]] = [[] for _ in leaves]
        for term in () if terms is zero_series else cast("Sequence[object]", terms):
            parts, other = tree.flatten(term)
            if other != structure:
                raise IllTyped(f"series[{i}] has another structure", str(structure), str(other))
            for column, part in zip(columns, parts, strict=True):
                column.append(as_value(part, f"a term of series[{i}]"))
        for column in columns:
            type_ = types[len(found)]
            bad = [x for x in column if x.shape != type_.shape]
            if bad:
                raise IllTyped(f"a term of series[{i}] does not fit", str(type_), str(bad[0].type))
            found.append(column if column and order and is_inexact(type_) else None)
    return found
