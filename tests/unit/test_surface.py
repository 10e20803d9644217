"""The public surface is what tests/golden/surface.md lists: complete, typed and documented."""

from __future__ import annotations

import re
from difflib import unified_diff
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from effax.ir.registry import own_primitives
from tests import surface
from tests.surface import MODULES
from tests.unit.test_docs_site import REFERENCE

STRUCTURE: Final = "a tree, whose structure is known at run time only"
SHAPES: Final = "the tree of a result's shapes and dtypes"
CHOSEN: Final = "the differentiated arguments are known by the call only"
HOST: Final = "the result of a Python function, or the contents of a file"
DRAWN: Final = "the type drawn depends on the law"
NESTED: Final = "lists nested as deep as the array has axes"
EITHER: Final = "an array or a reference, known to the author of the primitive"

WITHOUT_A_TYPE: Final = {
    "effax.extend.ArrayPrimitive": EITHER,
    "effax.extend.Elementwise": EITHER,
    "effax.extend.FunctionPrimitive": EITHER,
    "effax.extend.Handle": EITHER,
    "effax.extend.LinearPrimitive": EITHER,
    "effax.extend.RegionPrimitive": EITHER,
    "effax.extend.with_batch_axis": EITHER,
    "effax.Array": NESTED,
    "effax.VJP": "with_refs may replace cotangents of arguments",
    "effax.device_get": STRUCTURE,
    "effax.device_put": STRUCTURE,
    "effax.eval_shape": SHAPES,
    "effax.fwd_and_bwd": CHOSEN,
    "effax.grad": CHOSEN,
    "effax.hessian": CHOSEN,
    "effax.jacfwd": CHOSEN,
    "effax.jacobian": CHOSEN,
    "effax.jit": "shardings of arguments and results, in their structure",
    "effax.jvp": "arguments in a list, of any types",
    "effax.linear_transpose": "arguments may be described by shapes and dtypes",
    "effax.linearize": "a second part is present only if the call has aux",
    "effax.make_jaxpr": SHAPES,
    "effax.pure_callback": HOST,
    "effax.value_and_grad": CHOSEN,
    "effax.vjp": "a second part is present only if the call has aux",
    "effax.typing.Compiled": SHAPES,
    "effax.typing.JitFunction": SHAPES,
    "effax.typing.Lowered": SHAPES,
    "effax.stages.Traced": SHAPES,
    "effax.typing.PyTree": STRUCTURE,
    "effax.tree.broadcast": STRUCTURE,
    "effax.tree.broadcast_prefix": STRUCTURE,
    "effax.tree.flatten": STRUCTURE,
    "effax.tree.flatten_with_path": STRUCTURE,
    "effax.tree.leaves": STRUCTURE,
    "effax.tree.leaves_with_path": STRUCTURE,
    "effax.tree.map": STRUCTURE,
    "effax.tree.map_with_path": STRUCTURE,
    "effax.tree.reduce": STRUCTURE,
    "effax.tree.reduce_associative": STRUCTURE,
    "effax.tree.register_pytree_node": STRUCTURE,
    "effax.tree.static": STRUCTURE,
    "effax.tree.transpose": STRUCTURE,
    "effax.tree.unflatten": STRUCTURE,
    "effax.tree_util.flatten_one_level": STRUCTURE,
    "effax.tree_util.flatten_one_level_with_keys": STRUCTURE,
    "effax.tree_util.register_pytree_with_keys": STRUCTURE,
    "effax.checkpoint.CheckpointManager": STRUCTURE,
    "effax.checkpoint.restore": STRUCTURE,
    "effax.custom_derivatives.CustomVJPPrimal": STRUCTURE,
    "effax.custom_derivatives.custom_vjp_primal_tree_values": STRUCTURE,
    "effax.custom_derivatives.zero_from_primal": STRUCTURE,
    "effax.debug.Session": STRUCTURE,
    "effax.debug.breakpoint": STRUCTURE,
    **{
        f"effax.example_libraries.optimizers.{name}": STRUCTURE
        for name in (
            *("JoinPoint", "LeafOptimizer", "Optimizer", "OptimizerState", "clip_grads"),
            *("l2_norm", "pack_optimizer_state", "unpack_optimizer_state"),
        )
    },
    **{
        f"effax.example_libraries.stax.{name}": STRUCTURE
        for name in ("ApplyFun", "InitFun", "elementwise", "shape_dependent")
    },
    "effax.experimental.io_callback": HOST,
    "effax.experimental.jet.jet": STRUCTURE,
    **{
        f"effax.experimental.multihost_utils.{name}": STRUCTURE
        for name in (
            *("broadcast_one_to_all", "process_allgather"),
            *("global_array_to_host_local_array", "host_local_array_to_global_array"),
        )
    },
    "effax.experimental.ode.odeint": STRUCTURE,
    "effax.experimental.sparse.BCOO": STRUCTURE,
    "effax.experimental.sparse.grad": STRUCTURE,
    "effax.experimental.sparse.sparsify": STRUCTURE,
    "effax.experimental.sparse.value_and_grad": STRUCTURE,
    "effax.export.Exported": HOST,
    "effax.export.symbolic_args_specs": STRUCTURE,
    "effax.scipy.sparse.linalg.bicgstab": STRUCTURE,
    "effax.scipy.sparse.linalg.cg": STRUCTURE,
    "effax.scipy.sparse.linalg.gmres": STRUCTURE,
    "effax.testing.strategies.subjects": DRAWN,
}
"""Public names whose type has PyTree, and the reason."""

