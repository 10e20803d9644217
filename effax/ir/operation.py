"""Operations: primitives without their parameters, as interpreters of jaxprs look them up.

``eqn.primitive`` is one object for all equations of one operation, and ``eqn.params`` are the
parameters of one equation by JAX's names, so that ``eqn.primitive.bind(*args, **eqn.params)``
applies the primitive to other arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

from effax.ir.primitive import Primitive

if TYPE_CHECKING:
    from effax.ir.syntax import Atom, Eqn


class Operation(ABC):
    """A primitive without its parameters; compared by identity.

    Attributes:
        name: the printed name.
        multiple_results: whether ``bind`` returns a list of results, instead of one.
        call_primitive: False: calls have their program in ``params``, and take no functions.
        map_primitive: False, likewise.
    """

    name: str
    multiple_results: bool
    call_primitive: ClassVar[bool] = False
    map_primitive: ClassVar[bool] = False

    @abstractmethod
    def bind(self, *args: object, **params: object) -> object:
        """Apply the primitive: evaluate it, or add it to the program that is traced."""

    def get_bind_params(self, params: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of ``bind`` by name, for the parameters of an equation."""
        return dict(params)

    def __repr__(self) -> str:
        return self.name


class HasOperation(Primitive):
    """A primitive that declares its own operation and parameters."""

    __slots__ = ()

    @abstractmethod
    def operation(self) -> Operation:
        """Return the operation."""

    @abstractmethod
    def params(self) -> dict[str, object]:
        """Return the parameters."""


class _Reading:
    """The functions behind ``eqn.primitive``, ``eqn.params`` and ``eqn.invars``, set once."""

    operation: Callable[[Primitive], Operation]
    params: Callable[[Primitive], dict[str, object]]
    invars: Callable[[Eqn], list[Atom]]

    def __getattr__(self, name: str) -> object:
        """Return a function that is not set yet, by loading the module that sets it."""
        import_module("effax.api.operations")
        return object.__getattribute__(self, name)


READING: Final = _Reading()
"""Set by ``effax.api.operations``, which applies primitives."""
