"""Compute the derivative of a program on values, without differentiating the program.

For an analytic f, Im f(x + ih·t)/h is the derivative along t, without cancellation: a program in
real numbers is evaluated in complex ones, its order and choices decided by real parts. Primitives
without a complex meaning, and user-defined ones, which may accept complex numbers and do anything
with them, are evaluated in double precision instead, and differences are extrapolated. An element
near a kink, a jump or noise, or without finite differences, is nan: its derivative is unknown.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np

from effax.ir import prims as p
from effax.ir.build import Builder
from effax.ir.dtypes import DType, as_dtype, is_complex, is_float, is_inexact_dtype
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.registry import own_primitives
from effax.ir.state import cached
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.types import ArrayType, RefType, Type, ref_type
from effax.testing.generate.values import Outcome, contents_of, rounding, single_run, tolerance

COMPLEX: Final = as_dtype("complex128")
DOUBLE: Final = as_dtype("float64")

STEP: Final = 1e-40
"""The imaginary step."""

STEPS: Final = (1e-2, 3e-4, 1e-5)
"""Steps of differences in double precision, for values and tangents of a size near 1."""

NARROW_STEPS: Final = (0.125, 2e-2)
"""Steps of differences in the program's own dtypes."""

FRACTIONS: Final = (0.55, 1.0, 1.75)
"""The fractions of a step at which differences are compared. No two fit the same period."""

# NumPy orders complex numbers by their real parts first, so comparisons need no entry.
PIECEWISE_CONSTANT: Final[tuple[type[Primitive], ...]] = (
    *(p.Floor, p.Ceil, p.RoundEven, p.Sign, p.IsFinite, p.StopGradient, p.Argmax, p.Argmin),
)


@dataclass(frozen=True, slots=True)
class OfRealPart(Primitive):
    """A primitive applied to the real part of its operands."""

    prim: Primitive
    name: ClassVar[str] = "of_real_part"

    def typing(self, *ins: Type) -> Typing:
        raise NotImplementedError("evaluated only, never typed")

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        outs = self.prim.evaluate(*(np.real(x) for x in ins))
        return [x.astype(COMPLEX) if x.dtype.kind == "f" else x for x in outs]


@dataclass(frozen=True, slots=True)
class Signed(Primitive):
    """The absolute value of numbers near the real line: x·sign(Re x)."""

    name: ClassVar[str] = "signed"

    def typing(self, *ins: Type) -> Typing:
        raise NotImplementedError("evaluated only, never typed")

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.where(np.real(ins[0]) >= 0, ins[0], -ins[0]),)


def is_foreign(jaxpr: Jaxpr) -> bool:
    """Return whether the program or a subjaxpr has a primitive from outside the library."""
    own = own_primitives()
    return any(
        own.get(eqn.prim.name) is not type(eqn.prim) or any(map(is_foreign, eqn.prim.subjaxprs()))
        for eqn in jaxpr.eqns
    )


def directional(jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]) -> Outcome:
    """Return the derivative of results and final contents along the tangents; nan: unknown.

    Entries of results that are not floats have no meaning.
    """
    if is_foreign(jaxpr):
        return by_differences(jaxpr, inputs, tangents)
    try:
        with warnings.catch_warnings():
            # A discarded imaginary part is a lost derivative.
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            return _complex_step(jaxpr, inputs, tangents)
    except (TypeError, ValueError, np.exceptions.ComplexWarning):
        return by_differences(jaxpr, inputs, tangents)


