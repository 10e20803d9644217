"""What passes claim: laws, by name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum

from effax.ir.errors import BadArgument


class Guarantee(Enum):
    """A law that a pass says it keeps; ``effax.testing.check_pass`` tries it.

    Attributes:
        SAME_MEANING: the same results, and the same left in every reference, up to rounding; nan
            and infinities are where they were, numbers that are nearly too large or too small for
            their dtype aside.
        SAME_BITS: the same results and the same left in every reference, bit by bit: no rounding
            changes, nor the sign of a zero, nor what overflows. (Nan is nan, whatever its bits.)
        IDEMPOTENT: a second run changes nothing.
        NEVER_LARGER: no program gets more equations, those of held programs included.
    """

    SAME_MEANING = "p(f) = f in all that is observed"
    SAME_BITS = "p(f) = f in all that is observed, bit by bit"
    IDEMPOTENT = "p(p(f)) = p(f)"
    NEVER_LARGER = "|p(f)| <= |f|"


SIMPLIFIES = (Guarantee.SAME_MEANING, Guarantee.IDEMPOTENT, Guarantee.NEVER_LARGER)
"""What a pass claims that makes programs smaller and keeps what they mean."""

EXACT = (*SIMPLIFIES, Guarantee.SAME_BITS)
"""What a pass claims that does so, and changes no rounding."""


def checked_guarantees(name: str, given: object) -> tuple[Guarantee, ...]:
    """What a pass claims; what bits claim, meaning does. Raises BadArgument for other claims."""
    claims: tuple[object, ...] = (
        tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    )
    # What is not known here would never be tried, and nobody would notice.
    others = [claim for claim in claims if not isinstance(claim, Guarantee)]
    if others or isinstance(given, Guarantee):
        raise BadArgument(
            f"{name} claims what is no claim",
            expected="a tuple of some of " + ", ".join(map(str, Guarantee)),
            found=f"{others[0] if others else given!r:.80}",
            remedy=f"`({given},)`" if isinstance(given, Guarantee) else _meant(others[0]),
        )
    known = tuple(claim for claim in claims if isinstance(claim, Guarantee))
    implied = Guarantee.SAME_BITS in known and Guarantee.SAME_MEANING not in known
    return (Guarantee.SAME_MEANING, *known) if implied else known


def _meant(found: object) -> str:
    """What to do about something that is no claim."""
    if isinstance(found, str):
        last = found.rpartition(".")[2].strip().upper().replace(" ", "_").replace("-", "_")
        like = get_close_matches(last, [claim.name for claim in Guarantee], 1)
        if like:
            return f"`Guarantee.{like[0]}`, which is no string"
    return "a law of your own is a test: run it on `self(jaxpr)`"
