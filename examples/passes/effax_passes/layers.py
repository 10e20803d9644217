r"""Apply one function to a carry several times, with other weights each time, as one equation.

:class:`Layers` has regions, so passes treat it as they treat the loops of effax: `hoist` moves
equations out of it that are the same in every layer, `dce` drops results that are not used, and
:mod:`effax_passes.hoist_reads` moves reads.

>>> import effax, effax.numpy as jnp
>>> from effax.ir import walk
>>> from effax.passes import hoist, unwrap
>>> def model(temperature: effax.Array, x: effax.Array, weights: effax.Array) -> effax.Array:
...     def layer(x: effax.Array, w: effax.Array) -> effax.Array:
...         return jnp.tanh(x @ w) * jnp.exp(temperature)
...
...     return layers(layer, x, weights)
>>> args = jnp.float32(0.5), jnp.ones(2), jnp.ones((3, 2, 2))
>>> before = effax.make_jaxpr(model)(*args).jaxpr
>>> print(*walk(before), sep="\n")
0:layers
0:layers.body/0:dot_general
0:layers.body/1:tanh
0:layers.body/2:exp
0:layers.body/3:mul
>>> print(*walk(unwrap(hoist(before))), sep="\n")
0:exp
1:layers
1:layers.body/0:dot_general
1:layers.body/1:tanh
1:layers.body/2:mul
>>> effax.cost(before).transcendentals, effax.cost(unwrap(hoist(before))).transcendentals
(9, 7)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import effax
from effax import Array, extend
from effax.extend import Region
from effax.ir import BadArgument, Jaxpr


@dataclass(frozen=True, slots=True)
class Layers(extend.RegionPrimitive):
    """``layers(*consts, carry, weights[depth]) -> carry``: the body, once for each weight."""

    body: Jaxpr
    depth: int
    n_consts: int
    name: ClassVar[str] = "layers"

    def regions(self) -> tuple[Region, ...]:
        return (extend.loop_region(self.body, self.depth, self.n_consts, 1),)


def layers(layer: Callable[[Array, Array], Array], x: Array, weights: Array) -> Array:
    """Return ``layer(...layer(layer(x, weights[0]), weights[1])...)``.

    Args:
        layer: a function of ``x`` and of one element of ``weights``. It may use references.
        x: the first operand, of the type that ``layer`` returns.
        weights: the elements along its first axis are the weights of each layer.

    Raises:
        BadArgument: ``weights`` has no axes, or ``layer`` changes the type of its operand.
    """
    if not weights.shape:
        raise BadArgument("layers has no weights", "an array with an axis of layers", str(weights))
    element = effax.ShapeDtypeStruct(weights.shape[1:], weights.dtype)
    closed = effax.make_jaxpr(layer)(x, element)
    carry, made = closed.jaxpr.in_types[-2], closed.jaxpr.out_types
    if made != (carry,):
        found = ", ".join(map(str, made))
        raise BadArgument("a layer changes the type of its operand", str(carry), found)
    prim = Layers(closed.jaxpr, weights.shape[0], closed.jaxpr.n_consts)
    return prim.bind(*closed.consts, x, weights)[0]
