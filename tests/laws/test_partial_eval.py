from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_partial_eval_recomposes = holds(laws.partial_eval_recomposes)
test_all_or_nothing_known = holds(laws.partial_eval_of_all_or_nothing)
test_partial_eval_recomposes_under_a_policy = holds(laws.partial_eval_under_a_policy_recomposes)
