"""Every planted bug breaks a law on random programs, and without it no law breaks on the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from effax.ir.axes import Axis
from effax.ir.prims import Sin
from effax.testing import laws
from effax.testing.laws import LawBroken, Passes
from effax.testing.strategies import (
    NUMERIC,
    SHARDED,
    SMOOTH,
    Features,
    compositions,
    linear_programs,
    open_programs,
    programs,
    seeds,
)
from tests.planted import (
    of_axes,
    of_custom,
    of_host,
    of_jvp,
    of_passes,
    of_transpose,
    of_vmap,
)
from tests.planted.planting import Bug

BUGS: Final = (
    *of_jvp.BUGS,
    *of_transpose.BUGS,
    *of_vmap.BUGS,
    *of_passes.BUGS,
    *of_host.BUGS,
    *of_axes.BUGS,
    *of_custom.BUGS,
)

Law = Callable[..., None]
Programs = Callable[[Features], SearchStrategy[object]]


def _plain(features: Features) -> SearchStrategy[object]:
    return programs(features)


def _linear(features: Features) -> SearchStrategy[object]:
    return linear_programs(replace(features, differentiable=False))


def _pairs(features: Features) -> SearchStrategy[object]:
    return compositions(features)


AXIS: Final = Axis("i", 3)


def _open(features: Features) -> SearchStrategy[object]:
    return open_programs(AXIS, features).map(lambda jaxpr: (jaxpr, AXIS))


def _open_linear(features: Features) -> SearchStrategy[object]:
    loopless = replace(features, control=("jit", "remat", "cond", "scan"))
    return linear_programs(loopless, axes=(AXIS,)).map(lambda program: (*program, AXIS))


def _sharded(features: Features) -> SearchStrategy[object]:
    return programs(replace(features, control=SHARDED.control, focus="shard_map", depth=1))


def _sharded_linear(features: Features) -> SearchStrategy[object]:
    return linear_programs(replace(features, control=SHARDED.control, focus="shard_map", depth=1))


SUITES: Final[dict[str, tuple[tuple[Law, Programs], ...]]] = {
    "jvp": (
        (laws.jvp_is_the_derivative, _plain),
        (laws.jvp_keeps_values, _plain),
        (laws.jvp_is_linear, _plain),
        (laws.jvp_has_the_chain_rule, _pairs),
    ),
    "transpose": (
        (laws.transpose_is_adjoint, _linear),
        (laws.transpose_is_its_own_inverse, _linear),
        (laws.transpose_accumulates_into_references, _linear),
    ),
    "vmap": (
        (laws.vmap_is_stacking, _plain),
        (laws.vmap_commutes_with_discharge, _plain),
        (laws.vmap_commutes_with_jvp, _plain),
    ),
    "partial_eval": (
        (laws.partial_eval_recomposes, _plain),
        (laws.partial_eval_of_all_or_nothing, _plain),
    ),
    "discharge": ((laws.discharge_is_observationally_equal, _plain),),
    "checkify": (
        (laws.checkify_reports_the_first_failure, _plain),
        (laws.checkify_keeps_values, _plain),
    ),
    "dce": ((laws.dce_is_observationally_equal, _plain),),
    "inline": ((laws.inline_is_observationally_equal, _plain),),
    "calls of passes": ((laws.passes_preserve_side_effects, _plain),),
    "calls of derivatives": ((laws.derivatives_preserve_side_effects, _plain),),
    "calls of partial evaluation": ((laws.partial_eval_preserves_side_effects, _plain),),
    "collectives": (
        (laws.vmap_evaluates_collectives, _open),
        (laws.shard_map_is_vmap, _sharded),
        (laws.vmap_is_stacking, _sharded),
    ),
    "cotangents in step": (
        (laws.collectives_commute_with_transpose, _open_linear),
        (laws.transpose_is_adjoint, _sharded_linear),
    ),
    "custom rules": ((laws.true_rules_keep_derivatives, _plain),),
    "branches in reverse": ((laws.reverse_commutes_with_vmap_of_branches, _plain),),
    "passed values": ((laws.vmap_leaves_passed_values_unbatched, _plain),),
    "calls of batches": ((laws.vmap_repeats_side_effects, _plain),),
}
"""The laws of each pass, and the programs that they are about."""


FAST: Final = settings.get_profile("fast").max_examples

TRIES: Final = 4 * FAST
"""Each pass has four and more tests of its laws, and some with each kind of step in focus."""


def hold(law: Law, shape: Programs, focus: str, passes: Passes, tries: int = FAST) -> None:
    """Try a law on random programs: the same ones, whatever the passes."""
    features = replace(SMOOTH if law is laws.jvp_is_the_derivative else NUMERIC, focus=focus)

    @settings(
        max_examples=tries,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        database=None,
        derandomize=True,
        deadline=None,
    )
    @given(st.data(), seeds)
    def holds(data: DataObject, seed: int) -> None:
        drawn = data.draw(shape(features))
        given_args = drawn if isinstance(drawn, tuple) else (drawn,)
        law(*given_args, seed, passes)

    holds()


def test_there_are_enough_bugs() -> None:
    assert len(BUGS) >= 25
    assert len({bug.name for bug in BUGS}) == len(BUGS)


def is_caught(bug: Bug) -> bool:
    """Return whether a law of the bug's pass catches it."""
    for focus, (law, shape) in product(bug.focus, SUITES[bug.laws]):
        try:
            hold(law, shape, focus, bug.passes, TRIES)
        except LawBroken:
            return True
    return False


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.laws}: {bug.name}")
def test_is_caught(bug: Bug) -> None:
    assert is_caught(bug), f"no law of {bug.laws} notices that {bug.name}"


RIGHT: Final = sorted({(bug.laws, focus) for bug in BUGS for focus in bug.focus})


@pytest.mark.parametrize(("suite", "focus"), RIGHT)
def test_right_passes_are_not_accused(suite: str, focus: str) -> None:
    for law, shape in SUITES[suite]:
        hold(law, shape, focus, Passes())


def test_reports_are_tests() -> None:
    bug = BUGS[0]
    law, shape = SUITES[bug.laws][0]
    with pytest.raises(LawBroken) as broken:
        hold(law, shape, bug.focus[0], bug.passes)
    _, source = str(broken.value).split("As a test:\n\n")
    assert "# Define sin_jvp here: the lambda of of_jvp.py, line" in source
    rule = bug.passes.rules.rules[Sin].jvp
    assert isinstance(rule, partial)
    names: dict[str, object] = {"sin_jvp": rule.args[0]}
    exec(compile(source, "<report>", "exec"), names)
    (name,) = [name for name in names if name.startswith("test_")]
    test = names[name]
    assert callable(test)
    with pytest.raises(LawBroken) as again:
        test()
    assert again.value.kind == broken.value.kind
