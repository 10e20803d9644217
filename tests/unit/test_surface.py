"""The public surface is what tests/golden/surface.md lists: in whole, typed, and documented."""

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

STRUCTURE: Final = "a tree: what is in it, and where, is known when it is made only"
SHAPES: Final = "the tree of a result's shapes and dtypes"
CHOSEN: Final = "which arguments are differentiated is a number that the call knows only"
HOST: Final = "what a Python function gives, or a file holds, is told by values"
DRAWN: Final = "what is drawn depends on what the law is about"
NESTED: Final = "lists as deep as an array has axes"
EITHER: Final = "an array or a reference: the author of a primitive knows which it takes"

WITHOUT_A_TYPE: Final = {
    "effax.extend.ArrayPrimitive": EITHER,
    "effax.extend.Elementwise": EITHER,
    "effax.extend.FunctionPrimitive": EITHER,
    "effax.extend.Handle": EITHER,
    "effax.extend.LinearPrimitive": EITHER,
    "effax.extend.with_batch_axis": EITHER,
    "effax.Array": NESTED,
    "effax.VJP": "with_refs may give something else than a cotangent for each argument",
    "effax.closure_convert": "the values that a function closes over, of whatever types",
    "effax.eval_shape": SHAPES,
    "effax.grad": CHOSEN,
    "effax.hessian": CHOSEN,
    "effax.jacfwd": CHOSEN,
    "effax.jacrev": CHOSEN,
    "effax.jvp": "arguments in a list, of whatever types",
    "effax.linear_transpose": "the arguments may be given by their shapes and dtypes",
    "effax.linearize": "whether there is a second part is known when it is called only",
    "effax.make_jaxpr": SHAPES,
    "effax.pure_callback": HOST,
    "effax.value_and_grad": CHOSEN,
    "effax.vjp": "whether there is a second part is known when it is called only",
    "effax.typing.JitFunction": SHAPES,
    "effax.typing.PyTree": STRUCTURE,
    "effax.tree.broadcast_prefix": STRUCTURE,
    "effax.tree.flatten": STRUCTURE,
    "effax.tree.leaves": STRUCTURE,
    "effax.tree.map": STRUCTURE,
    "effax.tree.reduce": STRUCTURE,
    "effax.tree.register_pytree_node": STRUCTURE,
    "effax.tree.transpose": STRUCTURE,
    "effax.tree.unflatten": STRUCTURE,
    "effax.tree_util.tree_flatten_with_path": STRUCTURE,
    "effax.tree_util.tree_leaves_with_path": STRUCTURE,
    "effax.tree_util.tree_map_with_path": STRUCTURE,
    "effax.custom_derivatives.CustomVJPPrimal": STRUCTURE,
    "effax.custom_derivatives.custom_vjp_primal_tree_values": STRUCTURE,
    "effax.custom_derivatives.zero_from_primal": STRUCTURE,
    "effax.experimental.io_callback": HOST,
    "effax.export.Exported": HOST,
    "effax.testing.strategies.subjects": DRAWN,
}
"""Public names whose type is not said, and why."""

ENTRIES: Final = surface.entries()


def test_the_page_lists_what_the_source_has() -> None:
    listed, found = surface.PAGE.read_text("utf-8"), surface.page()
    lines = list(unified_diff(listed.split("\n"), found.split("\n"), "listed", "found", n=1))
    shown = "\n".join(lines[:60])
    assert not lines, f"the public surface changed; if that is meant: {surface.COMMAND}\n{shown}"


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_lists_is_there_once(module: str) -> None:
    loaded = import_module(module)
    names: list[str] = loaded.__all__
    assert len(names) == len(set(names))
    assert not [name for name in names if not hasattr(loaded, name)]
    assert not [name for name in names if name.startswith("_")]


def test_no_signature_says_any() -> None:
    said = [name for name, told in ENTRIES.items() if re.search(r"\bAny\b", told)]
    assert said == ["effax.typing.PyTree"]


def test_what_has_no_type_is_known_and_has_a_reason() -> None:
    aliases = {"PyTree"}
    for name, told in ENTRIES.items():
        if told.endswith("TypeAlias = PyTree"):
            aliases.add(name.split(".")[-1])
    said = re.compile(rf"\b({'|'.join(aliases)})\b")
    found = {name for name, told in ENTRIES.items() if said.search(told) and "= effax." not in told}
    assert sorted(found - {*WITHOUT_A_TYPE}) == [], "give these a type, or a reason here"
    assert sorted({*WITHOUT_A_TYPE} - found) == [], "these have a type"


def test_every_parameter_and_every_result_has_a_type() -> None:
    untyped = []
    for name, told in ENTRIES.items():
        text = re.sub(r"\(\n\s*", "(", re.sub(r",\n\s*", ", ", told)).replace(", )", ")")
        for line in text.split("\n"):
            if line.lstrip().startswith("def ") and "__init__" not in line:
                first = re.sub(r"^\s*def \w+\((?:self|cls)?,? ?", "", line)
                head = re.split(r"[:)=]", first, maxsplit=1)[0].strip("*/, ")
                if " -> " not in line or (head and ":" not in first.split(")")[0]):
                    untyped.append(f"{name}: {line.strip()}")
    assert not untyped, "\n".join(untyped)


def documented(module: str) -> set[str]:
    """The names of a public module that the pages of the reference have."""
    if REFERENCE.get(module) == []:
        return set(surface.public_names(module))
    found: set[str] = set()
    for page, names in REFERENCE.items():
        inside = page == module or (page.startswith(f"{module}.") and page not in MODULES)
        if inside:
            found |= set(names)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_what_is_listed_is_documented_and_no_more(module: str) -> None:
    listed = set(surface.public_names(module))
    assert sorted(listed - documented(module)) == [], "add these to a page of docs/api"
    assert sorted(documented(module) - listed) == [], f"add these to the `__all__` of {module}"


def test_every_primitive_is_public() -> None:
    own = {prim.__name__ for prim in own_primitives().values()}
    assert sorted(own - set(surface.public_names("effax.ir.prims"))) == []


@pytest.mark.parametrize("module", ["effax.lax", "effax.numpy"])
def test_a_namespace_has_all_that_its_modules_list(module: str) -> None:
    path = surface.path_of(module)
    assert path is not None
    stars = re.findall(rf"from ({module}\.\w+) import \*", path.read_text("utf-8"))
    assert len(stars) > 5
    names = {name for star in stars for name in import_module(star).__all__}
    assert sorted(names - set(surface.public_names(module))) == []


def test_what_is_told_of_a_name() -> None:
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
def test_what_users_read_imports_public_names_only(page: Path) -> None:
    text = page.read_text("utf-8")
    found = re.findall(r"^ *from (effax[\w.]*) import (\([^)]*\)|[^\n]*)", text, re.MULTILINE)
    for module, names in found:
        assert module in MODULES, f"from {module} import {names}"
        imported = [name.split(" as ")[0].strip(" ()\n") for name in names.split(",")]
        inside = [m.split(".")[-1] for m in MODULES if m.rpartition(".")[0] == module]
        hidden = {*imported} - {*surface.public_names(module), *inside, ""}
        assert not hidden, f"from {module} import {', '.join(sorted(hidden))}"
