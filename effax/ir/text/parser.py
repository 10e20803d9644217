"""The parser: text to programs, the inverse of :mod:`effax.ir.text.printer`.

``parse(str(p)) == p``, for closed programs too. A statement ends at ``;``, or at a line that is not
indented deeper than it. The name of a variable is its number in letters; the result of a store,
``a[i] <- x``, has the next number. If a name that follows has that number, the variables of the
program are renumbered, in order. Effects follow from the
primitives; a signature may state them (``!{read a}``), and then they are checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final, Literal, NamedTuple, overload

from effax.effects.row import effect_text
from effax.ir.build import typing_of
from effax.ir.edit.alpha import renumbered_alone
from effax.ir.errors import BadArgument, EffaxError, TooDeep
from effax.ir.indexing import Indexer
from effax.ir.primitive import ByReference, Primitive
from effax.ir.prims.refs import AddUpdate, Get, Swap
from effax.ir.recursion import call_with_fresh_stack
from effax.ir.registry import NEAR, Registry, own_primitives, own_remedy
from effax.ir.syntax import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from effax.ir.text.constants import read_constant
from effax.ir.text.format import MOST_VARIABLES, REFERENCE
from effax.ir.text.lexer import IN, LITERAL, NAME, WORD, Lexer
from effax.ir.text.names import VAR_NAMES, var_number
from effax.ir.text.parameter_parser import (
    UNFIT,
    named_object,
    named_parameter,
    read_index,
    read_params,
    unfit,
)
from effax.ir.types import ArrayType, RefType, Type

_BINDER: Final = re.compile(r"([a-z]+):")
_PLACE: Final = re.compile(r"[a-z]+\[(?!\s*\w+=)")
PRIMITIVE: Final = re.compile(r"[^\s\[\](){},;]+")
_EFFECT: Final = re.compile(r"([a-z]+(?: [^\s,}]+)?)")
_NAMED: Final = re.compile(r"[^\W\d]\w*(?![\w.(\[{])")


@overload
def parse(
    text: str,
    primitives: Registry | None = ...,
    references: Mapping[str, object] | None = ...,
    *,
    closed: Literal[False] = ...,
) -> Jaxpr: ...
@overload
def parse(
    text: str,
    primitives: Registry | None = ...,
    references: Mapping[str, object] | None = ...,
    *,
    closed: Literal[True],
) -> ClosedJaxpr: ...
def parse(
    text: str,
    primitives: Registry | None = None,
    references: Mapping[str, object] | None = None,
    *,
    closed: bool = False,
) -> Jaxpr | ClosedJaxpr:
    """Return the program of a text.

    A text with the values of constants, ``let a:f32[] = 2.0 in`` before the program, is that of a
    closed program, and a ``ClosedJaxpr`` is returned.

    Args:
        text: a program in the form of ``str(jaxpr)``.
        primitives: primitives by name; by default the built-in ones; ``registry(Mine)`` adds more.
        references: Python objects by their names in the text (``@log``), as
            ``effax.ir.references`` returns them.
        closed: whether a program without constants is returned as a ``ClosedJaxpr`` too.

    Raises:
        ParseError: the text is not a program, or an equation does not type check; the error has the
            line and the column. Faults that span equations, such as the use of a freed reference,
            are left to ``effax.ir.check``.
        BadArgument: ``text`` is not a string.
    """
    if not isinstance(text, str):
        raise BadArgument("parse reads text", expected="a string", found=type(text).__name__)
    known = own_primitives() if primitives is None else primitives
    made = ProgramParser(text, known, references or {}).whole()
    return ClosedJaxpr(made, ()) if closed and isinstance(made, Jaxpr) else made


class _Scope:
    """The variables and equations of the program that is being read.

    Attributes:
        eqns: the equations.
        vars: the variables, by name.
        top: the greatest number of a variable.
        unwritten: the equations whose result has no name in the text, by its number.
        moved: those of them whose number is that of a name.
    """

    __slots__ = ("eqns", "moved", "top", "unwritten", "vars")

    def __init__(self) -> None:
        self.eqns: list[Eqn] = []
        self.vars: dict[str, Var] = {}
        self.top: int = -1
        self.unwritten: dict[int, int] = {}
        self.moved: list[int] = []

    def move(self) -> None:
        """Number the results without a name after all names."""
        for i in self.moved:
            self.top += 1
            (v,) = self.eqns[i].outs
            self.eqns[i] = self.eqns[i]._replace(outs=(Var(self.top, v.type),))


class _Result(NamedTuple):
    name: str
    type: Type
    pos: int


class _Constant(NamedTuple):
    name: str
    type: Type
    value: object


class _Place(NamedTuple):
    ref: Var
    indexer: Indexer
    operands: Sequence[Atom]


def primitive_named(
    name: str, primitives: Registry, scan: Lexer, pos: int, reader: str
) -> type[Primitive]:
    """Return a primitive of the registry. ``reader`` is the function that takes more of them.

    Raises:
        ParseError: the registry has no primitive of this name.
    """
    found = primitives.get(name)
    if found is None:
        close = get_close_matches(name, primitives, 1, NEAR)
        scan.fail(
            f"no primitive is called {name}",
            expected=f"`{close[0]}`" if close else "a primitive of the registry",
            found=f"`{name}`",
            remedy=own_remedy(reader),
            pos=pos,
        )
    return found


class ProgramParser:
    """The text, the primitives, and the programs named so far."""

    __slots__ = ("named", "objects", "primitives", "scan")

    def __init__(self, text: str, primitives: Registry, objects: Mapping[str, object]) -> None:
        self.scan: Lexer = Lexer(text)
        self.primitives: Registry = primitives
        self.objects: Mapping[str, object] = objects
        self.named: dict[str, Jaxpr] = {}

    def whole(self) -> Jaxpr | ClosedJaxpr:
        """Read ``let f = { ... } in`` for each constant and named program, then the program."""
        scan = self.scan
        constants: list[_Constant] = []
        while scan.at("let") and scan.take("let"):
            start = scan.pos
            if scan.looking(_BINDER):
                constants.append(self.constant())
                continue
            name = scan.match(WORD, "the name of a program").group()
            if name in self.named:
                scan.fail("two programs have one name", pos=start)
            scan.expect("=", "a named program")
            self.named[name] = self.program()
            scan.expect("in", "a named program")
        start = scan.pos
        jaxpr, moved = self.unordered()
        if scan.pos < len(scan.text):
            scan.fail("text follows the program", expected="the end of the text")
        made = self.close(jaxpr, constants, start) if constants else None
        final = renumbered_alone(jaxpr) if moved else jaxpr
        return final if made is None else ClosedJaxpr(final, made.consts)

    def constant(self) -> _Constant:
        """Read ``a:f32[] = 2.0 in``."""
        scan = self.scan
        name, type_, _ = self.binder()
        scan.expect("=", "a constant")
        if scan.at(REFERENCE) or not isinstance(type_, ArrayType):
            value = named_object(scan, self.objects)
        else:
            value = read_constant(scan, type_)
        scan.expect("in", "a constant")
        return _Constant(name, type_, value)

    def close(self, jaxpr: Jaxpr, constants: Sequence[_Constant], start: int) -> ClosedJaxpr:
        """Return the program with its constants. Raises ParseError if it has others."""
        wanted = [f"{v!r}" for v in jaxpr.binders[: jaxpr.n_consts]]
        found = [f"{name}:{type_}" for name, type_, _ in constants]
        if wanted != found:
            self.scan.fail(
                "the program has other constants than those before it",
                expected=" ".join(found),
                found=" ".join(wanted) or "none",
                pos=start,
            )
        return ClosedJaxpr(jaxpr, tuple([value for _, _, value in constants]))

    def program(self) -> Jaxpr:
        """Read ``{ lambda consts; inputs. let equations in (results) }``."""
        jaxpr, moved = self.unordered()
        return renumbered_alone(jaxpr) if moved else jaxpr

    def unordered(self) -> tuple[Jaxpr, bool]:
        """Read a program; also return whether its variables have to be renumbered."""
        scan, scope = self.scan, _Scope()
        scan.expect("{", "a program")
        scan.expect("lambda", "a program")
        consts = self.bind(scope, self.binders())
        scan.expect(";", "the list of constants")
        inputs = self.bind(scope, self.binders())
        scan.expect(".", "the list of inputs")
        start = scan.pos
        row = self.effects() if scan.take("!") else None
        scan.expect("let", "a program")
        while not scan.looking(IN):
            if scan.pos == len(scan.text):
                scan.fail("a program has no results", expected="`in (...)`")
            self.statement(scope)
            scan.take(";")
        scan.match(IN, "`in`")
        outs = self.results(scope)
        scan.expect("}", "a program")
        scope.move()
        jaxpr = Jaxpr([*consts, *inputs], scope.eqns, outs, len(consts))
        if row is not None:
            self.check_effects(jaxpr, row, start)
        return jaxpr, bool(scope.moved)

    def binders(self) -> list[_Result]:
        """Read typed variables, ``a:f32[3] b:Ref{f32[]}``, as many as there are."""
        found: list[_Result] = []
        while self.scan.looking(_BINDER):
            found.append(self.binder())
        return found

    def binder(self) -> _Result:
        """Read a typed variable."""
        start = self.scan.pos
        name = self.scan.match(_BINDER, "a typed variable").group(1)
        return _Result(name, self.scan.type(), start)

    def bind(self, scope: _Scope, binders: Sequence[_Result]) -> list[Var]:
        """Bring variables into scope and return them."""
        made: list[Var] = []
        for name, type_, pos in binders:
            number = var_number(name)
            if number is None:
                self.scan.fail(
                    "invalid name of a variable", expected="a, b, ..., z, ba, bb, ...", pos=pos
                )
            if number >= MOST_VARIABLES:
                self.scan.fail(
                    "a variable's name is its number in letters, and this number is too large",
                    expected=f"at most {len(VAR_NAMES[MOST_VARIABLES - 1])} letters",
                    pos=pos,
                )
            if name in scope.vars:
                self.scan.fail("a variable is bound a second time", expected="a new name", pos=pos)
            if number in scope.unwritten:
                scope.moved.append(scope.unwritten.pop(number))
            v = scope.vars[name] = Var(number, type_)
            scope.top = max(scope.top, number)
            made.append(v)
        return made

    def effects(self) -> list[str]:
        """Read an effect row, ``{read a, accum b}``."""
        scan, found = self.scan, list[str]()
        scan.expect("{", "an effect row")
        while not scan.take("}"):
            found.append(scan.match(_EFFECT, "an effect").group())
            scan.take(",")
        return found

    def check_effects(self, jaxpr: Jaxpr, row: list[str], pos: int) -> None:
        """Raise ParseError unless the row is that of the equations."""
        real = [effect_text(e, lambda i: VAR_NAMES[jaxpr.binders[i].id]) for e in jaxpr.effects]
        if sorted(real) != sorted(row):
            self.scan.fail(
                "the signature does not have the effects of the program",
                expected=f"!{{{', '.join(real)}}}",
                pos=pos,
            )

    def results(self, scope: _Scope) -> list[Atom]:
        """Read the results, after ``in (``."""
        outs: list[Atom] = []
        while not self.scan.take(")"):
            outs.append(self.atom(scope))
            if not self.scan.take(",") and not self.scan.at(")"):
                self.scan.fail("unexpected text in the results", expected="`,` or `)`")
        return outs

    def atom(self, scope: _Scope) -> Atom:
        """Read a literal, or a variable in scope."""
        found = self.scan.looking(LITERAL)
        return self.variable(scope) if found is None else self.scan.literal(found)

    def variable(self, scope: _Scope) -> Var:
        """Read a variable in scope."""
        start = self.scan.pos
        name = self.scan.match(NAME, "a variable or a literal").group()
        v = scope.vars.get(name)
        if v is None:
            self.scan.fail(
                f"{name} is not in scope",
                expected="a variable that is bound before",
                found=f"`{name}`",
                pos=start,
            )
        return v

    def statement(self, scope: _Scope) -> None:
        """Read an equation, in the notation of references or of applications."""
        scan, start = self.scan, self.scan.pos
        if scan.looking(_PLACE):
            self.write(scope, start)
            return
        line, column = scan.line_start, scan.column
        results = self.binders()
        if not results or scan.take("="):
            self.application(scope, results, start, (line, column))
        elif scan.take("<-"):
            ref, indexer, operands = self.place(scope)
            self.emit(scope, Get(indexer), [ref, *operands], results, start)
        else:
            scan.expect(",", "an equation")
            self.swap(scope, results, start)

    def write(self, scope: _Scope, start: int) -> None:
        """Read ``b[i] <- v`` or ``b[i] += v``."""
        ref, indexer, operands = self.place(scope)
        if self.scan.take("+="):
            prim: AddUpdate | Swap = AddUpdate(indexer)
            results: list[_Result] | None = []
        else:
            self.scan.expect("<-", "a write")
            prim, results = Swap(indexer), None
        value = self.atom(scope)
        self.emit(scope, prim, [ref, value, *operands], results, start)

    def swap(self, scope: _Scope, results: list[_Result], start: int) -> None:
        """Read ``b[i] <- b[i], v``, after ``x:f32[], ``."""
        target = self.place(scope)
        self.scan.expect("<-", "a swap")
        here = self.scan.pos
        if self.place(scope) != target:
            self.scan.fail("a swap reads and writes two places", expected="one place", pos=here)
        self.scan.expect(",", "a swap")
        ins = [target.ref, self.atom(scope), *target.operands]
        self.emit(scope, Swap(target.indexer), ins, results, start)

    def place(self, scope: _Scope) -> _Place:
        """Read a reference and an index."""
        start = self.scan.pos
        ref = self.variable(scope)
        if not isinstance(ref.type, RefType):
            self.scan.fail(
                "only references are read and written in place",
                expected="a reference",
                found=str(ref.type),
                pos=start,
            )
        indexer, operands = read_index(self.scan, ref.type.shape, lambda: self.atom(scope))
        return _Place(ref, indexer, operands)

    def application(
        self, scope: _Scope, results: list[_Result], start: int, begun: tuple[int, int]
    ) -> None:
        """Read ``mul a b``, or with parameters; ``begun`` is the statement's line and column."""
        scan = self.scan
        here = scan.pos
        name = scan.match(PRIMITIVE, "a primitive").group()
        cls = primitive_named(name, self.primitives, scan, here, "parse")
        prim = read_params(scan, cls, self.nested, here)
        ins: list[Atom] = []
        line, column = begun
        while not (
            scan.at(";")
            or scan.pos == len(scan.text)
            or (scan.line_start > line and scan.column <= column)
            or scan.looking(IN)
        ):
            ins.append(self.atom(scope))
        self.emit(scope, prim, ins, results, start)

    def nested(self) -> Jaxpr | ByReference | None:
        """Read a program, written out or by name, or an object's name, if one is next."""
        if self.scan.at(REFERENCE):
            return named_parameter(self.scan, self.objects)
        if self.scan.at("{"):
            start = self.scan.pos
            try:
                return call_with_fresh_stack(self.program)
            except TooDeep as error:
                self.scan.failed(error, start)
        named = self.scan.looking(_NAMED)
        jaxpr = self.named.get(named.group()) if named else None
        if named and jaxpr is not None:
            self.scan.advance(named)
        return jaxpr

    def emit(
        self,
        scope: _Scope,
        prim: Primitive,
        ins: Sequence[Atom],
        results: list[_Result] | None,
        start: int,
    ) -> None:
        """Append an equation; ``results`` is None if its one result is not written."""
        try:
            typing = typing_of(prim, tuple([a.type for a in ins]))
        except EffaxError as error:
            self.scan.failed(error, start)
        except UNFIT as error:
            unfit(self.scan, prim, error, start)
        is_written = results is not None
        if results is None:
            (type_,) = typing.outs
            results = [_Result(VAR_NAMES[scope.top + 1], type_, start)]
        written = tuple(r.type for r in results)
        if written != typing.outs:
            self.scan.fail(
                f"{prim.name} does not have results of these types",
                expected=", ".join(map(str, typing.outs)) or "no results",
                found=", ".join(map(str, written)) or "no results",
                pos=start,
            )
        outs = tuple(self.bind(scope, results))
        if not is_written:
            del scope.vars[results[0].name]
            scope.unwritten[outs[0].id] = len(scope.eqns)
        scope.eqns.append(Eqn(prim, tuple(ins), outs, typing.effects))
