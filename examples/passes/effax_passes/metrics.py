"""Record metrics of a program as a side effect, and compile it without them.

A :class:`Metric` is a kind of side effect: records under one key keep their order, and those under
different keys commute. Passes that know nothing of metrics keep every record.

>>> import effax
>>> from effax.passes import unwrap
>>> def loss(x: effax.Array) -> effax.Array:
...     return observe("loss", x * x)
>>> before = effax.make_jaxpr(loss)(effax.numpy.float32(3.0)).jaxpr
>>> print(before.effects, *[eqn.prim.name for eqn in before.eqns])
{metric loss} mul observe
>>> after = unwrap(without_metrics("loss")(before))
>>> print(after.effects, *[eqn.prim.name for eqn in after.eqns])
{} mul
>>> print(effax.grad(loss)(3.0), records.pop("loss"))
6.0 [9.0]
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from effax import Array, extend
from effax.ir import Atom, Builder, Eqn, IllTyped, Jaxpr, everywhere, map_eqns
from effax.passes import Pass, as_pass

records: defaultdict[str, list[float]] = defaultdict(list)
"""The values that were recorded under each key, in order."""


@dataclass(frozen=True, slots=True)
class Metric(extend.SideEffect):
    """A record under a key."""

    key: str
    word: ClassVar[str] = "metric"

    def commutes_with(self, other: extend.SideEffect) -> bool:
        return not isinstance(other, Metric) or other.key != self.key


@dataclass(frozen=True, slots=True)
class Observe(extend.HostPrimitive):
    """Record a number under a key."""

    key: str
    name: ClassVar[str] = "observe"

    def typing(self, *ins: extend.Type) -> extend.Typing:
        if len(ins) != 1 or ins[0].shape or not extend.is_float(ins[0].dtype):
            found = ", ".join(map(str, ins))
            raise IllTyped("a metric is a float without axes", found=found, remedy="take its mean")
        return extend.Typing((), extend.Row([Metric(self.key)]))

    def evaluate(self, *ins: extend.Value) -> tuple[()]:
        records[self.key].append(float(ins[0]))
        return ()


def observe(key: str, value: Array) -> Array:
    """Record a number under a key, and return it.

    Raises:
        IllTyped: ``value`` is not a float without axes.
    """
    Observe(key).bind(value)
    return value


def without_metrics(*keys: str) -> Pass:
    """Return the pass that removes records under some keys, or all of them if there are none.

    It changes side effects, so it has none of the guarantees of effax: results and references are
    the same (:func:`effax_passes.laws.metrics_are_not_results`).
    """

    def change(_: Builder, eqn: Eqn) -> list[Atom] | None:
        gone = isinstance(eqn.prim, Observe) and (not keys or eqn.prim.key in keys)
        return [] if gone else None

    @as_pass(name="without_metrics", laws=())
    def removed(jaxpr: Jaxpr) -> Jaxpr:
        return everywhere(partial(map_eqns, change), jaxpr)

    return removed
