"""Callables that bind to an instance like functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, Self, TypeVar, cast, overload

R = TypeVar("R")


class BindsAsMethod(Generic[R]):
    """A base of callables that are methods as attributes of a class."""

    @overload
    def __get__(self, instance: None, owner: type | None = ...) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = ...) -> Callable[..., R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Return the callable with the instance as its first argument."""
        return self if instance is None else partial(cast("Callable[..., R]", self), instance)
