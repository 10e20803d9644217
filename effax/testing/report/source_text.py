"""Values as source that makes them again: expressions, and the imports that these need.

What has a name in a module is imported from there. What has none (a lambda, a local function)
cannot be written down: a comment says what is to be put in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import partial
from inspect import Parameter, signature
from keyword import iskeyword
from pathlib import Path
from textwrap import indent
from types import MethodType

import numpy as np
from pyrsistent import PMap

from effax.extend.parameters import unwritten
from effax.ir.analysis.queries import walk
from effax.ir.primitive import Primitive
from effax.ir.registry import own_primitives, registry
from effax.ir.syntax import Jaxpr
from effax.ir.text.format import fields_of
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.ir.types import ArrayType, RefType, array_type, ref_type
from effax.testing.generate.values import shown
from effax.testing.laws.pass_set import Passes
from effax.testing.report.import_path import PLAIN, ImportPath, place_of
from effax.transforms.framework.rules import RuleSet
from effax.transforms.optimize.rewrite import Hole, Number, Rewriting, rewriting
from effax.transforms.rules.default import DEFAULT_RULES


class Written:
    """Source that is being written: the imports so far, and what could not be imported.

    Attributes:
        imports: the names that are used, by module.
        notes: a line on each name that the reader has to define.
        unread: the parameters in texts of programs that have no text that is read back.
        homes: what is in files of tests, which nobody imports, by module.
    """

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        self.imports: dict[str, dict[str, str]] = {}
        self.notes: dict[str, str] = {}
        self.unread: dict[str, None] = {}
        self.homes: dict[str, dict[str, None]] = {}
        self._taken: dict[str, object] = {}
        self._taken.update(dict.fromkeys(taken))

    def head(self) -> list[str]:
        """The lines that come first."""
        found = []
        own = sys.stdlib_module_names
        for module, names in sorted(self.imports.items(), key=lambda x: (x[0] not in own, x[0])):
            whole = names.get("")
            if whole is not None:
                found.append(f"import {module} as {whole}")
            parts = [
                name if name == short else f"{name} as {short}"
                for name, short in sorted(names.items())
                if name
            ]
            if parts:
                found.append(f"from {module} import {', '.join(parts)}")
        notes = [
            f"# Add this test to {module.rpartition('.')[2]}.py, which has {', '.join(names)}."
            for module, names in sorted(self.homes.items())
        ]
        notes += [
            f"# Define {name} here: {what}, which cannot be imported."
            for name, what in sorted(self.notes.items())
        ]
        notes += [f"# {line}, which is not read back." for line in self.unread]
        return [*found, *(["", *notes] if notes else [])]

    def of(self, value: object, hint: str = "value") -> str:
        """An expression for a value; ``hint`` names what can be written in no other way."""
        place = place_of(value)
        if place is not None:
            return self._name(place)
        if type(value) in PLAIN:
            finite = not isinstance(value, (float, complex)) or np.isfinite(value)
            return repr(value) if finite else f"{type(value).__name__}('{value}')"
        return self._structured(value, hint)

    def _structured(self, value: object, hint: str) -> str:
        match value:
            case Jaxpr():
                return self.program(value)
            case Passes():
                return self._passes(value)
            case PMap() if dict(own_primitives()).items() <= dict(value).items():
                mine = [x for name, x in value.items() if own_primitives().get(name) is not x]
                return f"{self.of(registry)}({', '.join([self.of(x) for x in mine])})"
            case RuleSet():
                return self._rules(value)
            case Rewriting():
                rules = ", ".join([self.of(rule) for rule in value.rules])
                return f"{self.of(rewriting)}([{rules}])"
            case ArrayType() | RefType():
                return self._type(value)
            case np.dtype():
                return f"{self._module('numpy', 'np')}.dtype({value.name!r})"
            case np.ndarray():
                self._module("numpy", "np")
                return shown(value)
            case Enum():
                return f"{self.of(type(value))}.{value.name}"
            case partial():
                args = [self.of(x, hint) for x in (value.func, *value.args)]
                args += [f"{k}={self.of(x, k)}" for k, x in value.keywords.items()]
                return f"{self.of(partial)}({', '.join(args)})"
            case MethodType():
                return f"{self.of(value.__self__, hint)}.{value.__func__.__name__}"
            case _:
                return self._compound(value, hint)

    def program(self, jaxpr: Jaxpr) -> str:
        """A program, as the text that is read back."""
        text = str(jaxpr)
        quoted = f"'''\n{indent(text, '        ')}\n    '''"
        raw = "r" if "\\" in text else ""
        args = [raw + quoted if "'''" not in text else repr(text)]
        prims = dict.fromkeys(type(place.eqn.prim) for place in walk(jaxpr))
        known = own_primitives()
        mine = [self.of(prim) for prim in prims if known.get(prim.name) is not prim]
        for prim in {place.eqn.prim: None for place in walk(jaxpr)}:
            if known.get(prim.name) is type(prim):
                continue
            for f in fields_of(prim):
                bad = unwritten(getattr(prim, f.name), type(prim))
                if bad is not None:
                    line = f"`{f.name}` of {prim.name} is {bad[0]}".replace("\n", " ")
                    self.unread[line] = None
        if mine:
            args.append(f"{self.of(registry)}({', '.join(mine)})")
        objects = references(jaxpr)
        if objects:
            args.append(f"references={self.of(objects)}")
        return f"{self.of(parse)}({', '.join(args)})"

    def _type(self, value: ArrayType | RefType) -> str:
        if isinstance(value, RefType):
            return f"{self.of(ref_type)}({self._type(value.inner)}, {self.of(value.kind)})"
        weak = ", weak=True" if value.weak else ""
        return f"{self.of(array_type)}({value.shape}, {value.dtype.name!r}{weak})"

    def _passes(self, value: Passes) -> str:
        given = []
        for field in fields(Passes):
            part = getattr(value, field.name)
            if field.name == "rules":
                if part != DEFAULT_RULES:
                    given.append(f"rules={self.of(part)}")
            elif part is not field.default:
                given.append(f"{field.name}={self.of(part, field.name)}")
        return f"{self.of(Passes)}({', '.join(given)})"

    def _rules(self, rules: RuleSet) -> str:
        """The library's book, with what differs from it."""
        own = DEFAULT_RULES
        text = self.of(own)
        for prim, found in sorted(rules.rules.items(), key=lambda item: item[0].name):
            right = own.rules.get(prim)
            if right == found:
                continue
            place = place_of(found)
            if place is not None or right is None:
                new = self.of(found, "rules")
            else:
                differ = [
                    f"{f.name}={self.of(getattr(found, f.name), f'{prim.name}_{f.name}')}"
                    for f in fields(found)
                    if getattr(found, f.name) != getattr(right, f.name)
                ]
                args = ", ".join([f"{self.of(own)}.rules[{self.of(prim)}]", *differ])
                new = f"{self.of(replace)}({args})"
            text = f"{text}.extend({self.of(prim)}, {new})"
        return text

    def _compound(self, value: object, hint: str) -> str:
        cls = type(value)
        named = getattr(value, "_fields", None)
        if isinstance(value, tuple) and named is not None:
            parts = [f"{n}={self.of(getattr(value, n), n)}" for n in named]
            return f"{self.of(cls)}({', '.join(parts)})"
        if cls in (tuple, list):
            items = [self.of(x, hint) for x in value]  # type: ignore[attr-defined]  # of a sequence
            text = ", ".join(items) + ("," if cls is tuple and len(items) == 1 else "")
            return f"({text})" if cls is tuple else f"[{text}]"
        if cls in (set, frozenset):
            items = sorted(self.of(x, hint) for x in value)  # type: ignore[attr-defined]  # of a set
            text = f"{{{', '.join(items)}}}" if items else ""
            return text if cls is set and items else f"{cls.__name__}({text})"
        if isinstance(value, Mapping):
            items = [f"{self.of(k, hint)}: {self.of(x, hint)}" for k, x in value.items()]
            return f"{{{', '.join(items)}}}"
        if isinstance(value, Hole | Number):
            content = value.name if isinstance(value, Hole) else value.value
            return f"{self.of(cls)}({self.of(content)})"
        if is_dataclass(value) and not isinstance(value, type):
            parts = [*self._arguments(value)]
            return f"{self.of(cls, cls.__name__)}({', '.join(parts)})"
        if isinstance(value, Primitive):
            return f"{self.of(cls, cls.__name__)}()"
        return self._unknown(value, hint)

    def _arguments(self, value: object) -> Iterator[str]:
        """The arguments of the class that make an instance of it, whose attributes they are."""
        for name, parameter in signature(type(value)).parameters.items():
            part = getattr(value, name)
            if parameter.kind is Parameter.VAR_POSITIONAL:
                yield from [self.of(one, name) for one in part]
            elif parameter.kind is Parameter.POSITIONAL_ONLY or _is_before_more(value, name):
                yield self.of(part, name)
            elif not _same(part, parameter.default):
                yield f"{name}={self.of(part, name)}"

    def _unknown(self, value: object, hint: str) -> str:
        own = getattr(value, "__name__", "")
        names = [own, hint, "value"]
        name = self._fresh(next(name for name in names if is_name(name)), value)
        self.notes[name] = _described(value)
        return name

    def _name(self, place: ImportPath) -> str:
        first, _, rest = f"{place.path}{place.item}".partition(".")
        name, bracket, item = first.partition("[")
        short = self._from(place, name)
        return f"{short}{bracket}{item}{'.' if rest else ''}{rest}"

    def _from(self, place: ImportPath, name: str) -> str:
        if place.module == "builtins":
            return name
        if place.is_test:
            self.homes.setdefault(place.module, {})[name] = None
            return name
        names = self.imports.setdefault(place.module, {})
        if name not in names:
            names[name] = self._fresh(name, (place.module, name))
        return names[name]

    def _module(self, module: str, short: str) -> str:
        self.imports.setdefault(module, {})[""] = short
        return short

    def _fresh(self, name: str, what: object) -> str:
        """The name, or one like it where it stands for something else."""
        number, found = 1, name
        while found in self._taken and self._taken[found] is not what:
            number += 1
            found = f"{name}_{number}"
        self._taken[found] = what
        return found


