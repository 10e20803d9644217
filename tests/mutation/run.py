"""``make mutate``: check every mutant of every rule against the laws, and list those that escape.

A mutant counts where it changes what the rule means on some application; else it is another way
to write the same. Programs are the applications and the programs that the rules' unit tests use.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import FrameType
from typing import Final, NamedTuple

import tests.conftest  # noqa: F401  the profiles of Hypothesis
from effax.ir.analysis.queries import walk
from effax.ir.build import Builder
from effax.ir.dtypes import as_dtype
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    Add,
    BitcastConvertType,
    Cholesky,
    Clamp,
    EmptyRef,
    IntegerPow,
    Sin,
    StraightThrough,
)
from effax.ir.syntax import Jaxpr
from effax.ir.types import array_type
from effax.passes import Pass
from effax.testing import check_pass, laws
from effax.testing.check_primitive import programs_of
from effax.testing.laws import LawBroken, Passes
from effax.transforms.framework.rules import RuleSet
from effax.transforms.rules.common import matrices as m
from effax.transforms.rules.default import DEFAULT_RULES
from tests.mutation.mutants import KINDS, Mutant, mutants_of
from tests.planted.subtle_passes import WRONG
from tests.planted.test_planted import BUGS, SUITES, TRIES, hold, is_caught
from tests.unit import building as nested
from tests.unit.transforms.array_cases import ALL, Case

Check = Callable[[Jaxpr, int, Passes], None]
SEEDS: Final = (0, 1)
MOST_SECONDS: Final = 2.0
FEW, MANY = 8, 60
"""How many programs are tried with each mutant, and with those that escape from them."""

STEPS: Final = {"scan": "scan", "while": "while", "cond": "cond", "jit": "jit", "remat": "remat"}
"""The kind of step that random programs take for a primitive."""

F3: Final = array_type((3,), "float64")
I3: Final = array_type((3,), "int32")
BETWEEN: Final = ((-2.0, -0.5), (-2.0, 2.0), (0.5, 2.0))
"""The least, the value and the greatest of a clamp that makes sense."""

UNSAID: Final = (EmptyRef,)
"""Primitives whose result is not said: no law may notice what it is."""

REVERSE: Final = (laws.reverse_is_linearize_then_transpose, SUITES["jvp"][0][1])
LAWS: Final[dict[str, tuple[Check, ...]]] = {
    "jvp": (laws.jvp_is_the_derivative, laws.jvp_is_linear, laws.jvp_keeps_values),
    "transpose": (laws.vjp_is_adjoint_to_jvp, laws.reverse_is_linearize_then_transpose),
    "batch": (laws.vmap_is_stacking,),
    "discharge": (laws.discharge_is_observationally_equal,),
}


class Specimen(NamedTuple):
    """A program on which laws are tried, and in what it is linear, if it is."""

    jaxpr: Jaxpr
    linear: tuple[bool, ...] | None


def primitives_in(jaxpr: Jaxpr) -> set[type[Primitive]]:
    """The kinds of all primitives, at every depth."""
    return {type(place.eqn.prim) for place in walk(jaxpr)}


def _of_case(case: Case) -> list[Specimen]:
    types = [array_type(x.shape, x.dtype) for x in case.args]
    domain = [
        (float(x.min()), float(x.max())) if x.dtype.kind == "f" and x.size > 1 else None
        for x in case.args
    ]
    alone, among, *_ = programs_of(case.prim, types, domain)
    plain, *_ = programs_of(case.prim, types, [None] * len(types))
    masks = [tuple(i in group for i in range(len(types))) for group in case.linear]
    return [Specimen(among, None), Specimen(alone, None), *(Specimen(plain, m) for m in masks)]


def _positive_factorised() -> Jaxpr:
    """The factor of x·xᵀ + 1, which is positive definite."""
    b = Builder([array_type((3, 3), "float64")])
    (x,) = b.binders
    square = m.matmul(b, x, m.adjoint(b, x))
    one = m.diagonal_matrix(b, m.diagonal(b, b(IntegerPow(0), x)))
    return b.finish([b(Cholesky(), b(Add(), square, one))])


def _straight_through() -> Jaxpr:
    """The sine of an array, with its own derivative."""
    b = Builder([F3])
    value = b(Sin(), *b.binders)
    return b.finish([b(StraightThrough(), value, value)])


@cache
def specimens() -> dict[type[Primitive], list[Specimen]]:
    """The programs by the primitives that are in them, those made for a primitive first."""
    found: dict[type[Primitive], list[Specimen]] = {}
    others = [Specimen(make(), None) for make in nested.PROGRAMS.values()]
    found[Clamp] = [Specimen(p, None) for p in programs_of(Clamp(), [F3] * 3, BETWEEN)]
    found[StraightThrough] = [Specimen(_straight_through(), None)]
    found[Cholesky] = [Specimen(_positive_factorised(), None)]
    # Of floats rounding decides the bits, and laws say nothing.
    bits = BitcastConvertType(as_dtype("uint32"))
    found[BitcastConvertType] = [Specimen(p, None) for p in programs_of(bits, [I3], [None])]
    for case in ALL:
        made = _of_case(case)
        found.setdefault(type(case.prim), []).extend(made)
        others += made
    for specimen in others:
        for prim in primitives_in(specimen.jaxpr):
            mine = found.setdefault(prim, [])
            if specimen not in mine:
                mine.append(specimen)
    return found


def trials(kind: str, specimen: Specimen) -> list[Callable[[Passes], None]]:
    """The laws of a kind of rule on a program, those only that the right rules obey."""
    jaxpr, linear = specimen
    checks: list[Check] = [*LAWS[kind]]
    if kind == "transpose" and linear is not None:
        checks.append(partial(_adjoint, linear))
    runs = [partial(check, jaxpr, seed) for seed in SEEDS for check in checks]
    return [run for run in runs if _holds(run, DEFAULT_RULES)]


class Endless(BaseException):
    """A program does not end: a fault in a loop, which counts as found."""


def _time_out(signum: int, frame: FrameType | None) -> None:
    raise Endless


def _adjoint(linear: tuple[bool, ...], jaxpr: Jaxpr, seed: int, passes: Passes) -> None:
    laws.transpose_is_adjoint(jaxpr, linear, seed, passes)


def _holds(run: Callable[[Passes], None], rules: RuleSet) -> bool:
    before = signal.signal(signal.SIGVTALRM, _time_out)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        run(Passes(rules))
    except (LawBroken, Endless):
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return True


def judge(prim: type[Primitive], kind: str) -> list[tuple[Mutant, bool]]:
    """The mutants of one rule that mean something else, and whether a law caught each."""
    mine = specimens().get(prim, [])
    runs = [run for s in mine[:FEW] for run in trials(kind, s)]

    def probe(rules: RuleSet) -> None:
        for run in runs:
            _holds(run, rules)

    judged = []
    for mutant in mutants_of(prim, kind, probe):
        rules = mutant.rules()
        caught = not all(_holds(run, rules) for run in runs)
        if mutant.changed and not caught:
            others = (run for s in mine[FEW:MANY] for run in trials(kind, s))
            caught = not all(_holds(run, rules) for run in others) or noticed(mutant, rules)
        if mutant.changed or caught:
            judged.append((mutant, caught))
    return judged


def noticed(mutant: Mutant, rules: RuleSet) -> bool:
    """Return whether a law catches a mutant on random programs full of its primitive."""
    step = STEPS.get(mutant.prim.name)
    if step is None:
        return False
    suite = {"batch": "vmap"}.get(mutant.kind, mutant.kind)
    for law, shape in (*SUITES[suite], *((REVERSE,) if mutant.kind == "transpose" else ())):
        try:
            hold(law, shape, step, Passes(rules), TRIES)
        except LawBroken:
            return True
    return False


class Tally(NamedTuple):
    """The number of faults of one kind, and those that were not caught."""

    kind: str
    made: int
    escaped: list[str]

    def __str__(self) -> str:
        caught = self.made - len(self.escaped)
        share = 100 * caught / self.made if self.made else 100.0
        return f"{self.kind:<14} {caught:>5} of {self.made:>5} caught: {share:6.2f} %"


def tally_of_rules(only: Sequence[str] = ()) -> list[Tally]:
    """All mutants of the rules of these primitives; of all where none is named."""
    made, escaped = Counter[str](), {kind: list[str]() for kind in KINDS}
    for prim in sorted(DEFAULT_RULES.rules, key=lambda prim: prim.name):
        if prim in UNSAID or (only and prim.name not in only):
            continue
        for kind in KINDS:
            for mutant, caught in judge(prim, kind):
                made[kind] += 1
                if not caught:
                    escaped[kind].append(str(mutant))
    return [Tally(f"{kind} rules", made[kind], escaped[kind]) for kind in KINDS]


def tally_of_passes() -> Tally:
    """The faults that were planted by hand, in passes and in rules of control flow."""
    return Tally("planted", len(BUGS), [bug.name for bug in BUGS if not is_caught(bug)])


def tally_of_subtle_passes() -> Tally:
    """The passes that are wrong at few places, with the default settings and five seeds."""
    tried = [(step, seed) for step in WRONG for seed in range(5)]
    escaped = [f"{step} with seed {seed}" for step, seed in tried if not _is_refused(step, seed)]
    return Tally("subtle passes", len(tried), escaped)


def _is_refused(step: Pass, seed: int) -> bool:
    try:
        check_pass(step, seed=seed)
    except LawBroken:
        return True
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all faults; 0 only if every one that changes meaning was caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="names of primitives; all where none is given")
    options = parser.parse_args(arguments)
    tallies = tally_of_rules(options.only)
    if not options.only:
        tallies += [tally_of_passes(), tally_of_subtle_passes()]
    escaped = [f"{tally.kind}: {fault}" for tally in tallies for fault in tally.escaped]
    tallies.append(Tally("all", sum(tally.made for tally in tallies), escaped))
    for tally in tallies:
        print(tally)
    for fault in escaped:
        print(f"escaped: {fault}")
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
