"""Sources and name stacks of equations, under the names of ``jax.extend.source_info_util``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from effax.drop_in.private import new_source_info, register_exclusion, summarize
from effax.ir.source import SourceInfo
from effax.ir.trace import named_scope, scopes_set

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
]


class NameStack(str):
    """The names of scopes, joined by ``/``."""

    __slots__ = ()

    def extend(self, name: str) -> NameStack:
        """Return the stack with one more name."""
        return NameStack(f"{self}/{name}" if self else name)


def new_name_stack(name: str = "") -> NameStack:
    """Return a stack of one name, or of none."""
    return NameStack(name)


def current_name_stack() -> NameStack:
    """Return the names of the scopes that are entered."""
    with scopes_set() as names:
        return NameStack("/".join(names))


def current() -> SourceInfo:
    """Return the source of equations that are traced now."""
    return SourceInfo(None, current_name_stack())


def extend_name_stack(name: str) -> AbstractContextManager[None]:
    """Add a name to the stack in the block."""
    return named_scope(name)


transform_name_stack = extend_name_stack


def set_name_stack(name_stack: str) -> AbstractContextManager[object]:
    """Replace the stack in the block."""
    return scopes_set(tuple(name_stack.split("/")) if name_stack else ())


def reset_name_stack() -> AbstractContextManager[object]:
    """Remove all names in the block."""
    return scopes_set(())


@contextmanager
def user_context(traceback: object, *, name_stack: str | None = None) -> Iterator[None]:
    """Set the name stack in the block; equations keep the lines that traced them."""
    with scopes_set() if name_stack is None else set_name_stack(name_stack):
        yield
