"""The pictures that users ask for, of programs in whatever form they hold them."""

from __future__ import annotations

from effax.ir.errors import BadArgument
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.text.printer import pretty
from effax.show.drawing import draw, picture
from effax.show.layout import Placed, place
from effax.show.marks import element, group, label, number, text
from effax.show.matching import changes_told, compare_programs
from effax.show.memory import Profile, profile, shown_bytes
from effax.show.model import DEPTH, Fresh, model
from effax.show.page import attributes_of, legend, page, resource, section, summary, table
from effax.show.schedule import Timeline

IN_NOTEBOOKS = 400
"""A program of more equations than this is shown as text in a notebook."""


def svg(program: Jaxpr | ClosedJaxpr, *, title: str = "", depth: int = DEPTH) -> str:
    """A program as a picture: an SVG document that needs nothing else.

    Equations stand below what they take; labels on the lines tell names and types. A reference is
    a coloured line along which reads, writes and accumulations are marked in program order. A
    program that an equation holds is drawn inside of it, once, where it comes first.

    Args:
        program: the program.
        title: what the picture is called, for readers that do not see it.
        depth: how many programs in programs are open, 64 at most.

    Returns:
        The text of the picture. Equal programs give equal text.

    Raises:
        BadArgument: ``program`` is no program.
    """
    jaxpr = as_jaxpr(program)
    placed = place(model(jaxpr, depth))
    return picture(draw(placed), placed.width, placed.height, title or "a program", summary(jaxpr))


def html(program: Jaxpr | ClosedJaxpr, *, title: str = "A program", depth: int = DEPTH) -> str:
    """A program as an interactive page: the picture, the timeline, and the text.

    Boxes that hold programs fold; pointing at an equation shows the whole of it, the user's line
    that it came from, and where its operands and results are; equations can be searched.

    Args:
        program: the program.
        title: the title of the page.
        depth: how many programs in programs are open.

    Returns:
        The text of the page, which loads nothing. The user's lines are read from their files.

    Raises:
        BadArgument: ``program`` is no program.
    """
    jaxpr = as_jaxpr(program)
    told = profile(jaxpr)
    placed = place(model(jaxpr, depth))
    body = draw(placed, attributes_of())
    drawn = picture(body, placed.width, placed.height, title, summary(jaxpr), role="group")
    about = f"{summary(jaxpr)} At most {shown_bytes(told.peak)} live."
    parts = [
        f'<main>\n<div id="program">\n{drawn}\n</div>',
        f'<aside id="about" aria-live="polite">\n{legend()}\n</aside>\n</main>',
        section("In time", f'<div class="wide">\n{_timeline(told)}\n</div>\n{_largest(told)}'),
        section("As text", f"<pre>{text(pretty(jaxpr, effects=True))}</pre>"),
    ]
    return page(title, about, "\n".join(parts), resource("script.js"))


def timeline(program: Jaxpr | ClosedJaxpr) -> str:
    """When a program touches its references, and how much memory is live, as an SVG document.

    Time is program order, held programs included. An argument is live throughout, a value from its
    equation to its last use. That is the measure of the program as it is written: compiled, it
    needs less.

    Args:
        program: the program.

    Raises:
        BadArgument: ``program`` is no program.
    """
    return _timeline(profile(as_jaxpr(program)))


def compare(
    before: Jaxpr | ClosedJaxpr,
    after: Jaxpr | ClosedJaxpr,
    *,
    titles: tuple[str, str] = ("before", "after"),
    depth: int = DEPTH,
) -> str:
    """Two programs side by side, as an SVG document.

    What is gone has a dashed red frame and a minus, what is new a green frame and a plus.

    Args:
        before: the program on the left.
        after: the program on the right.
        titles: what stands above them.
        depth: how many programs in programs are open.

    Raises:
        BadArgument: one of them is no program.
    """
    return _side_by_side(as_jaxpr(before), as_jaxpr(after), titles, depth)[0]


