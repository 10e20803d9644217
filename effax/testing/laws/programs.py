"""Laws of programs as values: checking, printing and parsing, purity of passes, lowering."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from returns.io import IOFailure, IOResult
from returns.result import Success
from returns.unsafe import unsafe_perform_io

from effax.ir.analysis.check import check
from effax.ir.analysis.diff import diff
from effax.ir.analysis.faults import FaultKind
from effax.ir.edit.alpha import alpha_eq, renumbered
from effax.ir.errors import EffaxError, ParseError
from effax.ir.eval.numpy import evaluate
from effax.ir.eval.stepping.state import advance, contents, first_state
from effax.ir.primitive import Value
from effax.ir.registry import Registry
from effax.ir.state import clear_caches
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.text.json import from_json, to_json
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.ir.types import ArrayType, RefType, array_type
from effax.passes.pipeline import AnyPass
from effax.testing.generate.altered_text import altered_text
from effax.testing.generate.faults import MUTATIONS, NoPlace, mutated
from effax.testing.generate.features import COMPILED
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.special_values import special_values
from effax.testing.generate.values import (
    Outcome,
    check_all,
    check_outcomes,
    contents_of,
    random_inputs,
    run,
)
from effax.testing.laws.dce import used_results
from effax.testing.laws.jvp import differentiated
from effax.testing.laws.law import law
from effax.testing.laws.partial_eval import known_inputs
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.testing.laws.vmap import random_batch
from effax.transforms.framework.runner import unwrap

if TYPE_CHECKING:
    from effax.lowering.program import CompiledProgram


T = TypeVar("T")


@law(of_primitives=True)
def check_accepts(jaxpr: Jaxpr) -> None:
    """check(f) = f for a program that is well typed by construction."""
    assert_valid(jaxpr)


def assert_valid(jaxpr: Jaxpr) -> None:
    """Raise AssertionError with the faults that the checker finds, and the program."""
    result = check(jaxpr)
    if not isinstance(result, Success):
        faults = "\n".join(map(str, result.failure()))
        raise AssertionError(f"the checker finds faults:\n{faults}\nin\n{jaxpr}")


@law
def check_rejects(jaxpr: Jaxpr, seed: int = 0) -> None:
    """check(f with a fault at any depth) = the kind of the fault."""
    for i, (kind, mutation) in enumerate(MUTATIONS):
        try:
            made = mutated(jaxpr, mutation, np.random.default_rng([seed, i]))
        except NoPlace:
            continue
        result = check(made)
        found = () if isinstance(result, Success) else result.failure()
        assert kind in [fault.kind for fault in found], (
            f"{mutation.__name__} is not found: expected a fault of the kind {kind.value}, "
            f"found {[str(fault) for fault in found]}, in\n{made!r}"
        )


@law(of_primitives=True)
def evaluation_matches_types(jaxpr: Jaxpr, seed: int = 0) -> None:
    """evaluate(f)(x) has the types of f, changes no array, and is deterministic."""
    inputs = random_inputs(jaxpr.in_types, seed)
    runs: list[Outcome] = []
    for _ in range(2):
        values = [np.array(x) for x in inputs]
        for x, type_ in zip(values, jaxpr.in_types, strict=True):
            # A write to an array raises.
            x.flags.writeable = isinstance(type_, RefType)
        outs = [np.array(x) for x in evaluate(jaxpr, values)]
        runs.append(Outcome(outs, contents_of(jaxpr.in_types, values)))
    for i, (x, type_) in enumerate(zip(runs[0].outs, jaxpr.out_types, strict=True)):
        found = array_type(x.shape, x.dtype, type_.weak if isinstance(type_, ArrayType) else False)
        assert found == type_, f"result {i} is {found}, and typed {type_}"
    check_outcomes(*runs)


@law(of_primitives=True)
def stepping_is_evaluation(jaxpr: Jaxpr, seed: int = 0) -> None:
    """Evaluation by steps, into regions, has evaluate(f)(x), and earlier states do not change."""
    inputs = random_inputs(jaxpr.in_types, seed)
    state = start = first_state(jaxpr, inputs)
    while state.results is None:
        state = advance(state)
    buffers = [start.frame.value(v) for v in jaxpr.binders]
    refs = contents_of(jaxpr.in_types, buffers)
    ends = [contents(state, ref) for ref in refs]
    check_outcomes(run(jaxpr, inputs), Outcome([np.array(x) for x in state.results], ends))
    before = [contents(start, ref) for ref in refs]
    check_all("first content of reference", contents_of(jaxpr.in_types, inputs), before)


@law(of_primitives=True)
def parse_inverts_print(jaxpr: Jaxpr, primitives: Registry | None = None) -> None:
    """parse(str(f)) = f, effects included; str(parse(str(f))) = str(f)."""
    numbered = renumbered(jaxpr)
    again = parse(str(numbered), primitives)
    assert again == numbered, f"the parsed program differs:\n{again}"
    assert again.effects == numbered.effects, f"the parsed program has effects {again.effects}"
    assert str(again) == str(numbered), f"the parsed program prints differently:\n{again}"


@law(of_primitives=True)
def parse_inverts_print_of_closed(
    jaxpr: Jaxpr, seed: int = 0, primitives: Registry | None = None
) -> None:
    """parse(str(c)) = c for f closed over its inputs, which are special values."""
    rng = np.random.default_rng(seed)
    inputs = [special_values(rng, type_) for type_ in jaxpr.in_types]
    closed = ClosedJaxpr(renumbered(jaxpr).replace(n_consts=len(inputs)), tuple(inputs))
    again = parse(str(closed), primitives, references(closed), closed=True)
    assert again == closed, f"the parsed program differs:\n{again}\nfrom\n{closed}"
    assert str(again) == str(closed), f"the parsed program prints differently:\n{again}"


@law(of_primitives=True)
def parse_refuses_other_texts(
    jaxpr: Jaxpr, seed: int = 0, primitives: Registry | None = None
) -> None:
    """parse(t) = g with parse(str(g)) = g, or t is refused, for a t similar to str(f).

    Literals of g have their types.
    """
    text = str(renumbered(jaxpr))
    choose = RandomSource(Random(seed))
    for _ in range(8):
        try:
            made = parse(altered_text(choose, text), primitives)
        except ParseError:
            continue
        assert parse(str(made), primitives) == made, f"not read back:\n{made}"
        faults = check(made).swap().value_or(())
        wrong = [fault for fault in faults if fault.kind is FaultKind.LITERAL]
        assert not wrong, f"a literal does not have its type:\n{made}"


@law(of_primitives=True)
def equality_is_structural(jaxpr: Jaxpr, primitives: Registry | None = None) -> None:
    """A copy is equal and has the same hash; a renumbered program is equal up to names.

    Copies are made by pickling, by ``copy.deepcopy`` and by way of JSON.
    """
    exchanged = from_json(to_json(jaxpr), primitives)
    for copy in (pickle.loads(pickle.dumps(jaxpr)), deepcopy(jaxpr), exchanged):
        assert copy == jaxpr and hash(copy) == hash(jaxpr)
        assert copy.effects == jaxpr.effects
        assert alpha_eq(copy, jaxpr)
        assert not diff(jaxpr, copy), f"equal programs differ:\n{diff(jaxpr, copy)}"
    assert alpha_eq(renumbered(jaxpr), jaxpr)
    assert not diff(jaxpr, renumbered(jaxpr))


@law(of_primitives=True, costly=True)
def passes_are_pure(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """p(f) is valid, f is unchanged, and f = g => p(f) = p(g).

    The second run is of a copy, after all caches are cleared.
    """
    before = pickle.loads(pickle.dumps(jaxpr))
    first = _all_passes(passes, jaxpr, seed)
    assert before == jaxpr and str(before) == str(jaxpr), "a pass changed its input"
    for made in first:
        for part in _programs(made):
            assert_valid(part)
    clear_caches()
    second = _all_passes(passes, before, seed)
    for x, y in zip(first, second, strict=True):
        assert x == y, f"equal programs become different ones:\n{x}\n{y}"


def _all_passes(passes: Passes, jaxpr: Jaxpr, seed: int) -> list[object]:
    batch = random_batch(jaxpr, seed)
    known = known_inputs(jaxpr, seed)
    return [
        passes.jvp(jaxpr, differentiated(jaxpr.in_types, seed)),
        passes.vmap(jaxpr, batch.size, batch.axes),
        passes.partial_eval(jaxpr, known),
        passes.discharge(jaxpr),
        passes.dce(jaxpr, used_results(jaxpr, seed)),
        passes.inline(jaxpr),
    ]


def _programs(made: object) -> list[Jaxpr]:
    """Return the programs in the result of a pass: itself, or fields of a record."""
    parts = made if isinstance(made, tuple) else (made,)
    return [part for part in parts if isinstance(part, Jaxpr)]


@law(features=COMPILED, of_primitives=True, costly=True)
def lowering_agrees_with_evaluation(jaxpr: Jaxpr, seed: int = 0) -> None:
    """compile(f)(x) = evaluate(f)(x), final contents of references included."""
    inputs = random_inputs(jaxpr.in_types, seed)
    check_outcomes(run(jaxpr, inputs), compiled_outcome(jaxpr, inputs))


@law(features=COMPILED, costly=True)
def compiled_pass_agrees_with_evaluation(jaxpr: Jaxpr, seed: int, step: AnyPass) -> None:
    """compile(p(f))(x) = evaluate(p(f))(x), final contents of references included."""
    inputs = random_inputs(jaxpr.in_types, seed)
    made = unwrap(step(jaxpr))
    check_outcomes(run(made, inputs), compiled_outcome(made, inputs))


def compiled_outcome(jaxpr: Jaxpr, inputs: Sequence[Value]) -> Outcome:
    """Run the compiled program on copies of the inputs."""
    # Imported late: only this needs XLA.
    from effax.lowering import xla
    from effax.lowering.program import compile_program, run_program

    program = done(compile_program(jaxpr))
    is_ref = [isinstance(t, RefType) for t in jaxpr.in_types]
    buffers = [
        xla.new_ref_buffer(x) if ref else xla.put(x) for x, ref in zip(inputs, is_ref, strict=True)
    ]
    made = done(run_program(program, buffers))
    return outcome_of(program, [xla.to_numpy(x) for x in made], inputs)


def outcome_of(
    program: CompiledProgram, made: Sequence[np.ndarray], inputs: Sequence[Value]
) -> Outcome:
    """Return the outcome of a compiled program, from the values of its buffers."""
    from effax.lowering import xla

    types, n = program.discharged.jaxpr.out_types, program.discharged.n_outs
    results = [
        np.array(xla.buffer_contents(x, cast(ArrayType, t)))
        for x, t in zip(made, types, strict=True)
    ]
    new = dict(zip(program.discharged.changed, results[n:], strict=True))
    refs = [i for i, t in enumerate(program.jaxpr.in_types) if isinstance(t, RefType)]
    return Outcome(results[:n], [new[i] if i in new else inputs[i] for i in refs])


def done(result: IOResult[T, EffaxError]) -> T:
    """Return the value of an impure step. Raises its error."""
    if isinstance(result, IOFailure):
        raise unsafe_perform_io(result.failure())
    return unsafe_perform_io(result.unwrap())
