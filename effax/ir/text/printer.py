"""The printer: programs as text, in JAX's notation and layout.

:mod:`effax.ir.text.parser` reads it back. A program that fits on one line is written on one:

    { lambda ; a:f32[3] b:Ref{f32[3]}. let c:f32[3] <- b[...]; d:f32[3] = mul a c in (d,) }

Subjaxprs that occur more than once, are long, or are deeply nested come first, under a name. A swap
whose result is unused is a plain write. The names of variables are local to a subjaxpr.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, overload

from effax.effects.row import effect_text
from effax.ir.dtypes import dtype_words
from effax.ir.primitive import ByReference, Primitive
from effax.ir.prims.refs import AddUpdate, Get, Swap
from effax.ir.recursion import postorder
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Atom, ClosedJaxpr, Eqn, Jaxpr, Lit, Var
from effax.ir.text.constants import constant_texts
from effax.ir.text.display import DISPLAY
from effax.ir.text.format import (
    LABEL,
    REFERENCE,
    fresh_words,
    index_text,
    label_text,
    lit_text,
    params_of,
    value_text,
)
from effax.ir.text.names import VAR_NAMES
from effax.ir.types import RefType, Type

WIDTH: Final = 80
LONG: Final = 10
"""A subjaxpr of more equations is written before the program that contains it, under a name."""

DEEP: Final = 8
"""The number of levels of nesting after which a subjaxpr is written apart, under a name."""

UNBOUNDED: Final = 1 << 60


def pretty(jaxpr: Jaxpr, effects: bool = False, source: bool = False) -> str:
    """Return the program as text.

    Args:
        jaxpr: the program.
        effects: whether signatures show the effects on binders.
        source: whether each equation is followed by its source.
    """
    printer = _Printer(effects, source)
    if _is_flat(jaxpr):
        return printer.program(jaxpr, 0, 0)
    printer.objects = {x: name for name, x in references(jaxpr).items()}
    parts: list[str] = []
    for program, name in _written_apart(jaxpr):
        parts.append(f"let {name} = {printer.program(program, 0, len(name) + 7)} in\n")
        printer.named[program] = name
    return "".join(parts) + printer.program(jaxpr, 0, 0)


def pretty_closed(closed: ClosedJaxpr) -> str:
    """Return the program as text, after its constants: ``let a:f32[] = 2.0 in``."""
    jaxpr, consts = closed.jaxpr, closed.consts
    names = iter(_constant_names(closed))
    lines: list[str] = []
    for v, value in zip(jaxpr.binders, consts, strict=False):
        start, name = f"let {v!r} = ", next(names)
        texts = constant_texts(value, v.type)
        if texts is None:
            lines.append(f"{start}{REFERENCE}{name} in\n")
        elif len(texts) == 1:
            lines.append(f"{start}{texts[0]} in\n")
        else:
            shown = ", ".join(texts).split(" ")
            lines.append(_filled(f"{start}[", shown, 0, 4) + "] in\n")
    return "".join(lines) + pretty(jaxpr)


def _constant_names(closed: ClosedJaxpr) -> list[str]:
    """Return a word for each constant: the user's name, or that of the variable."""
    jaxpr = closed.jaxpr
    fresh = fresh_words(frozenset(references(jaxpr)))
    named = [jaxpr.names[i] if i < len(jaxpr.names) else "" for i in range(len(closed.consts))]
    return [
        fresh(name if name.isidentifier() else str(v))
        for name, v in zip(named, jaxpr.binders, strict=False)
    ]


def _is_flat(jaxpr: Jaxpr) -> bool:
    """Return whether there are neither subjaxprs nor objects, which need names."""
    for eqn in jaxpr.eqns:
        prim = eqn.prim
        if prim.by_reference or prim.subjaxprs():
            return False
    return True


