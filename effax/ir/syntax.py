"""Programs as values: variables, literals, equations, jaxprs.

Everything here is frozen. Variables are numbered inside their program in order of binding, without
a global counter: equal traces return equal programs in every process, and the environment of a pass
is a list. ``==`` is structural; it ignores the sources of equations and the names of arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, cast, final

from pyrsistent import PVector, pvector

from effax.effects import NO_EFFECTS, Alloc, ArgIndex, Effect, Row, SideEffect
from effax.ir.axes import Axes, joined_axes
from effax.ir.equality import EqualPrograms, known_same, pairs, same, same_constant
from effax.ir.operation import READING, Operation
from effax.ir.primitive import Owner, Primitive
from effax.ir.recursion import postorder, subjaxprs_of
from effax.ir.source import DebugInfo, SavedSource, Source, SourceInfo
from effax.ir.text.display import DISPLAY
from effax.ir.text.names import VAR_NAMES
from effax.ir.text.nan import signed_nan
from effax.ir.text.notebook import drawn
from effax.ir.types import ArrayType, Type

Scalar = bool | int | float | complex


class Var(NamedTuple):
    """A variable: its number inside its program, and its type.

    Its printed name is its number in letters, and so the same in every context.
    """

    id: int
    type: Type

    @property
    def aval(self) -> Type:
        """The type, under JAX's name."""
        return self.type

    def __str__(self) -> str:
        return VAR_NAMES[self.id]

    def __repr__(self) -> str:
        return f"{self}:{self.type}"


@final
class Lit:
    """A scalar constant. Equality is that of dtype and bits; of a nan, only the sign is kept."""

    __slots__ = ("_key", "type", "value")

    value: Scalar
    type: ArrayType
    _key: tuple[str, ArrayType]

    def __init__(self, value: Scalar, type: ArrayType) -> None:
        value, text = (value, repr(value)) if value == value else signed_nan(value)  # noqa: PLR0124
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "_key", (text, type))

    @property
    def val(self) -> Scalar:
        """The value, under JAX's name."""
        return self.value

    @property
    def aval(self) -> ArrayType:
        """The type, under JAX's name."""
        return self.type

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a literal is immutable: cannot set {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lit) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, ...]:
        return (Lit, (self.value, self.type))

    def __str__(self) -> str:
        return f"{self._key[0]}:{self.type}"

    def __repr__(self) -> str:
        return f"Lit({self._key[0]}, {self.type})"


Atom = Var | Lit


class Eqn(NamedTuple):
    """One application of a primitive. ``effects`` name positions of ``ins``."""

    prim: Primitive
    ins: tuple[Atom, ...]
    outs: tuple[Var, ...]
    effects: Row[ArgIndex] = NO_EFFECTS
    source: Source | SavedSource | None = None

    @property
    def primitive(self) -> Operation:
        """The primitive without its parameters: one object for all equations of it."""
        return READING.operation(self.prim)

    @property
    def params(self) -> dict[str, object]:
        """The parameters of the primitive, by JAX's names."""
        return READING.params(self.prim)

    @property
    def invars(self) -> list[Atom]:
        """The operands, in the order of ``params``; of most primitives, ``ins``."""
        return READING.invars(self)

    @property
    def outvars(self) -> list[Var]:
        """The variables that it binds."""
        return list(self.outs)

    @property
    def source_info(self) -> SourceInfo:
        """The user's line, and the scopes around it."""
        return SourceInfo(self.source, "/".join(self.source.scopes if self.source else ()))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Eqn)
            and self.outs == other.outs
            and self.ins == other.ins
            and self.prim == other.prim
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.prim, self.ins, self.outs))

    def __str__(self) -> str:
        return DISPLAY.eqn(self)

    def __repr__(self) -> str:
        return str(self)


def pretty_print(self: object, **options: object) -> str:
    """Return the text of a program. JAX's options, such as ``use_color``, are accepted."""
    return str(self)


