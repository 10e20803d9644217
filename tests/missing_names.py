"""The page of what effax has and lacks: names, arguments, attributes and settings of JAX.

``python -m tests.missing_names`` writes docs/missing-names.md, where jax is installed.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Final

from effax.drop_in.modules import MODULES, module_of

PAGE: Final = Path(__file__).parents[1] / "docs" / "missing-names.md"
COMMAND: Final = "python -m tests.missing_names"

NOT_PUBLIC: Final = ("jax.tools", "jax.collect_profile", "jax.experimental.mosaic", "jax.jaxlib")
"""Parts of JAX's package that are programs, or internals of others."""

INSTEAD: Final[Mapping[str, str]] = {
    "jax.experimental.array_serialization": "`effax.checkpoint`",
    "jax.experimental.buffer_callback": "`jax.pure_callback`, which copies to the host",
    "jax.experimental.colocated_python": "`jax.pure_callback`",
    "jax.experimental.compute_on": "nothing: a program runs on one platform",
    "jax.experimental.custom_partitioning": "`jax.shard_map`, which states a partition",
    "jax.experimental.fused": "nothing: XLA chooses fusions",
    "jax.experimental.hijax": "a [primitive](primitives.md), with its typing and rules",
    "jax.experimental.jax2tf": "`effax.export`, or `effax.lowering.lower`: a StableHLO module",
    "jax.experimental.key_reuse": "nothing: keys may be used again",
    "jax.experimental.layout": "nothing: XLA chooses layouts",
    "jax.experimental.overlap": "nothing: XLA schedules collectives",
    "jax.experimental.pallas": "a [primitive](primitives.md), with its lowering to StableHLO",
    "jax.experimental.profiler": "`jax.profiler`",
    "jax.experimental.random": "`jax.random`, with the key in a reference",
    "jax.experimental.rnn": "`jax.lax.scan`",
    "jax.experimental.roofline": "`jax.jit(f).lower(x).cost_analysis()`",
    "jax.experimental.scheduling_groups": "nothing: XLA schedules operations",
    "jax.experimental.serialize_executable": "`effax.export`",
    "jax.experimental.source_mapper": "`effax.show`",
    "jax.experimental.thunky": "nothing",
    "jax.experimental.topologies": "nothing: programs are compiled for the devices of the process",
    "jax.experimental.transfer": "collectives in `jax.shard_map`",
    "jax.experimental.xla_metadata": "nothing: XLA gets no attributes of operations",
    "jax.experimental": "the [guide](index.md)",
    "jax.extend.mlir": "`effax.lowering`",
    "jax.extend": "[primitives](primitives.md), [programs](programs.md) and [passes](passes.md)",
    "jax.ffi": "`jax.pure_callback`, or a [lowering](xla.md)",
    "jax.image": "indexing and `jax.lax.conv_general_dilated`",
    "jax.interpreters": "[primitives](primitives.md) and [passes](passes.md)",
    "jax.scipy": "NumPy on `jax.device_get(x)`, or `jax.pure_callback`",
    "jax.sharding": "`jax.sharding.NamedSharding` and `jax.shard_map`",
    "jax.numpy": "NumPy on `numpy.asarray(x)`, or `jax.pure_callback`",
    "jax.lax": "functions of `jax.numpy`, or a [primitive](primitives.md)",
    "jax.random": "functions of `jax.random.uniform`",
    "jax.nn": "functions of `jax.numpy`",
    "jax.debug": "`jax.debug.callback` with the array, and `x.sharding`",
    "jax.errors": "the classes of `effax.errors`",
    "jax": "the [reference](api/index.md)",
}
"""The replacement of each name: other names, or a module that contains them."""

CLASSES: Final = (
    "Array",
    "ShapeDtypeStruct",
    "ref.Ref",
    "stages.Compiled",
    "stages.Lowered",
    "stages.Traced",
    "tree_util.PyTreeDef",
    "sharding.Mesh",
    "sharding.NamedSharding",
    "core.Tracer",
    "core.ShapedArray",
    "export.Exported",
    "custom_jvp",
    "custom_vjp",
)
"""Classes whose attributes are compared, by their names in ``jax``."""


def jax_modules() -> list[str]:
    """Return the public modules of the installed JAX."""
    import jax

    found = ["jax"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in walk_packages(jax.__path__, "jax."):
            name = module.name
            if "._" not in name and name.count(".") < 3 and not name.startswith(NOT_PUBLIC):
                found.append(name)
    return sorted(found)


def names_in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public names of a module of JAX that are its own."""
    for name in sorted({*getattr(module, "__all__", ()), *dir(module)}):
        if name.startswith("_"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(module, name, None)
        if (
            isinstance(value, ModuleType)
            or value is None
            or name in ("annotations", "TYPE_CHECKING")
        ):
            continue
        home = str(getattr(value, "__module__", None) or "")
        imported = module.__name__.startswith("jax.example_libraries") and home != module.__name__
        if not imported and (not home or home.startswith(("jax", "numpy"))):
            yield name, value


def loaded(name: str) -> ModuleType | None:
    """Return a module of JAX; None if it needs what is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module(name)
        except ImportError:
            return None


def instead(name: str) -> str:
    """Return what to use instead of a name."""
    while name not in INSTEAD:
        name = name.rpartition(".")[0]
    return INSTEAD[name]


def parameters(value: object) -> set[str] | None:
    """Return the parameters that a call can name; None where a function takes any name."""
    try:
        found = inspect.signature(value).parameters.values()  # type: ignore[arg-type]  # it raises
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in found):
        return None
    return {p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY)}


