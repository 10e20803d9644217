"""The language of rewrite rules: patterns over equations, matches and rules, as values.

::

    x, y = Hole("x"), Hole("y")
    App(Add, x, App(Neg, y))  # x + (-y): any two operands
    App(Mul, x, Number(2))  # x · 2, and 2 · x
    App(Transpose, App(Transpose, x, name="inner"), name="outer")

The operands of a commutative primitive (``Primitive.commutes``) are matched in both orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from math import isnan
from typing import Final, NamedTuple, TypeVar

from effax.ir.dtypes import as_dtype
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.prims import Binary, Unary
from effax.ir.syntax import Atom, Scalar
from effax.ir.types import Shape

BOOL: Final = frozenset({"bool"})
INTEGERS: Final = frozenset({"int", "uint"})
FLOATS: Final = frozenset({"float"})
COMPLEX: Final = frozenset({"complex"})
REALS: Final = INTEGERS | FLOATS
NUMBERS: Final = REALS | COMPLEX
ANY: Final = NUMBERS | BOOL
"""All families of dtypes that rules may have."""

MOST_ORDERS: Final = 256
"""A left side may be matched in at most this many orders of commutative operands."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hole:
    """Match any atom, the same in each occurrence. Raises BadArgument for an empty name."""

    name: str

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name:
            raise BadArgument("a hole needs a name", "a word, such as 'x'", repr(name))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Number:
    """Match a literal of this value, in every dtype that represents it; 0.0 is not -0.0.

    Raises BadArgument for another type, and for nan, which equals no value.
    """

    value: Scalar

    def __post_init__(self) -> None:
        value: object = self.value
        if not isinstance(value, bool | int | float | complex):
            raise BadArgument(
                "the value of a `Number` must be a Python number",
                expected="bool, int, float or complex",
                found=f"{value!r:.60}",
                remedy="`.item()` returns the number of an array without axes",
            )
        if isnan(complex(value).real) or isnan(complex(value).imag):
            raise BadArgument("nan matches no literal, since it equals no value", "another number")

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True, init=False)
class App:
    """Match an equation of this primitive, or of any primitive of this class, on such operands.

    ``App(Sin, x)`` matches by class, ``App(Transpose((1, 0)), x)`` by equality. The operands of a
    commutative primitive are matched in both orders. The functions of a rule read the matched
    primitive as ``match.prims[name]``.

    Raises:
        BadArgument: ``prim`` is not a primitive, an argument is not a pattern, or their number is
            wrong.
    """

    prim: Primitive | type[Primitive]
    args: tuple[Pattern, ...]
    name: str

    def __init__(self, prim: Primitive | type[Primitive], *args: Pattern, name: str = "") -> None:
        object.__setattr__(self, "prim", prim)
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "name", name)
        _check_app(self)

    @property
    def kind(self) -> type[Primitive]:
        """The class of the primitives that it matches."""
        return self.prim if isinstance(self.prim, type) else type(self.prim)

    def __str__(self) -> str:
        return f"{self.prim.name}({', '.join(map(str, self.args))})"


Pattern = Hole | Number | App


def _check_app(app: App) -> None:
    prim: object = app.prim
    if not isinstance(prim, Primitive) and not (
        isinstance(prim, type) and issubclass(prim, Primitive)
    ):
        raise BadArgument(
            "the first argument of `App` must be a primitive",
            expected="a primitive, or a class of primitives, such as `Sin`",
            found=f"{prim!r:.60}",
        )
    args: tuple[object, ...] = app.args
    for arg in args:
        if not isinstance(arg, Pattern):
            remedy = f"`Number({arg!r})`" if isinstance(arg, bool | int | float | complex) else None
            raise BadArgument(
                f"an argument of {app.prim.name} is not a pattern",
                expected="`Hole`, `Number` or `App`",
                found=f"{arg!r:.60}",
                remedy=remedy,
            )
    count = 2 if issubclass(app.kind, Binary) else 1 if issubclass(app.kind, Unary) else None
    if count is not None and len(args) != count:
        raise BadArgument(
            f"a pattern applies {app.prim.name} to a wrong number of arguments",
            expected=str(count),
            found=f"{len(args)}: {app}",
        )


