"""Metadata of operations under JAX's names: accepted, and not passed to XLA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar, overload

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")

__all__ = ["set_xla_metadata", "xla_metadata_call"]


@contextmanager
def _unchanged() -> Iterator[None]:
    yield


def set_xla_metadata(x: T | None = None, **metadata: object) -> T | AbstractContextManager[None]:
    """Return ``x``; without it, a block."""
    return _unchanged() if x is None else x


@overload
def xla_metadata_call(f: F, /, **metadata: object) -> F: ...
@overload
def xla_metadata_call(f: None = None, /, **metadata: object) -> Callable[[F], F]: ...
def xla_metadata_call(
    f: Callable[..., object] | None = None, /, **metadata: object
) -> Callable[..., object]:
    """Return ``f``; without it, a decorator."""
    return (lambda g: g) if f is None else f
