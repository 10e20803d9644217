"""The pass that applies rewrite rules.

A rule states that two patterns of equations are equal::

    x, y = Hole("x"), Hole("y")
    RewriteRule("x + (-y) = x - y", App(Add, x, App(Neg, y)), App(Sub, x, y), REALS)

Before and after; an equation that is now unused is left to ``dce``::

    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b; d:f32[] = add c a in (d,) }
    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b; d:f32[] = sub a b in (d,) }

A rule applies if the right side has exactly the type of the left side. Operands of commutative
primitives match in both orders. Both sides are equal bit by bit, which the law
``effax.testing.laws.rule_is_sound`` checks on random inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import field
from typing import Final, NamedTuple, TypeVar

from returns.result import Result

from effax.ir.build import Where, typing_of
from effax.ir.dtypes import family
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import BadArgument, TransformError
from effax.ir.primitive import Primitive
from effax.ir.prims import EmptyRef, NewRef
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.rewriter import Transform, at_every_depth
from effax.transforms.framework.runner import as_result, unwrap, wrap_errors
from effax.transforms.optimize.dce import dce
from effax.transforms.optimize.fold import folded
from effax.transforms.optimize.holes import AnyNumber, Hole, IndexHole, Number, Param, Rest
from effax.transforms.optimize.matcher import Index, Match, Scope, match_app, number_as
from effax.transforms.optimize.patterns import (
    ANY,
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    App,
    Body,
    Let,
    Pattern,
    Sample,
    Seq,
    orders,
    parts,
    sequences,
)
from effax.transforms.optimize.replacement import UNFIT, Replacement, Unfit
from effax.transforms.optimize.rewrite_cost import (
    CostFunction,
    cheaper,
    equation_count,
    price,
    weighted,
)
from effax.transforms.optimize.rewrite_rule import RewriteRule, Right, check_right
from effax.transforms.optimize.rule_effects import EFFECTS_OF
from effax.transforms.optimize.sequence_matcher import match
from effax.transforms.optimize.sequence_rewriter import (
    ROUNDS,
    OrderedSeq,
    SequenceRewriter,
    endless,
)

__all__ = [
    "ANY",
    "BOOL",
    "COMPLEX",
    "FLOATS",
    "INTEGERS",
    "NUMBERS",
    "REALS",
    "AnyNumber",
    "App",
    "Body",
    "CostFunction",
    "Hole",
    "Index",
    "IndexHole",
    "Let",
    "Match",
    "Number",
    "Param",
    "Pattern",
    "Rest",
    "RewriteRule",
    "Right",
    "Sample",
    "Seq",
    "equation_count",
    "match",
    "number_as",
    "rewriting",
    "weighted",
]

T = TypeVar("T")

MOST_ROUNDS: Final = 64
"""At most this many runs of the rules find a cheaper program in sequence."""

REMEDY: Final = (
    "it is a function of a `Match`: holes are in `match.atoms`, named applications in `match.prims`"
)


def rewriting(
    rules: Iterable[RewriteRule], cost: CostFunction | None = None
) -> Callable[[Jaxpr], Result[Jaxpr, TransformError]]:
    """Return the pass that applies these rules to every program, until none matches.

    Type:     a -> b  =>  a -> b
    Effects:  the same, or fewer.
    Laws:     tests/laws/test_simplify.py
    Raises:   BadArgument: the argument is not an iterable of rules. The pass fails with
              TransformError if a function of a rule raises, or returns no pattern, and if
              a rule applies to what it made more than sixteen times in sequence.

    Args:
        rules: the rules, in the order in which they are tried.
        cost: the cost of a program. A rule is then applied only where the equations of its right
            side cost less than those that they make unnecessary; the rules run, and dead code is
            removed, as long as the cost of the whole program decreases: it never increases.
            None: every rule is applied where it matches. ``equation_count`` is the cost of size.
    """
    if cost is not None and not callable(cost):
        raise BadArgument(
            "the cost of rewriting is not a function",
            expected="a function from a program to a number, such as `equation_count`",
            found=f"{cost!r:.60}",
        )
    return Rewriting(_rules(rules), cost)


@dataclass(frozen=True)
class Rewriting:
    """The result of :func:`rewriting`: equal for equal rules and costs.

    Attributes:
        rules: the rules, in the order in which they are tried.
        cost: the cost of a program, or None.
        may_cycle: whether rules that do not end are stopped, in the place of a failure.
    """

    rules: tuple[RewriteRule, ...]
    cost: CostFunction | None = None
    may_cycle: bool = False
    _whole: Transform = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compiled = _compiled(self.rules)

        def local(jaxpr: Jaxpr) -> Jaxpr:
            """Apply the rules until none matches."""
            return _Run(jaxpr, compiled, self.cost, self.may_cycle).run()

        object.__setattr__(self, "_whole", at_every_depth(local))

    def __call__(self, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        """Apply the rules until none matches, or as long as the cost decreases."""
        if self.cost is None:
            return self._whole(jaxpr)
        return as_result(self._cheapest)(jaxpr, self.cost)

    def _cheapest(self, jaxpr: Jaxpr, cost: CostFunction) -> Jaxpr:
        before = price(cost, jaxpr)
        for _ in range(MOST_ROUNDS):
            made = unwrap(dce(unwrap(self._whole(jaxpr)))).jaxpr
            after = price(cost, made)
            if not after < before:
                break
            jaxpr, before = made, after
        return jaxpr

    def __reduce__(self) -> tuple[object, ...]:
        return Rewriting, (self.rules, self.cost, self.may_cycle)


class _OrderedRule(NamedTuple):
    """A rule, its left side in one order of the operands that commute, and what is compared first.

    Attributes:
        rule: the rule.
        left: its left side.
        families: the families of the first operand; None for all.
        operands: the positions of operands that are equations, with the class; None for a number.
    """

    rule: RewriteRule
    left: App
    families: Set[str] | None
    operands: tuple[tuple[int, type[Primitive] | None], ...]


class _Compiled(NamedTuple):
    """Rules by the class of the equation that they replace; of a sequence, the last one.

    Attributes:
        single: the rules on single equations.
        sequences: those on sequences, and on equations that may have effects or several results.
    """

    single: dict[type[Primitive], list[_OrderedRule]]
    sequences: dict[type[Primitive], list[OrderedSeq]]


def _compiled(rules: Iterable[RewriteRule]) -> _Compiled:
    made = _Compiled({}, {})
    for rule in rules:
        if isinstance(rule.left, App):
            ordered = made.single.setdefault(rule.left.kind, [])
            families = None if rule.families == ANY else rule.families
            for left in orders(rule.left):
                ordered.append(_OrderedRule(rule, left, families, _operands(left)))
        if isinstance(rule.left, Seq) or any(
            isinstance(part, App) and _may_have_effects(part.kind) for part in parts(rule.left)
        ):
            several = sequences(rule.left)
            last = several[0].steps[-1].value
            assert isinstance(last, App), "checked where the rule was made"
            made.sequences.setdefault(last.kind, []).extend(OrderedSeq(rule, s) for s in several)
    return made


def _operands(left: App) -> tuple[tuple[int, type[Primitive] | None], ...]:
    return tuple(
        [
            (i, arg.kind if isinstance(arg, App) else None)
            for i, arg in enumerate(left.args)
            if isinstance(arg, App | Number)
        ]
    )


def _may_have_effects(kind: type[Primitive]) -> bool:
    """Return whether equations of a class may have effects or several results."""
    if (
        kind.subjaxprs is not Primitive.subjaxprs
        or kind in EFFECTS_OF
        or kind in (NewRef, EmptyRef)
    ):
        return True
    own = "effax.ir.prims"
    return not kind.__module__.startswith(own) or kind.__module__ == f"{own}.host"


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


class _Run:
    """One run of the pass: the new program, and the equation of each of its variables."""

    def __init__(
        self, jaxpr: Jaxpr, rules: _Compiled, cost: CostFunction | None, may_cycle: bool
    ) -> None:
        self.made = Rewriter(jaxpr)
        self.may_cycle = may_cycle
        # The last rule that applied, and an equation to which it still does at the bound.
        self.last: RewriteRule | None = None
        self.over: Eqn | None = None
        self.rules = rules.single
        self.cost = cost
        self.by_var: dict[int, Eqn] = {}
        self.scope = Scope(self.by_var)
        # How many more rules may apply at the present equation.
        self.left = ROUNDS
        self.nested = False
        self.source: Where = None
        self.slow: SequenceRewriter | None = None
        if rules.sequences or cost is not None:
            self.slow = SequenceRewriter(
                self.made, rules.sequences, self.by_var, self.emit, decided, cost, may_cycle
            )

    def run(self) -> Jaxpr:
        made, slow = self.made, self.slow
        for eqn in made.jaxpr.eqns:
            ins = made.operands(eqn)
            start = len(made.b.eqns)
            self.left, self.source = ROUNDS, eqn.source
            if slow is not None:
                ins = slow.reach(eqn, ins)
            if len(eqn.outs) == 1 and not eqn.effects:
                self.rewritten(eqn, ins)
            else:
                made.keep(eqn, ins)
                self.by_var.update((v.id, made.b.eqns[-1]) for v in made.b.eqns[-1].outs)
            if slow is not None:
                for v in eqn.outs:
                    slow.bound(v, made.read(v))
                slow.settle(start)
        return made.finish() if slow is None else slow.finish()

    def rewritten(self, eqn: Eqn, ins: tuple[Atom, ...]) -> None:
        """Apply rules to one equation until none matches, and append the result."""
        found = self.reduced(Eqn(eqn.prim, ins, eqn.outs, source=eqn.source))
        if self.over is not None and self.last is not None:
            raise endless(self.last, self.over)
        if not isinstance(found, Eqn):
            self.made.replace(eqn, [found])
            return
        if found.prim != eqn.prim or found.ins != ins:
            self.made.changed = True
        self.made.keep(eqn._replace(prim=found.prim), found.ins)
        self.by_var[self.made.b.next_id - 1] = self.made.b.eqns[-1]

    def emit(self, prim: Primitive, ins: tuple[Atom, ...]) -> tuple[Atom, ...]:
        """Append an equation of a right side, after rules have been applied to it."""
        b = self.made.b
        outs, effects = typing_of(prim, tuple([a.type for a in ins]))
        if len(outs) == 1 and not effects and self.cost is None and not self.nested:
            self.nested = True
            found = self.reduced(Eqn(prim, ins, (Var(b.next_id, outs[0]),), source=self.source))
            self.nested = False
            if not isinstance(found, Eqn):
                return (found,)
            prim, ins = found.prim, found.ins
        made = b.emit_typed(prim, ins, outs, effects, self.source)
        self.by_var.update((v.id, b.eqns[-1]) for v in made)
        return made

    def reduced(self, eqn: Eqn) -> Eqn | Atom:
        """Return the equation to which no rule applies, or the atom, in place of an equation.

        The other equations of right sides are appended.
        """
        used: list[tuple[RewriteRule | None, Eqn]] = []
        while self.left:
            found = self.applied(eqn)
            if found is None:
                return eqn
            self.left -= 1
            used.append((self.last, eqn))
            if not isinstance(found, Eqn):
                return found
            eqn = found
        if not self.may_cycle and self._grows(used, eqn) and self.applied(eqn) is not None:
            self.over = eqn
        return eqn

    def _grows(self, used: Sequence[tuple[RewriteRule | None, Eqn]], eqn: Eqn) -> bool:
        """Return whether one rule made all equations of a sequence, which are different.

        Rules that undo each other, or reorder operands, come back to an equation, and are done.
        """
        seen = [(old.prim, old.ins) for _, old in used]
        return len({id(rule) for rule, _ in used}) == 1 and (eqn.prim, eqn.ins) not in seen

    def applied(self, eqn: Eqn) -> Eqn | Atom | None:
        """Return the replacement of an equation by the first rule that applies; else None."""
        b = self.made.b
        if self.cost is not None and self.slow is not None:
            # Not later: equations of a right side that is rejected must not be taken in.
            self.slow.known.sync()
        for ordered in self.rules.get(type(eqn.prim), ()):
            match = self.matched(ordered, eqn)
            right = None if match is None else decided(ordered.rule, match)
            if match is None or right is None:
                continue
            begun = len(b.eqns), b.next_id
            try:
                found = self.replacement(right, match, eqn)
                if not self.is_worse(found, eqn, match, begun[0]):
                    self.last = ordered.rule
                    return found
            except UNFIT:
                pass
            del b.eqns[begun[0] :]
            b.next_id = begun[1]
        return None

    def matched(self, ordered: _OrderedRule, eqn: Eqn) -> Match | None:
        """Return the match of a left side, if all of it is free of effects."""
        rule, left, families, operands = ordered
        ins, by_var = eqn.ins, self.by_var
        if families is not None and (not ins or family(ins[0].type.dtype) not in families):
            return None
        for i, kind in operands:
            a = ins[i] if i < len(ins) else None
            if isinstance(a, Var):
                inner = by_var.get(a.id)
                if inner is None or type(inner.prim) is not kind:
                    return None
            elif kind is not None:
                return None
        match = Match()
        match.outside = rule.outside
        if not match_app(left, eqn, self.scope, match):
            return None
        return None if any(inner.effects for inner in match.inside) else match

    def replacement(self, right: Pattern | Seq, match: Match, eqn: Eqn) -> Eqn | Atom:
        """Return the right side for a match. Raises Unfit or EffaxError unless it fits."""
        made = Replacement(match, self.emit)
        (out,) = eqn.outs
        if isinstance(right, Seq):
            raise Unfit
        if not isinstance(right, App):
            return made.whole(right, out.type)
        prim, ins = made.application(right, out.type)
        typing = typing_of(prim, tuple([a.type for a in ins]))
        if typing.outs != (out.type,) or typing.effects:
            raise Unfit
        new = Eqn(prim, ins, (Var(self.made.b.next_id, out.type),), source=eqn.source)
        literals = folded(new) if all(isinstance(a, Lit) for a in ins) else None
        return new if literals is None else literals[0]

    def is_worse(self, found: Eqn | Atom, eqn: Eqn, match: Match, start: int) -> bool:
        """Return whether a replacement is no progress, or does not cost less."""
        if isinstance(found, Eqn) and (found.prim, found.ins) == (eqn.prim, eqn.ins):
            # Such as swapped operands that are matched in both orders.
            return True
        if self.cost is None or self.slow is None:
            return False
        known = self.slow.known
        dead = self.slow.dead_inside(match, set())
        new = [*known.eqns[start:], *([found] if isinstance(found, Eqn) else [])]
        return not cheaper(self.cost, new, [*[known.eqns[i] for i in sorted(dead)], eqn])


def decided(rule: RewriteRule, match: Match) -> Pattern | Seq | None:
    """Return the right side of a rule for a match; None if its condition does not hold."""
    if rule.where is not None and not _called(rule, "condition", rule.where, match):
        return None
    right = rule.right
    if isinstance(right, Pattern | Seq):
        return right
    return check_right(rule, _called(rule, "right side", right, match))


def _called(rule: RewriteRule, part: str, function: Callable[[Match], T], match: Match) -> T:
    """Call a function of a rule. Raises TransformError with the rule's name."""
    with wrap_errors(f"the {part} of the rule {rule.name}", (TransformError,), REMEDY):
        return function(match)
