from __future__ import annotations

from functools import partial

import pytest
from effax_passes.laws import close_where_finite
from effax_passes.narrow import NARROWER, RTOL, narrow

from effax.ir import Atom, Builder, Eqn, Jaxpr, everywhere, map_eqns
from effax.ir.prims import Add, DotGeneral
from effax.passes import as_pass, unwrap
from effax.testing import LawBroken, check_law, check_pass


def test_contractions_are_within_the_tolerance_of_their_dtype(examples: int) -> None:
    report = check_pass(narrow, rtol=RTOL, focus="contract.dot", examples=examples)
    assert report.changed > examples // 2


def test_contractions_in_float32_differ_by_more_than_its_rounding() -> None:
    with pytest.raises(LawBroken, match="is allowed"):
        check_pass(narrow, rtol=1e-5, focus="contract.dot", examples=30)


def test_a_wrong_contraction_is_no_rounding() -> None:
    def doubled(b: Builder, eqn: Eqn) -> Atom | None:
        if not isinstance(eqn.prim, DotGeneral) or eqn.outs[0].type.dtype not in NARROWER:
            return None
        return b(Add(), *[b(eqn.prim, *eqn.ins)] * 2)

    @as_pass
    def twice(jaxpr: Jaxpr) -> Jaxpr:
        return unwrap(narrow(everywhere(partial(map_eqns, doubled), jaxpr)))

    with pytest.raises(LawBroken, match="is allowed"):
        check_pass(twice, rtol=RTOL, focus="contract.dot", examples=20)


def test_double_precision_is_narrowed_to_single() -> None:
    tried = check_law(close_where_finite, step=narrow, focus="contract.dot", examples=20)
    assert tried.programs > 10