def is_name(text: object) -> bool:
    """Whether a text can be the name of something."""
    return isinstance(text, str) and text.isidentifier() and not iskeyword(text)


def _is_before_more(value: object, name: str) -> bool:
    """Whether a parameter comes before one that takes all that are left (``*args``)."""
    kinds = {n: p.kind for n, p in signature(type(value)).parameters.items()}
    more = kinds[name] is Parameter.POSITIONAL_OR_KEYWORD
    return more and Parameter.VAR_POSITIONAL in kinds.values()


def _same(value: object, default: object) -> bool:
    try:
        return value is default or (type(value) is type(default) and bool(value == default))
    except Exception:  # noqa: BLE001  equality of what a user gives may do anything
        return False


def _described(value: object) -> str:
    """What something is and where it was written."""
    code = getattr(getattr(value, "__wrapped__", value), "__code__", None)
    kind = "the class" if isinstance(value, type) else "the function"
    name = getattr(value, "__qualname__", None)
    if code is not None:
        kind = "the lambda" if code.co_name == "<lambda>" else kind
        where = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
        return f"{kind} {name} ({where})" if kind != "the lambda" else f"{kind} of {where}"
    if name is not None:
        return f"{kind} {name} of {getattr(value, '__module__', 'an unknown module')}"
    return f"{value!r:.200}".replace("\n", " ")
