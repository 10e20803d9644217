"""The treatments of positions out of bounds, by JAX's names."""

from __future__ import annotations

from enum import Enum

from effax.ir.errors import BadArgument


class GatherScatterMode(Enum):
    """The treatment of positions out of bounds by a gather or a scatter.

    Attributes:
        CLIP: the window is moved inward until it fits.
        FILL_OR_DROP: a gather reads a fill value for the whole window; an update is dropped.
        PROMISE_IN_BOUNDS: there are none; here a gather clips them, and a scatter drops them.
        ONE_HOT: a gather reads 0; an update is dropped.

    >>> lax.GatherScatterMode.from_any("fill")
    <GatherScatterMode.FILL_OR_DROP: 'fill'>
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """Return a mode from its name; "drop" and None are ``FILL_OR_DROP``.

        Raises:
            BadArgument: an unknown name.
        """
        name = "fill" if s in (None, "drop") else s
        try:
            return GatherScatterMode(name)
        except ValueError:
            known = [m.value for m in GatherScatterMode]
            raise BadArgument(
                "unknown mode of indexing", f"drop, {', '.join(known)}", repr(s)
            ) from None


ModeLike = str | GatherScatterMode | None
"""A mode as users write it."""


def mode_name(mode: ModeLike) -> str | None:
    """Return the name of a mode of indexing."""
    return mode.value if isinstance(mode, GatherScatterMode) else mode
