"""Carries of loops: arrays whose type is the same on entry and exit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effax import tree
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.promotion import converted, yields
from effax.arrays.ref import Ref
from effax.arrays.tracing import FlatFunction, shown_tree
from effax.effects import Rule
from effax.ir.analysis.variance import Names, variance
from effax.ir.build import Builder
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import IllTyped, RefError
from effax.ir.prims.common.subjaxpr_checks import fits
from effax.ir.scope import checked_axes
from effax.ir.syntax import Atom
from effax.ir.trace import differs_along, is_shared, shown_ref
from effax.ir.types import ArrayType, Type
from effax.lax.leaves import Leaves, with_results
from effax.tree import PyTreeDef


def no_refs(carried: Leaves, what: str) -> None:
    """Raise RefError where a reference is carried."""
    for x, name in zip(carried.leaves, carried.names, strict=True):
        if isinstance(x, Ref):
            raise RefError.against(
                Rule.ESCAPE,
                f"{what}: {name} is a reference",
                "an array",
                shown_ref(x),
                "close over the reference instead of carrying it",
            )


def call_tree(*parts: PyTreeDef) -> PyTreeDef:
    """Return the structure of ``(args, kwargs)`` for a call with these argument structures."""
    args = tuple(tree.unflatten(p, [0] * p.num_leaves) for p in parts)
    return tree.structure((args, {}))


def stable_carry(
    carry: Leaves,
    trace: Callable[[Sequence[Type]], FlatFunction],
    what: str,
    carry_tree: Callable[[FlatFunction], PyTreeDef],
) -> tuple[FlatFunction, list[Operand]]:
    """Trace a body whose carry has one type on entry and exit; weak types become strong.

    Raises IllTyped, which names the leaves, where the types differ otherwise.
    """
    leaves = list(carry.leaves)
    made: FlatFunction | None = None
    # A leaf changes its type once, from a weak to a strong one.
    while True:
        types = [x.type for x in leaves]
        flat = made or trace(types)
        found_tree = carry_tree(flat)
        if found_tree != carry.treedef:
            raise IllTyped(
                f"{what}: the body returns a carry of a different structure",
                expected=shown_tree(carry.treedef),
                found=shown_tree(found_tree),
            )
        outs = flat.jaxpr.outs[: len(leaves)]
        kept = [_promoted(x, out) for x, out in zip(leaves, outs, strict=True)]
        promoted = [x for x in kept if x is not None]
        if len(promoted) < len(leaves):
            raise _changed(carry.names, types, outs, [x is None for x in kept], what)
        if all(x.type is t for x, t in zip(promoted, types, strict=True)):
            return flat._replace(jaxpr=with_results(flat.jaxpr, types)), leaves
        leaves = promoted
        made = _retyped(flat, [x.type for x in leaves])


def _retyped(flat: FlatFunction, types: Sequence[Type]) -> FlatFunction | None:
    """Return a body on a carry of strong types; None where it has to be traced anew for these.

    Operations have the dtypes that they had for the weak carry, as in JAX, which traces once.
    """
    jaxpr, n = flat.jaxpr, len(flat.consts)
    before = jaxpr.in_types[n : n + len(types)]
    if any(old.dtype != new.dtype for old, new in zip(before, types, strict=True)):
        return None
    rest = jaxpr.in_types[n + len(types) :]
    made = Rewriter(jaxpr, Builder([*jaxpr.in_types[:n], *types, *rest]))
    try:
        for eqn in jaxpr.eqns:
            made.replace(eqn, made.emit(eqn, eqn.prim, made.operands(eqn)))
    except IllTyped:
        return None
    again = made.build(made.results()).replace(out_names=jaxpr.out_names)
    if any(a.dtype != b.dtype for a, b in zip(jaxpr.out_types, again.out_types, strict=True)):
        return None
    return flat._replace(jaxpr=again)


def stable_variance(
    trace: Callable[[Sequence[Names] | None], FlatFunction],
    carry: Sequence[Operand],
    scanned: Sequence[Operand] = (),
) -> FlatFunction:
    """Trace a body on a carry that varies between devices only where its result does.

    Args:
        trace: function of the axes along which inputs vary to the traced body.
        carry: initial carry.
        scanned: operands of which it takes elements.
    """
    if not checked_axes():
        return trace(None)
    differs = [differs_along(x) for x in carry]
    rest = [differs_along(x) for x in scanned]
    while True:
        flat = trace([*differs, *rest])
        given = [*[differs_along(x) for x in flat.consts], *differs, *rest]
        operands = [*flat.consts, *carry, *scanned]
        fixed = [i for i, x in enumerate(operands) if isinstance(x, Ref) and is_shared(x)]
        outs = variance(flat.jaxpr, tuple(given), frozenset(fixed)).outs
        grown = [own | out for own, out in zip(differs, outs, strict=False)]
        if grown == differs:
            return flat
        differs = grown


def _promoted(x: Operand, out: Atom) -> Operand | None:
    """Return the carry leaf in a type that the body's result has or promotes to, else None."""
    assert isinstance(x, Array)
    have, made = x.type, out.type
    if have is made or not isinstance(made, ArrayType):
        return x
    if fits(made, have):
        return x if have.weak <= made.weak else converted(x, made.dtype, False)
    if have.shape != made.shape:
        return None
    # The operations of the body round a float alike.
    if yields(have, made.dtype, x, rounds=True):
        return converted(x, made.dtype, False)
    return x if yields(made, have.dtype, out) else None


def _changed(
    names: Sequence[str],
    ins: Sequence[Type],
    outs: Sequence[Atom],
    differs: Sequence[bool],
    what: str,
) -> IllTyped:
    """Return the error for a carry whose type the body changes, with both types by leaf."""
    parts = [
        (name, have, out.type)
        for name, have, out, has in zip(names, ins, outs, differs, strict=True)
        if has
    ]
    first, dtype = parts[0][0], parts[0][1].dtype
    same_shape = parts[0][1].shape == parts[0][2].shape
    which = first if len(parts) == 1 else f"{first} and {len(parts) - 1} more of the carry"
    return IllTyped(
        f"{what}: {which} changed type in the body",
        expected=", ".join([_shown(name, have, parts) for name, have, _ in parts]),
        found=", ".join([_shown(name, out, parts) for name, _, out in parts]),
        remedy=f"convert the initial carry, or the result of the body: `.astype('{dtype}')`"
        if same_shape
        else "start with a carry of the shape that the body returns",
    )


def _shown(name: str, type_: Type, parts: Sequence[object]) -> str:
    return str(type_) if len(parts) == 1 else f"{name}: {type_}"
