"""The public functions that draw programs."""

from __future__ import annotations

from effax.ir.analysis.cost.record import shown_bytes
from effax.ir.errors import BadArgument
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.text.printer import pretty
from effax.show.drawing import draw, picture
from effax.show.heat import HeatBy, shades
from effax.show.layout import place
from effax.show.marks import element, group, label, number, text
from effax.show.matching import changed_counts, compare_programs
from effax.show.memory import Profile, profile
from effax.show.model import DEPTH, Fresh, Runs, model
from effax.show.page import attributes_of, legend, page, resource, section, summary, table
from effax.show.placed import Placed
from effax.show.schedule import Timeline

IN_NOTEBOOKS = 5_000
"""A program of more equations than this is shown as text in a notebook."""

WITH_TEXT = 400
"""The number of equations up to which a notebook shows a program's text below its picture."""


def svg(
    program: Jaxpr | ClosedJaxpr,
    *,
    title: str = "",
    depth: int = DEPTH,
    folded: bool = True,
    heat: HeatBy | None = None,
) -> str:
    """Draw a program as a self-contained SVG document.

    Equations are below their operands; lines are labelled by names and types. A reference is a
    coloured line along which reads, writes and accumulations are marked in program order. A
    subjaxpr is drawn inside its equation, once, at its first occurrence. A program of more than 60
    equations is a list of runs of equations: those of one named scope, function or call of one.

    Args:
        program: the program.
        title: the title of the picture, for screen readers.
        depth: the depth to which subjaxprs are open, 64 at most.
        folded: whether the equations of a long program are drawn in runs, not one by one.
        heat: the cost by which equations are shaded, ``"flops"`` or ``"bytes"``, as
            :func:`effax.cost` counts it; None: they are not.

    Returns:
        The text of the picture; equal programs have equal text.

    Raises:
        BadArgument: ``program`` is not a program, or ``heat`` is unknown.
    """
    jaxpr = as_jaxpr(program)
    placed = place(
        model(
            jaxpr,
            depth,
            runs=Runs.CLOSED if folded else Runs.NONE,
            shades=shades(jaxpr, heat),
        )
    )
    return picture(draw(placed), placed.width, placed.height, title or "a program", summary(jaxpr))


def html(
    program: Jaxpr | ClosedJaxpr,
    *,
    title: str = "A program",
    depth: int = DEPTH,
    heat: HeatBy | None = None,
) -> str:
    """Draw a program as an interactive page: the picture, the timeline, and the text.

    Boxes with subjaxprs fold, and so do runs of equations of a long program; the page opens with as
    many open as the window has room for. Pointing at an equation shows its text, its source line,
    and highlights its operands and results; equations can be searched.

    Args:
        program: the program.
        title: the title of the page.
        depth: the depth to which subjaxprs are open.
        heat: the cost by which equations are shaded, as in :func:`svg`.

    Returns:
        The text of the page, which loads no resources. Source lines are read from their files.

    Raises:
        BadArgument: ``program`` is not a program, or ``heat`` is unknown.
    """
    jaxpr = as_jaxpr(program)
    found = profile(jaxpr)
    placed = place(model(jaxpr, depth, runs=Runs.OPEN, shades=shades(jaxpr, heat)))
    body = draw(placed, attributes_of())
    drawn = picture(body, placed.width, placed.height, title, summary(jaxpr), role="group")
    about = f"{summary(jaxpr)} At most {shown_bytes(found.peak)} live."
    parts = [
        f'<main>\n<div id="program">\n{drawn}\n</div>',
        f'<aside id="about" aria-live="polite">\n{legend()}\n</aside>\n</main>',
        section("In time", f'<div class="wide">\n{_timeline(found)}\n</div>\n{_largest(found)}'),
        section("As text", f"<pre>{text(pretty(jaxpr, effects=True))}</pre>"),
    ]
    return page(title, about, "\n".join(parts), resource("script.js"))


def timeline(program: Jaxpr | ClosedJaxpr) -> str:
    """Draw the accesses to references and the live memory in time, as an SVG document.

    Time is program order, subjaxprs included. An argument is live throughout, a value from its
    equation to its last use. A compiled program needs less memory.

    Args:
        program: the program.

    Raises:
        BadArgument: ``program`` is not a program.
    """
    return _timeline(profile(as_jaxpr(program)))


