"""Programs as JSON, for tools in other languages; :func:`from_json` reads them back.

::

    {
        "format": "effax",
        "version": 1,
        "programs": [
            {
                "binders": [[0, "f32[]"]],
                "n_consts": 0,
                "names": ["x"],
                "eqns": [
                    {"prim": "sin", "params": {}, "ins": [0], "outs": [[1, "f32[]"]], "effects": []}
                ],
                "outs": [1],
                "effects": [],
            }
        ],
    }

A subjaxpr is its number in ``programs``, where each program follows its subjaxprs and the outermost
is last; so a shared subjaxpr is written once. ``out_names`` has the names of results, if any. A
variable is its number, a literal ``{"lit": "2.0:f32[]"}``. Parameters without a form in JSON are in
the notation of printed programs, ``{"text": "[*,0:2]"}``, with subjaxprs as ``p0``, ``p1``, and
Python objects as ``@name``. Effects are written for other tools and not read: they follow from the
primitives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn, TypeVar, cast

from effax.effects import Alloc, ArgIndex, Effect, SideEffect
from effax.ir.build import typing_of
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.field_types import type_mismatch
from effax.ir.primitive import ByReference, Primitive
from effax.ir.recursion import with_fresh_stack
from effax.ir.registry import Registry, own_primitives, own_remedy
from effax.ir.source import SavedSource
from effax.ir.symbolic import FREE, SymbolicScope
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.format import MOST_VARIABLES, REFERENCE, fields_of, lit_text, value_text
from effax.ir.text.lexer import LITERAL, Lexer
from effax.ir.text.parameter_parser import named_parameter, read_value
from effax.ir.text.printer import references
from effax.ir.types import Type

VERSION: Final = 1
_SUBJAXPR: Final = re.compile(r"p(\d+)(?!\w)", re.ASCII)


def to_json(jaxpr: Jaxpr, indent: int | None = None) -> str:
    """Return the program as a JSON text."""
    written: list[object] = []
    _write(jaxpr, _Names({}, {x: name for name, x in references(jaxpr).items()}), written)
    return json.dumps({"format": "effax", "version": VERSION, "programs": written}, indent=indent)


class _Names(NamedTuple):
    """The numbers of programs, and the names of objects by reference."""

    programs: dict[Jaxpr, int]
    objects: Mapping[ByReference, str]


@with_fresh_stack
def _write(jaxpr: Jaxpr, names: _Names, written: list[object]) -> int:
    programs = names.programs
    if jaxpr in programs:
        return programs[jaxpr]
    eqns: list[object] = []
    for prim, ins, outs, effects, source in jaxpr.eqns:
        numbers = [_write(inner, names, written) for inner in prim.subjaxprs()]
        known = names._replace(programs=dict(zip(prim.subjaxprs(), numbers, strict=True)))
        params = {f.name: _param(getattr(prim, f.name), known) for f in fields_of(prim)}
        eqn: dict[str, object] = {
            "prim": prim.name,
            "params": params,
            "ins": list(map(_atom, ins)),
            "outs": [[v.id, str(v.type)] for v in outs],
            "effects": [[e.word, _named(e, ins, outs)] for e in effects],
        }
        if source is not None:
            eqn["source"] = [source.file, source.line, source.function, list(source.scopes)]
        eqns.append(eqn)
    written.append(
        {
            "binders": [[v.id, str(v.type)] for v in jaxpr.binders],
            "n_consts": jaxpr.n_consts,
            "names": list(jaxpr.names),
            **({"out_names": list(jaxpr.out_names)} if jaxpr.out_names else {}),
            "eqns": eqns,
            "outs": list(map(_atom, jaxpr.outs)),
            "effects": [
                [e.word, e.detail if isinstance(e, SideEffect) else jaxpr.binders[e.ref].id]
                for e in jaxpr.effects
            ],
        }
    )
    programs[jaxpr] = len(written) - 1
    return programs[jaxpr]


def _named(effect: Effect[ArgIndex], ins: Sequence[Atom], outs: Sequence[Var]) -> object:
    """Return the number of an effect's variable, which is a result for an allocation."""
    if isinstance(effect, SideEffect):
        return effect.detail
    return outs[effect.ref].id if isinstance(effect, Alloc) else _atom(ins[effect.ref])


def _atom(atom: Atom) -> object:
    return {"lit": lit_text(atom)} if isinstance(atom, Lit) else atom.id


def _param(value: object, names: _Names) -> object:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Jaxpr):
        return {"program": names.programs[value]}
    text = value_text(value, lambda inner: f"p{names.programs[inner]}", names.objects)
    return {"text": text}


def from_json(
    text: str,
    primitives: Registry | None = None,
    references: Mapping[str, ByReference] | None = None,
    scope: SymbolicScope = FREE,
) -> Jaxpr:
    """Return the program that :func:`to_json` wrote.

    Args:
        text: the JSON text.
        primitives: primitives by name; by default the built-in ones; ``registry(Mine)`` adds more.
        references: Python objects by name, as for ``parse``.
        scope: the constraints of symbolic sizes.

    Raises:
        BadArgument: the text is not of this format, or an equation does not type check; the error
            names the part.
    """
    if not isinstance(text, str | bytes):
        _bad("from_json reads text", "a string", type(text).__name__)
    known = own_primitives() if primitives is None else primitives
    programs: list[Jaxpr] = []
    where = "the text"
    try:
        data = json.loads(text)
        if data["format"] != "effax" or data["version"] != VERSION:
            _bad("the text is of another format", f"effax, version {VERSION}")
        for i, entry in enumerate(data["programs"]):
            where = f"program {i}"
            programs.append(_Reader(known, programs, references or {}, scope).program(entry))
        return programs[-1]
    except BadArgument:
        raise
    except EffaxError as error:
        raise BadArgument(
            f"{where}: {error.what}", error.expected, error.found, error.remedy
        ) from error
    except UNREADABLE as error:
        raise BadArgument(
            f"{where} is not as `to_json` writes it", found=f"{type(error).__name__}: {error}"
        ) from error


