"""Signatures of functions as programs: types, effects, captures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from effax.api.captures import capture_names
from effax.api.staging import trace_abstractly
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable
from effax.arrays.tracing import label_of, like, result_names
from effax.effects import Alloc, SideEffect
from effax.ir.syntax import Jaxpr
from effax.ir.text.paths import FEW, counted_groups, path_groups
from effax.ir.types import RefType, Type
from effax.lazy.dataclasses import dataclass

WIDTH: Final = 100
"""The width at which the text of a signature is broken into lines."""


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


class NamedEffects(tuple[NamedEffect, ...]):
    """The effects of a function: a tuple that prints the references of a subtree as one.

    ``print(effects)`` shows ``{read,write state['m'].* (24 refs)}`` where there are many;
    ``print(*effects)`` shows all.

    Attributes:
        names: the names of all references that the function takes or closes over.
    """

    names: tuple[str, ...] = ()

    @staticmethod
    def of(effects: Sequence[NamedEffect], names: Sequence[str]) -> NamedEffects:
        """Return effects on references with these names."""
        made = NamedEffects(effects)
        made.names = tuple(names)
        return made

    def __str__(self) -> str:
        return f"{{{', '.join(self.texts())}}}" if self else "()"

    __repr__ = __str__

    def texts(self) -> list[str]:
        """Return the effects as text, those on many references grouped by tree paths."""
        if len(self) <= FEW:
            return [str(effect) for effect in self]
        kinds: dict[str, list[str]] = {}
        for effect in self:
            if effect.on in self.names:
                kinds.setdefault(effect.on, []).append(effect.kind)
        alike: dict[tuple[str, ...], list[str]] = {}
        for name, found in kinds.items():
            alike.setdefault(tuple(found), []).append(name)
        grouped = [
            f"{','.join(found)} {group}"
            for found, names in alike.items()
            for group in counted_groups(names, "ref", self.names)
        ]
        return [*grouped, *[str(effect) for effect in self if effect.on not in kinds]]


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

    Its text has the leaves of a large tree as one input, ``params['block'].*: 24 arrays``, and
    :meth:`full` all of them.

    Attributes:
        name: the name of the function.
        inputs: one slot a leaf of the arguments.
        captures: the arrays and references that it closes over.
        results: the type of each leaf of the result.
        effects: its effects on references, and its side effects.
        result_names: the tree path of each leaf of the result: ``result['loss']``.
        jaxpr: the program; captures are its first binders.
    """

    name: str
    inputs: tuple[Slot, ...]
    captures: tuple[Slot, ...]
    results: tuple[Type, ...]
    effects: NamedEffects
    jaxpr: Jaxpr
    result_names: tuple[str, ...]

    @property
    def is_pure(self) -> bool:
        """Return whether it has no effects."""
        return not self.effects

    def __str__(self) -> str:
        return self._text(_grouped_slots, self.effects.texts())

    def full(self) -> str:
        """Return the text with every input, result and effect, where ``str`` groups them."""
        return self._text(lambda slots: list(map(str, slots)), list(map(str, self.effects)))

    def _text(self, listed: Callable[[Sequence[Slot]], list[str]], effects: list[str]) -> str:
        named = zip(self.result_names, self.results, strict=True)
        results = [Slot(name, type_, ()) for name, type_ in named]
        few = len(results) <= FEW
        outs = list(map(str, self.results)) if few else listed(results)
        given = _wrapped(f"{self.name}(", listed(self.inputs), ") -> (")
        parts = [given + _wrapped("", outs, ")")]
        if effects:
            parts.append(_wrapped("!{", effects, "}"))
        if self.captures:
            parts.append(_wrapped("capturing ", listed(self.captures), ""))
        return ("\n" if any("\n" in part for part in parts) else " ").join(parts)


def _grouped_slots(slots: Sequence[Slot]) -> list[str]:
    """Return inputs or results as text, those of a subtree as one where there are many."""
    if len(slots) <= FEW:
        return list(map(str, slots))
    texts = []
    for group in path_groups([slot.name for slot in slots]):
        types = [slots[i].type for i in group.members]
        refs = sum([isinstance(type_, RefType) for type_ in types])
        noun = "refs" if refs == len(types) else "arrays" if not refs else "arrays and refs"
        one = len(types) == 1
        texts.append(f"{group.name}: {types[0] if one else f'{len(types)} {noun}'}")
    return texts


def _wrapped(start: str, items: Sequence[str], end: str) -> str:
    """Return the items on one line, or on a line each if that would be long."""
    line = f"{start}{', '.join(items)}{end}"
    if len(line) <= WIDTH or len(items) < 2:
        return line
    return f"{start.rstrip()}\n{''.join([f'    {item},{chr(10)}' for item in items])}{end}"


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
        outs = result_names("result", flat.out_tree)
        return _signature(flat.jaxpr, label_of(fun), names, outs)

    return signature


def effects_of(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., NamedEffects]:
    """Return a function from arguments of ``fun`` to its effects.

    References have the user's names. Those that ``fun`` allocates are not listed. The result is a
    tuple, which prints those of a subtree as one: ``read,write state['m'].* (24 refs)``.

    Raises:
        BadArgument: ``fun`` is not callable.
    """
    check_callable(fun, "effects_of")
    signature = signature_of(fun, static_argnums, static_argnames)

    @like(fun)
    def effects(*args: object, **kwargs: object) -> NamedEffects:
        return signature(*args, **kwargs).effects

    return effects


def named_effects(jaxpr: Jaxpr, names: Sequence[str] = ()) -> NamedEffects:
    """Return the effects of a program.

    Args:
        jaxpr: the program.
        names: the name of each binder; by default the user's, or the variable.
    """
    binders = jaxpr.binders
    if not names:
        own = [*jaxpr.names, *[""] * (len(binders) - len(jaxpr.names))]
        # A description, such as "a closed-over reference", is not a name.
        names = [
            str(v) if not name or name.startswith("a ") else name
            for name, v in zip(own, binders, strict=True)
        ]
    effects: list[NamedEffect] = []
    for effect in jaxpr.effects:
        if isinstance(effect, SideEffect):
            effects.append(NamedEffect(effect.word, effect.detail))
        elif not isinstance(effect, Alloc):
            effects.append(NamedEffect(effect.word, names[effect.ref]))
    refs = [name for name, v in zip(names, binders, strict=True) if isinstance(v.type, RefType)]
    return NamedEffects.of(effects, refs)


def _signature(jaxpr: Jaxpr, name: str, names: Sequence[str], outs: Sequence[str]) -> Signature:
    n = jaxpr.n_consts
    kinds: list[list[str]] = [[] for _ in names]
    for effect in jaxpr.effects:
        if not isinstance(effect, SideEffect | Alloc):
            kinds[effect.ref].append(effect.word)
    slots = [
        Slot(name, type_, tuple(found))
        for name, type_, found in zip(names, jaxpr.in_types, kinds, strict=True)
    ]
    given = tuple(slots[n:]), tuple(slots[:n])
    row = named_effects(jaxpr, names)
    return Signature(name, *given, jaxpr.out_types, row, jaxpr, tuple(outs))
