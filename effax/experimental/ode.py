"""Initial value problems of ordinary differential equations, with adjoint derivatives.

Sources: Dormand and Prince 1980, A family of embedded Runge-Kutta formulae; Shampine 1986, Some
practical Runge-Kutta formulas; Hairer, Norsett and Wanner, "Solving Ordinary Differential Equations
I" (1993), II.4; Pontryagin et al., "The Mathematical Theory of Optimal Processes" (1962).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

import effax.numpy as jnp
from effax import lax, tree
from effax.api.custom.closures import closure_convert
from effax.api.custom.decorators import custom_vjp
from effax.api.vjp import vjp
from effax.arrays.array import Array, ArrayLike
from effax.arrays.batching import vmap
from effax.ir.dtypes import is_inexact_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy.ravel_tree import ravel_pytree
from effax.tree import PyTree

__all__ = ["odeint"]

Field = Callable[[Array, Array, Sequence[Array]], Array]
"""The derivative of a flat state at a time, which also depends on other arrays."""

NODES: Final = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES: Final = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
LOWER_ORDER: Final = (
    *(5179 / 57600, 0.0, 7571 / 16695, 393 / 640),
    *(-92097 / 339200, 187 / 2100, 1 / 40),
)
ERROR: Final = tuple(x - y for x, y in zip((*STAGES[-1], 0.0), LOWER_ORDER, strict=True))
MIDDLE: Final = (
    *(6025192743 / 60171106304, 0.0, 51252292925 / 130801643196, -2691868925 / 90256659456),
    *(187940372067 / 3189068634112, -1776094331 / 39487288512, 11237099 / 470086768),
)
"""Weights of the stages in the state in the middle of a step (Shampine)."""


@dataclass(frozen=True)
class Options:
    """Tolerances of the error of a step, and bounds of the number and the size of steps."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


class _Step(NamedTuple):
    """The state after a step: its derivative, time, next step, and the step's polynomial."""

    y: Array
    slope: Array
    t: Array
    dt: Array
    last: Array
    polynomial: Array


def odeint(
    func: Callable[..., object],
    y0: object,
    t: ArrayLike,
    *args: object,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = float("inf"),
    hmax: float = float("inf"),
) -> PyTree:
    """Return the solution of ``dy/dt = func(y, t, *args)`` at the times ``t``.

    Steps are those of Dormand and Prince, of order 5, with an adaptive size. Gradients are found by
    integrating the adjoint equation backwards, in memory that does not grow with the number of
    steps; there is no forward mode.

    Args:
        func: derivative of the state; it may close over traced arrays.
        y0: initial state at ``t[0]``, a tree of arrays.
        t: increasing times, a vector of floats.
        *args: trees of arrays, passed on to ``func``.
        rtol: relative tolerance of the error of a step.
        atol: absolute tolerance.
        mxstep: bound of the steps between two times; the solution is nan where more are needed.
        hmax: bound of the size of a step.

    Returns:
        Tree like ``y0``, each leaf with a leading axis of the size of ``t``.

    Raises:
        BadArgument: a leaf of ``args`` is not an array.
        IllTyped: ``t`` is not a vector of floats, or ``func`` returns another structure.

    >>> from effax.experimental.ode import odeint
    >>> odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.3679], dtype=float32)
    """
    times = jnp.asarray(t)
    if times.ndim != 1 or not times.size or times.dtype.kind != "f":
        raise IllTyped("t is a vector of times", "floats of 1 axis", str(times.type))
    arrays = _arrays(args)
    start = tree.map(_inexact, y0)
    closed, consts = closure_convert(func, start, times[0], *args)
    flat, unravel = ravel_pytree(start)
    leaves, structure = tree.flatten((arrays, tuple(consts)))

    def field(y: Array, time: Array, others: Sequence[Array]) -> Array:
        own, captured = cast(
            "tuple[tuple[object, ...], tuple[object, ...]]", tree.unflatten(structure, others)
        )
        slope, _ = ravel_pytree(closed(unravel(y), time, *own, *captured))
        if slope.shape != y.shape:
            raise IllTyped("func returns another structure than y0", str(y.type), str(slope.type))
        return slope.astype(y.dtype)

    found = _solution(field, Options(rtol, atol, mxstep, hmax), flat, times, leaves)
    return vmap(unravel)(found)


