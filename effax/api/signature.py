"""Signatures of functions as programs: types, effects, captures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from effax.api.captures import capture_names
from effax.api.staging import trace_abstractly
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable
from effax.arrays.tracing import label_of, like
from effax.effects import Alloc, SideEffect
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type


class NamedEffect(NamedTuple):
    """One effect of a function.

    Attributes:
        kind: "read", "write", "accum", or the kind of a side effect, such as "io".
        on: the user's name of the reference; of a side effect its detail, such as a channel.
    """

    kind: str
    on: str

    def __str__(self) -> str:
        return f"{self.kind} {self.on}".rstrip()


class Slot(NamedTuple):
    """An input or a captured value.

    Attributes:
        name: the user's name of it; ``captured[0]``, ... for a captured value without one.
        type: its type.
        effects: the kinds of effect on it: "read", "write", "accum".
    """

    name: str
    type: Type
    effects: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True)
class Signature:
    """The type of a function as a program.

    Attributes:
        name: the name of the function.
        inputs: one slot a leaf of the arguments.
        captures: the arrays and references that it closes over.
        results: the type of each leaf of the result.
        effects: its effects on references, and its side effects.
        jaxpr: the program; captures are its first binders.
    """

    name: str
    inputs: tuple[Slot, ...]
    captures: tuple[Slot, ...]
    results: tuple[Type, ...]
    effects: tuple[NamedEffect, ...]
    jaxpr: Jaxpr

    @property
    def is_pure(self) -> bool:
        """Return whether it has no effects."""
        return not self.effects

    def __str__(self) -> str:
        given = ", ".join(map(str, self.inputs))
        results = ", ".join(map(str, self.results))
        row = f" !{{{', '.join(map(str, self.effects))}}}" if self.effects else ""
        captures = f" capturing {', '.join(map(str, self.captures))}" if self.captures else ""
        return f"{self.name}({given}) -> ({results}){row}{captures}"


def signature_of(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., Signature]:
    """Return a function from arguments of ``fun`` to its types, effects and captures.

    Arguments may be arrays, numbers, references, or their types; no operation is computed.

    Raises:
        BadArgument: ``fun`` is not callable.
    """
    check_callable(fun, "signature_of")
    static = StaticArgs.of(fun, static_argnums, static_argnames)

    @like(fun)
    def signature(*args: object, **kwargs: object) -> Signature:
        label = f"signature_of {label_of(fun)}"
        flat, _ = trace_abstractly(fun, args, kwargs, static, label)
        given = [flat.jaxpr.name_of(i) for i in range(len(flat.consts), len(flat.jaxpr.binders))]
        names = [*capture_names(fun, flat.consts, given), *given]
        return _signature(flat.jaxpr, label_of(fun), names)

    return signature


def effects_of(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., tuple[NamedEffect, ...]]:
    """Return a function from arguments of ``fun`` to its effects.

    References have the user's names. Those that ``fun`` allocates are not listed.

    Raises:
        BadArgument: ``fun`` is not callable.
    """
    check_callable(fun, "effects_of")
    signature = signature_of(fun, static_argnums, static_argnames)

    @like(fun)
    def effects(*args: object, **kwargs: object) -> tuple[NamedEffect, ...]:
        return signature(*args, **kwargs).effects

    return effects


def _signature(jaxpr: Jaxpr, name: str, names: Sequence[str]) -> Signature:
    n = jaxpr.n_consts
    kinds: list[list[str]] = [[] for _ in names]
    effects: list[NamedEffect] = []
    for effect in jaxpr.effects:
        if isinstance(effect, SideEffect):
            effects.append(NamedEffect(effect.word, effect.detail))
        elif not isinstance(effect, Alloc):
            kinds[effect.ref].append(effect.word)
            effects.append(NamedEffect(effect.word, names[effect.ref]))
    slots = [
        Slot(name, type_, tuple(found))
        for name, type_, found in zip(names, jaxpr.in_types, kinds, strict=True)
    ]
    return Signature(
        name, tuple(slots[n:]), tuple(slots[:n]), jaxpr.out_types, tuple(effects), jaxpr
    )
