"""Faults planted in caches, settings, guards and calls with rules: a test notices each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pytest

import effax as jax
import effax.numpy as jnp
from effax.api import call_cache
from effax.arrays import binding, config
from effax.arrays.rules import call_rules
from effax.ir.errors import EffaxError
from effax.ir.primitive import ByReference
from effax.ir.state import clear_caches
from effax.lowering import program
from effax.lowering.rules import while_
from effax.transforms.partial_eval.partial_eval import partial_eval
from effax.transforms.rules.custom import jvp
from effax.transforms.rules.remat import partial_eval as remat
from effax.tree import deep
from tests.unit.api import test_call_cache as caches
from tests.unit.api import test_remat as checkpoints
from tests.unit.api import test_ruled_programs as ruled
from tests.unit.api import test_rules_on_demand as rules
from tests.unit.api import test_threads as threads
from tests.unit.lowering import test_no_aborts as no_aborts
from tests.unit.refs import test_custom_rules as references
from tests.unit.tree import test_depth as depth


class Fault(NamedTuple):
    """A wrong definition in place of a right one, and the check that notices it."""

    owner: object
    name: str
    wrong: object
    check: Callable[[], object]


def unchanged(x: Any, *_: object) -> Any:
    return x


def nothing(*_: object) -> None:
    return None


def kept_for_ever(cache: Any, jaxpr: Any, made: Any) -> None:
    cache.programs[jaxpr] = made


@contextmanager
def of_the_process(name: str, enabled: bool) -> Iterator[None]:
    kind = type(config.config)
    before = getattr(kind, name)
    config.config.update(name, enabled)
    try:
        yield
    finally:
        config.config.update(name, before)


def computed_again(jaxpr: Any, known: Any, saves: Any, outs: Any, rule_set: Any) -> Any:
    if jaxpr.effects and saves is not None:
        return remat._recompute_all(jaxpr, known, rule_set)
    return REMAT(jaxpr, known, saves, outs, rule_set)


REMAT: Final = partial_eval.cached


def bounded_entries() -> None:
    with pytest.MonkeyPatch.context() as patch:
        caches.test_entries_of_one_function_are_bounded_and_freed(patch)


def freed_executables() -> None:
    with pytest.MonkeyPatch.context() as patch:
        caches.test_executables_that_are_dropped_are_freed(patch)


def no_loop_without_data() -> None:
    lowered = jax.jit(no_aborts.count_down).lower(jnp.zeros(0, "int32"))
    assert "stablehlo.while" not in lowered.as_text()


FAULTS: Final = {
    "calls are not dropped": Fault(call_cache.CallCache, "drop_oldest", nothing, bounded_entries),
    "executables are not dropped": Fault(
        type(program._cache), "keep", kept_for_ever, freed_executables
    ),
    "64-bit types in all threads": Fault(
        config, "_with", of_the_process, threads.test_enable_x64_is_of_its_thread
    ),
    "references that are read again": Fault(
        remat,
        "partial_eval",
        SimpleNamespace(cached=computed_again),
        checkpoints.test_a_reference_from_outside_is_read_once,
    ),
    "a loop without data is lowered": Fault(while_, "any", lambda _: True, no_loop_without_data),
    "rules of each trace": Fault(
        call_rules, "_of_earlier_trace", unchanged, rules.test_programs_with_rules_are_values
    ),
    "rules that are traced for each question": Fault(
        call_rules.CallRules,
        "once",
        lambda call, question, answer: answer(),
        rules.test_rules_are_traced_once_for_types,
    ),
    "a copy of a rule": Fault(
        ByReference,
        "__deepcopy__",
        lambda rule, memo: copy.copy(object.__new__(type(rule))),
        lambda: ruled.test_two_traces_and_all_copies_are_equal("custom_jvp"),
    ),
    "contents that are read later": Fault(
        jvp,
        "on_contents",
        unchanged,
        lambda: references.test_both_rules_read_the_contents_at_the_call(unchanged),
    ),
    "tangents of written references": Fault(
        jvp,
        "_check_changed_refs",
        nothing,
        lambda: references.test_a_reverse_rule_has_no_cotangent_of_what_it_wrote(unchanged),
    ),
    "arrays of any size": Fault(
        binding,
        "check_size",
        nothing,
        lambda: no_aborts.test_arrays_that_are_too_large_are_an_error("zeros", unchanged),
    ),
    "pieces of any depth": Fault(
        deep, "LEVELS", 10**6, lambda: depth.test_trees_of_thousands_of_levels("flatten", tuple)
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(name: str) -> None:
    fault = FAULTS[name]
    clear_caches()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fault.owner, fault.name, fault.wrong, raising=False)
            errors = (AssertionError, EffaxError, ValueError, TypeError, AttributeError)
            with pytest.raises((*errors, pytest.fail.Exception)):
                fault.check()
    finally:
        clear_caches()
    fault.check()
