"""Rewrite rules as text, and back: ``parse_rule(str(rule)) == rule``.

::

    'x + x = 2x' for float: add(x, x) => mul(2, x)
    'matmul of transposes' for any: dot&outer(transpose[..., permutation=?p](x), y) => @turned
    'load of what was stored' for any: o = swap(r, x, [i]); v = get(r, [i]);
        => o = swap(r, x, [i]); v = x;

Functions are written by name, and passed to ``parse_rule``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, cast

from effax.ir.errors import BadArgument, EffaxError
from effax.ir.primitive import ByReference, Primitive
from effax.ir.registry import NEAR, Registry, own_primitives, own_remedy
from effax.ir.syntax import Jaxpr
from effax.ir.text.format import LABEL, fresh_words, label_text, params_of, value_text
from effax.ir.text.lexer import LITERAL, NUMBER, WORD
from effax.ir.text.parameter_parser import UNFIT, named_object, read_string, read_value, unfit
from effax.ir.text.parser import PRIMITIVE, ProgramParser
from effax.ir.text.printer import on_one_line
from effax.transforms.optimize.hole_types import TYPE_TEXT
from effax.transforms.optimize.matcher import Match
from effax.transforms.optimize.patterns import (
    ANY,
    AnyNumber,
    App,
    At,
    Body,
    Hole,
    Let,
    Number,
    Param,
    Pattern,
    Rest,
    Seq,
    parts,
)
from effax.transforms.optimize.rewrite_rule import RewriteRule, Right, Sample

Functions = Mapping[object, str]
"""The names of functions and of objects that are parameters."""

_HOLE_TYPE: Final = re.compile(TYPE_TEXT)
_APP: Final = re.compile(rf"({PRIMITIVE.pattern.replace('{},;', '{},;&!')})(?=&|!|\[|\()")
_NAMES: Final = re.compile(r"([^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*)\s*=(?![=>])")
_WORDS: Final = {"True": True, "False": False}


def functions_of(rule: RewriteRule) -> dict[str, Callable[[Match], object]]:
    """Return the functions of a rule, and objects that are parameters, by name."""
    return {name: cast("Callable[[Match], object]", f) for f, name in _names(rule).items()}


def _names(rule: RewriteRule) -> dict[object, str]:
    found: dict[object, None] = {}
    sides: list[Pattern | Seq] = [rule.left]
    if isinstance(rule.right, Pattern | Seq):
        sides.append(rule.right)
    else:
        found[rule.right] = None
    if rule.where is not None:
        found[rule.where] = None
    sides += [sample.left for sample in rule.samples if isinstance(sample, Sample)]
    for part in (part for side in sides for part in parts(side)):
        if isinstance(part, App) and isinstance(part.prim, Primitive):
            fields = [getattr(part.prim, field) for field in part.prim.by_reference]
            found.update((x, None) for x in fields if isinstance(x, ByReference))
    fresh = fresh_words(frozenset())
    return {x: fresh(_label(x)) for x in found}


def _label(x: object) -> str:
    name: object = x.label if isinstance(x, ByReference) else getattr(x, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else "function"


def rule_text(rule: RewriteRule) -> str:
    """Return a rule as text."""
    names = _names(rule)
    families = "any" if rule.families == ANY else "|".join(sorted(rule.families))
    right = rule.right
    parts_ = [
        f"{rule.name!r} for {families}: {side_text(rule.left, names)} =>",
        side_text(right, names) if isinstance(right, Pattern | Seq) else f"@{names[right]}",
    ]
    if rule.where is not None:
        parts_.append(f"where @{names[rule.where]}")
    parts_ += [f"sample {_sample_text(sample, names)}" for sample in rule.samples]
    return " ".join(parts_)


def _sample_text(sample: Sample | Jaxpr, names: Functions) -> str:
    if isinstance(sample, Jaxpr):
        return on_one_line(sample)
    dtype = "" if sample.dtype is None else f" dtype {sample.dtype}"
    return f"{pattern_text(sample.left, names)} shape {_value(sample.shape, names)}{dtype}"


def side_text(side: Pattern | Seq, names: Functions | None = None) -> str:
    """Return one side of a rule; each step of a sequence ends with a semicolon."""
    if not isinstance(side, Seq):
        return pattern_text(side, names)
    return " ".join([f"{_step_text(step, names)};" for step in side.steps]) or ";"


def _step_text(step: Let, names: Functions | None) -> str:
    value = pattern_text(step.value, names)
    return f"{', '.join(step.names)} = {value}" if step.names else value


def pattern_text(pattern: Pattern, names: Functions | None = None) -> str:
    """Return a pattern as text."""
    if not isinstance(pattern, App):
        return str(pattern)
    text = pattern.prim.name + (f"&{pattern.name}" if pattern.name else "")
    text += _params_text(pattern, names or {})
    if pattern.effects is not None:
        text += f"!{{{', '.join(sorted(pattern.effects))}}}"
    text += f"({', '.join([pattern_text(a, names) for a in pattern.args])})"
    text += f":{pattern.type}" if pattern.type else ""
    return text + "".join([_body_text(body, names) for body in pattern.bodies])


def _params_text(app: App, names: Functions) -> str:
    if isinstance(app.prim, Primitive):
        items = [
            f"{shown}={label_text(value) if field == LABEL else _value(value, names)}"
            for shown, field, value in params_of(app.prim)
        ]
        return f"[{' '.join(items)}]"
    shown = [
        f"{name}={value if isinstance(value, Param) else _value(value, names)}"
        for name, value in app.params
    ]
    return f"[..., {' '.join(shown)}]" if shown else ""


def _value(value: object, names: Functions) -> str:
    own = {x: name for x, name in names.items() if isinstance(x, ByReference)}
    return value_text(value, on_one_line, own)


def _body_text(body: Body, names: Functions | None) -> str:
    def several(patterns: Iterable[Pattern]) -> str:
        return ", ".join([pattern_text(p, names) for p in patterns])

    items = [
        "" if body.ins is None else f"({several(body.ins)})",
        "" if body.outs is None else f"-> ({several(body.outs)})",
        f"has {several(body.contains)}" if body.contains else "",
        ("with " + ", ".join([f"{n} := {pattern_text(p, names)}" for n, p in body.replace]))
        if body.replace
        else "",
    ]
    return f"{{{' '.join([item for item in items if item])}}}"


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
        if scan.take("#"):
            return AnyNumber(self.word("a number"), self.hole_type())
        if scan.take("*"):
            return Rest(self.word("the rest"))
        if scan.take("["):
            made = At(self.word("an index"))
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
        found = self.primitives.get(name)
        if found is None:
            close = get_close_matches(name, self.primitives, 1, NEAR)
            scan.fail(
                f"no primitive is called {name}",
                expected=f"`{close[0]}`" if close else "a primitive of the registry",
                found=f"`{name}`",
                remedy=own_remedy("parse_rule"),
                pos=start,
            )
        return found

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
            while not scan.at("}"):
                name = self.word("an application")
                scan.expect(":=", "a replacement")
                replace[name] = self.pattern()
                self.comma("}")
        scan.expect("}", "a body")
        try:
            return Body(
                cast("Sequence[Hole | Rest] | None", ins),
                outs,
                cast("Sequence[App]", contains),
                replace,
            )
        except EffaxError as error:
            scan.failed(error, start)

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
