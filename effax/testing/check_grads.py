"""Compare derivatives of callables with differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from effax import tree
from effax.api.autodiff import jvp
from effax.api.vjp import vjp
from effax.arrays.config import config
from effax.ir.dtypes import FLOAT0, DType, as_dtype, is_complex, is_inexact_dtype
from effax.ir.errors import BadArgument
from effax.numpy.dtypes import finfo
from effax.tree import PyTree

MODES = ("fwd", "rev")

Tolerance = float | Mapping[object, float]
"""A tolerance, or one for each dtype."""


class Limits(NamedTuple):
    """The tolerances of a comparison; None where the precision of the dtype decides."""

    atol: Tolerance | None
    rtol: Tolerance | None

    def at(self, dtypes: Sequence[DType]) -> tuple[float, float]:
        """Return the tolerances of the least precise of some dtypes."""
        worst = max(map(_rounding, dtypes), default=0.0)
        loose = 20 * worst ** (2 / 3)
        return _tolerance(self.atol, dtypes, loose), _tolerance(self.rtol, dtypes, loose)


def _tolerance(given: Tolerance | None, dtypes: Sequence[DType], loose: float) -> float:
    if not isinstance(given, Mapping):
        return loose if given is None else given
    known = {as_dtype(dtype): limit for dtype, limit in given.items()}
    return max([known[d] for d in dtypes if d in known], default=loose)


def check_grads(
    f: Callable[..., object],
    args: Sequence[object],
    order: int = 1,
    modes: Sequence[str] = MODES,
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
) -> None:
    """Compare the derivatives of ``f`` at ``args``, along random directions, with differences.

    Forward mode (``"fwd"``): ``df(x)(t)`` is compared with a central difference along ``t``.
    Reverse mode (``"rev"``): ``<vjp(ct), t>`` is compared with ``<ct, central difference>``.

    Args:
        f: a function of trees of arrays that returns a tree of arrays.
        args: its arguments; floating and complex arrays in them vary.
        order: the highest order of derivatives that is compared.
        modes: ``"fwd"``, ``"rev"`` or both; of a higher order, every combination.
        atol: the absolute tolerance, or one for each dtype; if None, or for a dtype without one,
            by the least precise dtype.
        rtol: the tolerance relative to the magnitude of the derivative; likewise.
        eps: the step of the differences; likewise.

    Raises:
        AssertionError: a derivative differs from the difference.
        BadArgument: an unknown mode, or an order less than 1.
    """
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or order < 1:
        raise BadArgument(
            "unknown modes or order",
            expected='modes "fwd" and "rev", and an order of at least 1',
            found=f"modes {tuple(modes)!r}, order {order!r}",
        )
    _check(f, tuple(args), order, tuple(modes), Limits(atol, rtol), _step(args, eps), ())


def check_jvp(
    f: Callable[..., object],
    f_jvp: Callable[..., tuple[object, object]],
    args: Sequence[object],
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare ``f_jvp(primals, tangents)``, such as ``partial(jvp, f)``, with a difference.

    Other arguments and errors are those of :func:`check_grads`; ``err_msg`` begins messages.

    >>> effax.test_util.check_jvp(jnp.sin, lambda *xs: effax.jvp(jnp.sin, *xs), (0.5,))
    """
    point = _point(f, tuple(args), Limits(atol, rtol), _step(args, eps), 0)
    out, moved = f_jvp(point.args, point.direction)
    _compare_value(err_msg or "f_jvp", f, point, out)
    _compare_forward(err_msg or "the derivative in mode fwd", point, moved)


