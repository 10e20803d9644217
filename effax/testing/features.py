"""What generated programs may contain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from effax.ir.dtypes import DType, as_dtype

__all__ = [
    "ANYTHING",
    "COMPILED",
    "CONTROL",
    "MESHES",
    "NUMERIC",
    "SHARDED",
    "SMOOTH",
    "SMOOTH_MESHES",
    "Features",
]

CONTROL: Final = ("jit", "remat", "cond", "scan", "while")


@dataclass(frozen=True)
class Features:
    """What programs may contain.

    Attributes:
        floats: the floating dtypes. Laws about numbers want float64 alone, for tolerances that
            tell the wrong from the rounded.
        complexes: the complex dtypes.
        ints: the integer dtypes; one that is signed and at least 32 bits wide among them.
        refs: whether programs use references.
        control: which of jit, remat, cond, scan, while, shard_map, solve, custom they use.
        differentiable: whether their derivatives are those of their values everywhere: no
            ``stop_gradient``, no jumps.
        lowerable: whether they keep to what has one meaning on every machine: no order among
            writes to one position, no overflow of conversions.
        weak: whether types may be weak.
        depth: how deep programs may hold programs.
        steps: how many steps of growth there are at most, held programs included; a step is one
            equation, sometimes a few.
        focus: the name of a kind of step that every second step is (``effax.testing.growth``
            has their names), such as "elementwise.mul", "scan" or "refs.swap"; "" for none.
    """

    floats: tuple[DType, ...] = (as_dtype("float64"),)
    complexes: tuple[DType, ...] = (as_dtype("complex128"),)
    ints: tuple[DType, ...] = (as_dtype("int32"),)
    refs: bool = True
    control: tuple[str, ...] = CONTROL
    differentiable: bool = False
    lowerable: bool = False
    weak: bool = False
    depth: int = 2
    steps: int = 12
    focus: str = ""


ANYTHING: Final = Features(
    floats=(as_dtype("float64"), as_dtype("float32")),
    complexes=(as_dtype("complex128"), as_dtype("complex64")),
    ints=(as_dtype("int32"), as_dtype("int64"), as_dtype("uint8")),
    weak=True,
)
"""Programs for laws that do not compare numbers to a tolerance."""

NUMERIC: Final = Features()
"""Programs in double precision."""

SMOOTH: Final = Features(differentiable=True)
"""Programs in double precision that differences can differentiate."""

SHARDED: Final = Features(control=("jit", "remat", "cond", "scan", "while", "shard_map"))
"""Programs in double precision, some of them on the devices of a mesh."""

MESHES: Final = replace(SHARDED, focus="shard_map", depth=1)
"""Programs that are full of what is done on the devices of a mesh."""

SMOOTH_MESHES: Final = replace(MESHES, differentiable=True, complexes=())
"""The same, in real numbers, where differences can differentiate them."""

COMPILED: Final = Features(
    floats=(as_dtype("float32"),), complexes=(), lowerable=True, depth=1, steps=8
)
"""Programs that are lowered in 32 bits."""
