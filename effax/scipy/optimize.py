"""Minimization of functions of a vector: BFGS, and L-BFGS with limited memory.

Source: Nocedal and Wright, "Numerical Optimization" (2006), 6.1 and 7.2; the line search is that of
Lewis and Overton, "Nonsmooth optimization via quasi-Newton methods" (2013), 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import effax.numpy as jnp
from effax import lax
from effax.api.autodiff import value_and_grad
from effax.arrays.array import Array, ArrayLike
from effax.ir.errors import BadArgument, IllTyped

__all__ = ["OptimizeResults", "minimize"]

LIMITED: Final = "l-bfgs-experimental-do-not-rely-on-this"


class OptimizeResults(NamedTuple):
    """The result of a minimization.

    ``status`` is 0 where the gradient is small, 1 where ``maxiter`` or ``maxfun`` is reached, and 3
    where no step was found that decreases the function.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


class _State(NamedTuple):
    """A point of the iteration; ``memory`` determines the approximation of the inverse Hessian."""

    x: Array
    f: Array
    g: Array
    memory: tuple[Array, ...]
    calls: Array
    steps: Array
    failed: Array
    small: Array


class _Memory(NamedTuple):
    """Functions that start, apply and update an approximation of the inverse Hessian."""

    start: tuple[Array, ...]
    apply: Callable[[tuple[Array, ...], Array], Array]
    update: Callable[[tuple[Array, ...], Array, Array, Array], tuple[Array, ...]]


ValueAndSlope = Callable[[Array], tuple[Array, Array]]


def minimize(
    fun: Callable[..., ArrayLike],
    x0: ArrayLike,
    args: tuple[object, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, object] | None = None,
) -> OptimizeResults:
    """Minimize ``fun(x, *args)`` from ``x0``.

    Args:
        fun: function of a vector that returns a scalar.
        x0: start, a vector; a complex one is minimized over its real and imaginary parts, whose
            derivatives are the parts of ``jac``, and the axes of ``hess_inv`` in this order.
        args: further arguments of ``fun``.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this".
        tol: bound of the norm of the gradient; 1e-5 by default.
        options: ``maxiter``, ``gtol``, ``norm`` (order of the norm, inf by default), ``maxcor``
            (steps that L-BFGS remembers), ``maxfun``, ``ftol``, ``maxls``.

    Returns:
        OptimizeResults.

    Raises:
        BadArgument: an unknown method or option.
        IllTyped: ``x0`` is not a vector of inexact numbers, or ``fun`` does not return a scalar.

    >>> optimize.minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2), method="BFGS").x
    Array([1., 1.], dtype=float32)
    """
    start = jnp.asarray(x0)
    if start.ndim != 1 or not jnp.issubdtype(start.dtype, jnp.inexact):
        raise IllTyped(
            "x0 is a vector of inexact numbers", "an inexact array of 1 axis", str(start.type)
        )
    if jnp.iscomplexobj(start):
        n = start.size

        def joined(parts: Array) -> Array:
            return lax.complex(parts[:n], parts[n:])

        parts = jnp.concatenate([start.real, start.imag])
        found = minimize(
            lambda parts, *args: fun(joined(parts), *args),
            parts,
            args,
            method=method,
            tol=tol,
            options=options,
        )
        return found._replace(x=joined(found.x), jac=joined(found.jac))
    settings = dict(options or {})
    unknown = set(settings) - {
        "maxiter",
        "gtol",
        "norm",
        "maxcor",
        "maxfun",
        "ftol",
        "maxls",
        "maxgrad",
    }
    if unknown or method.lower() not in ("bfgs", LIMITED):
        name = ", ".join(sorted(unknown)) or method
        raise BadArgument("unknown method or option of minimize", f"BFGS or {LIMITED}", name)
    limited = method.lower() == LIMITED
    memory = _history(start, _integer(settings, "maxcor", 10)) if limited else _inverse(start)
    value = value_and_grad(lambda x: jnp.asarray(fun(x, *args), start.dtype))
    state = _iterate(value, start, memory, settings, tol)
    status = jnp.where(state.small, 0, jnp.where(state.failed, 3, 1))
    inverse = None if limited else state.memory[0]
    return OptimizeResults(
        state.x,
        state.small,
        status,
        state.f,
        state.g,
        inverse,
        state.calls,
        state.calls,
        state.steps,
    )


def _number(settings: Mapping[str, object], name: str, default: float) -> float:
    found = settings.get(name)
    return default if found is None else float(found)  # type: ignore[arg-type]  # a number


def _integer(settings: Mapping[str, object], name: str, default: int) -> int:
    return int(_number(settings, name, default))


