"""The features of random programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from effax.ir.dtypes import DType, as_dtype, family
from effax.ir.errors import BadArgument

__all__ = [
    "ANYTHING",
    "COMPILED",
    "COMPILED_MESHES",
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
    """The features of random programs. Dtypes may be given by name.

    Attributes:
        floats: the floating dtypes; float64 alone where numbers are compared to a tolerance.
        complexes: the complex dtypes.
        ints: the integer dtypes; a signed one of at least 32 bits among them.
        refs: whether programs use references.
        keys: whether programs use random keys.
        control: which of jit, remat, cond, scan, while, shard_map, solve, custom,
            custom_vjp they use.
        differentiable: whether they are smooth: no ``stop_gradient``, no jumps.
        lowerable: whether they have one meaning on every machine: no order among writes to one
            position, no overflow of conversions.
        weak: whether types may be weak.
        depth: the greatest nesting of subjaxprs.
        steps: the greatest number of generation steps, subjaxprs included; a step appends one
            equation, sometimes a few.
        focus: the name of a kind of step that every second step is (``effax.testing.step_names``),
            such as "arith.mul", "scan" or "refs.swap"; "" for none.

    Raises:
        BadArgument: ``floats`` or ``ints`` are empty, or a field is of the wrong type.
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
    keys: bool = False

    def __post_init__(self) -> None:
        for name, kinds, few in _DTYPES:
            object.__setattr__(self, name, _dtypes(name, getattr(self, name), kinds, few))
        if not any(d.kind == "i" and d.itemsize >= 4 for d in self.ints):
            raise BadArgument(
                "`ints` of features lack what positions are counted in",
                expected="a signed integer dtype of at least 32 bits among them",
                found=", ".join(map(str, self.ints)),
                remedy="add `numpy.dtype('int32')`",
            )
        control: object = self.control
        if isinstance(control, str) or not isinstance(control, Sequence):
            raise BadArgument(
                "`control` of features is no sequence of names",
                expected="a tuple of names, such as `('scan', 'cond')`; `()` for none",
                found=f"{control!r:.60}",
            )
        object.__setattr__(self, "control", tuple(control))
        for name, least in (("depth", 0), ("steps", 1)):
            value: object = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise BadArgument(
                    f"`{name}` of features is no number of them",
                    expected=f"an integer of at least {least}",
                    found=f"{value!r:.60}",
                )


_DTYPES: Final = (("floats", "float", 1), ("complexes", "complex", 0), ("ints", "int uint", 1))


def _dtypes(name: str, given: object, kinds: str, least: int) -> tuple[DType, ...]:
    """Return the dtypes of a field. Raises BadArgument for too few, or of another kind."""
    kind, *_ = kinds.split()
    several = [given] if isinstance(given, str) or not isinstance(given, Sequence) else [*given]
    try:
        found = [as_dtype(x) for x in several]
    except TypeError:
        raise BadArgument(
            f"`{name}` of features are no dtypes", "dtypes, or names of some", f"{given!r:.60}"
        ) from None
    others = [d for d in found if family(d) not in kinds.split()]
    if others or len(found) < least:
        least_of = "at least one dtype" if least else "dtypes, or none,"
        raise BadArgument(
            f"`{name}` of features "
            + (f"are not all of the kind {kind}" if others else "must not be empty"),
            expected=f"{least_of} of the kind {' or '.join(kinds.split())}; `floats` and `ints` "
            "must not be empty, `complexes` and `control` may be",
            found=f"{name}={given!r:.60}",
        )
    return tuple(found)


def as_features(given: object) -> Features:
    """Return features. Raises BadArgument for anything else."""
    if isinstance(given, Features):
        return given
    raise BadArgument(
        "what programs may have is said by a `Features`",
        expected="ANYTHING, NUMERIC, SMOOTH, COMPILED, or `Features(...)`",
        found=f"{given!r:.80}",
        remedy="`Features(**...)` of the fields, or `dataclasses.replace(NUMERIC, ...)`",
    )


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
"""Programs full of ``shard_map``."""

SMOOTH_MESHES: Final = replace(MESHES, differentiable=True, complexes=())
"""Programs of real numbers full of ``shard_map``, which differences can differentiate."""

COMPILED: Final = Features(
    floats=(as_dtype("float32"),), complexes=(), lowerable=True, depth=1, steps=8
)
"""Programs that are lowered in 32 bits."""

COMPILED_MESHES: Final = replace(COMPILED, control=SHARDED.control, focus="shard_map")
"""Programs full of ``shard_map`` that are lowered in 32 bits."""
