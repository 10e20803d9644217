"""Shade the equations of a program by their share of its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from effax.ir.analysis.cost.count import work_of_equations
from effax.ir.analysis.cost.record import scaled, shown_bytes
from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr
from effax.ir.work import Work

HeatBy = Literal["flops", "bytes"]
"""The cost by which equations are shaded; transcendental functions count as operations."""


@dataclass(frozen=True, slots=True)
class Shade:
    """The shade of equations.

    Attributes:
        by: the cost.
        count: their cost.
        share: the share of the cost of the program.
    """

    by: HeatBy
    count: int
    share: float

    @property
    def level(self) -> int:
        """The shade, from 1 to the number of ``SHARES``."""
        return sum([self.share >= least for least in SHARES])

    @property
    def text(self) -> str:
        """The cost and its share."""
        return f"{_shown(self.count, self.by)} · {_percent(self.share)}"


def joined(shades: Sequence[Shade | None]) -> Shade | None:
    """Return the shade of several equations as one, or None if none has a cost."""
    found = [shade for shade in shades if shade is not None]
    if not found:
        return None
    return Shade(found[0].by, sum([s.count for s in found]), sum([s.share for s in found]))


Shades = Mapping[tuple[int, int], Shade]
"""Shades by the id of the program and the position of the equation."""

SHARES: Final = (0.0, 0.01, 0.05, 0.2, 0.5)
"""The least shares of the whole cost; each has a darker shade."""

HEAT: Final = "#e8590c"
"""The colour of cost, on light and on dark."""

HEATS: Final = (0.06, 0.14, 0.26, 0.42, 0.62)
"""The opacities of the shades."""

NO_SHADES: Final[Shades] = MappingProxyType({})


def shades(jaxpr: Jaxpr, by: HeatBy | None) -> Shades:
    """Return the shades of a program and its subjaxprs, all runs counted; none for None.

    Raises:
        BadArgument: ``by`` is unknown, or a size is symbolic.
    """
    if by is None:
        return NO_SHADES
    if by not in get_args(HeatBy):
        expected = " or ".join(map(repr, get_args(HeatBy)))
        raise BadArgument("unknown heat of a picture", expected=expected, found=repr(by))
    whole, works = work_of_equations(jaxpr)
    total = _count(whole, by)
    return {
        place: Shade(by, count, count / total)
        for place, work in works.items()
        if (count := _count(work, by))
    }


def _count(work: Work, by: HeatBy) -> int:
    return work.operations if by == "flops" else work.bytes_accessed


def _shown(count: int, by: HeatBy) -> str:
    return scaled(count, "flop") if by == "flops" else shown_bytes(count)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"
