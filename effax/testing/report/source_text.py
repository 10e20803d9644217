"""Write values as source: expressions, and the imports that they need.

A value with a name in a module is imported. Others (a lambda, a local function) cannot be written:
a comment names the definition that is missing.
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
from effax.passes.lift import Lifted, as_pass
from effax.passes.pipeline import Pass, name_of
from effax.testing.generate.values import shown
from effax.testing.report.import_path import PLAIN, ImportPath, place_of
from effax.transforms.framework.rules import RuleSet
from effax.transforms.optimize.rewrite import Hole, Number, Rewriting, rewriting
from effax.transforms.rules.default import DEFAULT_RULES


class Written:
    """Source under construction.

    Attributes:
        imports: the names that are used, by module.
        notes: a description of each name that the reader must define.
        unread: parameters of programs that are not parsed.
        homes: the names from test files, which are not imported, by module.
    """

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        self.imports: dict[str, dict[str, str]] = {}
        self.notes: dict[str, str] = {}
        self.unread: dict[str, None] = {}
        self.homes: dict[str, dict[str, None]] = {}
        self._taken: dict[str, object] = {}
        self._taken.update(dict.fromkeys(taken))

    def head(self) -> list[str]:
        """Return the lines that precede the test."""
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
        """Return an expression for a value; ``hint`` names a value that cannot be written."""
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
            case PMap() if dict(own_primitives()).items() <= dict(value).items():
                mine = [x for name, x in value.items() if own_primitives().get(name) is not x]
                return f"{self.of(registry)}({', '.join([self.of(x) for x in mine])})"
            case RuleSet():
                return self._rules(value)
            case Rewriting() | Pass(_, Lifted()) | Lifted():
                return self._pass(value, hint)
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

    def _pass(self, value: Rewriting | Pass | Lifted, hint: str) -> str:
        """Return a call of ``rewriting`` or ``as_pass``."""
        match value:
            case Rewriting():
                rules = ", ".join([self.of(rule) for rule in value.rules])
                cost = "" if value.cost is None else f", {self.of(value.cost, 'cost')}"
                return f"{self.of(rewriting)}([{rules}]{cost})"
            case Pass(name, Lifted(function), guarantees):
                args = [self.of(function, hint)]
                args += [f"name={name!r}"] if name != name_of(function) else []
                if guarantees != Pass(name, value.transform).laws:
                    args.append(f"laws={self.of(guarantees)}")
                return f"{self.of(as_pass)}({', '.join(args)})"
            case Lifted(function):
                return f"{self.of(as_pass)}({self.of(function, hint)}).transform"
            case _:
                return self._compound(value, hint)

    def program(self, jaxpr: Jaxpr) -> str:
        """Return a call that parses the program."""
        text = str(jaxpr)
        quoted = f"'''\n{indent(text, '        ')}\n    '''"
        raw = "r" if "\\" in text else ""
        args = [raw + quoted if "'''" not in text else repr(text)]
        known = own_primitives()
        prims = dict.fromkeys(place.eqn.prim for place in walk(jaxpr))
        foreign = [prim for prim in prims if known.get(prim.name) is not type(prim)]
        for prim in foreign:
            for f in fields_of(prim):
                bad = unwritten(getattr(prim, f.name), type(prim))
                if bad is not None:
                    self.unread[f"`{f.name}` of {prim.name} is {bad[0]}".replace("\n", " ")] = None
        if foreign:
            classes = ", ".join([self.of(cls) for cls in dict.fromkeys(map(type, foreign))])
            args.append(f"{self.of(registry)}({classes})")
        objects = references(jaxpr)
        if objects:
            args.append(f"references={self.of(objects)}")
        return f"{self.of(parse)}({', '.join(args)})"

    def _type(self, value: ArrayType | RefType) -> str:
        if isinstance(value, RefType):
            return f"{self.of(ref_type)}({self._type(value.inner)}, {self.of(value.kind)})"
        weak = ", weak=True" if value.weak else ""
        return f"{self.of(array_type)}({value.shape}, {value.dtype.name!r}{weak})"

    def _rules(self, rules: RuleSet) -> str:
        """Return the rule set of the library, extended by the differences."""
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
            return f"{self.of(cls, cls.__name__)}({', '.join(self._arguments(value))})"
        if isinstance(value, Primitive):
            return f"{self.of(cls, cls.__name__)}()"
        return self._unknown(value, hint)

    def _arguments(self, value: object) -> Iterator[str]:
        """Yield the arguments that construct an instance, from attributes of their names."""
        parameters = signature(type(value)).parameters
        variadic = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters.values())
        for name, parameter in parameters.items():
            part, kind = getattr(value, name), parameter.kind
            if kind is Parameter.VAR_POSITIONAL:
                yield from [self.of(one, name) for one in part]
            elif kind is Parameter.POSITIONAL_ONLY or (
                variadic and kind is Parameter.POSITIONAL_OR_KEYWORD
            ):
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
        """Return the name, or a similar one if it is taken."""
        number, found = 1, name
        while found in self._taken and self._taken[found] is not what:
            number += 1
            found = f"{name}_{number}"
        self._taken[found] = what
        return found


def is_name(text: object) -> bool:
    """Return whether a text is an identifier."""
    return isinstance(text, str) and text.isidentifier() and not iskeyword(text)


def _same(value: object, default: object) -> bool:
    try:
        return value is default or (type(value) is type(default) and bool(value == default))
    except Exception:  # noqa: BLE001  # `==` of the caller's values may raise anything
        return False


def _described(value: object) -> str:
    """Return the kind and the place of a definition."""
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
