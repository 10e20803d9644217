"""User-defined loops, selections and calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from effax import extend
from effax.extend import Region
from effax.ir import Jaxpr


@dataclass(frozen=True, slots=True)
class Repeat(extend.RegionPrimitive):
    """``repeat(*consts, *carry) -> carry``: the body ``times`` times."""

    body: Jaxpr
    times: int
    name: ClassVar[str] = "repeat"

    def regions(self) -> tuple[Region, ...]:
        return (extend.loop_region(self.body, self.times),)


@dataclass(frozen=True, slots=True)
class Until(extend.RegionPrimitive):
    """``until(*consts, *carry) -> carry``: the body as long as ``going`` is true."""

    going: Jaxpr
    body: Jaxpr
    name: ClassVar[str] = "until"

    def regions(self) -> tuple[Region, ...]:
        return extend.while_regions(self.going, self.body)


@dataclass(frozen=True, slots=True)
class Choose(extend.RegionPrimitive):
    """``choose(index, *operands)``: one of the branches."""

    branches: tuple[Jaxpr, ...]
    name: ClassVar[str] = "choose"

    def regions(self) -> tuple[Region, ...]:
        return extend.branch_regions(self.branches)

    def selector(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Titled(extend.RegionPrimitive):
    """A call with a title."""

    body: Jaxpr
    title: str
    name: ClassVar[str] = "titled"

    def regions(self) -> tuple[Region, ...]:
        return (extend.call_region(self.body),)


@dataclass(frozen=True, slots=True)
class Collect(extend.RegionPrimitive):
    """A ``scan``: constants, carries, scanned operands and stacked results."""

    body: Jaxpr
    n: int
    n_consts: int
    n_carry: int
    reverse: bool = False
    name: ClassVar[str] = "collect"

    def regions(self) -> tuple[Region, ...]:
        counts = self.n, self.n_consts, self.n_carry
        return (extend.loop_region(self.body, *counts, reverse=self.reverse),)