@final
class Jaxpr:
    """A program: binders, equations in order, results.

    Attributes:
        binders: the inputs; the first ``n_consts`` of them are captured constants.
        eqns: the equations, a persistent vector.
        outs: the results, atoms in scope.
        n_consts: how many leading binders are captured, which printing shows before ``;``.
        names: the user's name of each binder, or empty; not part of equality.
        out_names: the tree path of each result, such as ``result['loss']``, or none; not part of
            equality.
    """

    __slots__ = (
        "_axes",
        "_class",
        "_effects",
        "_hash",
        "_kinds",
        "_owner",
        "_size",
        "_subjaxprs",
        "binders",
        "eqns",
        "n_consts",
        "names",
        "out_names",
        "outs",
    )

    binders: tuple[Var, ...]
    eqns: PVector[Eqn]
    outs: tuple[Atom, ...]
    n_consts: int
    names: tuple[str, ...]
    out_names: tuple[str, ...]
    _hash: int | None
    _kinds: frozenset[type[Primitive]] | None
    _subjaxprs: tuple[Jaxpr, ...] | None
    _effects: Row[ArgIndex] | None
    _owner: Owner | Literal[False] | None
    _size: int | None
    _class: EqualPrograms | None
    _axes: Axes | None

    def __init__(
        self,
        binders: Sequence[Var],
        eqns: Iterable[Eqn],
        outs: Sequence[Atom],
        n_consts: int = 0,
        names: Sequence[str] = (),
        out_names: Sequence[str] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "binders", tuple(binders))
        if not isinstance(eqns, PVector):
            eqns = pvector(eqns)
        put(self, "eqns", eqns)
        put(self, "outs", tuple(outs))
        put(self, "n_consts", n_consts)
        put(self, "names", tuple(names))
        put(self, "out_names", tuple(out_names))
        put(self, "_hash", None)
        put(self, "_subjaxprs", None)
        put(self, "_effects", None)
        put(self, "_kinds", None)
        put(self, "_owner", None)
        put(self, "_size", None)
        put(self, "_class", None)
        put(self, "_axes", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a jaxpr is immutable: cannot set {name}; use `replace`")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a jaxpr is immutable: cannot delete {name}")

    def replace(
        self,
        binders: Sequence[Var] | None = None,
        eqns: Iterable[Eqn] | None = None,
        outs: Sequence[Atom] | None = None,
        n_consts: int | None = None,
        names: Sequence[str] | None = None,
        out_names: Sequence[str] | None = None,
    ) -> Jaxpr:
        """Return the program with some fields replaced; the others are shared.

        Another number of results without ``out_names`` has no names of results.
        """
        if out_names is None:
            out_names = self.out_names if outs is None or len(outs) == len(self.outs) else ()
        return Jaxpr(
            self.binders if binders is None else binders,
            self.eqns if eqns is None else eqns,
            self.outs if outs is None else outs,
            self.n_consts if n_consts is None else n_consts,
            self.names if names is None else names,
            out_names,
        )

    @property
    def constvars(self) -> list[Var]:
        """The binders of captured constants."""
        return list(self.binders[: self.n_consts])

    @property
    def invars(self) -> list[Var]:
        """The binders without those of captured constants."""
        return list(self.binders[self.n_consts :])

    @property
    def outvars(self) -> list[Atom]:
        """The results."""
        return list(self.outs)

    @property
    def debug_info(self) -> DebugInfo:
        """The user's names of inputs and results."""
        names = self.names[self.n_consts :] or ("",) * (len(self.binders) - self.n_consts)
        return DebugInfo(names, self.out_names or ("result",) * len(self.outs))

    @property
    def in_types(self) -> tuple[Type, ...]:
        """The types of the binders."""
        return tuple(v.type for v in self.binders)

    @property
    def out_types(self) -> tuple[Type, ...]:
        """The types of the results."""
        return tuple(a.type for a in self.outs)

    @property
    def effects(self) -> Row[ArgIndex]:
        """The effects over the binders; effects on references that it allocates are masked."""
        if self._effects is None:
            object.__setattr__(self, "_effects", _effects_of(self))
        assert self._effects is not None
        return self._effects

    @property
    def free_axes(self) -> Axes:
        """The named axes that the program uses and does not bind, sorted by name."""
        if self._axes is None:
            for jaxpr in postorder(self, _lacks_axes):
                found = [axes for eqn in jaxpr.eqns if (axes := eqn.prim.free_axes())]
                object.__setattr__(jaxpr, "_axes", joined_axes(found))
        assert self._axes is not None
        return self._axes

    @property
    def size(self) -> int:
        """One more than the greatest variable number: the length of an environment."""
        if self._size is None:
            top = max((v.id for v in self.binders), default=-1)
            for eqn in self.eqns:
                for v in eqn.outs:
                    if v.id > top:
                        top = v.id
            object.__setattr__(self, "_size", top + 1)
        assert self._size is not None
        return self._size

    def name_of(self, index: int) -> str:
        """Return the user's name of binder ``index``, for messages."""
        if index < len(self.names) and self.names[index]:
            return self.names[index]
        return f"argument {index}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Jaxpr):
            return NotImplemented
        if hash(self) != hash(other):
            return False
        if known_same(self, other):
            return True
        if not subjaxprs_of(self):
            return same(self, other)
        # Innermost first: when an enclosing program is compared, its subjaxprs are in one class.
        return all(map(same, *pairs(self, other)))

    def __hash__(self) -> int:
        if self._hash is None:
            # Innermost first, so that hashing a program finds the hashes of its subjaxprs cached.
            for jaxpr in postorder(self, _lacks_hash) if subjaxprs_of(self) else (self,):
                parts = (jaxpr.binders, tuple(jaxpr.eqns), jaxpr.outs, jaxpr.n_consts)
                object.__setattr__(jaxpr, "_hash", hash(parts))
        assert self._hash is not None
        return self._hash

    def __str__(self) -> str:
        return DISPLAY.jaxpr(self)

    __repr__ = __str__
    pretty_print = pretty_print

    def __reduce__(self) -> tuple[object, ...]:
        # By name, because pickling knows programs.
        return cast("tuple[object, ...]", import_module("effax.ir.pickling").reduced(self))

    def _repr_html_(self) -> str | None:
        return drawn(self)


