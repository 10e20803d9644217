"""What is to be done about the cotangent of each input of a program that is transposed."""

from __future__ import annotations

from dataclasses import dataclass

from effax.ir.dtypes import DType, is_complex, is_inexact_dtype
from effax.ir.errors import TransformError
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type, is_inexact
from effax.transforms.framework.propagation import Mask


@dataclass(frozen=True)
class NonLinear:
    """An input that is given again; the program need not be linear in it."""


@dataclass(frozen=True, repr=False)
class GradRef:
    """A linear input whose cotangent is added to a reference, which the new program takes.

    ``dtype`` is that of the reference, for an array whose cotangents are summed up in a wider
    dtype than its own; None: the same.
    """

    dtype: DType | None = None

    def __repr__(self) -> str:
        return "GradRef()" if self.dtype is None else f"GradRef(dtype={self.dtype.name})"


@dataclass(frozen=True)
class GradValue:
    """A linear input, an array, whose cotangent is a result of the new program."""


@dataclass(frozen=True)
class DontWant:
    """A linear input whose cotangent is not computed."""


@dataclass(frozen=True)
class ThreadedRef:
    """A linear input, a reference, whose cotangent reference is in use outside of the program.

    It comes with the cotangent of the final contents, and is left with that of the initial ones.
    This is what a reference is to the body of a loop; ``GradRef`` takes the first as zero.
    """


CotangentSpec = NonLinear | GradRef | GradValue | DontWant | ThreadedRef
"""What is to be done about the cotangent of an input."""

CotangentSpecs = tuple[CotangentSpec, ...]


def check_cotangent_specs(jaxpr: Jaxpr, ct_specs: CotangentSpecs, cts: Mask) -> None:
    """Raises TransformError where the wants do not fit the inputs, or ``cts`` the results."""
    if (len(ct_specs), len(cts)) != (len(jaxpr.binders), len(jaxpr.outs)):
        raise TransformError(
            "transpose needs one want an input, and one entry a result",
            expected=f"{len(jaxpr.binders)} and {len(jaxpr.outs)}",
            found=f"{len(ct_specs)} and {len(cts)}",
        )
    for i, (v, ct_spec) in enumerate(zip(jaxpr.binders, ct_specs, strict=True)):
        name = jaxpr.name_of(i)
        if not isinstance(ct_spec, NonLinear) and not is_inexact(v.type):
            raise TransformError(
                f"{name} cannot be linear: only floats and complex numbers can",
                found=str(v.type),
                remedy="mark it NonLinear()",
            )
        if isinstance(ct_spec, GradValue) and isinstance(v.type, RefType):
            raise TransformError(
                f"{name} is a reference, so its gradient must be accumulated into a reference",
                expected="GradRef() or DontWant()",
                found="GradValue()",
                remedy="bind one, as with `with_refs`",
            )
        if isinstance(ct_spec, GradRef) and not _holds(ct_spec.dtype, v.type):
            raise TransformError(
                f"the gradient of {name} cannot be summed up in {ct_spec.dtype}",
                expected="a dtype that holds its cotangents, and the same one for a reference",
                found=str(v.type),
                remedy="leave out the dtype",
            )
        if isinstance(ct_spec, ThreadedRef) and not isinstance(v.type, RefType):
            raise TransformError(
                f"{name} is an array: only the cotangent of a reference is threaded",
                found=str(v.type),
                remedy="mark it GradRef()",
            )
    for i, (type_, has) in enumerate(zip(jaxpr.out_types, cts, strict=True)):
        if has and (isinstance(type_, RefType) or not is_inexact(type_)):
            raise TransformError(
                f"result {i} has no cotangent: only arrays of floats and complex numbers do",
                found=str(type_),
            )


def _holds(dtype: DType | None, type_: Type) -> bool:
    """Whether cotangents of values of this type can be added to a reference of that dtype."""
    if dtype is None or dtype == type_.dtype:
        return True
    if isinstance(type_, RefType) or not is_inexact_dtype(dtype):
        return False
    return is_complex(dtype) or not is_complex(type_.dtype)
