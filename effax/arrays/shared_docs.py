"""Sections of docstrings that functions with the same parameters share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import cleandoc
from types import FunctionType
from typing import Final, TypeVar

F = TypeVar("F", bound=Callable[..., object])

OPERANDS: Final = {"x1": "array or scalar.", "x2": "array or scalar."}
"""Descriptions of the parameters of functions of two arrays."""

_REST: Final = re.compile(r"^(?=Raises:|>>> )", re.MULTILINE)


def shared_docs(parameters: Mapping[str, str], returns: str, /, **own: str) -> Callable[[F], F]:
    """Return a decorator that adds the sections Args and Returns to a docstring.

    Args:
        parameters: descriptions of parameters by name; the function may lack some of them.
        returns: description of the result.
        own: descriptions of parameters that differ, or that no other function has.
    """

    def add(function: F) -> F:
        if function.__doc__ is not None:  # None under `python -OO`
            summary, rest = _REST.split(cleandoc(function.__doc__), maxsplit=1)
            described = {**parameters, **own}
            args = "\n".join(f"    {p}: {described[p]}" for p in _parameters(function))
            sections = f"Args:\n{args}\n\nReturns:\n    {returns}\n\n"
            function.__doc__ = summary + sections + rest
        return function

    return add


def _parameters(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of the parameters; ``inspect.signature`` would slow the import."""
    assert isinstance(function, FunctionType)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
