"""Check that a primitive does what its regions declare, whole, reduced and with more operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.extend.guard import annotate_errors
from effax.ir.build import Builder
from effax.ir.errors import BadRule, Unfinished
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive, Value
from effax.ir.regions.checks import check_declaration, with_more_operands
from effax.ir.regions.program import program_by_regions, results_by_regions
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, Type, array_type
from effax.testing.generate.values import Differs, check_equal, random_inputs, shown, single_run
from effax.transforms.framework.runner import unwrap
from effax.transforms.optimize.dce import dce

SEEDS = (0, 1)
"""The seeds of the operands on which programs are compared."""


def check_regions(prim: Primitive, types: tuple[Type, ...]) -> None:
    """Check the regions of a primitive, ``restrict`` and ``with_constants``, on random operands.

    Raises:
        BadRule: the regions are not well formed, or the evaluation is another than they declare; a
            reduced or extended primitive is not as its regions.
    """
    if not prim.regions() or prim.bound_axes():
        return
    check_declaration(prim)
    b = Builder(types)
    alone = b.finish(b.emit(prim, b.binders))
    _check_meaning(prim, alone)
    _check_restricted(prim, alone)
    _check_extended(prim, alone)


def _check_meaning(prim: Primitive, alone: Jaxpr) -> None:
    """Raise BadRule unless the evaluation is that of the program which the regions define.

    Regions of no common form define some results only; those are compared.
    """
    try:
        declared = program_by_regions(prim, alone.in_types)
    except BadRule:
        own, results = results_by_regions(prim, alone.in_types)
        if not results:
            return
        b = Builder(alone.in_types)
        outs = [*b.inline_jaxpr(alone, b.binders)]
        for r, out in zip(results, b.inline_jaxpr(own, b.binders), strict=True):
            outs[r] = out
        declared = b.finish(outs)
    label = f"the evaluation of {prim.name} is another than its regions declare"
    remedy = (
        "correct the trip count, the carries, the operands or the results of the regions, or "
        "`function` or `evaluate`"
    )
    _compare(label, declared, alone, range(len(alone.outs)), remedy)


def _check_restricted(prim: Primitive, alone: Jaxpr) -> None:
    """Raise BadRule unless each result alone is the same after dead code is removed."""
    n = len(alone.outs)
    for r in range(n):
        label = f"{prim.name} without its results other than {r} is another primitive"
        with annotate_errors(f"`restrict` of {prim.name}", prim.restrict):
            reduced = unwrap(dce(alone, tuple([j == r for j in range(n)]))).jaxpr
        _compare(label, alone, reduced, [r], "correct `restrict`")


def _check_extended(prim: Primitive, alone: Jaxpr) -> None:
    """Raise BadRule unless the primitive with one more operand, which is not used, is the same."""
    more = array_type((), np.float32)
    selector = prim.selector()
    at = 0 if selector is None else selector + 1
    label = f"`with_constants` of {prim.name}"
    with annotate_errors(label, prim.with_constants):
        jaxprs = [_with_input(jaxpr, more) for jaxpr in prim.subjaxprs()]
        made = prim.with_constants(jaxprs, 1)
        if made is None:
            return
        pairs = zip(prim.regions(), jaxprs, strict=True)
        wanted = tuple([with_more_operands(r, jaxpr, 1, at) for r, jaxpr in pairs])
        if made.regions() != wanted:
            raise BadRule(
                f"{label} does not return it with one more operand",
                expected=f"regions on {[r.args for r in wanted]}",
                found=f"{[r.args for r in made.regions()]}",
            )
        whole = Builder([*alone.in_types[:at], more, *alone.in_types[at:]])
        extended = whole.finish(whole.emit(made, whole.binders))
    zero = np.zeros((), np.float32)
    _compare(label, alone, extended, range(len(alone.outs)), None, (at, zero))


def _with_input(jaxpr: Jaxpr, type_: Type) -> Jaxpr:
    b = Builder([type_, *jaxpr.in_types])
    return b.finish(b.inline_jaxpr(jaxpr, b.binders[1:]))


def _compare(
    label: str,
    expected: Jaxpr,
    found: Jaxpr,
    results: Sequence[int],
    remedy: str | None,
    more: tuple[int, Value] | None = None,
) -> None:
    """Raise BadRule unless two programs return the same, and leave the same contents.

    Args:
        label: the fault.
        expected: the program that is right.
        found: the other program, whose results are ``results`` of the first.
        results: positions of results.
        remedy: the remedy of the error.
        more: the position and the value of an operand that only the second program takes.
    """
    for seed in SEEDS:
        given = random_inputs(expected.in_types, seed)
        try:
            first = _run(expected, given, range(len(expected.outs)))
            if more is not None:
                given.insert(*more)
            second = _run(found, given, range(len(results)))
        except Unfinished:
            continue
        if more is not None:
            del second[len(results) + more[0]]
        kept = [first[r] for r in results] + first[len(expected.outs) :]
        names = [f"result {r}" for r in results]
        names += [f"the final contents of operand {i}" for i in range(len(expected.in_types))]
        for name, x, y in zip(names, kept, second, strict=True):
            try:
                check_equal(name, x, y)
            except Differs:
                raise BadRule(
                    f"{label}: {name} differs", expected=shown(x), found=shown(y), remedy=remedy
                ) from None


def _run(jaxpr: Jaxpr, inputs: Sequence[Value], results: Sequence[int]) -> list[Value]:
    """Return results, and the final contents of all operands."""
    buffers = [np.array(x) for x in inputs]
    for x, t in zip(buffers, jaxpr.in_types, strict=True):
        x.flags.writeable = isinstance(t, RefType)
    with single_run():
        outs = evaluate(jaxpr, buffers)
    return [*[np.array(outs[r]) for r in results], *buffers]
