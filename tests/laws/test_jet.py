from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_is_iterated_jvp = holds(laws.jet_is_iterated_jvp)
