"""The boundary of a pass: results and errors."""

from __future__ import annotations

from returns.result import Failure, Success

from effax.ir.errors import IllTyped, TransformError
from effax.transforms.framework.runner import as_result


def test_errors_become_failures() -> None:
    def fails() -> None:
        raise IllTyped("what", "expected", "found", "remedy")

    result = as_result(fails)()
    assert isinstance(result, Failure)
    error = result.failure()
    assert isinstance(error, TransformError)
    assert (error.what, error.remedy) == ("what", "remedy")
    assert as_result(lambda: 3)() == Success(3)
