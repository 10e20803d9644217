"""Passes of functions from programs to programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import overload

from returns.result import Result, Success

from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.passes.guarantees import Guarantee
from effax.passes.pipeline import Pass, Step, called

Change = Callable[[Jaxpr], Jaxpr | Result[Jaxpr, TransformError]]
"""What ``as_pass`` takes: a function that gives a program, or a ``Result`` of one."""


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
    """A pass of a function from programs to programs; a decorator, with arguments or without.

    ::

        @as_pass
        def cosines(jaxpr):
            return map_eqns(to_cosine, jaxpr)


        @as_pass(laws=SIMPLIFIES)
        def smaller(jaxpr): ...

    Args:
        function: gives a program, or a ``Result`` of one; an error of the library that it raises is
            its failure.
        name: what the pass is called; as the function is, where nothing is said.
        laws: what it claims.

    Raises:
        BadArgument: ``function`` is none, or what it claims is no ``Guarantee``.
    """
    if function is None:
        return lambda late: as_pass(late, name=name, laws=laws)
    given: object = function
    if isinstance(given, Step) or not callable(given):
        raise BadArgument(
            "a pass is made of a function",
            expected="a function from a program to a program",
            found=f"{given!r:.80}",
        )
    return Pass(name or called(function), _Lifted(function), laws)


@dataclass(frozen=True)
class _Lifted:
    """A function that gives programs, as one that gives ``Result``s."""

    function: Change

    def __call__(self, jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        made = self.function(jaxpr)
        return Success(made) if isinstance(made, Jaxpr) else made
