"""Validation of the output of passes by evaluation on deterministic inputs.

A program with free axes is closed first: it is batched along them, one element a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from effax import lowering
from effax.ir import Builder, Jaxpr, RefType, is_inexact
from effax.ir.analysis.queries import size
from effax.ir.axes import Axis
from effax.ir.errors import CheckError
from effax.ir.eval.spmd import Devices, evaluate_spmd
from effax.ir.primitive import Value
from effax.lowering.program import stablehlo_of
from effax.passes import Guarantee, Pass, guarantees_of, unwrap
from effax.testing.generate.values import (
    Differs,
    Outcome,
    check_all,
    check_outcomes,
    contents_of,
    element,
    random_inputs,
    run,
)
from effax.testing.laws.derivative import by_differences, directional
from effax.testing.laws.equivalence import Agreement, check_same_meaning
from effax.testing.laws.jvp import check_tangents, push, random_tangents
from effax.testing.laws.partial_eval import check_recomposition
from effax.testing.laws.transformations import Passes
from effax.testing.laws.transpose import (
    check_products,
    inner_product,
    pull,
    random_cotangents,
    run_all,
)
from effax.transforms import (
    CotangentSpec,
    Dce,
    Discharged,
    DontWant,
    GradRef,
    GradValue,
    Jvp,
    Linearized,
    NonLinear,
    PartialEval,
    Reverse,
    ThreadedRef,
    Transposed,
    Vmapped,
    vmap,
)
from effax.transforms.checkify.engine import CheckedProgram

Options = Mapping[str, Any]

SEEDS: Final = (0, 1)

COTANGENT_SPECS: Final[dict[str, CotangentSpec]] = {
    "NonLinear": NonLinear(),
    "GradRef": GradRef(),
    "GradValue": GradValue(),
    "DontWant": DontWant(),
    "ThreadedRef": ThreadedRef(),
}


def closed(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program batched along its free axes."""
    for axis in jaxpr.free_axes:
        in_axes = (0,) * len(jaxpr.binders)
        jaxpr = unwrap(vmap(jaxpr, axis.size, in_axes, axis_name=axis.name)).jaxpr
    return jaxpr


def check_same(before: Jaxpr, after: Jaxpr, exact: bool) -> None:
    """Raise AssertionError unless the programs have one type, and agree on values."""
    assert after.in_types == before.in_types
    assert after.out_types == before.out_types
    for seed in SEEDS:
        check_same_meaning(closed(before), closed(after), seed, Agreement(exact))


def check_same_bits(jaxpr: Jaxpr, options: Options, made: Jaxpr) -> None:
    check_same(jaxpr, made, exact=True)


def check_same_values(jaxpr: Jaxpr, options: Options, made: Jaxpr) -> None:
    check_same(jaxpr, made, exact=False)


def check_bounded(jaxpr: Jaxpr, options: Options, made: Jaxpr) -> None:
    """Compare on inputs for which the loop ends within its bound."""
    assert (made.in_types, made.out_types) == (jaxpr.in_types, jaxpr.out_types)
    for seed in SEEDS:
        inputs = random_inputs(jaxpr.in_types, seed)
        check_outcomes(run(jaxpr, inputs), run(made, inputs))


def check_guarantees(step: Pass, before: Jaxpr, after: Jaxpr) -> None:
    """Raise AssertionError unless the pass keeps the guarantees that it declares."""
    declared = guarantees_of(step)
    check_same(before, after, Guarantee.SAME_BITS in declared)
    if Guarantee.IDEMPOTENT in declared:
        assert unwrap(step(after)) == after
    if Guarantee.NEVER_LARGER in declared:
        assert size(after) <= size(before)


def check_dce(jaxpr: Jaxpr, options: Options, made: Dce) -> None:
    n_ins, n_outs = len(jaxpr.binders), len(jaxpr.outs)
    used = options.get("used_outs", (True,) * n_outs)
    keep = options.get("keep_inputs", True)
    keep = (keep,) * n_ins if isinstance(keep, bool) else keep
    kept = [has or wanted for has, wanted in zip(made.used_ins, keep, strict=True)]
    before, after = closed(jaxpr), closed(made.jaxpr)
    for seed in SEEDS:
        inputs = random_inputs(before.in_types, seed)
        expected = run(before, inputs)
        found = run(after, [x for x, has in zip(inputs, kept, strict=True) if has])
        outs = [x for x, has in zip(expected.outs, used, strict=True) if has]
        refs = [isinstance(t, RefType) for t in before.in_types]
        left = [has for has, is_ref in zip(kept, refs, strict=True) if is_ref]
        contents = [x for x, has in zip(expected.contents, left, strict=True) if has]
        check_outcomes(Outcome(outs, contents), found)


