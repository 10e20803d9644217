"""Effect rows: immutable sets of effects in one canonical order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from effax.effects.kinds import Accum, Alloc, Effect, Free, Read, SideEffect, Write
from effax.effects.order import changes_state, commutes

N = TypeVar("N", bound=int)
M = TypeVar("M", bound=int)


def _order(effect: Effect[N]) -> tuple[int, int, str]:
    if isinstance(effect, SideEffect):
        return (1 << 60, effect.rank, f"{effect_text(effect, None)} {effect!r}")
    return (effect.ref, effect.rank, "")


def _renamed(effect: Effect[N], name: Callable[[N], M | None]) -> Effect[M] | None:
    if isinstance(effect, SideEffect):
        return effect
    ref = name(effect.ref)
    if ref is None:
        return None
    kind: type[Read[M] | Write[M] | Accum[M] | Alloc[M] | Free[M]] = type(effect)  # type: ignore[assignment]  # same kind, other name
    return kind(ref)


class Row(Generic[N]):
    """A set of effects, sorted by reference and kind; equality and hash are structural.

    Attributes:
        effects: all of them.
        host: those on the world outside.
    """

    __slots__ = ("_hash", "effects", "host")

    effects: tuple[Effect[N], ...]
    host: tuple[SideEffect, ...]

    def __init__(self, effects: Iterable[Effect[N]] = ()) -> None:
        try:
            unique = dict.fromkeys(effects)
            ordered = tuple(sorted(unique, key=_order))
        except (TypeError, AttributeError):
            raise TypeError(
                f"a row is made of effects, in a list: `Row([Read(i), Write(i)])`; "
                f"found {effects!r:.80}"
            ) from None
        object.__setattr__(self, "effects", ordered)
        host = tuple([e for e in self.effects if isinstance(e, SideEffect)]) if unique else ()
        object.__setattr__(self, "host", host)
        object.__setattr__(self, "_hash", hash(self.effects))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an effect row is immutable: cannot set {name}")

    def __reduce__(self) -> tuple[type[Row[N]], tuple[tuple[Effect[N], ...]]]:
        return (Row, (self.effects,))

    def __iter__(self) -> Iterator[Effect[N]]:
        return iter(self.effects)

    def __len__(self) -> int:
        return len(self.effects)

    def __bool__(self) -> bool:
        return bool(self.effects)

    def __contains__(self, effect: object) -> bool:
        return effect in self.effects

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Row) and self.effects == other.effects)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]  # slot set in __init__

    def join(self, other: Row[N]) -> Row[N]:
        """The effects of doing both."""
        if not other.effects:
            return self
        return Row((*self.effects, *other.effects)) if self.effects else other

    def rename(self, name: Callable[[N], M | None]) -> Row[M]:
        """The same effects under other names; a name of ``None`` masks the effect."""
        renamed = (_renamed(effect, name) for effect in self.effects)
        return Row(effect for effect in renamed if effect is not None)

    def mask(self, kinds: tuple[type, ...]) -> Row[N]:
        """The row without the effects of these kinds."""
        return Row(effect for effect in self.effects if not isinstance(effect, kinds))

    def on(self, ref: N) -> tuple[Effect[N], ...]:
        """The effects on one reference."""
        return tuple(
            e for e in self.effects if not isinstance(e, SideEffect | Alloc) and e.ref == ref
        )

    @property
    def refs(self) -> tuple[N, ...]:
        """The references named by the row, allocations aside, in order and once each."""
        named = (e.ref for e in self.effects if not isinstance(e, SideEffect | Alloc))
        return tuple(dict.fromkeys(named))

    def commutes(self, other: Row[N]) -> bool:
        """Whether two adjacent computations with these rows may change places."""
        return all(commutes(a, b) for a in self.effects for b in other.effects)

    @property
    def changes_state(self) -> bool:
        """Whether somebody else can observe that this ran."""
        return any(changes_state(effect) for effect in self.effects)

    def __str__(self) -> str:
        return "{" + ", ".join([effect_text(effect, None) for effect in self.effects]) + "}"

    def __repr__(self) -> str:
        return f"Row({list(self.effects)!r})"


def effect_text(effect: Effect[N], name: Callable[[N], str] | None) -> str:
    """An effect as text: ``read a``, ``io stdout``; references by ``name``, or by number."""
    if isinstance(effect, SideEffect):
        return f"{effect.word} {effect.detail}".rstrip()
    return f"{effect.word} {effect.ref if name is None else name(effect.ref)}"
