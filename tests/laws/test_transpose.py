from __future__ import annotations

from effax.testing import laws
from tests.laws.trying import holds

test_adjoint = holds(laws.transpose_is_adjoint)
test_own_inverse = holds(laws.transpose_is_its_own_inverse)
test_accumulates = holds(laws.transpose_accumulates_into_references)
test_unwanted = holds(laws.transpose_omits_unwanted_cotangents)
test_vjp_is_adjoint_to_jvp = holds(laws.vjp_is_adjoint_to_jvp)
