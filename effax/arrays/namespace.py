"""The list of names of a public namespace, derived from its imports."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType


def public_names(namespace: Mapping[str, object], *modules: str) -> list[str]:
    """Return the sorted public names of a package's namespace.

    Args:
        namespace: the globals of the package, which imports from its modules by ``*``.
        modules: its public modules; other modules are left out.
    """
    names = (
        name
        for name, value in namespace.items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    )
    return sorted({*names, *modules})
