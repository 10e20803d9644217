"""Where a value can be imported from: the module that defines it, and none that only uses it.

A name of a module counts where its source gives it to what it computes there: by ``def``, ``class``
or an assignment of more than another name, once. What is imported, a loop variable, and what is
assigned in a loop does not.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
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
from effax.testing.laws.pass_set import Passes
from effax.transforms.framework.rules import RuleSet
from effax.transforms.optimize.rewrite import App, Hole, Number

PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type(...))
"""What is written as Python writes it."""

_NAMED: Final = (FunctionType, BuiltinFunctionType, type)
_NAMELESS: Final = (*PLAIN, Jaxpr, tuple, Enum, ArrayType, RefType, App, Hole, Number)


class ImportPath(NamedTuple):
    """Where a value is.

    Attributes:
        module: the module, as others import it.
        path: its name there, with dots.
        item: what follows the name where it is an item of something: ``[3]``.
    """

    module: str
    path: str
    item: str = ""

    @property
    def is_test(self) -> bool:
        """Whether that is a file of tests, which nobody imports."""
        stem = self.module.rpartition(".")[2]
        return stem.startswith("test_") or stem.endswith("_test")


def place_of(value: object) -> ImportPath | None:
    """Where a value can be imported from; None: it has no name."""
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
    """The package of the library that has a name in its ``__all__``; else the module."""
    if not module.startswith("effax"):
        return module
    loaded: list[tuple[str, object]] = list(sys.modules.items())
    found = [
        other
        for other, held in loaded
        if other.startswith("effax")
        and name in getattr(held, "__all__", ())
        and getattr_static(held, name, None) is value
    ]
    return min(found, key=lambda other: (other.count("."), other), default=module)


def _at(module: str, path: str) -> object:
    found: object = sys.modules.get(module)
    for part in path.split("."):
        found = getattr_static(found, part, None)
    return found


def _importable(module: str) -> str | None:
    """The name by which others import a module; of a script, that of its file."""
    if module != "__main__":
        return module
    main = sys.modules[module]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__") or None
    stem = Path(file).stem if file else ""
    return stem if stem.isidentifier() else None


def _global(value: object) -> ImportPath | None:
    """Where a module defines a value: under a name, else as an item of a list or a tuple."""
    return _found(value, _itself) or _found(value, _item)


def _itself(value: object, held: object) -> str | None:
    return "" if held is value else None


def _item(value: object, held: object) -> str | None:
    if not isinstance(held, tuple | list):
        return None
    return next((f"[{i}]" for i, one in enumerate(held) if one is value), None)


def _found(value: object, how: Callable[[object, object], str | None]) -> ImportPath | None:
    """The nearest place: the library before others, public names before private ones."""
    found: list[tuple[bool, bool, int, ImportPath]] = []
    loaded: list[tuple[str, object]] = list(sys.modules.items())
    for module, held in loaded:
        known = _importable(module)
        if not isinstance(held, ModuleType) or known is None:
            continue
        for name, other in list(vars(held).items()):
            item = how(value, other)
            if item is None or not name.isidentifier() or name.startswith("__"):
                continue
            if name in _defined(held, name):
                place = ImportPath(_public(known, name, other), name, item)
                apart = not known.startswith("effax")
                found.append((name.startswith("_"), apart, known.count("."), place))
    return min(found)[-1] if found else None


def _defined(module: ModuleType, name: str) -> frozenset[str]:
    """The names that a module defines; where it has no source, any that it has."""
    try:
        source = getsource(module)
    except (OSError, TypeError):
        return frozenset({name})
    return _definitions(source)


@cached(maxsize=64)
def _definitions(source: str) -> frozenset[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return frozenset()
    defined, others = _bound(tree.body)
    return frozenset(name for name, n in defined.items() if n == 1 and name not in others)


_Names = tuple[Counter[str], set[str]]
"""How often names are given to what is computed, and which stand for something else too."""


def _bound(body: list[ast.stmt]) -> _Names:
    defined: Counter[str] = Counter()
    others: set[str] = set()
    for node in body:
        made, more = _bound_by(node)
        defined += made
        others |= more
    return defined, others


def _bound_by(node: ast.stmt) -> _Names:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return Counter([node.name]), set()
        case ast.Assign():
            return _assigned(node.targets, node.value)
        case ast.AnnAssign() if node.value is not None:
            return _assigned([node.target], node.value)
        case ast.If():
            return _either(_bound(node.body), _bound(node.orelse))
        case ast.Try():
            handlers = [_bound(handler.body) for handler in node.handlers]
            return _either(_bound([*node.body, *node.orelse, *node.finalbody]), *handlers)
        case ast.With():
            defined, others = _bound(node.body)
            return defined, others | _stored(*node.items)
        case _:
            # Loops, deletions, and the like: what they bind may be anything in the end.
            return Counter(), _stored(node)


def _either(*ways: _Names) -> _Names:
    """What is bound where one of several ways is taken."""
    defined: Counter[str] = Counter()
    for made, _ in ways:
        defined |= made
    return defined, {name for _, others in ways for name in others}


def _assigned(targets: list[ast.expr], value: ast.expr) -> _Names:
    pairs = [(target, value) for target in targets]
    if len(targets) == 1 and isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(targets[0].elts, value.elts, strict=False))
    defined: Counter[str] = Counter()
    others: set[str] = set()
    for target, given in pairs:
        computed = not isinstance(given, ast.Name | ast.Attribute | ast.Subscript)
        names = _stored(target)
        if computed:
            defined.update(names)
        else:
            others |= names
    return defined, others


def _stored(*nodes: ast.AST) -> set[str]:
    """The names that are given to something anywhere in these."""
    return {
        found.id
        for node in nodes
        for found in ast.walk(node)
        if isinstance(found, ast.Name) and not isinstance(found.ctx, ast.Load)
    }
