"""Specifications of the cotangents of a transposed program's inputs."""

from __future__ import annotations

from effax.ir.dtypes import DType, is_complex, is_inexact_dtype, is_integer
from effax.ir.errors import TransformError
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType, Type, is_inexact
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.propagation import Mask


@dataclass(frozen=True)
class NonLinear:
    """An input of the transposed program too; the program need not be linear in it."""


@dataclass(frozen=True, repr=False)
class GradRef:
    """A linear input whose cotangent is added to a reference, an input of the transposed program.

    ``dtype`` is that of the reference, if the cotangents of an array are summed in a wider dtype
    than its own; None: the same.
    """

    dtype: DType | None = None

    def __repr__(self) -> str:
        return "GradRef()" if self.dtype is None else f"GradRef(dtype={self.dtype.name})"


@dataclass(frozen=True)
class GradValue:
    """A linear input, an array, whose cotangent is a result of the transposed program."""


@dataclass(frozen=True)
class DontWant:
    """A linear input whose cotangent is not computed."""


@dataclass(frozen=True)
class ThreadedRef:
    """A linear input, a reference, whose cotangent reference is updated by the program.

    It contains the cotangent of the final contents before, and that of the initial contents after.
    The body of a loop threads its references so; ``GradRef`` takes the former as zero.
    """


CotangentSpec = NonLinear | GradRef | GradValue | DontWant | ThreadedRef
"""The specification of the cotangent of an input."""

CotangentSpecs = tuple[CotangentSpec, ...]


def check_cotangent_specs(jaxpr: Jaxpr, ct_specs: CotangentSpecs, cts: Mask) -> None:
    """Raise TransformError unless the specs fit the inputs, and ``cts`` the results."""
    if (len(ct_specs), len(cts)) != (len(jaxpr.binders), len(jaxpr.outs)):
        raise TransformError(
            "transpose needs one spec for each input, and one entry for each result",
            expected=f"{len(jaxpr.binders)} and {len(jaxpr.outs)}",
            found=f"{len(ct_specs)} and {len(cts)}",
        )
    for i, (v, ct_spec) in enumerate(zip(jaxpr.binders, ct_specs, strict=True)):
        name = jaxpr.name_of(i)
        if not isinstance(ct_spec, NonLinear) and not _is_numeric(v.type):
            raise TransformError(
                f"{name} cannot be linear: only numbers can",
                found=str(v.type),
                remedy="mark it NonLinear()",
            )
        if isinstance(ct_spec, GradValue) and isinstance(v.type, RefType):
            raise TransformError(
                f"{name} is a reference, whose cotangent must be accumulated into a reference",
                expected="GradRef() or DontWant()",
                found="GradValue()",
                remedy="bind one, as with `with_refs`",
            )
        if isinstance(ct_spec, GradRef) and not _represents(ct_spec.dtype, v.type):
            raise TransformError(
                f"the cotangent of {name} cannot be accumulated in {ct_spec.dtype}",
                expected="a dtype that represents its cotangents; for a reference, its own",
                found=str(v.type),
                remedy="omit the dtype",
            )
        if isinstance(ct_spec, ThreadedRef) and not isinstance(v.type, RefType):
            raise TransformError(
                f"{name} is an array: only the cotangent of a reference is threaded",
                found=str(v.type),
                remedy="mark it GradRef()",
            )
    for i, (type_, has) in enumerate(zip(jaxpr.out_types, cts, strict=True)):
        if has and (isinstance(type_, RefType) or not _is_numeric(type_)):
            raise TransformError(
                f"result {i} has no cotangent: only arrays of numbers do",
                found=str(type_),
            )


def _is_numeric(type_: Type) -> bool:
    """Return whether values of the type can be linear; integers are, over the integers."""
    return is_inexact(type_) or (isinstance(type_, ArrayType) and is_integer(type_.dtype))


def _represents(dtype: DType | None, type_: Type) -> bool:
    """Return whether cotangents of this type can be added to a reference of that dtype."""
    if dtype is None or dtype == type_.dtype:
        return True
    if isinstance(type_, RefType) or not is_inexact_dtype(dtype):
        return False
    return is_complex(dtype) or not is_complex(type_.dtype)
