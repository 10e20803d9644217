"""Faults planted in the run of compiled calls break the laws of calls."""

from __future__ import annotations

import pytest

from effax.api import ref_calls
from effax.arrays import binding
from effax.testing import check_law, laws
from effax.testing.laws import LawBroken
from tests.unit.api import test_threads


def _nothing(*_: object) -> tuple[()]:
    return ()


@pytest.mark.parametrize("name", ["_copies", "_restore"])
def test_contents_that_are_not_kept_or_restored(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    check_law(laws.failed_calls_keep_references, examples=15)
    monkeypatch.setattr(ref_calls, name, _nothing)
    with pytest.raises(LawBroken):
        check_law(laws.failed_calls_keep_references, examples=15)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_eager_operation_that_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "wait_until_free", _nothing)
    with pytest.raises((AssertionError, IndexError)):
        test_threads.test_a_use_waits_for_the_call_in_progress("eager update")
