"""Pictures of programs: self-contained SVG and HTML, from pure functions.

``svg(program)`` and ``html(program)`` draw the equations and the accesses to references;
``timeline(program)`` the accesses and the live memory in time; ``compare(before, after)`` the
changes of a pass. ``python -m effax show module:function --args "f32[3]" --to svg`` is the command
line. Notebooks show programs by ``in_notebook``.

Modules that draw are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from effax.ir.syntax import Jaxpr
    from effax.show.pictures import compare, compare_html, html, svg, timeline

__all__ = ["compare", "compare_html", "html", "in_notebook", "svg", "timeline"]


def in_notebook(jaxpr: Jaxpr) -> str | None:
    """Return the picture and the text of a program for a notebook; None for long programs."""
    from effax.show.pictures import drawn_with_text

    return drawn_with_text(jaxpr)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from effax.show import pictures

    found: object = getattr(pictures, name)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