def _complex_step(
    jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Outcome:
    values = [
        np.array(x + 1j * STEP * (0 if t is None else t)) if x.dtype.kind == "f" else np.array(x)
        for x, t in zip(inputs, tangents, strict=True)
    ]
    wide = retyped(jaxpr, _complex_of)
    with np.errstate(over="ignore"):
        outs = [np.imag(x) / STEP for x in evaluate(wide, values)]
        contents = [np.imag(x) / STEP for x in contents_of(wide.in_types, values)]
    return Outcome(outs, contents)


def by_differences(
    jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Outcome:
    """Return the derivative of results and final contents by differences; nan: unknown."""
    jaxpr, inputs = _without_stops(jaxpr, inputs)
    tangents = [*tangents, *[None] * (len(inputs) - len(tangents))]
    try:
        values = [x.astype(double_of(x.dtype)) for x in inputs]
        moved = [None if t is None else t.astype(double_of(t.dtype)) for t in tangents]
        return _along(retyped(jaxpr, double_of), values, moved, jaxpr, STEPS)
    except Exception:  # noqa: BLE001  # a user-defined evaluation may raise anything
        # A primitive may accept only the dtypes that it declares.
        return _along(jaxpr, inputs, tangents, jaxpr, NARROW_STEPS)


def _without_stops(jaxpr: Jaxpr, inputs: Sequence[Value]) -> tuple[Jaxpr, Sequence[Value]]:
    """Replace each ``stop_gradient`` at the top level by an input that does not vary."""
    stops = [eqn for eqn in jaxpr.eqns if isinstance(eqn.prim, p.StopGradient)]
    if not stops:
        return jaxpr, inputs
    values = [eqn.outs[0] for eqn in stops]
    fixed = evaluate(Jaxpr(jaxpr.binders, jaxpr.eqns, values), [np.array(x) for x in inputs])
    kept = [eqn for eqn in jaxpr.eqns if not isinstance(eqn.prim, p.StopGradient)]
    return Jaxpr([*jaxpr.binders, *values], kept, jaxpr.outs), [*inputs, *fixed]


def _along(
    run: Jaxpr,
    inputs: Sequence[Value],
    tangents: Sequence[Value | None],
    jaxpr: Jaxpr,
    steps: Sequence[float],
) -> Outcome:
    def at(step: float) -> list[Value]:
        values = [
            np.array(x) if t is None else np.asarray(x + np.asarray(step, x.dtype) * t)
            for x, t in zip(inputs, tangents, strict=True)
        ]
        outs = [np.array(x) for x in evaluate(run, values)]
        return [*outs, *contents_of(run.in_types, values)]

    n = len(jaxpr.outs)
    types = [*jaxpr.out_types, *[t for t in jaxpr.in_types if isinstance(t, RefType)]]
    with np.errstate(all="ignore"):
        found = _slopes(at, types, steps)
    return Outcome(found[:n], found[n:])


def _slopes(
    at: Callable[[float], list[Value]], types: Sequence[Type], steps: Sequence[float]
) -> list[Value]:
    here = at(0.0)
    sides = [[(at(k * h), at(-k * h)) for k in FRACTIONS] for h in steps]
    found = []
    for i, type_ in enumerate(types):
        if not is_inexact_dtype(here[i].dtype):
            found.append(np.zeros(here[i].shape))
            continue
        wide = double_of(here[i].dtype)
        samples_of = [here[i], *[y[i] for x in sides for pair in x for y in pair]]
        eps = _rounding(samples_of)
        if eps > rounding(DOUBLE):
            # Constant parts are numbers of narrow dtypes: other values differ from rounded ones.
            eps = _rounding([*samples_of, *_far(at, i)])
        best = np.full(here[i].shape, np.nan, wide)
        error = np.full(here[i].shape, np.inf)
        for h, samples in zip(steps, sides, strict=True):
            values = [(x[i].astype(wide), y[i].astype(wide)) for x, y in samples]
            slope, off = _slope(here[i].astype(wide), values, h, eps)
            best, error = np.where(off < error, slope, best), np.minimum(off, error)
        allowed = 0.2 * tolerance(type_.dtype) * np.maximum(1.0, np.abs(best))
        found.append(np.where(error <= allowed, best, np.nan))
    return found


def _slope(
    here: Value, sides: Sequence[tuple[Value, Value]], step: float, eps: float
) -> tuple[Value, Value]:
    """Return the slope by Richardson's extrapolation, and a bound of its error; inf: unknown.

    Three central differences yield two extrapolations, which agree where the function is smooth.
    At a kink, the slopes to the left and to the right stay apart as the step shrinks.
    """
    sizes = [k * step for k in FRACTIONS]
    central = [(x - y) / (2 * h) for (x, y), h in zip(sides, sizes, strict=True)]
    # D(h) = f' + c·h² + ..., so that f' = (H²·D(h) - h²·D(H))/(H² - h²) + ...
    fine, coarse = [
        (big**2 * a - small**2 * b) / (big**2 - small**2)
        for (small, a), (big, b) in pairwise(zip(sizes, central, strict=True))
    ]
    noise = 4 * eps * np.abs(here) / step
    off = np.abs(fine - coarse) + noise
    apart = [np.abs(x + y - 2 * here) / h for (x, y), h in zip(sides, sizes, strict=True)]
    kink = (apart[0] > 0.78 * apart[1]) & (apart[0] > noise + 1e-6 * np.maximum(1, np.abs(fine)))
    known = np.isfinite(fine) & np.isfinite(coarse) & ~kink
    return np.where(known, fine, np.nan), np.where(known, off, np.inf)


FAR: Final = (-1.37, -0.43, 0.43, 1.37)
"""Steps to values that show in which dtype a program computes."""


def _far(at: Callable[[float], list[Value]], i: int) -> Iterator[Value]:
    """Yield values far from where a derivative is taken, as far as the program has some."""
    for step in FAR:
        with suppress(Exception), single_run():
            yield at(step)[i]


def _rounding(samples: Sequence[Value]) -> float:
    """Return the rounding of the narrowest dtype that represents all samples.

    A program may compute in a narrower dtype than that of its results.
    """
    parts = [q.astype(np.float64) for x in samples for q in (np.real(x), np.imag(x))]
    values = np.concatenate([q.reshape(-1) for q in parts])
    values = values[np.isfinite(values)]
    for dtype in map(as_dtype, ("bfloat16", "float16", "float32")):
        if np.array_equal(values, values.astype(dtype).astype(np.float64)):
            return rounding(dtype)
    return rounding(DOUBLE)


def _complex_of(dtype: DType) -> DType:
    if is_complex(dtype):
        raise TypeError("complex steps are taken in programs of real numbers only")
    return COMPLEX if is_float(dtype) else dtype


def double_of(dtype: DType) -> DType:
    """Return the dtype of double precision of a kind."""
    if not is_inexact_dtype(dtype):
        return dtype
    return COMPLEX if is_complex(dtype) else DOUBLE


@cached(maxsize=256)
def retyped(jaxpr: Jaxpr, of: Callable[[DType], DType]) -> Jaxpr:
    """Return the program at other dtypes, to be evaluated only: no primitive types its operands."""

    def new(type_: Type) -> Type:
        dtype = of(type_.dtype)
        if dtype == type_.dtype:
            return type_
        if isinstance(type_, RefType):
            return ref_type(type_.inner.update(dtype=dtype), type_.kind)
        return type_.update(dtype=dtype)

    b = Builder(map(new, jaxpr.in_types))
    env: dict[int, Atom] = {v.id: w for v, w in zip(jaxpr.binders, b.binders, strict=True)}

    def value(atom: Atom) -> Atom:
        if not isinstance(atom, Lit):
            return env[atom.id]
        type_ = new(atom.type)
        assert isinstance(type_, ArrayType)
        return Lit(atom.value, type_)

    for eqn in jaxpr.eqns:
        types = tuple(new(v.type) for v in eqn.outs)
        prim = _retyped_prim(eqn.prim, of, new)
        outs = b.emit_typed(prim, tuple(map(value, eqn.ins)), types, eqn.effects)
        env.update(zip((v.id for v in eqn.outs), outs, strict=True))
    return b.finish([value(a) for a in jaxpr.outs])


def _retyped_prim(
    prim: Primitive, of: Callable[[DType], DType], new: Callable[[Type], Type]
) -> Primitive:
    if prim.subjaxprs():
        return prim.with_subjaxprs([retyped(inner, of) for inner in prim.subjaxprs()])
    if of is _complex_of:
        if isinstance(prim, PIECEWISE_CONSTANT):
            return OfRealPart(prim)
        if isinstance(prim, p.Abs):
            return Signed()
        if isinstance(prim, p.ConvertElementType) and not is_float(prim.new_dtype):
            return OfRealPart(prim)
    match prim:
        case p.ConvertElementType():
            return replace(prim, new_dtype=of(prim.new_dtype))
        case p.Iota():
            return replace(prim, dtype=of(prim.dtype))
        case p.EmptyRef():
            inner = new(prim.inner)
            assert isinstance(inner, ArrayType)
            return p.EmptyRef(inner)
        case _:
            return prim
