"""Bugs in what passes do with effects on the world outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import DebugCallback
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.testing.laws.pass_set import Passes
from effax.transforms.discharge import Discharged
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import BatchBuilder, BatchOut, JvpOut, RuleBuilder, RuleSet
from effax.transforms.optimize.dce import Dce
from effax.transforms.partial_eval.partial_eval import PartialEval
from effax.transforms.rules.host import primal_jvp, sequential_batch
from tests.planted.planting import Bug, wrong_rule

RIGHT = Passes()


def tells(eqn: Eqn) -> bool:
    return isinstance(eqn.prim, DebugCallback)


def silent_dce(jaxpr: Jaxpr, used: Mask) -> Dce:
    """What gives nothing is dead."""
    made = RIGHT.dce(jaxpr, used)
    kept = [e for e in made.jaxpr.eqns if not tells(e)]
    return made._replace(jaxpr=made.jaxpr.replace(eqns=kept))


def hoisted(jaxpr: Jaxpr) -> Jaxpr:
    """Calls that depend on inputs alone go to the front, past others."""
    made = RIGHT.inline(jaxpr)
    given = set(made.binders)
    early = [e for e in made.eqns if tells(e) and given.issuperset(e.ins)]
    rest = [e for e in made.eqns if e not in early]
    return made.replace(eqns=[*reversed(early), *rest])


def told_twice(jaxpr: Jaxpr, rules: RuleSet) -> Discharged:
    done = RIGHT.discharge_with(jaxpr, rules)
    eqns = [e for eqn in done.jaxpr.eqns for e in ([eqn, eqn] if tells(eqn) else [eqn])]
    return done._replace(jaxpr=done.jaxpr.replace(eqns=eqns))


def told_late(jaxpr: Jaxpr, known: Mask, forced: Mask, rules: RuleSet) -> PartialEval:
    """The known half tells at its end, the last call first."""
    made = RIGHT.partial_eval_with(jaxpr, known, forced, rules)
    eqns = [*made.known.eqns]
    told = [e for e in eqns if tells(e)]
    return made._replace(
        known=made.known.replace(eqns=[*[e for e in eqns if not tells(e)], *reversed(told)])
    )


def told_by_both(
    b: RuleBuilder,
    prim: DebugCallback,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    b.emit(prim, primals)
    return primal_jvp(b, prim, primals, tangents)


def of_tangents(
    b: RuleBuilder,
    prim: DebugCallback,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    moved = [x if t is None else t for x, t in zip(primals, tangents, strict=True)]
    return primal_jvp(b, prim, moved, tangents)


def absent_lanes_too(
    b: BatchBuilder,
    prim: DebugCallback,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    held, b.mask = b.mask, None
    made = sequential_batch(b, prim, ins, batched, size)
    b.mask = held
    return made


def for_all_at_once(
    b: BatchBuilder,
    prim: DebugCallback,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    return BatchOut(b.emit(prim, ins), [])


SMOOTH = ("math.smooth",)
PASSES, HALVES = "passes that tell", "halves that tell"
DERIVATIVES, LANES = "derivatives that tell", "lanes that tell"


def in_rule(name: str, laws: str, focus: str | tuple[str, ...], **rules: object) -> Bug:
    return wrong_rule(name, laws, focus, DebugCallback, **rules)


BUGS: tuple[Bug, ...] = (
    Bug("dce drops what gives nothing", PASSES, SMOOTH, replace(RIGHT, dce=silent_dce)),
    Bug("calls are hoisted", PASSES, SMOOTH, replace(RIGHT, inline=hoisted)),
    Bug("discharge tells twice", PASSES, SMOOTH, replace(RIGHT, discharge_with=told_twice)),
    Bug("calls are reordered", HALVES, SMOOTH, replace(RIGHT, partial_eval_with=told_late)),
    in_rule("jvp tells twice", DERIVATIVES, SMOOTH, jvp=told_by_both),
    in_rule("jvp tells of tangents", DERIVATIVES, SMOOTH, jvp=of_tangents),
    in_rule("lanes that are not here tell", LANES, "cond", batch=absent_lanes_too),
    in_rule("the batch tells once", LANES, SMOOTH, batch=for_all_at_once),
)
