"""Rules of transformations in JAX's form, run as rules of effax's passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from effax.api.operations import BuiltIn, jax_parameters, operation
from effax.arrays import creation, shapes
from effax.arrays.array import Array
from effax.arrays.binding import atom_in, handle
from effax.arrays.conversion import as_value
from effax.drop_in.primitive import Declared, Rule, not_registered, results_of
from effax.drop_in.zeros import UndefinedPrimal, Zero
from effax.extend.rules import width_of
from effax.ir.build import Builder, typing_of
from effax.ir.dtypes import FLOAT0
from effax.ir.edit.constants import constant
from effax.ir.errors import BadRule
from effax.ir.operation import Operation
from effax.ir.primitive import Primitive
from effax.ir.prims import ConvertElementType, While
from effax.ir.state import clear_caches
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.trace import Trace, tracing
from effax.ir.types import ArrayType, Type, tangent_type
from effax.transforms.framework.pass_ import register_default_rules, rules_or_default
from effax.transforms.framework.rules import BatchBuilder, BatchOut, JvpOut, Linear, RuleBuilder

if TYPE_CHECKING:
    RuleDict = dict[Operation, Rule]
else:
    RuleDict = dict


class RuleTable(RuleDict):
    """The registered rules of one transformation, by primitive.

    Setting a rule of a primitive that was used before drops the cached results of programs.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind: str = kind

    def __setitem__(self, prim: Operation, rule: Rule) -> None:
        if isinstance(prim, BuiltIn):
            _replace_rule(prim.cls, self.kind)
        super().__setitem__(prim, rule)
        if isinstance(prim, Declared):
            prim.changed()


def _replace_rule(cls: type[Primitive], kind: str) -> None:
    """Run a registered rule in the place of effax's for a built-in primitive, from now on."""
    if cls is While:
        raise BadRule("the rules of while cannot be replaced: its regions share their constants")
    rules = rules_or_default(None)
    own = rules.rules[cls]
    match kind:
        case "jvp":
            own = replace(own, jvp=jvp)
        case "transpose":
            own = replace(own, transpose=transpose)
        case _:
            own = replace(own, batch=batch)
    register_default_rules(rules.extend(cls, own))
    clear_caches()


primitive_jvps: Final = RuleTable("jvp")
primitive_transposes: Final = RuleTable("transpose")
primitive_batchers: Final = RuleTable("batch")
axis_primitive_batchers: Final = RuleTable("batch")
fancy_primitive_batchers: Final = RuleTable("batch")


class AxisData:
    """The batch axis, as batching rules of JAX receive it.

    Attributes:
        size: its length.
        name: its name, if the equation uses it in a collective.
    """

    def __init__(self, size: int, name: str | None) -> None:
        self.size: int = size
        self.name: str | None = name
        self.spmd_name: None = None
        self.explicit_mesh_axis: None = None


Values = Sequence[object]


def traced(
    function: Callable[..., Values], types: Sequence[Type], label: str
) -> tuple[Jaxpr, list[bool]]:
    """Return the program of a function on traced arrays, and which of its results are None.

    Arrays that it closes over are constants of the program. Errors of the function are raised.
    """
    trace = Trace(handle, label, None)
    with width_of(types), tracing(trace):
        args = [trace.bind(t, None, f"argument {i}") for i, t in enumerate(types)]
        found = list(function(*args))
        outs = [atom_in(trace, as_value(x, f"a result of {label}")) for x in found if x is not None]
    jaxpr, consts = trace.finish(outs)
    return _with_constants(jaxpr, consts), [x is None for x in found]


def _with_constants(jaxpr: Jaxpr, consts: Sequence[object]) -> Jaxpr:
    if not consts:
        return jaxpr
    b = Builder(jaxpr.in_types[len(consts) :])
    arrays = [as_value(c, "a constant") for c in consts]
    made = [constant(b, x.numpy(), x.type) for x in arrays]
    return b.finish(b.inline_jaxpr(jaxpr, [*made, *b.binders]))


