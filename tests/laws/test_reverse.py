from __future__ import annotations

from dataclasses import replace

from effax.testing import NUMERIC, SMOOTH
from effax.testing.laws import reverse_is_linearize_then_transpose
from tests.laws.trying import holds

test_pure_programs = holds(reverse_is_linearize_then_transpose, replace(SMOOTH, refs=False))
test_differentiable_programs = holds(reverse_is_linearize_then_transpose)
# Where one fails, so does the other, and says the same.
test_any_program = holds(reverse_is_linearize_then_transpose, NUMERIC)
