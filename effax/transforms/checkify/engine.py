"""Checks as values: a program whose checks write an error that it returns.

Before::

    { lambda ; a:f32[]. let
        b:f32[] = log a
      in (b,) }

After, with checks for nan::

    { lambda ; a:f32[]. let
        b:Ref{i32[]} = new_ref 0:i32[]
        c:f32[] = log a
        d:bool[] = ne c c
        e:i32[] = b[...]
        f:bool[] = eq e 0:i32[]
        g:bool[] = and d f
        h:i32[] = select_n g e 1:i32[]
        b[...] <- h
        i:i32[] = freeze b
      in (c, i) }

The error is the number of the first failure in program order, from 1, and the arrays of its
message. It is kept in references, which regions of loops, branches and calls take as further
operands: discharge threads their contents, as those of any reference. Calls with custom rules, and
those that are recomputed, have an error of their own, a further result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import FailedCheckError, NotApplicable, TransformError
from effax.ir.indexing import whole
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims.check import CODE
from effax.ir.state import cached
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.ir.types import array_type, ref_type
from effax.transforms.checkify.conditions import Errors, FailureCondition, conditions_of, element
from effax.transforms.checkify.custom_calls import checked_call
from effax.transforms.framework.pass_ import jaxpr_pass
from effax.transforms.framework.runner import located
from effax.transforms.rules.common.arrays import reshaped, zeros


class CheckedProgram(NamedTuple):
    """The result of :func:`checkify`.

    Attributes:
        jaxpr: ``inputs -> (*results, number, *payload)``.
        failures: the failures, by number from 1; 0 is none.
    """

    jaxpr: Jaxpr
    failures: p.Failures


def _checkify(jaxpr: Jaxpr, errors: Errors) -> CheckedProgram:
    table = p.Failures.of(failures_of(jaxpr, errors))
    return CheckedProgram(with_error_results(jaxpr, Scheme(errors, table)), table)


@jaxpr_pass(_checkify, maxsize=1024)
def checkify(jaxpr: Jaxpr, errors: Errors) -> CheckedProgram:
    """Return the program with the first failure as a value, instead of checks.

    Checks in a subjaxpr that runs in no region (the function of a linear solve) are not possible.

    Type:     a -> b  =>  a -> (b, i32[], payload)
    Effects:  those of checks are removed; others are kept, in order.
    Laws:     tests/laws/test_checkify.py
    Raises:   TransformError: such a subjaxpr has a check that is enabled.

    Args:
        jaxpr: the program.
        errors: the classes of the errors that are enabled.
    """
    return checkify.cached(jaxpr, errors)


class Scheme(NamedTuple):
    """The errors that are enabled, and the failures of the whole program."""

    errors: Errors
    failures: p.Failures


@cached(maxsize=1024)
def _numbers(failures: p.Failures) -> dict[p.Failure, int]:
    return {failure: i for i, failure in enumerate(failures.failures, 1)}


@memoize(maxsize=1024)
def failures_of(jaxpr: Jaxpr, errors: Errors) -> tuple[p.Failure, ...]:
    """Return the distinct failures of a program and its subjaxprs, in program order."""
    found: dict[p.Failure, None] = {}
    for eqn in jaxpr.eqns:
        prim = eqn.prim
        if isinstance(prim, p.Check):
            found.update((f, None) for f in prim.failures.failures if f.error in errors)
        inner = _checked_programs(eqn, errors)
        for program in inner:
            found.update(dict.fromkeys(failures_of(program, errors)))
        found.update((c.failure, None) for c in _own_conditions(eqn, errors))
    return tuple(found)


def _own_conditions(eqn: Eqn, errors: Errors) -> list[FailureCondition]:
    """Return the conditions of an equation, none if its subjaxprs have them."""
    return [] if eqn.prim.subjaxprs() and _threadable(eqn) else conditions_of(eqn, errors)


def _checked_programs(eqn: Eqn, errors: Errors) -> Sequence[Jaxpr]:
    """Return the subjaxprs of an equation if one has failures."""
    programs = _threadable(eqn)
    if programs is None:
        for jaxpr in eqn.prim.subjaxprs():
            if FailedCheckError in errors and failures_of(jaxpr, frozenset({FailedCheckError})):
                raise located(_not_threaded(eqn.prim), eqn)
        return ()
    return programs if any(failures_of(jaxpr, errors) for jaxpr in programs) else ()


def _threadable(eqn: Eqn) -> Sequence[Jaxpr] | None:
    """Return the programs of an equation that take an error; None if not all of them do."""
    prim = eqn.prim
    inner = prim.subjaxprs()
    if not inner or prim.has_own_rules or isinstance(prim, p.Remat | p.ShardMap):
        return inner
    if len(prim.regions()) == len(inner):
        extended = [_with_inputs(jaxpr) for jaxpr in inner]
        if prim.with_constants(extended, 1) is not None:
            return inner
    defined = prim.definition(*[a.type for a in eqn.ins])
    return None if defined is None else (defined,)


@memoize(maxsize=1024)
def _with_inputs(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with a reference as its first input, which it does not use."""
    b = Builder([ref_type(CODE), *jaxpr.in_types])
    outs = b.inline_jaxpr(jaxpr, b.binders[1:])
    return b.finish(outs, jaxpr.n_consts + 1, ("", *jaxpr.names) if jaxpr.names else ())


