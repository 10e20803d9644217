from __future__ import annotations

from dataclasses import replace

from effax.testing import ANYTHING, laws
from tests.laws.trying import holds

test_observationally_equal = holds(laws.discharge_is_observationally_equal)
test_idempotent = holds(laws.discharge_of_pure_is_identity)
test_identity_on_pure_programs = holds(
    laws.discharge_of_pure_is_identity, replace(ANYTHING, refs=False)
)
