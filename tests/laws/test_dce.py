from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_keeps_what_is_observed = holds(laws.dce_is_observationally_equal)