def _not_threaded(prim: Primitive) -> TransformError:
    return NotApplicable(
        f"checkify: {prim.name} contains a program with checks, which returns no error",
        expected="checks in functions of jit, scan, while, cond, checkpoint or custom rules",
        remedy="move the check out of the function",
    )


@memoize(maxsize=1024)
def with_error_results(jaxpr: Jaxpr, scheme: Scheme) -> Jaxpr:
    """Return the program with its first failure as further results: number and payload."""
    b = Builder(jaxpr.in_types)
    state = [b(p.NewRef(), zeros(b, t)) for t in (CODE, *scheme.failures.types)]
    outs = b.inline_jaxpr(threaded(jaxpr, scheme), [*state, *b.binders])
    error = [b(p.Freeze(), ref) for ref in state]
    return b.finish([*outs, *error], jaxpr.n_consts, jaxpr.names)


@memoize(maxsize=1024)
def threaded(jaxpr: Jaxpr, scheme: Scheme) -> Jaxpr:
    """Return the program with references to the number and the payload as its first inputs."""
    state = [ref_type(t) for t in (CODE, *scheme.failures.types)]
    b = Builder([*state, *jaxpr.in_types])
    n = len(state)
    made = _Threader(Rewriter(jaxpr, b, b.binders[n:]), b.binders[:n], scheme)
    for eqn in jaxpr.eqns:
        made.step(eqn)
    names = ("",) * n + jaxpr.names if jaxpr.names else ()
    return b.finish(made.new.results(), jaxpr.n_consts + n, names)


