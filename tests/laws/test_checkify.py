from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_values_are_kept = holds(laws.checkify_keeps_values)
test_the_first_failure_is_reported = holds(laws.checkify_reports_the_first_failure)
