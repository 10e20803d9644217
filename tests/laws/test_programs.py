"""Laws of programs as values, and those that hold for every pass."""

from __future__ import annotations

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import linear_programs
from tests.laws.trying import holds

test_check_accepts = holds(laws.check_accepts)
test_check_rejects = holds(laws.check_rejects)
test_parse_inverts_print = holds(laws.parse_inverts_print)
test_parse_inverts_print_of_closed = holds(laws.parse_inverts_print_of_closed)
test_parse_refuses_other_texts = holds(laws.parse_refuses_other_texts)
test_equality_is_structural = holds(laws.equality_is_structural)
test_evaluation_matches_types = holds(laws.evaluation_matches_types)
test_stepping_is_evaluation = holds(laws.stepping_is_evaluation)
test_passes_are_pure = holds(laws.passes_are_pure)


@given(linear_programs())
def test_check_accepts_linear(program: tuple[Jaxpr, tuple[bool, ...]]) -> None:
    """check(f) = f, where f is well typed by construction"""
    laws.check_accepts(program[0])
