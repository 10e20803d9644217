"""Each law can fail: for a planted bug of its suite, or for a fault that is made here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from effax.ir import prims as p
from effax.ir.prims import DebugCallback, Psum
from effax.ir.syntax import Jaxpr, Var
from effax.ir.types import array_type
from effax.passes import as_pass, dce
from effax.testing import LawBroken, Passes, check_law, laws
from effax.testing.generate.values import Outcome
from effax.transforms import DEFAULT_RULES, DontWant, GradValue, JvpOut
from tests.planted.planting import planted
from tests.planted.test_planted import SUITES

Patch = pytest.MonkeyPatch
host: Final[Any] = import_module("effax.testing.laws.host")
programs: Final[Any] = import_module("effax.testing.laws.programs")
RIGHT: Final = Passes()
COUNT: Final = count()


ONE: Final = array_type((), "float32")


def _shifted(outcome: Outcome) -> Outcome:
    return Outcome([np.asarray(x + 1).astype(x.dtype) for x in outcome.outs], outcome.contents)


def rejects(patch: Patch) -> None:
    right = programs.check
    patch.setattr(programs, "check", lambda jaxpr: right(Jaxpr([], [], [])))
    check_law(laws.check_rejects, examples=20)


def types(patch: Patch) -> None:
    right = programs.evaluate
    patch.setattr(
        programs, "evaluate", lambda f, xs: [np.asarray(x, np.float16) for x in right(f, xs)]
    )
    check_law(laws.evaluation_matches_types, examples=20)


def identity(patch: Patch) -> None:
    def copied(jaxpr: Jaxpr, rules: Any) -> Any:
        made = RIGHT.discharge_with(jaxpr, rules)
        return replace_jaxpr(made, Jaxpr(made.jaxpr.binders, made.jaxpr.eqns, made.jaxpr.outs))

    check_law(laws.discharge_of_pure_is_identity, replace(RIGHT, discharge_with=copied))


def replace_jaxpr(made: Any, jaxpr: Jaxpr) -> Any:
    return made._replace(jaxpr=jaxpr) if hasattr(made, "_replace") else replace(made, jaxpr=jaxpr)


def wrong_sine(b: Any, prim: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> JvpOut:
    return JvpOut([b(prim, *primals)], [tangents[0]])


WRONG_SINE: Final = Passes(planted(p.Sin, jvp=wrong_sine))


def special_points(patch: Patch) -> None:
    check_law(laws.derivatives_are_right_at_special_points, WRONG_SINE, focus="math.smooth")


def unwanted(patch: Patch) -> None:
    def wanted(jaxpr: Jaxpr, specs: Sequence[Any], rules: Any) -> Any:
        more = [GradValue() if isinstance(s, DontWant) else s for s in specs]
        return RIGHT.transpose_with(jaxpr, more, rules)

    check_law(laws.transpose_omits_unwanted_cotangents, replace(RIGHT, transpose_with=wanted))


def impure(patch: Patch) -> None:
    def remembers(jaxpr: Jaxpr) -> Jaxpr:
        return RIGHT.inline(jaxpr) if next(COUNT) % 2 else jaxpr

    check_law(laws.passes_are_pure, replace(RIGHT, inline=remembers), focus="jit")


@as_pass
def silent(jaxpr: Jaxpr) -> Jaxpr:
    return jaxpr.replace(eqns=[e for e in jaxpr.eqns if not isinstance(e.prim, DebugCallback)])


def silenced(patch: Patch) -> None:
    patch.setattr(host, "ALL", (dce, silent))
    check_law(laws.optimizations_preserve_side_effects)


def compiled_calls(patch: Patch) -> None:
    patch.setattr(host, "compiled_outcome", lambda f, xs: host.run(silent(f).unwrap(), xs))
    check_law(laws.lowering_preserves_side_effects, examples=20)


def compiled(patch: Patch) -> None:
    patch.setattr(programs, "compiled_outcome", lambda f, xs: _shifted(programs.run(f, xs)))
    check_law(laws.compiled_pass_agrees_with_evaluation, step=dce, examples=10)


def collectives(patch: Patch) -> None:
    def unsummed(b: Any, prim: Any, xs: Sequence[Any], ts: Sequence[Any]) -> JvpOut:
        return JvpOut(list(b.emit(prim, xs)), list(ts))

    check_law(laws.collectives_commute_with_jvp, Passes(planted(Psum, jvp=unsummed)))


def shards(patch: Patch) -> None:
    module = import_module("effax.testing.laws.axes")
    patch.setattr(module, "insert_pvary", lambda jaxpr, *_: jaxpr)
    check_law(laws.shard_map_commutes_with_grad, examples=20)


def policies(patch: Patch) -> None:
    module = import_module("effax.testing.laws.partial_eval")
    right = module.run_recomposed
    patch.setattr(module, "run_recomposed", lambda *args: _shifted(right(*args)))
    check_law(laws.partial_eval_under_a_policy_recomposes, examples=20)


def batched_sums(patch: Patch) -> None:
    right: Any = DEFAULT_RULES.rules[p.ReduceSum].batch

    def reversed_sums(b: Any, prim: Any, *args: Any) -> Any:
        out = right(b, prim, *args)
        return out._replace(outs=[b(p.Rev((0,)), x) for x in out.outs])

    wrong = Passes(planted(p.ReduceSum, batch=reversed_sums))
    check_law(laws.vmap_commutes_with_transpose, wrong, focus="reduce.sum_")


def linearized(patch: Patch) -> None:
    wrong = replace(RIGHT, jvp_with=lambda f, mask, _: RIGHT.jvp_with(f, mask, WRONG_SINE.rules))
    check_law(laws.linearize_is_jvp, wrong, focus="math.smooth")


def taylor(patch: Patch) -> None:
    wrong = replace(RIGHT, jvp_with=lambda f, mask, _: RIGHT.jvp_with(f, mask, WRONG_SINE.rules))
    check_law(laws.jet_is_iterated_jvp, wrong, focus="math.smooth")


def pulled(patch: Patch) -> None:
    right = RIGHT.transpose_with
    lost = Passes(planted(p.Mul, transpose=lambda b, prim, ins, cts: [None, None]))
    wrong = replace(RIGHT, transpose_with=lambda f, specs, _: right(f, specs, lost.rules))
    check_law(laws.vjp_is_adjoint_to_jvp, wrong, focus="arith.mul")


def reverse(patch: Patch) -> None:
    module = import_module("effax.testing.laws.reverse")
    right = module.run_fused
    patch.setattr(module, "run_fused", lambda *args: [x + 1 for x in right(*args)])
    check_law(laws.reverse_is_linearize_then_transpose, examples=20)


def stepped(patch: Patch) -> None:
    right = programs.run
    patch.setattr(programs, "run", lambda f, xs: _shifted(right(f, xs)))
    check_law(laws.stepping_is_evaluation, examples=10)


def accepted(patch: Patch) -> None:
    right = programs.check
    patch.setattr(programs, "check", lambda f: right(f.replace(outs=[Var(f.size, ONE)])))
    check_law(laws.check_accepts, examples=5)


def printed(patch: Patch) -> None:
    right = programs.parse
    patch.setattr(programs, "parse", lambda *args: right(*args).replace(outs=[]))
    check_law(laws.parse_inverts_print, examples=5)


def copied(patch: Patch) -> None:
    patch.setattr(programs, "deepcopy", lambda f: f.replace(outs=[]))
    check_law(laws.equality_is_structural, examples=5)


def others(patch: Patch) -> None:
    jaxpr = laws_program()
    cosine = jaxpr.replace(eqns=[jaxpr.eqns[0]._replace(prim=p.Cos())])
    laws.observationally_equal(jaxpr, cosine)


def lowered(patch: Patch) -> None:
    patch.setattr(programs, "compiled_outcome", lambda f, xs: _shifted(programs.run(f, xs)))
    check_law(laws.lowering_agrees_with_evaluation, examples=10)


def compiled_meshes(patch: Patch) -> None:
    # On one device, a program for a mesh is compiled as any other.
    module = import_module("effax.testing.laws.devices")
    patch.setattr(module, "compiled_outcome", lambda f, xs: _shifted(programs.run(f, xs)))
    check_law(laws.shard_map_runs_on_devices, examples=20)


def placed(patch: Patch) -> None:
    module = import_module("effax.testing.laws.devices")
    shifted = lambda f, xs, *_: _shifted(programs.run(f, xs))  # noqa: E731
    patch.setattr(module, "compiled_outcome", shifted)
    patch.setattr(module, "_placed_outcome", shifted)
    check_law(laws.placed_programs_agree, examples=10)


def simplifying(patch: Patch) -> None:
    def grown(jaxpr: Jaxpr) -> Jaxpr:
        return jaxpr.replace(eqns=[*jaxpr.eqns, *jaxpr.eqns[-1:]])

    jaxpr = laws_program()
    laws.simplifies(grown, jaxpr)


def laws_program() -> Jaxpr:
    from effax.ir import parse

    return parse("{ lambda ; a:f64[]. let b:f64[] = sin a in (b,) }")


FAULTS: Final[dict[str, Callable[[Patch], None]]] = {
    "check_rejects": rejects,
    "evaluation_matches_types": types,
    "discharge_of_pure_is_identity": identity,
    "derivatives_are_right_at_special_points": special_points,
    "transpose_omits_unwanted_cotangents": unwanted,
    "passes_are_pure": impure,
    "optimizations_preserve_side_effects": silenced,
    "lowering_preserves_side_effects": compiled_calls,
    "compiled_pass_agrees_with_evaluation": compiled,
    "collectives_commute_with_jvp": collectives,
    "simplifies": simplifying,
    "check_accepts": accepted,
    "parse_inverts_print": printed,
    "equality_is_structural": copied,
    "observationally_equal": others,
    "shard_map_commutes_with_grad": shards,
    "partial_eval_under_a_policy_recomposes": policies,
    "vmap_commutes_with_transpose": batched_sums,
    "linearize_is_jvp": linearized,
    "jet_is_iterated_jvp": taylor,
    "vjp_is_adjoint_to_jvp": pulled,
    "reverse_is_linearize_then_transpose": reverse,
    "lowering_agrees_with_evaluation": lowered,
    "stepping_is_evaluation": stepped,
    "shard_map_runs_on_devices": compiled_meshes,
    "placed_programs_agree": placed,
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.slow
def test_a_law_can_fail(name: str, monkeypatch: Patch) -> None:
    with pytest.raises(LawBroken) as broken:
        FAULTS[name](monkeypatch)
    assert broken.value.law.name == name


def test_every_law_can_fail() -> None:
    texts = "".join([f.read_text("utf-8") for f in Path(__file__).parent.glob("*.py")])
    by_check_pass = {
        "pass_keeps_its_guarantees",
        "pass_is_a_function",
        "pass_preserves_side_effects",
    }
    suites = {law.__name__ for suite in SUITES.values() for law, _ in suite}
    found = {
        law.name
        for law in laws.LAWS
        if law.name in suites | {*FAULTS} | by_check_pass or f"laws.{law.name}" in texts
    }
    assert sorted({law.name for law in laws.LAWS} - found) == []
