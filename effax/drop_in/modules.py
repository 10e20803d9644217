"""Modules of JAX as modules of effax: their names, and errors for those that effax lacks."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Final, TypeVar

from effax.drop_in.sources import SOURCES
from effax.ir.errors import EffaxError

VERSION: Final = "0.12.0"
"""The version of JAX whose names and meanings effax follows."""

PUBLIC: Final = (
    "jax",
    "jax.ad_checkpoint",
    "jax.checkpoint_policies",
    "jax.core",
    "jax.custom_batching",
    "jax.custom_derivatives",
    "jax.debug",
    "jax.distributed",
    "jax.dlpack",
    "jax.dtypes",
    "jax.errors",
    "jax.example_libraries",
    "jax.example_libraries.optimizers",
    "jax.example_libraries.stax",
    "jax.experimental",
    "jax.experimental.checkify",
    "jax.experimental.compilation_cache",
    "jax.experimental.compilation_cache.compilation_cache",
    "jax.experimental.jet",
    "jax.experimental.mesh_utils",
    "jax.experimental.multihost_utils",
    "jax.experimental.ode",
    "jax.experimental.pjit",
    "jax.experimental.serialize_executable",
    "jax.experimental.shard_map",
    "jax.experimental.sparse",
    "jax.export",
    "jax.flatten_util",
    "jax.image",
    "jax.lax",
    "jax.lax.linalg",
    "jax.monitoring",
    "jax.nn",
    "jax.nn.initializers",
    "jax.numpy",
    "jax.numpy.fft",
    "jax.numpy.linalg",
    "jax.ops",
    "jax.profiler",
    "jax.random",
    "jax.ref",
    "jax.scipy",
    "jax.scipy.cluster",
    "jax.scipy.cluster.vq",
    "jax.scipy.fft",
    "jax.scipy.integrate",
    "jax.scipy.interpolate",
    "jax.scipy.linalg",
    "jax.scipy.ndimage",
    "jax.scipy.optimize",
    "jax.scipy.signal",
    "jax.scipy.sparse",
    "jax.scipy.sparse.linalg",
    "jax.scipy.spatial",
    "jax.scipy.spatial.transform",
    "jax.scipy.special",
    "jax.scipy.stats",
    "jax.scipy.stats.bernoulli",
    "jax.scipy.stats.beta",
    "jax.scipy.stats.betabinom",
    "jax.scipy.stats.binom",
    "jax.scipy.stats.cauchy",
    "jax.scipy.stats.chi2",
    "jax.scipy.stats.dirichlet",
    "jax.scipy.stats.expon",
    "jax.scipy.stats.gamma",
    "jax.scipy.stats.gennorm",
    "jax.scipy.stats.geom",
    "jax.scipy.stats.gumbel_l",
    "jax.scipy.stats.gumbel_r",
    "jax.scipy.stats.laplace",
    "jax.scipy.stats.logistic",
    "jax.scipy.stats.multinomial",
    "jax.scipy.stats.multivariate_normal",
    "jax.scipy.stats.nbinom",
    "jax.scipy.stats.norm",
    "jax.scipy.stats.pareto",
    "jax.scipy.stats.poisson",
    "jax.scipy.stats.t",
    "jax.scipy.stats.truncnorm",
    "jax.scipy.stats.uniform",
    "jax.scipy.stats.vonmises",
    "jax.scipy.stats.wrapcauchy",
    "jax.sharding",
    "jax.stages",
    "jax.test_util",
    "jax.tree",
    "jax.tree_util",
    "jax.typing",
    "jax.version",
)
"""The modules of JAX that effax has, each under the same name."""

MODULES: Final = tuple(dict.fromkeys([*PUBLIC, *SOURCES]))
"""The modules that programs may import."""

_VERSIONS: Final[Mapping[str, object]] = {
    "__version__": VERSION,
    "__version_info__": tuple(map(int, VERSION.split("."))),
}

OWN: Final[Mapping[str, Mapping[str, object]]] = {
    "jax": _VERSIONS,
    "jax.version": _VERSIONS,
    "jax.lib": {"__version__": version("jaxlib")},
}
"""Names whose values are JAX's, by module."""

REMEDY: Final = (
    "use another name; docs/drop-in.md lists what runs; "
    "report in an issue of effax which program needs it"
)


class MissingAttribute(EffaxError, AttributeError):
    """A program uses a name of JAX that effax lacks."""


class MissingModule(EffaxError, ModuleNotFoundError):
    """A program imports a module, or a name of a module, of JAX that effax lacks."""


Missing = TypeVar("Missing", MissingAttribute, MissingModule)


class DropInModule(ModuleType):
    """A module of JAX, whose names are those that the module of effax lists."""

    def __init__(self, name: str) -> None:
        sources = sources_of(name)
        super().__init__(name, sources[0][0].__doc__ if sources else None)
        for target, names in reversed(sources):
            self.__dict__.update({x: getattr(target, x) for x in names})
        self.__dict__.update(OWN.get(name, {}))
        self.__all__ = [x for x in names_of(name) if not x.startswith("_")]

    def __getattr__(self, name: str) -> object:
        full = f"{self.__name__}.{name}"
        if full not in MODULES:
            raise missing(MissingAttribute, full)
        return module_of(full)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.__all__})


def module_of(name: str) -> DropInModule:
    """Return the one module of a name in the process, imported or not."""
    found = _modules.get(name)
    return _modules.setdefault(name, DropInModule(name)) if found is None else found


_modules: Final[dict[str, DropInModule]] = {}


def effax_name(name: str) -> str:
    """Return the name of the module of effax behind a module of JAX."""
    return f"effax{name.removeprefix('jax')}"


def sources_of(name: str) -> list[tuple[ModuleType, list[str]]]:
    """Return the modules of effax behind a module of JAX, with the names that it has of each."""
    found = []
    for source in SOURCES.get(name, (effax_name(name).removeprefix("effax").removeprefix("."),)):
        module, _, names = source.partition(":")
        target = import_module(f"effax.{module}" if module else "effax")
        found.append((target, names.split() or public_names(target)))
    return found


def public_names(target: ModuleType) -> list[str]:
    """Return the names that a module of effax lists, without modules."""
    names: list[str] = target.__all__
    return [name for name in names if not isinstance(getattr(target, name), ModuleType)]


def names_of(module: str) -> list[str]:
    """Return the names of a module of JAX that effax has, its modules included."""
    inner = [m.rpartition(".")[2] for m in MODULES if m.rpartition(".")[0] == module]
    own = [name for _, names in sources_of(module) for name in names]
    return list(dict.fromkeys([*own, *inner, *OWN.get(module, {})]))


def missing(kind: type[Missing], full: str) -> Missing:
    """Return the error for the use of a name that effax lacks."""
    module, _, name = full.rpartition(".")
    near = ", ".join(_near(module, name))
    return kind(f"effax lacks {full}", f"a name such as {near}" if near else None, remedy=REMEDY)


def _near(module: str, name: str) -> list[str]:
    """Return names near a missing one: the same name elsewhere, else similar ones of the module."""
    same = [f"{other}.{name}" for other in MODULES if name in names_of(other)]
    if same or module not in MODULES:
        return same[:3]
    return [f"{module}.{x}" for x in get_close_matches(name, names_of(module))]