def check_jvp(jaxpr: Jaxpr, options: Options, made: Jvp) -> None:
    mask = tuple(options["tangents"])
    whole, pushed = closed(jaxpr), made._replace(jaxpr=closed(made.jaxpr))
    for seed in SEEDS:
        inputs = random_inputs(whole.in_types, seed)
        tangents = random_tangents(whole.in_types, mask, seed)
        found = push(Passes(jvp_with=lambda *_: pushed), whole, inputs, tangents)
        check_outcomes(run(whole, inputs), found.values)
        _check_derivative(whole, inputs, tangents, [*found.outs, *found.contents])


def _check_derivative(
    jaxpr: Jaxpr,
    inputs: Sequence[Value],
    tangents: Sequence[Value | None],
    found: Sequence[Value | None],
) -> None:
    expected = directional(jaxpr, inputs, tangents)
    try:
        check_tangents([*expected.outs, *expected.contents], found)
    except (AssertionError, Differs):
        # Complex steps do not see corners and narrow dtypes.
        expected = by_differences(jaxpr, inputs, tangents)
        check_tangents([*expected.outs, *expected.contents], found)


def check_linearized(jaxpr: Jaxpr, options: Options, made: Linearized) -> None:
    """Compare the primal program followed by the linear one with the derivative."""
    n = len(made.residuals)
    b = Builder([*jaxpr.in_types, *made.linear.in_types[n:]])
    ins, tangents = b.binders[: len(jaxpr.binders)], b.binders[len(jaxpr.binders) :]
    outs = b.inline_jaxpr(made.primal, ins)
    residuals = [r.pick(ins, outs) for r in made.residuals]
    linear = b.inline_jaxpr(made.linear, [*residuals, *tangents])
    whole = b.finish([*outs[: len(jaxpr.outs)], *linear])
    check_jvp(jaxpr, options, Jvp(whole, made.out_tangents, made.in_tangents))


def check_vmapped(jaxpr: Jaxpr, options: Options, made: Vmapped) -> None:
    """Compare with the program on each batch element in turn, or in step along a named axis."""
    size, in_axes = options["size"], options["in_axes"]
    out_axes = options.get("out_axes", 0)
    if out_axes is None or isinstance(out_axes, int):
        out_axes = (out_axes,) * len(jaxpr.outs)
    devices = Devices((Axis(options.get("axis_name", "batch"), size),))
    for seed in SEEDS:
        inputs = random_inputs(made.jaxpr.in_types, seed)
        copies = [np.array(x) for x in inputs]
        elements = [
            [x if at is None else element(x, i, at) for x, at in zip(copies, in_axes, strict=True)]
            for i in range(size)
        ]
        given = evaluate_spmd(jaxpr, devices, elements)
        outs = [
            np.zeros(t.shape, t.dtype)
            if not given
            else given[0][j]
            if at is None
            else np.stack([own[j] for own in given], at)
            for j, (t, at) in enumerate(zip(made.jaxpr.out_types, out_axes, strict=True))
        ]
        expected = Outcome(outs, contents_of(made.jaxpr.in_types, copies))
        check_outcomes(expected, run(made.jaxpr, inputs))


def check_partial_eval(jaxpr: Jaxpr, options: Options, made: PartialEval) -> None:
    known, forced = tuple(options["known"]), options.get("instantiate", False)
    forced = (forced,) * len(jaxpr.outs) if isinstance(forced, bool) else tuple(forced)
    parts = made._replace(known=closed(made.known), unknown=closed(made.unknown))
    if not jaxpr.free_axes:
        parts = made
    for seed in SEEDS:
        check_recomposition(closed(jaxpr), parts, known, forced, seed)


def check_transposed(jaxpr: Jaxpr, options: Options, made: Transposed) -> None:
    """<ct, f(x)> = <transpose(f)(ct), x>, where x is zero if its cotangent is not wanted."""
    _check_adjoint(closed(jaxpr), options, made._replace(jaxpr=closed(made.jaxpr)))


