"""The public surface: which modules are public, and every name in them with its whole type.

``python -m tests.surface`` (``make surface``) writes tests/golden/surface.md from the source,
following each name through imports to its definition, and the index of names that packages import
on first use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from tests import name_index

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "tests" / "golden" / "surface.md"
COMMAND: Final = "make surface"
WIDTH: Final = 96

MODULES: Final = (
    "effax",
    "effax.typing",
    "effax.lax",
    "effax.lax.linalg",
    "effax.numpy",
    "effax.numpy.linalg",
    "effax.numpy.fft",
    "effax.nn",
    "effax.nn.initializers",
    "effax.random",
    "effax.image",
    "effax.scipy",
    "effax.scipy.cluster",
    "effax.scipy.cluster.vq",
    "effax.scipy.fft",
    "effax.scipy.integrate",
    "effax.scipy.interpolate",
    "effax.scipy.linalg",
    "effax.scipy.ndimage",
    "effax.scipy.optimize",
    "effax.scipy.signal",
    "effax.scipy.spatial",
    "effax.scipy.spatial.transform",
    "effax.scipy.sparse",
    "effax.scipy.sparse.linalg",
    "effax.scipy.special",
    "effax.scipy.stats",
    "effax.scipy.stats.bernoulli",
    "effax.scipy.stats.beta",
    "effax.scipy.stats.betabinom",
    "effax.scipy.stats.binom",
    "effax.scipy.stats.cauchy",
    "effax.scipy.stats.chi2",
    "effax.scipy.stats.dirichlet",
    "effax.scipy.stats.expon",
    "effax.scipy.stats.gamma",
    "effax.scipy.stats.gennorm",
    "effax.scipy.stats.geom",
    "effax.scipy.stats.gumbel_l",
    "effax.scipy.stats.gumbel_r",
    "effax.scipy.stats.laplace",
    "effax.scipy.stats.logistic",
    "effax.scipy.stats.multinomial",
    "effax.scipy.stats.multivariate_normal",
    "effax.scipy.stats.nbinom",
    "effax.scipy.stats.norm",
    "effax.scipy.stats.pareto",
    "effax.scipy.stats.poisson",
    "effax.scipy.stats.t",
    "effax.scipy.stats.truncnorm",
    "effax.scipy.stats.uniform",
    "effax.scipy.stats.vonmises",
    "effax.scipy.stats.wrapcauchy",
    "effax.tree",
    "effax.tree_util",
    "effax.flatten_util",
    "effax.ref",
    "effax.ad",
    "effax.ad_checkpoint",
    "effax.checkpoint",
    "effax.checkpoint_policies",
    "effax.custom_derivatives",
    "effax.custom_batching",
    "effax.debug",
    "effax.sharding",
    "effax.distributed",
    "effax.dlpack",
    "effax.monitoring",
    "effax.profiler",
    "effax.version",
    "effax.example_libraries",
    "effax.example_libraries.optimizers",
    "effax.example_libraries.stax",
    "effax.experimental",
    "effax.experimental.checkify",
    "effax.experimental.compilation_cache",
    "effax.experimental.compilation_cache.compilation_cache",
    "effax.experimental.jet",
    "effax.experimental.mesh_utils",
    "effax.experimental.multihost_utils",
    "effax.experimental.ode",
    "effax.experimental.pjit",
    "effax.experimental.serialize_executable",
    "effax.experimental.shard_map",
    "effax.experimental.sparse",
    "effax.ops",
    "effax.export",
    "effax.ir",
    "effax.ir.prims",
    "effax.effects",
    "effax.passes",
    "effax.transforms",
    "effax.lowering",
    "effax.extend",
    "effax.testing",
    "effax.testing.laws",
    "effax.testing.generate.features",
    "effax.testing.strategies",
    "effax.show",
    "effax.core",
    "effax.dtypes",
    "effax.errors",
    "effax.stages",
    "effax.test_util",
    "effax.drop_in",
    "effax.launch",
)
"""The public modules; public are the names in their ``__all__``, and no others."""

_SHOWN: Final = frozenset(
    {
        "abstractmethod",
        "classmethod",
        "contextmanager",
        "dataclass",
        "final",
        "overload",
        "property",
        "staticmethod",
    }
)
_PASSES: Final = frozenset({"as_result", "jaxpr_pass"})
_HEAD: Final = f"""# Every public name

