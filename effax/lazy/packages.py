"""Packages whose names are imported on first use (PEP 562).

The imports of such a package stand under ``if TYPE_CHECKING:``. At run time :func:`lazy` finds the
module of a name in the index, which ``make surface`` writes from these imports; a name that the
index lacks is looked for by the imports themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from effax.lazy.index import INDEX, SHADOWED

Origin = tuple[str, str]
"""A module, and the name in it; an empty name for the module itself."""


class LazyPackage(ModuleType):
    """A package some of whose modules have the names of its functions: the functions win."""

    def __setattr__(self, name: str, value: object) -> None:
        # The import system sets each module that it loads as an attribute of the package.
        if not isinstance(value, ModuleType) or name not in SHADOWED[self.__name__].split():
            super().__setattr__(name, value)


def lazy(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, which import names on first use."""
    namespace = sys.modules[package]
    if package in SHADOWED:
        namespace.__class__ = LazyPackage

    def getter(name: str) -> object:
        value = sorted(origins(package)) if name == "__all__" else _value(package, name)
        setattr(namespace, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(namespace), *namespace.__all__})

    return getter, names


def _value(package: str, name: str) -> object:
    origin = _indexed(package).get(name)
    if origin is not None:
        try:
            return _loaded(origin)
        except (ImportError, AttributeError):
            pass  # It has moved since the index was written.
    if not name.startswith("__") or name.startswith("__array"):
        # The import system asks a package for a name before it imports a module of that name.
        if find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        origin = origins(package).get(name)
        if origin is not None:
            return _loaded(origin)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def _loaded(origin: Origin) -> object:
    module, name = origin
    found = import_module(module)
    return getattr(found, name) if name else found


_known: dict[str, dict[str, Origin]] = {}


def _indexed(package: str) -> dict[str, Origin]:
    """Return the origins of names by the index."""
    if package not in _known:
        _known[package], module = {}, ""
        for word in INDEX.get(package, "").split():
            if word.endswith(":"):
                module = word[:-1]
            else:
                shown, _, original = word.partition("=")
                _known[package][shown] = _origin(package, module, original or shown)
    return _known[package]


def _origin(package: str, module: str, name: str) -> Origin:
    """Return the origin of a name that a package imports; from itself it imports modules."""
    return (f"{module}.{name}", "") if module == package else (module, name)


def origins(package: str) -> dict[str, Origin]:
    """Return the origins of all public names, by the imports of the package."""
    found: dict[str, Origin] = {}
    for module, name, shown in _imports(package):
        if name == "*":
            found |= {each: (module, each) for each in import_module(module).__all__}
        elif not shown.startswith("_"):
            found[shown] = _origin(package, module, name)
    return found


def _imports(package: str) -> Iterator[tuple[str, str, str]]:
    """Yield module, name and public name of each import under ``if TYPE_CHECKING:``."""
    import ast
    from pathlib import Path

    tree = ast.parse(Path(str(sys.modules[package].__file__)).read_text("utf-8"))
    for block in tree.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        yield str(node.module), alias.name, alias.asname or alias.name
