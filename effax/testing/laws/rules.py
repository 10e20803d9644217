"""The law of rewrite rules: both sides are equal, bit by bit or within a tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

import numpy as np
from returns.result import Success

from effax.ir.analysis.check import check
from effax.ir.analysis.diff import diff
from effax.ir.build import Builder, typing_of
from effax.ir.dtypes import DType, as_dtype, family
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.types import Shape, Type, array_type
from effax.passes.guarantees import Guarantee
from effax.testing.generate.rule_programs import has_own_programs, rule_programs
from effax.testing.generate.special_values import all_together, identical, special_values
from effax.testing.generate.values import elided, random_inputs, random_value, run
from effax.testing.laws.equivalence import Agreement
from effax.testing.laws.guarantees import agreement_of
from effax.testing.laws.law import About, law
from effax.testing.laws.tolerance import Allowed, Tolerances, compare
from effax.testing.report.report import Inconclusive
from effax.transforms.framework.runner import unwrap
from effax.transforms.optimize.patterns import orders, parts
from effax.transforms.optimize.rewrite import (
    ANY,
    AnyNumber,
    App,
    Hole,
    IndexHole,
    Number,
    Pattern,
    Rest,
    RewriteRule,
    Rewriting,
    Sample,
    match,
    number_as,
)
from effax.transforms.optimize.rewrite_rule import with_parameters

T = TypeVar("T")


@law(about=About.EXPLICIT)
def rule_is_sound(
    rule: RewriteRule,
    seed: int = 0,
    guarantee: Guarantee | None = None,
    rtol: Allowed | None = None,
    atol: Allowed | None = None,
) -> None:
    """left(x) = right(x), by default bit by bit: signs of zeros, infinities and nan too.

    The rule must apply to each of its instances, in every order of operands that commute; a rule
    with a condition, to one of them at least. Its samples are the instances; without samples, all
    dtypes in which the left side types and its first operand is of the rule's families, on random
    values and on all combinations of special values, as scalars and along an axis.

    Args:
        rule: the rule.
        seed: the seed of the values.
        guarantee: how closely the sides agree: ``SAME_BITS``, ``SAME_MEANING`` (up to a tolerance,
            without numbers that nearly overflow) or ``SAME_WHERE_FINITE``. By default
            ``SAME_MEANING`` with a tolerance, else ``SAME_BITS``.
        rtol: the relative tolerance, a number or one by dtype, measured by ``check_close``.
        atol: the absolute tolerance, likewise.

    Raises:
        Inconclusive: the rule applies to no program, or its primitives need samples.
    """
    agreement = _agreement(guarantee, rtol, atol)
    rng = np.random.default_rng(seed)
    applied = _applied_to_programs(rule, rng, agreement) if has_own_programs(rule) else 0
    refused: Jaxpr | None = None
    for instance in () if has_own_programs(rule) else _tested(instances(rule)):
        jaxpr = program_of(rule, instance)
        made = unwrap(Rewriting((rule,), may_cycle=True)(jaxpr))
        if made == jaxpr and rule.where is not None and not instance.is_given:
            refused = jaxpr
            continue
        assert made != jaxpr, (
            f"the rule does not apply to an instance of its left side, since {reason(rule, jaxpr)}:"
            f"\n{jaxpr}"
        )
        applied += 1
        assert isinstance(check(made), Success), f"the right side is ill typed:\n{made}"
        for inputs in inputs_of(rng, jaxpr, instance.shape, agreement.exact):
            _check_sides(jaxpr, made, inputs, agreement)
    if not applied:
        raise _untested(rule, refused)


def _untested(rule: RewriteRule, refused: Jaxpr | None) -> Inconclusive:
    """Return the error for a rule that applies to no program.

    Args:
        rule: the rule.
        refused: a program of its left side to which it does not apply; None: there is none.
    """
    found = "no program: there is no dtype in which its left side types and its first operand is of"
    families = ", ".join(sorted(rule.families))
    return Inconclusive(
        f"the rule {rule.name} does not apply to anything that was tried",
        expected="an instance of its left side to which it applies",
        found=f"{found} {families}"
        if refused is None
        else f"{reason(rule, refused)}, as in:\n{refused}",
        remedy="declare `samples`: programs, or `Sample(left, shape, dtype)`",
    )


def _tested(several: Iterator[T]) -> Iterator[T]:
    """Yield the instances of a rule. Raises Inconclusive if parameters are missing."""
    try:
        yield from several
    except BadArgument as error:
        raise Inconclusive(error.what, error.expected, error.found, error.remedy) from error


def reason(rule: RewriteRule, jaxpr: Jaxpr) -> str:
    """Return why a rule does not apply to a program."""
    anywhere = replace(rule, where=None, families=ANY)
    if not match(anywhere, jaxpr):
        return "the left side matches no equations"
    if not match(replace(rule, where=None), jaxpr):
        return f"the first operand is not of {', '.join(sorted(rule.families))}"
    if not match(rule, jaxpr):
        return "the condition does not hold"
    return "the right side does not fit: its types are others, or a result is used that it lacks"


def _applied_to_programs(rule: RewriteRule, rng: np.random.Generator, agreement: Agreement) -> int:
    """Compare both sides on programs, contents of references included; return how many there were.

    The rule must apply to those that are samples.
    """
    applied = 0
    refused: Jaxpr | None = None
    for jaxpr in _tested(rule_programs(rule)):
        made = unwrap(Rewriting((rule,), may_cycle=True)(jaxpr))
        if made == jaxpr:
            assert jaxpr not in rule.samples, (
                f"the rule does not apply to its sample, since {reason(rule, jaxpr)}:\n{jaxpr}"
            )
            refused = jaxpr
            continue
        applied += 1
        assert isinstance(check(made), Success), f"the right side is ill typed:\n{made}"
        for seed in range(8):
            _check_sides(jaxpr, made, random_inputs(jaxpr.in_types, seed), agreement)
            special = [special_values(rng, t, agreement.exact) for t in jaxpr.in_types]
            _check_sides(jaxpr, made, special, agreement)
    if not applied:
        raise _untested(rule, refused)
    return applied


def _agreement(
    guarantee: Guarantee | None, rtol: Allowed | None, atol: Allowed | None
) -> Agreement:
    """Return how closely the sides agree. Raises BadArgument where a tolerance has no meaning."""
    rounded = rtol is not None or atol is not None
    if guarantee is None:
        guarantee = Guarantee.SAME_MEANING if rounded else Guarantee.SAME_BITS
    found = agreement_of((guarantee,), Tolerances(rtol, atol))
    if found is None or (found.exact and rounded):
        raise BadArgument(
            "the guarantee of a rule is not valid",
            expected="Guarantee.SAME_BITS without a tolerance, SAME_MEANING or SAME_WHERE_FINITE",
            found=str(guarantee),
        )
    return found


def _check_sides(jaxpr: Jaxpr, made: Jaxpr, inputs: list[np.ndarray], agreement: Agreement) -> None:
    if agreement.tolerance is not None:
        try:
            compare(jaxpr, made, inputs, agreement.tolerance, agreement.where_finite)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{diff(jaxpr, made)}") from None
        return
    before, after = run(jaxpr, inputs), run(made, inputs)
    found = zip([*before.outs, *before.contents], [*after.outs, *after.contents], strict=True)
    for x, y in found:
        if not identical(np.asarray(x), np.asarray(y)):
            raise AssertionError(_unequal(inputs, np.asarray(x), np.asarray(y), jaxpr, made))


RANDOM: Final = 3
"""The number of inputs of random values."""


def inputs_of(
    rng: np.random.Generator, jaxpr: Jaxpr, shape: Shape, extremes: bool = True
) -> Iterator[list[np.ndarray]]:
    """Yield inputs of random values, then of special ones: all combinations, for long holes."""
    for _ in range(RANDOM):
        yield [np.array(random_value(rng, t)) for t in jaxpr.in_types]
    if shape == (MANY,):
        combined = all_together([t.dtype for t in jaxpr.in_types], extremes)
        count = len(combined[0]) if combined else 0
        picked: np.ndarray = rng.permutation(count)[:MANY]
        yield [np.resize(x[picked], MANY) for x in combined]
        return
    for _ in range(8):
        yield [special_values(rng, t, extremes) for t in jaxpr.in_types]


def _unequal(
    inputs: list[np.ndarray], x: np.ndarray, y: np.ndarray, jaxpr: Jaxpr, made: Jaxpr
) -> str:
    """Return the message for the first element where the sides differ."""
    if x.shape == (MANY,) == y.shape and x.dtype == y.dtype:
        at = next(i for i in range(MANY) if not identical(x[i : i + 1], y[i : i + 1]))
        inputs, x, y = [v[at] for v in inputs], x[at], y[at]
    return (
        f"on {', '.join(map(elided, inputs))}\nthe left side is {elided(x)}"
        f"\nthe right side is {elided(y)}\n{diff(jaxpr, made)}"
    )


MANY: Final = 512
"""The number of combinations of special values that are tried at once; two holes have fewer."""

DTYPES: Final[tuple[str, ...]] = (
    "bool",
    "int32",
    "int8",
    "uint8",
    "float32",
    "float64",
    "bfloat16",
    "complex64",
)
"""The dtypes of holes that are tried."""

Dtypes = Mapping[str, DType]
"""The dtype of each hole, by its name."""


class Instance(NamedTuple):
    """An instance of a rule.

    Attributes:
        left: the instance of its left side.
        shape: the shape of the holes.
        dtypes: their dtypes.
        numbers: its numbers, from left to right, in their dtypes.
        is_given: whether a sample specifies the instance.
    """

    left: App
    shape: Shape
    dtypes: Dtypes
    numbers: tuple[Lit, ...]
    is_given: bool = False


def instances(rule: RewriteRule) -> Iterator[Instance]:
    """Yield the instances of a rule, in all dtypes in which its left side types."""
    samples = [s for s in rule.samples if isinstance(s, Sample)]
    if not samples and isinstance(rule.left, App):
        samples = [Sample(rule.left, shape) for shape in ((), (MANY,))]
    for sample, shape, dtype in samples:
        for left in orders(sample):
            fixed = {p.name: as_dtype(dtype) for p in parts(left) if isinstance(p, Hole) and dtype}
            for found in _typings(rule, left, shape, fixed):
                if found.first is not None and family(found.first) in rule.families:
                    is_given = dtype is not None
                    yield Instance(left, shape, found.dtypes, found.numbers, is_given)


class _Typed(NamedTuple):
    """A typed pattern: its type, the dtypes and numbers in it, the dtype of its first operand."""

    type: Type
    dtypes: Dtypes
    numbers: tuple[Lit, ...] = ()
    first: DType | None = None


def _typings(rule: RewriteRule, pattern: Pattern, shape: Shape, dtypes: Dtypes) -> Iterator[_Typed]:
    """Yield all typings of a pattern that extend the dtypes of some holes, found by trial."""
    match pattern:
        case Hole(name):
            for dtype in [dtypes[name]] if name in dtypes else map(as_dtype, DTYPES):
                yield _Typed(array_type(shape, dtype), {**dtypes, name: dtype})
        case Number(value):
            for number in [number_as(value, array_type((), dtype)) for dtype in DTYPES]:
                if number is not None:
                    yield _Typed(number.type, dtypes, (number,))
        case App():
            prim = with_parameters(rule, pattern)
            for types, inner in _arguments(rule, pattern.args, shape, dtypes):
                with suppress(EffaxError):
                    (out,) = typing_of(prim, types).outs
                    yield _Typed(out, inner.dtypes, inner.numbers, types[0].dtype)
        case AnyNumber() | Rest() | IndexHole():
            return


def _arguments(
    rule: RewriteRule, args: Sequence[Pattern], shape: Shape, dtypes: Dtypes
) -> Iterator[tuple[tuple[Type, ...], _Typed]]:
    """Yield all typings of several arguments together."""
    first, *others = args
    for one in _typings(rule, first, shape, dtypes):
        if not others:
            yield (one.type,), one
            continue
        for types, rest in _arguments(rule, others, shape, one.dtypes):
            yield (one.type, *types), rest._replace(numbers=one.numbers + rest.numbers)


def program_of(rule: RewriteRule, instance: Instance) -> Jaxpr:
    """Return the program of an instance, with an input for each hole."""
    dtypes = instance.dtypes
    b = Builder([array_type(instance.shape, dtype) for dtype in dtypes.values()])
    holes = dict(zip(dtypes, b.binders, strict=True))
    numbers = iter(instance.numbers)

    def build(pattern: Pattern) -> Atom:
        if isinstance(pattern, Hole):
            return holes[pattern.name]
        if isinstance(pattern, Number):
            return next(numbers)
        assert isinstance(pattern, App), "others are tried on programs"
        return b(with_parameters(rule, pattern), *map(build, pattern.args))

    return b.finish([build(instance.left)])
