"""A small language of rewrite rules: patterns over equations, as values, and their pass.

A rule says that one form of equations gives the same as another::

    x, y = Hole("x"), Hole("y")
    RewriteRule("x + (-y) = x - y", App(Add, x, App(Neg, y)), App(Sub, x, y), REALS)

Before and after, under this rule; what nothing uses any more is left to ``dce``::

    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b; d:f32[] = add c a in (d,) }
    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b; d:f32[] = sub a b in (d,) }

A rule applies where the right side has the very type of what it replaces, and puts one equation at
most in the place of one, so that no program grows. Operands of what commutes are matched in both
orders. Only equations without effects match. That a rule is true, bit by bit, is a law that
``effax.testing.laws.rule_is_sound`` tries on random inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from returns.result import Result

from effax.ir.build import lit, typing_of
from effax.ir.dtypes import family, int_bounds
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import BadArgument, EffaxError, TransformError
from effax.ir.primitive import Primitive
from effax.ir.prims import BroadcastInDim
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Scalar, Var
from effax.ir.types import ArrayType, Type
from effax.transforms.framework.rewriter import Transform, at_every_depth
from effax.transforms.framework.runner import wrap_errors
from effax.transforms.optimize.patterns import (
    ANY,
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    App,
    Hole,
    Match,
    Number,
    Pattern,
    RewriteRule,
    Right,
    Sample,
    check_right,
    orders,
)

__all__ = [
    "ANY",
    "BOOL",
    "COMPLEX",
    "FLOATS",
    "INTEGERS",
    "NUMBERS",
    "REALS",
    "App",
    "Hole",
    "Match",
    "Number",
    "Pattern",
    "RewriteRule",
    "Right",
    "Sample",
    "rewriting",
]

T = TypeVar("T")

ROUNDS: Final = 16
"""How many rules may apply to one equation, one after the other."""

REMEDY: Final = (
    "it is a function of a `Match`, whose holes are in `match.atoms`, and whose named applications "
    "in `match.prims`"
)


def rewriting(rules: Iterable[RewriteRule]) -> Callable[[Jaxpr], Result[Jaxpr, TransformError]]:
    """The pass that applies these rules wherever they match, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same.
    Laws:     tests/laws/test_simplify.py
    Raises:   BadArgument: what is given has something in it that is no rule. The pass fails with
              TransformError where a function of a rule raises, or gives no right side.
    """
    return Rewriting(_rules(rules))


@dataclass(frozen=True)
class Rewriting:
    """What :func:`rewriting` gives: equal for equal rules.

    Attributes:
        rules: the rules, in the order in which they are tried.
    """

    rules: tuple[RewriteRule, ...]
    _whole: Transform = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rules: _Book = {}
        for rule in self.rules:
            lines = rules.setdefault(rule.left.kind, [])
            lines += [_Line(rule, left) for left in orders(rule.left)]

        def local(jaxpr: Jaxpr) -> Jaxpr:
            """The program with these rules applied until none fits."""
            return _Engine(jaxpr, rules).run()

        object.__setattr__(self, "_whole", at_every_depth(local))

    def __call__(self, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        """The program with these rules applied until none fits."""
        return self._whole(jaxpr)

    def __reduce__(self) -> tuple[object, ...]:
        return Rewriting, (self.rules,)


class _Line(NamedTuple):
    """A rule, and its left side in one order of the operands that commute."""

    rule: RewriteRule
    left: App


_Book = dict[type[Primitive], list[_Line]]


def _rules(given: object) -> tuple[RewriteRule, ...]:
    if isinstance(given, Iterable):
        rules = tuple(given)
        if all(isinstance(rule, RewriteRule) for rule in rules):
            return rules
    raise BadArgument(
        "a pass is made of rules",
        expected="several `RewriteRule`s",
        found=f"{given!r:.80}",
        remedy="`rewriting([rule])`" if isinstance(given, RewriteRule) else None,
    )


class _Engine:
    """One program: what it becomes, and the equation of each variable in it."""

    def __init__(self, jaxpr: Jaxpr, rules: _Book) -> None:
        self.made = Rewriter(jaxpr)
        self.rules = rules
        self.by_var: dict[int, Eqn] = {}

    def run(self) -> Jaxpr:
        made = self.made
        for eqn in made.jaxpr.eqns:
            ins = made.operands(eqn)
            if len(eqn.outs) == 1 and not eqn.effects:
                self.rewritten(eqn, ins)
            else:
                made.keep(eqn, ins)
        return made.finish()

    def rewritten(self, eqn: Eqn, ins: tuple[Atom, ...]) -> None:
        """What becomes of one equation, after all the rules that apply to it in turn."""
        prim, (out,) = eqn.prim, eqn.outs
        for _ in range(ROUNDS):
            found = self.applied(prim, ins, out)
            if found is None:
                break
            if not isinstance(found, _Applied):
                self.made.replace(eqn, [found])
                return
            prim, ins = found.prim, found.ins
            self.made.changed = True
        (new,) = self.made.keep(eqn._replace(prim=prim), ins)
        self.by_var[new.id] = Eqn(prim, ins, (new,))

    def applied(self, prim: Primitive, ins: tuple[Atom, ...], out: Var) -> Atom | _Applied | None:
        """The atom or the application that a rule puts in the place of this one, if one does."""
        for rule, left in self.rules.get(type(prim), ()):
            match = self.matched(rule, left, prim, ins)
            if match is None:
                continue
            right = rule.right
            if not isinstance(right, Pattern):
                right = check_right(rule, _called(rule, "right side", right, match))
            made = _instance(right, match, out)
            # What gives the same again, such as two operands that change places, changes nothing.
            if made is not None and made != (prim, ins):
                return made
        return None

    def matched(
        self, rule: RewriteRule, left: App, prim: Primitive, ins: tuple[Atom, ...]
    ) -> Match | None:
        if not ins or family(ins[0].type.dtype) not in rule.families:
            return None
        match = Match()
        if not self.app(left, prim, ins, match):
            return None
        return (
            match if rule.where is None or _called(rule, "condition", rule.where, match) else None
        )

    def app(self, pattern: App, prim: Primitive, ins: Sequence[Atom], match: Match) -> bool:
        wanted = pattern.prim
        fits = type(prim) is wanted if isinstance(wanted, type) else prim == wanted
        if not fits or len(ins) != len(pattern.args):
            return False
        if pattern.name:
            match.prims[pattern.name] = prim
        return all(self.atom(p, a, match) for p, a in zip(pattern.args, ins, strict=True))

    def atom(self, pattern: Pattern, atom: Atom, match: Match) -> bool:
        match pattern:
            case Hole(name):
                return match_hole(match, name, atom)
            case Number(value):
                return isinstance(atom, Lit) and atom == number_as(value, atom.type)
            case App():
                eqn = self.by_var.get(atom.id) if isinstance(atom, Var) else None
                return eqn is not None and self.app(pattern, eqn.prim, eqn.ins, match)


class _Applied(NamedTuple):
    """An application that a rule puts somewhere."""

    prim: Primitive
    ins: tuple[Atom, ...]


def match_hole(match: Match, name: str, atom: Atom) -> bool:
    """Bind a hole, or compare with what it is bound to."""
    return match.atoms.setdefault(name, atom) == atom


def _called(rule: RewriteRule, part: str, function: Callable[[Match], T], match: Match) -> T:
    """What a function of a rule gives. Raises TransformError, which names the rule."""
    with wrap_errors(f"the {part} of the rule {rule.name}", (TransformError,), REMEDY):
        return function(match)


def _instance(right: Pattern, match: Match, out: Var) -> Atom | _Applied | None:
    """The right side for a match; None where it does not have the type of what it replaces."""
    if isinstance(right, App):
        return _application(right, match, out)
    atom = _leaf(right, match, out.type)
    if atom is None or atom.type is out.type:
        return atom
    shape = out.type.shape
    if isinstance(right, Number) and shape and isinstance(out.type, ArrayType):
        return _typed(BroadcastInDim(shape, ()), (atom,), out)
    return None


def _application(right: App, match: Match, out: Var) -> _Applied | None:
    prim = right.prim() if isinstance(right.prim, type) else right.prim
    holes = [match.atoms[a.name] for a in right.args if isinstance(a, Hole)]
    like = holes[0].type if holes else out.type
    atoms = [_leaf(a, match, like) for a in right.args]
    known = tuple([a for a in atoms if a is not None])
    return _typed(prim, known, out) if len(known) == len(atoms) else None


def _typed(prim: Primitive, ins: tuple[Atom, ...], out: Var) -> _Applied | None:
    """The application, where it has the type of what it replaces."""
    try:
        typing = typing_of(prim, tuple([a.type for a in ins]))
    except EffaxError:
        return None
    same = typing.outs == (out.type,) and not typing.effects
    return _Applied(prim, ins) if same else None


def _leaf(pattern: Pattern, match: Match, like: Type) -> Atom | None:
    """What a hole stands for; a number in the dtype of ``like``."""
    if isinstance(pattern, Hole):
        return match.atoms[pattern.name]
    return number_as(pattern.value, like) if isinstance(pattern, Number) else None


def number_as(value: Scalar, like: Type) -> Lit | None:
    """The number in the dtype of ``like``; None where that dtype does not have it."""
    kind = family(like.dtype)
    if isinstance(value, complex) and kind != "complex":
        return None
    if kind in ("bool", "int", "uint") and not _fits(value.real, like):
        return None
    try:
        return lit(value, like)
    except (EffaxError, OverflowError):
        return None


def _fits(value: float, like: Type) -> bool:
    """Whether a number is a value of this dtype of integers or booleans."""
    least, most = (0, 1) if like.dtype.kind == "b" else int_bounds(like.dtype)
    return least <= value <= most and value % 1 == 0
