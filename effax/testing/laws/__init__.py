"""The laws of transformations, as functions of programs.

Each takes a program (and a seed for its inputs) and raises :class:`LawBroken` if it does not hold,
with a report that has the program as a test, ready to paste. ``LAWS`` lists them.
"""

from __future__ import annotations

from typing import Final

from effax.testing.laws.axes import (
    collectives_commute_with_jvp,
    collectives_commute_with_transpose,
    shard_map_commutes_with_grad,
    shard_map_is_vmap,
    vmap_evaluates_collectives,
)
from effax.testing.laws.calls import failed_calls_keep_references
from effax.testing.laws.checkify import (
    checkify_keeps_values,
    checkify_reports_the_first_failure,
)
from effax.testing.laws.control import (
    reverse_commutes_with_vmap_of_branches,
    vmap_leaves_passed_values_unbatched,
)
from effax.testing.laws.dce import dce_is_observationally_equal
from effax.testing.laws.devices import placed_programs_agree, shard_map_runs_on_devices
from effax.testing.laws.discharge import (
    discharge_is_observationally_equal,
    discharge_of_pure_is_identity,
)
from effax.testing.laws.guarantees import pass_is_a_function, pass_keeps_its_guarantees
from effax.testing.laws.host import (
    derivatives_preserve_side_effects,
    lowering_preserves_side_effects,
    optimizations_preserve_side_effects,
    partial_eval_preserves_side_effects,
    pass_preserves_side_effects,
    passes_preserve_side_effects,
    vmap_repeats_side_effects,
)
from effax.testing.laws.inline import inline_is_observationally_equal
from effax.testing.laws.jet import jet_is_iterated_jvp
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
from effax.testing.laws.programs import (
    check_accepts,
    check_rejects,
    compiled_pass_agrees_with_evaluation,
    equality_is_structural,
    evaluation_matches_types,
    lowering_agrees_with_evaluation,
    parse_inverts_print,
    parse_inverts_print_of_closed,
    parse_refuses_other_texts,
    passes_are_pure,
    stepping_is_evaluation,
)
from effax.testing.laws.reverse import reverse_is_linearize_then_transpose
from effax.testing.laws.rules import rule_is_sound
from effax.testing.laws.simplify import observationally_equal, simplifies
from effax.testing.laws.special_points import derivatives_are_right_at_special_points
from effax.testing.laws.transformations import Passes
from effax.testing.laws.transpose import (
    transpose_accumulates_into_references,
    transpose_is_adjoint,
    transpose_is_its_own_inverse,
    transpose_omits_unwanted_cotangents,
    vjp_is_adjoint_to_jvp,
)
from effax.testing.laws.true_rules import true_rules_keep_derivatives
from effax.testing.laws.vmap import (
    vmap_commutes_with_discharge,
    vmap_commutes_with_jvp,
    vmap_commutes_with_transpose,
    vmap_is_stacking,
)
from effax.testing.report.report import LawBroken

__all__ = [  # noqa: RUF022  # the order of ``LAWS``: the simplest first
    "check_accepts",
    "check_rejects",
    "parse_inverts_print",
    "parse_inverts_print_of_closed",
    "parse_refuses_other_texts",
    "equality_is_structural",
    "evaluation_matches_types",
    "stepping_is_evaluation",
    "lowering_agrees_with_evaluation",
    "failed_calls_keep_references",
    "dce_is_observationally_equal",
    "inline_is_observationally_equal",
    "discharge_is_observationally_equal",
    "discharge_of_pure_is_identity",
    "checkify_keeps_values",
    "checkify_reports_the_first_failure",
    "jvp_keeps_values",
    "jvp_is_the_derivative",
    "jvp_is_linear",
    "jet_is_iterated_jvp",
    "derivatives_are_right_at_special_points",
    "true_rules_keep_derivatives",
    "vmap_is_stacking",
    "partial_eval_recomposes",
    "partial_eval_of_all_or_nothing",
    "partial_eval_under_a_policy_recomposes",
    "transpose_is_adjoint",
    "transpose_is_its_own_inverse",
    "transpose_accumulates_into_references",
    "transpose_omits_unwanted_cotangents",
    "linearize_is_jvp",
    "vjp_is_adjoint_to_jvp",
    "reverse_is_linearize_then_transpose",
    "jvp_has_the_chain_rule",
    "vmap_commutes_with_jvp",
    "vmap_commutes_with_discharge",
    "vmap_commutes_with_transpose",
    "vmap_leaves_passed_values_unbatched",
    "reverse_commutes_with_vmap_of_branches",
    "passes_are_pure",
    "passes_preserve_side_effects",
    "derivatives_preserve_side_effects",
    "partial_eval_preserves_side_effects",
    "vmap_repeats_side_effects",
    "optimizations_preserve_side_effects",
    "lowering_preserves_side_effects",
    "vmap_evaluates_collectives",
    "collectives_commute_with_jvp",
    "collectives_commute_with_transpose",
    "shard_map_is_vmap",
    "shard_map_commutes_with_grad",
    "shard_map_runs_on_devices",
    "placed_programs_agree",
    "pass_keeps_its_guarantees",
    "pass_is_a_function",
    "pass_preserves_side_effects",
    "compiled_pass_agrees_with_evaluation",
    "observationally_equal",
    "simplifies",
    "rule_is_sound",
    "LAWS",
    "About",
    "Law",
    "LawBroken",
    "Passes",
    "assume",
    "law",
]

LAWS: Final[tuple[Law[...], ...]] = tuple(
    [found for found in map(globals().get, __all__) if isinstance(found, Law)]
)
"""The laws of the library. A fault that breaks several laws is reported for the first of them."""
