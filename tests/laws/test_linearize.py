from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_is_jvp_in_two_programs = holds(laws.linearize_is_jvp)
