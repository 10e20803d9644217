"""Values, equations and states as text."""

from __future__ import annotations

import linecache
from typing import Final, NamedTuple

import numpy as np

from effax.ir.dtypes import family
from effax.ir.eval.stepping.memory import RefPart, root_of
from effax.ir.eval.stepping.origins import Origin
from effax.ir.eval.stepping.state import Access, Activation, State
from effax.ir.primitive import Value
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Jaxpr
from effax.ir.text.format import index_text
from effax.ir.text.printer import eqn_str, stores
from effax.ir.types import Type, type_of_value

SMALL: Final = 24
"""The most elements of an array that are all shown."""

WIDTH: Final = 88
"""The most columns of an equation."""

CODE: Final = 60
"""The most columns of a user's line."""


class Stats(NamedTuple):
    """Statistics of an array; those of numbers are None for other dtypes and without any.

    Attributes:
        size: the number of elements.
        least: the least finite element; of complex numbers, of their absolute values.
        greatest: the greatest one.
        mean: the mean of the finite elements.
        std: their standard deviation.
        zeros: the number of zeros.
        nan: the number of nans.
        inf: the number of infinities.
    """

    size: int
    least: float | None
    greatest: float | None
    mean: float | None
    std: float | None
    zeros: int
    nan: int
    inf: int

    def __str__(self) -> str:
        parts = []
        if self.mean is not None:
            parts.append(f"min {self.least:.6g}, max {self.greatest:.6g}")
            parts.append(f"mean {self.mean:.6g}, std {self.std:.6g}")
        parts.append(f"{self.zeros} of {self.size} zero")
        parts += [f"{n} {name}" for n, name in ((self.nan, "nan"), (self.inf, "inf")) if n]
        return ", ".join(parts)


def stats_of(value: Value) -> Stats:
    """Return the statistics of an array."""
    kind = family(value.dtype)
    if kind not in ("bool", "int", "uint", "float", "complex"):
        return Stats(value.size, None, None, None, None, 0, 0, 0)
    wide = np.abs(value.astype(np.complex128)) if kind == "complex" else value.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    zeros, nan, inf = [int(x.sum()) for x in (wide == 0, np.isnan(wide), np.isinf(wide))]
    if not finite.size:
        return Stats(value.size, None, None, None, None, zeros, nan, inf)
    with np.errstate(all="ignore"):
        least, greatest, mean, std = map(
            float, (finite.min(), finite.max(), finite.mean(), finite.std())
        )
    return Stats(value.size, least, greatest, mean, std, zeros, nan, inf)


def shown_value(value: Value, type_: Type | None = None) -> str:
    """Return a value as text: its type, and its elements or their statistics."""
    value = np.asarray(value)
    head = str(type_of_value(value) if type_ is None else type_)
    if value.size > SMALL:
        corner = np.array2string(value, threshold=SMALL, edgeitems=2, precision=4, separator=", ")
        return f"{head}: {stats_of(value)}\n{corner}"
    shown = np.array2string(value, separator=", ", max_line_width=WIDTH)
    return f"{head} = {shown}" if "\n" not in shown else f"{head} =\n{shown}"


def short(value: Value) -> str:
    """Return a value on a part of a line."""
    value = np.asarray(value)
    if value.size > 6:
        return f"({stats_of(value)})"
    return np.array2string(value, separator=", ", max_line_width=1 << 30).replace("\n", " ")


def place_text(source: Source | SavedSource | None, code: bool = True) -> str:
    """Return the user's line: the file, the number, and the text where it is known."""
    if source is None:
        return ""
    line = linecache.getline(source.file, source.line).strip() if code else ""
    name = source.file.rpartition("/")[2]
    return f"{name}:{source.line}" + (f": {_cut(line, CODE)}" if line else "")