UNREADABLE: Final = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""The errors that Python raises for data of another form than expected."""


def _bad(what: str, expected: str, found: str | None = None) -> NoReturn:
    raise BadArgument(what, expected, found)


class _Reader:
    """Reads one program, whose subjaxprs were read before it."""

    def __init__(
        self,
        primitives: Registry,
        programs: Sequence[Jaxpr],
        objects: Mapping[str, ByReference],
        symbols: SymbolicScope,
    ) -> None:
        self.symbols = symbols
        self.primitives = primitives
        self.programs = programs
        self.objects = objects
        self.scope: dict[int, Var] = {}

    def program(self, entry: Mapping[str, object]) -> Jaxpr:
        binders = [self.bind(b) for b in cast("list[object]", entry["binders"])]
        eqns = [self.eqn(e) for e in cast("list[Mapping[str, object]]", entry["eqns"])]
        outs = [self.atom(a) for a in cast("list[object]", entry["outs"])]
        names, out_names = (
            [_of(str, name) for name in cast("list[object]", entry.get(key, []))]
            for key in ("names", "out_names")
        )
        n_consts = _of(int, entry["n_consts"])
        if not 0 <= n_consts <= len(binders):
            _bad("n_consts is not so many inputs", f"at most {len(binders)}", str(n_consts))
        return Jaxpr(binders, eqns, outs, n_consts, names, out_names)

    def bind(self, entry: object) -> Var:
        number, type_ = cast("tuple[object, str]", entry)
        number = _of(int, number)
        if not 0 <= number < MOST_VARIABLES:
            _bad("a variable has no such number", f"at most {MOST_VARIABLES - 1}", str(number))
        if number in self.scope:
            _bad("a variable is bound twice", "a new number", str(number))
        v = self.scope[number] = Var(number, _type(type_, self.symbols))
        return v

    def atom(self, entry: object) -> Atom:
        if not isinstance(entry, dict):
            number = _of(int, entry)
            if number not in self.scope:
                _bad("a variable is not in scope", "one that is bound before", str(number))
            return self.scope[number]
        scan = Lexer(_of(str, entry["lit"]), self.symbols)
        found = scan.literal(scan.match(LITERAL, "a literal"))
        return _whole(scan, found)

    def eqn(self, entry: Mapping[str, object]) -> Eqn:
        name = cast(str, entry["prim"])
        cls = self.primitives.get(name)
        if cls is None:
            raise BadArgument(
                "unknown primitive",
                expected="a primitive of the registry",
                found=name,
                remedy=own_remedy("from_json"),
            )
        params: dict[str, object] = {}
        for field, written in cast("dict[str, object]", entry["params"]).items():
            value = params[field] = self.param(written, cls)
            wanted = type_mismatch(cls, field, value)
            if wanted is not None:
                _bad(f"{field} of {name} has another type", wanted, json.dumps(written))
        prim = cls(**params)
        ins = tuple(self.atom(a) for a in cast("list[object]", entry["ins"]))
        typing = typing_of(prim, tuple([a.type for a in ins]))
        outs = tuple(self.bind(b) for b in cast("list[object]", entry["outs"]))
        if tuple(v.type for v in outs) != typing.outs:
            shown = ", ".join(map(str, typing.outs))
            _bad(f"{name} has results of other types", shown, ", ".join(str(v.type) for v in outs))
        source = cast("tuple[str, int, str, list[str]] | None", entry.get("source"))
        saved = None if source is None else SavedSource(*source[:3], tuple(source[3]))
        return Eqn(prim, ins, outs, typing.effects, saved)

    def param(self, entry: object, owner: type[Primitive]) -> object:
        if not isinstance(entry, dict):
            return entry
        if "program" in entry:
            return self.subjaxpr(_of(int, entry["program"]))
        scan = Lexer(_of(str, entry["text"]), self.symbols)

        def nested() -> Jaxpr | ByReference | None:
            if scan.at(REFERENCE):
                return named_parameter(scan, self.objects)
            found = scan.looking(_SUBJAXPR)
            if found is None:
                return None
            scan.advance(found)
            return self.subjaxpr(int(found.group(1)))

        return _whole(scan, read_value(scan, owner, nested))

    def subjaxpr(self, number: int) -> Jaxpr:
        if not 0 <= number < len(self.programs):
            _bad(
                "no earlier program of this number", f"less than {len(self.programs)}", str(number)
            )
        return self.programs[number]


T = TypeVar("T")


def _of(kind: type[T], value: object) -> T:
    """Return the value, which must be an instance of exactly this class."""
    if type(value) is not kind:
        _bad("a value has another type", kind.__name__, json.dumps(value))
    return value


def _whole(scan: Lexer, value: T) -> T:
    """Return the value, which must be the whole text."""
    if scan.pos < len(scan.text):
        scan.fail("text follows the value", expected="the end of the text")
    return value


def _type(text: str, scope: SymbolicScope) -> Type:
    scan = Lexer(text, scope)
    return _whole(scan, scan.type())
