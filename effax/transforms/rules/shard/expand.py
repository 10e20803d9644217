"""``shard_map`` on one device: each axis of the mesh becomes a batch axis of ``vmap``.

A divided argument is reshaped so that its mesh axes are in front, in the order of the mesh. The
jaxpr is batched along each axis of the mesh, the last one first, under the axis's name. Results are
reshaped back. Devices that share a reference become batch elements that share it: their
accumulations are summed.
"""

from __future__ import annotations

from effax.effects import ArgIndex
from effax.ir.axes import Axes, Axis
from effax.ir.build import Builder
from effax.ir.indexing import row
from effax.ir.memo import memoize
from effax.ir.partition import Spec, names_in, sizes_of
from effax.ir.prims import Gather, ShardMap
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, Shape, Type
from effax.transforms.framework.propagation import uses_axis
from effax.transforms.framework.rules import RuleSet
from effax.transforms.rules.common.arrays import inverse, permuted, reshaped
from effax.transforms.vmap.common import Borrowed, borrow
from effax.transforms.vmap.engine import vmap


@memoize(maxsize=256)
def expanded(prim: ShardMap, types: tuple[Type, ...], rules: RuleSet) -> Jaxpr:
    """Return the jaxpr of a ``shard_map`` on arguments of these types, for one device."""
    b = Builder(types)
    args: list[Atom] = []
    borrowed: list[Borrowed] = []
    for i, (x, spec) in enumerate(zip(b.binders, prim.in_specs, strict=True)):
        layout = _Layout(x.type.shape, spec, prim.mesh)
        if not names_in(spec):
            args.append(x)
        elif isinstance(x.type, RefType):
            effects = prim.jaxpr.effects.on(ArgIndex(i))
            borrowed.append(borrow(b, x, layout.order, effects, layout.split))
            args.append(borrowed[-1].local)
        else:
            args.append(layout.apart(b, x))
    outs = b.inline_jaxpr(_over_mesh(prim, rules), args)
    results = [_whole(b, x, spec, prim.mesh) for x, spec in zip(outs, prim.out_specs, strict=True)]
    for ref in borrowed:
        ref.write_back(b)
    return b.finish(results)


def _over_mesh(prim: ShardMap, rules: RuleSet) -> Jaxpr:
    """Return the jaxpr of all devices: mesh axes lead, in the order of the mesh."""
    jaxpr = prim.jaxpr
    for axis in reversed(prim.mesh):
        jaxpr = _along(jaxpr, axis, prim, rules)
    return jaxpr


def _along(jaxpr: Jaxpr, axis: Axis, prim: ShardMap, rules: RuleSet) -> Jaxpr:
    """Return the jaxpr batched along one axis of the mesh."""
    batched = tuple([axis.name in names_in(spec) for spec in prim.in_specs])
    shared = frozenset(
        i
        for i, (t, has) in enumerate(zip(jaxpr.in_types, batched, strict=True))
        if isinstance(t, RefType) and not has
    )
    wanted = tuple([axis.name in names_in(spec) for spec in prim.out_specs])
    used = any(uses_axis(eqn.prim, axis.name) for eqn in jaxpr.eqns)
    name = axis.name if used else None
    made = vmap.cached(jaxpr, batched, axis.size, rules, shared, False, wanted, name)
    if made.out_batched == wanted:
        return made.jaxpr
    # A result with no axis in its spec is the same on all devices: take that of the first one.
    b = Builder(made.jaxpr.in_types)
    outs = b.inline_jaxpr(made.jaxpr, b.binders)
    kept = [
        b(Gather(row(x.type.shape, 0)), x) if has and not ct_spec else x
        for x, has, ct_spec in zip(outs, made.out_batched, wanted, strict=True)
    ]
    return b.finish(kept)


class _Layout:
    """The conversion between an array and its parts, with the mesh axes in front.

    ``split`` is the shape with each dimension divided, ``order`` the permutation that moves the
    mesh axes to the front.
    """

    def __init__(self, shape: Shape, spec: Spec, mesh: Axes) -> None:
        sizes = sizes_of(mesh)
        split: list[int] = []
        at: dict[str, int] = {}
        rest: list[int] = []
        for d, n in enumerate(shape):
            for name in spec[d] if d < len(spec) else ():
                at[name] = len(split)
                split.append(sizes[name])
                n //= sizes[name]  # noqa: PLW2901  # the rest of the dimension
            rest.append(len(split))
            split.append(n)
        self.shape = shape
        self.split = tuple(split)
        self.order = [*[at[axis.name] for axis in mesh if axis.name in at], *rest]

    def apart(self, b: Builder, x: Atom) -> Atom:
        return permuted(b, reshaped(b, x, self.split), self.order)

    def together(self, b: Builder, x: Atom) -> Atom:
        return reshaped(b, permuted(b, x, inverse(self.order)), self.shape)


def _whole(b: Builder, x: Atom, spec: Spec, mesh: Axes) -> Atom:
    named = names_in(spec)
    if not named:
        return x
    sizes = sizes_of(mesh)
    local = x.type.shape[len(named) :]
    shape = list(local)
    for d, names in enumerate(spec):
        for name in names:
            shape[d] *= sizes[name]
    return _Layout(tuple(shape), spec, mesh).together(b, x)