def _inexact(x: ArrayLike) -> Array:
    value = jnp.asarray(x)
    return value if is_inexact_dtype(value.dtype) else value.astype(jnp.result_type(value, float))


def _arrays(args: tuple[object, ...]) -> tuple[object, ...]:
    def as_array(x: object) -> Array:
        try:
            return jnp.asarray(cast(ArrayLike, x))
        except (TypeError, ValueError) as error:
            raise BadArgument("args of odeint are arrays", "an array or scalar", repr(x)) from error

    return tuple(tree.map(as_array, arg) for arg in args)


def _solution(
    field: Field, options: Options, y0: Array, times: Array, others: Sequence[Array]
) -> Array:
    """Return the states at all times, one a row."""
    moving = [is_inexact_dtype(x.dtype) for x in others]

    @custom_vjp
    def solve(y0: Array, times: Array, *others: Array) -> Array:
        return _integrated(lambda y, t: field(y, t, others), y0, times, options)

    def forward(y0: Array, times: Array, *others: Array) -> tuple[Array, tuple[Array, ...]]:
        ys = solve(y0, times, *others)
        return ys, (ys, times, *others)

    def backward(kept: tuple[Array, ...], cts: Array) -> tuple[Array | None, ...]:
        ys, times, *others = kept
        y_ct, time_cts, other_cts = _adjoint(field, options, (ys, times, others), cts)
        by_leaf = iter(other_cts)
        return y_ct, time_cts, *[next(by_leaf) if moves else None for moves in moving]

    solve.defvjp(forward, backward)
    return solve(y0, times, *others)


def _adjoint(
    field: Field, options: Options, kept: tuple[Array, Array, Sequence[Array]], cts: Array
) -> tuple[Array, Array, list[Array]]:
    """Return the cotangents of the initial state, the times and the other arrays.

    With a = ct: da/dt = -aᵀ·∂f/∂y backwards in time, to which cts are added at their times, and the
    cotangents of the arrays are the integrals of aᵀ·∂f/∂θ; that of a time is aᵀ·f.
    """
    ys, times, others = kept
    moving = [x for x in others if is_inexact_dtype(x.dtype)]

    def whole(moved: Sequence[Array]) -> list[Array]:
        given = iter(moved)
        return [next(given) if is_inexact_dtype(x.dtype) else x for x in others]

    def slopes(y: Array, t: Array, *moved: Array) -> Array:
        return field(y, t, whole(moved))

    def backwards(state: list[object], minus_t: Array, fixed: tuple[Array, ...]) -> list[object]:
        y, ct, _, _ = cast("tuple[Array, Array, object, object]", state)
        slope, pull = vjp(slopes, y, -minus_t, *fixed)
        y_ct, t_ct, *fixed_cts = cast("tuple[Array, ...]", pull(ct))
        return [-slope, y_ct, t_ct, list(fixed_cts)]

    def piece(
        state: tuple[Array, Array, list[Array]], row: tuple[Array, ...]
    ) -> tuple[tuple[Array, Array, list[Array]], Array]:
        ct, start_ct, fixed_cts = state
        y, t, t_before, y_ct, ct_before = row
        moved = jnp.real(jnp.dot(slopes(y, t, *moving), y_ct)).astype(t.dtype)
        begin: list[object] = [y, ct, start_ct - moved, fixed_cts]
        ends = odeint(
            backwards,
            begin,
            jnp.stack([-t, -t_before]),
            tuple(moving),
            rtol=options.rtol,
            atol=options.atol,
            mxstep=options.mxstep,
            hmax=options.hmax,
        )
        _, ct, start_ct, fixed_cts = cast(
            "tuple[object, Array, Array, list[Array]]", tree.map(lambda x: x[1], ends)
        )
        return (ct + ct_before, start_ct, fixed_cts), moved

    zero = [jnp.zeros_like(x) for x in moving]
    rows = (ys[1:], times[1:], times[:-1], cts[1:], cts[:-1])
    first = (cts[-1], jnp.zeros((), times.dtype), zero)
    (y_ct, start_ct, fixed_cts), time_cts = lax.scan(piece, first, rows, reverse=True)
    return y_ct, jnp.concatenate([start_ct[None], time_cts]), fixed_cts


