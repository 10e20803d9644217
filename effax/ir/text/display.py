"""The printing functions behind ``str``, registered by the printer, which imports the syntax."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from effax.ir.syntax import ClosedJaxpr, Eqn, Jaxpr


class _Display:
    """The printing functions, set once when the package is imported."""

    jaxpr: Callable[[Jaxpr], str]
    closed: Callable[[ClosedJaxpr], str]
    eqn: Callable[[Eqn], str]


DISPLAY: Final = _Display()