def _lacks_hash(jaxpr: Jaxpr) -> bool:
    return jaxpr._hash is None


def _lacks_axes(jaxpr: Jaxpr) -> bool:
    return jaxpr._axes is None


def _effects_of(jaxpr: Jaxpr) -> Row[ArgIndex]:
    """Return the union of the equations' effects, over binders.

    Effects on references that are allocated inside have no binder and end at the boundary.
    """
    position = {v.id: ArgIndex(i) for i, v in enumerate(jaxpr.binders)}
    found: dict[Effect[ArgIndex], None] = {}
    for _, ins, _, row, _ in jaxpr.eqns:
        for effect in row.effects:
            if isinstance(effect, Alloc):
                continue
            if isinstance(effect, SideEffect):
                found[effect] = None
                continue
            ref = ins[effect.ref]
            index = position.get(ref.id) if isinstance(ref, Var) else None
            if index is not None:
                found[type(effect)(index)] = None
    return Row(found) if found else NO_EFFECTS


def has_side_effects(row: Row[ArgIndex]) -> bool:
    """Return whether a row has a side effect."""
    return any(isinstance(effect, SideEffect) for effect in row)


class _Closed(NamedTuple):
    jaxpr: Jaxpr
    consts: tuple[object, ...]


@final
class ClosedJaxpr(_Closed):
    """A program and the values of its first ``n_consts`` binders.

    Equal if the programs and the constants are: arrays of the same bits, the same references. A
    program without constants equals its jaxpr.

    Attributes:
        jaxpr: the program.
        consts: the values, arrays or references.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Jaxpr):
            return not self.consts and self.jaxpr == other
        return self is other or (
            isinstance(other, ClosedJaxpr)
            and self.jaxpr == other.jaxpr
            and len(self.consts) == len(other.consts)
            and all(map(same_constant, self.jaxpr.in_types, self.consts, other.consts))
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.jaxpr)

    @property
    def eqns(self) -> PVector[Eqn]:
        """The equations of the program."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> Row[ArgIndex]:
        """The effects over the binders of the program, those of constants included."""
        return self.jaxpr.effects

    @property
    def literals(self) -> tuple[object, ...]:
        """The values of constants."""
        return self.consts

    @property
    def constvars(self) -> list[Var]:
        """The binders of constants."""
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        """The binders of the inputs."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        """The results."""
        return self.jaxpr.outvars

    @property
    def debug_info(self) -> DebugInfo:
        """The user's names of inputs and results."""
        return self.jaxpr.debug_info

    @property
    def in_avals(self) -> tuple[Type, ...]:
        """The types of the inputs, without those of constants."""
        return self.jaxpr.in_types[len(self.consts) :]

    @property
    def out_avals(self) -> tuple[Type, ...]:
        """The types of the results."""
        return self.jaxpr.out_types

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            # A closed program is often passed by mistake where its jaxpr is expected.
            what = f"{type(self).__name__} has no {name}"
            if name in Jaxpr.__slots__ or hasattr(Jaxpr, name):
                what += ": it is a program and its constants; the program is `.jaxpr`"
            raise AttributeError(what)

    def __str__(self) -> str:
        return DISPLAY.closed(self)

    __repr__ = __str__
    pretty_print = pretty_print

    def _repr_html_(self) -> str | None:
        return drawn(self.jaxpr)
