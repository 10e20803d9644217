"""The shape of the source: imports, loaded modules, lengths of modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import effax

SOURCE = Path(effax.__file__).parent
CORE = ("effects", "ir", "transforms", "lowering")
MODULES = sorted(SOURCE.rglob("*.py"))
LINES = 500

ROOMS = tuple(sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")))

NAMESPACES = {
    *("__init__", "__main__", "ad", "ad_checkpoint", "checkpoint", "checkpoint_policies"),
    *(
        "config",
        "custom_batching",
        "custom_derivatives",
        "debug",
        "export",
        "flatten_util",
        "ops",
        "ref",
    ),
    *("core", "dtypes", "errors", "sharding", "stages", "test_util", "tree_util", "typing"),
    *("distributed", "dlpack", "monitoring", "profiler", "version"),
}
"""The modules at the top: what users import, and ``python -m effax``."""

CLASSES_OF_TWO_LAYERS = {
    "Elementwise": "the base of built-in primitives, and the one for users' primitives",
    "Linear": "an argument of a transpose rule, by its variable and by its array",
    "Tolerance": "JAX's name of an accuracy, and the tolerance of laws",
    "Traced": "a finished trace, and JAX's name of a traced call",
}
FUNCTIONS_OF_TWO_LAYERS = {
    "broadcast_shapes": "NumPy's function of shapes, and the one that names the caller in errors",
    "check": "JAX's name, and the checker of programs",
    "checkify": "JAX's name, and the pass",
    "devices": "JAX's name, and what jaxlib reports",
    "effects_barrier": "JAX's name, and the wait for host calls",
    "evaluate": "the public evaluator, which checks its arguments, and the engine",
    "from_dlpack": "JAX's name, and the transfer to a buffer",
    "jvp": "JAX's name, and the pass",
    "linearize": "JAX's name, and the pass",
    "transpose": "NumPy's function of arrays, and the pass",
    "vmap": "JAX's name, and the pass",
}
OPERATIONS = (
    "ir/prims/common/numpy_semantics.py",
    "lowering/mlir_text.py",
    "lowering/ops.py",
    "lowering/rules/",
    "transforms/rules/",
)


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def imports(path: Path) -> set[str]:
    """Return the modules, and the names from modules, that a file imports anywhere."""
    return imports_in(ast.parse(path.read_text(encoding="utf-8")))


def imports_in(tree: ast.Module) -> set[str]:
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def dotted(path: Path) -> str:
    """Return the name under which a file is imported."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted(path) for path in MODULES}


def imported_at_run_time(path: Path) -> set[str]:
    """Return the modules of effax that a file imports anywhere, except for annotations."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = imports_in(tree)
    return {name if name in NAMES else name.rpartition(".")[0] for name in found} & NAMES


def is_in(imported: str, *packages: str) -> bool:
    return any(imported == package or imported.startswith(f"{package}.") for package in packages)


def test_modules_are_at_most_500_lines_long() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert not [f"{name(path)}: {lines}" for path, lines in lengths.items() if lines > LINES]


@pytest.mark.slow
def test_no_module_imports_jax() -> None:
    assert not [name(path) for path in MODULES if any(is_in(x, "jax") for x in imports(path))]


@pytest.mark.slow
@pytest.mark.parametrize("layer", CORE)
def test_a_core_package_imports_itself_and_lower_packages_only(layer: str) -> None:
    below = CORE[: CORE.index(layer) + 1]
    allowed = [f"effax.{room}" for room in ("lazy", *below)]
    wrong = [
        f"{name(path)} imports {imported}"
        for path in sorted((SOURCE / layer).rglob("*.py"))
        for imported in sorted(imports(path))
        if is_in(imported, "effax") and not is_in(imported, *allowed)
    ]
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_the_modules_of_a_room_have_no_import_cycle(room: str) -> None:
    paths = sorted((SOURCE / room).rglob("*.py"))
    inside = {dotted(path) for path in paths}
    graph = {dotted(path): imported_at_run_time(path) & inside for path in paths}
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*.py")), ids=name)
def test_a_module_at_the_top_only_names_what_is_public(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.stem in NAMESPACES
    assert path.stem == "__init__" or len(text.splitlines()) <= 60
    kinds = {type(node) for node in ast.parse(text).body}
    assert not kinds & {ast.FunctionDef, ast.ClassDef, ast.For, ast.With}


def definitions(kind: type[ast.ClassDef | ast.FunctionDef], paths: list[Path]) -> dict[str, int]:
    """Return the number of modules that define each public name at module level."""
    found = [
        public
        for path in paths
        for public in {
            node.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, kind) and not node.name.startswith("_")
        }
    ]
    return Counter(found)


@pytest.mark.slow
def test_a_public_class_is_defined_once() -> None:
    found = {name for name, n in definitions(ast.ClassDef, MODULES).items() if n > 1}
    assert found == set(CLASSES_OF_TWO_LAYERS)


@pytest.mark.slow
def test_a_public_function_of_the_core_is_defined_once() -> None:
    """Modules whose functions are named by the operation that they define are namespaces."""
    paths = [
        path
        for path in MODULES
        if name(path).startswith((*[f"{layer}/" for layer in CORE], "arrays/", "api/"))
        and not name(path).startswith(OPERATIONS)
    ]
    found = {name for name, n in definitions(ast.FunctionDef, paths).items() if n > 1}
    assert found == set(FUNCTIONS_OF_TWO_LAYERS)


@pytest.mark.parametrize("layer", CORE)
def test_the_links_at_the_top_lead_to_the_core(layer: str) -> None:
    link = SOURCE.parent / layer
    assert link.is_symlink()
    assert link.resolve() == SOURCE / layer


@pytest.mark.slow
@pytest.mark.parametrize("module", ["effax", "effax.effects", "effax.ir", "effax.transforms"])
def test_the_names_of_a_room_load_no_xla(module: str) -> None:
    show = "import sys; print(*sorted({'jax', 'jaxlib'} & set(sys.modules)))"
    code = f"from {module} import *; {show}"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=SOURCE.parent, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []
