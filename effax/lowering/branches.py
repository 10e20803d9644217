"""Replace conditionals whose branches update large arrays by loops, which update in place.

XLA's conditional has one buffer for each result, into which it copies an array that a branch
returns unchanged, or reads beside an update. Jaxlib 0.10 copies if two branches update different
arrays; jaxlib 0.12, if a branch only reads an array that another one updates. The carry of a loop
is not copied. So ::

    c:f32[1000000] d:f32[] = cond[branches=(
        { lambda ; a i. let b = gather[a[i]] a i in (a, b) }
        { lambda ; a i. let b = scatter[a[i]] a 1.0 i in (b, 0.0) }
    )] p a i

becomes one loop for each branch, of one iteration if the branch is taken and else of none::

    _ b:f32[1000000] d = while run: (false, scatter[a[i]] a 1.0 i, 0.0)    from (p, a, 0.0)
    _ e:f32[]          = while run: (false, gather[b[i]] b i)              from (not p, d)

A loop carries the arrays that its branch updates, and the branch's other results. A loop costs a
few microseconds, so only conditionals on arrays that take longer to copy are replaced, and no
conditional of two branches of which one is the identity: XLA updates in place there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from effax.ir.build import Builder, lit
from effax.ir.dtypes import family
from effax.ir.edit.rewriter import Rewriter
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    BroadcastInDim,
    DynamicUpdateSlice,
    Eq,
    Ge,
    Le,
    Not,
    Scatter,
    ScatterAdd,
    While,
)
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import PREDICATE, ArrayType, Type
from effax.lowering.ordering import is_large

_NO_SELECTOR: Final = Primitive.selector
_NOTHING: Final = Jaxpr((), (), ())


def in_place(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with loops in place of conditionals that would copy a large array."""
    for eqn in jaxpr.eqns:
        # Decide most equations by their class, without a call.
        if type(eqn.prim).selector is not _NO_SELECTOR and _would_copy(eqn):
            break
    else:
        return jaxpr
    made = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        args = made.operands(eqn)
        if _would_copy(eqn):
            made.replace(eqn, _loops(made.b, eqn, args))
        else:
            made.keep(eqn, args)
    return made.finish()


class Updates(NamedTuple):
    """The operands that a conditional updates.

    Attributes:
        operand: by result, the operand that every branch returns, updated or unchanged; or None.
        changed: by branch and result, whether the branch returns a changed value.
    """

    operand: tuple[int | None, ...]
    changed: tuple[tuple[bool, ...], ...]


@memoize(maxsize=1024)
def updates_of(prim: Primitive) -> Updates:
    """Return which results of the conditional are updated operands."""
    found: list[int | None] = []
    branches = prim.subjaxprs()
    for roots in zip(*[_roots(branch) for branch in branches], strict=True):
        same = all(root == roots[0] for root in roots)
        found.append(roots[0] if same else None)
    # An operand that becomes two results has one buffer only, so one of them is a copy.
    operand = tuple([i if i is not None and found.count(i) == 1 else None for i in found])
    changed = [
        tuple([i is None or branch.outs[j] != branch.binders[i] for j, i in enumerate(operand)])
        for branch in branches
    ]
    return Updates(operand, tuple(changed))


@memoize(maxsize=1024)
def _roots(jaxpr: Jaxpr) -> tuple[int | None, ...]:
    """Return, by result, the input of which it is the updated value; or None."""
    root: dict[int, int] = {v.id: i for i, v in enumerate(jaxpr.binders)}
    for eqn in jaxpr.eqns:
        for j, v in enumerate(eqn.outs):
            source = _updated(eqn, j)
            a = None if source is None else eqn.ins[source]
            if isinstance(a, Var) and a.id in root:
                root[v.id] = root[a.id]
    return tuple([root.get(a.id) if isinstance(a, Var) else None for a in jaxpr.outs])


def _updated(eqn: Eqn, j: int) -> int | None:
    """Return the position of the operand of which result ``j`` is the updated value; or None."""
    match eqn.prim:
        case Scatter() | ScatterAdd() | DynamicUpdateSlice():
            return 0
        case prim if is_choice(prim):
            found = updates_of(prim).operand[j]
            return None if found is None else prim.regions()[0].args[found]
        case prim if prim.may_repeat():
            carries = [r.carry_to[r.results.index(j)] for r in prim.regions() if j in r.results]
            return carries[0] if carries else None
        case prim:
            call = prim.as_call()
            return None if call is None else _roots(call.subjaxprs()[0])[j]