def _check_adjoint(jaxpr: Jaxpr, options: Options, made: Transposed) -> None:
    names = options["ct_specs"]
    specs = [COTANGENT_SPECS[name] for name in names]
    wanted = options.get("cts") or tuple(map(is_inexact, jaxpr.out_types))
    for seed in SEEDS:
        inputs = random_inputs(jaxpr.in_types, seed)
        for i, name in enumerate(names):
            if name == "DontWant":
                inputs[i] = np.zeros_like(inputs[i])
        after = run_all(jaxpr, inputs)
        outs = [y for y, has in zip(after.outs, wanted, strict=True) if has]
        types = [t for t, has in zip(jaxpr.out_types, wanted, strict=True) if has]
        cts = random_cotangents(types, seed)
        start = [
            x if name in ("GradRef", "ThreadedRef") else None
            for x, name in zip(random_inputs(jaxpr.in_types, seed + 9), names, strict=True)
        ]
        passes = Passes(transpose_with=lambda *_: made)
        found = pull(passes, jaxpr, specs, inputs, cts, start)
        final = [x if name == "ThreadedRef" else None for x, name in zip(start, names, strict=True)]
        grads = [
            x - s if name == "GradRef" and x is not None and s is not None else x
            for x, s, name in zip(found, start, names, strict=True)
        ]
        given = [None if n == "NonLinear" else x for x, n in zip(inputs, names, strict=True)]
        left = inner_product([*cts, *final], [*outs, *after.contents])
        check_products(left, inner_product(grads, given))


def check_reverse(jaxpr: Jaxpr, options: Options, made: Reverse) -> None:
    """<ct, df(x)(t)> = <gradient, t>, and results and contents are those of the program."""
    mask = tuple(options["tangents"])
    whole, pulled = closed(jaxpr), closed(made.jaxpr)
    wanted = options.get("cts") or tuple(map(is_inexact, jaxpr.out_types))
    n = len(jaxpr.outs)
    for seed in SEEDS:
        inputs = random_inputs(whole.in_types, seed)
        tangents = random_tangents(whole.in_types, mask, seed)
        cts = random_cotangents(
            [t for t, has in zip(whole.out_types, wanted, strict=True) if has], seed
        )
        expected = run(whole, inputs)
        found = run(pulled, [*inputs, *cts])
        check_outcomes(expected, Outcome(found.outs[:n], found.contents))
        slopes = directional(whole, inputs, tangents)
        moved = [x for x, has in zip(slopes.outs, wanted, strict=True) if has]
        along = [t for t in tangents if t is not None]
        nonzero = [t for t, has in zip(along, made.nonzero, strict=True) if has]
        check_products(inner_product(cts, moved), inner_product(found.outs[n:], nonzero))


def check_discharged(jaxpr: Jaxpr, options: Options, made: Discharged) -> None:
    whole, done = closed(jaxpr), closed(made.jaxpr)
    assert not any(isinstance(t, RefType) for t in done.in_types)
    for seed in SEEDS:
        inputs = random_inputs(whole.in_types, seed)
        found = run(done, inputs).outs
        new = dict(zip(made.changed, found[made.n_outs :], strict=True))
        contents = [new.get(i, inputs[i]) for i in made.refs]
        check_outcomes(run(whole, inputs), Outcome(found[: made.n_outs], contents))


def check_checkified(jaxpr: Jaxpr, options: Options, made: CheckedProgram) -> None:
    """Compare where the program does not raise; where it does, there is an error."""
    n = len(jaxpr.outs)
    for seed in SEEDS:
        inputs = random_inputs(jaxpr.in_types, seed)
        found = run(made.jaxpr, inputs)
        try:
            expected = run(jaxpr, inputs)
        except CheckError:
            assert int(found.outs[n])
        else:
            check_outcomes(expected, Outcome(found.outs[:n], found.contents))


def check_pvary(jaxpr: Jaxpr, options: Options, made: Jaxpr) -> None:
    """Run both on devices that share the inputs that do not vary."""
    devices = Devices(jaxpr.free_axes)
    shared = random_inputs(jaxpr.in_types, 0)
    args = []
    for number in devices.numbers:
        own = random_inputs(jaxpr.in_types, 1 + number)
        pairs = zip(shared, own, options["varies"], strict=True)
        args.append([x if not varies else y for x, y, varies in pairs])
    for before, after in zip(
        evaluate_spmd(jaxpr, devices, args), evaluate_spmd(made, devices, args), strict=True
    ):
        check_all("result", before, after)


def check_module(jaxpr: Jaxpr, options: Options, made: str) -> None:
    """Compile the module, and compare with the evaluation of the program."""
    done, _ = stablehlo_of(jaxpr)
    executable = lowering.compile(made)
    for seed in SEEDS:
        inputs = random_inputs(jaxpr.in_types, seed)
        expected, found = run(jaxpr, inputs), executable(*inputs)
        check_all("result", expected.outs, found[: done.n_outs])
        new = dict(zip(done.changed, found[done.n_outs :], strict=True))
        contents = [new.get(i, inputs[i]) for i in done.refs]
        check_all("final content of reference", expected.contents, contents)