def _inlined(
    b: Builder, function: Callable[..., Values], atoms: Sequence[Atom], label: str
) -> list[Atom | None]:
    """Trace a function, and inline its program at ``atoms``."""
    jaxpr, missing = traced(function, [a.type for a in atoms], label)
    made = iter(b.inline_jaxpr(jaxpr, atoms))
    return [None if none else next(made) for none in missing]


def aval_of(type_: Type) -> ArrayType:
    """Return the type of an array operand. Raise BadRule for a reference."""
    if isinstance(type_, ArrayType):
        return type_
    raise BadRule("a primitive of JAX's form takes a reference", "an array", str(type_))


class AppliedTo(NamedTuple):
    """An application, as rules in JAX's form receive it."""

    operation: Operation
    params: Mapping[str, object]

    def listed(self, found: object, what: str) -> list[object]:
        """Return what a rule returned for the results as a list."""
        return results_of(self.operation, found, what)


def _call(prim: Primitive) -> AppliedTo:
    return AppliedTo(operation(prim), jax_parameters(prim))


def rule_for(table: RuleTable, prim: Operation, what: str, how: str) -> Rule:
    """Return a registered rule. Raise NotRegistered if there is none."""
    found = table.get(prim)
    if found is None:
        raise not_registered(what, prim.name, how)
    return found


