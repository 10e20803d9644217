"""Effect rows: immutable sets of effects in one canonical order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from effax.effects.kinds import Accum, Alloc, Effect, Free, Read, SideEffect, Write
from effax.effects.order import changes_state, commutes

N = TypeVar("N", bound=int)
M = TypeVar("M", bound=int)


def _order(effect: Effect[N]) -> tuple[int, int, str]:
    # By reference, then by kind; side effects last, by text. The order depends on values only
    # (never on hashes or insertion), so equal sets have one tuple, one hash and one printed form.
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
        effects: all effects.
        side_effects: the side effects among them.
    """

    __slots__ = ("_hash", "effects", "side_effects")

    effects: tuple[Effect[N], ...]
    side_effects: tuple[SideEffect, ...]

    def __init__(self, effects: Iterable[Effect[N]] = ()) -> None:
        try:
            unique = dict.fromkeys(effects)
            ordered = tuple(sorted(unique, key=_order))
        except (TypeError, AttributeError):
            raise TypeError(
                "expected a list of effects, such as `Row([Read(i), Write(i)])`; "
                f"found {effects!r:.80}"
            ) from None
        object.__setattr__(self, "effects", ordered)
        side = tuple([e for e in ordered if isinstance(e, SideEffect)]) if unique else ()
        object.__setattr__(self, "side_effects", side)
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
        """Return the union of both rows."""
        if not other.effects:
            return self
        return Row((*self.effects, *other.effects)) if self.effects else other

    def rename(self, name: Callable[[N], M | None]) -> Row[M]:
        """Return the row with its references renamed; effects renamed to ``None`` are removed."""
        renamed = (_renamed(effect, name) for effect in self.effects)
        return Row(effect for effect in renamed if effect is not None)

    def mask(self, kinds: tuple[type, ...]) -> Row[N]:
        """Return the row without effects of these kinds."""
        return Row(effect for effect in self.effects if not isinstance(effect, kinds))

    def on(self, ref: N) -> tuple[Effect[N], ...]:
        """Return the effects on one reference."""
        return tuple(
            e for e in self.effects if not isinstance(e, SideEffect | Alloc) and e.ref == ref
        )

    @property
    def refs(self) -> tuple[N, ...]:
        """The distinct references of the row, in order; those that it allocates are excluded."""
        named = (e.ref for e in self.effects if not isinstance(e, SideEffect | Alloc))
        return tuple(dict.fromkeys(named))

    def commutes(self, other: Row[N]) -> bool:
        """Return whether two adjacent computations with these rows may be swapped."""
        return all(commutes(a, b) for a in self.effects for b in other.effects)

    @property
    def changes_state(self) -> bool:
        """Return whether another equation can observe one of the effects."""
        return any(changes_state(effect) for effect in self.effects)

    def __str__(self) -> str:
        return "{" + ", ".join([effect_text(effect, None) for effect in self.effects]) + "}"

    def __repr__(self) -> str:
        return f"Row({list(self.effects)!r})"


def effect_text(effect: Effect[N], name: Callable[[N], str] | None) -> str:
    """Return an effect as text, such as ``read a``; references print by ``name`` or by number."""
    if isinstance(effect, SideEffect):
        return f"{effect.word} {effect.detail}".rstrip()
    return f"{effect.word} {effect.ref if name is None else name(effect.ref)}"
