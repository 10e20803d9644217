"""Laws on programs with arrays of random keys."""

from __future__ import annotations

from dataclasses import replace

from effax.testing import laws
from effax.testing.generate.features import COMPILED, NUMERIC
from tests.laws.trying import holds

KEYED = replace(NUMERIC, keys=True)

test_compiled_programs_agree_with_evaluation = holds(
    laws.lowering_agrees_with_evaluation, replace(COMPILED, keys=True)
)
test_batches_are_stacked_elements = holds(laws.vmap_is_stacking, KEYED)
test_discharge_keeps_the_meaning = holds(laws.discharge_is_observationally_equal, KEYED)
test_texts_are_parsed_back = holds(laws.parse_inverts_print, KEYED)
