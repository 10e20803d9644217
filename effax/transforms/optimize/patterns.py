"""The language of rewrite rules: patterns over equations, what they match, and rules, as values.

::

    x, y = Hole("x"), Hole("y")
    App(Add, x, App(Neg, y))  # x + (-y): any two operands
    App(Mul, x, Number(2))  # x · 2, and 2 · x
    App(Transpose, App(Transpose, x, name="inner"), name="outer")

Where a primitive commutes (``Primitive.commutes``) its operands are matched in both orders.
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
"""All families of dtypes for which there may be rules."""

MOST_ORDERS: Final = 256
"""In how many orders of commuting operands a left side may be matched."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hole:
    """Matches anything; where it occurs again, the same. Raises BadArgument for an empty name."""

    name: str

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name:
            raise BadArgument("a hole has a name", "a word, such as 'x'", repr(name))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Number:
    """Matches a literal of this value, in every dtype that has it; 0.0 is not -0.0.

    Raises BadArgument for what is no number, and for nan: nothing equals it.
    """

    value: Scalar

    def __post_init__(self) -> None:
        value: object = self.value
        if not isinstance(value, bool | int | float | complex):
            raise BadArgument(
                "a pattern holds numbers of Python only",
                expected="bool, int, float or complex",
                found=f"{value!r:.60}",
                remedy="`.item()` gives the number of an array without axes",
            )
        if isnan(complex(value).real) or isnan(complex(value).imag):
            raise BadArgument("nan matches nothing, since it equals nothing", "another number")

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True, init=False)
class App:
    """Matches an equation of this primitive, or of any primitive of this class, on such arguments.

    ``App(Sin, x)`` matches by class, ``App(Transpose((1, 0)), x)`` this very primitive. Where the
    primitive commutes, the arguments are matched in both orders. ``name`` gives the functions of a
    rule access to the primitive that was matched: ``match.prims[name]``.

    Raises:
        BadArgument: ``prim`` is no primitive, an argument is no pattern, or there are too many or
            too few of them.
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
        """The class of primitives that it matches."""
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
            "a pattern applies a primitive",
            expected="a primitive, or a class of primitives, such as `Sin`",
            found=f"{prim!r:.60}",
        )
    args: tuple[object, ...] = app.args
    for arg in args:
        if not isinstance(arg, Pattern):
            remedy = f"`Number({arg!r})`" if isinstance(arg, bool | int | float | complex) else None
            raise BadArgument(
                f"an argument of {app.prim.name} is no pattern",
                expected="`Hole`, `Number` or `App`",
                found=f"{arg!r:.60}",
                remedy=remedy,
            )
    count = 2 if issubclass(app.kind, Binary) else 1 if issubclass(app.kind, Unary) else None
    if count is not None and len(args) != count:
        raise BadArgument(
            f"a pattern applies {app.prim.name} to arguments that it never has",
            expected=f"{count} of them",
            found=f"{len(args)}: {app}",
        )


class Bindings(dict[str, T]):
    """What a match found, by name. Raises BadArgument for a name that the left side lacks."""

    def __missing__(self, name: str) -> T:
        raise BadArgument(
            f"the left side of the rule names nothing `{name}`",
            expected=", ".join(self) or "no name at all",
            found=name,
            remedy=near(name, self),
        )


class Match:
    """What a left side matched.

    Attributes:
        atoms: by the name of a hole, what it stands for: a variable or a literal, with its type.
        prims: by the name of an application, the primitive.
    """

    __slots__ = ("atoms", "prims")

    def __init__(self) -> None:
        self.atoms: Bindings[Atom] = Bindings()
        self.prims: Bindings[Primitive] = Bindings()


Right = Pattern | Callable[[Match], Pattern]


class Sample(NamedTuple):
    """An instance of the left side of a rule: what its law is tried on.

    Attributes:
        left: the application; its primitives have all parameters.
        shape: of what the holes stand for.
        dtype: of what the holes stand for; those of the rule's families in turn where it is None.
    """

    left: App
    shape: Shape
    dtype: str | None = None


@dataclass(frozen=True)
class RewriteRule:
    """``left = right``, for operands whose dtype is of one of these families.

    Attributes:
        name: the equation, for people.
        left: what is replaced. Where it applies what commutes, both orders are meant.
        right: what comes in its place: a hole, a number, one application of holes and numbers, or
            a function that gives one of these for a match.
        families: of the dtype of the first argument: some of "bool", "int", "uint", "float",
            "complex"; :data:`REALS`, :data:`ANY` and others are there for it.
        where: a further condition on a match.
        samples: instances of the left side, with the shape of their holes, for rules whose
            primitives have parameters; the law tries them.

    Raises:
        BadArgument: the left side is no application; the right side has a hole that the left one
            lacks, or more than one application; a name stands for two things; a family is none.
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
    """The remedy for a name that is not known, where one that is comes near."""
    close = get_close_matches(name, list(known), 1)
    return f"did you mean `{close[0]}`?" if close else None


