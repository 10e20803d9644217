"""What functions with derivatives of their own share: their calls, and calls inside of rules."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast

from effax import operators as ops
from effax.api.derivatives import promotes_to
from effax.array import Array, as_value
from effax.bind import Operand
from effax.checks import check_callable, integers
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type
from effax.tracing import FlatFunction, flat_args, shared_consts, trace_flat
from effax.tree import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")


class CustomCall(NamedTuple):
    """A call whose non-differentiable arguments are filled in."""

    fixed: tuple[object, ...]
    args: tuple[object, ...]
    leaves: list[Operand]
    treedef: PyTreeDef
    names: list[str]

    @property
    def types(self) -> list[Type]:
        return [x.type for x in self.leaves]


class Frame:
    """Rules that are being traced: a call of their function inside of them is a knot.

    ``consts`` is what the function and its rules close over, once that is known.
    """

    def __init__(self, fun: object, call: CustomCall) -> None:
        self.fun = fun
        self.call = call
        self.met = False
        self.consts: list[Operand] = []

    def is_for(self, fun: object, call: CustomCall) -> bool:
        """Whether a call is one of the same function on the same types."""
        mine = self.call
        return (
            self.fun is fun
            and mine.treedef == call.treedef
            and mine.types == call.types
            and len(mine.fixed) == len(call.fixed)
            and all(a is b or _equal(a, b) for a, b in zip(mine.fixed, call.fixed, strict=True))
        )


def _equal(a: object, b: object) -> bool:
    return type(a) is type(b) and isinstance(a, int | float | complex | str | bytes) and a == b


class _Frames(threading.local):
    """The frames of this thread, innermost last, and the outermost that a knot belonged to."""

    def __init__(self) -> None:
        self.stack: list[Frame] = []
        self.outermost = sys.maxsize


_frames = _Frames()


class _Knots:
    """Whether what was traced holds knots of rules around it."""

    escape = False


@contextmanager
def knots() -> Iterator[_Knots]:
    """Watch for calls, traced in the block, that belong to rules which began before it.

    What is traced then has a meaning in that place only, and must not be kept for another.
    """
    seen = _Knots()
    before, _frames.outermost = _frames.outermost, sys.maxsize
    here = len(_frames.stack)
    try:
        yield seen
    finally:
        seen.escape = _frames.outermost < here
        _frames.outermost = min(before, _frames.outermost)


class Custom(Generic[P, R]):
    """What functions with custom derivatives share."""

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = ()) -> None:
        check_callable(fun, type(self).__name__)
        self.fun = fun
        self.nondiff = integers(nondiff_argnums, "nondiff_argnums")
        self.label = getattr(fun, "__name__", type(fun).__name__)
        self._signature = _signature_of(fun)
        update_wrapper(cast(Any, self), fun, updated=())

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind as a method: the instance becomes the first argument."""
        if instance is None:
            return self

        def bound(*args: Any, **kwargs: Any) -> Any:
            return cast(Any, self)(instance, *args, **kwargs)

        return bound

    def taken_apart(self, args: Sequence[object], kwargs: dict[str, object]) -> CustomCall:
        full = self._positional(args, kwargs)
        for i in self.nondiff:
            if not 0 <= i < len(full):
                raise BadArgument(
                    f"{self.label}: nondiff_argnums names an argument that the call does not have",
                    expected=f"0 to {len(full) - 1}" if full else "none",
                    found=str(i),
                )
        fixed = tuple(full[i] for i in self.nondiff)
        rest = tuple(a for i, a in enumerate(full) if i not in self.nondiff)
        flat = flat_args(_NamedLike(self.fun, self.nondiff), rest, {})
        return CustomCall(fixed, rest, flat.leaves, flat.treedef, flat.names)

    def _positional(self, args: Sequence[object], kwargs: dict[str, object]) -> tuple[object, ...]:
        """All arguments by position, defaults filled in. Raises BadArgument where one cannot be."""
        if self._signature is None:
            if not kwargs:
                return tuple(args)
            names = ", ".join(kwargs)
        else:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if not bound.kwargs:
                return tuple(bound.args)
            names = ", ".join(bound.kwargs)
        raise BadArgument(
            f"{self.label}, which has custom derivatives, takes arguments by position only",
            expected="no keyword-only arguments",
            found=names,
        )

    def with_fixed(self, call: CustomCall) -> Callable[..., R]:
        def filled(*args: object) -> R:
            rest = iter(args)
            total = len(args) + len(call.fixed)
            places = dict(zip(self.nondiff, call.fixed, strict=True))
            full = [places[i] if i in places else next(rest) for i in range(total)]
            return cast(Callable[..., R], self.fun)(*full)

        return filled

    def traced(self, fun: Callable[..., object], call: CustomCall, label: str) -> FlatFunction:
        return trace_flat(fun, call.treedef, call.types, call.names, label, call.leaves)

    def knot(self, call: CustomCall, flat: FlatFunction) -> tuple[list[Operand], Jaxpr, int] | None:
        """Of a call inside of its own rules: constants, program, how many rules out they are."""
        stack = _frames.stack
        for i in reversed(range(len(stack))):
            frame = stack[i]
            if frame.is_for(self, call):
                frame.met = True
                _frames.outermost = min(_frames.outermost, i)
                consts, (jaxpr,) = shared_consts([flat], frame.consts)
                return consts, jaxpr, len(stack) - 1 - i
        return None

    def with_rules(
        self, call: CustomCall, flat: FlatFunction, trace_rules: Callable[[], list[FlatFunction]]
    ) -> tuple[list[Operand], list[Jaxpr]]:
        """The programs of the function and of its rules, over one list of constants.

        A knot takes the constants of all of them, so rules with knots are traced again when
        those are known.
        """
        frame = Frame(self, call)
        _frames.stack.append(frame)
        try:
            consts, jaxprs = shared_consts([flat, *trace_rules()])
            while frame.met and len(frame.consts) != len(consts):
                frame.consts = consts
                consts, jaxprs = shared_consts([flat, *trace_rules()], consts)
        finally:
            _frames.stack.pop()
        return consts, jaxprs


def _signature_of(fun: Callable[..., object]) -> inspect.Signature | None:
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def fitted(value: object, type_: Type, what: str) -> Array:
    """A result that a rule gives, in the type of the function's. Raises IllTyped."""
    x = as_value(value, what)
    yields = x.weak_type and promotes_to(x.dtype, type_.dtype)
    if x.shape != type_.shape or (x.dtype != type_.dtype and not yields):
        raise IllTyped(f"{what} has the wrong type", expected=str(type_), found=str(x.type))
    return ops.astype(x, type_.dtype)


def check_pair(result: object, what: str, pair: str) -> None:
    """Raises IllTyped where a rule does not give a pair."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise IllTyped(
            f"{what} must give {pair}",
            expected="a pair",
            found=f"{type(result).__name__}: {result!r:.60}",
        )


class _NamedLike:
    """Carries the names of the arguments that are left when some are filled in."""

    def __init__(self, fun: Callable[..., object], nondiff: Sequence[int]) -> None:
        self.fun = fun
        self.nondiff = nondiff

    def __call__(self) -> None:
        """Never called: it only has names."""

    def parameters_left(self, names: Sequence[str], rest: str) -> list[str]:
        """The names of the positional parameters that are not filled in."""
        return [n for i, n in enumerate(names) if i not in self.nondiff]
