"""Check user-defined kinds of side effects."""

from __future__ import annotations

import pickle
import re
from itertools import combinations_with_replacement
from typing import Final

from effax.effects import Accum, Alloc, Free, Io, Read, SideEffect, Write, commutes
from effax.extend.guard import annotate_errors
from effax.ir.errors import BadArgument, BadRule

_WORD: Final = re.compile(r"[a-z][a-z_]*")

_OWN: Final[dict[str, type]] = {k.word: k for k in (Read, Write, Accum, Alloc, Free, Io)}
"""The kinds of the library, by their words."""


def check_effects(*kinds: SideEffect) -> tuple[tuple[str, str], ...]:
    """Check side effects of user-defined kinds.

    Each must be equal to its copy with an equal hash, have a ``word`` that prints, and agree with
    each of the others, with itself and with ``Io`` of the library whether they commute.

    Args:
        *kinds: effects, such as two of one kind with different fields.

    Returns:
        The pairs that keep their order, as they print; all others may be reordered.

    Raises:
        BadRule: an effect violates a condition; the message says which.
        BadArgument: an argument is no side effect.
    """
    for kind in kinds:
        _check_value(kind)
    for first, second in combinations_with_replacement((*kinds, Io("io")), 2):
        _check_pair(first, second)
    pairs = combinations_with_replacement(kinds, 2)
    return tuple([(_shown(a), _shown(b)) for a, b in pairs if not commutes(a, b)])


def _shown(kind: SideEffect) -> str:
    return f"{kind.word} {kind.detail}".strip()


def _check_value(kind: object) -> None:
    if not isinstance(kind, SideEffect):
        raise BadArgument(
            "this is no side effect",
            expected="an instance of a subclass of `effax.extend.SideEffect`",
            found=f"{kind!r:.80}",
        )
    name = type(kind).__name__
    word: object = getattr(kind, "word", None)
    if not isinstance(word, str) or _WORD.fullmatch(word) is None:
        raise BadRule(
            f"the kind {name} has no word",
            expected='lower case letters: `word: ClassVar[str] = "log"`',
            found=repr(word),
        )
    own = _OWN.get(word)
    if own is not None and not isinstance(kind, own):
        raise BadRule(
            f"the kind {name} prints as an effect of the library",
            expected="a unique word",
            found=repr(word),
            remedy=f'such as `word: ClassVar[str] = "{name.lower()}"`',
        )
    observed: object = kind.observed
    if not isinstance(observed, bool):
        raise BadRule(
            f"`observed` of the kind {name} is no boolean",
            expected="True, or False for an effect that cannot be observed",
            found=repr(observed),
        )
    with annotate_errors(f"the kind {name}"):
        again = pickle.loads(pickle.dumps(kind))
        if again != kind or hash(again) != hash(kind):
            raise BadRule(
                f"an effect of the kind {name} is not equal to a copy of itself",
                expected="effects with equal fields are equal",
                remedy="declare the class with `@dataclass(frozen=True, slots=True)`",
            )
        _shown(kind)


def _check_pair(first: SideEffect, second: SideEffect) -> None:
    answers = []
    for one, other in ((first, second), (second, first)):
        with annotate_errors(f"`commutes_with` of the kind {type(one).__name__}"):
            found: object = one.commutes_with(other)
        if not isinstance(found, bool):
            raise BadRule(
                f"`commutes_with` of the kind {type(one).__name__} returns no boolean",
                expected=f"True or False for {_shown(other)}",
                found=repr(found),
            )
        answers.append(found)
    if answers[0] != answers[1]:
        says = [f"{_shown(first)} says {answers[0]}", f"{_shown(second)} says {answers[1]}"]
        raise BadRule(
            "two effects disagree whether they commute",
            expected="the same answer of both; passes order effects that disagree",
            found=", ".join(says),
        )
