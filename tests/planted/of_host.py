"""Bugs of passes in the treatment of side effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.prims import DebugCallback, Scan
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.testing.laws.transformations import Passes
from effax.transforms.discharge import Discharged
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import BatchBuilder, BatchOut, JvpOut, RuleBuilder, RuleSet
from effax.transforms.optimize.dce import Dce
from effax.transforms.partial_eval.partial_eval import PartialEval
from effax.transforms.rules.host import primal_jvp, sequential_batch
from effax.transforms.rules.scan.vmap import batch_together
from tests.planted.planting import Bug, wrong_rule

RIGHT = Passes()


def has_call(eqn: Eqn) -> bool:
    return isinstance(eqn.prim, DebugCallback)


def silent_dce(jaxpr: Jaxpr, used: Mask) -> Dce:
    """Remove equations without results."""
    made = RIGHT.dce(jaxpr, used)
    kept = [e for e in made.jaxpr.eqns if not has_call(e)]
    return made._replace(jaxpr=made.jaxpr.replace(eqns=kept))


def hoisted(jaxpr: Jaxpr) -> Jaxpr:
    """Calls that depend on inputs alone go to the front, past others."""
    made = RIGHT.inline(jaxpr)
    given = set(made.binders)
    early = [e for e in made.eqns if has_call(e) and given.issuperset(e.ins)]
    rest = [e for e in made.eqns if e not in early]
    return made.replace(eqns=[*reversed(early), *rest])


def called_twice(jaxpr: Jaxpr, rules: RuleSet) -> Discharged:
    done = RIGHT.discharge_with(jaxpr, rules)
    eqns = [e for eqn in done.jaxpr.eqns for e in ([eqn, eqn] if has_call(eqn) else [eqn])]
    return done._replace(jaxpr=done.jaxpr.replace(eqns=eqns))


def called_late(jaxpr: Jaxpr, known: Mask, forced: Mask, rules: RuleSet) -> PartialEval:
    """Move the calls of the known jaxpr to its end, in reverse."""
    made = RIGHT.partial_eval_with(jaxpr, known, forced, rules)
    eqns = [*made.known.eqns]
    calls = [e for e in eqns if has_call(e)]
    return made._replace(
        known=made.known.replace(eqns=[*[e for e in eqns if not has_call(e)], *reversed(calls)])
    )


def called_by_both(
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


def inactive_elements_too(
    b: BatchBuilder,
    prim: DebugCallback,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    mask, b.mask = b.mask, None
    made = sequential_batch(b, prim, ins, batched, size)
    b.mask = mask
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
PASSES, SPLIT = "calls of passes", "calls of partial evaluation"
DERIVATIVES, BATCH = "calls of derivatives", "calls of batches"


def in_rule(name: str, laws: str, focus: str | tuple[str, ...], **rules: object) -> Bug:
    return wrong_rule(name, laws, focus, DebugCallback, **rules)


BUGS: tuple[Bug, ...] = (
    Bug("dce drops equations without results", PASSES, SMOOTH, replace(RIGHT, dce=silent_dce)),
    Bug("calls are hoisted", PASSES, SMOOTH, replace(RIGHT, inline=hoisted)),
    Bug("discharge calls twice", PASSES, SMOOTH, replace(RIGHT, discharge_with=called_twice)),
    Bug("calls are reordered", SPLIT, SMOOTH, replace(RIGHT, partial_eval_with=called_late)),
    in_rule("jvp calls twice", DERIVATIVES, SMOOTH, jvp=called_by_both),
    in_rule("jvp passes tangents", DERIVATIVES, SMOOTH, jvp=of_tangents),
    in_rule("inactive elements call", BATCH, "cond", batch=inactive_elements_too),
    in_rule("the batch calls once", BATCH, SMOOTH, batch=for_all_at_once),
    wrong_rule("calls of nested batches interleave", BATCH, SMOOTH, Scan, batch=batch_together),
)