class _Threader(NamedTuple):
    """A program under construction, and the references to its error."""

    new: Rewriter
    state: Sequence[Atom]
    scheme: Scheme

    def step(self, eqn: Eqn) -> None:
        new, errors = self.new, self.scheme.errors
        ins = new.operands(eqn)
        programs = _checked_programs(eqn, errors)
        if programs:
            new.replace(eqn, self.region(eqn, ins, programs))
        elif isinstance(eqn.prim, p.Check):
            self.check(eqn.prim, ins)
            new.replace(eqn, ())
        else:
            conditions = _own_conditions(eqn, errors)
            self.test([c for c in conditions if not c.of_results], ins, ())
            outs = new.keep(eqn, ins)
            self.test([c for c in conditions if c.of_results], ins, outs)

    def test(
        self, conditions: Sequence[FailureCondition], ins: Sequence[Atom], outs: Sequence[Atom]
    ) -> None:
        table = self.scheme.failures
        for condition in conditions:
            has_failed, payload = condition.emit(self.new.b, ins, outs)
            number = _numbers(table)[condition.failure]
            values = dict(zip(table.places[number - 1], payload, strict=True))
            self.record(has_failed, lit(number, CODE), values)

    def record(self, has_failed: Atom, number: Atom, payload: dict[int, Atom]) -> None:
        """Write a failure, unless there is an earlier one."""
        b, state = self.new.b, self.state
        before = b(p.Get(whole(())), state[0])
        is_first = b(p.And(), has_failed, b(p.Eq(), before, lit(0, CODE)))
        b.emit(p.Swap(whole(())), [state[0], b(p.SelectN(), is_first, before, number)])
        for i, value in payload.items():
            at = whole(value.type.shape)
            old = b(p.Get(at), state[i + 1])
            given = b(p.StopGradient(), value)
            b.emit(p.Swap(at), [state[i + 1], b(p.SelectN(), is_first, old, given)])

    def check(self, prim: p.Check, ins: Sequence[Atom]) -> None:
        """Write the failure of a check, whose operands may have leading axes."""
        b, table = self.new.b, self.scheme.failures
        numbers = [_numbers(table).get(f, 0) for f in prim.failures.failures]
        if not any(numbers):
            return
        code, *payload = ins
        code = _renumbered(b, code, numbers)
        code, *payload = first_failure(b, [code, *payload])
        has_failed = b(p.Ne(), code, lit(0, CODE))
        # Failures share arrays of the same type, in this table as in that of the check.
        values: dict[int, Atom] = {}
        for number, own in zip(numbers, prim.failures.places, strict=True):
            if number:
                values.update(
                    (place, payload[i])
                    for place, i in zip(table.places[number - 1], own, strict=True)
                )
        self.record(has_failed, code, values)

    def region(self, eqn: Eqn, ins: Sequence[Atom], programs: Sequence[Jaxpr]) -> Sequence[Atom]:
        """Emit an equation whose programs have failures; return its results."""
        new, prim, scheme, n = self.new, eqn.prim, self.scheme, len(self.state)
        if isinstance(prim, p.ShardMap):
            outs = new.emit(eqn, _on_devices(prim, scheme), ins)
        elif isinstance(prim, p.Remat):
            outs = new.emit(eqn, replace(prim, jaxpr=with_error_results(prim.jaxpr, scheme)), ins)
        elif prim.has_own_rules:
            outs = new.emit(eqn, checked_call(prim, with_error_results(programs[0], scheme)), ins)
        else:
            inner = [threaded(jaxpr, scheme) for jaxpr in programs]
            if programs == prim.subjaxprs():
                made = prim.with_constants(inner, n)
                assert made is not None
            else:
                made = p.Jit(inner[0], prim.name)
            selector = made.selector()
            at = 0 if selector is None else selector + 1
            return new.emit(eqn, made, [*ins[:at], *self.state, *ins[at:]])
        code, *payload = first_failure(new.b, outs[len(eqn.outs) :])
        has_failed = new.b(p.Ne(), code, lit(0, CODE))
        self.record(has_failed, code, dict(enumerate(payload)))
        return outs[: len(eqn.outs)]


def _renumbered(b: Builder, code: Atom, numbers: Sequence[int]) -> Atom:
    """Return the numbers of failures of a check as those of the program; 0 for disabled ones."""
    if numbers == list(range(1, len(numbers) + 1)):
        return code
    result: Atom = lit(0, CODE)
    for i, number in enumerate(numbers, 1):
        if number:
            result = b(p.SelectN(), b(p.Eq(), code, lit(i, CODE)), result, lit(number, CODE))
    return result


def first_failure(b: Builder, error: Sequence[Atom]) -> list[Atom]:
    """Return the first error along the leading axes of the number: number and payload."""
    code = error[0]
    axes = code.type.shape
    if not axes:
        return list(error)
    n = prod(axes)
    flat = [reshaped(b, x, (n, *x.type.shape[len(axes) :])) for x in error]
    if n == 0:
        return [zeros(b, array_type(x.type.shape[1:], x.type.dtype)) for x in flat]
    at = b(p.Argmax(0, CODE.dtype), b(p.Ne(), flat[0], lit(0, CODE)))
    return [element(b, x, at) for x in flat]


def _on_devices(prim: p.ShardMap, scheme: Scheme) -> p.ShardMap:
    """Return a ``shard_map`` that returns the error of each device, along a leading axis."""
    jaxpr = with_error_results(prim.jaxpr, scheme)
    n = len(prim.jaxpr.outs)
    b = Builder(jaxpr.in_types)
    outs = b.inline_jaxpr(jaxpr, b.binders)
    error = [b(p.ExpandDims((0,)), x) for x in outs[n:]]
    every = (tuple([axis.name for axis in prim.mesh]),)
    return replace(
        prim,
        jaxpr=b.finish([*outs[:n], *error], jaxpr.n_consts, jaxpr.names),
        out_specs=(*prim.out_specs, *[every] * len(error)),
    )
