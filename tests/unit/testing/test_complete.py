"""The lists of ``effax.testing`` are complete."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from effax.testing import laws
from effax.testing.laws import Law


def test_every_law_is_in_laws() -> None:
    modules = [import_module(f"{laws.__name__}.{m.name}") for m in iter_modules(laws.__path__)]
    defined = {
        name
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Law) and value.check.__module__ == module.__name__
    }
    assert defined == {law.name for law in laws.LAWS}
