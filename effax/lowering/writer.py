"""The writer, into which a lowering rule writes one equation, and the templates made of it.

A rule runs once for each primitive and operand types. Its text is cached as a template, so every
other equation with the same primitive and types costs one formatting of a string.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from pyrsistent import PMap, pmap

from effax.ir.build import typing_of
from effax.ir.dtypes import INT32
from effax.ir.errors import LoweringError
from effax.ir.families import FamilyTable
from effax.ir.primitive import Primitive, Value
from effax.ir.syntax import Jaxpr, Lit, Scalar
from effax.ir.types import ArrayType, Shape, array_type
from effax.lazy.dataclasses import dataclass
from effax.lowering import xla
from effax.lowering.custom_calls import custom_call
from effax.lowering.mlir_text import constant, tensor
from effax.lowering.subbyte import OnBytes, byte_type, from_bytes, has_subbytes, to_bytes

HostCall = Callable[..., Sequence[Value]]
"""A function of NumPy arrays."""

FIRST_DEVICE: Final = "  sdy.mesh @first = <[], device_ids=[0]>\n"
"""The mesh of the device on which a call with a side effect runs."""

TOKEN: Final = array_type((), INT32)
"""The type of the token, which represents all side effects so far; its value is not used."""

P = TypeVar("P", bound=Primitive)
P_contra = TypeVar("P_contra", bound=Primitive, contravariant=True)
Name = str | int
Pick = Callable[[tuple[object, ...]], object]

_MARK: Final = "\0"
"""The delimiter of a placeholder for a name in the text of a template."""


class Val(NamedTuple):
    """An SSA value while a rule writes.

    Attributes:
        name: its name in the text, with ``%``.
        type: its type.
        literal: whether it is a scalar literal of the program, which is broadcast for free.
    """

    name: str
    type: ArrayType
    literal: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def shape(self) -> Shape:
        """The shape."""
        return self.type.shape

    @property
    def text(self) -> str:
        """The type as text."""
        return tensor(self.type)


@dataclass(frozen=True, slots=True)
class AfterToken:
    """A function that takes a token before its arguments, and returns it before its results."""

    function: HostCall

    def __call__(self, token: Value, *args: Value) -> Sequence[Value]:
        return (token, *self.function(*args))


class LoweringRule(Protocol[P_contra]):
    """A rule that writes an equation and returns its results."""

    def __call__(self, w: Writer, prim: P_contra, ins: Sequence[Val], /) -> Sequence[Val]: ...


@dataclass(frozen=True)
class Expansion(Generic[P]):
    """A rule that returns a jaxpr of other primitives, which is called as a function."""

    jaxpr: Callable[[P, tuple[ArrayType, ...]], Jaxpr]


Rule: TypeAlias = LoweringRule[Primitive] | Expansion[Primitive]
"""An entry of the rules."""


class HasLowering(Primitive):
    """A primitive that declares its own lowering."""

    __slots__ = ()

    @abstractmethod
    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        """Write an equation and return its results."""


def _own(w: Writer, prim: Primitive, ins: Sequence[Val]) -> Sequence[Val]:
    return cast(HasLowering, prim).lower(w, ins)


@dataclass(frozen=True, eq=False)
class LoweringRules:
    """An immutable map from primitives to lowering rules."""

    rules: PMap[type[Primitive], Rule] | FamilyTable[Rule]

    def of(self, prim: Primitive) -> Rule:
        """Return the primitive's rule here, else its own. Raise LoweringError if it has neither."""
        found = self.rules.get(type(prim))
        if found is None:
            if isinstance(prim, HasLowering):
                return _own
            raise LoweringError(
                f"{prim.name} has no lowering rule",
                remedy="extend the rules: `rules.extend(Prim, rule)`",
            )
        return found

    def extend(self, prim: type[P], rule: LoweringRule[P] | Expansion[P]) -> LoweringRules:
        """Return the rules with the rule of one more primitive, which replaces an existing one."""
        found = cast("LoweringRule[Primitive]", rule)  # looked up by type(prim)
        return LoweringRules(self.rules.set(prim, found))

    def union(self, other: LoweringRules) -> LoweringRules:
        """Return the rules of both; those of ``other`` take precedence."""
        return LoweringRules(self.rules.update(other.rules))


NO_RULES: Final = LoweringRules(pmap())


class Splat(NamedTuple):
    """A constant that a template uses: a literal, or literal operand ``what``, broadcast."""

    what: int | Lit
    type: ArrayType


class TextTemplate(NamedTuple):
    """The text of an equation, written once for its primitive and operand types.

    It is instantiated with names (without ``%``): of the results, of the operands, of ``splats``.

    Attributes:
        text: a format, with ``%s`` for each name.
        pick: selects the names in the order of ``text``; None if all names occur in order.
        splats: constants of the function that the equation uses.
        aliases: results that equal one of the names: (result, position of the name).
        direct: whether there is one result, and neither splats nor aliases.
    """

    text: str
    pick: Pick | None
    splats: tuple[Splat, ...]
    aliases: tuple[tuple[int, int], ...]
    direct: bool


class Writer:
    """The text of one equation while a rule writes it.

    ``divided`` is true in a module for several devices, over which the compiler divides arrays;
    ``each_device`` while an equation is for one of them.
    """

    __slots__ = (
        "_closed",
        "_function",
        "_lines",
        "_n_locals",
        "_rules",
        "_splats",
        "_symbol",
        "_token",
        "divided",
        "each_device",
        "ins",
    )

    def __init__(
        self,
        rules: LoweringRules,
        symbol: Callable[[Jaxpr, str], str],
        operands: Sequence[tuple[ArrayType, bool]],
        function: Callable[[HostCall], int] | None = None,
        divided: bool = False,
    ) -> None:
        self._rules = rules
        self.divided: bool = divided
        self.each_device: bool = False
        self._symbol = symbol
        self._function = function
        self._token: Val | None = None
        self._lines: list[str] = []
        self._splats: list[Splat] = []
        self._n_locals = 0
        self._closed = False
        self.ins: tuple[Val, ...] = tuple(
            [
                self._splat(Splat(i, type_), True) if literal else _marked(f"i{i}", type_)
                for i, (type_, literal) in enumerate(operands)
            ]
        )

    def fresh(self, type_: ArrayType) -> Val:
        """Return a value with a fresh name, such as an argument of a region."""
        self._n_locals += 1
        return _marked(f"t{self._n_locals}", type_)

    def op(self, text: str, *types: ArrayType) -> tuple[Val, ...]:
        """Write an operation, from its right-hand side and the types of its results."""
        outs = tuple([self.fresh(t) for t in types])
        self._lines.append(f"{', '.join([v.name for v in outs])} = {text}")
        return outs

    def op1(self, text: str, type_: ArrayType) -> Val:
        """Write an operation of one result."""
        return self.op(text, type_)[0]

    def raw(self, text: str) -> None:
        """Write an operation whose text names its results, by names of fresh values."""
        self._lines.append(text)

    def region(
        self,
        types: Sequence[ArrayType],
        body: Callable[..., Sequence[Val]],
        captures: bool = False,
    ) -> str:
        """Return the text of a region.

        Args:
            types: the types of its arguments.
            body: takes one value for each type, and returns the results of the region.
            captures: whether the region may use values defined outside, as control flow may.
        """
        args, lines = self.block(types, body, captures, "stablehlo.return")
        head = [f"^bb0({args}):"] if args else []
        return "\n".join(["{", *head, *lines, "}"])

    def block(
        self,
        types: Sequence[ArrayType],
        body: Callable[..., Sequence[Val]],
        captures: bool,
        terminator: str,
    ) -> tuple[str, list[str]]:
        """Return the arguments of a region, and its lines with a terminator; as :meth:`region`."""
        outer, self._lines = self._lines, []
        closed, self._closed = self._closed, not captures
        args = [self.fresh(t) for t in types]
        outs = body(*args)
        self._closed = closed
        inner, self._lines = self._lines, outer
        lines = [*inner, returning(terminator, outs)]
        return ", ".join([f"{v}: {v.text}" for v in args]), [f"  {line}" for line in lines]

    def constant(self, value: Scalar, type_: ArrayType) -> Val:
        """Return an array whose elements all equal ``value``."""
        if self._closed:
            return self.op1(constant(value, type_), type_)
        literal = Lit(value, type_.update(shape=(), weak=False))
        return self._splat(Splat(literal, type_.strong()))

    def repeat(self, scalar: Val, shape: Shape) -> Val:
        """Return the scalar broadcast to a shape."""
        if scalar.shape == shape:
            return scalar
        type_ = scalar.type.update(shape=shape)
        if scalar.literal:
            return self._splat(Splat(self.ins.index(scalar), type_))
        text = (
            f"stablehlo.broadcast_in_dim {scalar}, dims = [] : ({scalar.text}) -> {tensor(type_)}"
        )
        return self.op1(text, type_)

    def call(
        self,
        jaxpr: Jaxpr,
        ins: Sequence[Val],
        label: str,
        head: Callable[[str, str], str] = lambda symbol, names: f"func.call @{symbol}({names})",
    ) -> tuple[Val, ...]:
        """Call a jaxpr as a function, which is written once for each module.

        Args:
            jaxpr: the program.
            ins: the operands.
            label: the name of the function.
            head: returns the text of the operation from its symbol and the names of the operands.
        """
        types = cast("tuple[ArrayType, ...]", jaxpr.out_types)
        if not types:
            return ()
        names = ", ".join([v.name for v in ins])
        taken = ", ".join([v.text for v in ins])
        given = ", ".join([tensor(t) for t in types])
        text = f"{head(self._symbol(jaxpr, label), names)} : ({taken}) -> ({given})"
        return self.op(text, *types)

    def host_call(
        self, function: HostCall, ins: Sequence[Val], types: Sequence[ArrayType]
    ) -> tuple[Val, ...]:
        """Call a function of NumPy arrays while the program runs.

        It is pure, unless the equation has a token (:meth:`token_call`): then it comes after all
        earlier calls, and is neither removed nor repeated.

        Args:
            function: takes one array for each operand, and returns one for each type.
            ins: the operands.
            types: the types of the results.
        """
        assert self._function is not None, "only a module may call Python functions"
        operands, results = [x.type for x in ins], list(types)
        if has_subbytes(operands) or has_subbytes(results):
            stored = self.host_call(
                OnBytes(function, tuple(operands)),
                [to_bytes(self.apply1, x) for x in ins],
                [byte_type(t) for t in types],
            )
            both = zip(stored, types, strict=True)
            return tuple([from_bytes(self.apply1, x, t) for x, t in both])
        if self._token is None:
            number = self._function(self._called(function, types))
            return self.op(_host_call(number, ins, types, None), *types)
        number = self._function(self._called(AfterToken(function), [TOKEN, *types]))
        once = self.divided and not self.each_device
        places = [_on_first([TOKEN, *types])] if once else []
        text = _host_call(number, [self._token, *ins], [TOKEN, *types], places)
        self._token, *outs = self.op(text, TOKEN, *types)
        return tuple(outs)

    def _called(self, function: HostCall, types: Sequence[ArrayType]) -> HostCall:
        """Return the function; on several devices, one that returns zeros where it raises."""
        if self.divided:
            return xla.Total(function, tuple(types))
        return function

    def token_call(self, prim: Primitive, token: Val, ins: Sequence[Val]) -> tuple[Val, ...]:
        """Write an equation with side effects, after ``token``.

        Returns the next token, and the results. A primitive without a rule is evaluated on the
        host.
        """
        before, self._token = self._token, token
        if type(prim) in self._rules.rules or isinstance(prim, HasLowering):
            outs = self.apply(prim, *ins)
        else:
            types = typing_of(prim, tuple([x.type for x in ins])).outs
            outs = self.host_call(prim.evaluate, ins, cast("tuple[ArrayType, ...]", types))
        after, self._token = self._token, before
        assert after is not None
        return (after, *outs)

    def apply(self, prim: Primitive, *ins: Val) -> Sequence[Val]:
        """Write an equation by the primitive's rule."""
        rule = self._rules.of(prim)
        if isinstance(rule, Expansion):
            jaxpr = rule.jaxpr(prim, tuple([v.type for v in ins]))
            return self.call(jaxpr, ins, prim.name)
        return rule(self, prim, ins)

    def apply1(self, prim: Primitive, *ins: Val) -> Val:
        """Write an equation of one result."""
        (out,) = self.apply(prim, *ins)
        return out

    def finish(self, outs: Sequence[Val]) -> TextTemplate:
        """Return the text as a template with these results."""
        n_names = len(outs) + len(self.ins)
        position = {f"i{i}": len(outs) + i for i in range(len(self.ins))}
        splats: list[Splat] = []

        def find(mark: str) -> int:
            if mark not in position:
                position[mark] = n_names + len(splats)
                splats.append(self._splats[int(mark[1:])])
            return position[mark]

        aliases: list[tuple[int, int]] = []
        for k, out in enumerate(outs):
            mark = out.name.split(_MARK)[1]
            if mark[0] == "t" and mark not in position:
                position[mark] = k
            else:
                aliases.append((k, find(mark)))
        text: list[str] = []
        order: list[int] = []
        body = "\n".join(self._lines).replace("%", "%%").replace("\n", "\n    ")
        for i, piece in enumerate(body.split(_MARK)):
            if i % 2 == 0:
                text.append(piece)
            elif piece[0] == "t" and piece not in position:
                # Ids are unique in a function: a local name is the first result's, with a suffix.
                text.append(f"t%s_{piece[1:]}")
                order.append(0)
            else:
                text.append("%s")
                order.append(find(piece))
        pick = None if order == list(range(n_names + len(splats))) else _picker(order)
        # A literal operand has no name, even if it is not used.
        direct = len(outs) == 1 and not self._splats and not aliases
        whole = f"    {''.join(text)}" if self._lines else ""
        return TextTemplate(whole, pick, tuple(splats), tuple(aliases), direct)

    def _splat(self, splat: Splat, literal: bool = False) -> Val:
        if splat not in self._splats:
            self._splats.append(splat)
        return _marked(f"s{self._splats.index(splat)}", splat.type, literal)