def page() -> str:
    """Return the text of the page."""
    absent: list[str] = []
    names: dict[str, list[str]] = {}
    arguments: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for full in jax_modules():
        module = loaded(full)
        if module is None:
            continue
        if full not in MODULES:
            absent.append(full)
            continue
        own = module_of(full)
        for name, value in names_in(module):
            counts[full] = counts.get(full, 0) + 1
            if not hasattr(own, name):
                names.setdefault(full, []).append(name)
                continue
            theirs, ours = parameters(value), parameters(getattr(own, name))
            if isinstance(value, type) or theirs is None or ours is None:
                continue
            lacking = sorted([n for n in theirs - ours if not n.startswith("_")])
            if lacking:
                arguments[f"{full}.{name}"] = lacking
    had = {full: (n - len(names.get(full, ())), n) for full, n in counts.items()}
    return _written(absent, had, names, arguments, attributes(), settings())


def attributes() -> dict[str, list[str]]:
    """Return the public attributes of JAX's classes that those of effax lack."""
    found: dict[str, list[str]] = {}
    for path in CLASSES:
        module, _, name = f"jax.{path}".rpartition(".")
        theirs = getattr(import_module(module), name, None)
        ours = getattr(module_of(module), name, None)
        if theirs is None or ours is None:
            continue
        # The classes of effax's arrays are behind an abstract one.
        have = {*dir(ours), *[n for c in _subclasses(ours) for n in dir(c)], *_set_in(ours)}
        lacking = [n for n in dir(theirs) if not n.startswith("_") and n not in have]
        if lacking:
            found[f"jax.{path}"] = lacking
    return found


def _subclasses(cls: Any) -> Iterator[type]:
    for inner in getattr(cls, "__subclasses__", list)() if isinstance(cls, type) else ():
        yield inner
        yield from _subclasses(inner)


def _set_in(cls: Any) -> set[str]:
    """Return the attributes that the source of a class sets on instances."""
    try:
        return set(re.findall(r"self\.(\w+)\b[^=\n]*=", inspect.getsource(cls)))
    except (OSError, TypeError):
        return set()


def settings() -> list[str]:
    """Return the settings of JAX that effax's ``config`` does not have."""
    import jax

    import effax

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(name for name in jax.config.values if not hasattr(effax.config, name))


def _written(
    absent: list[str],
    had: Mapping[str, tuple[int, int]],
    names: Mapping[str, list[str]],
    arguments: Mapping[str, list[str]],
    members: Mapping[str, list[str]],
    unknown: list[str],
) -> str:
    import jax

    lines = [
        "# Names that effax lacks",
        "",
        f"The public names, arguments, attributes and settings of jax {jax.__version__} that effax",
        "lacks, for programs that [import JAX](drop-in.md), with what to use instead.",
        f"`{COMMAND}` writes this page where jax is installed.",
        "",
        "## Modules",
        "",
        "| module | instead |",
        "|---|---|",
        *[f"| `{name}` | {instead(name)} |" for name in absent],
        "",
        "## Namespaces",
        "",
        "The public names of each module of JAX that effax has, and their number.",
        "",
        "| module | effax has | of |",
        "|---|---|---|",
        *[f"| `{name}` | {ours} | {all_} |" for name, (ours, all_) in sorted(had.items())],
        "",
        "## Names",
        "",
    ]
    for module, found in names.items():
        general = instead(module)
        own = [name for name in found if f"{module}.{name}" in INSTEAD]
        shown = ", ".join(f"`{name}`" for name in found if name not in own)
        lines += [f"### {module}", ""]
        lines += [shown, "", f"Instead: {general}.", ""] if shown else []
        lines += [f"- `{name}`: {INSTEAD[f'{module}.{name}']}" for name in own] + [""] * bool(own)
    lines += ["## Arguments", "", "They are refused.", "", "| function | arguments |", "|---|---|"]
    lines += [f"| `{name}` | {_codes(found)} |" for name, found in sorted(arguments.items())]
    lines += ["", "## Attributes", "", "| class | attributes |", "|---|---|"]
    lines += [f"| `{name}` | {_codes(found)} |" for name, found in members.items()]
    lines += ["", "## Settings", ""]
    lines += [_codes(unknown) if unknown else "`effax.config` accepts all settings."]
    return "\n".join(lines) + "\n"


def _codes(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