def is_choice(prim: Primitive) -> bool:
    """Return whether the primitive selects one of its regions, with equal operands and results."""
    if prim.selector() is None:
        return False
    first, *others = [region._replace(jaxpr=_NOTHING, name="") for region in prim.regions()]
    in_order = first.results == tuple(range(len(first.results)))
    return in_order and all(other == first for other in others)


def _would_copy(eqn: Eqn) -> bool:
    """Return whether the equation is a conditional that updates a large operand in a copy."""
    prim = eqn.prim
    if eqn.effects or len(prim.subjaxprs()) < 2 or not is_choice(prim):
        return False
    operand, changed = updates_of(prim)
    big = [j for j, v in enumerate(eqn.outs) if is_large(v.type)]
    if any(operand[j] is None for j in big) or not any(row[j] for row in changed for j in big):
        return False
    if any(family(v.type.dtype) == "void" for v in eqn.outs):
        return False
    idle = [not any(row) for row in changed]
    return not (len(prim.subjaxprs()) == 2 and any(idle))


def _loops(b: Builder, eqn: Eqn, args: Sequence[Atom]) -> list[Atom]:
    prim, selector = eqn.prim, eqn.prim.selector()
    assert selector is not None
    index, operands = args[selector], [args[i] for i in prim.regions()[0].args]
    operand, changed = updates_of(prim)
    outs: list[Atom] = [
        _nothing(b, v.type) if i is None else operands[i]
        for v, i in zip(eqn.outs, operand, strict=True)
    ]
    for k, branch in enumerate(prim.subjaxprs()):
        carried = [j for j, has in enumerate(changed[k]) if has]
        if not carried:
            continue
        taken = _taken(b, index, k, len(prim.subjaxprs()))
        now = [outs[operand.index(i)] if i in operand else x for i, x in enumerate(operands)]
        results = b.emit(
            _once(branch, carried, operand, eqn),
            [
                *[x for i, x in enumerate(now) if i not in _places(carried, operand)],
                taken,
                *[outs[j] for j in carried],
            ],
            eqn.source,
        )
        for j, x in zip(carried, results[1:], strict=True):
            outs[j] = x
    return outs


def _places(carried: Sequence[int], operand: Sequence[int | None]) -> dict[int, int]:
    """Return the position among the carries of each operand that is carried."""
    return {i: n for n, j in enumerate(carried) if (i := operand[j]) is not None}


def _once(branch: Jaxpr, carried: Sequence[int], operand: Sequence[int | None], eqn: Eqn) -> While:
    """Return the branch as a loop over ``(operands not carried, predicate, carried results)``."""
    places = _places(carried, operand)
    types = branch.in_types
    others = [i for i in range(len(types)) if i not in places]
    inside = [*[types[i] for i in others], PREDICATE, *[_carried(eqn.outs[j]) for j in carried]]
    n = len(others)
    test, body = Builder(inside), Builder(inside)
    values: dict[int, Atom] = dict(zip(others, body.binders, strict=False))
    values.update((i, body.binders[n + 1 + at]) for i, at in places.items())
    outs = body.inline_jaxpr(branch, [values[i] for i in range(len(types))])
    return While(
        test.finish([test.binders[n]]),
        body.finish([lit(False, PREDICATE), *[outs[j] for j in carried]]),
        n,
    )


def _carried(v: Var) -> ArrayType:
    assert isinstance(v.type, ArrayType)
    return v.type


def _nothing(b: Builder, type_: Type) -> Atom:
    """Return zeros of the type: the carry for a result that no branch has computed yet."""
    zero = lit(0, type_)
    return b(BroadcastInDim(type_.shape, ()), zero) if type_.shape else zero


def _taken(b: Builder, index: Atom, k: int, n: int) -> Atom:
    """Return the predicate of branch ``k`` of ``n``; an index out of range is clamped."""
    if family(index.type.dtype) == "bool":
        return index if k else b(Not(), index)
    here = lit(k, index.type)
    if k == 0:
        return b(Le(), index, here)
    return b(Ge() if k == n - 1 else Eq(), index, here)
