"""Rewrite rules as text.

::

    'x + x = 2x' for float: add(x, x) => mul(2, x)
    'matmul of transposes' for any: dot&outer(transpose[..., permutation=?p](x), y) => @turned
    'load of what was stored' for any: o = swap(r, x, [i]); v = get(r, [i]);
        => o = swap(r, x, [i]); v = x;

Functions are written by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Protocol, cast

from effax.ir.primitive import ByReference, Primitive
from effax.ir.syntax import Jaxpr
from effax.ir.text.format import LABEL, fresh_words, label_text, params_of, value_text
from effax.ir.text.printer import on_one_line
from effax.transforms.optimize.holes import Param
from effax.transforms.optimize.matcher import Match
from effax.transforms.optimize.patterns import ANY, App, Body, Let, Pattern, Sample, Seq, parts

Functions = Mapping[object, str]
"""The names of functions and of objects that are parameters."""


class PrintedRule(Protocol):
    """A rewrite rule."""

    @property
    def name(self) -> str: ...
    @property
    def left(self) -> App | Seq: ...
    @property
    def right(self) -> Pattern | Seq | Callable[[Match], Pattern | Seq]: ...
    @property
    def families(self) -> Set[str]: ...
    @property
    def where(self) -> Callable[[Match], bool] | None: ...
    @property
    def samples(self) -> Sequence[Sample | Jaxpr]: ...


def functions_of(rule: PrintedRule) -> dict[str, Callable[[Match], object]]:
    """Return the functions of a rule, and objects that are parameters, by name."""
    return {name: cast("Callable[[Match], object]", f) for f, name in _names(rule).items()}


def _names(rule: PrintedRule) -> dict[object, str]:
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


def rule_text(rule: PrintedRule) -> str:
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
        f"of {', '.join(body.invariant)}" if body.invariant else "",
    ]
    return f"{{{' '.join([item for item in items if item])}}}"
