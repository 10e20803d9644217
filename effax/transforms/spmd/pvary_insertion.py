"""Insertion of ``pvary``: explicit variance of values over devices.

Before, in a ``shard_map`` over ``x``; ``a`` is invariant (the same on all devices), ``b`` varies::

    { lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b; d:f32[] = psum[axis=x:4] c in (d,) }

After::

    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = pvary[axis=x:4] a
        d:f32[] = mul c b
        e:f32[] = psum_invariant[axis=x:4] d
      in (e,) }

The meaning is the same, but now the cotangent of a value varies exactly if the value does:
``pvary`` transposes to a sum over the devices, and ``psum_invariant`` to ``pvary``. So an invariant
result counts once in a derivative, and the gradient of an invariant value is invariant.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.analysis.dataflow import NONE, Positions, positions_of, written
from effax.ir.analysis.variance import DIFFERS, SAME, Names, variance
from effax.ir.axes import Axes
from effax.ir.edit.rewriter import Rewriter
from effax.ir.indexing import whole
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import Gather, Get, ReduceMax, ReduceMin
from effax.ir.prims import collective as c
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import RefType, is_inexact
from effax.transforms.framework.pass_ import rules_or_default
from effax.transforms.framework.rules import PvaryOut, RuleSet

Each = tuple[Names, ...]


@memoize(maxsize=1024)
def insert_pvary(
    jaxpr: Jaxpr,
    ins: Each,
    axes: Axes,
    fixed: Positions = NONE,
    outs: Each | None = None,
    rules: RuleSet | None = None,
) -> Jaxpr:
    """Insert ``pvary`` wherever an invariant value is used as a varying one.

    Type:     a -> b  =>  a -> b
    Effects:  the same.

    Args:
        jaxpr: the program.
        ins: the axes along which each input may vary.
        axes: the axes of the mesh; others are ignored.
        fixed: positions of references that are invariant.
        outs: the axes along which each result is made varying; None: those along which it may be.
        rules: the rules; the registered ones where it is None.
    """
    return _PvaryInserter(jaxpr, ins, axes, fixed, rules_or_default(rules)).run(outs)


class _PvaryInserter(Rewriter):
    """One run of the pass, with the axes along which each variable varies."""

    def __init__(
        self, jaxpr: Jaxpr, ins: Each, axes: Axes, fixed: Positions, rules: RuleSet
    ) -> None:
        super().__init__(jaxpr)
        self.rules = rules
        self.names = frozenset([axis.name for axis in axes])
        self.axes = axes
        self.ins = tuple([own & self.names for own in ins])
        self.found = variance(jaxpr, self.ins, fixed).variables
        self.fixed_refs = frozenset([jaxpr.binders[i].id for i in fixed])

    def run(self, out_axes: Each | None) -> Jaxpr:
        for eqn in self.jaxpr.eqns:
            self.step(eqn)
        outs = self.results()
        if out_axes is not None:
            outs = [
                self.raised(x, self.differs(a), names)
                for x, a, names in zip(outs, self.jaxpr.outs, out_axes, strict=True)
            ]
        return self.build(outs)

    def differs(self, atom: Atom) -> Names:
        if isinstance(atom, Lit):
            return SAME
        return self.found[atom.id] & self.names

    def raised(self, x: Atom, have: Names, names: Names) -> Atom:
        """Append ``pvary`` along further axes; a value without tangents needs none."""
        if isinstance(x, Lit) or isinstance(x.type, RefType) or not is_inexact(x.type):
            return x
        for axis in self.axes:
            if axis.name in names and axis.name not in have:
                x = self.b(c.Pvary(axis), x)
        return x

    def step(self, eqn: Eqn) -> None:
        ins = tuple([self.differs(a) for a in eqn.ins])
        args = self.operands(eqn)
        fixed = positions_of(self.fixed_refs, eqn)
        prim = eqn.prim
        if isinstance(prim, c.Collective) and prim.axis.name in self.names:
            made: Sequence[Atom] = self.collective(prim, args, ins)
        elif prim.subjaxprs() and prim.regions():
            closed, results = DIFFERS.call(eqn, ins, fixed)
            found = self.rules.find(prim)
            rule = pvary_in_regions if found is None or found.pvary is None else found.pvary
            prim, closed = rule(self.rules, prim, closed, results, self.axes, fixed)
            args = tuple([self.raised(x, a, z) for x, a, z in zip(args, ins, closed, strict=True)])
            made = self.b.emit(prim, args, eqn.source)
        else:
            closed = written(DIFFERS, eqn, ins, fixed)
            most = SAME.union(*[own for i, own in enumerate(closed) if i not in fixed])
            most = most.union(*map(self.differs, eqn.outs))
            if isinstance(prim, Get) and not fixed and most - ins[0]:
                prim, args = self.read_whole(prim, args)
            args = tuple([self.raised(x, a, most) for x, a in zip(args, ins, strict=True)])
            same = prim is eqn.prim
            made = self.keep(eqn, args) if same else self.b.emit(prim, args, eqn.source)
        self.bind(eqn.outs, made)

    def read_whole(self, prim: Get, args: Sequence[Atom]) -> tuple[Gather, tuple[Atom, ...]]:
        """Read an invariant reference whole: at varying positions its cotangent would vary."""
        ref, *positions = args
        return Gather(prim.indexer), (self.b(Get(whole(ref.type.shape)), ref), *positions)

    def collective(self, prim: c.Collective, args: Sequence[Atom], ins: Each) -> Sequence[Atom]:
        if not args:
            return self.b.emit(prim, args)
        (x,), (own,) = args, ins
        x = self.raised(x, own, own | {prim.axis.name})
        if isinstance(prim, c.Pvary):
            return [x]
        if not is_inexact(x.type) or prim.groups is not None:
            # Within groups, results vary.
            return self.b.emit(prim, [x])
        match prim:
            case c.Psum():
                return self.b.emit(c.PsumInvariant(prim.axis), [x])
            case c.AllGather():
                return self.b.emit(c.AllGatherInvariant(prim.axis, prim.dimension), [x])
            case c.Pmax() | c.Pmin():
                every = self.b(c.AllGatherInvariant(prim.axis, 0), x)
                reduction = ReduceMax if isinstance(prim, c.Pmax) else ReduceMin
                return self.b.emit(reduction((0,)), [every])
            case _:
                return self.b.emit(prim, [x])


def pvary_in_regions(
    rules: RuleSet, prim: Primitive, ins: Each, outs: Each, axes: Axes, fixed: Positions
) -> PvaryOut:
    """Insert ``pvary`` in the regions of a primitive."""
    # Under varying control flow not all devices would reach a sum of cotangents: the operands are
    # made varying, and their cotangents are summed outside.
    parted = _parted(prim, ins)
    ins = tuple([own if i in fixed else own | parted for i, own in enumerate(ins)])
    jaxprs = list(prim.subjaxprs())
    for i, region in enumerate(prim.regions()):
        out_axes = []
        for result, carry in zip(region.results, region.carry_to, strict=True):
            names = SAME if result is None else outs[result]
            out_axes.append(names | (SAME if carry is None else ins[carry]))
        own = frozenset([k for k, a in enumerate(region.args) if a in fixed])
        inside = tuple([ins[a] for a in region.args])
        jaxprs[i] = insert_pvary(region.jaxpr, inside, axes, own, tuple(out_axes), rules)
    return PvaryOut(prim.with_subjaxprs(jaxprs), ins)


def _parted(prim: Primitive, ins: Each) -> Names:
    """Return the axes along which a selector or predicate of the primitive varies."""
    selector = prim.selector()
    parted = SAME if selector is None else ins[selector]
    for region in prim.regions():
        if region.is_predicate:
            parted |= variance(region.jaxpr, tuple([ins[a] for a in region.args])).outs[0]
    return parted


_INVARIANT = (c.PsumInvariant, c.AllGatherInvariant, c.Pvary)


@memoize(maxsize=1024)
def has_invariants(jaxpr: Jaxpr, names: Names) -> bool:
    """Return whether the program or a subjaxpr has invariant collectives along these axes."""
    return any(
        (isinstance(eqn.prim, _INVARIANT) and eqn.prim.axis.name in names)
        or any(has_invariants(j, names) for j in eqn.prim.subjaxprs())
        for eqn in jaxpr.eqns
    )


@memoize(maxsize=1024)
def remove_pvary(jaxpr: Jaxpr, names: Names) -> Jaxpr:
    """Return the program without invariant collectives along these axes.

    The meaning is the same; in its transpose all cotangents vary.
    """
    if not has_invariants(jaxpr, names):
        return jaxpr
    made = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        prim, args = eqn.prim, made.operands(eqn)
        if isinstance(prim, c.Pvary) and prim.axis.name in names:
            made.replace(eqn, args)
        else:
            made.keep(eqn, args, _implicit_prim(prim, names))
    return made.build(made.results())


def _implicit_prim(prim: Primitive, names: Names) -> Primitive:
    match prim:
        case c.PsumInvariant() if prim.axis.name in names:
            return c.Psum(prim.axis)
        case c.AllGatherInvariant() if prim.axis.name in names:
            return c.AllGather(prim.axis, prim.dimension)
        case _:
            pass
    jaxprs, names = prim.subjaxprs(), names - {axis.name for axis in prim.bound_axes()}
    return prim.with_subjaxprs([remove_pvary(j, names) for j in jaxprs]) if jaxprs else prim
