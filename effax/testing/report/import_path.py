"""Find the module that defines a value, so that a report can import it.

A module defines the names that its top-level statements bind by ``def``, ``class`` or the
assignment of an expression. Imports, aliases and assignments in loops define none.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from inspect import getattr_static, getsource
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Final, NamedTuple

from effax.ir.state import cached
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType
from effax.testing.laws.transformations import Passes
from effax.transforms.framework.rules import RuleSet
from effax.transforms.optimize.rewrite import App, Hole, Number

PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type(...))
"""Types whose values are written by ``repr``."""

_NAMED: Final = (FunctionType, BuiltinFunctionType, type)
_NAMELESS: Final = (*PLAIN, Jaxpr, tuple, Enum, ArrayType, RefType, App, Hole, Number)


class ImportPath(NamedTuple):
    """The place of a value.

    Attributes:
        module: the module, as others import it.
        path: its name there, with dots.
        item: the index of an item of a sequence, such as ``[3]``.
    """

    module: str
    path: str
    item: str = ""

    @property
    def is_test(self) -> bool:
        """Return whether the module is a test file, which is not imported."""
        stem = self.module.rpartition(".")[2]
        return stem.startswith("test_") or stem.endswith("_test")


def place_of(value: object) -> ImportPath | None:
    """Return the place from which a value can be imported; None: it has no name."""
    if isinstance(value, _NAMELESS):
        return None
    if isinstance(value, _NAMED) or hasattr(value, "__wrapped__"):
        module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(module, str) and isinstance(path, str) and _at(module, path) is value:
            known = _importable(module)
            return None if known is None else ImportPath(_public(known, path, value), path)
        return _global(value)
    if isinstance(value, (partial, RuleSet, Passes)) or callable(value) or is_dataclass(value):
        return _global(value)
    return None


def _public(module: str, name: str, value: object) -> str:
    """Return the package of the library that exports a name in ``__all__``; else the module."""
    if not module.startswith("effax"):
        return module
    loaded: list[tuple[str, object]] = list(sys.modules.items())
    found = [
        other
        for other, contents in loaded
        if other.startswith("effax")
        and name in getattr(contents, "__all__", ())
        # Packages load such names on first use.
        and getattr(contents, name, None) is value
    ]
    return min(found, key=lambda other: (other.count("."), other), default=module)


def _at(module: str, path: str) -> object:
    found: object = sys.modules.get(module)
    for part in path.split("."):
        found = getattr_static(found, part, None)
    return found


def _importable(module: str) -> str | None:
    """Return the name by which a module is imported; of a script, that of its file."""
    if module != "__main__":
        return module
    main = sys.modules[module]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__") or None
    stem = Path(file).stem if file else ""
    return stem if stem.isidentifier() else None


def _global(value: object) -> ImportPath | None:
    """Return the place where a module defines a value: a name, else an item of a sequence.

    The library precedes other modules, and public names precede private ones.
    """
    found: list[tuple[bool, bool, bool, int, ImportPath]] = []
    loaded: list[tuple[str, object]] = list(sys.modules.items())
    for module, contents in loaded:
        known = _importable(module)
        if not isinstance(contents, ModuleType) or known is None:
            continue
        for name, other in list(vars(contents).items()):
            item = _item(value, other)
            if item is None or not name.isidentifier() or name.startswith("__"):
                continue
            if name in _defined(contents, name):
                place = ImportPath(_public(known, name, other), name, item)
                foreign = not known.startswith("effax")
                rank = (bool(item), name.startswith("_"), foreign, known.count("."))
                found.append((*rank, place))
    return min(found)[-1] if found else None


def _item(value: object, other: object) -> str | None:
    """Return the suffix by which a value is read from another; None: it is not in there."""
    if other is value:
        return ""
    if not isinstance(other, tuple | list):
        return None
    return next((f"[{i}]" for i, one in enumerate(other) if one is value), None)


def _defined(module: ModuleType, name: str) -> frozenset[str]:
    """Return the names that a module defines; without a source, the name itself."""
    try:
        source = getsource(module)
    except (OSError, TypeError):
        return frozenset({name})
    return _definitions(source)


@cached(maxsize=64)
def _definitions(source: str) -> frozenset[str]:
    """Return the names that top-level statements define; loops and aliases define none."""
    try:
        pending: list[ast.AST] = [*ast.parse(source).body]
    except SyntaxError:
        return frozenset()
    names = set[str]()
    while pending:
        node = pending.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign() if not _is_alias(node.value):
                names.update(_names(*node.targets))
            case ast.AnnAssign() if node.value is not None and not _is_alias(node.value):
                names.update(_names(node.target))
            case ast.If() | ast.Try() | ast.With() | ast.ExceptHandler():
                pending += ast.iter_child_nodes(node)
            case _:
                pass
    return frozenset(names)


def _is_alias(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(map(_is_alias, value.elts))
    return isinstance(value, ast.Name | ast.Attribute | ast.Subscript)


def _names(*nodes: ast.AST) -> set[str]:
    return {x.id for node in nodes for x in ast.walk(node) if isinstance(x, ast.Name)}
