"""The derivative of a program on values, without differentiating it: by complex steps.

For an analytic f, Im f(x + ih·t)/h is the derivative along t, without cancellation. A program in
real numbers is run in complex ones for that: the same equations, at other types. Order and choice
look at real parts. Where a primitive has no complex meaning, central differences take its place;
so they do where a primitive is not the library's, and may take complex numbers for anything.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from effax.ir import prims as p
from effax.ir.dtypes import as_dtype, is_complex, is_float
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import Argmax, Argmin, EmptyRef, Iota
from effax.ir.state import cached
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType, Type, ref_type
from effax.testing.generate.values import Outcome, contents_of
from effax.testing.laws.differences import by_differences, is_foreign
from effax.testing.laws.retyped import retyped

COMPLEX = as_dtype("complex128")
STEP = 1e-40
DIFFERENCE = 1e-5


@dataclass(frozen=True, slots=True)
class OfRealPart(Primitive):
    """A primitive whose result depends on the real part of its operands alone."""

    prim: Primitive
    name: ClassVar[str] = "of_real_part"

    def typing(self, *ins: Type) -> Typing:
        raise NotImplementedError("is only run, never typed")

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        outs = self.prim.evaluate(*(np.real(x) for x in ins))
        return [x.astype(COMPLEX) if x.dtype.kind == "f" else x for x in outs]


@dataclass(frozen=True, slots=True)
class Signed(Primitive):
    """The magnitude of numbers near the real line: x·sign(Re x)."""

    name: ClassVar[str] = "signed"

    def typing(self, *ins: Type) -> Typing:
        raise NotImplementedError("is only run, never typed")

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (np.where(np.real(ins[0]) >= 0, ins[0], -ins[0]),)


# NumPy orders complex numbers by their real parts first, so comparing needs nothing here.
FLAT: tuple[type[Primitive], ...] = (
    p.Floor,
    p.Ceil,
    p.RoundEven,
    p.Sign,
    p.IsFinite,
    p.StopGradient,
    Argmax,
    Argmin,
)


def _complex_type(type_: Type) -> Type:
    if is_complex(type_.dtype):
        raise TypeError("only a program in real numbers can be run in complex ones")
    if not is_float(type_.dtype):
        return type_
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(dtype=COMPLEX), type_.kind)
    return type_.update(dtype=COMPLEX)


def _complex_prim(prim: Primitive) -> Primitive:
    held = prim.subjaxprs()
    if held:
        return prim.with_subjaxprs([complexified(inner) for inner in held])
    if isinstance(prim, FLAT):
        return OfRealPart(prim)
    if isinstance(prim, p.Abs):
        return Signed()
    if isinstance(prim, p.ConvertElementType):
        return replace(prim, new_dtype=COMPLEX) if is_float(prim.new_dtype) else OfRealPart(prim)
    if isinstance(prim, Iota) and is_float(prim.dtype):
        return replace(prim, dtype=COMPLEX)
    if isinstance(prim, EmptyRef):
        inner = _complex_type(prim.inner)
        assert isinstance(inner, ArrayType)
        return EmptyRef(inner)
    return prim


@cached(maxsize=256)
def complexified(jaxpr: Jaxpr) -> Jaxpr:
    """The program with complex numbers in the place of real ones, to be run only."""
    return retyped(jaxpr, _complex_type, _complex_prim)


def directional(
    jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Outcome | None:
    """The derivative of results and final contents along the tangents; None: unknown.

    Its entry for what is no float has no meaning, and where an element is nan it is unknown.
    """
    if is_foreign(jaxpr):
        return by_differences(jaxpr, inputs, tangents)
    try:
        with warnings.catch_warnings():
            # Imaginary parts that are lost are derivatives that are lost.
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            return _complex_step(jaxpr, inputs, tangents)
    except (TypeError, ValueError, np.exceptions.ComplexWarning):
        # Some primitive has no meaning for complex numbers.
        return _central(jaxpr, inputs, tangents)


def _complex_step(
    jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Outcome:
    held = [
        np.array(x + 1j * STEP * (0 if t is None else t)) if x.dtype.kind == "f" else np.array(x)
        for x, t in zip(inputs, tangents, strict=True)
    ]
    wide = complexified(jaxpr)
    with np.errstate(over="ignore"):
        outs = [np.imag(x) / STEP for x in evaluate(wide, held)]
        contents = [np.imag(x) / STEP for x in contents_of(wide.in_types, held)]
    return Outcome(outs, contents)


def _central(
    jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None]
) -> Outcome | None:
    """Central differences at two steps; unknown where they do not agree."""
    coarse = _difference(jaxpr, inputs, tangents, 2 * DIFFERENCE)
    fine = _difference(jaxpr, inputs, tangents, DIFFERENCE)
    pairs = [*zip(coarse.outs, fine.outs, strict=True)]
    pairs += zip(coarse.contents, fine.contents, strict=True)
    if any(not np.allclose(x, y, rtol=1e-5, atol=1e-5) for x, y in pairs):
        return None
    # Richardson: the error of a central difference is of second order.
    outs, contents = (
        [(4 * f - c) / 3 for c, f in group]
        for group in (
            list(zip(coarse.outs, fine.outs, strict=True)),
            list(zip(coarse.contents, fine.contents, strict=True)),
        )
    )
    return Outcome(outs, contents)


def _difference(
    jaxpr: Jaxpr, inputs: Sequence[Value], tangents: Sequence[Value | None], step: float
) -> Outcome:
    sides = []
    for sign in (1.0, -1.0):
        held = [
            np.array(x) if t is None else np.array(x + sign * step * t)
            for x, t in zip(inputs, tangents, strict=True)
        ]
        outs = evaluate(jaxpr, held)
        sides.append(Outcome(list(outs), contents_of(jaxpr.in_types, held)))
    ahead, behind = sides
    return Outcome(
        [_slope(x, y, step) for x, y in zip(ahead.outs, behind.outs, strict=True)],
        [_slope(x, y, step) for x, y in zip(ahead.contents, behind.contents, strict=True)],
    )


def _slope(x: Value, y: Value, step: float) -> Value:
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape)
    with np.errstate(all="ignore"):
        return np.asarray((x - y) / (2 * step))
