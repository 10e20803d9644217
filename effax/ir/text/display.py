"""The text of programs for ``str``: the printer, which imports the syntax, registers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from effax.ir.syntax import Eqn, Jaxpr


class _Display:
    """The functions that print, set once when the package is imported."""

    jaxpr: Callable[[Jaxpr], str]
    eqn: Callable[[Eqn], str]


DISPLAY: Final = _Display()