def eqn_lines(jaxpr: Jaxpr, first: int, last: int, at: int | None) -> list[str]:
    """Return equations of a program, one on a line, with the user's lines; ``at`` is marked."""
    dropped = stores(jaxpr)
    lines = []
    for i in range(max(first, 0), min(last, len(jaxpr.eqns))):
        eqn = jaxpr.eqns[i]
        text = f"{'->' if i == at else '  '} {i:>3}  {eqn_str(eqn, dropped[i])}"
        lines.append(f"{_cut(text, WIDTH):<60}  {place_text(eqn.source)}".rstrip())
    if at is not None and len(jaxpr.eqns) == at <= last:
        outs = ", ".join(map(str, jaxpr.outs))
        lines.append(f"->  end  in ({outs})")
    return lines


def _cut(text: str, width: int) -> str:
    text = " ".join(text.split(" "))
    return text if len(text) <= width else text[: width - 1] + "…"


def path_text(path: tuple[str, ...], label: str = "") -> str:
    """Return the runs that lead to a program."""
    return " > ".join([label, *path] if label else path)


def position_text(state: State, label: str) -> str:
    """Return the position of a state: the path, and the next equation."""
    if state.results is not None:
        shown = ", ".join(short(x) for x in state.results)
        return f"{label} returned ({shown}) after {state.steps} equations"
    frame = state.frame
    lines = eqn_lines(frame.jaxpr, frame.at, frame.at + 1, frame.at)
    return "\n".join([f"{path_text(frame.path, label)}, after {state.steps} equations", *lines])


def values_text(frame: Activation, state: State) -> str:
    """Return the values of a program's inputs, and of its variables so far."""
    jaxpr = frame.jaxpr
    bound = [*jaxpr.binders, *[v for eqn in jaxpr.eqns[: frame.at] for v in eqn.outs]]
    state.memory.restore()
    lines = []
    for i, v in enumerate(bound):
        named = i < len(jaxpr.binders) and i < len(jaxpr.names) and jaxpr.names[i]
        name = f" ({jaxpr.names[i]})" if named else ""
        lines.append(f"{v!r}{name} = {short(frame.value(v))}")
    return "\n".join(lines)


def part_text(part: RefPart) -> str:
    """Return the index of a part in brackets."""
    buffer, root = part.buffer, root_of(part.buffer)
    inside = "[...]"
    if part.indexer is not None:
        operands = [short(x) for x in part.operands]
        inside = index_text(part.indexer, buffer.shape, operands)
    if buffer is root or buffer.shape == root.shape:
        return inside
    element = f"[{', '.join(map(str, _element(buffer, root)))}]"
    return element if inside == "[...]" else element + inside


def _element(buffer: Value, root: Value) -> list[int]:
    """Return the index of the leading axes that ``buffer`` is the element of."""
    offset = (buffer.ctypes.data - root.ctypes.data) // max(root.itemsize, 1)
    sizes = root.shape[root.ndim - buffer.ndim :]
    inner = int(np.prod(sizes))
    leading = root.shape[: root.ndim - buffer.ndim]
    return [int(i) for i in np.unravel_index(offset // max(inner, 1), leading)]


def access_text(access: Access) -> str:
    """Return a write on a line: the part before and after, the equation, the user's line."""
    change = access.change
    assert change is not None
    index = part_text(access.part)
    where = path_text(access.site.path)
    head = f"{index}: {short(change.before)} -> {short(change.after)}"
    tail = f"{access.eqn.prim.name}" + (f" in {where}" if where else "")
    line = place_text(access.eqn.source)
    return f"{head}   {tail}" + (f"   {line}" if line else "")


def origin_text(origin: Origin) -> str:
    """Return an origin on a line."""
    where = path_text(origin.path)
    value = "" if origin.value is None else f" = {short(origin.value)}"
    text = _cut(origin.name, WIDTH) + value
    parts = [f"{text:<50}", where, place_text(origin.source)]
    return "   ".join([part for part in parts if part]).rstrip()
