"""What a function is as a program, in one call: types, effects, captures."""

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
    """One thing that a function does.

    Attributes:
        kind: "read", "write", "accum", or the word of a kind of effects on the outside world,
            such as "io".
        on: the reference, as the user calls it; or what of the outside world, such as a channel.
    """

    kind: str
    on: str

    def __str__(self) -> str:
        return f"{self.kind} {self.on}".rstrip()


class Slot(NamedTuple):
    """An input or a captured value.

    Attributes:
        name: what the user calls it; ``captured[0]``, ... for what is closed over and has no name.
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
        name: what the function is called.
        inputs: one slot a leaf of the arguments.
        captures: what it closes over, arrays and references.
        results: the type of each leaf of the result.
        effects: all that it does to references and to the outside world.
        jaxpr: the program itself; captures are its first binders.
    """

    name: str
    inputs: tuple[Slot, ...]
    captures: tuple[Slot, ...]
    results: tuple[Type, ...]
    effects: tuple[NamedEffect, ...]
    jaxpr: Jaxpr

    @property
    def is_pure(self) -> bool:
        """Whether it has no effects: equal arguments give equal results, and nothing else."""
        return not self.effects

    def __str__(self) -> str:
        given = ", ".join(map(str, self.inputs))
        results = ", ".join(map(str, self.results))
        row = f" !{{{', '.join(map(str, self.effects))}}}" if self.effects else ""
        held = f" capturing {', '.join(map(str, self.captures))}" if self.captures else ""
        return f"{self.name}({given}) -> ({results}){row}{held}"


def signature_of(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., Signature]:
    """A function that gives the types, effects and captures of ``fun`` for arguments like these.

    Arguments may be arrays, numbers, references, or their types; nothing is computed.

    Raises:
        BadArgument: ``fun`` is not callable.
    """
    check_callable(fun, "signature_of")
    static = StaticArgs.of(fun, static_argnums, static_argnames)

    @like(fun)
    def told(*args: object, **kwargs: object) -> Signature:
        label = f"signature_of {label_of(fun)}"
        flat, _ = trace_abstractly(fun, args, kwargs, static, label)
        given = [flat.jaxpr.name_of(i) for i in range(len(flat.consts), len(flat.jaxpr.binders))]
        names = [*capture_names(fun, flat.consts, given), *given]
        return _signature(flat.jaxpr, label_of(fun), names)

    return told


def effects_of(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., tuple[NamedEffect, ...]]:
    """A function that tells what ``fun`` does to references, and to the outside world.

    References are named as the user names them. Those that ``fun`` makes itself do not show.

    Raises:
        BadArgument: ``fun`` is not callable.
    """
    check_callable(fun, "effects_of")
    signature = signature_of(fun, static_argnums, static_argnames)

    @like(fun)
    def told(*args: object, **kwargs: object) -> tuple[NamedEffect, ...]:
        return signature(*args, **kwargs).effects

    return told


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
