"""The model of a picture of a program: boxes, arrays between them, and a rail for each reference.

Only this module depends on the semantics of programs; :mod:`effax.show.layout` knows boxes with
inputs and outputs, and :mod:`effax.show.drawing` coordinates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from effax.effects import Alloc, ArgIndex, Free, Row, SideEffect
from effax.effects.row import effect_text
from effax.ir.dtypes import BOOL
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import (
    AddUpdate,
    BroadcastInDim,
    DotGeneral,
    ExpandDims,
    Get,
    Reshape,
    Squeeze,
    Swap,
    Transpose,
)
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.format import LABEL, fields_of, index_text, lit_text, params_of, value_text
from effax.ir.text.names import VAR_NAMES
from effax.ir.text.printer import eqn_str
from effax.ir.types import ArrayType, RefType
from effax.show.heat import NO_SHADES, Shade, Shades
from effax.show.marks import shortened

Key = int | str
"""The key of a rail: the id of a reference's variable, or a kind of side effect."""

HUES: Final = 8
"""The number of colours of rails, which are reused in order."""

HOST: Final = -1
"""The colour of side effects: none."""

DEPTH: Final = 8
"""The default depth to which subjaxprs are open."""

DEEPEST: Final = 64
"""The maximal depth to which subjaxprs are open."""


@dataclass(frozen=True, slots=True)
class Tap:
    """The accesses of an equation to one reference: words such as ``read``."""

    rail: Key
    words: tuple[str, ...]


SIGNS: Final = {"read": "R", "write": "W", "accum": "+", "alloc": "new", "free": "end"}
"""The sign of a kind of effect on a rail; other kinds have their word."""


def sign_of(words: Sequence[str]) -> str:
    """Return the words as the text of a badge: ``R``, ``RW``, ``+``, ``new``, ``end``."""
    if "free" in words:
        return SIGNS["free"]
    return "".join([SIGNS.get(word, shortened(word, 6)) for word in words])


@dataclass(frozen=True, slots=True)
class Rail:
    """A reference inside one program.

    Attributes:
        key: the id of its variable there.
        label: its name and type.
        hue: its colour, the same in every subjaxpr that it is passed to.
        given: whether it is an input.
        ends: whether it is consumed, so that its rail ends before the program.
    """

    key: Key
    label: str
    hue: int
    given: bool
    ends: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """A subjaxpr, drawn inside its equation."""

    caption: str
    program: Program


@dataclass(frozen=True, slots=True)
class Box:
    """An input, an equation, or a result.

    Attributes:
        kind: ``in``, ``eqn`` or ``out``.
        text: the text in the box.
        detail: a second, smaller line; may be empty.
        tone: ``plain``, ``shape`` (rearranges data only), ``product``, ``call``.
        ins: the ids of its array operands, in order.
        outs: its array results.
        unused: the ids of ``outs`` that are not used.
        taps: its accesses to references.
        frames: the open subjaxprs.
        full: the equation as text.
        source: its source location.
        fresh: its mark in a comparison: ``""``, ``gone`` or ``new``.
        heat: its shade by cost; 0 for none.
    """

    kind: str
    text: str
    detail: str = ""
    tone: str = "plain"
    ins: tuple[int, ...] = ()
    outs: tuple[Var, ...] = ()
    unused: frozenset[int] = frozenset()
    taps: tuple[Tap, ...] = ()
    frames: tuple[Frame, ...] = ()
    full: str = ""
    source: Source | SavedSource | None = None
    fresh: str = ""
    heat: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """The model of a jaxpr: boxes in program order, rails from left to right."""

    boxes: tuple[Box, ...]
    rails: tuple[Rail, ...]


Fresh = Mapping[int, str]
"""Marks of a comparison, by position of the equation."""


def model(
    jaxpr: Jaxpr, depth: int = DEPTH, fresh: Fresh | None = None, shades: Shades = NO_SHADES
) -> Program:
    """Return the model of ``jaxpr``; each subjaxpr is open once, at its first occurrence."""
    depth = min(depth, DEEPEST)
    return _Modeller(count(), shades).program(jaxpr, {}, depth, fresh or {}, outermost=True)