def _marked(mark: str, type_: ArrayType, literal: bool = False) -> Val:
    return Val(f"%{_MARK}{mark}{_MARK}", type_, literal)


def _on_first(types: Sequence[ArrayType]) -> str:
    """Return the attribute that places results on the first device."""
    each = ", ".join([f"<@first, [{', '.join(['{}'] * len(t.shape))}]>" for t in types])
    return f"sdy.sharding = #sdy.sharding_per_value<[{each}]>"


def _host_call(
    number: int, ins: Sequence[Val], types: Sequence[ArrayType], effect: Sequence[str] | None
) -> str:
    """Return a call of the module's Python function of that index, on row-major arrays.

    One with a side effect has attributes, or none; ``effect`` is None for another.
    """
    operands = [(x.name, x.type) for x in ins]
    options = [f"index = {number} : ui64"]
    return custom_call(
        xla.HOST_TARGET,
        operands,
        types,
        options,
        has_side_effects=effect is not None,
        attributes=effect or (),
    )


def _picker(order: Sequence[int]) -> Pick:
    # `itemgetter` of one index returns no tuple.
    return itemgetter(*order) if len(order) > 1 else lambda names: tuple([names[i] for i in order])


def returning(operation: str, outs: Sequence[Val]) -> str:
    """Return a terminator that returns these values."""
    if not outs:
        return operation
    names = ", ".join([v.name for v in outs])
    return f"{operation} {names} : {', '.join([v.text for v in outs])}"
