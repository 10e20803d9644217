"""Move reads of references out of loops that do not change them.

A read may leave a loop if its reference and its indices are the same in every iteration, and no
program of the loop writes the reference. Loops are those of effax and user-defined ones: the pass
knows them by their regions.

>>> import effax, effax.numpy as jnp
>>> from effax.ir import walk
>>> from effax.passes import unwrap
>>> def scaled(scale: effax.Ref, x: effax.Array) -> effax.Array:
...     return effax.lax.fori_loop(0, 3, lambda i, c: c * scale[1], x)
>>> before = effax.make_jaxpr(scaled)(effax.new_ref(jnp.ones(2)), jnp.float32(1.0)).jaxpr
>>> print(*walk(before))
0:scan 0:scan.body/0:add 0:scan.body/1:get 0:scan.body/2:mul
>>> print(*walk(unwrap(hoist_reads(before))))
0:get 1:scan 1:scan.body/0:add 1:scan.body/1:mul
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from effax.extend import Region
from effax.ir import (
    Atom,
    Builder,
    Eqn,
    Jaxpr,
    Lit,
    add_inputs,
    everywhere,
    map_eqns,
    renumbered,
    substitute,
)
from effax.ir.prims import Get
from effax.passes import Guarantee, as_pass

Read = tuple[Get, tuple[Atom, ...]]
"""A read, on operands outside of the loop."""


def invariant_reads(loop: Eqn, region: Region, written: set[int]) -> Iterator[tuple[int, Read]]:
    """Yield the positions and the reads of a region that have one value in all iterations."""
    outside: dict[Atom, Atom] = {
        region.jaxpr.binders[i]: loop.ins[region.args[i]]
        for i in region.invariant
        if region.args[i] not in written
    }
    for at, eqn in enumerate(region.jaxpr.eqns):
        operands = tuple(x if isinstance(x, Lit) else outside.get(x) for x in eqn.ins)
        found = tuple(x for x in operands if x is not None)
        if isinstance(eqn.prim, Get) and len(found) == len(operands):
            yield at, (eqn.prim, found)


def _without(
    jaxpr: Jaxpr, reads: dict[int, Read], slots: Sequence[Read], values: Sequence[Atom]
) -> Jaxpr:
    """Return the program of a region with all values as first inputs, and without its reads."""
    wider, new = add_inputs(jaxpr, [x.type for x in values], at=0, constants=True)
    known = {wider.eqns[at].outs[0]: new[slots.index(read)] for at, read in reads.items()}
    used = substitute(wider, known)
    kept = [eqn for at, eqn in enumerate(used.eqns) if at not in reads]
    return renumbered(used.replace(eqns=kept))


def _hoisted(b: Builder, loop: Eqn) -> list[Atom] | None:
    regions = loop.prim.regions()
    if not any(region.repeats for region in regions):
        return None
    written = {i for region in regions for i in region.writes}
    reads = [dict(invariant_reads(loop, region, written)) for region in regions]
    slots = list(dict.fromkeys(read for found in reads for read in found.values()))
    values = [b(prim, *operands) for prim, operands in slots]
    programs = [
        _without(r.jaxpr, found, slots, values) for r, found in zip(regions, reads, strict=True)
    ]
    prim = loop.prim.with_constants(programs, len(slots)) if slots else None
    return None if prim is None else [*b.emit(prim, [*values, *loop.ins])]


@as_pass(laws=(Guarantee.SAME_BITS, Guarantee.IDEMPOTENT))
def hoist_reads(jaxpr: Jaxpr) -> Jaxpr:
    """Move reads out of the loops at every depth, from the innermost one outward."""
    return everywhere(partial(map_eqns, _hoisted), jaxpr)