@overload
def references(jaxpr: Jaxpr) -> dict[str, ByReference]: ...
@overload
def references(jaxpr: ClosedJaxpr) -> dict[str, object]: ...
def references(jaxpr: Jaxpr | ClosedJaxpr) -> dict[str, ByReference] | dict[str, object]:
    """Return the Python objects that are parameters in a program, by their printed names.

    Names are the objects' labels, in order of appearance, with a number appended if one is taken:
    ``parse(str(jaxpr), references=references(jaxpr)) == jaxpr``. Those of a closed program include
    the constants that are not written out: references, and large arrays.
    """
    if isinstance(jaxpr, ClosedJaxpr):
        consts = zip(_constant_names(jaxpr), jaxpr.jaxpr.in_types, jaxpr.consts, strict=False)
        by_name = {n: x for n, type_, x in consts if constant_texts(x, type_) is None}
        return {**_parameters(jaxpr.jaxpr), **by_name}
    return _parameters(jaxpr)


def _parameters(jaxpr: Jaxpr) -> dict[str, ByReference]:
    found: dict[ByReference, None] = {}
    seen = {id(jaxpr)}
    waiting = [iter(jaxpr.eqns)]
    while waiting:
        eqn = next(waiting[-1], None)
        if eqn is None:
            waiting.pop()
            continue
        prim = eqn.prim
        if prim.by_reference:
            values = [getattr(prim, field) for field in prim.by_reference]
            found.update((x, None) for x in values if isinstance(x, ByReference))
        programs = prim.subjaxprs()
        if not programs:
            continue
        inside = [inner for inner in programs if id(inner) not in seen]
        seen.update(map(id, inside))
        waiting += [iter(inner.eqns) for inner in reversed(inside)]
    fresh = fresh_words(frozenset())
    return {fresh(x.label): x for x in found}


def eqn_str(eqn: Eqn, store: bool = False) -> str:
    """Return an equation on one line; long subjaxprs are elided.

    Args:
        eqn: the equation.
        store: whether it is a swap with an unused result, as :func:`stores` returns.
    """
    text = _Printer(elide=True).flat_eqn(eqn, store, UNBOUNDED)
    assert text is not None
    return text


def on_one_line(jaxpr: Jaxpr) -> str:
    """Return the program on one line, with its subjaxprs."""
    text = _Printer().flat_program(jaxpr, UNBOUNDED)
    assert text is not None
    return text


def stores(jaxpr: Jaxpr) -> list[bool]:
    """Return, for each equation, whether it prints as a write: a swap with an unused result."""
    dropped = _dropped(jaxpr)
    return [_is_dropped(eqn, dropped) for eqn in jaxpr.eqns]


def _written_apart(jaxpr: Jaxpr) -> list[tuple[Jaxpr, str]]:
    """Return the subjaxprs that are written first, innermost first, and their names."""
    counts: dict[Jaxpr, int] = {}
    labels: dict[Jaxpr, object] = {}
    # The number of levels that are written inside of each program, modulo DEEP.
    heights: dict[Jaxpr, int] = {}
    for program in postorder(jaxpr):
        if program in heights:
            continue
        inner = [0]
        for eqn in program.eqns:
            for subjaxpr in eqn.prim.subjaxprs():
                counts[subjaxpr] = counts.get(subjaxpr, 0) + 1
                labels.setdefault(subjaxpr, getattr(eqn.prim, LABEL, None))
                inner.append(heights[subjaxpr])
        heights[program] = (max(inner) + 1) % DEEP
    order = [p for p in heights if p in counts]
    apart = [p for p in order if p.eqns and (counts[p] > 1 or len(p.eqns) > LONG or not heights[p])]
    if not apart:
        return []
    fresh = fresh_words(dtype_words() | {"None", "True", "False", "nan", "inf"})
    return [(p, fresh(str(labels[p] or "jaxpr"))) for p in apart]


class _TypeTexts(dict[Type, str]):
    def __missing__(self, type_: Type) -> str:
        text = self[type_] = str(type_)
        return text


