"""Bugs in partial evaluation, discharge, dead code elimination and inlining."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, Jit, Scan, While, refs
from effax.ir.prims import index as ix
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import COUNTER, Type
from effax.testing.laws.transformations import Passes
from effax.transforms.checkify.conditions import Errors
from effax.transforms.checkify.engine import CheckedProgram
from effax.transforms.discharge import discharge
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import (
    DischargeOut,
    PartialEvalOut,
    Policy,
    RuleBuilder,
    RuleSet,
)
from effax.transforms.optimize.dce import Dce
from effax.transforms.partial_eval.partial_eval import PartialEval
from effax.transforms.rules.default import DEFAULT_RULES
from tests.planted.planting import Bug, edited, last_of, using, wrong_rule

RIGHT = Passes()
Ins = Sequence[Atom]


def right(prim: type[Primitive]) -> Callable[..., DischargeOut]:
    found = DEFAULT_RULES.rules[prim].discharge
    assert callable(found)
    return found


def in_discharge(
    name: str,
    focus: str | tuple[str, ...],
    prim: type[Primitive],
    rule: Callable[..., DischargeOut],
) -> Bug:
    return wrong_rule(name, "discharge", focus, prim, discharge=rule)


def in_split(
    name: str,
    focus: str | tuple[str, ...],
    prim: type[Primitive],
    edit: Callable[[PartialEvalOut], PartialEvalOut],
) -> Bug:
    """A split rule of which the result is changed."""
    rule = DEFAULT_RULES.rules[prim].split
    assert callable(rule)

    def tampered(
        rules: RuleSet, prim: Primitive, types: tuple[Type, ...], known: Mask, policy: Policy | None
    ) -> PartialEvalOut | None:
        found = rule(rules, prim, types, known, policy)
        return None if found is None else edit(found)

    return wrong_rule(name, "partial_eval", focus, prim, split=tampered)


def effect_twice(jaxpr: Jaxpr, known: Mask, forced: Mask, rules: RuleSet) -> PartialEval:
    """The last accumulation of the known half happens twice."""
    made = RIGHT.partial_eval_with(jaxpr, known, forced, rules)
    at = last_of(made.known.eqns, refs.AddUpdate)
    if at is None:
        return made
    eqns = [*made.known.eqns]
    return made._replace(known=made.known.replace(eqns=[*eqns[: at + 1], *eqns[at:]]))


def effects_reordered(jaxpr: Jaxpr, known: Mask, forced: Mask, rules: RuleSet) -> PartialEval:
    """The unknown half reads before what the known one writes: two effects change places."""
    made = RIGHT.partial_eval_with(jaxpr, known, forced, rules)
    eqns = [*made.unknown.eqns]
    for i in range(len(eqns) - 1):
        first, second = eqns[i], eqns[i + 1]
        depends = {v.id for v in first.outs} & {a.id for a in second.ins if isinstance(a, Var)}
        if first.effects and second.effects and not depends:
            eqns[i], eqns[i + 1] = second, first
    return made._replace(unknown=made.unknown.replace(eqns=eqns))


def residuals_run_backward(split: PartialEvalOut) -> PartialEvalOut:
    eqns = [
        e._replace(prim=replace(e.prim, reverse=not e.prim.reverse))
        if isinstance(e.prim, Scan)
        else e
        for e in split.unknown.eqns
    ]
    return split._replace(unknown=split.unknown.replace(eqns=eqns))


def runs_once_less(split: PartialEvalOut) -> PartialEvalOut:
    """The unknown half of a while begins with its second iteration."""
    first = lit(0, COUNTER)
    eqns = []
    for e in split.unknown.eqns:
        ins = list(e.ins)
        if isinstance(e.prim, While) and first in ins:
            ins[ins.index(first)] = lit(1, COUNTER)
        eqns.append(e._replace(ins=tuple(ins)))
    return split._replace(unknown=split.unknown.replace(eqns=eqns))


def branches_rotated(split: PartialEvalOut) -> PartialEvalOut:
    eqns = [
        e._replace(prim=Cond((*e.prim.branches[1:], e.prim.branches[0])))
        if isinstance(e.prim, Cond)
        else e
        for e in split.unknown.eqns
    ]
    return split._replace(unknown=split.unknown.replace(eqns=eqns))


def stale_condition(b: RuleBuilder, prim: While, ins: Ins, is_ref: Sequence[bool]) -> DischargeOut:
    """The condition reads the contents before the loop."""
    given = right(While)(b, prim, ins, is_ref)
    loop = b.eqns[-1]
    cond, body = discharge.cached(prim.cond, b.rules), discharge.cached(prim.body, b.rules)
    if not isinstance(loop.prim, While) or cond.changed or not body.changed:
        return given
    # The contents come as constants for the condition, and are carried for the body.
    n = loop.prim.n_consts
    types = [x.type for x in loop.ins]
    stale = list(loop.ins[n : n + len(body.changed)])
    first = Builder([*[x.type for x in stale], *types])
    inner = loop.prim.cond
    args: list[Atom] = [*first.binders[len(stale) :]]
    args[n : n + len(stale)] = first.binders[: len(stale)]
    test = first.finish(first.inline_jaxpr(inner, args))
    rest = Builder([*[x.type for x in stale], *types])
    step = rest.finish(rest.inline_jaxpr(loop.prim.body, rest.binders[len(stale) :]))
    made = While(test, step, n + len(stale))
    b.eqns[-1] = Eqn(made, (*stale, *loop.ins), loop.outs, loop.effects)
    return given


def new_for_old(b: RuleBuilder, prim: refs.Swap, ins: Ins, is_ref: Sequence[bool]) -> DischargeOut:
    _, contents = right(refs.Swap)(b, prim, ins, is_ref)
    return DischargeOut([b(p.Copy(), ins[1])], contents)


def overwrites(
    b: RuleBuilder, prim: refs.AddUpdate, ins: Ins, is_ref: Sequence[bool]
) -> DischargeOut:
    rest = [None] * (len(ins) - 1)
    return DischargeOut([], [b(ix.Scatter(prim.indexer), *ins), *rest])


def contents_kept(b: RuleBuilder, prim: Cond, ins: Ins, is_ref: Sequence[bool]) -> DischargeOut:
    """Lose the writes of a branch."""
    outs, contents = right(Cond)(b, prim, ins, is_ref)
    return DischargeOut(
        outs, [x if new is not None else None for x, new in zip(ins, contents, strict=True)]
    )


def _counts_forward(prim: Primitive) -> Primitive:
    assert isinstance(prim, Scan)
    return replace(prim, reverse=False)


def dce_drops_a_write(jaxpr: Jaxpr, used: Mask) -> Dce:
    """Remove a write whose old contents are unused."""
    made = RIGHT.dce(jaxpr, used)
    taken = {a.id for e in made.jaxpr.eqns for a in e.ins if isinstance(a, Var)}
    taken |= {a.id for a in made.jaxpr.outs if isinstance(a, Var)}
    eqns = [
        e
        for e in made.jaxpr.eqns
        if not (isinstance(e.prim, refs.Swap) and e.outs[0].id not in taken)
    ]
    return made._replace(jaxpr=made.jaxpr.replace(eqns=eqns))


def dce_drops_calls(jaxpr: Jaxpr, used: Mask) -> Dce:
    """Remove a call whose results are unused, whatever its effects."""
    made = RIGHT.dce(jaxpr, used)
    eqns = [e for e in made.jaxpr.eqns if e.outs or not e.prim.subjaxprs()]
    return made._replace(jaxpr=made.jaxpr.replace(eqns=eqns))


def dce_keeps_dead(jaxpr: Jaxpr, used: Mask) -> Dce:
    """Each run adds an equation."""
    made = RIGHT.dce(jaxpr, used)
    b = Builder(made.jaxpr.in_types)
    outs = b.inline_jaxpr(made.jaxpr, b.binders)
    floats = [v for v in b.binders if v.type.dtype.kind == "f" and hasattr(v.type, "weak")]
    if floats:
        b(p.Sin(), floats[0])
    return made._replace(jaxpr=b.finish(outs))


def inline_mixes_arguments(jaxpr: Jaxpr) -> Jaxpr:
    """Arguments of one type are bound in the wrong order."""
    eqns = [e._replace(ins=_rotated(e.ins)) if isinstance(e.prim, Jit) else e for e in jaxpr.eqns]
    return RIGHT.inline(jaxpr.replace(eqns=eqns))


def _rotated(ins: tuple[Atom, ...]) -> tuple[Atom, ...]:
    for i, x in enumerate(ins):
        for j in range(i + 1, len(ins)):
            if x.type is ins[j].type and x != ins[j]:
                return (*ins[:i], ins[j], *ins[i + 1 : j], x, *ins[j + 1 :])
    return ins


def last_failure(jaxpr: Jaxpr, errors: Errors) -> CheckedProgram:
    """Every failure is written, so that the last one is reported."""
    made = RIGHT.checkify(jaxpr, errors)
    # The conjunction with "there is no earlier one" becomes a conjunction with itself.
    eqns = [
        e._replace(ins=(e.ins[0], e.ins[0])) if isinstance(e.prim, p.And) else e
        for e in made.jaxpr.eqns
    ]
    return made._replace(jaxpr=made.jaxpr.replace(eqns=eqns))


def failure_overwrites(jaxpr: Jaxpr, errors: Errors) -> CheckedProgram:
    """The first result is the number of the failure."""
    made = RIGHT.checkify(jaxpr, errors)
    n = len(jaxpr.outs)
    return made._replace(jaxpr=made.jaxpr.replace(outs=[made.jaxpr.outs[n], *made.jaxpr.outs[1:]]))


BUGS: tuple[Bug, ...] = (
    Bug(
        "the last failure is reported",
        "checkify",
        ("math.of_positive",),
        replace(RIGHT, checkify=last_failure),
    ),
    Bug(
        "a result is the error",
        "checkify",
        ("math.of_positive",),
        replace(RIGHT, checkify=failure_overwrites),
    ),
    Bug(
        "an effect runs twice",
        "partial_eval",
        ("refs.addupdate",),
        replace(RIGHT, partial_eval_with=effect_twice),
    ),
    Bug(
        "effects change places",
        "partial_eval",
        ("refs.swap",),
        replace(RIGHT, partial_eval_with=effects_reordered),
    ),
    in_split("the unknown scan runs the other way", "scan", Scan, residuals_run_backward),
    in_split("the unknown while runs once less", "while", While, runs_once_less),
    in_split("the unknown branches are others", "cond", Cond, branches_rotated),
    in_discharge(
        "a loop's condition sees stale contents", ("while", "refs.swap"), While, stale_condition
    ),
    in_discharge("swap returns the new value", "refs.swap", refs.Swap, new_for_old),
    in_discharge("addupdate overwrites", "refs.addupdate", refs.AddUpdate, overwrites),
    in_discharge("what a branch writes is lost", "cond", Cond, contents_kept),
    in_discharge(
        "a discharged scan always runs forward",
        "scan",
        Scan,
        edited(right(Scan), using(Scan, _counts_forward)),
    ),
    Bug("dce drops a write", "dce", ("refs.swap",), replace(RIGHT, dce=dce_drops_a_write)),
    Bug("dce drops a call's effects", "dce", ("jit",), replace(RIGHT, dce=dce_drops_calls)),
    Bug("dce adds an equation", "dce", ("math.smooth",), replace(RIGHT, dce=dce_keeps_dead)),
    Bug(
        "inline mixes arguments", "inline", ("jit",), replace(RIGHT, inline=inline_mixes_arguments)
    ),
)