def parts(pattern: Pattern) -> Iterator[Pattern]:
    """A pattern, and all patterns in it."""
    yield pattern
    if isinstance(pattern, App):
        for arg in pattern.args:
            yield from parts(arg)


def orders(pattern: App) -> tuple[App, ...]:
    """The pattern with the operands of what commutes in each order; as it is written first."""
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
            f"the left side of the rule {rule.name} is no application",
            expected="`App(primitive, ...)`: a rule replaces an equation",
            found=f"{left!r:.60}",
        )
    holes = {p.name for p in parts(left) if isinstance(p, Hole)}
    named = [p.name for p in parts(left) if isinstance(p, App) and p.name]
    twice = [name for i, name in enumerate(named) if name in holes or name in named[:i]]
    if twice:
        raise BadArgument(
            f"the rule {rule.name} gives one name to two things",
            expected="a name for each application, other than those of holes",
            found=twice[0],
        )
    commuting = sum(isinstance(p, App) and p.kind.commutes for p in parts(left))
    if 2**commuting > MOST_ORDERS:
        raise BadArgument(
            f"the left side of the rule {rule.name} can be matched in too many orders",
            expected=f"at most {MOST_ORDERS.bit_length() - 1} applications of what commutes",
            found=str(commuting),
            remedy="make several rules of it, each for a part",
        )


def _families(rule: RewriteRule) -> frozenset[str]:
    given: object = rule.families
    if isinstance(given, str) or not isinstance(given, Set) or not given:
        raise BadArgument(
            f"the rule {rule.name} holds for no family of dtypes",
            expected=f"a set of some of {', '.join(sorted(ANY))}",
            found=f"{given!r:.60}",
            remedy=f"`frozenset({{{given!r}}})`" if given in ANY else None,
        )
    for name in sorted(map(str, given)):
        if name not in ANY:
            raise BadArgument(
                f"the rule {rule.name} is for a family of dtypes that does not exist",
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
            f"the condition of the rule {rule.name} is no function",
            expected="a function from a match to a bool",
            found=f"{where!r:.60}",
        )
    if not isinstance(right, Pattern) and not callable(right):
        raise BadArgument(
            f"the right side of the rule {rule.name} is no pattern",
            expected="`Hole`, `Number`, `App`, or a function of the match that gives one",
            found=f"{right!r:.60}",
            remedy=f"`Number({right!r})`" if isinstance(right, int | float | complex) else None,
        )


def check_right(rule: RewriteRule, right: object) -> Pattern:
    """The right side of a rule. Raises BadArgument unless it is one equation of what is known."""
    if not isinstance(right, Pattern):
        raise BadArgument(
            f"the right side of the rule {rule.name} gives no pattern",
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
                remedy="make several rules of it",
            )
    if isinstance(right, App):
        with_parameters(rule, right)
    return right


def instance_of(app: App) -> Primitive | None:
    """The primitive that an application means; None for a class whose parameters are not said."""
    if not isinstance(app.prim, type):
        return app.prim
    try:
        return app.prim()
    except TypeError:
        return None


def with_parameters(rule: RewriteRule, app: App) -> Primitive:
    """The primitive that an application means. Raises BadArgument for a class that has several."""
    found = instance_of(app)
    if found is None:
        raise BadArgument(
            f"the rule {rule.name} applies {app.prim.name}, which has parameters, without them",
            expected=f"an instance, `{app.kind.__name__}(...)`",
            found=str(app),
            remedy="on the right: those of what was matched, by a function of the match; "
            "on the left: an instance among the samples, on which the law is tried",
        )
    return found


def _check_sample(rule: RewriteRule, sample: object) -> None:
    if not isinstance(sample, Sample) or not isinstance(sample.left, App):
        raise BadArgument(
            f"the rule {rule.name} has a sample that is none",
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
                f"the rule {rule.name} has a sample of a dtype that does not exist",
                expected="such as 'float32'",
                found=sample.dtype,
            ) from error