def _iterate(
    value: ValueAndSlope,
    start: Array,
    memory: _Memory,
    settings: Mapping[str, object],
    tol: float | None,
) -> _State:
    gtol = _number(settings, "gtol", 1e-5 if tol is None else tol)
    ftol = _number(settings, "ftol", 0.0)
    order = _number(settings, "norm", float("inf"))
    maxiter = _integer(settings, "maxiter", start.size * 200)
    maxfun = _integer(settings, "maxfun", 2**30)
    maxls = _integer(settings, "maxls", 30)

    def is_small(g: Array) -> Array:
        return jnp.linalg.norm(g, ord=order) < gtol

    def again(s: _State) -> Array:
        return ~s.small & ~s.failed & (s.steps < maxiter) & (s.calls < maxfun)

    def step(s: _State) -> _State:
        direction = -memory.apply(s.memory, s.g)
        slope = jnp.dot(direction, s.g)
        # A direction that does not descend is replaced by the steepest one.
        bad = ~(slope < 0)
        direction = jnp.where(bad, -s.g, direction)
        slope = jnp.where(bad, -jnp.dot(s.g, s.g), slope)
        first = jnp.where(s.steps == 0, jnp.minimum(1, 1 / jnp.sum(jnp.abs(s.g))), 1)
        t, f, g, calls = _search(value, s, direction, slope, first.astype(start.dtype), maxls)
        x = s.x + t * direction
        failed = ~jnp.isfinite(f) | (t == 0)
        x, f, g = (
            jnp.where(failed, old, new) for old, new in zip((s.x, s.f, s.g), (x, f, g), strict=True)
        )
        ds, dg = x - s.x, g - s.g
        changed = memory.update(s.memory, ds, dg, jnp.dot(ds, dg))
        scale = jnp.maximum(jnp.maximum(jnp.abs(f), jnp.abs(s.f)), 1)
        flat = (s.f - f <= ftol * scale) if ftol > 0 else jnp.asarray(False)
        small = is_small(g) | (flat & ~failed)
        return _State(x, f, g, changed, s.calls + calls, s.steps + 1, failed & ~small, small)

    f, g = value(start)
    zero = jnp.asarray(0)
    first = _State(start, f, g, memory.start, zero + 1, zero, jnp.asarray(False), is_small(g))
    return lax.while_loop(again, step, first)


def _search(
    value: ValueAndSlope, s: _State, direction: Array, slope: Array, first: Array, bound: int
) -> tuple[Array, Array, Array, Array]:
    """Return a step with Wolfe's conditions, by bisection, with its value, gradient and calls."""

    def at(t: Array) -> tuple[Array, Array]:
        return value(s.x + t * direction)

    def fits(t: Array, f: Array, g: Array) -> tuple[Array, Array]:
        low_enough = (f <= s.f + 1e-4 * t * slope) & jnp.isfinite(f)
        flat_enough = jnp.dot(g, direction) >= 0.9 * slope
        return low_enough, flat_enough

    def again(state: tuple[Array, ...]) -> Array:
        k, t, f, g, *_ = state
        low_enough, flat_enough = fits(t, f, g)
        return (k < bound) & ~(low_enough & flat_enough)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        k, t, f, g, low, high = state
        low_enough, _ = fits(t, f, g)
        low, high = jnp.where(low_enough, t, low), jnp.where(low_enough, high, t)
        t = jnp.where(jnp.isinf(high), 2 * low, 0.5 * (low + jnp.where(jnp.isinf(high), 0, high)))
        f, g = at(t)
        return k + 1, t, f, g, low, high

    f, g = at(first)
    zero = jnp.zeros_like(first)
    state: tuple[Array, ...] = (jnp.asarray(1), first, f, g, zero, zero + jnp.inf)
    k, t, f, g, *_ = lax.while_loop(again, step, state)
    # A step that decreases the function is taken even where its slope is still steep.
    taken = fits(t, f, g)[0] | (f < s.f)
    return jnp.where(taken, t, 0), jnp.where(taken, f, s.f), jnp.where(taken, g, s.g), k


def _inverse(x: Array) -> _Memory:
    """Return BFGS: the inverse Hessian as a matrix."""
    unit = jnp.eye(x.size, dtype=x.dtype)

    def update(
        memory: tuple[Array, ...], ds: Array, dg: Array, curvature: Array
    ) -> tuple[Array, ...]:
        (h,) = memory
        safe = jnp.where(curvature > 0, curvature, 1)
        # H' = (I - ρ·s·yᵀ)·H·(I - ρ·y·sᵀ) + ρ·s·sᵀ, ρ = 1/(sᵀy)
        left = unit - jnp.outer(ds, dg) / safe
        changed = left @ h @ left.T + jnp.outer(ds, ds) / safe
        return (jnp.where(curvature > 0, changed, h),)

    return _Memory((unit,), lambda memory, g: memory[0] @ g, update)


def _history(x: Array, size: int) -> _Memory:
    """Return L-BFGS: the last steps and changes of the gradient, the newest last."""
    empty = jnp.zeros((size, x.size), x.dtype)

    def apply(memory: tuple[Array, ...], g: Array) -> Array:
        steps, changes, rho, gamma = memory
        factors = []
        for k in range(size - 1, -1, -1):
            factor = rho[k] * jnp.dot(steps[k], g)
            g = g - factor * changes[k]
            factors.append(factor)
        g = gamma * g
        for k in range(size):
            g = g + steps[k] * (factors[size - 1 - k] - rho[k] * jnp.dot(changes[k], g))
        return g

    def update(
        memory: tuple[Array, ...], ds: Array, dg: Array, curvature: Array
    ) -> tuple[Array, ...]:
        steps, changes, rho, _ = memory
        safe = jnp.where(curvature > 0, curvature, 1)
        pushed = [
            jnp.concatenate([old[1:], new[None]])
            for old, new in ((steps, ds), (changes, dg), (rho, 1 / safe))
        ]
        square = jnp.dot(dg, dg)
        gamma = safe / jnp.where(square > 0, square, 1)
        kept = (*pushed, gamma)
        return tuple(
            [jnp.where(curvature > 0, new, old) for new, old in zip(kept, memory, strict=True)]
        )

    start = (empty, empty, jnp.zeros(size, x.dtype), jnp.ones((), x.dtype))
    return _Memory(start, apply, update)
