"""The language of rewrite rules: patterns over equations, as values.

::

    x, y = Hole("x"), Hole("y")
    App(Add, x, App(Neg, y))  # x + (-y): any two operands
    App(Mul, x, Number(2))  # x · 2, and 2 · x
    App(Transpose, App(Transpose, x, name="inner"), name="outer")
    App(Dot, Hole("x", "float[n,m]"), Hole("y", "float[m,k]"), params={"precision": Param("p")})

    r, i = Hole("r"), IndexHole("i")
    Seq(Let("v", App(Get, r, i)), App(Swap, r, App(Add, "v", x), i))  # v = r[i]; r[i] = v + x

    # A loop with an equation that could be outside of it
    App(Scan, Rest("xs"), name="loop", bodies=[Body(contains=[App(Exp, x, name="inside")])])

The operands of a commutative primitive (``Primitive.commutes``) are matched in both orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from effax.effects import Accum, Alloc, Free, Read, SideEffect, Write
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.prims import Binary, Unary
from effax.ir.registry import is_concrete
from effax.ir.text.format import fields_of
from effax.ir.types import Shape
from effax.lazy.dataclasses import dataclass
from effax.transforms.optimize.hole_types import hole_type
from effax.transforms.optimize.holes import (
    AnyNumber,
    Hole,
    IndexHole,
    Number,
    Param,
    Rest,
    check_name,
    near,
)

BOOL: Final = frozenset({"bool"})
INTEGERS: Final = frozenset({"int", "uint"})
FLOATS: Final = frozenset({"float"})
COMPLEX: Final = frozenset({"complex"})
REALS: Final = INTEGERS | FLOATS
NUMBERS: Final = REALS | COMPLEX
ANY: Final = NUMBERS | BOOL
"""All families of dtypes that rules may have."""

EFFECTS: Final[Mapping[str, type]] = {
    kind.word: kind for kind in (Read, Write, Accum, Alloc, Free)
} | {"side": SideEffect}
"""The kinds of effects of which a pattern may say that an equation has no others."""


AnyPrimitive = Primitive | type[Primitive]
"""A primitive, or a class of primitives."""

Kind = type[Primitive]


@dataclass(frozen=True, slots=True, init=False)
class App:
    """Match an equation of this primitive, or of any primitive of this class, on such operands.

    ``App(Sin, x)`` matches by class, ``App(Transpose((1, 0)), x)`` by equality. The operands of a
    commutative primitive are matched in both orders. An argument that is a string is a hole.

    On the right side of a rule, an application whose name is one of the left side has the matched
    primitive, with its parameters.

    Attributes:
        prim: the primitive, or the class.
        args: the patterns of the operands; the last may be ``Rest`` or ``IndexHole``.
        name: its name: functions of a rule read ``match.prims[name]`` and ``match.eqns[name]``.
        type: a condition on the type of its first result, as that of a ``Hole``.
        params: conditions on parameters: a value, or ``Param``.
        bodies: conditions on its subjaxprs, in order.
        effects: the only kinds of effects that it may have, as words ("read", "write", "accum",
            "alloc", "free", "side"); None for all kinds, empty for none.

    Raises:
        BadArgument: ``prim`` is not a concrete primitive, an argument is not a pattern, their
            number is wrong, or a parameter, type or effect is unknown.
    """

    prim: AnyPrimitive
    args: tuple[Pattern, ...]
    name: str
    type: str
    params: tuple[tuple[str, object], ...]
    bodies: tuple[Body, ...]
    effects: frozenset[str] | None

    def __init__(
        self,
        prim: AnyPrimitive,
        *args: Pattern | str,
        name: str = "",
        type: str = "",
        params: Mapping[str, object] | Sequence[tuple[str, object]] = (),
        bodies: Sequence[Body] = (),
        effects: Iterable[str] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "prim", prim)
        put(self, "args", tuple([Hole(a) if isinstance(a, str) else a for a in args]))
        put(self, "name", name)
        put(self, "type", type)
        put(self, "params", tuple(sorted(dict(params).items())) if params else ())
        put(self, "bodies", tuple(bodies))
        put(self, "effects", None if effects is None else frozenset(effects))
        _check_app(self)

    @property
    def kind(self) -> Kind:
        """The class of the primitives that it matches."""
        return self.prim.__class__ if isinstance(self.prim, Primitive) else self.prim

    def of(self, args: Sequence[Pattern], bodies: Sequence[Body] | None = None) -> App:
        """Return the application to other arguments, with other bodies."""
        made = object.__new__(App)
        for field in ("prim", "name", "type", "params", "effects"):
            object.__setattr__(made, field, getattr(self, field))
        object.__setattr__(made, "args", tuple(args))
        object.__setattr__(made, "bodies", self.bodies if bodies is None else tuple(bodies))
        return made

    def __str__(self) -> str:
        return f"{self.prim.name}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True, init=False)
class Body:
    """Match a subjaxpr of an application, or on the right side change the matched one.

    A hole that is bound to an operand of the application may occur inside: it matches the input
    that is this operand in every iteration. Other holes match atoms of the subjaxpr.

    Attributes:
        ins: the inputs, holes; the last may be ``Rest``; on the right side, new first inputs, which
            are bound to the first operands. None: any; on the right side, no new ones.
        outs: the results; the last may be ``Rest``. None: any; on the right side, the old ones.
        contains: applications that equations of the subjaxpr match, with those of effects in order.
        replace: on the right side, what replaces results of named applications of ``contains``.
        invariant: names that operands of the application must have, in every iteration. Those that
            the right side of a rule uses outside of bodies are such anyway.

    Raises:
        BadArgument: an entry is not a pattern.
    """

    ins: tuple[Hole | Rest, ...] | None
    outs: tuple[Pattern, ...] | None
    contains: tuple[App, ...]
    replace: tuple[tuple[str, Pattern], ...]
    invariant: tuple[str, ...]

    def __init__(
        self,
        ins: Sequence[Hole | Rest] | None = None,
        outs: Sequence[Pattern] | None = None,
        contains: Sequence[App] = (),
        replace: Mapping[str, Pattern] | Sequence[tuple[str, Pattern]] = (),
        invariant: Sequence[str] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "ins", None if ins is None else tuple(ins))
        put(self, "outs", None if outs is None else tuple(outs))
        put(self, "contains", tuple(contains))
        put(self, "replace", tuple(sorted(dict(replace).items())))
        put(self, "invariant", tuple(invariant))
        _check_body(self)


@dataclass(frozen=True, slots=True, init=False)
class Let:
    """Name the results of a step: ``Let("v", App(Get, r, i))``, or ``Let(("a", "b"), ...)``.

    On the right side of a rule, the value may be any pattern.

    Raises:
        BadArgument: a name is not a word, or the value is not a pattern.
    """

    names: tuple[str, ...]
    value: Pattern

    def __init__(self, names: str | Sequence[str], value: Pattern | str) -> None:
        several = (names,) if isinstance(names, str) else tuple(names)
        given: object = Hole(value) if isinstance(value, str) else value
        object.__setattr__(self, "names", several)
        object.__setattr__(self, "value", given)
        for name in several:
            check_name(name, "a result")
        if not isinstance(given, Pattern) or isinstance(given, Rest | IndexHole):
            raise not_a_pattern(f"the value of {', '.join(several)}", given)

    def __str__(self) -> str:
        return f"{', '.join(self.names)} = {self.value}"


@dataclass(frozen=True, slots=True, init=False)
class Seq:
    """Match equations in this order, with no conflicting effect in between.

    The steps are applications; ``Let`` names their results. Equations between them may read, write
    or do anything that the commutation table lets pass: then all steps might follow each other.

    Raises:
        BadArgument: a step is not an application or a ``Let``.
    """

    steps: tuple[Let, ...]

    def __init__(self, *steps: Let | App) -> None:
        for step in steps:
            given: object = step
            if not isinstance(given, Let | App):
                raise BadArgument(
                    "a step of a sequence is not an application",
                    expected="`App(...)` or `Let(name, App(...))`",
                    found=f"{given!r:.60}",
                )
        made = tuple([s if isinstance(s, Let) else Let((), s) for s in steps])
        object.__setattr__(self, "steps", made)

    def __str__(self) -> str:
        return "; ".join([str(s if s.names else s.value) for s in self.steps]) or "()"


Pattern = Hole | AnyNumber | Number | Rest | IndexHole | App
"""A part of a rule: ``Rest`` and ``IndexHole`` are only last arguments."""


class Sample(NamedTuple):
    """An instance of the left side of a rule, for its law.

    Attributes:
        left: the application; its primitives have all parameters.
        shape: the shape of the holes.
        dtype: the dtype of the holes; None: those of the rule's families in turn.
    """

    left: App
    shape: Shape
    dtype: str | None = None


def not_a_pattern(what: str, found: object) -> BadArgument:
    """Return the error for a value that is not a pattern."""
    remedy = None
    if isinstance(found, bool | int | float | complex):
        remedy = f"`Number({found!r})`"
    elif isinstance(found, Param):
        remedy = f"`params={{...: {found!r}}}`"
    return BadArgument(
        f"{what} is not a pattern",
        expected="`Hole`, `Number`, `AnyNumber`, `App`, or last `Rest` or `IndexHole`",
        found=f"{found!r:.60}",
        remedy=remedy,
    )


def _check_app(app: App) -> None:
    prim: object = app.prim
    kind = prim if isinstance(prim, type) else type(prim)
    if not issubclass(kind, Primitive):
        raise BadArgument(
            "the first argument of `App` must be a primitive",
            expected="a primitive, or a class of primitives, such as `Sin`",
            found=f"{prim!r:.60}",
        )
    if kind is Primitive or not is_concrete(kind):
        raise BadArgument(
            "a base class of primitives would match every equation of its kind",
            expected="the class of one primitive, such as `Sin`",
            found=kind.__name__,
            remedy="make a rule for each primitive, in a loop",
        )
    for i, arg in enumerate(app.args):
        given: object = arg
        if not isinstance(given, Pattern) or (
            isinstance(given, Rest | IndexHole) and i < len(app.args) - 1
        ):
            raise not_a_pattern(f"an argument of {kind.name}", given)
    if app.name:
        check_name(app.name, "an application")
    if app.type:
        hole_type(app.type)
    _check_arity(app)
    _check_conditions(app)


def _check_arity(app: App) -> None:
    kind = app.kind
    count = 2 if issubclass(kind, Binary) else 1 if issubclass(kind, Unary) else None
    wrong = count is not None and len(app.args) != count
    if wrong and not (app.args and isinstance(app.args[-1], Rest)):
        raise BadArgument(
            f"a pattern applies {kind.name} to a wrong number of arguments",
            expected=str(count),
            found=f"{len(app.args)}: {app}",
        )
    if app.args and isinstance(app.args[-1], IndexHole) and "indexer" not in _field_names(kind):
        raise BadArgument(
            f"{kind.name} has no index",
            expected="a primitive with an `indexer`, such as `Get`, `Swap` or `AddUpdate`",
            found=str(app),
        )


def _check_conditions(app: App) -> None:
    known = _field_names(app.kind)
    for name, _ in app.params:
        if name not in known or not isinstance(app.prim, type):
            raise BadArgument(
                f"{app.prim.name} has no parameter `{name}` to match",
                expected=", ".join(known) or "no parameters",
                found=name,
                remedy=near(name, known)
                if isinstance(app.prim, type)
                else "an instance has all its parameters: use the class",
            )
    for word in app.effects or ():
        if word not in EFFECTS:
            raise BadArgument(
                "a pattern has an unknown kind of effects",
                expected=", ".join(EFFECTS),
                found=f"{word!r:.60}",
                remedy=near(str(word), EFFECTS),
            )
    for body in app.bodies:
        given: object = body
        if not isinstance(given, Body):
            raise BadArgument(
                f"a body of {app.prim.name} is not valid", "`Body(...)`", f"{given!r:.60}"
            )


def _field_names(kind: Kind) -> tuple[str, ...]:
    return tuple([f.name for f in fields_of(kind)])


def _check_body(body: Body) -> None:
    for name in body.invariant:
        check_name(name, "an operand")
    for what, entries, allowed in (
        ("an input", body.ins or (), (Hole, Rest)),
        ("a result", body.outs or (), (Hole, AnyNumber, Number, App, Rest)),
        ("an equation", body.contains, (App,)),
        ("a replacement", [a for _, a in body.replace], (Hole, AnyNumber, Number, App)),
    ):
        for i, entry in enumerate(entries):
            last = i == len(entries) - 1
            if not isinstance(entry, allowed) or (isinstance(entry, Rest) and not last):
                raise not_a_pattern(f"{what} of a body", entry)


def parts(pattern: Pattern | Seq) -> Iterator[Pattern]:
    """Yield a pattern and all patterns in it; those of a sequence step by step."""
    if isinstance(pattern, Seq):
        for step in pattern.steps:
            yield from parts(step.value)
        return
    yield pattern
    if isinstance(pattern, App):
        for arg in pattern.args:
            yield from parts(arg)
        for body in pattern.bodies:
            inner = (*(body.ins or ()), *(body.outs or ()), *body.contains)
            for one in (*inner, *(a for _, a in body.replace)):
                yield from parts(one)


def orders(pattern: App) -> tuple[App, ...]:
    """Return the pattern in all orders of commutative operands, the original first."""
    return tuple(_orders(pattern))


def _orders(pattern: App) -> list[App]:
    inner = [_orders_of(a) for a in pattern.args]
    found = [pattern.of(args) for args in product(*inner)]
    if pattern.bodies:
        bodies = [*product(*map(_orders_in, pattern.bodies))]
        found = [a.of(a.args, several) for a in found for several in bodies]
    if pattern.kind.commutes and len(pattern.args) == 2:
        turned = [a.of(tuple(reversed(a.args))) for a in found]
        found += [a for a in turned if a not in found]
    return found


def _orders_of(pattern: Pattern) -> list[Pattern]:
    return [*_orders(pattern)] if isinstance(pattern, App) else [pattern]


def _orders_in(body: Body) -> list[Body]:
    outs = None if body.outs is None else [*product(*map(_orders_of, body.outs))]
    return [
        Body(body.ins, results, contains, body.replace, body.invariant)
        for results in ([None] if outs is None else outs)
        for contains in product(*map(_orders, body.contains))
    ]


def sequences(pattern: App | Seq) -> tuple[Seq, ...]:
    """Return the pattern as a sequence, in all orders of commutative operands."""
    steps = pattern.steps if isinstance(pattern, Seq) else (Let((), pattern),)
    apps = [step.value for step in steps]
    found = product(*[_orders(app) for app in apps if isinstance(app, App)])
    return tuple(
        [
            Seq(*[_with_value(step, app) for step, app in zip(steps, several, strict=True)])
            for several in found
        ]
    )


def _with_value(step: Let, app: App) -> Let:
    return Let(step.names, app)


def instance_of(app: App) -> Primitive | None:
    """Return the primitive of an application; None for a class that needs parameters."""
    if not isinstance(app.prim, type):
        return app.prim
    if any(isinstance(value, Param) for _, value in app.params):
        return None
    try:
        return app.prim(**dict(app.params))
    except TypeError:
        return None
