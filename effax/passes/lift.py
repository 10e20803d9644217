"""Make passes of functions from programs to programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from returns.result import Result, Success

from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.lazy.dataclasses import dataclass
from effax.passes.guarantees import Guarantee
from effax.passes.pipeline import AnyPass, Pass, name_of

Change = Callable[[Jaxpr], Jaxpr | Result[Jaxpr, TransformError]]
"""A function that ``as_pass`` accepts: it returns a program, or a ``Result`` of one."""


@overload
def as_pass(function: Change, *, name: str = ..., laws: tuple[Guarantee, ...] = ...) -> Pass: ...


@overload
def as_pass(
    function: None = ..., *, name: str = ..., laws: tuple[Guarantee, ...] = ...
) -> Callable[[Change], Pass]: ...


def as_pass(
    function: Change | None = None,
    *,
    name: str = "",
    laws: tuple[Guarantee, ...] = (Guarantee.SAME_MEANING,),
) -> Pass | Callable[[Change], Pass]:
    """Make a pass of a function from programs to programs; a decorator, with or without arguments.

    ::

        @as_pass
        def cosines(jaxpr):
            return map_eqns(to_cosine, jaxpr)


        @as_pass(laws=SIMPLIFIES)
        def smaller(jaxpr): ...

    Args:
        function: returns a program, or a ``Result`` of one; an exception that it raises becomes a
            failure.
        name: the name of the pass; by default the function's.
        laws: its guarantees.

    Raises:
        BadArgument: ``function`` is not a function, or a law is not a ``Guarantee``.
    """
    if function is None:
        return lambda decorated: as_pass(decorated, name=name, laws=laws)
    checked: object = function
    if isinstance(checked, AnyPass) or not callable(checked):
        raise BadArgument(
            "as_pass takes a function",
            expected="a function from a program to a program",
            found=f"{checked!r:.80}",
        )
    return Pass(name or name_of(function), Lifted(function), laws)


@dataclass(frozen=True)
class Lifted:
    """A function that wraps returned programs in ``Success``."""

    function: Change

    def __call__(self, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        made = self.function(jaxpr)
        return Success(made) if isinstance(made, Jaxpr) else made
