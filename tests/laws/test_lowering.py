from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_agrees_with_evaluation = holds(laws.lowering_agrees_with_evaluation)
test_failed_calls_keep_references = holds(laws.failed_calls_keep_references)
