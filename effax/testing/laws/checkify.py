"""Laws of checks as values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.effects import SideEffect
from effax.ir.dtypes import is_inexact_dtype
from effax.ir.errors import CheckError, DivisionByZeroError, NaNError, OOBError
from effax.ir.eval.stepping.state import evaluate_eqn, first_state
from effax.ir.eval.stepping.watch import Test, has_nan, is_out_of_bounds, search
from effax.ir.primitive import Value
from effax.ir.prims import Div, Rem
from effax.ir.syntax import Eqn, Jaxpr
from effax.ir.types import RefType
from effax.testing.generate.values import check_all, random_inputs, run
from effax.testing.laws.law import law
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.transforms.checkify.conditions import AUTOMATIC, computes


@law
def checkify_keeps_values(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """checkify(f)(x) = (f(x), error), with the same final contents of references."""
    done = passes.checkify(jaxpr, AUTOMATIC)
    inputs = _with_special_points(jaxpr, seed)
    expected, found = run(jaxpr, inputs), run(done.jaxpr, inputs)
    n = len(jaxpr.outs)
    check_all("result", expected.outs, found.outs[:n])
    check_all("final content of reference", expected.contents, found.contents)
    left = [e for e in done.jaxpr.effects if isinstance(e, SideEffect)]
    assert left == [e for e in jaxpr.effects if isinstance(e, SideEffect)], "side effects changed"


@law
def checkify_reports_the_first_failure(
    jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY
) -> None:
    """checkify(f)(x) returns the error of the first equation that fails, if one does."""
    done = passes.checkify(jaxpr, AUTOMATIC)
    inputs = _with_special_points(jaxpr, seed)
    number = int(run(done.jaxpr, inputs).outs[len(jaxpr.outs)])
    found = done.failures.failures[number - 1].error if number else None
    expected = _first_failure(jaxpr, inputs)
    assert found is expected, f"the first failure is {expected}, and {found} is reported"


def _with_special_points(jaxpr: Jaxpr, seed: int) -> list[Value]:
    """Return inputs of which some have a zero, a negative number, an infinity or a nan."""
    rng = np.random.default_rng([seed, 7])
    inputs = random_inputs(jaxpr.in_types, seed)
    for x, type_ in zip(inputs, jaxpr.in_types, strict=True):
        if x.size and not isinstance(type_, RefType) and rng.random() < 0.4:
            choices = [0, -1, np.inf, np.nan] if is_inexact_dtype(x.dtype) else [0]
            x.reshape(-1)[rng.integers(x.size)] = rng.choice(choices)
    return inputs


def _first_failure(jaxpr: Jaxpr, inputs: Sequence[Value]) -> type[CheckError] | None:
    """Return the class of the first failure, by evaluation of an equation at a time."""
    test = Test("failure", of_eqn=lambda eqn, operands: _failure(eqn, operands) is not None)
    hit = search(first_state(jaxpr, inputs, keeps=False), test).hit
    return None if hit is None else _failure(hit.eqn, hit.operands)


def _failure(eqn: Eqn, operands: Sequence[Value]) -> type[CheckError] | None:
    if isinstance(eqn.prim, Div | Rem) and not np.all(operands[1]):
        return DivisionByZeroError
    if is_out_of_bounds(eqn, operands):
        return OOBError
    if eqn.prim.subjaxprs():
        # A loop without iterations, a call without equations.
        return None
    if computes(eqn) and any(has_nan(np.asarray(x)).any() for x in evaluate_eqn(eqn, operands)):
        return NaNError
    return None
