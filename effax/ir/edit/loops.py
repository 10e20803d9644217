"""Edits of loops: constants, carries, scanned operands and stacked results.

A loop is an equation ``(*consts, *carry, *xs) -> (*carry, *ys)``, such as ``scan`` and ``while``,
or one of a user-defined primitive that declares a loop in its regions. Each edit changes its
operands and results together with the inputs and results of its programs, and renumbers them.

:func:`add_carry` shows a program before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass, replace
from typing import NamedTuple, cast

from effax.ir.argument_checks import check_atoms
from effax.ir.build import Builder
from effax.ir.edit.operations import Edited, check_bound, check_unused
from effax.ir.edit.signature import checked_order, checked_positions
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive, Region
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.format import fields_of
from effax.ir.text.printer import eqn_str
from effax.ir.types import RefType, Type, ref_type


class LoopBody(NamedTuple):
    """The body of a loop, while it is extended.

    Attributes:
        consts: its inputs that are constants.
        carry: its inputs that are carries, new ones included.
        xs: its inputs that are elements of scanned operands.
        outs: its results: the next carries, then what is stacked.
    """

    consts: tuple[Var, ...]
    carry: tuple[Var, ...]
    xs: tuple[Var, ...]
    outs: tuple[Atom, ...]


LoopStep = Callable[[Builder, LoopBody], Atom]
"""A function that appends equations to a body, and returns a result."""


def add_constants(jaxpr: Jaxpr, index: int, atoms: Sequence[Atom]) -> Edited:
    """Return the program with more constants of the loop at ``index``, the last ones.

    Its programs get inputs that are unused. The atoms of the result are the inputs of the body.

    Raises:
        BadArgument: the equation is not a loop, or an atom is not in scope.
    """
    loop = _loop(jaxpr, index)
    ins = [*range(loop.n_consts), *atoms, *range(loop.n_consts, loop.n_ins)]
    return _relaid(jaxpr, index, loop, ins, [*range(loop.n_outs)], loop.n_consts + len(atoms))


def drop_constants(jaxpr: Jaxpr, index: int, positions: Iterable[int]) -> Jaxpr:
    """Return the program without some constants of a loop, which its programs do not use.

    Raises:
        BadArgument: the equation is not a loop, a position is out of range, or a constant is used.
    """
    loop = _loop(jaxpr, index)
    gone = checked_positions("constants", positions, loop.n_consts)
    ins = [i for i in range(loop.n_ins) if i not in gone]
    n = loop.n_consts - len(gone)
    return _relaid(jaxpr, index, loop, ins, [*range(loop.n_outs)], n).jaxpr


def permute_constants(jaxpr: Jaxpr, index: int, order: Sequence[int]) -> Jaxpr:
    """Return the program with the constants of a loop in another order. Raises BadArgument."""
    loop = _loop(jaxpr, index)
    ins = [*checked_order("constants", order, loop.n_consts), *range(loop.n_consts, loop.n_ins)]
    return _relaid(jaxpr, index, loop, ins, [*range(loop.n_outs)], loop.n_consts).jaxpr


def add_carry(jaxpr: Jaxpr, index: int, init: Atom, step: LoopStep | None = None) -> Edited:
    """Return the program with one more carry of the loop at ``index``, and its final value.

    >>> from effax.ir import add_carry, lit, array_type, parse
    >>> from effax.ir.prims import Add
    >>> loop = parse('''{ lambda ; a:f32[]. let
    ...   b:f32[] = scan[
    ...     jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    ...     length=3 n_carry=1 n_consts=0 reverse=False unroll=1
    ...   ] a
    ... in (b,) }''')
    >>> counted, (n,) = add_carry(
    ...     loop,
    ...     0,
    ...     lit(0, array_type((), "int32")),
    ...     lambda b, body: b(Add(), body.carry[-1], lit(1, body.carry[-1].type)),
    ... )
    >>> print(counted)
    { lambda ; a:f32[]. let
        b:f32[] c:i32[] = scan[
          jaxpr={ lambda ; a:f32[] b:i32[]. let
              c:f32[] = sin a
              d:i32[] = add b 1:i32[]
            in (c, d) }
          length=3
          n_carry=2
          n_consts=0
          reverse=False
          unroll=1
        ] a 0:i32[]
      in (b,) }

    Args:
        jaxpr: the program.
        index: the position of the loop.
        init: the initial value, in scope there.
        step: appends equations to the body and returns the next value; None: it stays.

    Raises:
        BadArgument: the equation is not a loop, or the atom is not in scope.
        IllTyped: the next value has another type.
    """
    loop = _loop(jaxpr, index)
    at = loop.n_consts + loop.n_carry
    ins = [*range(at), init, *range(at, loop.n_ins)]

    def value(b: Builder, body: LoopBody) -> Atom:
        return body.carry[-1] if step is None else step(b, body)

    outs = [*range(loop.n_carry), value, *range(loop.n_carry, loop.n_outs)]
    made = _relaid(jaxpr, index, loop, ins, outs, loop.n_consts, loop.n_carry + 1)
    return Edited(made.jaxpr, made.jaxpr.eqns[index].outs[loop.n_carry : loop.n_carry + 1])


def drop_carries(jaxpr: Jaxpr, index: int, positions: Iterable[int]) -> Jaxpr:
    """Return the program without some carries of a loop; what only computed them is removed too.

    Raises:
        BadArgument: the equation is not a loop, a position is out of range, or the carry is used.
    """
    loop = _loop(jaxpr, index)
    gone = checked_positions("carries", positions, loop.n_carry)
    ins = [i for i in range(loop.n_ins) if i - loop.n_consts not in gone]
    outs = [j for j in range(loop.n_outs) if j not in gone]
    n = loop.n_carry - len(gone)
    return _relaid(jaxpr, index, loop, ins, outs, loop.n_consts, n).jaxpr


def permute_carries(jaxpr: Jaxpr, index: int, order: Sequence[int]) -> Jaxpr:
    """Return the program with the carries of a loop in another order. Raises BadArgument."""
    loop = _loop(jaxpr, index)
    several = checked_order("carries", order, loop.n_carry)
    k, n = loop.n_consts, loop.n_carry
    ins = [*range(k), *[k + j for j in several], *range(k + n, loop.n_ins)]
    return _relaid(jaxpr, index, loop, ins, [*several, *range(n, loop.n_outs)], k).jaxpr


def add_xs(jaxpr: Jaxpr, index: int, atoms: Sequence[Atom]) -> Edited:
    """Return the program with more operands that a loop scans, the last ones.

    The body gets inputs, their elements, that are unused; they are the atoms of the result.

    Raises:
        BadArgument: the equation is not a loop that scans, or an atom is not in scope.
        IllTyped: an atom has another leading size.
    """
    loop = _loop(jaxpr, index)
    ins = [*range(loop.n_ins), *atoms]
    return _relaid(jaxpr, index, loop, ins, [*range(loop.n_outs)], loop.n_consts)


def drop_xs(jaxpr: Jaxpr, index: int, positions: Iterable[int]) -> Jaxpr:
    """Return the program without some operands that a loop scans, which its body does not use.

    Raises BadArgument: the equation is not a loop, a position is out of range, or it is used.
    """
    loop = _loop(jaxpr, index)
    first = loop.n_consts + loop.n_carry
    gone = checked_positions("scanned operands", positions, loop.n_ins - first)
    ins = [i for i in range(loop.n_ins) if i - first not in gone]
    return _relaid(jaxpr, index, loop, ins, [*range(loop.n_outs)], loop.n_consts).jaxpr


def permute_xs(jaxpr: Jaxpr, index: int, order: Sequence[int]) -> Jaxpr:
    """Return the program with the scanned operands of a loop in another order.

    Raises BadArgument.
    """
    loop = _loop(jaxpr, index)
    first = loop.n_consts + loop.n_carry
    several = checked_order("scanned operands", order, loop.n_ins - first)
    ins = [*range(first), *[first + j for j in several]]
    return _relaid(jaxpr, index, loop, ins, [*range(loop.n_outs)], loop.n_consts).jaxpr


def add_ys(jaxpr: Jaxpr, index: int, step: LoopStep) -> Edited:
    """Return the program with one more stacked result of a loop, the last one, and that result.

    Args:
        jaxpr: the program.
        index: the position of the loop.
        step: appends equations to the body and returns what an iteration adds to the stack.

    Raises:
        BadArgument: the equation is not a loop that stacks results.
    """
    loop = _loop(jaxpr, index)
    outs = [*range(loop.n_outs), step]
    made = _relaid(jaxpr, index, loop, [*range(loop.n_ins)], outs, loop.n_consts)
    return Edited(made.jaxpr, made.jaxpr.eqns[index].outs[-1:])


def drop_ys(jaxpr: Jaxpr, index: int, positions: Iterable[int]) -> Jaxpr:
    """Return the program without some stacked results of a loop.

    What only computed them is removed too.

    Raises BadArgument: the equation is not a loop, a position is out of range, or it is used.
    """
    loop = _loop(jaxpr, index)
    gone = checked_positions("stacked results", positions, loop.n_outs - loop.n_carry)
    outs = [j for j in range(loop.n_outs) if j - loop.n_carry not in gone]
    return _relaid(jaxpr, index, loop, [*range(loop.n_ins)], outs, loop.n_consts).jaxpr


def permute_ys(jaxpr: Jaxpr, index: int, order: Sequence[int]) -> Jaxpr:
    """Return the program with the stacked results of a loop in another order.

    Raises BadArgument.
    """
    loop = _loop(jaxpr, index)
    several = checked_order("stacked results", order, loop.n_outs - loop.n_carry)
    outs = [*range(loop.n_carry), *[loop.n_carry + j for j in several]]
    return _relaid(jaxpr, index, loop, [*range(loop.n_ins)], outs, loop.n_consts).jaxpr


class _Loop(NamedTuple):
    """A loop, and the numbers of its operands and results."""

    eqn: Eqn
    regions: tuple[Region, ...]
    body: int
    n_consts: int
    n_carry: int
    n_ins: int
    n_outs: int


def _loop(jaxpr: Jaxpr, index: int) -> _Loop:
    """Return the loop at a position. Raises BadArgument unless it is one of the common form."""
    (place,) = checked_positions("equations", [index], len(jaxpr.eqns))
    eqn = jaxpr.eqns[place]
    regions = eqn.prim.regions()
    bodies = [k for k, r in enumerate(regions) if r.repeats and not r.is_predicate]
    whole = tuple(range(len(eqn.ins)))
    if len(bodies) == 1 and all(r.args == whole for r in regions) and eqn.prim.selector() is None:
        body = regions[bodies[0]]
        n_carry, n_xs = len(body.carries), len(body.parts)
        n_consts = len(whole) - n_carry - n_xs
        carry_to = [n_consts + j if j < n_carry else None for j in range(len(eqn.outs))]
        if body.carry_to == tuple(carry_to) and not eqn.prim.has_own_rules:
            return _Loop(eqn, regions, bodies[0], n_consts, n_carry, len(whole), len(eqn.outs))
    raise BadArgument(
        "the equation is not a loop",
        expected="a loop `(*consts, *carry, *xs) -> (*carry, *ys)`, such as scan or while",
        found=eqn_str(eqn),
        remedy="`walk(jaxpr)` yields the places of equations",
    )


def _relaid(
    jaxpr: Jaxpr,
    index: int,
    loop: _Loop,
    ins: Sequence[int | Atom],
    outs: Sequence[int | LoopStep],
    n_consts: int,
    n_carry: int | None = None,
) -> Edited:
    """Return the program with a loop of other operands and results, old ones by number.

    Also the inputs of the body for new operands.
    """
    index %= len(jaxpr.eqns)
    eqn = loop.eqn
    n_carry = loop.n_carry if n_carry is None else n_carry
    atoms = [eqn.ins[i] if isinstance(i, int) else i for i in ins]
    _check_operands(jaxpr, index, [a for a in ins if not isinstance(a, int)])
    gone = [v for j, v in enumerate(eqn.outs) if j not in outs]
    check_unused(jaxpr, index + 1, gone, "a dropped result of the loop")
    new_types = [
        None if isinstance(a, int) else a.type if k < n_consts + n_carry else _element(a.type)
        for k, a in enumerate(ins)
    ]
    counts = loop.n_consts, n_consts, n_carry
    programs = [
        _program(r.jaxpr, ins, new_types, outs if k == loop.body else None, counts)
        for k, r in enumerate(loop.regions)
    ]
    prim = _remade(eqn, programs, len(ins), n_consts, n_carry)
    made = _with_equation(jaxpr, index, prim, atoms, outs)
    body = programs[loop.body]
    return Edited(
        made, tuple([body.binders[k] for k, a in enumerate(ins) if not isinstance(a, int)])
    )


def _check_operands(jaxpr: Jaxpr, index: int, atoms: Sequence[Atom]) -> None:
    check_atoms(atoms)
    scope = {v.id: v.type for v in jaxpr.binders}
    scope.update((v.id, v.type) for eqn in jaxpr.eqns[:index] for v in eqn.outs)
    for a in atoms:
        check_bound(a, scope, f"equation {index}")


def _element(type_: Type) -> Type:
    if not type_.shape:
        raise BadArgument("a scanned operand needs a leading axis", "an array", str(type_))
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=type_.shape[1:]), type_.kind)
    return type_.update(shape=type_.shape[1:])


def _program(
    jaxpr: Jaxpr,
    ins: Sequence[int | Atom],
    types: Sequence[Type | None],
    outs: Sequence[int | LoopStep] | None,
    counts: tuple[int, int, int],
) -> Jaxpr:
    """Return a program of a loop with other inputs and results."""
    n_old, n_consts, n_carry = counts
    b = Builder()
    for i, type_ in zip(ins, types, strict=True):
        b.bind(jaxpr.binders[i].type if isinstance(i, int) else type_ or i.type)
    # None is read for no input that is used.
    env = cast("list[Atom]", [None] * jaxpr.size)
    for i, w in zip(ins, b.binders, strict=True):
        if isinstance(i, int):
            env[jaxpr.binders[i].id] = w
    kept = [*range(len(jaxpr.outs))] if outs is None else [j for j in outs if isinstance(j, int)]
    eqns = _live(jaxpr, kept)
    used = {a.id for e in eqns for a in e.ins if isinstance(a, Var)}
    used.update(a.id for a in [jaxpr.outs[j] for j in kept] if isinstance(a, Var))
    dropped = [v for i, v in enumerate(jaxpr.binders) if i not in ins and v.id in used]
    if dropped:
        raise BadArgument(
            "a program of the loop uses a dropped input",
            expected="inputs that no equation and no other result uses",
            found=", ".join(map(str, dropped)),
            remedy="`substitute` another atom for it in the program first",
        )
    b.replay(eqns, env)
    old = [a if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs]
    c, k = n_consts, n_consts + n_carry
    body = LoopBody(
        tuple(b.binders[:c]),
        tuple(b.binders[c:k]),
        tuple(b.binders[k:]),
        tuple([old[j] for j in kept]),
    )
    made = old if outs is None else [old[j] if isinstance(j, int) else j(b, body) for j in outs]
    names = [jaxpr.names[i] if isinstance(i, int) and i < len(jaxpr.names) else "" for i in ins]
    n_own = sum(isinstance(i, int) and i < jaxpr.n_consts for i in ins)
    captured = n_consts if jaxpr.n_consts == n_old else n_own
    return b.finish(made, captured, names if any(names) else ())


def _live(jaxpr: Jaxpr, kept: Sequence[int]) -> list[Eqn]:
    """Return the equations without those that only dropped results need."""
    if len(kept) == len(jaxpr.outs):
        return list(jaxpr.eqns)
    live = {a.id for a in [jaxpr.outs[j] for j in kept] if isinstance(a, Var)}
    needed: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v.id in live for v in eqn.outs):
            needed.append(eqn)
            live.update(a.id for a in eqn.ins if isinstance(a, Var))
    return needed[::-1]


def _with_counts(
    prim: Primitive, programs: Sequence[Jaxpr], n_consts: int, n_carry: int
) -> Primitive:
    known = {f.name for f in fields_of(prim)}
    counts = {"n_consts": n_consts, "n_carry": n_carry}
    made: object = prim.with_subjaxprs(programs)
    if is_dataclass(made) and not isinstance(made, type):
        made = replace(made, **{k: n for k, n in counts.items() if k in known})
    return cast("Primitive", made)


def _remade(
    eqn: Eqn, programs: Sequence[Jaxpr], n_ins: int, n_consts: int, n_carry: int
) -> Primitive:
    """Return the changed loop. Raise BadArgument unless its regions are those that are wanted."""
    try:
        prim = _with_counts(eqn.prim, programs, n_consts, n_carry)
        bodies = [r for r in prim.regions() if r.repeats and not r.is_predicate]
    except Exception:  # noqa: BLE001  # methods of the user, on fields that they may not expect
        prim, bodies = eqn.prim, []
    if len(bodies) == 1 and bodies[0].args == tuple(range(n_ins)):
        body = bodies[0]
        counts = len(body.results), len(body.carries), len(body.parts)
        if counts == (len(body.jaxpr.outs), n_carry, n_ins - n_consts - n_carry):
            return prim
    raise BadArgument(
        f"{prim.name} cannot have these operands and results",
        expected="operands that it scans and stacked results only of a loop like scan",
        found=f"{n_consts} constants, {n_carry} carries, {n_ins - n_consts - n_carry} scanned",
        equation=eqn_str(eqn),
    )


def _with_equation(
    jaxpr: Jaxpr, index: int, prim: Primitive, ins: Sequence[Atom], outs: Sequence[object]
) -> Jaxpr:
    """Return the program with another equation at a position; old results by number."""
    b = Builder(jaxpr.in_types)
    env = cast("list[Atom]", [None] * jaxpr.size)  # None is never read: bound before use
    for v, w in zip(jaxpr.binders, b.binders, strict=True):
        env[v.id] = w
    b.replay(jaxpr.eqns[:index], env)
    old = jaxpr.eqns[index]
    made = b.emit(prim, [a if isinstance(a, Lit) else env[a.id] for a in ins], old.source)
    for j, v in zip(outs, made, strict=True):
        if isinstance(j, int):
            env[old.outs[j].id] = v
    b.replay(jaxpr.eqns[index + 1 :], env)
    results = [a if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs]
    return b.finish(results, jaxpr.n_consts, jaxpr.names)
