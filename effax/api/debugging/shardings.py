"""Drawings of the placement of arrays over devices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from effax.arrays.argument_checks import integers
from effax.arrays.array import Array
from effax.arrays.sharding import Sharding
from effax.ir.errors import BadArgument
from effax.ir.types import Shape

_COLORS: Final = (153, 216, 157, 223, 183, 152, 229, 189)
"""Light colours of the terminal, one a part, in turn."""


def inspect_array_sharding(value: Array, *, callback: Callable[[Sharding], object]) -> None:
    """Call a function with the sharding of an array; of a symbol, that of the first device.

    >>> effax.debug.inspect_array_sharding(jnp.ones(2), callback=lambda s: print(s.num_devices))
    1
    """
    callback(value.sharding)


def visualize_array_sharding(
    arr: Array, *, use_color: bool = True, scale: float = 1.0, min_width: int = 9
) -> None:
    """Print which device has which part of an array of one or two axes.

    Args:
        arr: the array.
        use_color: whether parts have different colours.
        scale: a factor of the width of parts.
        min_width: the least number of characters of a part.

    Raises BadArgument for an array of another number of axes.

    >>> effax.debug.visualize_array_sharding(jnp.ones(4), use_color=False)
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    visualize_sharding(
        arr.shape, arr.sharding, use_color=use_color, scale=scale, min_width=min_width
    )


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
) -> None:
    """Print which device has which part of an array of this shape.

    Args:
        shape: the shape.
        sharding: the sharding.
        use_color: whether parts have different colours.
        scale: a factor of the width of parts.
        min_width: the least number of characters of a part.

    Raises BadArgument for a shape of another number of axes than one or two.
    """
    sizes = integers(shape, "visualize_sharding: shape")
    if len(sizes) not in (1, 2):
        raise BadArgument(
            "only arrays of one or two axes are drawn",
            expected="a shape of one or two sizes",
            found=str(sizes),
            remedy="draw a part: `x[0]`",
        )
    rows = _cells(sizes, sharding)
    if "IPython" in sys.modules and _in_notebook():
        _show_html(_as_html(rows, use_color))
        return
    width = max(int(min_width * scale), *[len(cell) + 2 for row in rows for cell in row])
    sys.stdout.write(_as_text(rows, width, use_color and sys.stdout.isatty()))


def _cells(shape: Shape, sharding: Sharding) -> list[list[str]]:
    """Return the names of the devices of each part, by rows."""
    having: dict[tuple[int, ...], list[int]] = {}
    platform = ""
    for device, index in sharding.devices_indices_map(shape).items():
        at = tuple([s.start or 0 for s in index])
        having.setdefault(at if len(at) == 2 else (0, *at), []).append(device.id)
        platform = device.platform.upper()
    tops, lefts = (sorted({at[i] for at in having}) for i in (0, 1))

    def name(at: tuple[int, int]) -> str:
        return f"{platform} {','.join(map(str, sorted(having[at])))}"

    return [[name((top, left)) for left in lefts] for top in tops]


def _as_text(rows: Sequence[Sequence[str]], width: int, color: bool) -> str:
    n = len(rows[0])

    def line(left: str, middle: str, right: str) -> str:
        return f"{left}{middle.join(['─' * width] * n)}{right}\n"

    def cell(i: int, text: str) -> str:
        shown = text.center(width)
        return f"\x1b[30;48;5;{_COLORS[i % len(_COLORS)]}m{shown}\x1b[0m" if color else shown

    shown = [
        f"│{'│'.join([cell(r * n + c, text) for c, text in enumerate(row)])}│\n"
        for r, row in enumerate(rows)
    ]
    between = line("├", "┼", "┤")
    return line("┌", "┬", "┐") + between.join(shown) + line("└", "┴", "┘")


def _as_html(rows: Sequence[Sequence[str]], color: bool) -> str:
    n = len(rows[0])

    def cell(i: int, text: str) -> str:
        hue = f"background:hsl({i * 47 % 360},60%,80%);" if color else ""
        style = f"border:1px solid;padding:1em;text-align:center;color:black;{hue}"
        return f'<td style="{style}">{escape(text)}</td>'

    cells = [[cell(r * n + c, text) for c, text in enumerate(row)] for r, row in enumerate(rows)]
    return f"<table>{''.join([f'<tr>{chr(10).join(row)}</tr>' for row in cells])}</table>"


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _show_html(text: str) -> None:
    display = sys.modules["IPython"].display
    display.display(display.HTML(text))
