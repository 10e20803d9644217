"""Laws of ``vmap`` of branches and loops under batched predicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from effax.ir.build import Builder, lit
from effax.ir.eval.numpy import evaluate
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive, Value
from effax.ir.prims import (
    Add,
    BroadcastInDim,
    Cond,
    ConvertElementType,
    Div,
    Get,
    Gt,
    Jit,
    Log,
    Mul,
    NewRef,
    Rsqrt,
    Scan,
    Sqrt,
    Sub,
    While,
)
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.types import RefType, Type, array_type, is_inexact
from effax.testing.generate.features import NUMERIC, SMOOTH
from effax.testing.generate.values import check_equal, element, with_zeros
from effax.testing.laws.jvp import check_tangents
from effax.testing.laws.law import assume, law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.testing.laws.transpose import random_cotangents
from effax.testing.laws.vmap import Batch, random_batch
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.runner import unwrap
from effax.transforms.reverse.engine import reverse
from effax.transforms.vmap.engine import vmap

NUMBER: Final = array_type((), "float64")


def _recip(b: Builder, s: Atom) -> Atom:
    return b(Div(), lit(1.0, NUMBER), s)


def _log_of_sum(b: Builder, s: Atom) -> Atom:
    """Return ``log(s + (s - 1) + ...)``, of the positive numbers."""
    test, body = Builder([NUMBER, NUMBER]), Builder([NUMBER, NUMBER])
    (t, _), (x, total) = test.binders, body.binders
    cond = test.finish([test(Gt(), t, lit(0.0, NUMBER))])
    loop = While(cond, body.finish([body(Sub(), x, lit(1.0, NUMBER)), body(Add(), total, x)]), 0)
    return b(Log(), b.emit(loop, [s, lit(0.0, NUMBER)])[1])


SINGULAR: Final[tuple[Callable[[Builder, Atom], Atom], ...]] = (
    lambda b, s: b(Sqrt(), s),
    lambda b, s: b(Log(), s),
    lambda b, s: b(Rsqrt(), s),
    _recip,
    _log_of_sum,
)
"""Functions that are smooth for positive numbers, and have no derivative at 0 or below."""


@law(features=replace(SMOOTH, control=("jit", "cond", "scan", "while"), steps=8))
def reverse_commutes_with_vmap_of_branches(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """reverse(vmap(f)) = vmap(reverse(f)), where f runs a program under a predicate.

    A branch, or the body of a loop, is singular for the batch elements that do not run it.
    """
    assume(any(map(is_inexact, jaxpr.out_types)))
    rng = np.random.default_rng([seed, 11])
    jaxpr = _of_contents(jaxpr)
    guarded = _guarded(jaxpr, SINGULAR[seed % len(SINGULAR)], bool(seed % 3), bool(rng.integers(2)))
    batch = random_batch(jaxpr, seed)
    guards = rng.choice([0.0, 1.0, 2.0, -1.0], batch.size)
    batch = Batch(batch.size, (0, *batch.axes), [guards, *batch.inputs])
    mask = tuple(map(is_inexact, guarded.in_types))
    axes = (*batch.axes, *[0 for t in guarded.out_types if is_inexact(t)])
    vmapped = passes.vmap(guarded, batch.size, batch.axes).jaxpr
    cts = random_cotangents([t for t in vmapped.out_types if is_inexact(t)], seed)
    found = _gradients(vmapped, mask, passes, batch.inputs, cts)
    each = [
        _gradients(guarded, mask, passes, batch.element(i), [element(ct, i) for ct in cts])
        for i in range(batch.size)
    ]
    shapes = [x.shape for x, has in zip(batch.inputs, mask, strict=True) if has]
    used = [axis for axis, has in zip(axes, mask, strict=False) if has]
    expected = [
        _joined([grads[k] for grads in each], axis, shape)
        for k, (axis, shape) in enumerate(zip(used, shapes, strict=True))
    ]
    check_tangents(expected, found)


def _joined(parts: Sequence[Value], axis: int | None, shape: tuple[int, ...]) -> Value:
    """Return the cotangent of an input: stacked, or summed if it is not batched."""
    if not parts:
        return np.zeros(shape)
    return np.asarray(sum(parts)) if axis is None else np.stack(parts, axis)


def _gradients(
    jaxpr: Jaxpr, mask: Mask, passes: Passes, inputs: Sequence[Value], cts: Sequence[Value]
) -> list[Value]:
    made = unwrap(reverse(jaxpr, mask, None, passes.rules))
    results = evaluate(made.jaxpr, [*[np.array(x) for x in inputs], *cts])
    types = [t for t, has in zip(jaxpr.in_types, mask, strict=True) if has]
    return with_zeros(types, made.nonzero, results[len(jaxpr.outs) :])


def _of_contents(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program on the contents of its references."""
    types = [t.inner if isinstance(t, RefType) else t for t in jaxpr.in_types]
    b = Builder(types)
    args = [
        b(NewRef(t.kind), x) if isinstance(t, RefType) else x
        for x, t in zip(b.binders, jaxpr.in_types, strict=True)
    ]
    return b.finish(b.inline_jaxpr(jaxpr, args))


