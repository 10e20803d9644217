from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_passes_keep_what_is_told = holds(laws.passes_keep_what_is_told)
test_optimisations_keep_what_is_told = holds(laws.optimisations_keep_what_is_told)
test_derivatives_tell_of_primal_values_once = holds(laws.derivatives_keep_what_is_told)
test_halves_tell_in_order_and_once = holds(laws.halves_keep_what_is_told)
test_vmap_tells_of_every_lane = holds(laws.vmap_tells_of_every_lane)
test_compiled_programs_tell_the_same = holds(laws.compiled_programs_tell_the_same)
