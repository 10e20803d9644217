"""The hook of ``_repr_html_``, by which notebooks draw programs; the front door sets it.

A notebook shows the text of a value whose ``_repr_html_`` returns None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from effax.ir.syntax import Jaxpr

Draw = Callable[["Jaxpr"], str | None]
"""Returns the HTML of a program, or None for its text."""


class _Hook:
    """The drawing function; None if only the core is used."""

    __slots__ = ("draw",)

    def __init__(self) -> None:
        self.draw: Draw | None = None


_hook = _Hook()


def draw_with(draw: Draw | None) -> None:
    """Set the function that draws programs in notebooks; None: show their text."""
    _hook.draw = draw


def drawn(jaxpr: Jaxpr) -> str | None:
    """Return the HTML of a program, or None for its text."""
    return None if _hook.draw is None else _hook.draw(jaxpr)
