from __future__ import annotations

import pickle
from collections.abc import Callable

from effax.ir.source import SavedSource, Source, caller


def test_the_caller_is_the_line_outside_of_the_library() -> None:
    here = caller()
    line = test_the_caller_is_the_line_outside_of_the_library.__code__.co_firstlineno + 1
    assert here is not None
    assert (here.file, here.line) == (__file__, line)
    assert here.function == "test_the_caller_is_the_line_outside_of_the_library"
    assert str(here) == f"{__file__}:{line} ({here.function})"


def test_lines_of_a_statement_of_several_lines_are_distinct() -> None:
    found = [
        caller(),
        caller(),
    ]
    lines = [source.line for source in found if source is not None]
    assert lines[1] == lines[0] + 1


def test_scopes_are_shown() -> None:
    here = caller(("layer", "dense"))
    assert here is not None
    assert str(here).endswith("in layer/dense")


def test_a_pickled_place_outlives_its_code() -> None:
    here = caller(("scope",))
    assert isinstance(here, Source)
    saved = pickle.loads(pickle.dumps(here))
    assert isinstance(saved, SavedSource)
    assert str(saved) == str(here)
    assert pickle.loads(pickle.dumps(saved)) == saved


def test_a_place_in_a_nested_function_has_its_qualified_name() -> None:
    find: Callable[[], Source | None] = lambda: caller()  # noqa: E731, PLW0108  # a frame of its own
    found = find()
    assert found is not None
    assert found.function.endswith("<locals>.<lambda>")
