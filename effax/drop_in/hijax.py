"""Types with methods of JAX's experiment ``hijax``: classes to declare, refused where used."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from effax.drop_in.zeros import instantiate_zeros
from effax.ir.errors import NotSupported
from effax.ir.types import Type

__all__ = [
    "AbstractValue", "HiPrim", "HiType", "VJPHiPrimitive", "aval_method",
    "aval_property", "instantiate_zeros", "register_hitype",
]  # fmt: skip

AbstractValue = Type


class HiType:
    """The class of types of a user's values. No value has one."""


def _refused(what: str) -> NotSupported:
    return NotSupported(
        f"{what}: user-defined types of values are not supported",
        expected="trees of arrays and references",
        remedy="register the class as a tree: `jax.tree_util.register_dataclass`",
    )


class HiPrim:
    """The class of primitives on user-defined types, refused where one is made."""

    def __init__(self) -> None:
        raise _refused(type(self).__name__)

    def __call__(self, *args: object) -> NoReturn:
        """Raise NotSupported."""
        raise _refused(type(self).__name__)


VJPHiPrimitive = HiPrim


class aval_method:  # noqa: N801
    """A method of a type, that its values have."""

    def __init__(self, fun: Callable[..., object]) -> None:
        self.fun: Callable[..., object] = fun


class aval_property:  # noqa: N801
    """A property of a type, that its values have."""

    def __init__(self, fget: Callable[..., object]) -> None:
        self.fget: Callable[..., object] = fget


def register_hitype(value_class: type, typeof: Callable[..., object]) -> None:
    """Accept a class whose values have a user-defined type; their use in functions is refused."""
    del value_class, typeof
