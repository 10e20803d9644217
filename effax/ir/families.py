"""The families of built-in primitives, which have one name in every layer.

A family is a module, or a folder where it is large, in each of ``ir/prims``, ``transforms/rules``,
``lowering/rules`` and ``testing/generate``. The lists of primitives, rules and steps are derived
from these modules.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final, TypeVar

T = TypeVar("T")

FAMILIES: Final = (
    "math",
    "special",
    "compare",
    "arith",
    "convert",
    "sort",
    "reduce",
    "contract",
    "shape",
    "index",
    "conv",
    "fft",
    "linalg",
    "solve",
    "refs",
    "jit",
    "scan",
    "cond",
    "while_",
    "custom",
    "remat",
    "shard",
    "collective",
    "host",
    "keys",
    "check",
)
"""All families, in the order in which random programs choose among their steps."""


def family_module(layer: str, family: str) -> str | None:
    """Return the module of a family in a layer, or None where the layer lacks the family.

    Args:
        layer: the package of the layer, such as ``effax.transforms.rules``.
        family: the name of the family; of a folder, the module ``rules`` in it.
    """
    spec = find_spec(f"{layer}.{family}")
    if spec is None:
        return None
    return spec.name if spec.submodule_search_locations is None else f"{spec.name}.rules"


def declared(layer: str, name: str, type_: type[T]) -> dict[str, T]:
    """Return the value called ``name`` of each family's module in a layer, by family."""
    found: dict[str, T] = {}
    for family in FAMILIES:
        module = family_module(layer, family)
        if module is not None:
            value = getattr(import_module(module), name)
            assert isinstance(value, type_), module
            found[family] = value
    return found
