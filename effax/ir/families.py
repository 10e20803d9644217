"""The families of built-in primitives, which have one name in every layer.

A family is a module, or a folder where it is large, in each of ``ir/prims``, ``transforms/rules``,
``lowering/rules`` and ``testing/generate``. The lists of primitives, rules and steps are derived
from these modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final, TypeVar

from pyrsistent import PMap, pmap

from effax.ir.primitive import Primitive

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


class FamilyTable(Mapping[type[Primitive], T]):
    """An immutable map from primitives to what their families' modules declare in a layer.

    The module of a family is imported when a class of it is first looked up.
    """

    __slots__ = ("_found", "_layer", "_loaded", "_names", "_own")

    def __init__(
        self, layer: str, names: tuple[str, ...], own: PMap[type[Primitive], T] | None = None
    ) -> None:
        """Take the layer, the names of maps in its modules, and entries that take precedence.

        Args:
            layer: as for :func:`family_module`.
            names: variables of a module whose ``rules`` are maps; the last takes precedence.
            own: entries that replace those of families.
        """
        self._layer = layer
        self._names = names
        self._own: PMap[type[Primitive], T] = pmap() if own is None else own
        self._found = dict(self._own)
        self._loaded: set[str] = set()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._layer, self._names, self._own)

    def __getitem__(self, cls: type[Primitive]) -> T:
        found = self._found.get(cls)
        if found is None:
            path = cls.__module__.split(".")  # effax.<room>.<layer>.<family>
            if path[0] == "effax" and len(path) > 3:
                self._load(path[3])
            return self._found[cls]
        return found

    def _load(self, family: str) -> None:
        """Enter what a family declares; nothing for other names and for families that are in."""
        module = family_module(self._layer, family) if family in FAMILIES else None
        if module is not None and family not in self._loaded:
            declaring = vars(import_module(module))
            for name in self._names:
                if name in declaring:
                    self._found.update(declaring[name].rules)
            self._found.update(self._own)
            self._loaded.add(family)

    def _load_all(self) -> dict[type[Primitive], T]:
        for family in FAMILIES:
            self._load(family)
        return self._found

    def __iter__(self) -> Iterator[type[Primitive]]:
        return iter(self._load_all())

    def __len__(self) -> int:
        return len(self._load_all())

    def set(self, cls: type[Primitive], value: T) -> FamilyTable[T]:
        """Return the map with another entry for a class."""
        return FamilyTable(self._layer, self._names, self._own.set(cls, value))

    def update(self, more: Mapping[type[Primitive], T]) -> FamilyTable[T]:
        """Return the map with more entries, which take precedence."""
        return FamilyTable(self._layer, self._names, self._own.update(more))
