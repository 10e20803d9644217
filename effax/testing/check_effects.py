"""Whether kinds of effects of one's own are what passes take them for."""

from __future__ import annotations

import pickle
import re
from itertools import combinations_with_replacement
from typing import Final

from effax.effects import Accum, Alloc, Free, Io, Read, SideEffect, Write, commutes
from effax.extend.guard import blamed
from effax.ir.errors import BadArgument, BadRule

_WORD: Final = re.compile(r"[a-z][a-z_]*")

_OWN: Final[dict[str, type]] = {k.word: k for k in (Read, Write, Accum, Alloc, Free, Io)}
"""The words of the library's own kinds."""


def check_effects(*kinds: SideEffect) -> tuple[tuple[str, str], ...]:
    """Hold effects of kinds of your own to what passes take from them.

    Each is equal to a copy and hashes so, has a ``word`` that prints, and says whether it commutes
    with each of the others, with itself and with the library's own ``Io``. Two agree about it.

    Args:
        *kinds: effects, such as two of one kind that touch different things.

    Returns:
        The pairs that keep their order, as they print: all others may change places.

    Raises:
        BadRule: an effect is not what it should be; it says which.
        BadArgument: something is no effect on the world outside.
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
            "this is no effect on the world outside",
            expected="an instance of a class that is derived from `effax.extend.Host`",
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
            f"the kind {name} prints as an effect of the library's own",
            expected="a word that nothing else has",
            found=repr(word),
            remedy=f'such as `word: ClassVar[str] = "{name.lower()}"`',
        )
    observed: object = kind.observed
    if not isinstance(observed, bool):
        raise BadRule(
            f"`observed` of the kind {name} is no boolean",
            expected="True, or False where nobody can tell that it happened",
            found=repr(observed),
        )
    with blamed(f"the kind {name}"):
        again = pickle.loads(pickle.dumps(kind))
        if again != kind or hash(again) != hash(kind):
            raise BadRule(
                f"an effect of the kind {name} is not equal to a copy of itself",
                expected="effects that are equal where their fields are",
                remedy="declare the class with `@dataclass(frozen=True, slots=True)`",
            )
        _shown(kind)


def _check_pair(first: SideEffect, second: SideEffect) -> None:
    told = []
    for one, other in ((first, second), (second, first)):
        with blamed(f"`commutes_with` of the kind {type(one).__name__}"):
            found: object = one.commutes_with(other)
        if not isinstance(found, bool):
            raise BadRule(
                f"`commutes_with` of the kind {type(one).__name__} gives no boolean",
                expected=f"True or False for {_shown(other)}",
                found=repr(found),
            )
        told.append(found)
    if told[0] != told[1]:
        says = [f"{_shown(first)} says {told[0]}", f"{_shown(second)} says {told[1]}"]
        raise BadRule(
            "two effects do not agree whether they commute",
            expected="the same of both; passes take what does not agree for ordered",
            found=", ".join(says),
        )
