"""Primitives that run programs need no cast; one without regions is abstract."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import effax
from effax import Array, extend
from effax.extend import Handle, Region, RegionPrimitive, Type, Typing
from effax.ir import Jaxpr, walk


@dataclass(frozen=True, slots=True)
class Repeat(RegionPrimitive):
    """A loop with a static trip count."""

    body: Jaxpr
    times: int
    name: ClassVar[str] = "repeat"

    def regions(self) -> tuple[Region, ...]:
        return (extend.loop_region(self.body, self.times),)


@dataclass(frozen=True, slots=True)
class Choose(RegionPrimitive):
    """A selection."""

    branches: tuple[Jaxpr, ...]
    name: ClassVar[str] = "choose"

    def regions(self) -> tuple[Region, ...]:
        return extend.branch_regions(self.branches)

    def selector(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Until(RegionPrimitive):
    """A loop on a predicate, with a typing rule and a derivative."""

    going: Jaxpr
    body: Jaxpr
    name: ClassVar[str] = "until"

    def regions(self) -> tuple[Region, ...]:
        return extend.while_regions(self.going, self.body)

    def typing(self, *ins: Type) -> Typing:
        return super().typing(*ins)

    def function(self, *args: Handle) -> Sequence[Array]:
        return extend.eval_jaxpr(self.body, *args)

    def jvp(
        self, primals: Sequence[Handle], tangents: Sequence[Handle | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        return self.bind(*primals), self.bind(*tangents)


step = effax.make_jaxpr(lambda x: x * 2.0)(1.0).jaxpr
doubled: list[Array] = Repeat(step, 3).bind(1.0)
chosen: list[Array] = Choose((step, step)).bind(True, 1.0)
renamed: Repeat = Repeat(step, 3).with_subjaxprs([step])
counts: list[int | None] = [place.trip_count for place in walk(step)]
reads: frozenset[int] = Repeat(step, 3).regions()[0].reads


class Unknown(RegionPrimitive):
    """Regions are missing."""

    name = "unknown"


Unknown()  # E: abstract


class Wrong(RegionPrimitive):
    """One region is not a tuple of regions."""

    name = "wrong"

    def regions(self) -> Region:  # E: override
        return extend.call_region(step)


extend.loop_region(step, "3")  # E: arg-type
