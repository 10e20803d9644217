"""Draw a layout as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from effax.ir.source import SavedSource, Source
from effax.show.boxes import Box
from effax.show.heat import HEAT, HEATS
from effax.show.marks import CHAR, curve, element, group, label, line, number, path, text
from effax.show.model import sign_of
from effax.show.placed import LINE, NAME, Placed, PlacedBox, PlacedRail, Port
from effax.show.style import STYLE

MARGIN: Final = 16.0

Extra = Callable[[PlacedBox], dict[str, str]]
"""Further attributes of a box, for pages that show more about it than a picture can."""


def nothing_more(_: PlacedBox) -> dict[str, str]:
    """Return no further attributes."""
    return {}


def picture(
    body: str, width: float, height: float, title: str, about: str, role: str = "img"
) -> str:
    """Return an SVG document of a drawing, with a title and a description for screen readers.

    ``role`` is ``group`` if parts of the drawing can be focused.
    """
    w, h = width + 2 * MARGIN, height + 2 * MARGIN
    parts = [
        element("title", text(title)),
        element("desc", text(about)),
        element("style", STYLE),
        element("rect", class_="fx-bg", width=w, height=h),
        element("g", body, transform=_moved(MARGIN, MARGIN)),
    ]
    return element(
        "svg",
        "\n".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        class_="fx",
        width=w,
        height=h,
        viewBox=f"0 0 {number(w)} {number(h)}",
        role=role,
        aria_label=title,
    )


def draw(placed: Placed, extra: Extra = nothing_more) -> str:
    """Return the elements of a program: wires, rails, boxes, labels, taps, from back to front."""
    hues = {r.rail.key: r.rail.hue for r in placed.rails}
    parts: list[str] = []
    for wire in placed.wires:
        segments = [line(*points) for points in wire.straight]
        segments += [curve(*points) for points in wire.bent]
        if segments:
            parts.append(path(segments, class_="fx-w", data_v=str(wire.var)))
    parts += [_tap_line(box) for box in placed.boxes if box.taps]
    parts += [part for rail in placed.rails for part in _rail(rail)]
    parts += [_box(box, extra) for box in placed.boxes]
    for box in placed.boxes:
        parts += _labels(box)
        parts += [badge(x, box.y + LINE / 2, t.words, hues[t.rail]) for x, t in box.taps]
    listed = None if placed.least is None else number(placed.least)
    return group(parts, class_="fx-p", data_h=placed.height, data_w=placed.width, data_m=listed)


def _moved(x: float, y: float) -> str:
    return f"translate({number(x)},{number(y)})"


def _box(placed: PlacedBox, extra: Extra) -> str:
    """Return one box as a translated group, with its corner at (0, 0)."""
    box = placed.box
    parts = [
        element("title", text(tooltip(placed))),
        element(
            "rect",
            width=placed.width,
            height=placed.height,
            rx=LINE / 2 if box.kind in ("in", "out") else 4.0,
            style=_shade(placed),
        ),
    ]
    middle = placed.width / 2
    if placed.frames:
        parts += _head(box, 26, "▾")
        parts.append(group(_frames(placed, extra), class_="fx-body"))
    elif box.kind == "run":
        parts += _head(box, 10)
    else:
        parts.append(label(middle, 15, box.text, "fx-t", "middle"))
        if box.detail:
            parts.append(label(middle, 28, box.detail, "fx-d", "middle"))
    if box.fresh:
        sign = "−" if box.fresh == "gone" else "+"
        parts.append(label(-12, 16, sign, "fx-sign"))
    kind = "frame" if placed.frames or box.kind == "run" else box.tone
    kind = box.kind if box.kind in ("in", "out") else kind
    classes = f"fx-e fx-{kind}" + (f" fx-{box.fresh}" if box.fresh else "")
    more: dict[str, str] = extra(placed)
    if box.ins:
        more["data-i"] = " ".join(map(str, box.ins))
    if box.outs:
        more["data-o"] = " ".join([str(v.id) for v in box.outs])
    if placed.frames:
        more |= {"data-y": f"{number(placed.y)} {number(placed.folds)}"}
        if placed.closed is not None:
            more |= {"data-w": number(placed.closed)}
    attributes = "".join(f' {k}="{text(v)}"' for k, v in more.items())
    where = _moved(placed.x, placed.y)
    return f'<g class="{classes}" transform="{where}"{attributes}>' + "".join(parts) + "</g>"


def _shade(placed: PlacedBox) -> str | None:
    """Return the style of a shaded box; of one with frames, whose shades show, the stroke."""
    if not placed.box.heat:
        return None
    if placed.frames:
        return f"stroke:{HEAT}"
    return f"fill:{HEAT};fill-opacity:{HEATS[placed.box.heat - 1]}"


def _head(box: Box, x: float, sign: str = "") -> Iterator[str]:
    """Yield the text of a box with a frame, from ``x`` on, behind its sign."""
    if sign:
        yield label(10, 15, sign, "fx-fold")
    yield label(x, 15, box.text, "fx-head")
    yield label(x + 10 + len(box.text) * CHAR, 15, box.detail, "fx-d")


def _frames(placed: PlacedBox, extra: Extra) -> Iterator[str]:
    for frame in placed.frames:
        if frame.caption:
            yield label(frame.x, frame.y - 9, frame.caption, "fx-d")
        yield group([draw(frame.program, extra)], transform=_moved(frame.x, frame.y))


def tooltip(placed: PlacedBox) -> str:
    """Return the tooltip of a box: the equation and its source."""
    box = placed.box
    return box.full if box.source is None else f"{box.full}\n{place_of(box.source)}"


def place_of(source: Source | SavedSource) -> str:
    """Return a source location without folders: ``train.py:12 (step) in loss``."""
    file = source.file.replace("\\", "/").rpartition("/")[2]
    scopes = f" in {'/'.join(source.scopes)}" if source.scopes else ""
    return f"{file}:{source.line} ({source.function}){scopes}"


def _labels(placed: PlacedBox) -> Iterator[str]:
    """Yield the names and types of results, and the names of operands without a wire."""
    below = placed.y + placed.height
    for port in placed.outs:
        dead = port.var in placed.box.unused
        class_ = "fx-l fx-dead" if dead else "fx-l"
        yield label(port.x + 5, below + 12, port.name, class_, data_v=str(port.var))
    for port in placed.ins:
        if port.name:
            yield from _stub(port, placed.y)


def _stub(port: Port, y: float) -> Iterator[str]:
    yield path([line((port.x, y - 9), (port.x, y))], class_="fx-w", data_v=str(port.var))
    yield label(port.x, y - 12, port.name, "fx-l fx-far", "middle", data_v=str(port.var))


def _tap_line(placed: PlacedBox) -> str:
    y = placed.y + LINE / 2
    xs = [x for x, _ in placed.taps]
    left = max(xs) < placed.x
    ends = (min(xs), placed.x) if left else (placed.x + placed.width, max(xs))
    return path([line((ends[0], y), (ends[1], y))], class_="fx-tap")


def badge(x: float, y: float, words: tuple[str, ...], hue: int) -> str:
    """Return an access to a reference as a capsule on its rail."""
    sign = sign_of(words)
    width = 8 + 6.2 * len(sign)
    parts = [
        element("title", text(" and ".join(words))),
        element("rect", x=-width / 2, y=-7, width=width, height=14, rx=7),
        label(0, 3.5, sign, "fx-bt", "middle"),
    ]
    return group(parts, class_=f"fx-b fx-k{hue}", transform=_moved(x, y))


def _rail(placed: PlacedRail) -> Iterator[str]:
    rail, x = placed.rail, placed.x
    yield path([line((x, placed.top), (x, placed.bottom))], class_=f"fx-rail fx-k{rail.hue}")
    if rail.given:
        yield label(x + NAME, placed.top + 4, rail.label, f"fx-l fx-k{rail.hue}")
