"""Every cache has an owner, a bound and a way to clear it; other state is listed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import effax
import effax.numpy as enp
from effax.ir import state

ROOT = Path(effax.__file__).parent
MODULES = sorted(p for p in ROOT.rglob("*.py") if p.name != "__main__.py")

CONTAINERS = {
    "ContextVar",
    "OrderedDict",
    "WeakKeyDictionary",
    "WeakSet",
    "WeakValueDictionary",
    "count",
    "defaultdict",
    "deque",
    "dict",
    "list",
    "local",
    "set",
}
VALUES = {
    "effax.drop_in.finder.FINDER",
    "effax.drop_in.mlir.chlo",
    "effax.drop_in.mlir.func",
    "effax.drop_in.mlir.hlo",
    "effax.drop_in.mlir.ir",
    "effax.experimental.jet.zero_series",
    "effax.lax.branches._ABSENT",
    "effax.numpy.grids.c_",
    "effax.numpy.grids.mgrid",
    "effax.numpy.grids.ogrid",
    "effax.numpy.grids.r_",
    "effax.numpy.ufuncs._ALL_KEPT",
}
"""Instances of private classes that never change."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def called(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def is_mutable(value: ast.expr, classes: set[str]) -> bool:
    match value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(args=[ast.Call() as inner]) if called(value) == "carried":
            return is_mutable(inner, classes)
        case ast.Call():
            return called(value) in CONTAINERS | classes
        case _:
            return False


def changing_classes(tree: ast.Module) -> set[str]:
    """Return the private classes whose instances are neither tuples nor frozen."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.startswith("_")
        if not any("frozen" in ast.dump(d) for d in node.decorator_list)
        if not any("NamedTuple" in ast.dump(base) for base in node.bases)
    }


def mutable_state(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    classes = changing_classes(tree)
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if is_mutable(node.value, classes):
            yield from (f"{name_of(path)}.{t.id}" for t in targets if isinstance(t, ast.Name))


@pytest.mark.slow
def test_mutable_state_is_listed() -> None:
    found = {name for path in MODULES for name in mutable_state(path)}
    for name in found:
        import_module(name.rpartition(".")[0])
    listed = {cache.name for cache in state.caches()} | set(state.OTHER_STATE) | VALUES
    assert sorted(found - listed) == []


def test_what_is_listed_exists() -> None:
    for name in state.OTHER_STATE:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name


@pytest.mark.slow
@pytest.mark.parametrize("word", ["lru_cache", "cache"])
def test_caches_are_made_by_one_decorator(word: str) -> None:
    owners = {"effax.ir.memo", "effax.ir.state"}
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                used = {called(d) for d in node.decorator_list}
                assert word not in used or name_of(path) in owners, f"{path}: {node.name}"
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                assert called(node.value) != word, path


def test_caches_have_one_owner_each() -> None:
    names = [cache.name for cache in state.caches() if "<locals>" not in cache.name]
    assert len(set(names)) == len(names)
    assert [name for name in names if not name.startswith(("effax.", "tests."))] == []


@pytest.mark.slow
def test_clear_caches() -> None:
    def square(x: effax.Array) -> effax.Array:
        return enp.sum(x * x)

    double = effax.jit(effax.grad(square))
    before = double(enp.ones(3))
    programs = next(c for c in state.caches() if c.name == "effax.lowering.program._cache")
    assert programs.size() > 0
    effax.clear_caches()
    assert {cache.name: cache.size() for cache in state.caches() if cache.size()} == {}
    assert (double(enp.ones(3)) == before).all()
    assert programs.size() > 0
