"""The printing functions behind ``str``, registered by the printer, which imports the syntax."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from effax.ir.syntax import ClosedJaxpr, Eqn, Jaxpr


class _Display:
    """The printing functions, which the printer sets."""

    jaxpr: Callable[[Jaxpr], str]
    closed: Callable[[ClosedJaxpr], str]
    eqn: Callable[[Eqn], str]

    def __getattr__(self, name: str) -> object:
        """Return a function that is not set yet, by loading the module that sets it."""
        import_module("effax.ir.text.printer")
        return object.__getattribute__(self, name)


DISPLAY: Final = _Display()
