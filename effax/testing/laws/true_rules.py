"""The law of calls with custom rules that are the derivatives of their functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from returns.result import Failure

from effax.ir.analysis.queries import walk
from effax.ir.edit.without_rules import plain_calls
from effax.ir.prims import CustomLinear
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType, is_inexact
from effax.testing.generate.features import SMOOTH
from effax.testing.generate.values import check_all, random_inputs
from effax.testing.laws.jvp import differentiated
from effax.testing.laws.law import assume, law
from effax.testing.laws.reverse import run_fused
from effax.testing.laws.transformations import LIBRARY, Passes
from effax.testing.laws.transpose import random_cotangents
from effax.transforms.framework.runner import unwrap
from effax.transforms.reverse.engine import reverse

RULED = replace(SMOOTH, control=("jit", "cond", "scan", "custom", "custom_vjp"), focus="custom_vjp")


@law(features=RULED)
def true_rules_keep_derivatives(jaxpr: Jaxpr, seed: int = 0, passes: Passes = LIBRARY) -> None:
    """reverse(f) = reverse(g), where g is f with plain calls, and rules state what these compute.

    The calls may read references, and rules may call their function.
    """
    plain = plain_calls(jaxpr)
    assume(plain != jaxpr)
    assume(not any(isinstance(place.eqn.prim, CustomLinear) for place in walk(jaxpr)))
    mask = tuple(
        has and not isinstance(t, RefType)
        for t, has in zip(jaxpr.in_types, differentiated(jaxpr.in_types, seed), strict=True)
    )
    wanted = tuple(map(is_inexact, jaxpr.out_types))
    made = reverse(jaxpr, mask, wanted, passes.rules)
    expected = reverse(plain, mask, wanted, passes.rules)
    assume(not isinstance(expected, Failure))
    # By a rule all results depend on differentiated arguments, also those which are written.
    assume(not (isinstance(made, Failure) and "is written to" in made.failure().what))
    inputs = random_inputs(jaxpr.in_types, seed)
    cts = random_cotangents(
        [t for t, has in zip(jaxpr.out_types, wanted, strict=True) if has], seed
    )
    check_all(
        "result, cotangent or final content",
        [np.array(x) for x in run_fused(plain, unwrap(expected), inputs, cts)],
        [np.array(x) for x in run_fused(jaxpr, unwrap(made), inputs, cts)],
    )