def _side_by_side(
    before: Jaxpr, after: Jaxpr, titles: tuple[str, str], depth: int
) -> tuple[str, float]:
    """The picture and its width."""
    jaxprs = before, after
    marked = compare_programs(*jaxprs)
    x, height = 0.0, 0.0
    parts: list[str] = []
    for jaxpr, fresh, shown in zip(jaxprs, marked, titles, strict=True):
        placed = _marked(jaxpr, depth, fresh)
        top = f"{shown} · {len(jaxpr.eqns)} equations, {shown_bytes(profile(jaxpr).peak)}"
        parts.append(label(x, 12, top, "fx-head"))
        parts.append(group([draw(placed)], transform=f"translate({number(x)},34)"))
        x += max(placed.width, 7.3 * len(top)) + 48
        height = max(height, placed.height + 34)
    about = changes_told(*jaxprs)
    title = f"{titles[0]} and {titles[1]}"
    return picture("\n".join(parts), x - 48, height, title, about), x - 48


def compare_html(
    before: Jaxpr | ClosedJaxpr,
    after: Jaxpr | ClosedJaxpr,
    *,
    titles: tuple[str, str] = ("before", "after"),
    depth: int = DEPTH,
) -> str:
    """Two programs side by side, as a page: the picture, a table of sizes, timelines, texts.

    The arguments are those of :func:`compare`.
    """
    jaxprs = as_jaxpr(before), as_jaxpr(after)
    profiles = [profile(jaxpr) for jaxpr in jaxprs]
    marked = compare_programs(*jaxprs)
    rows = [
        ("", *titles),
        ("equations", *[str(len(jaxpr.eqns)) for jaxpr in jaxprs]),
        ("not in the other", str(len(marked.before)), str(len(marked.after))),
        ("live at most", *[shown_bytes(told.peak) for told in profiles]),
        ("references", *[str(len(told.lanes)) for told in profiles]),
        ("effects", *[summary(jaxpr).rpartition("Effects: ")[2].rstrip(".") for jaxpr in jaxprs]),
    ]
    drawn, width = _side_by_side(*jaxprs, titles, depth)
    fitted = f'<div class="wide fit" style="--w:{width:.0f}px">\n{drawn}\n</div>'
    parts = [section("Sizes", table(rows[0], rows[1:])), section("Pictures", fitted)]
    for shown, jaxpr, told in zip(titles, jaxprs, profiles, strict=True):
        body = f'<div class="wide">\n{_timeline(told)}\n</div>'
        body += f"\n<pre>{text(pretty(jaxpr, effects=True))}</pre>"
        parts.append(section(shown, body))
    return page(f"{titles[0]} and {titles[1]}", changes_told(*jaxprs), "\n".join(parts))


def drawn_with_text(jaxpr: Jaxpr) -> str | None:
    """A program as a notebook shows it: picture and text; None where the text alone is better."""
    if len(jaxpr.eqns) > IN_NOTEBOOKS:
        return None
    shown = element("pre", text(pretty(jaxpr, effects=True)))
    below = f"<details><summary>{text(summary(jaxpr))}</summary>{shown}</details>"
    return f'<div style="overflow:auto">{svg(jaxpr)}</div>{below}'


def as_jaxpr(program: object) -> Jaxpr:
    """The program that is meant. Raises BadArgument for what is none."""
    if isinstance(program, ClosedJaxpr):
        return program.jaxpr
    if isinstance(program, Jaxpr):
        return program
    raise BadArgument(
        "only programs can be drawn",
        expected="a jaxpr",
        found=f"{type(program).__name__}: {program!r:.60}",
        remedy="trace a function: `make_jaxpr(f)(x)`",
    )


def _marked(jaxpr: Jaxpr, depth: int, fresh: Fresh) -> Placed:
    return place(model(jaxpr, depth, fresh))


def _timeline(told: Profile) -> str:
    drawn = Timeline(told)
    about = f"{len(told.steps)} equations, {len(told.lanes)} references, {shown_bytes(told.peak)}"
    return picture(drawn.draw(), drawn.width, drawn.height, "references and memory in time", about)


def _largest(told: Profile) -> str:
    """What is live where most is."""
    rows = [(name, shown_bytes(count)) for name, count in told.largest[:8]]
    return table(("Live at the peak", "bytes"), rows) if rows else ""