def bound(v: Var) -> str:
    """Return a variable with its type: ``c:f32[3]``."""
    return f"{VAR_NAMES[v.id]}:{v.type}"


def called(jaxpr: Jaxpr, i: int) -> str:
    """Return the user's name of a binder, and the binder with its type: ``w · a:f32[3]``."""
    name, shown = _name(jaxpr, i), bound(jaxpr.binders[i])
    return f"{name} · {shown}" if name else shown


def _name(jaxpr: Jaxpr, i: int) -> str:
    """Return the user's name of a binder; empty if it has a description instead."""
    name = jaxpr.names[i] if i < len(jaxpr.names) else ""
    return "" if name.startswith("a ") else shortened(name, 30)


def counted(n: int, what: str) -> str:
    """Return ``1 equation``, ``2 equations``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _shaded(box: Box, shade: Shade | None) -> Box:
    """Return a box with its shade, and its cost as its detail."""
    return box if shade is None else replace(box, heat=shade.level, detail=shade.text)


class _Modeller:
    """The state of one run: colours in use, and subjaxprs that are open."""

    def __init__(self, hues: Iterator[int], shades: Shades) -> None:
        self.hues = hues
        self.shades = shades
        self.seen: set[Jaxpr] = set()

    def program(
        self,
        jaxpr: Jaxpr,
        given: Mapping[int, int],
        depth: int,
        fresh: Fresh,
        fed: frozenset[int] = frozenset(),
        feeding: frozenset[int] = frozenset(),
        outermost: bool = False,
    ) -> Program:
        """Return the model of a program.

        ``given`` has the colours of binders that are references, by position. ``fed`` are the
        binders that are carries, ``feeding`` the results that are.
        """
        uses = Counter(a.id for e in jaxpr.eqns for a in e.ins if isinstance(a, Var))
        uses.update(a.id for a in jaxpr.outs if isinstance(a, Var))
        rails, hues = self.rails(jaxpr, given)
        boxes = [
            Box(
                "in",
                _binder_text(jaxpr, i) + (" ↻" if i in fed else ""),
                "const" if outermost and i < jaxpr.n_consts else "",
                outs=(v,),
                unused=frozenset() if uses[v.id] else frozenset({v.id}),
                full=f"input {bound(v)}",
            )
            for i, v in enumerate(jaxpr.binders)
            if not isinstance(v.type, RefType)
        ]
        for i, eqn in enumerate(jaxpr.eqns):
            box = self.equation(eqn, uses, hues, depth, fresh.get(i, ""))
            boxes.append(_shaded(box, self.shades.get((id(jaxpr), i))))
        for i, a in enumerate(jaxpr.outs):
            boxes.append(_result(a, i, len(jaxpr.outs), i in feeding))
        return Program(tuple(boxes), rails)

    def rails(
        self, jaxpr: Jaxpr, given: Mapping[int, int]
    ) -> tuple[tuple[Rail, ...], dict[Key, int]]:
        """Return the rails of a program in order of appearance, and their colours."""
        ended: set[int] = set()
        channels: dict[str, None] = {}
        for eqn in jaxpr.eqns:
            for effect in eqn.effects:
                if isinstance(effect, Free):
                    ended.add(_ref(eqn, effect.ref).id)
                elif isinstance(effect, SideEffect):
                    channels[effect_text(effect, None)] = None
        hues: dict[Key, int] = {}
        rails: list[Rail] = []
        inside = [v for e in jaxpr.eqns for v in e.outs]
        for i, v in enumerate([*jaxpr.binders, *inside]):
            if isinstance(v.type, RefType):
                hues[v.id] = given[i] if i in given else next(self.hues) % HUES
                is_input = i < len(jaxpr.binders)
                shown = called(jaxpr, i) if is_input else bound(v)
                rails.append(Rail(v.id, shown, hues[v.id], is_input, v.id in ended))
        for channel in channels:
            hues[channel] = HOST
            rails.append(Rail(channel, channel, HOST, True, False))
        return tuple(rails), hues

    def equation(
        self, eqn: Eqn, uses: Counter[int], hues: Mapping[Key, int], depth: int, fresh: str
    ) -> Box:
        arrays = tuple([v for v in eqn.outs if not isinstance(v.type, RefType)])
        if isinstance(eqn.prim, Swap):
            arrays = tuple([v for v in arrays if uses[v.id]])
        frames, note = self.frames(eqn, hues, depth)
        shown, detail = box_text(eqn)
        return Box(
            "eqn",
            shown,
            f"{detail} {note}".strip(),
            _tone(eqn),
            tuple([a.id for a in eqn.ins if isinstance(a, Var) and isinstance(a.type, ArrayType)]),
            arrays,
            frozenset([v.id for v in arrays if not uses[v.id]]),
            tuple([tap for tap in taps(eqn) if tap.rail in hues]),
            frames,
            eqn_str(eqn),
            eqn.source,
            fresh,
        )

    def frames(
        self, eqn: Eqn, hues: Mapping[Key, int], depth: int
    ) -> tuple[tuple[Frame, ...], str]:
        """Return the subjaxprs to draw inside, or a note on those that are not drawn."""
        regions = eqn.prim.regions()
        if not regions:
            return (), ""
        size = counted(sum(len(r.jaxpr.eqns) for r in regions), "equation")
        if depth <= 0 or any(r.jaxpr in self.seen and not _is_short(r.jaxpr) for r in regions):
            return (), f"({size}{', drawn before' if depth > 0 else ''})"
        self.seen.update(r.jaxpr for r in regions)
        made = []
        for region, caption in zip(regions, captions(eqn, regions), strict=True):
            given = {
                i: hues[ref.id]
                for i, at in enumerate(region.args)
                if isinstance(ref := eqn.ins[at], Var) and ref.id in hues
            }
            feeding = frozenset([j for j, at in enumerate(region.carry_to) if at is not None])
            fed = frozenset(
                [i for i, at in enumerate(region.args) if at in region.carry_to and at is not None]
            )
            inner = self.program(region.jaxpr, given, depth - 1, {}, fed, feeding)
            made.append(Frame(caption, inner))
        return tuple(made), ""


def _is_short(jaxpr: Jaxpr) -> bool:
    """Return whether a program may be drawn again; with subjaxprs, pictures could explode."""
    return len(jaxpr.eqns) <= 4 and not any(eqn.prim.subjaxprs() for eqn in jaxpr.eqns)


def _ref(eqn: Eqn, index: int) -> Var:
    ref = eqn.ins[index]
    assert isinstance(ref, Var), "a reference is a variable"
    return ref


def _binder_text(jaxpr: Jaxpr, i: int) -> str:
    return _name(jaxpr, i) or VAR_NAMES[jaxpr.binders[i].id]


def _result(atom: Atom, i: int, n: int, is_carried: bool) -> Box:
    shown = "result" if n == 1 else f"result {i}"
    value = lit_text(atom) if isinstance(atom, Lit) else VAR_NAMES[atom.id]
    return Box(
        "out",
        f"{shown} ↻" if is_carried else shown,
        value if isinstance(atom, Lit) else "",
        ins=() if isinstance(atom, Lit) else (atom.id,),
        full=f"{shown}: {value}",
    )


def taps(eqn: Eqn) -> tuple[Tap, ...]:
    """Return the accesses of an equation to references, and its side effects."""
    words: dict[Key, list[str]] = {}
    row: Row[ArgIndex] = eqn.effects
    for effect in row:
        if isinstance(effect, SideEffect):
            key: Key = effect_text(effect, None)
        elif isinstance(effect, Alloc):
            key = eqn.outs[effect.ref].id
        else:
            key = _ref(eqn, effect.ref).id
        words.setdefault(key, []).append(effect.word)
    return tuple([Tap(key, tuple(found)) for key, found in words.items()])


def box_text(eqn: Eqn) -> tuple[str, str]:
    """Return the text of an equation's box, and the smaller line under it."""
    prim = eqn.prim
    if isinstance(prim, Get | Swap | AddUpdate):
        return shortened(_reference_text(eqn, prim), 34), ""
    name = prim.name
    parameters = _parameters(prim)
    title = getattr(prim, LABEL, None)
    if prim.regions() and isinstance(title, str):
        name = f"{name} {title}"
    operands = ["·" if isinstance(a, Var) else repr(a.value) for a in eqn.ins]
    if any(isinstance(a, Lit) for a in eqn.ins) and not prim.subjaxprs():
        name = " ".join([name, *operands])
    return shortened(name, 34), shortened(" ".join(parameters), 34)


