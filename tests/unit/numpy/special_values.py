"""Elementwise functions at special values: eager, compiled, and NumPy's in double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import effax as jax
import effax.numpy as jnp
from effax.ir.dtypes import as_dtype, family, int_bounds, real_dtype
from effax.ir.errors import EffaxError

REAL = (0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -2.5, 1e-3, 10, -30, 0.999, 88, 127, 300, -300)
PARTS = (0.0, -0.0, 1e-3, -0.5, 1, -1, 2, -20, 1e-30)

TOLERANCES = {"power": 8192, "pow": 8192, "float_power": 8192, "sinc": 128}
"""The greatest errors, in roundings, where complex operands of functions multiply them."""


def special(name: str) -> np.ndarray:
    """Return the special values of a dtype; of complex ones, finite numbers around the axes."""
    dtype = as_dtype(name)
    match family(dtype):
        case "bool":
            return np.array([False, True])
        case "int" | "uint":
            low, high = int_bounds(dtype)
            few = [-1, -2, -7, low + 1] if low else []
            return np.array(sorted({low, high, 0, 1, 2, 3, 5, 7, high // 2, high - 1, *few}), dtype)
        case "complex":
            re, im = np.meshgrid(PARTS, PARTS)
            # Beside ±1 and ±i lie poles and branch points, where no digit is certain.
            apart = ~((np.abs(re) == 1) & (im == 1e-30)) & ~((np.abs(im) == 1) & (re == 1e-30))
            made = np.empty(apart.sum(), dtype)
            made.real, made.imag = re[apart], im[apart]
            return made
        case _:
            limits = ml_dtypes.finfo(dtype)
            most, tiny, eps = float(limits.max), float(limits.tiny), float(limits.eps)
            extremes = [most, -most, most / 2, tiny, -tiny, eps, np.inf, -np.inf, np.nan]
            with np.errstate(over="ignore"):
                return np.array([*REAL, *extremes]).astype(dtype)


def pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of special values."""
    values = special(name)[:: 5 if name.startswith("complex") else 1]
    first, second = np.meshgrid(values, values)
    return first.ravel(), second.ravel()


def leaves(result: Any) -> list[np.ndarray]:
    several = result if isinstance(result, list | tuple) else [result]
    return [np.asarray(x) for x in several]


def accepted(names: Sequence[str], args: Sequence[np.ndarray]) -> dict[str, list[np.ndarray]]:
    """Return the eager results of the functions that accept the dtype."""
    found = {}
    for name in names:
        try:
            found[name] = leaves(getattr(jnp, name)(*map(jnp.asarray, args)))
        except EffaxError:
            continue
    return found


def compiled(names: Sequence[str], args: Sequence[np.ndarray]) -> dict[str, list[np.ndarray]]:
    """Return the results of many functions, compiled as one program."""

    @jax.jit
    def run(*xs: Any) -> dict[str, Any]:
        return {name: getattr(jnp, name)(*xs) for name in names}

    return {name: leaves(r) for name, r in run(*args).items()}


def sinc(x: np.ndarray) -> np.ndarray:
    """Return sin(π·x)/(π·x), exactly 0 at integers and 0 at infinities."""
    whole = np.rint(x.real)
    turned = np.where(np.isinf(x), 0, x) - np.where(np.isinf(whole), 0, whole)
    wave = np.sin(np.pi * turned) * np.where(np.fmod(whole, 2) == 0, 1, -1)
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, wave / (np.pi * x)))


def log1p(x: np.ndarray) -> np.ndarray:
    """Return log(1 + x); NumPy's loses small complex numbers."""
    if x.dtype.kind != "c":
        return np.asarray(np.log1p(x))
    size = np.log1p(x.real * (2 + x.real) + np.square(x.imag)) / 2
    return np.asarray(size + 1j * np.arctan2(x.imag, 1 + x.real))


def reciprocal(x: np.ndarray) -> np.ndarray:
    """Return 1/x, infinite at complex zeros, where NumPy's is nan."""
    return np.asarray(np.where(x == 0, np.copysign(np.inf, x.real), np.reciprocal(x)))


def floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return floor(x/y), at infinities as in the Array API, where NumPy returns nan and -1."""
    found = np.floor_divide(x, y)
    return np.asarray(
        np.where(np.isinf(x) | np.isinf(y), np.floor(x / y), found)
        if x.dtype.kind == "f"
        else found
    )


def divmod_(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return :func:`floor_divide`, and the rest."""
    return floor_divide(x, y), np.remainder(x, y)


OWN: dict[str, Callable[..., Any]] = {
    "divmod": divmod_,
    "floor_divide": floor_divide,
    "log1p": log1p,
    "reciprocal": reciprocal,
    "sinc": sinc,
}
IN_THE_DTYPE = ("nextafter", "nan_to_num")


def expected(
    name: str, args: Sequence[np.ndarray], dtypes: Sequence[np.dtype]
) -> list[np.ndarray] | None:
    """Return NumPy's results: in double precision, or in the integer dtype of the operands.

    Return None where NumPy has no such function of these operands.
    """
    function: Callable[..., Any] = OWN.get(name) or getattr(np, name)
    if any(family(d) in ("float", "complex") for d in dtypes):
        working = dtypes[0]
        if name not in IN_THE_DTYPE:
            args = [x.astype(working) for x in args] if family(args[0].dtype) in EXACT else args
            working = np.dtype(np.complex128 if family(args[0].dtype) == "complex" else np.float64)
        elif working.name not in ("float16", "float32"):
            return None
        args = [x.astype(working) for x in args]
    try:
        with np.errstate(all="ignore"):
            made = leaves(function(*args))
            return [_rounded(x, d) for x, d in zip(made, dtypes, strict=True)]
    except TypeError:
        return None


EXACT = ("bool", "int", "uint")


def _rounded(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return values rounded to a dtype."""
    return x.astype(dtype).astype(x.dtype) if family(dtype) in ("float", "complex") else x


def differences(
    found: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
    args: Sequence[np.ndarray],
    signed: bool = True,
    roundings: int = 16,
) -> list[str]:
    """Return one line for each result with its first element that differs."""
    lines = []
    for i, (x, y) in enumerate(zip(found, wanted, strict=True)):
        wrong = np.flatnonzero(~agrees(x, y, signed, roundings))
        if wrong.size:
            at = wrong[0]
            operands = ", ".join(str(a[at]) for a in args)
            lines.append(f"result {i} at ({operands}): {x[at]}, not {y[at]} ({wrong.size} such)")
    return lines


def agrees(x: np.ndarray, y: np.ndarray, signed: bool, roundings: int) -> np.ndarray:
    """Return where values agree up to roundings; subnormal numbers, which XLA flushes, are zero.

    Complex infinities are equal, and roundings are relative to the magnitude.
    """
    kind = family(x.dtype)
    if kind in ("bool", "int", "uint"):
        return np.asarray(x.astype(np.int64) == y.astype(np.int64))
    limits = ml_dtypes.finfo(real_dtype(x.dtype))
    tolerance, tiny = roundings * float(limits.eps), float(limits.tiny)
    with np.errstate(all="ignore"):
        if kind == "float":
            a, b = x.astype(np.float64), y.astype(np.float64)
            return _near(a, b, np.abs(b) * tolerance + 2 * tiny, signed)
        a, b = x.astype(np.complex128), y.astype(np.complex128)
        margin = np.abs(b) * tolerance + 2 * tiny
        parts = [_near(part(a), part(b), margin, False) for part in (np.real, np.imag)]
        return np.asarray((parts[0] & parts[1]) | (np.isinf(a) & np.isinf(b)))


def _near(a: np.ndarray, b: np.ndarray, margin: np.ndarray, signed: bool) -> np.ndarray:
    near = np.abs(a - b) <= np.where(np.isfinite(margin), margin, 0)
    if signed:
        near &= (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))
        same = (a == b) & (b != 0)
    else:
        same = a == b
    return np.asarray(near | same | (np.isnan(a) & np.isnan(b)))
