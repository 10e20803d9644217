"""Check a primitive against every law, on programs that apply it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from textwrap import fill
from typing import Final, NamedTuple, TypeVar

from effax.api.staging import ShapeDtypeStruct
from effax.arrays.array import ArrayLike
from effax.extend.bases import FunctionPrimitive
from effax.ir.build import Builder, lit
from effax.ir.dtypes import BOOL, is_float, is_integer
from effax.ir.errors import BadArgument, EffaxError, NotApplicable, Unfinished
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, Mul, Scan
from effax.ir.registry import registry
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, Type, array_type, is_inexact
from effax.testing import laws
from effax.testing.ending import Ending, bounds_text, check_bounds
from effax.testing.generate.magnitudes import (
    LIMIT,
    AtMagnitude,
    Interval,
    inside,
    interval_of,
    places,
)
from effax.testing.generate.seeds import seeds_for
from effax.testing.generate.values import MAX_SECONDS, MAX_STEPS, limited, random_inputs, shown
from effax.testing.generate.values import run as run_program
from effax.testing.laws.derivative import is_foreign
from effax.testing.laws.equivalence import literals_of
from effax.testing.laws.jvp import has_slopes
from effax.testing.laws.law import About, Law
from effax.testing.laws.runner import Arguments, Drawn, run
from effax.testing.laws.transformations import Passes
from effax.testing.primitive_checks import as_primitive, as_types, check_behavior
from effax.testing.report.report import LawBroken
from effax.transforms.framework.rules import RuleSet
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.default import DEFAULT_RULES


class Refused(NamedTuple):
    """A law that does not apply to some programs, since a rule raises ``NotApplicable``.

    Attributes:
        law: its name.
        reason: the message of the rule.
        programs: the programs to which it does not apply, by their names in ``PROGRAMS``.
        passed: the programs for which it holds.
    """

    law: str
    reason: str
    programs: tuple[str, ...]
    passed: tuple[str, ...]


class Checked(NamedTuple):
    """The result of :func:`check_primitive`.

    Attributes:
        passed: the laws that hold for every program.
        refused: the laws that do not apply to some programs, and hold for the others.
        skipped: the laws that no program tests: their assumptions fail, or rounding decides.
        stopped: the programs of which an evaluation was stopped at a bound: their names in
            ``PROGRAMS``, or the values to which the primitive is applied.
        bounds: the bounds, in words, if there are such programs.
    """

    passed: tuple[str, ...]
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    bounds: str = ""

    def __str__(self) -> str:
        lines = [f"{_laws(self.passed)} passed", _wrapped(self.passed)]
        by_reason: dict[str, list[str]] = {}
        for one in self.refused:
            where = f" (passed {', '.join(one.passed)})" if one.passed else ""
            by_reason.setdefault(one.reason, []).append(one.law + where)
        for reason, names in by_reason.items():
            lines += [f"{_laws(names)} refused: {reason}", _wrapped(names)]
        if self.skipped:
            lines += [f"{_laws(self.skipped)} skipped", _wrapped(self.skipped)]
        if self.stopped:
            lines += [f"evaluations stopped after {self.bounds}", _wrapped(self.stopped)]
        return "\n".join([line for line in lines if line])


def _laws(names: Sequence[str]) -> str:
    return f"{len(names)} law{'' if len(names) == 1 else 's'}"


def _wrapped(names: Sequence[str]) -> str:
    return fill(", ".join(names), 98, initial_indent="  ", subsequent_indent="  ")


class SkippedLaw(NamedTuple):
    """A law that no program tests."""

    law: str


class Case(NamedTuple):
    """A program on which laws are tried.

    Attributes:
        name: its name in ``PROGRAMS``; "" for a program at other values.
        drawn: the first arguments of the laws.
        seeds: seeds of its inputs.
        where: the values to which the primitive is applied, in words.
    """

    name: str
    drawn: Drawn
    seeds: Sequence[int]
    where: str = ""


PROGRAMS: Final = ("alone", "among others", "in a scan", "in a branch")
"""The names of the programs on which laws are tried."""

AT_NUMBERS: Final = frozenset({"jvp_is_the_derivative", "discharge_is_observationally_equal"})
"""Laws that are tried at numbers of every magnitude too."""

AT_ANYTHING: Final = frozenset({"lowering_agrees_with_evaluation", "vmap_is_stacking"})
"""Laws that are tried at those, and at infinities and nan."""


def check_primitive(
    prim: Primitive,
    *types: Type | ShapeDtypeStruct | ArrayLike,
    linear: Sequence[bool] | None = None,
    domain: Sequence[Interval | None] = (),
    seeds: Sequence[int] = (0, 1, 2),
    rules: RuleSet | None = None,
    max_steps: int = MAX_STEPS,
    max_seconds: float = MAX_SECONDS,
) -> Checked:
    """Check a primitive against every law, on arguments of these types.

    Its typing, evaluation and rules are checked first (the typing on arguments of sizes 0 and 1
    too, as far as these are accepted), then the laws: on the primitive alone, with
    arithmetic around it, and in the body of a scan and a branch, at random values between -2 and 2
    (integers: between -2 and 4). Derivatives, batches and compiled code are also compared at
    magnitudes from 2⁻¹⁰ to 1024, at ones and at zeros of both signs; batches and compiled code at
    half-integers, infinities and nan. Results may differ by ``1e-7`` of the greatest in
    double precision, ``2e-3`` in single, eight roundings in narrower dtypes.

    Args:
        prim: the primitive.
        *types: the types of its arguments, or arrays of these types; small ones are fast.
        linear: the arguments in which it is jointly linear, for the laws of transposition. If
            None, these are tried only as far as derivatives need them.
        domain: for each argument, the closed interval of its values; None: all values. Floats are
            tried near both ends, and never at infinities.
        seeds: seeds of values; 0 differentiates and batches all arguments. Of few arguments, each
            combination is batched and differentiated whatever the seeds.
        rules: the rules of a primitive that does not define its own.
        max_steps: the greatest number of equations that a run of a program may evaluate. A loop
            that does not end at some values is not tried there, and the result names these.
        max_seconds: the greatest time for a law on a program.

    Raises:
        BadRule: a rule, the typing or the evaluation is wrong; the message says which.
        LawBroken: laws do not hold; the message has a program for the simplest of them, as a test
            to paste, and names the others.
        Inconclusive: no evaluation ended within the bounds.
        IllTyped: the primitive does not apply to the types.
        BadArgument: an argument is no primitive or no type; or ``linear`` or ``domain`` does not
            have one entry an argument; or a bound is not positive.
    """
    __tracebackhide__ = True
    check_bounds(max_steps, max_seconds)
    ending = Ending(max_steps, max_seconds)
    prim = as_primitive(prim)
    ins = as_types(prim, types)
    entries = _one_an_argument("domain", domain or [None] * len(ins), ins)
    intervals = [interval_of(x, i, t) for i, (x, t) in enumerate(zip(entries, ins, strict=True))]
    if linear is not None:
        _one_an_argument("linear", linear, ins)
    used = DEFAULT_RULES if rules is None else rules
    with limited(max_steps, max_seconds):
        check_behavior(prim, ins, linear, used)
    own, known = type(prim), registry()
    primitives = known if known.get(own.name) is own else registry(own)
    arguments = {"passes": Passes(rules=used), "primitives": primitives}
    programs = programs_of(prim, ins, intervals)
    with limited(max_steps, max_seconds):
        numbers = numbers_of(prim, programs[0], used)
        batched = _batched(programs[0], used)
    at = list(places(prim, ins, intervals, numbers))
    found: list[Found] = []
    for law in [law for law in laws.LAWS if law.of_primitives]:
        if law.about is About.PROGRAMS:
            found.append(_result(law, _cases(law, programs, batched, at, seeds), arguments, ending))
        elif linear is not None:
            b = Builder(ins)
            alone = b.finish(b.emit(prim, b.binders)), tuple(linear)
            cases = [Case(PROGRAMS[0], alone, seeds[:1] if law.costly else seeds)]
            found.append(_result(law, cases, arguments, ending))
    ending.check_conclusive(prim.name)
    broken = sorted([one for one in found if isinstance(one, LawBroken)], key=_rank)
    if broken:
        raise broken[0].with_others([other.law.name for other in broken[1:]]) from None
    found = [
        _unless_unknown(one, [*programs, *[a.jaxpr for a in at if a.smooth]], seeds, ending)
        for one in found
    ]
    return Checked(
        tuple([one for one in found if isinstance(one, str)]),
        tuple([one for one in found if isinstance(one, Refused)]),
        tuple([one.law for one in found if isinstance(one, SkippedLaw)]),
        tuple(ending.stopped),
        bounds_text(max_steps, max_seconds) if ending.stopped else "",
    )


Found = str | Refused | SkippedLaw | LawBroken
"""The result of a law: it holds (its name), does not apply, is skipped, or is broken."""


def _rank(broken: LawBroken) -> tuple[bool, bool, bool, int]:
    """Return the place of a broken law: a wrong rule breaks compiled code, not the reverse."""
    law = broken.law
    index = [law.name for law in laws.LAWS].index(law.name)
    return law.costly, "commutes" in law.name, law.about is not About.LINEAR, index


def _cases(
    law: Law[...],
    programs: Sequence[Jaxpr],
    batched: Jaxpr | None,
    at: Sequence[AtMagnitude],
    seeds: Sequence[int],
) -> Iterator[Case]:
    # Other values add little to a law that is costly.
    seeds = seeds[:1] if law.costly else seeds
    for name, jaxpr in zip(PROGRAMS, programs, strict=False):
        more = seeds_for(law.name, jaxpr, seeds) if name == PROGRAMS[0] else seeds
        yield Case(name, (jaxpr,), _more_of_integers(law, jaxpr, more))
    if law.name == "vmap_is_stacking" and batched is not None:
        yield Case("", (batched,), seeds_for(law.name, batched, seeds), "")
    for where, jaxpr, smooth, together in at:
        if law.name in AT_ANYTHING:
            wanted = together or not law.costly
        else:
            wanted = smooth and law.name in AT_NUMBERS
        if wanted:
            # Values of one seed may all be finite, or be rounded alike.
            tried = seeds if smooth else tuple(dict.fromkeys([*seeds, *ENDLESS_SEEDS]))
            yield Case("", (jaxpr,), _more_of_integers(law, jaxpr, tried), where)


ENDLESS_SEEDS: Final = range(3)
"""Seeds of infinities, nan and half-integers, besides those of the caller."""


INTEGER_SEEDS: Final = range(8)
"""Seeds of integers, on which compiled code is compared: it is compiled once."""


def _more_of_integers(law: Law[...], jaxpr: Jaxpr, seeds: Sequence[int]) -> Sequence[int]:
    if law.name != "lowering_agrees_with_evaluation" or not seeds:
        return seeds
    if not any(isinstance(t, ArrayType) and is_integer(t.dtype) for t in jaxpr.in_types):
        return seeds
    return tuple(dict.fromkeys([*seeds, *INTEGER_SEEDS]))


def _result(law: Law[...], cases: Iterable[Case], arguments: Arguments, ending: Ending) -> Found:
    passed, refused, applied = list[str](), dict[str, str](), False
    for name, drawn, seeds, where in cases:
        for seed in seeds:
            try:
                with ending.bounded(drawn[0], seed, where or name or "a batch"):
                    applied |= run(law, drawn, seed, arguments)
            except Unfinished:
                continue
            except LawBroken as broken:
                if isinstance(broken.root, NotApplicable):
                    refused.setdefault(name, broken.root.what)
                    continue
                return broken.with_note(_note(where, drawn[0], seed)) if where else broken
        if name and name not in refused:
            passed.append(name)
    refused.pop("", None)
    if refused:
        reason = next(iter(refused.values()))
        return Refused(law.name, reason, tuple(refused), tuple(passed) if applied else ())
    return law.name if applied else SkippedLaw(law.name)


def _note(where: str, jaxpr: Jaxpr, seed: int) -> str:
    """Return a note with the values to which the last equation is applied."""
    moved = Jaxpr(jaxpr.binders, jaxpr.eqns[:-1], jaxpr.eqns[-1].ins)
    values = run_program(moved, random_inputs(jaxpr.in_types, seed)).outs
    values = values if all(x.size < 20 for x in values) else []
    return (
        f"It holds for values of a moderate size, and not at {where}"
        + (f":\n  {', '.join(map(shown, values))}" if values else "")
        + ".\nWhere these should not matter, `domain=` restricts the arguments."
    )


def _unless_unknown(
    found: Found, programs: Sequence[Jaxpr], seeds: Sequence[int], ending: Ending
) -> Found:
    """Refuse the law of derivatives where differences determine no derivative."""
    if found != "jvp_is_the_derivative" or not is_foreign(programs[0]):
        return found
    for jaxpr, seed in product(programs, seeds):
        with suppress(Unfinished), ending.bounded(jaxpr, seed):
            if has_slopes(jaxpr, seed):
                return found
    reason = "differences of the evaluation are unknown: no part is smooth, or values are rounded"
    return Refused("jvp_is_the_derivative", reason, PROGRAMS, ())


MOST_NUMBERS: Final = 6
"""The number of literals of rules at which derivatives are tried."""


def numbers_of(prim: Primitive, alone: Jaxpr, rules: RuleSet) -> list[float]:
    """Return numbers in the program of a function and its derivative, to be tried.

    Zeros and ones are tried for every primitive.
    """
    found: list[Jaxpr] = [*prim.subjaxprs()]
    if isinstance(prim, FunctionPrimitive):
        found.append(prim.definition(*alone.in_types))
    mask = tuple(map(is_inexact, alone.in_types))
    with suppress(EffaxError):
        found.append(Passes(rules=rules).jvp(alone, mask).jaxpr)
    numbers = [float(x) for x in literals_of(*found) if not isinstance(x, complex)]
    tried = [x for x in dict.fromkeys(numbers) if x not in (0, 1, -1) and abs(x) <= LIMIT]
    return tried[:MOST_NUMBERS]


T = TypeVar("T")


def _one_an_argument(what: str, entries: Sequence[T], ins: Sequence[Type]) -> Sequence[T]:
    given: object = entries
    if not isinstance(given, Sequence):
        raise BadArgument(f"{what} has one entry an argument", f"a list of {len(ins)}", repr(given))
    if len(entries) != len(ins):
        raise BadArgument(
            f"{what} has one entry an argument", expected=str(len(ins)), found=str(len(entries))
        )
    return entries


def programs_of(
    prim: Primitive, types: Sequence[Type], domain: Sequence[Interval | None]
) -> list[Jaxpr]:
    """Return the application alone, among arithmetic, in a scan and in a branch."""
    b = Builder(types)
    ins = [inside(b, v, interval) for v, interval in zip(b.binders, domain, strict=True)]
    alone = b.finish(b.emit(prim, ins))
    return [alone, _among(prim, types, domain), _scanned(alone), _branch(alone)]


def _among(prim: Primitive, types: Sequence[Type], domain: Sequence[Interval | None]) -> Jaxpr:
    """Return ``f(x/2)²`` of floats; arguments stay in their domain."""
    b = Builder(types)
    ins = [
        b(Mul(), v, lit(0.5, v.type))
        if _is_floats(v) and interval is None
        else inside(b, v, interval)
        for v, interval in zip(b.binders, domain, strict=True)
    ]
    outs = b.emit(prim, ins)
    return b.finish([b(Mul(), v, v) if _is_floats(v) else v for v in outs])


def _batched(alone: Jaxpr, rules: RuleSet) -> Jaxpr | None:
    """Return the application to a batch, which is batched again; None: no rule applies."""
    with suppress(EffaxError):
        return Passes(rules=rules).vmap(alone, 2, [0] * len(alone.binders)).jaxpr
    return None


def _scanned(alone: Jaxpr) -> Jaxpr:
    """Return two iterations on the same arguments, results stacked."""
    n = len(alone.binders)
    prim = Scan(alone, n_consts=n, n_carry=0, length=2, reverse=False, unroll=1)
    b = Builder(alone.in_types)
    return b.finish(b.emit(prim, b.binders))


def _branch(alone: Jaxpr) -> Jaxpr:
    """Return a branch: the application if the first argument is true, else zeros."""
    b = Builder(alone.in_types)
    other = b.finish([zeros(b, t) for t in alone.out_types])
    whole = Builder([array_type((), BOOL), *alone.in_types])
    return whole.finish(whole.emit(Cond((other, alone)), whole.binders))


def _is_floats(atom: Atom) -> bool:
    return isinstance(atom.type, ArrayType) and is_float(atom.type.dtype)
