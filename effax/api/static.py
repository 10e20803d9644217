"""Arguments that are compared by value instead of being traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import NamedTuple
from weakref import ref

import numpy as np

from effax.arrays.argument_checks import integers, strings
from effax.arrays.array import Array
from effax.arrays.ref import Ref
from effax.arrays.tracing import argument_names
from effax.ir.errors import BadArgument


class StaticArgs(NamedTuple):
    """The positions and names of the static arguments of a callable."""

    nums: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        fun: Callable[..., object],
        argnums: int | Sequence[int] | None,
        argnames: str | Sequence[str] | None,
        kind: str = "static",
    ) -> StaticArgs:
        """Complete positions by names, and names by positions; ``kind`` names the options."""
        nums = () if argnums is None else integers(argnums, f"{kind}_argnums")
        names = () if argnames is None else strings(argnames, f"{kind}_argnames")
        if not nums and not names:
            return cls((), ())
        try:
            parameters = list(inspect.signature(fun).parameters.values())
        except (TypeError, ValueError):
            if names and kind == "donate":
                raise BadArgument(
                    f"the signature of {fun!r:.80} is unknown, and donate_argnames needs it",
                    expected="a function with a signature",
                    found=", ".join(names),
                    remedy="pass donate_argnums instead",
                ) from None
            return cls(nums, names)
        return cls._completed(parameters, nums, names, kind)

    @classmethod
    def _completed(
        cls,
        parameters: list[inspect.Parameter],
        nums: tuple[int, ...],
        names: tuple[str, ...],
        kind: str,
    ) -> StaticArgs:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        positional = [p.name for p in parameters if p.kind in kinds]
        barred = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        without_name = [p.name for p in parameters if p.kind in barred]
        variadic = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
        keywords = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        for n in nums:
            if not variadic and not -len(positional) <= n < len(positional):
                raise BadArgument(
                    f"{kind}_argnums is out of range for the parameters of the function",
                    expected=f"less than {len(positional)}",
                    found=str(n),
                )
        for name in names:
            known = name in [p.name for p in parameters]
            if name in without_name or not (known or keywords):
                raise BadArgument(
                    f"{kind}_argnames has a name that is not a parameter of the function",
                    expected=", ".join(p.name for p in parameters),
                    found=name,
                )
        nums = tuple(n % len(positional) if n < 0 else n for n in nums)
        all_nums = {*nums, *(positional.index(n) for n in names if n in positional)}
        all_names = {*names, *(positional[n] for n in nums if n < len(positional))}
        return cls(tuple(sorted(all_nums)), tuple(sorted(all_names)))

    def check_disjoint(self, donated: StaticArgs) -> None:
        """Raise BadArgument where an argument is static and donated."""
        for what, mine, theirs in zip(("argnums", "argnames"), self, donated, strict=True):
            both = [x for x in mine if x in theirs]
            if both:
                raise BadArgument(
                    f"static_{what} and donate_{what} cannot intersect",
                    expected="arguments that are static, or donated",
                    found=", ".join(map(str, both)),
                )

    def split(
        self, fun: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Callable[..., object], Sequence[object], Mapping[str, object]]:
        """Fill in the static arguments; return the callable and the dynamic arguments."""
        if not self.nums and not self.names:
            return fun, args, kwargs
        static = {n: args[n] for n in self.nums if n < len(args)}
        named = {k: v for k, v in kwargs.items() if k in self.names}
        rest = tuple([a for i, a in enumerate(args) if i not in static])
        kept = {k: v for k, v in kwargs.items() if k not in named}
        return _Filled(fun, static, named), rest, kept

    def values_of(
        self,
        fun: Callable[..., object],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        on_collected: Callable[[object], None],
    ) -> StaticValues:
        """Return the static values of a call. Raises BadArgument where one is not hashable.

        ``on_collected`` is called when a value is collected that is referenced weakly.
        """
        values = [args[n] for n in self.nums if n < len(args)]
        named = [(k, kwargs[k]) for k in self.names if k in kwargs]
        try:
            hash((tuple(values), tuple(named)))
        except TypeError:
            names = argument_names(fun, len(args))
            by_name = [(names[n], args[n]) for n in self.nums if n < len(args)]
            raise _not_hashable([*by_name, *named]) from None
        return StaticValues(
            tuple([(type(v), _key(v, on_collected)) for v in values]),
            tuple([(k, type(v), _key(v, on_collected)) for k, v in named]),
        )


class StaticValues(NamedTuple):
    """The values of the static arguments of a call, to be compared: types, and values or weak refs.

    A value that is equal to itself only is referenced weakly: no other value finds that key, so it
    is useless once the value is collected, and must not keep it alive.
    """

    positional: tuple[tuple[type, object], ...]
    named: tuple[tuple[str, type, object], ...]

    def is_stale(self) -> bool:
        """Return whether a value has been collected."""
        values = [entry[-1] for entry in (*self.positional, *self.named)]
        return any(isinstance(x, ref) and x() is None for x in values)


def _key(value: object, on_collected: Callable[[object], None]) -> object:
    """Return an object that equals that of another value if no program distinguishes the two.

    ``0.0 == -0.0`` and ``(1,) == (True,)``, of which programs differ.
    """
    exact = _exact(value)
    return _weak(value, on_collected) if exact is value else exact


def _exact(value: object) -> object:
    """Return a number as its bits, tuples and dataclasses with exact elements, else the value."""
    kind = type(value)
    if kind is float or kind is complex:
        return np.asarray(value).tobytes()
    if isinstance(value, tuple) and kind.__eq__ is tuple.__eq__:
        return tuple([(type(v), _exact(v)) for v in value])
    if is_dataclass(value) and not isinstance(value, type):
        compared = [getattr(value, f.name) for f in fields(value) if f.compare]
        numbers = [x for x in compared if isinstance(x, bool | int | float | complex | tuple)]
        return (value, tuple([(type(x), _exact(x)) for x in numbers])) if numbers else value
    return value


def _weak(value: object, on_collected: Callable[[object], None]) -> object:
    """Return a weak reference to a value that is compared by identity, any other value itself."""
    kind = type(value)
    if kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__:
        try:
            return ref(value, on_collected)
        except TypeError:
            pass
    return value


def _not_hashable(values: Sequence[tuple[str, object]]) -> BadArgument:
    name, bad = next((name, v) for name, v in values if not _hashable(v))
    traced = isinstance(bad, Array | Ref)
    return BadArgument(
        f"the static argument {name} is {'an array' if traced else 'not hashable'}",
        expected="a value with __hash__ and __eq__, known before anything is traced",
        found=f"{type(bad).__name__}: {bad!r:.60}",
        remedy="do not make it static"
        if traced
        else "use a tuple instead of a list, or do not make it static",
    )


def _hashable(x: object) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


class _Filled:
    """A callable with some positional and keyword arguments filled in."""

    def __init__(
        self, fun: Callable[..., object], static: dict[int, object], named: dict[str, object]
    ) -> None:
        self.fun = fun
        self.static = static
        self.named = named
        self.__name__ = getattr(fun, "__name__", type(fun).__name__)

    def __call__(self, *args: object, **kwargs: object) -> object:
        rest = iter(args)
        total = len(args) + len(self.static)
        full = [self.static[i] if i in self.static else next(rest) for i in range(total)]
        return self.fun(*full, **self.named, **kwargs)

    def parameters_left(self, names: Sequence[str], rest: str) -> list[str]:
        """Return the names of the positional parameters that are not filled in."""
        return [n for i, n in enumerate(names) if i not in self.static and n not in self.named]