def _parameters(prim: Primitive) -> list[str]:
    """Return the parameters that neither types nor subjaxprs show."""
    if isinstance(prim, DotGeneral):
        (left, right), (batch, _) = prim.dimension_numbers
        parts = [f"contracts {_axes(left)}·{_axes(right)}"]
        return [*parts, f"batch {_axes(batch)}"] if batch else parts
    defaults = {f.name: f.default for f in fields_of(prim)}
    holds = bool(prim.subjaxprs())
    return [
        f"{SHORT.get(field, name)}={value_text(value, lambda _: '…')}"
        for name, field, value in params_of(prim)
        if not _is_program(value)
        and field != LABEL
        and field not in IN_TYPES
        and value is not False
        and value != defaults[field]
        and not (holds and field.startswith("n_"))
    ]


SHORT: Final = {"broadcast_dimensions": "dims", "dimension_numbers": "dims", "permutation": "axes"}
"""Shorter names of parameters, for boxes only."""

IN_TYPES: Final = frozenset({"shape", "new_sizes", "new_dtype", "weak"})
"""Parameters that the type of the result shows."""


def _axes(axes: Sequence[int]) -> str:
    return ",".join(map(str, axes)) or "∅"


def _is_program(value: object) -> bool:
    """Return whether a parameter is a subjaxpr, or several, which are drawn."""
    if isinstance(value, tuple) and value:
        return all(isinstance(v, Jaxpr) for v in value)
    return isinstance(value, Jaxpr)