class _Printer:
    """The options of one run, and caches of repeated texts."""

    __slots__ = ("effects", "elide", "heads", "named", "objects", "source", "types")

    def __init__(self, effects: bool = False, source: bool = False, elide: bool = False) -> None:
        self.named: dict[Jaxpr, str] = {}
        self.objects: dict[ByReference, str] | None = None
        self.effects = effects
        self.source = source
        self.elide = elide
        # Keyed by identity: equal parameters, such as 0.0 and -0.0, may print differently.
        self.heads: dict[int, str | None] = {}
        self.types = _TypeTexts()

    def program(self, jaxpr: Jaxpr, indent: int, column: int) -> str:
        """Return the text of a program that begins at ``column``; further lines have ``indent``."""
        flat = self.flat_program(jaxpr, WIDTH - column)
        if flat is not None:
            return flat
        inner = "\n" + " " * (indent + 4)
        lines = [self.header(jaxpr, indent + 4, column), *self.equations(jaxpr, indent + 4)]
        outs = [f"{text}," for text in map(_atom, jaxpr.outs)]
        if len(outs) != 1:
            outs[-1:] = [text[:-1] for text in outs[-1:]]
        results = _filled("in (", outs, indent + 2, indent + 4)
        return f"{inner.join(lines)}\n{' ' * (indent + 2)}{results}) }}"

    def flat_program(self, jaxpr: Jaxpr, room: int) -> str | None:
        """Return the program on one line, or None if it takes more than ``room`` columns."""
        start = self.header(jaxpr, UNBOUNDED, 0)
        if len(start) + 8 * len(jaxpr.eqns) > room or (self.source and jaxpr.eqns):
            return None
        left = room - len(start)
        dropped = _dropped(jaxpr) if jaxpr.eqns else frozenset()
        parts: list[str] = []
        for eqn in jaxpr.eqns:
            part = self.flat_eqn(eqn, _is_dropped(eqn, dropped), left)
            if part is None:
                return None
            parts.append(part)
            left -= len(part)
        outs = ", ".join(map(_atom, jaxpr.outs))
        comma = "," if len(jaxpr.outs) == 1 else ""
        text = f"{start} {'; '.join(parts)} in ({outs}{comma})"
        # The closing brace may exceed the room, as in JAX's layout.
        return f"{text} }}" if len(text) <= room else None

    def header(self, jaxpr: Jaxpr, indent: int, column: int) -> str:
        """Return the text before the equations, on one line if ``indent`` is unbounded."""
        n = jaxpr.n_consts
        consts, inputs = self.binders(jaxpr.binders[:n]), self.binders(jaxpr.binders[n:])
        row = ""
        if self.effects:
            texts = [
                effect_text(e, lambda i: VAR_NAMES[jaxpr.binders[i].id]) for e in jaxpr.effects
            ]
            row = f"!{{{', '.join(texts)}}} "
        if indent == UNBOUNDED:
            return f"{{ lambda {' '.join(consts)}; {' '.join(inputs)}. {row}let"
        text = _filled("{ lambda ", consts, column, indent)
        text = _filled(f"{text}; ", inputs, column, indent)
        row = row.replace(", ", ",\n")
        return _filled(f"{text}. ", f"{row}let".split("\n"), column, indent)

    def binders(self, binders: Sequence[Var]) -> list[str]:
        return [f"{VAR_NAMES[v.id]}:{self.types[v.type]}" for v in binders]

    def equations(self, jaxpr: Jaxpr, indent: int) -> list[str]:
        """Return the text of each equation, on lines with ``indent``."""
        room = WIDTH - indent
        heads, names, types = self.heads, VAR_NAMES, self.types
        dropped: frozenset[int] | None = None
        lines: list[str] = []
        for eqn in jaxpr.eqns:
            prim, ins, outs, _, source = eqn
            head = heads.get(id(prim), "")
            if head == "":
                head = heads[id(prim)] = self.head(prim)
            if head is not None and len(outs) == 1 and ins:
                v, t = outs[0]
                args = [lit_text(a) if type(a) is Lit else names[a.id] for a in ins]
                line = f"{names[v]}:{types[t]} = {head}{' '.join(args)}"
            else:
                line = ""
            if not line or len(line) > room:
                if dropped is None:
                    dropped = _dropped(jaxpr)
                line = self.eqn(eqn, _is_dropped(eqn, dropped), indent)
            lines.append(_beside(line, source) if self.source else line)
        return lines

    def head(self, prim: Primitive) -> str | None:
        """Return name and parameters, or None if they depend on the arguments or the column."""
        if type(prim) in REFERENCE_FORMS or prim.subjaxprs():
            return None
        return f"{prim.name}{self.flat_params(prim, UNBOUNDED)} "

    def eqn(self, eqn: Eqn, dropped: bool, indent: int) -> str:
        """Return an equation on as many lines as needed."""
        if _is_reference_form(eqn):
            return self.reference(eqn, dropped)
        text = ""
        if eqn.outs:
            text = _filled("", self.binders(eqn.outs), indent, indent + 2) + " = "
        text += eqn.prim.name
        params = self.flat_params(eqn.prim, WIDTH - _column(text, indent))
        text += self.block_params(eqn.prim, indent) if params is None else params
        if not eqn.ins:
            return text
        return _filled(f"{text} ", list(map(_atom, eqn.ins)), indent, indent + 2)

    def flat_eqn(self, eqn: Eqn, dropped: bool, room: int) -> str | None:
        """Return an equation on one line, or None if its parameters take more than ``room``."""
        if _is_reference_form(eqn):
            return self.reference(eqn, dropped)
        params = self.flat_params(eqn.prim, room)
        if params is None:
            return None
        results = f"{' '.join(self.binders(eqn.outs))} = " if eqn.outs else ""
        return " ".join([f"{results}{eqn.prim.name}{params}", *map(_atom, eqn.ins)])

    def flat_params(self, prim: Primitive, room: int) -> str | None:
        """Return ``[a=1 b=2]``, or None if it takes more than ``room``."""
        items: list[str] = []
        for shown, field, value in params_of(prim):
            text = label_text(value) if field == LABEL else self.flat_value(value, room)
            if text is None:
                return None
            items.append(f"{shown}={text}")
            room -= len(items[-1]) + 1
        if room < 1 and items:
            return None
        return f"[{' '.join(items)}]" if items else ""

    def flat_value(self, value: object, room: int) -> str | None:
        """Return a parameter on one line, or None if a subjaxpr in it is too long."""
        left: int | None = room

        def nested(jaxpr: Jaxpr) -> str:
            nonlocal left
            text = self.named.get(jaxpr) if self.named else None
            if text is None and self.elide:
                text = _Printer().flat_program(jaxpr, WIDTH) or self.elided(jaxpr)
            elif text is None and left is not None:
                text = self.flat_program(jaxpr, left)
            left = None if left is None or text is None else left - len(text)
            return text or ""

        text = value_text(value, nested, self.objects)
        return None if left is None else text

    def elided(self, jaxpr: Jaxpr) -> str:
        """Return the program without its equations."""
        header = self.header(jaxpr, UNBOUNDED, 0)
        return f"{header if len(header) <= WIDTH else '{ lambda ... let'} ... }}"

    def block_params(self, prim: Primitive, indent: int) -> str:
        """Return ``[``, one parameter per line, ``]``."""
        pad = "\n" + " " * (indent + 2)
        items: list[str] = []
        for shown, field, value in params_of(prim):
            start = f"{shown}="
            if field == LABEL:
                text = label_text(value)
            else:
                text = self.block_value(value, indent + 2, indent + 2 + len(start))
            items.append(f"{pad}{start}{text}")
        return f"[{''.join(items)}\n{' ' * indent}]"

    def block_value(self, value: object, indent: int, column: int) -> str:
        """Return a parameter on as many lines as needed."""
        if isinstance(value, Jaxpr):
            return self.subjaxpr(value, indent, column)
        if isinstance(value, tuple) and value and all(isinstance(v, Jaxpr) for v in value):
            flat = self.flat_value(value, WIDTH - column)
            if flat is not None:
                return flat
            pad = "\n" + " " * (indent + 2)
            lines = [f"{pad}{self.subjaxpr(v, indent + 2, indent + 2)}" for v in value]
            return f"({''.join(lines)}\n{' ' * indent})"
        return value_text(value, lambda jaxpr: self.subjaxpr(jaxpr, indent, column), self.objects)

    def subjaxpr(self, jaxpr: Jaxpr, indent: int, column: int) -> str:
        """Return the name of a subjaxpr that is written apart, or its text."""
        name = self.named.get(jaxpr) if self.named else None
        return self.program(jaxpr, indent, column) if name is None else name

    def reference(self, eqn: Eqn, dropped: bool) -> str:
        """Return a read, write, or accumulation in the notation of references."""
        first = eqn.ins[0]
        operands = eqn.ins[1:] if isinstance(eqn.prim, Get) else eqn.ins[2:]
        assert isinstance(eqn.prim, Get | Swap | AddUpdate)
        shown = index_text(eqn.prim.indexer, first.type.shape, list(map(_atom, operands)))
        place = f"{_atom(first)}{shown}"
        if isinstance(eqn.prim, AddUpdate):
            return f"{place} += {_atom(eqn.ins[1])}"
        (result,) = self.binders(eqn.outs)
        if isinstance(eqn.prim, Get):
            return f"{result} <- {place}"
        value = _atom(eqn.ins[1])
        return f"{place} <- {value}" if dropped else f"{result}, {place} <- {place}, {value}"