def check_vjp(
    f: Callable[..., object],
    f_vjp: Callable[..., tuple[object, Callable[..., object]]],
    args: Sequence[object],
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare ``f_vjp(*args)``, such as ``partial(vjp, f)``, with a difference.

    Other arguments and errors are those of :func:`check_grads`; ``err_msg`` begins messages.

    >>> effax.test_util.check_vjp(jnp.sin, lambda x: effax.vjp(jnp.sin, x), (0.5,))
    """
    point = _point(f, tuple(args), Limits(atol, rtol), _step(args, eps), 0)
    out, pull = f_vjp(*args)
    _compare_value(err_msg or "f_vjp", f, point, out)
    _compare_reverse(err_msg or "the derivative in mode rev", point, out, pull)


class _Point(NamedTuple):
    """Arguments, a random direction, the difference along it, and the tolerances."""

    args: tuple[PyTree, ...]
    direction: PyTree
    slope: PyTree
    rng: np.random.Generator
    limits: Limits


def _point(
    f: Callable[..., object], args: tuple[PyTree, ...], limits: Limits, step: float, seed: int
) -> _Point:
    rng = np.random.default_rng(seed)
    direction = _random_like(rng, args)
    return _Point(args, direction, _central_difference(f, args, direction, step), rng, limits)


def _compare_forward(name: str, point: _Point, moved: object) -> None:
    dtypes = [*_dtypes(point.args), *_dtypes(moved)]
    _compare(name, point.slope, moved, point.limits.at(dtypes))


def _compare_reverse(name: str, point: _Point, out: object, pull: Callable[..., object]) -> None:
    cotangent = _random_like(point.rng, out)
    expected = _inner_product(cotangent, point.slope)
    found = _inner_product(pull(cotangent), point.direction)
    dtypes = [*_dtypes(point.args), *_dtypes(out)]
    _compare(f"{name}, <vjp(ct), t>", expected, found, point.limits.at(dtypes))


def _check(
    f: Callable[..., object],
    args: tuple[PyTree, ...],
    order: int,
    modes: tuple[str, ...],
    limits: Limits,
    step: float,
    path: tuple[str, ...],
) -> None:
    point = _point(f, args, limits, step, len(path))
    for mode in modes:
        here = (*path, mode)
        name = "the derivative in mode " + ", then ".join(here)
        if mode == "fwd":
            _compare_forward(name, point, jvp(f, args, point.direction)[1])
        else:
            _compare_reverse(name, point, *vjp(f, *args))
        if order > 1:
            derivative = _derivative(f, mode, point.direction, args, point.rng)
            _check(derivative, args, order - 1, modes, limits, step, here)


def _derivative(
    f: Callable[..., object],
    mode: str,
    direction: PyTree,
    args: tuple[PyTree, ...],
    rng: np.random.Generator,
) -> Callable[..., object]:
    """Return the derivative in one direction, or of one combination of results."""
    if mode == "fwd":
        return lambda *xs: _inexact(jvp(f, xs, direction)[1])
    cotangent = _random_like(rng, f(*args))
    return lambda *xs: _inexact(vjp(f, *xs)[1](cotangent))


def _inexact(values: object) -> list[PyTree]:
    """Return the leaves that have tangents."""
    return [x for x in tree.leaves(values) if is_inexact_dtype(np.dtype(x.dtype))]


def _dtypes(values: object) -> list[DType]:
    """Return the dtypes of the leaves that have tangents."""
    found = [np.asarray(x).dtype for x in tree.leaves(values)]
    return [dtype for dtype in found if is_inexact_dtype(dtype)]


def _step(args: Sequence[object], eps: float | None) -> float:
    """Return the step of differences; if it is not given, by the least precise dtype."""
    worst = max(map(_rounding, _dtypes(tuple(args))), default=1.0)
    return worst ** (1 / 3) if eps is None else eps


def _rounding(dtype: DType) -> float:
    """Return the rounding error of a dtype, as arrays of it have it."""
    # A Python float, and an array of doubles, are single precision unless 64 bits are enabled.
    coarse = 0.0 if config.enable_x64 else 2.0**-23
    return max(float(finfo(dtype).eps), coarse)


def _random_like(rng: np.random.Generator, values: object) -> PyTree:
    def random(x: object) -> np.ndarray:
        like = np.asarray(x)
        if not is_inexact_dtype(like.dtype):
            return np.zeros(like.shape, FLOAT0)
        drawn = rng.standard_normal(like.shape)
        if is_complex(like.dtype):
            drawn = drawn + 1j * rng.standard_normal(like.shape)
        return np.asarray(drawn).astype(like.dtype)

    return tree.map(random, values)


def _central_difference(
    f: Callable[..., object], args: tuple[PyTree, ...], direction: PyTree, step: float
) -> PyTree:
    """Return ``(f(x + h·t) - f(x - h·t))/2h`` of floating results, zeros for others."""

    def shifted(sign: float) -> object:
        def shift(x: object, t: PyTree) -> object:
            like = np.asarray(x)
            if not is_inexact_dtype(like.dtype):
                return x
            return np.asarray(like + sign * step * t).astype(like.dtype)

        return f(*tree.map(shift, args, direction))

    def slope(x: object, y: object) -> np.ndarray:
        ahead, behind = np.asarray(x), np.asarray(y)
        if not is_inexact_dtype(ahead.dtype):
            return np.zeros(ahead.shape, ahead.dtype)
        wide = np.complex128 if is_complex(ahead.dtype) else np.float64
        # Equal infinities have no difference: nan, without a warning.
        with np.errstate(invalid="ignore"):
            return np.asarray((ahead.astype(wide) - behind.astype(wide)) / (2 * step))

    return tree.map(slope, shifted(1.0), shifted(-1.0))


def _inner_product(xs: object, ys: object) -> float:
    """Return the real part of the inner product, over floating leaves."""
    total = 0.0
    for x, y in zip(tree.leaves(xs), tree.leaves(ys), strict=True):
        left, right = np.asarray(x), np.asarray(y)
        if is_inexact_dtype(left.dtype) and is_inexact_dtype(right.dtype):
            total += float(np.real(np.sum(left * right)))
    return total


def _compare_value(name: str, f: Callable[..., object], point: _Point, out: object) -> None:
    limits = point.limits.at(_dtypes(out))
    _compare(f"{name}: the value", f(*point.args), out, limits, "that of the function")


def _compare(
    name: str,
    expected: object,
    found: object,
    limits: tuple[float, float],
    other: str = "the differences",
) -> None:
    atol, rtol = limits
    for x, y in zip(tree.leaves(expected), tree.leaves(found), strict=True):
        want, have = np.asarray(x), np.asarray(y)
        if not is_inexact_dtype(have.dtype):
            continue
        # Outside of the domain of a function both are nan.
        apart = ~((want == have) | (np.isnan(want) & np.isnan(have)))
        allowed = atol + rtol * float(np.abs(want[np.isfinite(want)]).max(initial=0.0))
        error = float(np.abs(want[apart] - have[apart]).max(initial=0.0))
        if not error <= allowed:
            raise AssertionError(
                f"{name} differs from {other}\n"
                f"  expected: {want}\n  found:    {have}\n"
                f"  error:    {error:.3g}, allowed: {allowed:.3g}"
            )
