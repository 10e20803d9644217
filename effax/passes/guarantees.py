"""Guarantees of passes: laws, by name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum

from effax.ir.errors import BadArgument


class Guarantee(Enum):
    """A law that a pass promises to satisfy; ``effax.testing.check_pass`` tests it.

    SAME_BITS implies SAME_MEANING, and that SAME_WHERE_FINITE.

    Attributes:
        SAME_MEANING: results and final contents of references are equal up to rounding; nan and
            infinities are at the same places, except near overflow and underflow.
        SAME_BITS: results and final contents of references are equal bit by bit: rounding, signs
            of zeros and overflow do not change. All nan are equal.
        SAME_WHERE_FINITE: results and final contents of references are equal up to rounding where
            those of f are finite, and depend on no value that is infinite, undefined or overflows.
        IDEMPOTENT: a second run does not change the program.
        NEVER_LARGER: the number of equations, subjaxprs included, does not increase.
    """

    SAME_MEANING = "p(f) = f in all that is observed"
    SAME_BITS = "p(f) = f in all that is observed, bit by bit"
    SAME_WHERE_FINITE = "p(f) = f in all that is observed, where f is finite"
    IDEMPOTENT = "p(p(f)) = p(f)"
    NEVER_LARGER = "|p(f)| <= |f|"


SIMPLIFIES = (Guarantee.SAME_MEANING, Guarantee.IDEMPOTENT, Guarantee.NEVER_LARGER)
"""The guarantees of a simplification."""

EXACT = (*SIMPLIFIES, Guarantee.SAME_BITS)
"""The guarantees of a simplification that does not change rounding."""


def checked_guarantees(name: str, laws: object) -> tuple[Guarantee, ...]:
    """Return the guarantees of a pass, SAME_MEANING too if it is implied. Raise BadArgument."""
    items: tuple[object, ...] = (
        tuple(laws) if isinstance(laws, Iterable) and not isinstance(laws, str) else (laws,)
    )
    # An unknown guarantee would never be tested, silently.
    others = [item for item in items if not isinstance(item, Guarantee)]
    if others or isinstance(laws, Guarantee):
        raise BadArgument(
            f"the guarantees of {name} are not valid",
            expected="a tuple of some of " + ", ".join(map(str, Guarantee)),
            found=f"{others[0] if others else laws!r:.80}",
            remedy=f"`({laws},)`" if isinstance(laws, Guarantee) else _remedy(others[0]),
        )
    known = tuple(item for item in items if isinstance(item, Guarantee))
    implied = Guarantee.SAME_BITS in known and Guarantee.SAME_MEANING not in known
    return (Guarantee.SAME_MEANING, *known) if implied else known


def with_implied(laws: Iterable[Guarantee]) -> set[Guarantee]:
    """Return the guarantees, and those that follow from them."""
    found = set(laws)
    if Guarantee.SAME_BITS in found:
        found.add(Guarantee.SAME_MEANING)
    if Guarantee.SAME_MEANING in found:
        found.add(Guarantee.SAME_WHERE_FINITE)
    return found


def without_weaker(laws: Iterable[Guarantee]) -> tuple[Guarantee, ...]:
    """Return the guarantees in order, without SAME_WHERE_FINITE if SAME_MEANING is one."""
    found = set(laws)
    if Guarantee.SAME_MEANING in found:
        found.discard(Guarantee.SAME_WHERE_FINITE)
    return tuple([law for law in Guarantee if law in found])


def _remedy(found: object) -> str:
    if isinstance(found, str):
        last = found.rpartition(".")[2].strip().upper().replace(" ", "_").replace("-", "_")
        like = get_close_matches(last, [law.name for law in Guarantee], 1)
        if like:
            return f"`Guarantee.{like[0]}`, not a string"
    return "write a user-defined law as a test, of `self(jaxpr)`"