REFERENCE_FORMS: Final[dict[type[Primitive], tuple[int, int]]] = {
    Get: (1, 1),
    Swap: (2, 1),
    AddUpdate: (2, 0),
}
"""Primitives in the notation of references: the numbers of leading arguments and of results."""


def _is_reference_form(eqn: Eqn) -> bool:
    """Return whether the equation can be written in the notation of references."""
    form = REFERENCE_FORMS.get(type(eqn.prim))
    if form is None or not eqn.ins:
        return False
    assert isinstance(eqn.prim, Get | Swap | AddUpdate)
    indexer, ref = eqn.prim.indexer, eqn.ins[0].type
    return (
        isinstance(ref, RefType)
        and len(ref.shape) == len(indexer.dims)
        and (len(eqn.ins) - indexer.n_operands, len(eqn.outs)) == form
    )


def _dropped(jaxpr: Jaxpr) -> frozenset[int]:
    """Return the unused results of swaps that have the next free number.

    The parser numbers an unwritten result so; any other number has to be written.
    """
    swaps: list[int] = []
    used: set[int] = {a.id for a in jaxpr.outs if isinstance(a, Var)}
    top = max((v.id for v in jaxpr.binders), default=-1)
    for prim, ins, outs, _, _ in jaxpr.eqns:
        used.update([a.id for a in ins if type(a) is not Lit])
        for v, _ in outs:
            if v == top + 1 and type(prim) is Swap:
                swaps.append(v)
            if v > top:
                top = v
    return frozenset(swaps) - used


