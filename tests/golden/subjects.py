"""The passes that have golden files: how to run each, and how to validate its output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from effax import passes
from effax.ir import Eqn, Jaxpr, parse
from effax.ir.errors import (
    CheckError,
    DivisionByZeroError,
    FailedCheckError,
    NaNError,
    OOBError,
)
from effax.ir.primitive import ByReference, Value
from effax.ir.prims import Failure, Failures, Jit, While
from effax.ir.types import ArrayType, array_type
from effax.lowering.program import stablehlo_of
from effax.passes import Pass, unroll_to, unwrap
from effax.testing.laws.partial_eval import keep_cheap, keep_contractions, keep_nothing
from effax.transforms import (
    Checkpoints,
    Dce,
    Discharged,
    Jvp,
    Linearized,
    PartialEval,
    Reverse,
    Transposed,
    Vmapped,
    bounded,
    dce,
    discharge,
    equation_count,
    inline,
    jvp,
    linearize,
    outline,
    parse_rule,
    partial_eval,
    reverse,
    rewriting,
    transpose,
    vmap,
)
from effax.transforms.checkify.engine import CheckedProgram, checkify
from effax.transforms.rules.custom.dense import DenseForward
from effax.transforms.spmd.pvary_insertion import insert_pvary
from tests.golden import validation as v


@dataclass(frozen=True)
class Subject:
    """A pass under test.

    Attributes:
        transform: the pass on a program and the options of the case; raises EffaxError.
        validate: raises AssertionError unless the result is right, on deterministic inputs.
    """

    transform: Callable[..., Any]
    validate: Callable[[Jaxpr, Mapping[str, Any], Any], None]


def _forward(label: str, n_outs: int, text: str) -> DenseForward:
    return DenseForward(parse(text), 0, n_outs, label)


@dataclass(frozen=True)
class Negative(Failure):
    """The failure of a number below zero."""

    error: type[CheckError] = FailedCheckError
    payload: tuple[ArrayType, ...] = (array_type((), "float32"),)
    label: str = "negative"

    def message(self, *payload: Value) -> str:
        return f"{payload[0]} is negative"


REFERENCES: Final[Mapping[str, ByReference]] = {
    rule.label: rule
    for rule in (
        Failures.of([Negative()], "negative"),
        _forward("identity", 1, "{ lambda ; a:f32[] b:f32[]. let  in (a, b) }"),
        _forward(
            "sine",
            1,
            "{ lambda ; a:f32[] b:f32[]. let "
            "c:f32[] = sin a; d:f32[] = cos a; e:f32[] = mul b d in (c, e) }",
        ),
        _forward(
            "sine_and_exp",
            2,
            "{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = exp a; e:f32[] = cos a; "
            "f:f32[] = mul b e; g:f32[] = mul b d in (c, d, f, g) }",
        ),
    )
}
"""The rules and failures to which programs in golden files refer."""

ERRORS: Final = {
    "user": FailedCheckError,
    "nan": NaNError,
    "division": DivisionByZeroError,
    "index": OOBError,
}

POLICIES: Final = {
    "keep_nothing": keep_nothing,
    "keep_contractions": keep_contractions,
    "keep_cheap": keep_cheap,
}

RULES: Final = {
    name: parse_rule(text)
    for name, text in {
        "add_neg": "'x + (-y) = x - y' for float|int|uint: add(x, neg(y)) => sub(x, y)",
        "neg_sub": "'-(x - y) = y - x' for complex|float|int|uint: neg(sub(x, y)) => sub(y, x)",
        "double": "'x + x = 2 x' for complex|float|int|uint: add(x, x) => mul(2, x)",
        "distribute": "'x (y + z)' for int: mul(x, add(y, z)) => add(mul(x, y), mul(x, z))",
        "factor": "'x y + x z' for int: add(mul(x, y), mul(x, z)) => mul(x, add(y, z))",
        "sinh": "'shared parts' for any: sinh(x) => mul(0.5, sub(exp(x), div(1.0, exp(x))))",
        "constants": "'(x + c) + d' for int: add(add(x, $c), $d) => add(x, add($c, $d))",
        "square_matrix": "'-(-x), square' for any: neg(neg(x:float[n,n])) => x",
        "transposes": "'axes' for any: "
        "neg(transpose[..., permutation=?p](x)) => transpose[..., permutation=?p](neg(x))",
        "forward": "'load of a store' for any: "
        "o = swap(r, x, [i]); v = get(r, [i]); => o = swap(r, x, [i]); v = x;",
        "overwrite": "'store over a store' for any: "
        "swap(r, x, [i]); swap(r, y, [i]); => swap(r, y, [i]);",
        "accumulate": "'r += x' for any: "
        "swap(r, add(get(r, [i]), x), [i]); => addupdate(r, x, [i]);",
        "restore": "'store of a load' for any: "
        "v = get(r, [i]); swap(r, v, [i]); => v = get(r, [i]);",
        "twice": "'two accumulations' for int: "
        "addupdate(r, x, [i]); addupdate(r, y, [i]); => addupdate(r, add(x, y), [i]);",
        "sine_and_cosine": "'two results' for any: "
        "s = sin(x); c = cos(x); => t = tan(x); c = cos(x); s = mul(t, c);",
        "hoist": "'out of a scan' for any: scan&loop(*xs){has exp&e(x)} "
        "=> scan&loop(exp(x), *xs){(h) with e := h}",
        "hoist_call": "'out of a call' for any: jit&f(*xs){has exp&e(x)} "
        "=> jit&f(exp(x), *xs){(h) with e := h}",
        "load_out": "'load out of a scan' for any: scan&loop!{read}(*xs){has get&e(r, [i])} "
        "=> scan&loop(get(r, [i]), *xs){(h) with e := h}",
        "inline": "'a call that adds' for any: jit(*xs){-> (add(x, y))} => add(x, y)",
        "results": "'results of a body' for any: scan&loop(*xs){(c, x) -> (add(c, neg(x)), *ys)} "
        "=> scan&loop(*xs){-> (sub(c, x), *ys)}",
        "cumsum": "'a scan that adds' for float: s, ys = scan(0, v)"
        "{(c, x) -> (add(c, x), add(c, x))}; "
        "=> ys = cumsum[axis=0 reverse=False](v); s = reduce_sum[axes=(0,)](v);",
    }.items()
}
"""Rules by name, each with another kind of pattern."""


def _dce(jaxpr: Jaxpr, **options: Any) -> Dce:
    return unwrap(dce(jaxpr, **options))


def _discharge(jaxpr: Jaxpr) -> Discharged:
    return unwrap(discharge(jaxpr))


def _jvp(jaxpr: Jaxpr, **options: Any) -> Jvp:
    return unwrap(jvp(jaxpr, **options))


def _linearize(jaxpr: Jaxpr, **options: Any) -> Linearized:
    return unwrap(linearize(jaxpr, **options))


def _vmap(jaxpr: Jaxpr, **options: Any) -> Vmapped:
    return unwrap(vmap(jaxpr, **options))


def _partial_eval(jaxpr: Jaxpr, policy: str | None = None, **options: Any) -> PartialEval:
    return unwrap(
        partial_eval(jaxpr, policy=None if policy is None else POLICIES[policy], **options)
    )


def _transpose(jaxpr: Jaxpr, ct_specs: tuple[str, ...], **options: Any) -> Transposed:
    return unwrap(transpose(jaxpr, [v.COTANGENT_SPECS[name] for name in ct_specs], **options))


def _reverse(jaxpr: Jaxpr, **options: Any) -> Reverse:
    return unwrap(reverse(jaxpr, **options))


def _inline(jaxpr: Jaxpr, only: str | None = None) -> Jaxpr:
    def is_named(eqn: Eqn) -> bool:
        return isinstance(eqn.prim, Jit) and eqn.prim.label == only

    return unwrap(inline(jaxpr, None if only is None else is_named))


def _outline(jaxpr: Jaxpr, **options: Any) -> Jaxpr:
    return unwrap(outline(jaxpr, **options))


def _rewrite(jaxpr: Jaxpr, rules: tuple[str, ...], by_cost: bool = False) -> Jaxpr:
    cost = equation_count if by_cost else None
    return unwrap(rewriting([RULES[name] for name in rules], cost)(jaxpr))


def _bounded(jaxpr: Jaxpr, max_steps: int, checkpoints: str = "SQRT") -> Jaxpr:
    """Bound the loop that is the only equation of the program."""
    (eqn,) = jaxpr.eqns
    assert isinstance(eqn.prim, While)
    return bounded(eqn.prim, max_steps, Checkpoints[checkpoints])


def _checkify(jaxpr: Jaxpr, errors: tuple[str, ...]) -> CheckedProgram:
    return unwrap(checkify(jaxpr, frozenset(ERRORS[name] for name in errors)))


def _insert_pvary(jaxpr: Jaxpr, varies: tuple[tuple[str, ...], ...]) -> Jaxpr:
    """Insert ``pvary`` given the axes along which each input varies."""
    return insert_pvary(jaxpr, tuple(map(frozenset, varies)), jaxpr.free_axes)


def _lower(jaxpr: Jaxpr) -> str:
    return stablehlo_of(jaxpr)[1].text


def _of_pass(step: Pass) -> Subject:
    """Return a subject for a pass that keeps the meaning of programs."""
    return _of_passes(lambda: step)


def _of_passes(choose: Callable[..., Pass]) -> Subject:
    """Return a subject for passes that keep the meaning of programs, selected by options."""

    def transform(jaxpr: Jaxpr, **options: Any) -> Jaxpr:
        return unwrap(choose(**options)(jaxpr))

    def validate(jaxpr: Jaxpr, options: Mapping[str, Any], made: Jaxpr) -> None:
        v.check_guarantees(choose(**options), jaxpr, made)

    return Subject(transform, validate)


def _accumulate(fuse: bool = False) -> Pass:
    return passes.fuse_accumulations if fuse else passes.accumulate


def _unroll(growth: int = 0) -> Pass:
    return unroll_to(growth) if growth else passes.unroll


def _hoist(carries: bool = False) -> Pass:
    return passes.loop_carries if carries else passes.hoist


TOGETHER: Final = {"fuse_accumulations": "accumulate", "loop_carries": "hoist"}
"""Passes whose cases are in the folder of another pass."""

SUBJECTS: Final[dict[str, Subject]] = {
    **{step.name: _of_pass(step) for step in passes.ALL if step.name not in TOGETHER},
    "jvp": Subject(_jvp, v.check_jvp),
    "linearize": Subject(_linearize, v.check_linearized),
    "vmap": Subject(_vmap, v.check_vmapped),
    "partial_eval": Subject(_partial_eval, v.check_partial_eval),
    "transpose": Subject(_transpose, v.check_transposed),
    "reverse": Subject(_reverse, v.check_reverse),
    "discharge": Subject(_discharge, v.check_discharged),
    "dce": Subject(_dce, v.check_dce),
    "inline": Subject(_inline, v.check_same_bits),
    "outline": Subject(_outline, v.check_same_bits),
    "rewriting": Subject(_rewrite, v.check_same_values),
    "bounded": Subject(_bounded, v.check_bounded),
    "checkify": Subject(_checkify, v.check_checkified),
    "insert_pvary": Subject(_insert_pvary, v.check_pvary),
    "lowering": Subject(_lower, v.check_module),
    "unroll": _of_passes(_unroll),
    "accumulate": _of_passes(_accumulate),
    "hoist": _of_passes(_hoist),
}