What is public, in one place: every name of every public module, its kind and its whole type.
`{COMMAND}` writes this page from the source; a test compares them. What is not here may change
at any time. `name = module.name` states where a name that several modules have is defined in full.
"""
_METHODS: Final = ("__init__", "__call__", "__get__")

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class Found(NamedTuple):
    """The definitions of a name and their module; several where it has overloads."""

    module: str
    name: str
    nodes: tuple[Definition, ...]


def path_of(module: str) -> Path | None:
    """Return the file of a module of the library."""
    base = ROOT.joinpath(*module.split("."))
    found = [p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()]
    return found[0] if found else None


@cache
def statements(module: str) -> tuple[ast.stmt, ...]:
    """Return the statements at the top of a module, including those for type checkers."""
    path = path_of(module)
    assert path is not None, module
    found: list[ast.stmt] = []
    for node in ast.parse(path.read_text("utf-8")).body:
        found += node.body if isinstance(node, ast.If) else [node]
    return tuple(found)


def find(module: str, name: str) -> Found | None:
    """Return the definition of a name; None for a module and for a name of another library."""
    own: list[Definition] = []
    stars: list[str] = []
    for node in statements(module):
        match node:
            case ast.FunctionDef() | ast.ClassDef() if node.name == name:
                own.append(node)
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                own.append(node)
            case ast.AnnAssign(target=ast.Name(id=target)) if target == name:
                own.append(node)
            case ast.ImportFrom(module=str(origin)) if origin.startswith("effax"):
                if any(a.name == "*" for a in node.names):
                    stars.append(origin)
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return _imported(module, origin, alias.name)
    if own:
        return Found(module, name, tuple(own))
    for origin in stars:
        if name in import_module(origin).__all__:
            return find(origin, name)
    return None


def _imported(into: str, origin: str, name: str) -> Found | None:
    if origin != into and path_of(origin) is not None:
        found = find(origin, name)
        if found is not None:
            return found
    return None


def public_names(module: str) -> list[str]:
    """Return the names that a public module lists."""
    return sorted(import_module(module).__all__)


@cache
def homes() -> dict[tuple[str, str], str]:
    """Return the first public name of each definition, under which the page shows it in full."""
    found: dict[tuple[str, str], str] = {}
    for module in MODULES:
        for name in public_names(module):
            what = find(module, name)
            if what is not None:
                found.setdefault((what.module, what.name), f"{module}.{name}")
    return found


def entries() -> dict[str, str]:
    """Return the entry of every public name."""
    return {f"{m}.{name}": entry(m, name) for m in MODULES for name in public_names(m)}


def written(node: ast.AST) -> str:
    """Return an expression as text, the same on every Python."""
    return ast.unparse(node).replace(",]", "]")


def entry(module: str, name: str) -> str:
    """Return the entry of a name: its kind and its whole type."""
    found = find(module, name)
    if found is None:
        if path_of(f"{module}.{name}") is not None:
            return f"{name}: module"
        value = getattr(import_module(module), name)
        return f"{name}: {type(value).__module__}.{type(value).__qualname__}"
    home = homes()[found.module, found.name]
    if home != f"{module}.{name}":
        return f"{name} = {home}"
    return "\n".join(_definitions(found, name, getattr(import_module(module), name)))


def _definitions(found: Found, name: str, value: object) -> Iterator[str]:
    functions = [n for n in found.nodes if isinstance(n, ast.FunctionDef)]
    if functions:
        yield from _functions(functions, name)
        return
    node = found.nodes[-1]
    if isinstance(node, ast.ClassDef):
        yield from _class(found.module, node, name)
    elif isinstance(node, ast.AnnAssign):
        yield f"{name}: {_declared(node.annotation, node.value, value)}"
    elif isinstance(node, ast.Assign):
        yield f"{name} = {written(node.value)}"


def _declared(annotation: ast.expr, given: ast.expr | None, value: object) -> str:
    """Return the type of a constant without ``Final``; of an alias, its definition."""
    shown = written(annotation)
    if shown == "TypeAlias" and given is not None:
        return f"TypeAlias = {written(given)}"
    if shown == "Final":
        return type(value).__name__
    return shown.removeprefix("Final[").removesuffix("]") if shown.startswith("Final[") else shown


def _functions(nodes: Sequence[ast.FunctionDef], name: str, indent: str = "") -> Iterator[str]:
    overloads = [n for n in nodes if "overload" in map(_decorator, n.decorator_list)]
    for node in overloads or nodes[-1:]:
        for decorator in node.decorator_list:
            if _decorator(decorator) in _SHOWN:
                yield f"{indent}@{written(decorator)}"
        result = f" -> {_result(node)}" if node.returns is not None else ""
        args = list(_arguments(node.args))
        line = f"{indent}def {name}({', '.join(args)}){result}"
        if len(line) <= WIDTH:
            yield line
        else:
            yield f"{indent}def {name}("
            yield from [f"{indent}    {arg}," for arg in args]
            yield f"{indent}){result}"


def _result(node: ast.FunctionDef) -> str:
    """Return the result type, wrapped in ``Result`` where a decorator does so."""
    assert node.returns is not None
    wraps = any(_decorator(each) in _PASSES for each in node.decorator_list)
    return f"Result[{written(node.returns)}, TransformError]" if wraps else written(node.returns)


def _decorator(node: ast.expr) -> str:
    return written(node.func if isinstance(node, ast.Call) else node).split(".")[-1]


def _arguments(given: ast.arguments) -> Iterator[str]:
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + [*given.defaults]
    for i, (arg, default) in enumerate(zip(plain, defaults, strict=True)):
        yield _argument(arg, default)
        if given.posonlyargs and i + 1 == len(given.posonlyargs):
            yield "/"
    if given.vararg is not None:
        yield "*" + _argument(given.vararg, None)
    elif given.kwonlyargs:
        yield "*"
    for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(arg, default)
    if given.kwarg is not None:
        yield "**" + _argument(given.kwarg, None)


def _argument(arg: ast.arg, default: ast.expr | None) -> str:
    shown = arg.arg if arg.annotation is None else f"{arg.arg}: {written(arg.annotation)}"
    return shown if default is None else f"{shown} = {written(default)}"


def _class(module: str, node: ast.ClassDef, name: str) -> Iterator[str]:
    for decorator in node.decorator_list:
        if _decorator(decorator) in _SHOWN:
            yield f"@{written(decorator)}"
    bases = ", ".join(map(written, [*node.bases, *node.keywords]))
    yield f"class {name}({bases})" if bases else f"class {name}"
    seen: set[str] = set()
    for owner, own in _with_private_bases(module, node):
        yield from _members(own, seen, is_own=owner == module and own is node)


def _with_private_bases(module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the class and its bases that have no entry."""
    yield module, node
    for base in node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        found = find(module, inner.id) if isinstance(inner, ast.Name) else None
        if found is None or (found.module, found.name) in homes():
            continue
        definition = found.nodes[-1]
        if isinstance(definition, ast.ClassDef):
            yield from _with_private_bases(found.module, definition)


