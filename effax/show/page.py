"""Self-contained HTML pages: pictures, details of each equation, and the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from linecache import getline
from typing import Final

from effax.api.signature import named_effects
from effax.ir.analysis.cost.record import shown_bytes
from effax.ir.analysis.queries import size
from effax.ir.state import cached
from effax.ir.syntax import Jaxpr
from effax.ir.work import bytes_of
from effax.show.boxes import counted
from effax.show.marks import element, text
from effax.show.model import SIGNS
from effax.show.placed import PlacedBox

ReadLine = Callable[[str, int], str]
"""A function that returns a line of a file, or an empty string."""

MEANINGS: Final = {
    "read": "the contents are read",
    "write": "contents are replaced",
    "accum": "a value is added",
    "alloc": "the reference is allocated",
    "free": "the reference is consumed",
    "io": "input or output",
}


@cached(maxsize=None)
def resource(name: str) -> str:
    """Return a file of this package."""
    from importlib.resources import files

    return files("effax.show").joinpath(name).read_text(encoding="utf-8")


def page(title: str, about: str, body: str, script: str = "") -> str:
    """Return a page that loads no resources."""
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{text(title)}</title>",
        f"<style>\n{resource('page.css')}</style>",
    ]
    tools = TOOLS if script else ""
    top = f"<header>\n<h1>{text(title)}</h1>\n<p>{text(about)}</p>\n{tools}</header>"
    tail = f"\n<script>\n{script}</script>" if script else ""
    return (
        "\n".join(
            ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", top, body]
        )
        + f"{tail}\n</body>\n</html>\n"
    )


TOOLS: Final = """<nav aria-label="View">
<button type="button" id="fold">Fold all</button>
<button type="button" id="open">Open all</button>
<button type="button" id="farther" aria-label="Smaller">−</button>
<button type="button" id="closer" aria-label="Larger">+</button>
<button type="button" id="fit">Fit width</button>
<input id="find" type="search" size="30"
 placeholder="Find: primitive, variable, name, file" aria-label="Find">
<span id="found" role="status"></span>
</nav>
"""


def section(title: str, body: str) -> str:
    """Return a part of a page below the picture."""
    return f"<section>\n<h2>{text(title)}</h2>\n{body}\n</section>"


def legend() -> str:
    """Return the legend, which is shown until an equation is selected."""
    signs = "".join(
        f"<dt>{SIGNS.get(word, word)}</dt><dd>{text(meaning)}</dd>"
        for word, meaning in MEANINGS.items()
    )
    return (
        "<h2>Reading the picture</h2>\n<p>Values flow down along the lines; each is labelled with "
        "its name and type at its equation. A value that is used far below is named again there. "
        "Each coloured line is a reference, accessed in program order:</p>\n"
        f"<dl>{signs}<dt>↻</dt><dd>carry of a loop</dd></dl>\n"
        "<p>Point at an equation, or move to it with Tab, to see its details. A click selects it; "
        "a click on the title of a box with a subjaxpr folds it.</p>"
    )


def attributes_of(read: ReadLine = getline) -> Callable[[PlacedBox], dict[str, str]]:
    """Return a function to the attributes of a box for a page; ``read`` returns source lines."""

    def attributes(placed: PlacedBox) -> dict[str, str]:
        box = placed.box
        made = {"tabindex": "0", "role": "group"}
        if placed.frames:
            made |= {"role": "button", "aria-expanded": "true"}
        if box.source is not None:
            made["data-c"] = read(box.source.file, box.source.line).strip()
        made["data-e"] = box.effects
        made["data-n"] = box.named
        if box.outs:
            made["data-b"] = shown_bytes(sum([bytes_of(v.type) for v in box.outs]))
        return {name: value for name, value in made.items() if value}

    return attributes


def summary(jaxpr: Jaxpr) -> str:
    """Summarize a program: ``2 equations, 30 with those of subjaxprs. Effects: write a``."""
    inside = size(jaxpr)
    counts = counted(len(jaxpr.eqns), "equation")
    if inside != len(jaxpr.eqns):
        counts += f", {inside} with those of subjaxprs"
    return f"{counts}. Effects: {', '.join(named_effects(jaxpr).texts()) or 'none'}."


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of text."""
    top = "".join(element("th", text(h), scope="col") for h in head)
    body = "".join(
        f"<tr>{''.join(element('td', text(cell) or '&#160;') for cell in cells)}</tr>\n"
        for cells in lines
    )
    return f"<table><thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody></table>"
