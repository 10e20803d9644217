from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_equals_stacking = holds(laws.vmap_is_stacking)
test_commutes_with_jvp = holds(laws.vmap_commutes_with_jvp)
test_commutes_with_discharge = holds(laws.vmap_commutes_with_discharge)
test_commutes_with_transpose = holds(laws.vmap_commutes_with_transpose)
test_leaves_passed_values_unbatched = holds(laws.vmap_leaves_passed_values_unbatched)
test_branches_commute_with_reverse = holds(laws.reverse_commutes_with_vmap_of_branches)
