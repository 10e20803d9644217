"""Lower an effect-free jaxpr to the text of a StableHLO module.

    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }

becomes::

    module @main {
      func.func public @main(%0: tensor<3xf32>) -> (tensor<3xf32>) {
        %c0 = stablehlo.constant dense<2.0> : tensor<3xf32>
        %1 = stablehlo.sine %0 : tensor<3xf32>
        %2 = stablehlo.multiply %1, %c0 : tensor<3xf32>
        return %2 : tensor<3xf32>
      }
    }

A variable keeps its number. Each subjaxpr becomes one function, written once for all of its calls;
functions are looked up by the value of the jaxpr.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

from returns.result import Failure, Result, Success

from effax.effects import ArgIndex, Row
from effax.ir.errors import EffaxError, LoweringError
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, has_side_effects
from effax.ir.text.printer import eqn_str
from effax.ir.types import ArrayType, RefType, Type
from effax.lazy.dataclasses import dataclass
from effax.lowering.branches import in_place
from effax.lowering.layout import DONOR, DeviceLayout, Meshes
from effax.lowering.mlir_text import constant, tensor
from effax.lowering.ordering import ordered
from effax.lowering.physical import physical
from effax.lowering.rules.default import DEFAULT
from effax.lowering.spmd import device_rules
from effax.lowering.subbyte import in_bytes
from effax.lowering.tokens import TokenCall
from effax.lowering.writer import (
    FIRST_DEVICE,
    HostCall,
    LoweringRules,
    Name,
    Splat,
    TextTemplate,
    Writer,
)


@dataclass(frozen=True, slots=True)
class Module:
    """A StableHLO module.

    Attributes:
        text: the module; its function ``main`` is the program.
        in_types: the types of the arguments of ``main``.
        out_types: the types of its results.
        aliases: (argument, result) pairs that share a buffer: the argument is donated.
        host_calls: the Python functions that it calls, by the indices in the text.
    """

    text: str
    in_types: tuple[ArrayType, ...]
    out_types: tuple[ArrayType, ...]
    aliases: tuple[tuple[int, int], ...]
    host_calls: tuple[HostCall, ...] = ()


def lower(
    jaxpr: Jaxpr,
    *,
    name: str = "main",
    aliases: Sequence[tuple[int, int]] = (),
    rules: LoweringRules = DEFAULT,
    layout: DeviceLayout | None = None,
) -> Result[Module, LoweringError]:
    """Write an effect-free program as a StableHLO module. Equal inputs have equal text.

    Type:     a -> b  =>  text
    Effects:  none are allowed: discharge references first, and order side effects by
              ``effax.lowering.tokens``.
    Laws:     tests/laws/test_lowering.py
    Raises:   LoweringError (as a Failure): the program has effects, a primitive has no lowering
              rule, XLA does not support a dtype, or an alias does not fit.

    Args:
        jaxpr: the program; its constants are arguments too. Random keys are passed as their words.
        name: the name of the module, for profiles and dumps.
        aliases: (argument, result) pairs of equal type. The argument's buffer is donated: the
            result is written into it, and the caller must not use the argument again.
        rules: the lowering rules.
        layout: the placement of arguments and results, for several devices. An alias of a result
            whose placement the compiler chooses is a donation to any result.
    """
    try:
        return Success(_Lowering(rules, layout).module(jaxpr, name, tuple(aliases)))
    except LoweringError as error:
        return Failure(error)
    except EffaxError as error:
        wrapped = LoweringError(error.what, error.expected, error.found, error.remedy)
        wrapped.at(error.equation, error.source)
        wrapped.__cause__ = error
        return Failure(wrapped)


_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.]+")


def _symbol(name: str) -> str:
    """Return the name as an MLIR symbol that needs no quotes."""
    plain = _NOT_IN_NAMES.sub("_", name).strip("_")
    return plain if plain and not plain[0].isdigit() else f"f{plain}"


class _Lowering:
    """The state of one run of :func:`lower`: functions, and templates by primitive and types."""

    def __init__(self, rules: LoweringRules, layout: DeviceLayout | None = None) -> None:
        self.meshes = Meshes()
        self.layout = layout
        self.divided = layout is not None and len(layout.devices) > 1
        self.rules = rules if layout is None else device_rules(rules, self.meshes)
        self.templates: dict[tuple[object, ...], TextTemplate] = {}
        self.symbols: dict[Jaxpr, str] = {}
        self.waiting: list[Jaxpr] = []
        self.host_calls: dict[HostCall, int] = {}

    def module(self, jaxpr: Jaxpr, name: str, aliases: tuple[tuple[int, int], ...]) -> Module:
        jaxpr = in_bytes(physical(jaxpr))
        in_types, out_types = _arrays(jaxpr, jaxpr.in_types), _arrays(jaxpr, jaxpr.out_types)
        _check_aliases(jaxpr, in_types, out_types, aliases)
        donated = dict(aliases)
        jaxpr = in_place(jaxpr)
        # XLA may not overwrite the buffer of an argument that is not donated.
        fixed = frozenset([v.id for i, v in enumerate(jaxpr.binders) if i not in donated])
        notes = self.attributes(jaxpr, donated)
        main = self.function(ordered(jaxpr, fixed), "public @main", *notes)
        parts = [main]
        # Lowering a function may add others to the list; a list, so that depth costs no stack.
        for inner in self.waiting:
            head = f"private @{self.symbols[inner]}"
            parts.append(self.function(ordered(in_place(inner)), head, {}, {}))
        meshes = self.meshes.text()
        if self.divided and self.host_calls:
            meshes += FIRST_DEVICE
        parts = [f"module @{_symbol(name)} {{\n", meshes, *parts, "}\n"]
        return Module("".join(parts), in_types, out_types, aliases, tuple(self.host_calls))

    def attributes(
        self, jaxpr: Jaxpr, donated: dict[int, int]
    ) -> tuple[dict[int, str], dict[int, str]]:
        """Return the attributes of the arguments and results of ``main``, by position."""
        ins = {i: [f"tf.aliasing_output = {k} : i32"] for i, k in donated.items()}
        outs: dict[int, list[str]] = {}
        if self.layout is not None and len(self.layout.devices) > 1:
            for i, k in donated.items():
                if self.layout.outs[k] is None:
                    ins[i] = [DONOR]
            ends = (
                (self.layout.ins, jaxpr.in_types, ins),
                (self.layout.outs, jaxpr.out_types, outs),
            )
            for places, types, notes in ends:
                for i, (place, type_) in enumerate(zip(places, types, strict=True)):
                    if place is not None:
                        text = self.meshes.attribute(place, len(type_.shape))
                        notes.setdefault(i, []).append(text)
        return _braced(ins), _braced(outs)

    def symbol(self, jaxpr: Jaxpr, label: str) -> str:
        """Return the name of the function of a subjaxpr."""
        found = self.symbols.get(jaxpr)
        if found is None:
            found = self.symbols[jaxpr] = f"{_symbol(label)}_{len(self.symbols)}"
            self.waiting.append(jaxpr)
        return found

    def host_call(self, function: HostCall) -> int:
        """Return the index of a Python function that the module calls."""
        return self.host_calls.setdefault(function, len(self.host_calls))

    def function(
        self, jaxpr: Jaxpr, head: str, attributes: dict[int, str], of_results: dict[int, str]
    ) -> str:
        in_types, out_types = _arrays(jaxpr, jaxpr.in_types), _arrays(jaxpr, jaxpr.out_types)
        body = _Function(self, jaxpr)
        body.equations()
        taken = [
            f"%{v.id}: {tensor(t)}{attributes.get(i, '')}"
            for i, (v, t) in enumerate(zip(jaxpr.binders, in_types, strict=True))
        ]
        given = ", ".join([f"{tensor(t)}{of_results.get(i, '')}" for i, t in enumerate(out_types)])
        result = body.result()
        lines = [
            f"  func.func {head}({', '.join(taken)}) -> ({given}) {{",
            *body.constants.values(),
            *body.lines,
            result,
            "  }\n",
        ]
        return "\n".join(lines)

    def template(self, eqn: Eqn) -> TextTemplate:
        """Return the text of all equations with this primitive and these operand types."""
        try:
            operands = [(a.type, isinstance(a, Lit)) for a in eqn.ins]
            types = cast("list[tuple[ArrayType, bool]]", operands)
            w = Writer(self.rules, self.symbol, types, self.host_call, self.divided)
            outs = w.apply(eqn.prim, *w.ins)
        except EffaxError as error:
            source = None if eqn.source is None else str(eqn.source)
            raise error.at(eqn_str(eqn), source) from None
        return w.finish(outs)


def _braced(notes: dict[int, list[str]]) -> dict[int, str]:
    return {i: f" {{{', '.join(texts)}}}" for i, texts in notes.items()}


class _Function:
    """The text of one function while it is written. Names are written without ``%``."""

    def __init__(self, lowering: _Lowering, jaxpr: Jaxpr) -> None:
        self.lowering = lowering
        self.jaxpr = jaxpr
        self.names: list[Name] = list(range(jaxpr.size))
        self.lines: list[str] = []
        self.constants: dict[str, str] = {}
        self.splats: dict[tuple[Lit, ArrayType], str] = {}

    def equations(self) -> None:
        """Write every equation."""
        templates = self.lowering.templates
        names, lines = self.names, self.lines
        append, known = lines.append, templates.get
        for eqn in self.jaxpr.eqns:
            prim, ins, outs, effects, _ = eqn
            # Literal operands are part of the key: a template broadcasts them as constants.
            key = (prim, *[(a.type,) if type(a) is Lit else a.type for a in ins])
            found = known(key)
            if found is None:
                if effects.effects:
                    _check_effects(eqn)
                found = templates[key] = self.lowering.template(eqn)
            text, pick, _, _, direct = found
            if direct:
                given = (outs[0].id, *[names[a.id] for a in ins])  # type: ignore[union-attr]  # no literals
                append(text % (given if pick is None else pick(given)))
            else:
                self.indirect(found, eqn)

    def indirect(self, template: TextTemplate, eqn: Eqn) -> None:
        """Write an equation that uses constants, or has operands as results."""
        given: list[Name] = [v.id for v in eqn.outs]
        given += [self.names[a.id] if not isinstance(a, Lit) else "" for a in eqn.ins]
        given += [self.splat(s, eqn) for s in template.splats]
        if template.text and eqn.outs:
            pick = template.pick
            self.lines.append(
                template.text % (tuple(given) if pick is None else pick(tuple(given)))
            )
        for k, position in template.aliases:
            self.names[eqn.outs[k].id] = given[position]

    def splat(self, splat: Splat, eqn: Eqn) -> str:
        """Return the name of a constant."""
        what, type_ = splat
        literal = cast(Lit, eqn.ins[what]) if isinstance(what, int) else what
        return self.literal(literal, type_)

    def literal(self, literal: Lit, type_: ArrayType) -> str:
        """Return the name of the literal, broadcast by a constant at the head of the function."""
        found = self.splats.get((literal, type_))
        if found is None:
            text = constant(literal.value, type_)
            name = f"c{len(self.constants)}"
            line = self.constants.setdefault(text, f"    %{name} = {text}")
            found = line[5 : line.index(" ", 5)]
            self.splats[literal, type_] = found
        return found

    def result(self) -> str:
        """Return the terminator of the function."""
        outs = self.jaxpr.outs
        if not outs:
            return "    return"
        names = ", ".join([f"%{self.name(a)}" for a in outs])
        types = ", ".join([tensor(t) for t in _arrays(self.jaxpr, self.jaxpr.out_types)])
        return f"    return {names} : {types}"

    def name(self, atom: Atom) -> Name:
        if isinstance(atom, Lit):
            return self.literal(atom, atom.type)
        return self.names[atom.id]


THREAD: Final = "order its side effects by a token first (`tokens.thread_token`)"
DISCHARGE: Final = "discharge the program first, so that references are arrays in and out"


def _arrays(jaxpr: Jaxpr, types: Sequence[Type]) -> tuple[ArrayType, ...]:
    """Return the types as array types. Raise LoweringError for a reference."""
    for i, type_ in enumerate(types):
        if isinstance(type_, RefType):
            raise LoweringError(
                f"a program to lower has no references, but {jaxpr.name_of(i)} is one",
                expected="arrays",
                found=str(type_),
                remedy=DISCHARGE,
            )
    return cast("tuple[ArrayType, ...]", tuple(types))


def _check_effects(eqn: Eqn) -> None:
    """Raise LoweringError unless all effects are side effects, ordered by a token."""
    row: Row[ArgIndex] = eqn.effects
    is_ordered = type(eqn.prim) is TokenCall or (eqn.prim.subjaxprs() and eqn.outs)
    if len(row.side_effects) == len(row) and is_ordered:
        return
    error = LoweringError(
        f"a program to lower has no effects, but {eqn.prim.name} has some",
        expected="no effects",
        found=str(row),
        remedy=THREAD if has_side_effects(row) else DISCHARGE,
    )
    raise error.at(eqn_str(eqn), None if eqn.source is None else str(eqn.source))


def _check_aliases(
    jaxpr: Jaxpr,
    in_types: Sequence[ArrayType],
    out_types: Sequence[ArrayType],
    aliases: Sequence[tuple[int, int]],
) -> None:
    """Raise LoweringError unless aliases pair equal types, and no end is in two of them."""
    ends = ([i for i, _ in aliases], [k for _, k in aliases])
    once = all(len(set(side)) == len(side) for side in ends)
    for i, k in aliases:
        inside = 0 <= i < len(in_types) and 0 <= k < len(out_types)
        if not inside or tensor(in_types[i]) != tensor(out_types[k]) or not once:
            raise LoweringError(
                f"argument {i} and result {k} cannot share a buffer",
                expected="pairs of an argument and a result of equal type, each in one pair",
                found=(
                    f"{jaxpr.name_of(i)}: {in_types[i]} and {out_types[k]}, of {tuple(aliases)}"
                    if inside
                    else f"{len(in_types)} arguments, {len(out_types)} results"
                ),
            )