def _integrated(
    slope: Callable[[Array, Array], Array], y0: Array, times: Array, options: Options
) -> Array:
    first = slope(y0, times[0])
    dt = jnp.clip(_initial_step(slope, y0, first, times[0], options), 0, options.hmax)
    dt = dt.astype(times.dtype)
    start = _Step(y0, first, times[0], dt, times[0], jnp.stack([y0 * 0] * 4 + [y0]))

    def towards(at: _Step, target: Array) -> tuple[_Step, Array]:
        def unfinished(state: tuple[Array, _Step]) -> Array:
            count, now = state
            return (now.t < target) & (count < options.mxstep) & (now.dt > 0)

        def advance(state: tuple[Array, _Step]) -> tuple[Array, _Step]:
            return state[0] + 1, _advanced(slope, state[1], options)

        _, at = lax.while_loop(unfinished, advance, (jnp.int32(0), at))
        span = at.t - at.last
        place = ((target - at.last) / jnp.where(span == 0, 1, span)).astype(y0.dtype)
        found = jnp.polyval(at.polynomial, place)
        return at, jnp.where(at.t < target, jnp.nan, found)

    _, ys = lax.scan(towards, start, times[1:])
    return jnp.concatenate([y0[None], ys])


def _initial_step(
    slope: Callable[[Array, Array], Array], y: Array, first: Array, t: Array, options: Options
) -> Array:
    """Return a step whose error is of the size of the tolerance (Hairer et al., II.4)."""
    scale = options.atol + jnp.abs(y) * options.rtol
    d0, d1 = (_size(x / scale) for x in (y, first))
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(small, 1e-6, 0.01 * d0 / jnp.where(small, 1, d1))
    second = slope(y + h0.astype(y.dtype) * first, t + h0.astype(t.dtype))
    d2 = _size((second - first) / scale) / h0
    largest = jnp.maximum(d1, d2)
    flat = largest <= 1e-15
    h1 = jnp.where(
        flat, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.where(flat, 1, largest)) ** (1 / 5)
    )
    return jnp.minimum(100 * h0, h1)


def _size(x: Array) -> Array:
    return jnp.linalg.norm(x)


def _advanced(slope: Callable[[Array, Array], Array], at: _Step, options: Options) -> _Step:
    """Return the state after a step, or with a smaller step if its error is too large."""
    h = at.dt.astype(at.y.dtype)
    stages, new = [at.slope], at.y
    for node, weights in zip(NODES[1:], STAGES, strict=True):
        new = at.y + h * _combined(weights, stages)
        stages.append(slope(new, at.t + node * at.dt))
    error = h * _combined(ERROR, stages)
    bound = options.atol + options.rtol * jnp.maximum(jnp.abs(at.y), jnp.abs(new))
    ratio = jnp.sqrt(jnp.mean(jnp.square(jnp.abs(error) / bound)))
    accepted = ratio <= 1
    dt = jnp.clip(at.dt * _growth(ratio).astype(at.dt.dtype), 0, options.hmax)
    middle = at.y + h * _combined(MIDDLE, stages)
    polynomial = _quartic(at.y, new, middle, h * stages[0], h * stages[-1])
    moved = _Step(new, stages[-1], at.t + at.dt, dt, at.t, polynomial)
    kept = at._replace(dt=dt)
    return _Step(*[jnp.where(accepted, x, y) for x, y in zip(moved, kept, strict=True)])


def _combined(weights: Sequence[float], stages: Sequence[Array]) -> Array:
    parts = [float(w) * k for w, k in zip(weights, stages, strict=True) if w]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _growth(ratio: Array) -> Array:
    """Return the factor of the next step, from the ratio of the error to the tolerance."""
    least = jnp.where(ratio < 1, 1.0, 0.2)
    vanishes = ratio == 0
    factor = 0.9 * jnp.where(vanishes, 1, ratio) ** (-1 / 5)
    return jnp.where(vanishes, 10.0, jnp.clip(factor, least, 10.0))


def _quartic(start: Array, end: Array, middle: Array, first: Array, last: Array) -> Array:
    """Return the polynomial on [0, 1] with three values, and slopes at the ends."""
    return jnp.stack(
        [
            2 * (last - first) - 8 * (start + end) + 16 * middle,
            5 * first - 3 * last + 18 * start + 14 * end - 32 * middle,
            last - 4 * first - 11 * start - 5 * end + 16 * middle,
            first,
            start,
        ]
    )