def jvp(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Run the registered derivative."""
    how = "`ad.primitive_jvps[prim] = rule`"
    call = _call(prim)
    rule = rule_for(primitive_jvps, call.operation, "Differentiation rule", how)
    label = f"the jvp rule of {prim.name}"
    types = typing_of(prim, tuple([a.type for a in primals])).outs
    zeros = [Zero(aval_of(a.type).to_tangent_aval()) for a in primals]
    n = len(primals)

    def run(*args: object) -> Values:
        rest = iter(args[n:])
        moved = [z if t is None else next(rest) for z, t in zip(zeros, tangents, strict=True)]
        found = rule(list(args[:n]), moved, **call.params)
        outs, dots = _pair(label, found)
        dots = [_nonzero(x) for x in call.listed(dots, "tangents")]
        return [*call.listed(outs, "results"), *dots]

    made = _inlined(b, run, [*primals, *[t for t in tangents if t is not None]], label)
    _check_count(label, "results and tangents", made, 2 * len(types))
    outs = [fitted(b, label, x, t) for x, t in zip(made, types, strict=False)]
    dots = [
        None if x is None else fitted(b, label, x, tangent_type(t))
        for x, t in zip(made[len(types) :], types, strict=True)
    ]
    return JvpOut(outs, dots)


def _pair(label: str, found: object) -> tuple[object, object]:
    if isinstance(found, tuple | list) and len(found) == 2:
        return found[0], found[1]
    raise BadRule(f"{label} does not return a pair", found=type(found).__name__)


T = TypeVar("T")


def _nonzero(x: T) -> T | None:
    """Return a tangent or cotangent; None for a zero."""
    dtype: object = getattr(x, "dtype", None)
    return None if type(x) is Zero or dtype == FLOAT0 else x


def _check_count(label: str, what: str, found: Sequence[object], count: int) -> None:
    if len(found) != count:
        raise BadRule(f"{label}: wrong number of {what}", str(count), str(len(found)))


def fitted(b: Builder, label: str, atom: Atom | None, type_: Type) -> Atom:
    """Convert a result to the declared weakness. Raise BadRule for another type."""
    found = None if atom is None else atom.type
    if atom is not None and found == type_:
        return atom
    if (
        atom is None
        or not isinstance(found, ArrayType)
        or not isinstance(type_, ArrayType)
        or found.strong() != type_.strong()
    ):
        raise BadRule(f"{label} returns another type", str(type_), str(found))
    if isinstance(atom, Lit):
        return Lit(atom.value, type_)
    return b(ConvertElementType(type_.dtype, type_.weak), atom)


def transpose(
    b: RuleBuilder,
    prim: Primitive,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    """Run the registered transpose rule."""
    if all(ct is None for ct in cts):
        return [None for _ in ins]
    how = "`ad.primitive_transposes[prim] = rule`"
    call = _call(prim)
    rule = rule_for(primitive_transposes, call.operation, "Transpose rule (for reverse-mode "
                    "differentiation)", how)  # fmt: skip
    label = f"the transpose rule of {prim.name}"
    types = typing_of(prim, tuple([x.type for x in ins])).outs
    known = [x for x in ins if not isinstance(x, Linear)]
    given = [ct for ct in cts if ct is not None]

    def run(*args: object) -> Values:
        rest = iter(args)
        operands = [
            UndefinedPrimal(aval_of(x.type)) if isinstance(x, Linear) else next(rest) for x in ins
        ]
        found_cts = [
            Zero(aval_of(t).to_tangent_aval()) if ct is None else next(rest)
            for ct, t in zip(cts, types, strict=True)
        ]
        ct = found_cts if call.operation.multiple_results else found_cts[0]
        found = rule(ct, *operands, **call.params)
        if not isinstance(found, list | tuple):
            raise BadRule(f"{label} returns no list of cotangents", found=type(found).__name__)
        return [_nonzero(x) for x in found]

    made = _inlined(b, run, [*known, *given], label)
    _check_count(label, "cotangents", made, len(ins))
    return [
        fitted(b, label, out, tangent_type(x.type))
        if out is not None and isinstance(x, Linear)
        else None
        for out, x in zip(made, ins, strict=True)
    ]


def batch(
    b: BatchBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Run the registered batching rule."""
    call = _call(prim)
    rule = _batcher(call.operation, size, b.axis)
    label = f"the batching rule of {prim.name}"
    dims = [0 if has else None for has in batched]
    flags: list[bool] = []

    def run(*args: object) -> Values:
        outs, out_dims = _pair(label, rule(list(args), dims, **call.params))
        listed = call.listed(outs, "results")
        places = call.listed(out_dims, "batch axes")
        _check_count(label, "batch axes", places, len(listed))
        flags[:] = [place is not None for place in places]
        return [_at_front(x, place) for x, place in zip(listed, places, strict=True)]

    found = _inlined(b, run, ins, label)
    elements = [_element(a.type, has) for a, has in zip(ins, batched, strict=True)]
    types = typing_of(prim, tuple(elements)).outs
    _check_count(label, "results", found, len(types))
    outs = [
        fitted(b, label, x, _stacked(t, size) if flag else t)
        for x, t, flag in zip(found, types, flags, strict=True)
    ]
    return BatchOut(outs, flags)


def _batcher(declared: Operation, size: int, axis: str | None) -> Rule:
    if declared in fancy_primitive_batchers:
        fancy, data = fancy_primitive_batchers[declared], AxisData(size, axis)
        return lambda args, dims, **params: fancy(data, args, dims, **params)
    if declared in axis_primitive_batchers:
        own = axis_primitive_batchers[declared]
        return lambda args, dims, **params: own(size, axis, None, args, dims, **params)
    how = "`batching.primitive_batchers[prim] = rule`"
    return rule_for(primitive_batchers, declared, "Batching rule", how)


def _at_front(x: object, place: object) -> object:
    if place is None or place == 0:
        return x
    assert isinstance(place, int)
    return shapes.moveaxis(as_value(x), place, 0)


def _element(type_: Type, batched: bool) -> Type:
    aval = aval_of(type_)
    return aval.update(shape=aval.shape[1:]) if batched else aval


def _stacked(type_: Type, size: int) -> Type:
    aval = aval_of(type_)
    return aval.update(shape=(size, *aval.shape))


def zeros_of(aval: ArrayType) -> Array:
    """Return zeros of a type; ``float0`` for one without tangents."""
    if aval.dtype == FLOAT0:
        return as_value(np.zeros(aval.shape, FLOAT0))
    return creation.zeros(aval.shape, aval.dtype)
