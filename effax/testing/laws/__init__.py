"""The laws of transformations, as functions of programs.

Each takes a program (and a seed for its inputs) and raises :class:`LawBroken` where it does not
hold, with a report that has the program as a test, ready to paste. ``LAWS`` has all of them: what
each is about, and on which programs it is tried, is said where it is defined.
"""

from __future__ import annotations

from typing import Final

from effax.testing.laws.axes import (
    collectives_commute_with_jvp,
    collectives_commute_with_transpose,
    derivatives_inside_are_those_outside,
    shard_map_is_lanes,
    vmap_does_collectives,
)
from effax.testing.laws.discharge import (
    discharge_is_observationally_equal,
    discharge_of_pure_is_the_same,
)
from effax.testing.laws.host import (
    compiled_programs_tell_the_same,
    derivatives_keep_what_is_told,
    halves_keep_what_is_told,
    optimisations_keep_what_is_told,
    pass_keeps_what_is_told,
    passes_keep_what_is_told,
    vmap_tells_of_every_lane,
)
from effax.testing.laws.jvp import (
    jvp_has_the_chain_rule,
    jvp_is_linear,
    jvp_is_the_derivative,
    jvp_keeps_values,
)
from effax.testing.laws.law import About, Law, assume, law
from effax.testing.laws.linearize import linearize_is_jvp
from effax.testing.laws.partial_eval import (
    partial_eval_of_all_or_nothing,
    partial_eval_recomposes,
    partial_eval_under_a_policy_recomposes,
)
from effax.testing.laws.pass_set import Passes
from effax.testing.laws.programs import (
    check_accepts,
    check_rejects,
    compiled_passes_mean_the_same,
    equality_is_structural,
    evaluation_fits_the_types,
    lowering_agrees_with_evaluation,
    parse_inverts_print,
    passes_are_pure,
)
from effax.testing.laws.reverse import reverse_is_linearize_then_transpose
from effax.testing.laws.rules import rule_is_true
from effax.testing.laws.simplify import (
    dce_keeps_what_is_observed,
    inline_keeps_what_is_observed,
    observationally_equal,
    pass_is_a_function,
    pass_keeps_its_claims,
    simplifies,
)
from effax.testing.laws.transpose import (
    transpose_adds_into_references,
    transpose_is_adjoint,
    transpose_is_its_own_inverse,
    transpose_leaves_out_what_nobody_wants,
    vjp_is_adjoint_to_jvp,
)
from effax.testing.laws.vmap import (
    vmap_commutes_with_discharge,
    vmap_commutes_with_jvp,
    vmap_commutes_with_transpose,
    vmap_is_stacking,
)
from effax.testing.report.report import LawBroken

__all__ = [
    "LAWS",
    "About",
    "Law",
    "LawBroken",
    "Passes",
    "assume",
    "check_accepts",
    "check_rejects",
    "collectives_commute_with_jvp",
    "collectives_commute_with_transpose",
    "compiled_passes_mean_the_same",
    "compiled_programs_tell_the_same",
    "dce_keeps_what_is_observed",
    "derivatives_inside_are_those_outside",
    "derivatives_keep_what_is_told",
    "discharge_is_observationally_equal",
    "discharge_of_pure_is_the_same",
    "equality_is_structural",
    "evaluation_fits_the_types",
    "halves_keep_what_is_told",
    "inline_keeps_what_is_observed",
    "jvp_has_the_chain_rule",
    "jvp_is_linear",
    "jvp_is_the_derivative",
    "jvp_keeps_values",
    "law",
    "linearize_is_jvp",
    "lowering_agrees_with_evaluation",
    "observationally_equal",
    "optimisations_keep_what_is_told",
    "parse_inverts_print",
    "partial_eval_of_all_or_nothing",
    "partial_eval_recomposes",
    "partial_eval_under_a_policy_recomposes",
    "pass_is_a_function",
    "pass_keeps_its_claims",
    "pass_keeps_what_is_told",
    "passes_are_pure",
    "passes_keep_what_is_told",
    "reverse_is_linearize_then_transpose",
    "rule_is_true",
    "shard_map_is_lanes",
    "simplifies",
    "transpose_adds_into_references",
    "transpose_is_adjoint",
    "transpose_is_its_own_inverse",
    "transpose_leaves_out_what_nobody_wants",
    "vjp_is_adjoint_to_jvp",
    "vmap_commutes_with_discharge",
    "vmap_commutes_with_jvp",
    "vmap_commutes_with_transpose",
    "vmap_does_collectives",
    "vmap_is_stacking",
    "vmap_tells_of_every_lane",
]

LAWS: Final[tuple[Law[...], ...]] = (
    check_accepts,
    check_rejects,
    parse_inverts_print,
    equality_is_structural,
    evaluation_fits_the_types,
    lowering_agrees_with_evaluation,
    dce_keeps_what_is_observed,
    inline_keeps_what_is_observed,
    discharge_is_observationally_equal,
    discharge_of_pure_is_the_same,
    jvp_keeps_values,
    jvp_is_the_derivative,
    jvp_is_linear,
    vmap_is_stacking,
    partial_eval_recomposes,
    partial_eval_of_all_or_nothing,
    partial_eval_under_a_policy_recomposes,
    transpose_is_adjoint,
    transpose_is_its_own_inverse,
    transpose_adds_into_references,
    transpose_leaves_out_what_nobody_wants,
    linearize_is_jvp,
    vjp_is_adjoint_to_jvp,
    reverse_is_linearize_then_transpose,
    jvp_has_the_chain_rule,
    vmap_commutes_with_jvp,
    vmap_commutes_with_discharge,
    vmap_commutes_with_transpose,
    passes_are_pure,
    passes_keep_what_is_told,
    derivatives_keep_what_is_told,
    halves_keep_what_is_told,
    vmap_tells_of_every_lane,
    optimisations_keep_what_is_told,
    compiled_programs_tell_the_same,
    vmap_does_collectives,
    collectives_commute_with_jvp,
    collectives_commute_with_transpose,
    shard_map_is_lanes,
    derivatives_inside_are_those_outside,
    pass_keeps_its_claims,
    pass_is_a_function,
    pass_keeps_what_is_told,
    compiled_passes_mean_the_same,
    observationally_equal,
    simplifies,
    rule_is_true,
)
"""The laws of the library. What breaks an early one breaks many, so that one is told of first."""
