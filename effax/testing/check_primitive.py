"""Prove a primitive with one call: every law, on programs made of it."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Final, NamedTuple, TypeVar

from effax.api.staging import ShapeDtypeStruct
from effax.arrays.array import ArrayLike
from effax.ir.build import Builder, lit
from effax.ir.dtypes import BOOL, is_float
from effax.ir.errors import BadArgument, NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, Mul, Scan
from effax.ir.registry import registry
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, Type, array_type
from effax.testing import laws
from effax.testing.generate.magnitudes import AtMagnitude, Interval, inside, interval_of, places
from effax.testing.generate.seeds import seeds_for
from effax.testing.generate.values import random_inputs, shown
from effax.testing.generate.values import run as run_program
from effax.testing.laws.differences import is_foreign
from effax.testing.laws.jvp import has_slopes
from effax.testing.laws.law import About, Law
from effax.testing.laws.pass_set import Passes
from effax.testing.laws.runner import Drawn, Given, run
from effax.testing.primitive_checks import as_primitive, as_types, check_behavior
from effax.testing.report.report import LawBroken
from effax.transforms.framework.rules import RuleSet
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.default import DEFAULT_RULES


class Refused(NamedTuple):
    """A law that cannot be tried on some programs, since a rule says that it does not apply.

    Attributes:
        law: its name.
        reason: what the rule says.
        programs: on which programs; ``PROGRAMS`` has their names.
        passed: on which it holds.
    """

    law: str
    reason: str
    programs: tuple[str, ...]
    passed: tuple[str, ...]


class Checked(NamedTuple):
    """What :func:`check_primitive` found.

    Attributes:
        passed: the laws that hold for every program.
        refused: the laws that a rule refuses for some of them; for the others they hold.
        skipped: the laws that say nothing about any of them: what they assume is not so, or
            rounding decides what is given.
    """

    passed: tuple[str, ...]
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{_laws(len(self.passed))} held", _wrapped(", ".join(self.passed))]
        by_reason: dict[str, list[str]] = {}
        for one in self.refused:
            where = f" (held {', '.join(one.passed)})" if one.passed else ""
            by_reason.setdefault(one.reason, []).append(one.law + where)
        for reason, names in by_reason.items():
            lines += [f"{_laws(len(names))} refused: {reason}", _wrapped(", ".join(names))]
        if self.skipped:
            lines += [f"{_laws(len(self.skipped))} said nothing", _wrapped(", ".join(self.skipped))]
        return "\n".join([line for line in lines if line])


def _laws(n: int) -> str:
    return f"{n} law{'' if n == 1 else 's'}"


def _wrapped(text: str) -> str:
    return fill(text, 98, initial_indent="  ", subsequent_indent="  ")


class SkippedLaw(NamedTuple):
    """A law that says nothing about any program."""

    law: str


PROGRAMS: Final = ("alone", "among others", "in a scan", "in a branch")
"""What is done with the primitive in the programs on which laws are tried."""

AT_NUMBERS: Final = frozenset({"jvp_is_the_derivative", "discharge_is_observationally_equal"})
"""Laws that are tried at numbers of every magnitude too."""

AT_ANYTHING: Final = frozenset({"lowering_agrees_with_evaluation", "vmap_is_stacking"})
"""Laws that are tried there, and at infinities and nan."""


def check_primitive(
    prim: Primitive,
    *types: Type | ShapeDtypeStruct | ArrayLike,
    linear: Sequence[bool] | None = None,
    domain: Sequence[Interval | None] = (),
    seeds: Sequence[int] = (0, 1, 2),
    rules: RuleSet | None = None,
) -> Checked:
    """Hold a primitive to every law, on arguments of these types.

    First it is looked at whether the types, the evaluation and each rule give what the library
    takes from them. Then come the laws. They are about programs: the primitive alone, with
    arithmetic around it, and in the body of a scan and a branch, where values are random between
    -2 and 2, integers between -2 and 4. Where values matter most, for derivatives, batches and
    compiled code, the primitive is tried alone at magnitudes from 2⁻¹⁰ to 1024 too and at zeros of
    both signs; and whatever is compiled or batched, at infinities and nan. A result may be off by
    ``1e-7`` of the greatest in double precision, ``2e-3`` in single, eight roundings in narrower
    dtypes.

    Args:
        prim: the primitive.
        *types: the types of its arguments, or arrays of these types; small ones are quick.
        linear: arguments in which it is linear together, for the laws of transposition. Where it
            is left out these are tried only as far as derivatives need them.
        domain: for each argument, the interval from which its values are, ends included; None:
            all values. Those of floats are tried near both ends too, and nowhere are infinities.
        seeds: seeds of values; with 0 all is differentiated and batched. Of few arguments, each
            combination is batched and differentiated whatever the seeds.
        rules: the rules, where the primitive does not bring its own.

    Raises:
        BadRule: a rule, the typing or the evaluation does not give what it should; it says which.
        LawBroken: laws do not hold; the message has a program for the simplest of them, as a test
            to paste, and names the others.
        IllTyped: the primitive does not apply to the types.
        BadArgument: what is given is no primitive or no type; or ``linear`` or ``domain`` has not
            one entry an argument.
    """
    __tracebackhide__ = True
    prim = as_primitive(prim)
    ins = as_types(prim, types)
    intervals = [
        interval_of(entry, i, t)
        for i, (entry, t) in enumerate(
            zip(_one_an_argument("domain", domain or [None] * len(ins), ins), ins, strict=True)
        )
    ]
    if linear is not None:
        _one_an_argument("linear", linear, ins)
    used = DEFAULT_RULES if rules is None else rules
    check_behavior(prim, ins, linear, used)
    own, known = type(prim), registry()
    primitives = known if known.get(own.name) is own else registry(own)
    given = {"passes": Passes(rules=used), "primitives": primitives}
    tried = [law for law in laws.LAWS if law.of_primitives]
    programs = programs_of(prim, ins, intervals)
    at = list(places(prim, ins, intervals))
    found = [
        _found(law, programs, _at(law, at), seeds, given)
        for law in tried
        if law.about is About.PROGRAMS
    ]
    if linear is not None:
        alone = _alone(prim, ins), tuple(linear)
        found += [
            _of_linear(law, alone, seeds, given) for law in tried if law.about is About.LINEAR
        ]
    order = [law.name for law in laws.LAWS]
    broken = [one for one in found if isinstance(one, LawBroken)]
    # What is compiled wrong may be so because a rule is wrong, and never the other way round.
    broken.sort(
        key=lambda one: (
            one.law.costly,
            "commutes" in one.law.name,
            one.law.about is not About.LINEAR,
            order.index(one.law.name),
        )
    )
    if broken:
        raise broken[0].with_others([other.law.name for other in broken[1:]]) from None
    found = [_unless_unknown(one, [*programs, *[a.jaxpr for a in at]], seeds) for one in found]
    return Checked(
        tuple([one for one in found if isinstance(one, str)]),
        tuple([one for one in found if isinstance(one, Refused)]),
        tuple([one.law for one in found if isinstance(one, SkippedLaw)]),
    )


Found = str | Refused | SkippedLaw | LawBroken
"""What became of a law: it holds (its name), a rule refuses programs, it says nothing, or it is
broken."""


def _at(law: Law[...], at: Sequence[AtMagnitude]) -> list[AtMagnitude]:
    """The values at which a law is tried."""
    if law.name in AT_ANYTHING:
        return [one for one in at if one.evaluate_spmd or not law.costly]
    return [one for one in at if one.finite] if law.name in AT_NUMBERS else []


def _found(
    law: Law[...],
    programs: Sequence[Jaxpr],
    at: Sequence[AtMagnitude],
    seeds: Sequence[int],
    given: Given,
) -> Found:
    held, refused, said = list[str](), dict[str, str](), False
    for name, jaxpr in zip(PROGRAMS, programs, strict=False):
        # Of what costs much, other values say little more than the first.
        some = seeds[:1] if law.costly else seeds
        for seed in seeds_for(law.name, jaxpr, some) if name == PROGRAMS[0] else some:
            found = _tried(law, (jaxpr,), seed, given)
            if isinstance(found, LawBroken):
                return found
            if isinstance(found, str):
                refused[name] = found
            said |= found is True
        if name not in refused:
            held.append(name)
    for where, jaxpr, _, _ in at:
        for seed in seeds[:1] if law.costly else seeds:
            found = _tried(law, (jaxpr,), seed, given)
            if isinstance(found, LawBroken):
                return found.with_note(
                    f"It holds for values of a moderate size, and not at {where}"
                    f"{_arguments(jaxpr, seed)}.\nWhere these should not matter, `domain=` says "
                    "where arguments are."
                )
            said |= found is True
    if refused:
        return Refused(
            law.name,
            next(iter(refused.values())),
            tuple(refused),
            tuple(held) if said else (),
        )
    return law.name if said else SkippedLaw(law.name)


def _arguments(jaxpr: Jaxpr, seed: int) -> str:
    """What the primitive is applied to in the last equation, for the inputs of a seed."""
    moved = Jaxpr(jaxpr.binders, jaxpr.eqns[:-1], jaxpr.eqns[-1].ins)
    values = run_program(moved, random_inputs(jaxpr.in_types, seed)).outs
    return f":\n  {', '.join(map(shown, values))}" if all(x.size < 20 for x in values) else ""


def _of_linear(law: Law[...], alone: Drawn, seeds: Sequence[int], given: Given) -> Found:
    said = False
    for seed in seeds[:1] if law.costly else seeds:
        found = _tried(law, alone, seed, given)
        if isinstance(found, LawBroken):
            return found
        if isinstance(found, str):
            return Refused(law.name, found, PROGRAMS[:1], ())
        said |= found
    return law.name if said else SkippedLaw(law.name)


def _tried(law: Law[...], drawn: Drawn, seed: int, given: Given) -> LawBroken | str | bool:
    """How a law is broken, or why a rule does not apply; else whether it says anything."""
    try:
        return run(law, drawn, seed, given)
    except LawBroken as broken:
        return broken.root.what if isinstance(broken.root, NotApplicable) else broken


def _unless_unknown(found: Found, programs: Sequence[Jaxpr], seeds: Sequence[int]) -> Found:
    """What became of a law; of that of derivatives, no more than was compared with differences."""
    if not isinstance(found, str) or found != "jvp_is_the_derivative":
        return found
    if not is_foreign(programs[0]):
        return found
    if any(has_slopes(jaxpr, seed) for jaxpr in programs for seed in seeds):
        return found
    return Refused(
        found,
        "differences of what is evaluated say nothing: it has no smooth part, or its values are "
        "rounded",
        PROGRAMS,
        (),
    )


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
    """The application alone, among arithmetic, in a scan and in a branch."""
    b = Builder(types)
    ins = [inside(b, v, interval) for v, interval in zip(b.binders, domain, strict=True)]
    alone = b.finish(b.emit(prim, ins))
    return [alone, _among(prim, types, domain), _scanned(alone), _branch(alone)]


def _alone(prim: Primitive, types: Sequence[Type]) -> Jaxpr:
    b = Builder(types)
    return b.finish(b.emit(prim, b.binders))


def _among(prim: Primitive, types: Sequence[Type], domain: Sequence[Interval | None]) -> Jaxpr:
    """``y²`` where ``y = f(x/2)``, of what is floats; a domain is kept to."""
    b = Builder(types)
    ins = [
        b(Mul(), v, lit(0.5, v.type))
        if _is_floats(v) and interval is None
        else inside(b, v, interval)
        for v, interval in zip(b.binders, domain, strict=True)
    ]
    outs = b.emit(prim, ins)
    return b.finish([b(Mul(), v, v) if _is_floats(v) else v for v in outs])


def _scanned(alone: Jaxpr) -> Jaxpr:
    """Two iterations on the same arguments, results stacked."""
    n = len(alone.binders)
    prim = Scan(alone, n_consts=n, n_carry=0, length=2, reverse=False, unroll=1)
    b = Builder(alone.in_types)
    return b.finish(b.emit(prim, b.binders))


def _branch(alone: Jaxpr) -> Jaxpr:
    """The application if the first argument holds, else zeros."""
    b = Builder(alone.in_types)
    other = b.finish([zeros(b, t) for t in alone.out_types])
    whole = Builder([array_type((), BOOL), *alone.in_types])
    return whole.finish(whole.emit(Cond((other, alone)), whole.binders))


def _is_floats(atom: Atom) -> bool:
    return isinstance(atom.type, ArrayType) and is_float(atom.type.dtype)