def _is_dropped(eqn: Eqn, dropped: frozenset[int]) -> bool:
    return len(eqn.outs) == 1 and eqn.outs[0].id in dropped and type(eqn.prim) is Swap


def _atom(atom: Atom) -> str:
    return lit_text(atom) if type(atom) is Lit else VAR_NAMES[atom.id]


def _column(text: str, start: int) -> int:
    """Return the column after a text whose first line begins at ``start``."""
    newline = text.rfind("\n")
    return start + len(text) if newline < 0 else len(text) - newline - 1


def _filled(text: str, items: Sequence[str], start: int, indent: int) -> str:
    """Return ``text`` and the items, separated by spaces, wrapped at the width."""
    column = _column(text, start)
    parts = [text]
    for i, item in enumerate(items):
        if i and column + 1 + len(item) > WIDTH:
            parts.append("\n" + " " * indent)
            column = indent
        elif i:
            parts.append(" ")
            column += 1
        parts.append(item)
        column += len(item)
    return "".join(parts)


def _beside(text: str, source: Source | SavedSource | None) -> str:
    """Return an equation's text with its source at the end of its first line."""
    if source is None:
        return text
    first, newline, rest = text.partition("\n")
    place = str(source)
    # A comment ends with its line, and names of files and scopes may have line breaks.
    shown = place if place.isprintable() else repr(place)[1:-1]
    return f"{first}  # {shown}{newline}{rest}"


DISPLAY.jaxpr = pretty
DISPLAY.closed = pretty_closed
DISPLAY.eqn = eqn_str