def _reference_text(eqn: Eqn, prim: Get | Swap | AddUpdate) -> str:
    ref, *rest = eqn.ins
    value, operands = ("", rest) if isinstance(prim, Get) else (_operand(rest[0]), rest[1:])
    place = _operand(ref) + index_text(
        prim.indexer, ref.type.shape, [_operand(a) for a in operands]
    )
    if isinstance(prim, Get):
        return place
    return f"{place} {'+=' if isinstance(prim, AddUpdate) else '←'} {value}"


def _operand(atom: Atom) -> str:
    return str(atom).partition(":")[0] if isinstance(atom, Lit) else VAR_NAMES[atom.id]


def _tone(eqn: Eqn) -> str:
    if eqn.prim.subjaxprs():
        return "call"
    if isinstance(eqn.prim, DotGeneral):
        return "product"
    moves = isinstance(eqn.prim, BroadcastInDim | ExpandDims | Reshape | Squeeze | Transpose)
    return "shape" if moves else "plain"


def captions(eqn: Eqn, regions: Sequence[Region]) -> list[str]:
    """Return the caption of each region: its field or branch; empty for a single region."""
    prim, selector = eqn.prim, eqn.prim.selector()
    if len(regions) == 1:
        return [""]
    if selector is not None and len(regions) == 2 and eqn.ins[selector].type.dtype == BOOL:
        return ["false", "true"]
    names: dict[int, str] = {}
    for _, field, value in params_of(prim):
        if isinstance(value, Jaxpr):
            names.setdefault(id(value), field)
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                names.setdefault(id(item), f"{field}[{i}]")
    return [names.get(id(r.jaxpr), str(i)) for i, r in enumerate(regions)]
