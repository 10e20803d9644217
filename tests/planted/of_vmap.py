"""Bugs in batching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from effax.ir import prims as p
from effax.ir.build import Builder
from effax.ir.indexing import row
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, Scan, While, refs
from effax.ir.prims import index as ix
from effax.ir.prims import reduce as red
from effax.ir.prims import shape as sh
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.testing.laws.transformations import Passes
from effax.transforms.framework.rules import BatchBuilder, BatchOut, RuleSet
from effax.transforms.framework.runner import unwrap
from effax.transforms.rules.common.arrays import to_front, zeros
from effax.transforms.rules.common.safe_operands import Safe
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.vmap.common import batched_type
from effax.transforms.vmap.engine import Vmapped, vmap
from tests.planted.planting import Bug, edited, using, wrong_rule

Ins = Sequence[Atom]
Flags = Sequence[bool]


def right(prim: type[Primitive]) -> Callable[..., BatchOut]:
    found = DEFAULT_RULES.rules[prim].batch
    assert callable(found)
    return found


def bug(
    name: str, focus: str | tuple[str, ...], prim: type[Primitive], rule: Callable[..., BatchOut]
) -> Bug:
    return wrong_rule(name, "vmap", focus, prim, batch=rule)


def along_the_batch(
    b: BatchBuilder, prim: red.CumSum, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    return BatchOut([b(prim, *ins)], [True])


def axes_not_moved(
    b: BatchBuilder, prim: red.ReduceMax, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    """Axes are counted as if the batch axis came last."""
    (x,) = ins
    last = len(x.type.shape) - 1
    return BatchOut([b(replace(prim, axes=tuple(last - a for a in prim.axes)), x)], [True])


def reversed_too(b: BatchBuilder, prim: sh.Rev, ins: Ins, batched: Flags, size: int) -> BatchOut:
    return BatchOut([b(sh.Rev((0, *(d + 1 for d in prim.dimensions))), *ins)], [True])


def first_element_added(
    b: BatchBuilder, prim: refs.AddUpdate, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    """Only the first element adds to an unbatched reference."""
    if batched[0] or not batched[1] or any(batched[2:]) or b.mask is not None or not size:
        return right(refs.AddUpdate)(b, prim, ins, batched, size)
    ref, value, *operands = ins
    first = b(ix.Gather(row(value.type.shape, 0)), value)
    b.emit(prim, [ref, first, *operands])
    return BatchOut([], [])


def inactive_elements_write(
    b: BatchBuilder, prim: refs.Swap, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    """Inactive elements write."""
    active, b.mask = b.mask, None
    given = right(refs.Swap)(b, prim, ins, batched, size)
    b.mask = active
    return given


def inactive_elements_add(
    b: BatchBuilder, prim: refs.AddUpdate, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    """Inactive elements add."""
    active, b.mask = b.mask, None
    given = right(refs.AddUpdate)(b, prim, ins, batched, size)
    b.mask = active
    return given


def same_positions(
    b: BatchBuilder, prim: ix.Gather, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    """All elements read at the positions of the first."""
    x, *operands = ins
    if not any(batched[1:]) or not batched[0] or not size:
        return right(ix.Gather)(b, prim, ins, batched, size)
    first = [
        b(ix.Gather(row(o.type.shape, 0)), o) if has else o
        for o, has in zip(operands, batched[1:], strict=True)
    ]
    flags = [batched[0], *[False] * len(operands)]
    return right(ix.Gather)(b, prim, [x, *first], flags, size)


def cases_swapped(eqn: Eqn) -> Eqn:
    if not isinstance(eqn.prim, p.SelectN):
        return eqn
    return eqn._replace(ins=(eqn.ins[0], *reversed(eqn.ins[1:])))


def last_added(b: BatchBuilder, prim: Scan, ins: Ins, batched: Flags, size: int) -> BatchOut:
    """A scanned reference whose axes are moved is not written back."""
    start = len(b.eqns)
    given = right(Scan)(b, prim, ins, batched, size)
    made = b.eqns[start:]
    loop = next(i for i, eqn in enumerate(made) if isinstance(eqn.prim, Scan))
    kept = [e for e in made[loop + 1 :] if not isinstance(e.prim, refs.Swap | refs.AddUpdate)]
    b.eqns[start:] = [*made[: loop + 1], *kept]
    return given


def all_continue(b: BatchBuilder, prim: While, ins: Ins, batched: Flags, size: int) -> BatchOut:
    """Elements whose condition is false continue with the others."""
    start = len(b.eqns)
    given = right(While)(b, prim, ins, batched, size)
    b.eqns[start:] = [_without_selection(eqn) for eqn in b.eqns[start:]]
    return given


def _without_selection(eqn: Eqn) -> Eqn:
    if not isinstance(eqn.prim, While):
        return eqn
    body = eqn.prim.body
    outs: dict[Atom, Atom] = {
        e.outs[0]: e.ins[2] for e in body.eqns if isinstance(e.prim, p.SelectN) and e.ins[2:]
    }
    made = body.replace(outs=[outs.get(a, a) for a in body.outs])
    return eqn._replace(prim=replace(eqn.prim, body=made))


def _other_way(prim: Primitive) -> Primitive:
    assert isinstance(prim, Scan)
    return replace(prim, reverse=not prim.reverse)


def uncut(eqn: Eqn) -> Eqn:
    """Operands of inactive elements keep their cotangents, at any depth."""
    prim = eqn.prim
    if isinstance(prim, p.StopGradient):
        return eqn._replace(prim=p.Copy())
    inner = [j.replace(eqns=[uncut(e) for e in j.eqns]) for j in prim.subjaxprs()]
    return eqn._replace(prim=prim.with_subjaxprs(inner)) if inner else eqn


def with_method(
    rule: Callable[..., BatchOut], name: str, method: Callable[[Safe, Atom], Atom]
) -> Callable[..., BatchOut]:
    """The rule, with another replacement of values of inactive elements."""

    def tampered(b: BatchBuilder, *args: object) -> BatchOut:
        before = getattr(Safe, name)
        setattr(Safe, name, method)
        try:
            return rule(b, *args)
        finally:
            setattr(Safe, name, before)

    return tampered


def passed_is_batched(
    b: BatchBuilder, prim: While, ins: Ins, batched: Flags, size: int
) -> BatchOut:
    """Results that a loop passes through are batched."""
    outs, flags = right(While)(b, prim, ins, batched, size)
    each = [to_front(b, x, has, size) for x, has in zip(outs, flags, strict=True)]
    return BatchOut(each, [True] * len(each))


def one_result_of_none(
    jaxpr: Jaxpr, size: int, axes: Sequence[int | None], rules: RuleSet
) -> Vmapped:
    """The results for no batch elements have one."""
    made = unwrap(vmap(jaxpr, size, axes, rules=rules))
    if size:
        return made
    b = Builder([v.type for v in made.jaxpr.binders])
    outs = [zeros(b, batched_type(t, 1)) for t in jaxpr.out_types]
    return made._replace(jaxpr=b.finish(outs))


BUGS: tuple[Bug, ...] = (
    Bug(
        "no batch elements have a result",
        "vmap",
        ("arith.mul",),
        Passes(vmap_with=one_result_of_none),
    ),
    bug("a running sum runs along the batch", "reduce.cumulative", red.CumSum, along_the_batch),
    bug("reduced axes are counted backward", "reduce.extremum", red.ReduceMax, axes_not_moved),
    bug("elements are reversed too", "shape.reverse", sh.Rev, reversed_too),
    bug(
        "only the first element adds",
        ("refs.addupdate", "arith.add"),
        refs.AddUpdate,
        first_element_added,
    ),
    bug("inactive elements write", ("cond", "refs.swap"), refs.Swap, inactive_elements_write),
    bug("inactive elements add", ("cond", "refs.addupdate"), refs.AddUpdate, inactive_elements_add),
    bug(
        "all elements read where the first does",
        ("index.gather", "refs.get"),
        ix.Gather,
        same_positions,
    ),
    bug(
        "elements get the other branch's result",
        "cond",
        Cond,
        edited(right(Cond), cases_swapped),
    ),
    wrong_rule(
        "elements that take another branch have cotangents",
        "branches in reverse",
        "arith.mul",
        Cond,
        batch=edited(right(Cond), uncut),
    ),
    wrong_rule(
        "elements that have finished have cotangents",
        "branches in reverse",
        "arith.mul",
        While,
        batch=edited(right(While), uncut),
    ),
    wrong_rule(
        "elements that take another branch keep their values",
        "branches in reverse",
        "arith.mul",
        Cond,
        batch=with_method(right(Cond), "of_active", Safe.without_cotangent),
    ),
    wrong_rule(
        "operands of branches that no element takes have cotangents",
        "branches in reverse",
        "arith.mul",
        Cond,
        batch=with_method(right(Cond), "if_any", lambda safe, x: x),
    ),
    wrong_rule(
        "what a loop passes through is batched",
        "passed values",
        "while",
        While,
        batch=passed_is_batched,
    ),
    bug("a scanned reference is not written back", "scan", Scan, last_added),
    bug("finished elements continue", "while", While, all_continue),
    bug(
        "a batched scan runs the other way",
        "scan",
        Scan,
        edited(right(Scan), using(Scan, _other_way)),
    ),
)
