from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_keeps_values = holds(laws.jvp_keeps_values)
test_linear_in_tangents = holds(laws.jvp_is_linear)
test_is_the_derivative = holds(laws.jvp_is_the_derivative)
test_chain_rule = holds(laws.jvp_has_the_chain_rule)