def _members(node: ast.ClassDef, seen: set[str], is_own: bool) -> Iterator[str]:
    methods: dict[str, list[ast.FunctionDef]] = {}
    fields: dict[str, str] = {}
    for item in node.body:
        match item:
            case ast.AnnAssign(target=ast.Name(id=field)) if not field.startswith("_"):
                fields[field] = written(item.annotation)
            case ast.Assign(targets=[ast.Name(id=field)]) if not field.startswith("_"):
                fields[field] = f"= {written(item.value)}"
            case ast.FunctionDef() if not item.name.startswith("_") or item.name in _METHODS:
                methods.setdefault(item.name, []).append(item)
    for init in methods.get("__init__", []):
        fields |= {k: v for k, v in _attributes(init) if k not in methods}
    for field, shown in fields.items():
        if field not in seen:
            yield f"    {field} {shown}" if shown.startswith("= ") else f"    {field}: {shown}"
    for name, nodes in methods.items():
        if name not in seen:
            yield from _functions(nodes, name, "    ")
    seen |= {*fields, *methods}


def _attributes(init: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Yield the public attributes that ``__init__`` sets, where their types are annotated."""
    types = {a.arg: a.annotation for a in [*init.args.args, *init.args.kwonlyargs]}
    for item in init.body:
        match item:
            case ast.AnnAssign(target=ast.Attribute(attr=name)) if not name.startswith("_"):
                yield name, written(item.annotation)
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Name(id=given)):
                annotation = types.get(given)
                if annotation is not None and not name.startswith("_"):
                    yield name, written(annotation)
            case _:
                pass


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    for module in MODULES:
        lines = "\n".join([entry(module, name) for name in public_names(module)])
        parts.append(f"## {module}\n\n```python\n{lines}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    name_index.PAGE.write_text(name_index.page(), "utf-8")
    PAGE.write_text(page(), "utf-8")
