"""Rewrite rules from text: ``parse_rule(str(rule), references=rule.references) == rule``.

Functions are written by name, and passed to ``parse_rule``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from effax.ir.errors import BadArgument, EffaxError
from effax.ir.primitive import Primitive
from effax.ir.registry import Registry, own_primitives
from effax.ir.syntax import Jaxpr
from effax.ir.text.format import LABEL
from effax.ir.text.lexer import LITERAL, NUMBER, WORD
from effax.ir.text.parameter_parser import UNFIT, named_object, read_string, read_value, unfit
from effax.ir.text.parser import PRIMITIVE, ProgramParser, primitive_named
from effax.transforms.optimize.hole_types import TYPE_TEXT
from effax.transforms.optimize.holes import AnyNumber, Hole, IndexHole, Number, Param, Rest
from effax.transforms.optimize.matcher import Match
from effax.transforms.optimize.patterns import ANY, App, Body, Let, Pattern, Sample, Seq
from effax.transforms.optimize.rewrite_rule import RewriteRule, Right

_HOLE_TYPE: Final = re.compile(TYPE_TEXT)
_APP: Final = re.compile(rf"({PRIMITIVE.pattern.replace('{},;', '{},;:&!')})(?=&|!|\[|\()")
_NAMES: Final = re.compile(r"([^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*)\s*=(?![=>])")
_WORDS: Final = {"True": True, "False": False}


def parse_rule(
    text: str,
    primitives: Registry | None = None,
    references: Mapping[str, object] | None = None,
) -> RewriteRule:
    """Return the rule of a text, the inverse of ``str(rule)``.

    >>> rule = parse_rule("'double' for float: add(x, x) => mul(2, x)")
    >>> print(rule)
    'double' for float: add(x, x) => mul(2, x)

    Args:
        text: the text.
        primitives: primitives by name; by default the built-in ones; ``registry(Mine)`` adds more.
        references: the functions by their names in the text (``@turned``), as ``rule.references``
            returns them.

    Raises:
        ParseError: the text is not a rule; the error has the line and the column.
        BadArgument: ``text`` is not a string, or the rule is invalid.
    """
    if not isinstance(text, str):
        raise BadArgument("parse_rule reads text", expected="a string", found=type(text).__name__)
    known = own_primitives() if primitives is None else primitives
    return _RuleParser(text, known, references or {}).rule()


class _RuleParser:
    """The text of a rule, and a position in it."""

    def __init__(self, text: str, primitives: Registry, objects: Mapping[str, object]) -> None:
        self.programs = ProgramParser(text, primitives, objects)
        self.scan = self.programs.scan
        self.primitives = primitives
        self.objects = objects

    def rule(self) -> RewriteRule:
        """Read the whole rule."""
        scan = self.scan
        name = read_string(scan)
        scan.expect("for", "a rule")
        families = self.families()
        scan.expect(":", "a rule")
        left = self.side()
        scan.expect("=>", "a rule")
        right = self.function() if scan.at("@") else self.side()
        where = self.function() if scan.take("where") else None
        samples: list[Sample | Jaxpr] = []
        while scan.take("sample"):
            samples.append(self.sample())
        if scan.pos < len(scan.text):
            scan.fail("text follows the rule", expected="`where`, `sample` or the end of the text")
        return RewriteRule(
            cast(str, name),
            cast("App", left),
            cast("Right", right),
            families,
            cast("Callable[[Match], bool] | None", where),
            tuple(samples),
        )

    def families(self) -> frozenset[str]:
        """Read ``float|complex`` or ``any``."""
        found = [self.word("a family")]
        while self.scan.take("|"):
            found.append(self.word("a family"))
        return ANY if found == ["any"] else frozenset(found)

    def word(self, what: str) -> str:
        """Read a word."""
        return self.scan.match(WORD, what).group()

    def function(self) -> object:
        """Read the name of a function."""
        start = self.scan.pos
        found = named_object(self.scan, self.objects)
        if not callable(found):
            self.scan.fail("the object of this name is no function", pos=start)
        return found

    def side(self) -> Pattern | Seq:
        """Read a pattern, or the steps of a sequence."""
        scan = self.scan
        if scan.take(";"):
            return Seq()
        first = self.step()
        if not first.names and not scan.at(";"):
            return first.value
        scan.expect(";", "a sequence")
        steps = [first]
        while not (scan.at("=>") or scan.pos == len(scan.text) or scan.looking(_END)):
            steps.append(self.step())
            scan.expect(";", "a sequence")
        return _sequence(steps)

    def step(self) -> Let:
        """Read ``v = get(r, [i])``, with or without names."""
        named = self.scan.looking(_NAMES)
        if named is None:
            return Let((), self.pattern())
        self.scan.advance(named)
        names = [name.strip() for name in named.group(1).split(",")]
        return Let(names, self.pattern())

    def pattern(self) -> Pattern:
        """Read a pattern."""
        scan = self.scan
        if scan.take("$"):
            return AnyNumber(self.word("a number"), self.hole_type())
        if scan.take("*"):
            return Rest(self.word("the rest"))
        if scan.take("["):
            anywhere = scan.take("~")
            made = IndexHole(self.word("an index"), not anywhere)
            scan.expect("]", "an index")
            return made
        number = scan.looking(NUMBER)
        if number is not None and scan.looking(LITERAL) is None:
            return Number(scan.number(number))
        if scan.looking(_APP):
            return self.application()
        word = self.word("a pattern")
        return Number(_WORDS[word]) if word in _WORDS else Hole(word, self.hole_type())

    def hole_type(self) -> str:
        """Read the type of a hole, if there is one."""
        if not self.scan.take(":"):
            return ""
        return self.scan.match(_HOLE_TYPE, "the type of a hole").group().strip()

    def application(self) -> App:
        """Read ``transpose&outer[..., permutation=?p]!{}(x):f32[...]{...}``."""
        scan, start = self.scan, self.scan.pos
        kind = self.kind()
        name = self.word("the name of an application") if scan.take("&") else ""
        prim, params = self.params(kind)
        effects = self.effects() if scan.take("!") else None
        scan.expect("(", "an application")
        args: list[Pattern] = []
        while not scan.take(")"):
            args.append(self.pattern())
            self.comma(")")
        type_ = self.hole_type()
        bodies: list[Body] = []
        while scan.take("{"):
            bodies.append(self.body())
        try:
            return App(
                prim,
                *args,
                name=name,
                type=type_,
                params=params,
                bodies=bodies,
                effects=effects,
            )
        except EffaxError as error:
            scan.failed(error, start)

    def kind(self) -> type[Primitive]:
        """Read the name of a primitive."""
        scan, start = self.scan, self.scan.pos
        name = scan.match(_APP, "a primitive").group(1)
        return primitive_named(name, self.primitives, scan, start, "parse_rule")

    def params(
        self, kind: type[Primitive]
    ) -> tuple[Primitive | type[Primitive], list[tuple[str, object]]]:
        """Read the parameters of an instance, or conditions on some: ``[..., axes=?a]``."""
        scan, start = self.scan, self.scan.pos
        if not scan.take("["):
            return kind, []
        partial = scan.take("...") and scan.take(",")
        values: list[tuple[str, object]] = []
        while not scan.take("]"):
            name = self.word("a parameter")
            field = LABEL if name == "name" else name
            scan.expect("=", "a parameter")
            values.append((field if not partial else name, self.value(kind, field)))
        if partial:
            return kind, values
        try:
            return kind(**dict(values)), []
        except EffaxError as error:
            scan.failed(error, start)
        except UNFIT as error:
            unfit(scan, kind, error, start)

    def value(self, kind: type[Primitive], field: str) -> object:
        """Read the value of a parameter, or ``?p``."""
        if self.scan.take("?"):
            return Param(self.word("a parameter"))
        if field == LABEL and self.scan.looking(WORD):
            return self.word("a label")
        return read_value(self.scan, kind, self.programs.nested)

    def effects(self) -> list[str]:
        """Read ``{read, write}``."""
        self.scan.expect("{", "the effects")
        found: list[str] = []
        while not self.scan.take("}"):
            found.append(self.word("an effect"))
            self.comma("}")
        return found

    def comma(self, end: str) -> None:
        """Read a comma, unless the end is next."""
        if not self.scan.take(",") and not self.scan.at(end):
            self.scan.fail("unexpected text in a pattern", expected=f"`,` or `{end}`")

    def several(self) -> list[Pattern]:
        """Read ``(x, y)``."""
        self.scan.expect("(", "a body")
        found: list[Pattern] = []
        while not self.scan.take(")"):
            found.append(self.pattern())
            self.comma(")")
        return found

    def body(self) -> Body:
        """Read ``(c, x) -> (add(c, x)) has exp(x) with e := y}``."""
        scan, start = self.scan, self.scan.pos
        ins = self.several() if scan.at("(") else None
        outs = self.several() if scan.take("->") else None
        contains: list[Pattern] = []
        replace: dict[str, Pattern] = {}
        if scan.take("has"):
            contains.append(self.pattern())
            while scan.take(","):
                contains.append(self.pattern())
        if scan.take("with"):
            replace.update([self.replacement()])
            while scan.take(","):
                replace.update([self.replacement()])
        invariant = [self.word("an operand")] if scan.take("of") else []
        while invariant and scan.take(","):
            invariant.append(self.word("an operand"))
        scan.expect("}", "a body")
        try:
            return Body(
                cast("Sequence[Hole | Rest] | None", ins),
                outs,
                cast("Sequence[App]", contains),
                replace,
                invariant,
            )
        except EffaxError as error:
            scan.failed(error, start)

    def replacement(self) -> tuple[str, Pattern]:
        """Read ``e := h``."""
        name = self.word("an application")
        self.scan.expect(":=", "a replacement")
        return name, self.pattern()

    def sample(self) -> Sample | Jaxpr:
        """Read an instance of the left side, with its shape and dtype; or a program."""
        scan, start = self.scan, self.scan.pos
        program = self.programs.nested() if scan.at("{") else None
        if isinstance(program, Jaxpr):
            return program
        left = self.pattern()
        scan.expect("shape", "a sample")
        shape = read_value(scan, Sample, self.programs.nested)
        dtype = self.word("a dtype") if scan.take("dtype") else None
        if not isinstance(left, App) or not isinstance(shape, tuple):
            scan.fail("invalid sample", expected="`add(x, x) shape (3,)`", pos=start)
        return Sample(left, shape, dtype)


_END: Final = re.compile(r"(?:where|sample)\b")


def _sequence(steps: Iterable[Let]) -> Seq:
    made = Seq()
    object.__setattr__(made, "steps", tuple(steps))
    return made