ENTRIES: Final = surface.entries()

PROTOCOLS: Final = {
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "__version_info__",
}
"""Names that start with an underscore and are public by convention."""


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    listed, found = surface.PAGE.read_text("utf-8"), surface.page()
    lines = list(unified_diff(listed.split("\n"), found.split("\n"), "listed", "found", n=1))
    shown = "\n".join(lines[:60])
    assert not lines, f"the public surface changed; if that is meant: {surface.COMMAND}\n{shown}"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_lists_existing_names_once(module: str) -> None:
    loaded = import_module(module)
    names: list[str] = loaded.__all__
    assert len(names) == len(set(names))
    assert not [name for name in names if not hasattr(loaded, name)]
    assert not [name for name in names if name.startswith("_") and name not in PROTOCOLS]


def test_no_signature_has_any() -> None:
    said = [name for name, shown in ENTRIES.items() if re.search(r"\bAny\b", shown)]
    assert said == ["effax.typing.PyTree"]


def test_names_without_a_type_have_a_reason() -> None:
    aliases = {"PyTree"}
    for name, shown in ENTRIES.items():
        if shown.endswith("TypeAlias = PyTree"):
            aliases.add(name.split(".")[-1])
    said = re.compile(rf"\b({'|'.join(aliases)})\b")
    found = {
        name for name, shown in ENTRIES.items() if said.search(shown) and "= effax." not in shown
    }
    assert sorted(found - {*WITHOUT_A_TYPE}) == [], "annotate these, or add a reason here"
    assert sorted({*WITHOUT_A_TYPE} - found) == [], "these are annotated"


def test_every_parameter_and_every_result_has_a_type() -> None:
    untyped = []
    for name, shown in ENTRIES.items():
        text = re.sub(r"\(\n\s*", "(", re.sub(r",\n\s*", ", ", shown)).replace(", )", ")")
        for line in text.split("\n"):
            if line.lstrip().startswith("def ") and "__init__" not in line:
                first = re.sub(r"^\s*def \w+\((?:self|cls)?,? ?", "", line)
                head = re.split(r"[:)=]", first, maxsplit=1)[0].strip("*/, ")
                if " -> " not in line or (head and ":" not in first.split(")")[0]):
                    untyped.append(f"{name}: {line.strip()}")
    assert not untyped, "\n".join(untyped)


def documented(module: str) -> set[str]:
    """Return the names of a public module that the pages of the reference have."""
    if REFERENCE.get(module) == []:
        return set(surface.public_names(module))
    found: set[str] = set()
    for page, names in REFERENCE.items():
        inside = page == module or (page.startswith(f"{module}.") and page not in MODULES)
        if inside:
            found |= set(names)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_listed_names_are_documented_and_no_others(module: str) -> None:
    listed = set(surface.public_names(module))
    assert sorted(listed - documented(module)) == [], "add these to a page of docs/api"
    assert sorted(documented(module) - listed) == [], f"add these to the `__all__` of {module}"


def test_every_primitive_is_public() -> None:
    own = {prim.__name__ for prim in own_primitives().values()}
    assert sorted(own - set(surface.public_names("effax.ir.prims"))) == []


@pytest.mark.parametrize("module", ["effax.lax", "effax.numpy"])
def test_a_namespace_has_all_names_of_its_modules(module: str) -> None:
    path = surface.path_of(module)
    assert path is not None
    stars = re.findall(rf"from ({module}\.\w+) import \*", path.read_text("utf-8"))
    assert len(stars) > 5
    names = {name for star in stars for name in import_module(star).__all__ if name[0] != "_"}
    assert sorted(names - set(surface.public_names(module))) == []


def test_entries_of_names() -> None:
    assert ENTRIES["effax.vmap"].startswith("def vmap(\n    fun: Callable[P, R],\n")
    assert ENTRIES["effax.ir.Jaxpr"].startswith("@final\nclass Jaxpr\n    binders: tuple[Var, ...]")
    assert "    @property\n    def effects(self) -> Row[ArgIndex]" in ENTRIES["effax.ir.Jaxpr"]
    assert ENTRIES["effax.grad"].count("@overload") == 6
    assert ENTRIES["effax.extend.Type"] == "Type = effax.ir.Type"
    assert ENTRIES["effax.passes.dce"] == "dce: Pass"
    assert ENTRIES["effax.numpy.sin"] == "sin: UnaryFunction"
    assert ENTRIES["effax.lax"] == "lax: module"


PAGES: Final = sorted(
    path
    for pattern in ("README.md", "docs/*.md", "examples/**/*.py")
    for path in surface.ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_and_examples_import_public_names_only(page: Path) -> None:
    text = page.read_text("utf-8")
    found = re.findall(r"^ *from (effax(?:\.\w+)*) import (\([^)]*\)|[^\n]*)", text, re.MULTILINE)
    for module, names in found:
        assert module in MODULES, f"from {module} import {names}"
        imported = [name.split(" as ")[0].strip(" ()\n") for name in names.split(",")]
        inside = [m.split(".")[-1] for m in MODULES if m.rpartition(".")[0] == module]
        hidden = {*imported} - {*surface.public_names(module), *inside, ""}
        assert not hidden, f"from {module} import {', '.join(sorted(hidden))}"