class Bindings(dict[str, T]):
    """The parts of a match, by name. Raises BadArgument for a name that the left side lacks."""

    def __missing__(self, name: str) -> T:
        raise BadArgument(
            f"the left side of the rule has no name `{name}`",
            expected=", ".join(self) or "no name",
            found=name,
            remedy=near(name, self),
        )


class Match:
    """The result of matching a left side.

    Attributes:
        atoms: the variable or literal of each hole, by name.
        prims: the primitive of each named application, by name.
    """

    __slots__ = ("atoms", "prims")

    def __init__(self) -> None:
        self.atoms: Bindings[Atom] = Bindings()
        self.prims: Bindings[Primitive] = Bindings()


Right = Pattern | Callable[[Match], Pattern]


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


@dataclass(frozen=True)
class RewriteRule:
    """``left = right``, for operands whose dtype is in one of these families.

    Attributes:
        name: the equation, for messages.
        left: the pattern that is replaced, in all orders of commutative operands.
        right: its replacement: a hole, a number, one application of holes and numbers, or a
            function that returns one of these for a match.
        families: the families of the first operand's dtype: some of "bool", "int", "uint",
            "float", "complex", such as :data:`REALS` or :data:`ANY`.
        where: a further condition on a match.
        samples: instances of the left side, for the law of a rule whose primitives have parameters.

    Raises:
        BadArgument: the left side is not an application; the right side has a hole that the left
            side lacks, or more than one application; a name is used twice; a family is unknown.
    """

    name: str
    left: App
    right: Right
    families: Set[str]
    where: Callable[[Match], bool] | None = None
    samples: tuple[Sample, ...] = ()

    def __post_init__(self) -> None:
        _check_left(self)
        object.__setattr__(self, "families", _families(self))
        _check_functions(self)
        if isinstance(self.right, Pattern):
            check_right(self, self.right)
        object.__setattr__(self, "samples", tuple(self.samples))
        for sample in self.samples:
            _check_sample(self, sample)

    def __str__(self) -> str:
        return self.name


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the remedy for an unknown name that resembles a known one; else None."""
    close = get_close_matches(name, list(known), 1)
    return f"did you mean `{close[0]}`?" if close else None


def parts(pattern: Pattern) -> Iterator[Pattern]:
    """Yield a pattern and all patterns in it."""
    yield pattern
    if isinstance(pattern, App):
        for arg in pattern.args:
            yield from parts(arg)


def orders(pattern: App) -> tuple[App, ...]:
    """Return the pattern in all orders of commutative operands, the original first."""
    return tuple(_orders(pattern))


def _orders(pattern: App) -> list[App]:
    inner = [_orders(a) if isinstance(a, App) else [a] for a in pattern.args]
    found = [App(pattern.prim, *args, name=pattern.name) for args in product(*inner)]
    if pattern.kind.commutes:
        turned = [App(a.prim, *reversed(a.args), name=a.name) for a in found]
        found += [a for a in turned if a not in found]
    return found


def _check_left(rule: RewriteRule) -> None:
    left: object = rule.left
    if not isinstance(left, App):
        raise BadArgument(
            f"the left side of the rule {rule.name} is not an application",
            expected="`App(primitive, ...)`: a rule replaces an equation",
            found=f"{left!r:.60}",
        )
    holes = {p.name for p in parts(left) if isinstance(p, Hole)}
    named = [p.name for p in parts(left) if isinstance(p, App) and p.name]
    twice = [name for i, name in enumerate(named) if name in holes or name in named[:i]]
    if twice:
        raise BadArgument(
            f"the rule {rule.name} has a duplicate name",
            expected="distinct names of applications and holes",
            found=twice[0],
        )
    commuting = sum(isinstance(p, App) and p.kind.commutes for p in parts(left))
    if 2**commuting > MOST_ORDERS:
        raise BadArgument(
            f"the left side of the rule {rule.name} can be matched in too many orders",
            expected=f"at most {MOST_ORDERS.bit_length() - 1} commutative applications",
            found=str(commuting),
            remedy="split it into several rules",
        )


def _families(rule: RewriteRule) -> frozenset[str]:
    given: object = rule.families
    if isinstance(given, str) or not isinstance(given, Set) or not given:
        raise BadArgument(
            f"the rule {rule.name} has no family of dtypes",
            expected=f"a set of some of {', '.join(sorted(ANY))}",
            found=f"{given!r:.60}",
            remedy=f"`frozenset({{{given!r}}})`" if given in ANY else None,
        )
    for name in sorted(map(str, given)):
        if name not in ANY:
            raise BadArgument(
                f"the rule {rule.name} has an unknown family of dtypes",
                expected=", ".join(sorted(ANY)),
                found=name,
                remedy=near(name, ANY),
            )
    return frozenset(rule.families)


def _check_functions(rule: RewriteRule) -> None:
    where: object = rule.where
    right: object = rule.right
    if where is not None and not callable(where):
        raise BadArgument(
            f"the condition of the rule {rule.name} is not a function",
            expected="a function from a match to a bool",
            found=f"{where!r:.60}",
        )
    if not isinstance(right, Pattern) and not callable(right):
        raise BadArgument(
            f"the right side of the rule {rule.name} is not a pattern",
            expected="`Hole`, `Number`, `App`, or a function of the match that returns one",
            found=f"{right!r:.60}",
            remedy=f"`Number({right!r})`" if isinstance(right, int | float | complex) else None,
        )


def check_right(rule: RewriteRule, right: object) -> Pattern:
    """Return the right side of a rule; raise BadArgument unless it is one valid equation."""
    if not isinstance(right, Pattern):
        raise BadArgument(
            f"the right side of the rule {rule.name} does not return a pattern",
            expected="`Hole`, `Number` or `App`",
            found=f"{right!r:.60}",
        )
    holes = {p.name for p in parts(rule.left) if isinstance(p, Hole)}
    for part in parts(right):
        if isinstance(part, Hole) and part.name not in holes:
            raise BadArgument(
                f"the right side of the rule {rule.name} has a hole that the left side lacks",
                expected=", ".join(sorted(holes)) or "no hole",
                found=part.name,
                remedy=near(part.name, holes),
            )
        if isinstance(part, App) and part is not right:
            raise BadArgument(
                f"the right side of the rule {rule.name} is more than one equation",
                expected="an application of holes and numbers",
                found=str(right),
                remedy="split it into several rules",
            )
    if isinstance(right, App):
        with_parameters(rule, right)
    return right


def instance_of(app: App) -> Primitive | None:
    """Return the primitive of an application; None for a class that needs parameters."""
    if not isinstance(app.prim, type):
        return app.prim
    try:
        return app.prim()
    except TypeError:
        return None


def with_parameters(rule: RewriteRule, app: App) -> Primitive:
    """Return the primitive of an application; raise BadArgument if it lacks parameters."""
    found = instance_of(app)
    if found is None:
        raise BadArgument(
            f"the rule {rule.name} applies {app.prim.name} without its parameters",
            expected=f"an instance, `{app.kind.__name__}(...)`",
            found=str(app),
            remedy="on the right: use those of the matched primitive, in a function of the match; "
            "on the left: add an instance to the samples",
        )
    return found


def _check_sample(rule: RewriteRule, sample: object) -> None:
    if not isinstance(sample, Sample) or not isinstance(sample.left, App):
        raise BadArgument(
            f"the rule {rule.name} has an invalid sample",
            expected="`Sample(left, shape)`, with an instance of the left side",
            found=f"{sample!r:.60}",
        )
    for part in parts(sample.left):
        if isinstance(part, App):
            with_parameters(rule, part)
    if sample.dtype is not None:
        try:
            as_dtype(sample.dtype)
        except TypeError as error:
            raise BadArgument(
                f"the rule {rule.name} has a sample of an unknown dtype",
                expected="such as 'float32'",
                found=sample.dtype,
            ) from error
