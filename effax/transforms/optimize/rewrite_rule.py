"""Rewrite rules as values: two sides, and the checks of both where a rule is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import MISSING
from functools import cached_property
from itertools import product
from typing import Final

from effax.ir.build import typing_of
from effax.ir.dtypes import as_dtype, family
from effax.ir.errors import BadArgument, EffaxError, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.syntax import Jaxpr
from effax.ir.text.format import fields_of
from effax.ir.types import ArrayType, Type, array_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.optimize.holes import AnyNumber, Hole, IndexHole, Number, Param, Rest, near
from effax.transforms.optimize.matcher import Match, number_as
from effax.transforms.optimize.patterns import (
    ANY,
    App,
    Let,
    Pattern,
    Sample,
    Seq,
    instance_of,
    parts,
)
from effax.transforms.optimize.rule_effects import accesses, effects_fault
from effax.transforms.optimize.rule_printer import functions_of, rule_text

Right = Pattern | Seq | Callable[[Match], Pattern | Seq]

MOST_ORDERS: Final = 256
"""A left side may be matched in at most this many orders of commutative operands."""


@dataclass(frozen=True)
class RewriteRule:
    """``left = right``, for operands whose dtype is in one of these families.

    Attributes:
        name: the equation, for messages.
        left: the pattern that is replaced, in all orders of commutative operands: an application,
            or a sequence of them.
        right: its replacement: a pattern; a sequence, whose names of results are those of the left
            side; or a function that returns one of these for a match.
        families: the families of the first operand's dtype: some of "bool", "int", "uint",
            "float", "complex", such as :data:`REALS` or :data:`ANY`.
        where: a further condition on a match.
        samples: instances of the left side, for the law of a rule whose primitives have parameters,
            or programs to which the rule applies.

    Raises:
        BadArgument: the left side is not an application or a sequence; the right side has a name
            that the left side lacks, or only reorders the left side; a name is used twice; a family
            is unknown; a step of a sequence shares nothing with later ones; effects of the left
            side are lost.
        IllTyped: the sides never have the same type.
    """

    name: str
    left: App | Seq
    right: Right
    families: Set[str] = ANY
    where: Callable[[Match], bool] | None = None
    samples: Sequence[Sample | Jaxpr] = ()

    def __post_init__(self) -> None:
        _check_left(self)
        object.__setattr__(self, "families", _families(self))
        _check_functions(self)
        object.__setattr__(self, "samples", tuple(self.samples))
        for sample in self.samples:
            _check_sample(self, sample)
        if isinstance(self.right, Pattern | Seq):
            check_right(self, self.right)
            _check_progress(self, self.right)
            _check_types(self, self.right)

    @cached_property
    def outside(self) -> frozenset[str]:
        """The names that the right side uses outside of subjaxprs."""
        right = self.right
        return _outer_names(right) if isinstance(right, Pattern | Seq) else frozenset()

    @property
    def references(self) -> dict[str, Callable[[Match], object]]:
        """The functions of the rule, by their names in its text."""
        return functions_of(self)

    def __str__(self) -> str:
        return rule_text(self)


def steps_of(pattern: Pattern | Seq) -> tuple[Let, ...]:
    """Return the steps of a side; an application is one."""
    return pattern.steps if isinstance(pattern, Seq) else (Let((), pattern),)


def _check_left(rule: RewriteRule) -> None:
    left: object = rule.left
    if not isinstance(left, App | Seq) or not all(
        isinstance(step.value, App) for step in steps_of(left)
    ):
        raise BadArgument(
            f"the left side of the rule {rule.name} is not an application",
            expected="`App(primitive, ...)`: a rule replaces an equation; or a `Seq` of these",
            found=f"{left!r:.60}",
        )
    if not steps_of(left):
        raise BadArgument(
            f"the left side of the rule {rule.name} matches everything",
            expected="at least one application",
            found="an empty sequence",
        )
    _check_names(rule, left)
    _check_connected(rule, left)
    commuting = sum(isinstance(p, App) and p.kind.commutes for p in parts(left))
    if 2**commuting > MOST_ORDERS:
        raise BadArgument(
            f"the left side of the rule {rule.name} can be matched in too many orders",
            expected=f"at most {MOST_ORDERS.bit_length() - 1} commutative applications",
            found=str(commuting),
            remedy="split it into several rules",
        )


def _check_names(rule: RewriteRule, left: App | Seq) -> None:
    holes = {p.name for p in parts(left) if isinstance(p, Hole | AnyNumber | Rest | IndexHole)}
    once = [p.name for p in parts(left) if isinstance(p, App) and p.name]
    results = [name for step in steps_of(left) for name in step.names]
    twice = [name for i, name in enumerate(once) if name in holes or name in once[:i]]
    twice += [n for i, n in enumerate(results) if n in results[:i] or n in once]
    kinds: dict[str, type] = {}
    for part in parts(left):
        if isinstance(part, Hole | AnyNumber | Rest | IndexHole):
            kind = kinds.setdefault(part.name, type(part))
            twice += [part.name] if kind is not type(part) else []
    if twice:
        raise BadArgument(
            f"the rule {rule.name} has a duplicate name",
            expected="distinct names of applications, results and holes",
            found=twice[0],
        )


def _check_connected(rule: RewriteRule, left: App | Seq) -> None:
    """Raise BadArgument unless each step but the last is found from later ones."""
    steps = steps_of(left)
    known = hole_names(steps[-1].value)
    for step in reversed(steps[:-1]):
        own = hole_names(step.value)
        if not known.intersection([*step.names, *operands_of(step)]):
            raise BadArgument(
                f"a step of the rule {rule.name} shares nothing with later ones",
                expected="a result that a later step uses, or an operand of one",
                found=str(step),
                remedy="two rules; or a step that uses both",
            )
        known |= own


def operands_of(step: Let) -> list[str]:
    """Return the names of the holes that are operands of a step."""
    app = step.value
    return [a.name for a in app.args if isinstance(a, Hole)] if isinstance(app, App) else []


def _outer_names(pattern: Pattern | Seq) -> frozenset[str]:
    found: set[str] = set()
    waiting: list[Pattern] = [step.value for step in steps_of(pattern)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, App):
            waiting += part.args
        elif not isinstance(part, Number):
            found.add(part.name)
    return frozenset(found)


def hole_names(pattern: Pattern | Seq) -> set[str]:
    """Return the names of atoms in a pattern."""
    return {p.name for p in parts(pattern) if isinstance(p, Hole | AnyNumber | Rest | IndexHole)}


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
    if not isinstance(right, Pattern | Seq) and not callable(right):
        raise BadArgument(
            f"the right side of the rule {rule.name} is not a pattern",
            expected="`Hole`, `Number`, `App`, `Seq`, or a function of the match that returns one",
            found=f"{right!r:.60}",
            remedy=f"`Number({right!r})`" if isinstance(right, int | float | complex) else None,
        )


def check_right(rule: RewriteRule, right: object) -> Pattern | Seq:
    """Return the right side of a rule; raise BadArgument unless it is valid."""
    if not isinstance(right, Pattern | Seq) or isinstance(right, Rest | IndexHole):
        raise BadArgument(
            f"the right side of the rule {rule.name} does not return a pattern",
            expected="`Hole`, `Number`, `App` or `Seq`",
            found=f"{right!r:.60}",
        )
    left = {part.name: part for part in parts(rule.left) if isinstance(part, App) and part.name}
    bound = {name for step in steps_of(rule.left) for name in step.names}
    known = hole_names(rule.left) - bound
    for step in steps_of(right):
        for part in parts(step.value):
            _check_part(rule, part, known, bound, left)
        known.update(step.names)
    _check_results(rule, right)
    _check_effects(rule, right)
    return right


def _check_part(
    rule: RewriteRule, part: Pattern, known: set[str], bound: set[str], left: dict[str, App]
) -> None:
    params = {v.name for p in parts(rule.left) if isinstance(p, App) for v in _params(p)}
    if isinstance(part, App):
        used = {v.name for v in _params(part)}
        _check_known(rule, "a parameter", used - params, params)
        base = left.get(part.name)
        if base is not None and base.kind is part.kind:
            known_inside = {h.name for body in part.bodies for h in body.ins or ()}
            known |= known_inside
        elif part.bodies:
            raise BadArgument(
                f"the right side of the rule {rule.name} changes a subjaxpr of no matched equation",
                expected="the name of an application of the left side",
                found=str(part),
                remedy=near(part.name, left) if part.name else "name both: `App(..., name='loop')`",
            )
        else:
            _check_parameters(rule, part)
    elif not isinstance(part, Number) and part.name not in known:
        if part.name in bound:
            raise BadArgument(
                f"the right side of the rule {rule.name} uses the result of a replaced step",
                expected="a result of an earlier step on the right side, or a hole",
                found=part.name,
                remedy=f"write the step on the right side too: `Let({part.name!r}, ...)`",
            )
        _check_known(rule, "a hole", {part.name}, known)


def _check_known(rule: RewriteRule, what: str, used: set[str], known: set[str]) -> None:
    for name in sorted(used - known):
        raise BadArgument(
            f"the right side of the rule {rule.name} has {what} that the left side lacks",
            expected=", ".join(sorted(known)) or f"no {what.rsplit(maxsplit=1)[-1]}",
            found=name,
            remedy=near(name, known),
        )


def _params(app: App) -> list[Param]:
    return [value for _, value in app.params if isinstance(value, Param)]


def _check_parameters(rule: RewriteRule, app: App) -> None:
    if not isinstance(app.prim, type):
        return
    given = {name for name, _ in app.params}
    if app.args and isinstance(app.args[-1], IndexHole):
        given.add("indexer")
    needed = [
        f.name
        for f in fields_of(app.prim)
        if f.default is MISSING and f.default_factory is MISSING and f.init
    ]
    if not given.issuperset(needed):
        raise without_parameters(rule, app)


def without_parameters(rule: RewriteRule, app: App) -> BadArgument:
    """Return the error for an application that lacks parameters."""
    return BadArgument(
        f"the rule {rule.name} applies {app.prim.name} without its parameters",
        expected=f"an instance, `{app.kind.__name__}(...)`",
        found=str(app),
        remedy="on the right: `params={...: Param(name)}`, or the name of a matched application; "
        "on the left: add an instance to the samples",
    )


def with_parameters(rule: RewriteRule, app: App) -> Primitive:
    """Return the primitive of an application; raise BadArgument if it lacks parameters."""
    found = instance_of(app)
    if found is None:
        raise without_parameters(rule, app)
    return found


def _check_results(rule: RewriteRule, right: Pattern | Seq) -> None:
    if isinstance(rule.left, App) and isinstance(right, Seq):
        raise BadArgument(
            f"the right side of the rule {rule.name} does not say which result replaces the left",
            expected="a pattern; or a sequence on the left too, with names of results",
            found=str(right),
            remedy="`Seq(Let('v', App(...)))` on the left",
        )
    if isinstance(rule.left, Seq) and not isinstance(right, Seq):
        raise BadArgument(
            f"the right side of the rule {rule.name} is not a sequence",
            expected="`Seq(...)`, which defines the results of the left side that later equations "
            "use",
            found=str(right),
        )


def _check_effects(rule: RewriteRule, right: Pattern | Seq) -> None:
    own = {name for step in steps_of(rule.left) for name in step.names}
    before = [access for access in accesses(rule.left) if access[1] not in own]
    after = [access for access in accesses(right) if access[1] not in own]
    fault = effects_fault(before, after)
    if fault is not None:
        raise BadArgument(
            f"the right side of the rule {rule.name} {fault[0]}",
            expected=fault[1],
            found=str(right),
        )


def kept_steps(left: Sequence[Let], right: Sequence[Let]) -> list[int]:
    """Return the steps of the left side that begin the right side, in order."""
    found: list[int] = []
    for step in right:
        places = [k for k in range(found[-1] + 1 if found else 0, len(left)) if left[k] == step]
        if not places:
            break
        found.append(places[0])
    return found


def _check_progress(rule: RewriteRule, right: Pattern | Seq) -> None:
    """Raise BadArgument for a sequence that only reorders the steps of the left side.

    Steps that begin the right side stay; so the others would be replaced by themselves.
    """
    if not isinstance(rule.left, Seq) or not isinstance(right, Seq):
        return
    left, steps = rule.left.steps, right.steps
    kept = kept_steps(left, steps)
    gone = [step.value for k, step in enumerate(left) if k not in kept]
    if gone == [step.value for step in steps[len(kept) :]]:
        raise BadArgument(
            f"the right side of the rule {rule.name} only reorders the steps of the left side",
            expected="other equations, or fewer: equations that are only moved may match again, "
            "and rules are applied until none matches",
            found=str(right),
            remedy="move equations by a pass of your own, a function under `as_pass`",
        )


DTYPES: Final = ("float32", "int32", "bool", "complex64", "uint8")
"""The dtypes of holes in which the types of both sides are compared."""

MOST_HOLES: Final = 3
"""Types are not compared for more holes: all their combinations are tried."""


def _check_types(rule: RewriteRule, right: Pattern | Seq) -> None:
    """Raise IllTyped if the sides have types, and never the same."""
    found: tuple[Type, Type | None] | None = None
    if isinstance(right, Seq) or isinstance(rule.left, Seq):
        return
    for types, left in _typed_instances(rule):
        before = _type_of(left, types)
        first = _type_of(left.args[0], types) if left.args else None
        if before is None or (first is not None and family(first.dtype) not in rule.families):
            continue
        after = _type_of(right, types, before)
        if after is before or (isinstance(right, Number) and after is not None):
            return
        if found is None or found[1] is None:
            found = before, after
    if found is not None and found[1] is not None:
        raise IllTyped(
            f"the right side of the rule {rule.name} has another type than the left side",
            expected=str(found[0]),
            found=f"{found[1]}: {right}",
        )


def _typed_instances(rule: RewriteRule) -> Iterator[tuple[dict[str, Type], App]]:
    """Yield types of the holes, equal ones first, and an instance of the left side."""
    holes = sorted(hole_names(rule.left))
    has_others = any(
        isinstance(p, Rest | IndexHole | AnyNumber)
        or (isinstance(p, App) and (p.bodies or p.type))
        or (isinstance(p, Hole) and p.type)
        for p in parts(rule.left)
    )
    if has_others or len(holes) > MOST_HOLES or not isinstance(rule.left, App):
        return
    samples = [s for s in rule.samples if isinstance(s, Sample)] or [Sample(rule.left, ())]
    if any(instance_of(p) is None for s in samples for p in parts(s.left) if isinstance(p, App)):
        return
    for left, shape, dtype in samples:
        dtypes = [dtype] if dtype is not None else DTYPES
        for several in sorted(product(dtypes, repeat=len(holes)), key=lambda s: len(set(s))):
            yield {n: array_type(shape, d) for n, d in zip(holes, several, strict=True)}, left


def _type_of(pattern: Pattern, types: dict[str, Type], like: Type | None = None) -> Type | None:
    """Return the type of a pattern; None if it has none, or it is unknown."""
    match pattern:
        case Hole(name):
            return types[name]
        case Number(value):
            made = None if like is None else number_as(value, like)
            return None if made is None else made.type
        case App():
            return _type_of_app(pattern, types, like)
        case _:
            return None


def _type_of_app(app: App, types: dict[str, Type], like: Type | None) -> Type | None:
    prim = instance_of(app)
    inner = [None if isinstance(a, Number) else _type_of(a, types, like) for a in app.args]
    first = next((t for t in inner if t is not None), like)
    for i, arg in enumerate(app.args):
        if isinstance(arg, Number):
            inner[i] = _type_of(arg, types, first)
    known = [t for t in inner if t is not None]
    if prim is None or app.name or len(known) < len(inner):
        return None
    try:
        outs = typing_of(prim, tuple(known)).outs
    except EffaxError:
        return None
    return outs[0] if len(outs) == 1 and isinstance(outs[0], ArrayType) else None


def _check_sample(rule: RewriteRule, sample: object) -> None:
    if isinstance(sample, Jaxpr):
        return
    if not isinstance(sample, Sample) or not isinstance(sample.left, App):
        raise BadArgument(
            f"the rule {rule.name} has an invalid sample",
            expected="`Sample(left, shape)`, with an instance of the left side, or a program",
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
