"""Pictures of programs: SVG and HTML that need nothing else, from pure functions.

``svg(program)`` and ``html(program)`` show what a program computes and what it does to references;
``timeline(program)`` when, and how much memory is live; ``compare(before, after)`` what a pass did.
``python -m effax show module:function --args "f32[3]" --to svg`` does it from a shell. Notebooks
show programs as ``in_notebook`` draws them.

What draws is loaded when the first picture is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from effax.ir.syntax import Jaxpr
    from effax.show.pictures import compare, compare_html, html, svg, timeline

__all__ = ["compare", "compare_html", "html", "in_notebook", "svg", "timeline"]


def in_notebook(jaxpr: Jaxpr) -> str | None:
    """What a notebook shows of a program: its picture and its text; None for long programs."""
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