def _guarded(
    jaxpr: Jaxpr, singular: Callable[[Builder, Atom], Atom], once: bool, by_refs: bool
) -> Jaxpr:
    """Return ``(s, *inputs)`` to the results of a program, run while ``s`` is positive.

    Args:
        jaxpr: the program.
        singular: a factor of its results, of ``s``.
        once: whether it runs in a branch, else in a loop that decreases ``s`` by 1.
        by_refs: whether its inputs are read from references that the branch or loop closes over.
    """
    b = Builder([NUMBER, *jaxpr.in_types])
    s, *args = b.binders
    refs = [b(NewRef(), x) if by_refs and is_inexact(x.type) else x for x in args]
    types = [x.type for x in refs]
    kept = [i for i, t in enumerate(jaxpr.out_types) if is_inexact(t)]
    zeros = [_filled(b, jaxpr.out_types[i], 0.0) for i in kept]
    work = _work(jaxpr, kept, singular, types)
    if once:
        rest = Builder([NUMBER, *types, *[z.type for z in zeros]])
        idle = rest.finish(rest.binders[1 + len(types) :])
        prim: Primitive = Cond((idle, work))
        outs = b.emit(prim, [b(Gt(), s, lit(0.0, NUMBER)), s, *refs, *zeros])
    else:
        outs = b.emit(_loop(work, types, [z.type for z in zeros]), [*refs, s, *zeros])[1:]
    return b.finish(outs)


def _filled(b: Builder, type_: Type, value: float) -> Atom:
    number = lit(value, array_type((), type_.dtype))
    return b(BroadcastInDim(type_.shape, ()), number) if type_.shape else number


def _work(
    jaxpr: Jaxpr,
    kept: Sequence[int],
    singular: Callable[[Builder, Atom], Atom],
    types: Sequence[Type],
) -> Jaxpr:
    """``(s, *inputs, *sums) -> sums + f(inputs)·singular(s)``, of the results that are kept."""
    out_types = [jaxpr.out_types[i] for i in kept]
    b = Builder([NUMBER, *types, *[array_type(t.shape, t.dtype) for t in out_types]])
    s, args, sums = b.binders[0], b.binders[1 : 1 + len(types)], b.binders[1 + len(types) :]
    values = [b(Get(whole(x.type.shape)), x) if isinstance(x.type, RefType) else x for x in args]
    outs = b.inline_jaxpr(jaxpr, values)
    factor = singular(b, s)
    made = []
    for i, total in zip(kept, sums, strict=True):
        scale = b(ConvertElementType(total.type.dtype), factor)
        if total.type.shape:
            scale = b(BroadcastInDim(total.type.shape, ()), scale)
        made.append(b(Add(), total, b(Mul(), outs[i], scale)))
    return b.finish(made)


def _loop(work: Jaxpr, types: Sequence[Type], sums: Sequence[Type]) -> While:
    n = len(types)
    test = Builder([*types, NUMBER, *sums])
    cond = test.finish([test(Gt(), test.binders[n], lit(0.0, NUMBER))])
    b = Builder([*types, NUMBER, *sums])
    refs, s, totals = b.binders[:n], b.binders[n], b.binders[n + 1 :]
    new = b.inline_jaxpr(work, [s, *refs, *totals])
    return While(cond, b.finish([b(Sub(), s, lit(1.0, NUMBER)), *new]), n)


@law(features=NUMERIC)
def vmap_leaves_passed_values_unbatched(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """vmap(f) has one result, w, without a batch axis, if f only passes w through its regions."""
    batch = random_batch(jaxpr, seed, front=True)
    threaded = _threaded(jaxpr, len(jaxpr.binders), len(jaxpr.outs))
    targets = (*[0] * len(jaxpr.outs), None)
    made = unwrap(vmap(threaded, batch.size, (*batch.axes, None), targets, passes.rules))
    value = np.array([1.0, 2.0])
    *_, found = evaluate(made.jaxpr, [*batch.copied().inputs, value])
    check_equal("the value passed through", value, found)


PASSED: Final = array_type((2,), "float64")
"""The type of the value that is passed through."""


def _threaded(jaxpr: Jaxpr, at: int, out: int | None) -> Jaxpr:
    """Return the program with one more input, at position ``at``, passed through all regions.

    It is result ``out``, unless that is None.
    """
    b = Builder([*jaxpr.in_types[:at], PASSED, *jaxpr.in_types[at:]])
    passed: Atom = b.binders[at]
    binders = [v for v in b.binders if v is not passed]
    env: dict[int, Atom] = dict(zip([v.id for v in jaxpr.binders], binders, strict=True))

    def read(atoms: Sequence[Atom]) -> list[Atom]:
        return [a if isinstance(a, Lit) else env[a.id] for a in atoms]

    for eqn in jaxpr.eqns:
        args, wider = read(eqn.ins), _passing(eqn.prim)
        if wider is None:
            outs = list(b.emit(eqn.prim, args))
        else:
            prim, operand, result = wider
            outs = list(b.emit(prim, [*args[:operand], passed, *args[operand:]]))
            passed = outs.pop(result)
        env.update(zip([v.id for v in eqn.outs], outs, strict=True))
    results = read(jaxpr.outs)
    return b.finish(results if out is None else [*results[:out], passed, *results[out:]])


def _passing(prim: Primitive) -> tuple[Primitive, int, int] | None:
    """Return a primitive that passes one more value, its operand and its result there."""
    match prim:
        case Jit(jaxpr=jaxpr):
            n, m = len(jaxpr.binders), len(jaxpr.outs)
            return replace(prim, jaxpr=_threaded(jaxpr, n, m)), n, m
        case Cond(branches=branches):
            n, m = len(branches[0].binders), len(branches[0].outs)
            return Cond(tuple([_threaded(branch, n, m) for branch in branches])), n + 1, m
        case While(cond=cond, body=body):
            n, m = len(body.binders), len(body.outs)
            wider = replace(prim, cond=_threaded(cond, n, None), body=_threaded(body, n, m))
            return wider, n, m
        case Scan(jaxpr=jaxpr, n_consts=consts, n_carry=m):
            n = consts + m
            return replace(prim, jaxpr=_threaded(jaxpr, n, m), n_carry=m + 1), n, m
        case _:
            return None
