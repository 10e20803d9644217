"""The pass that applies rewrite rules.

A rule states that two patterns of equations are equal::

    x, y = Hole("x"), Hole("y")
    RewriteRule("x + (-y) = x - y", App(Add, x, App(Neg, y)), App(Sub, x, y), REALS)

Before and after; an equation that is now unused is left to ``dce``::

    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b; d:f32[] = add c a in (d,) }
    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b; d:f32[] = sub a b in (d,) }

A rule applies if the right side has exactly the type of the left side. It replaces one equation by
at most one, so that no program grows. Operands of commutative primitives match in both orders.
Only equations without effects match. Both sides are equal bit by bit, which the law
``effax.testing.laws.rule_is_sound`` checks on random inputs.
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
"""At most this many rules apply to one equation in sequence: a set of rules may cycle."""

REMEDY: Final = (
    "it is a function of a `Match`: holes are in `match.atoms`, named applications in `match.prims`"
)


def rewriting(rules: Iterable[RewriteRule]) -> Callable[[Jaxpr], Result[Jaxpr, TransformError]]:
    """Return the pass that applies these rules to every program, until none matches.

    Type:     a -> b  =>  a -> b
    Effects:  the same.
    Laws:     tests/laws/test_simplify.py
    Raises:   BadArgument: the argument is not an iterable of rules. The pass fails with
              TransformError if a function of a rule raises, or returns no pattern.
    """
    return Rewriting(_rules(rules))


@dataclass(frozen=True)
class Rewriting:
    """The result of :func:`rewriting`: equal for equal rules.

    Attributes:
        rules: the rules, in the order in which they are tried.
    """

    rules: tuple[RewriteRule, ...]
    _whole: Transform = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rules: _RulesByClass = {}
        for rule in self.rules:
            ordered = rules.setdefault(rule.left.kind, [])
            ordered += [_OrderedRule(rule, left) for left in orders(rule.left)]

        def local(jaxpr: Jaxpr) -> Jaxpr:
            """Apply the rules until none matches."""
            return _Matcher(jaxpr, rules).run()

        object.__setattr__(self, "_whole", at_every_depth(local))

    def __call__(self, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        """Apply the rules until none matches."""
        return self._whole(jaxpr)

    def __reduce__(self) -> tuple[object, ...]:
        return Rewriting, (self.rules,)


class _OrderedRule(NamedTuple):
    """A rule, and its left side in one order of the operands that commute."""

    rule: RewriteRule
    left: App


_RulesByClass = dict[type[Primitive], list[_OrderedRule]]


def _rules(given: object) -> tuple[RewriteRule, ...]:
    if isinstance(given, Iterable):
        rules = tuple(given)
        if all(isinstance(rule, RewriteRule) for rule in rules):
            return rules
    raise BadArgument(
        "rewriting takes rules",
        expected="an iterable of `RewriteRule`s",
        found=f"{given!r:.80}",
        remedy="`rewriting([rule])`" if isinstance(given, RewriteRule) else None,
    )


class _Matcher:
    """One run of the pass: the new program, and the equation of each of its variables."""

    def __init__(self, jaxpr: Jaxpr, rules: _RulesByClass) -> None:
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
        """Apply rules to one equation until none matches, and append the result."""
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
        """Return the replacement of an application by the first rule that applies; else None."""
        for rule, left in self.rules.get(type(prim), ()):
            match = self.matched(rule, left, prim, ins)
            if match is None:
                continue
            right = rule.right
            if not isinstance(right, Pattern):
                right = check_right(rule, _called(rule, "right side", right, match))
            made = _instance(right, match, out)
            # An equal result, such as swapped operands matched both ways, is no progress.
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
        expected = pattern.prim
        fits = type(prim) is expected if isinstance(expected, type) else prim == expected
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
    """An application on the right side of a rule."""

    prim: Primitive
    ins: tuple[Atom, ...]


def match_hole(match: Match, name: str, atom: Atom) -> bool:
    """Bind a hole, or compare with its binding; return whether it matches."""
    return match.atoms.setdefault(name, atom) == atom


def _called(rule: RewriteRule, part: str, function: Callable[[Match], T], match: Match) -> T:
    """Call a function of a rule. Raises TransformError with the rule's name."""
    with wrap_errors(f"the {part} of the rule {rule.name}", (TransformError,), REMEDY):
        return function(match)


def _instance(right: Pattern, match: Match, out: Var) -> Atom | _Applied | None:
    """Return the right side for a match; None if its type differs from the replaced result's."""
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
    """Return the application; None if it has effects, or another type than the replaced result."""
    try:
        typing = typing_of(prim, tuple([a.type for a in ins]))
    except EffaxError:
        return None
    same = typing.outs == (out.type,) and not typing.effects
    return _Applied(prim, ins) if same else None


def _leaf(pattern: Pattern, match: Match, like: Type) -> Atom | None:
    """Return the atom of a hole, or a number in the dtype of ``like``."""
    if isinstance(pattern, Hole):
        return match.atoms[pattern.name]
    return number_as(pattern.value, like) if isinstance(pattern, Number) else None


def number_as(value: Scalar, like: Type) -> Lit | None:
    """Return the number in the dtype of ``like``; None if that dtype does not represent it."""
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
    """Return whether a dtype of integers or booleans represents a number."""
    least, most = (0, 1) if like.dtype.kind == "b" else int_bounds(like.dtype)
    return least <= value <= most and value % 1 == 0
