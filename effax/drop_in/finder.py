"""The import of ``jax`` and its modules, as modules of effax."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from effax.drop_in.modules import MODULES, MissingModule, missing, module_of
from effax.ir.errors import EffaxError


class DropInError(EffaxError, ImportError):
    """JAX is imported already, and its modules cannot be replaced."""


class _Finder(MetaPathFinder, Loader):
    """Finds each module of JAX that effax has, and raises for the others."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_of_jax(fullname):
            return None
        if fullname not in MODULES:
            # An error without `name` is not suppressed by `from jax import name`.
            raise missing(MissingModule, fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return module_of(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return


FINDER: Final = _Finder()


def _is_of_jax(name: str) -> bool:
    return name == "jax" or name.startswith("jax.")


def install() -> None:
    """Import ``jax`` and its modules from effax, in this process, from now on.

    Again, it changes nothing. Modules that have imported effax keep it.

    Raises:
        DropInError: ``jax`` is imported already; no module is replaced.
    """
    if FINDER in sys.meta_path:
        return
    if "jax" in sys.modules:
        raise DropInError(
            "jax is imported already",
            expected="effax.drop_in.install() before the first import of jax",
            found=str(getattr(sys.modules["jax"], "__file__", None)),
            remedy="call it at the top of the program, or restart the notebook's kernel",
        )
    sys.meta_path.insert(0, FINDER)


def uninstall() -> None:
    """Import ``jax`` as without :func:`install`; names that were imported stay those of effax."""
    if FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(FINDER)
    for name in [name for name in sys.modules if _is_of_jax(name)]:
        del sys.modules[name]
