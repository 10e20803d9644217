"""What notebooks show of a program. How programs are drawn is not known here: the front door tells.

A notebook asks a value for ``_repr_html_``, and shows its text where that gives None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from effax.ir.syntax import Jaxpr

Draw = Callable[["Jaxpr"], str | None]
"""Gives the HTML of a program, or None for its text alone."""


class _Hook:
    """Who draws; nobody, where only the core is used."""

    __slots__ = ("draw",)

    def __init__(self) -> None:
        self.draw: Draw | None = None


_hook = _Hook()


def draw_with(draw: Draw | None) -> None:
    """From now on notebooks show programs as ``draw`` does; as text where it is None."""
    _hook.draw = draw


def drawn(jaxpr: Jaxpr) -> str | None:
    """What a notebook shows of a program, or None for its text."""
    return None if _hook.draw is None else _hook.draw(jaxpr)
