"""Writing XML: elements, numbers and text, each escaped in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Final

CHAR: Final = 7.3
"""The width of a character of the pictures' font, which is monospaced, at 12 px."""

SMALL: Final = 6.4
"""The width of a character at 10.5 px, the size of labels."""

# What XML 1.0 does not allow, not even escaped.
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(value: str) -> str:
    """Return a string as text or as an attribute's value, whatever is in it."""
    return escape(_FORBIDDEN.sub("\ufffd", value), quote=True)


def number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    shown = f"{value:.1f}"
    return shown.removesuffix(".0")


def element(name: str, body: str = "", /, **attributes: float | str | None) -> str:
    """Return an element. ``body`` is XML; ``_`` in names becomes ``-``; None is omitted."""
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            shown = text(value) if isinstance(value, str) else number(value)
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{shown}"')
    start = " ".join(parts)
    return f"<{start}>{body}</{name}>" if body else f"<{start}/>"


def group(children: Iterable[str], /, **attributes: float | str | None) -> str:
    """Return a group of elements, one a line."""
    return element("g", "\n".join(children), **attributes)


def label(
    x: float, y: float, shown: str, class_: str, anchor: str | None = None, **more: str | None
) -> str:
    """Return a line of text at a position."""
    return element("text", text(shown), x=x, y=y, class_=class_, text_anchor=anchor, **more)


def path(points: Iterable[str], /, **attributes: float | str | None) -> str:
    """Return a path of segments, each made by :func:`line` or :func:`curve`."""
    return element("path", d=" ".join(points), **attributes)


def line(*points: tuple[float, float]) -> str:
    """Return a segment of straight lines through the points."""
    first, *rest = points
    return f"M{_pair(first)}" + "".join(f"L{_pair(p)}" for p in rest)


def curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return a segment that leaves and arrives vertically."""
    middle = (start[1] + end[1]) / 2
    controls = " ".join(map(_pair, [(start[0], middle), (end[0], middle), end]))
    return f"M{_pair(start)}C{controls}"


def _pair(point: tuple[float, float]) -> str:
    return f"{number(point[0])} {number(point[1])}"


def shortened(value: str, width: int) -> str:
    """At most ``width`` characters, the last of which says that some are missing."""
    return value if len(value) <= width else f"{value[: width - 1]}…"