def compare(
    before: Jaxpr | ClosedJaxpr,
    after: Jaxpr | ClosedJaxpr,
    *,
    titles: tuple[str, str] = ("before", "after"),
    depth: int = DEPTH,
) -> str:
    """Draw two programs side by side, as an SVG document.

    Removed equations have a dashed red frame and a minus, new ones a green frame and a plus.

    Args:
        before: the program on the left.
        after: the program on the right.
        titles: the titles above them.
        depth: the depth to which subjaxprs are open.

    Raises:
        BadArgument: one of them is not a program.
    """
    return _side_by_side(as_jaxpr(before), as_jaxpr(after), titles, depth)[0]


def _side_by_side(
    before: Jaxpr, after: Jaxpr, titles: tuple[str, str], depth: int
) -> tuple[str, float]:
    """Return the picture and its width."""
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
    about = changed_counts(*jaxprs)
    title = f"{titles[0]} and {titles[1]}"
    return picture("\n".join(parts), x - 48, height, title, about), x - 48


def compare_html(
    before: Jaxpr | ClosedJaxpr,
    after: Jaxpr | ClosedJaxpr,
    *,
    titles: tuple[str, str] = ("before", "after"),
    depth: int = DEPTH,
) -> str:
    """Draw two programs side by side, as a page: the picture, a table of sizes, timelines, texts.

    The arguments are as in :func:`compare`.
    """
    jaxprs = as_jaxpr(before), as_jaxpr(after)
    profiles = [profile(jaxpr) for jaxpr in jaxprs]
    marked = compare_programs(*jaxprs)
    rows = [
        ("", *titles),
        ("equations", *[str(len(jaxpr.eqns)) for jaxpr in jaxprs]),
        ("not in the other", str(len(marked.before)), str(len(marked.after))),
        ("live at most", *[shown_bytes(found.peak) for found in profiles]),
        ("references", *[str(len(found.tracks)) for found in profiles]),
        ("effects", *[summary(jaxpr).rpartition("Effects: ")[2].rstrip(".") for jaxpr in jaxprs]),
    ]
    drawn, width = _side_by_side(*jaxprs, titles, depth)
    fitted = f'<div class="wide fit" style="--w:{width:.0f}px">\n{drawn}\n</div>'
    parts = [section("Sizes", table(rows[0], rows[1:])), section("Pictures", fitted)]
    for shown, jaxpr, found in zip(titles, jaxprs, profiles, strict=True):
        body = f'<div class="wide">\n{_timeline(found)}\n</div>'
        body += f"\n<pre>{text(pretty(jaxpr, effects=True))}</pre>"
        parts.append(section(shown, body))
    return page(f"{titles[0]} and {titles[1]}", changed_counts(*jaxprs), "\n".join(parts))


def drawn_with_text(jaxpr: Jaxpr) -> str | None:
    """Draw a program for a notebook, with its text; None if it is too long for a picture."""
    if len(jaxpr.eqns) > IN_NOTEBOOKS:
        return None
    whole = len(jaxpr.eqns) <= WITH_TEXT
    shown = element("pre", text(pretty(jaxpr, effects=True) if whole else "print it for its text"))
    below = f"<details><summary>{text(summary(jaxpr))}</summary>{shown}</details>"
    return f'<div style="overflow:auto">{svg(jaxpr)}</div>{below}'


def as_jaxpr(program: object) -> Jaxpr:
    """Return the jaxpr of a program. Raise BadArgument for other values."""
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


def _timeline(profile: Profile) -> str:
    drawn = Timeline(profile)
    n_steps, n_tracks = len(profile.steps), len(profile.tracks)
    about = f"{n_steps} equations, {n_tracks} references, {shown_bytes(profile.peak)}"
    return picture(drawn.draw(), drawn.width, drawn.height, "references and memory in time", about)


def _largest(profile: Profile) -> str:
    """Return a table of the values that are live at the peak."""
    rows = [(name, shown_bytes(count)) for name, count in profile.largest[:8]]
    return table(("Live at the peak", "bytes"), rows) if rows else ""
