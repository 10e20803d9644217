"""Rules that users write with ``effax.numpy``, as rules of the passes: traced, checked, inlined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import ReferenceType

import numpy as np

from effax.api.custom.call_site import MAX_LITERAL_ELEMENTS, literal_array
from effax.arrays.array import Array
from effax.arrays.binding import atom_in, handle
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import Ref
from effax.extend.guard import blamed, listed, paired, shown, wide_remedy
from effax.ir.build import Builder
from effax.ir.errors import BadRule, LoweringError, NotApplicable
from effax.ir.prims import ConvertElementType
from effax.ir.source import defined_at
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.trace import Trace, tracing
from effax.ir.types import ArrayType, RefType, Shape, Type, ref_type, tangent_type
from effax.lowering.program import without_refs
from effax.lowering.writer import Val, Writer
from effax.transforms.framework.rules import (
    BatchBuilder,
    BatchOut,
    DischargeOut,
    JvpOut,
    RuleBuilder,
)
from effax.transforms.framework.rules import Linear as LinearAtom
from effax.tree import PyTree

if TYPE_CHECKING:
    from effax.extend.primitive import ArrayPrimitive, RefPrimitive

Handles = Sequence[PyTree]
"""Traced arrays and references."""


class Linear(NamedTuple):
    """An argument in which an application is linear, while it is transposed.

    Attributes:
        type: its type.
        ref: where its cotangent accumulates, if that is a reference: ``ref[...] += ct`` in place
            of giving it. For an argument that is a reference it always is one.
        wanted: whether anybody looks at the cotangent.
    """

    type: Type
    ref: Ref | None
    wanted: bool = True


def jvp(
    b: RuleBuilder,
    prim: ArrayPrimitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """``prim.jvp``, with results of the types that the primitive has."""
    label = f"the jvp rule of {prim.name}"
    types = prim.typing(*[a.type for a in primals]).outs
    moved = [t for t in tangents if t is not None]
    n = len(primals)

    def rule(*held: PyTree) -> Handles:
        rest = iter(held[n:])
        given = prim.jvp(held[:n], [None if t is None else next(rest) for t in tangents])
        outs, dots = paired(label, "results and of their tangents", given)
        return [
            *listed(label, "results", outs, len(types)),
            *listed(label, "tangents", dots, len(types)),
        ]

    made = _inlined(b, rule, [*primals, *moved], label, prim.jvp)
    outs = [_fitted(b, prim, "jvp", "result", x, t) for x, t in zip(made, types, strict=False)]
    dots = [
        None if x is None else _fitted(b, prim, "jvp", "tangent", x, tangent_type(t))
        for x, t in zip(made[len(types) :], types, strict=True)
    ]
    return JvpOut(outs, dots)


def transpose(
    b: RuleBuilder,
    prim: ArrayPrimitive,
    ins: Sequence[Atom | LinearAtom],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    """``prim.transpose``, with cotangents of the types of the arguments."""
    label = f"the transpose rule of {prim.name}"
    atoms: list[Atom] = []

    def place(atom: Atom | None) -> int | None:
        if atom is None:
            return None
        atoms.append(atom)
        return len(atoms) - 1

    args = [place(x.ref if isinstance(x, LinearAtom) else x) for x in ins]
    given = [place(ct) for ct in cts]

    def rule(*held: PyTree) -> Handles:
        def at(i: int | None) -> PyTree:
            return None if i is None else held[i]

        operands = [
            Linear(x.type, at(i), x.wanted) if isinstance(x, LinearAtom) else at(i)
            for x, i in zip(ins, args, strict=True)
        ]
        found = prim.transpose(operands, [at(i) for i in given])
        return listed(label, "cotangents", found, len(ins))

    made = _inlined(b, rule, atoms, label, prim.transpose)
    return [
        None
        if out is None or not isinstance(x, LinearAtom)
        else _fitted(b, prim, "transpose", "cotangent", out, tangent_type(_cell(x.type)))
        for out, x in zip(made, ins, strict=True)
    ]


def batch(
    b: BatchBuilder,
    prim: ArrayPrimitive,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    """``prim.batch``; with effects, for all lanes only, and each with references of its own."""
    typing = prim.typing(*[_lane(a.type, flag) for a, flag in zip(ins, batched, strict=True)])
    types = typing.outs
    if typing.effects.effects:
        _check_lanes(b, prim, ins)
    label = f"the batch rule of {prim.name}"
    flags: list[bool] = []

    def rule(*held: PyTree) -> Handles:
        given = prim.batch(held, tuple(batched), size)
        outs, axes = paired(label, "results and of flags", given)
        flags[:] = [_flag(label, x) for x in listed(label, "flags", axes, len(types))]
        return listed(label, "results", outs, len(types))

    made = _inlined(b, rule, ins, label, prim.batch)
    outs = [
        _fitted(b, prim, "batch", "result", x, _reshaped(t, (size, *t.shape)) if flag else t)
        for x, t, flag in zip(made, types, flags, strict=True)
    ]
    return BatchOut(outs, flags)


def _check_lanes(b: BatchBuilder, prim: ArrayPrimitive, ins: Sequence[Atom]) -> None:
    """Raises NotApplicable where lanes share a reference, or not all of them are here."""
    if b.unbatched_refs:
        shared = [f"argument {i}, {a.type}" for i, a in enumerate(ins) if i in b.unbatched_refs]
        raise NotApplicable(
            f"{prim.name} cannot be batched here: all lanes share a reference",
            expected="a reference for each lane",
            found=", ".join(shared),
            remedy="give each lane its own: one more axis in the reference, and `in_axes=0` for "
            "it; or run the lanes one after another: `lax.map`, `lax.scan`",
        )
    if b.mask is not None:
        raise NotApplicable(
            f"{prim.name} cannot be batched here: not all lanes run it",
            expected="effects in every lane",
            found="a `cond` or a `while_loop` that lanes leave differently, around it",
            remedy="apply it in every lane and choose its arguments (`numpy.where`); or run the "
            "lanes one after another: `lax.map`, `lax.scan`",
        )


def discharge(
    b: RuleBuilder, prim: RefPrimitive, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """``prim.discharge``, with results and contents of the types that they have."""
    n = len(ins)
    label = f"the discharge rule of {prim.name}"
    types = prim.typing(*[_whole(a.type, ref) for a, ref in zip(ins, is_ref, strict=True)]).outs

    def rule(*held: PyTree) -> Handles:
        given = prim.discharge(held, tuple(is_ref))
        outs, contents = paired(label, "results and of new contents", given)
        return [
            *listed(label, "contents", contents, n),
            *listed(label, "results", outs, len(types)),
        ]

    made = _inlined(b, rule, ins, label, prim.discharge)
    for i, (x, ref) in enumerate(zip(made[:n], is_ref, strict=True)):
        if x is not None and not ref:
            raise BadRule(
                f"{label} gives new contents for argument {i}, which is no reference",
                expected="None of each argument that is an array",
                found=str(x.type),
                source=defined_at(prim.discharge),
            )
    contents = [
        None if x is None else _fitted(b, prim, "discharge", "content", x, a.type)
        for x, a in zip(made, ins, strict=False)
    ]
    outs = [
        _fitted(b, prim, "discharge", "result", x, t) for x, t in zip(made[n:], types, strict=True)
    ]
    return DischargeOut(outs, contents)


def program(w: Writer, fun: Callable[..., object], ins: Sequence[Val], name: str) -> Sequence[Val]:
    """Lower an application as a call of what ``fun`` is on traced arrays.

    Args:
        w: the writer that ``lower`` was given.
        fun: gets an array for each of ``ins``, and gives an array or a sequence of arrays. It may
            use references of its own.
        ins: the operands.
        name: what the function is called in the module.

    Raises:
        BadRule: ``fun`` closes over an array, or raises an error, or gives no arrays.
        LoweringError: ``fun`` gives None.
    """

    def rule(*held: PyTree) -> Handles:
        outs = fun(*held)
        return [outs] if isinstance(outs, Array) else listed(label, "results", outs)

    label = f"the program that {name} is lowered as"
    jaxpr, missing = traced(rule, [v.type for v in ins], label, fun)
    if any(missing):
        raise LoweringError(f"{name} is lowered by a program that gives None for a result")
    return w.call(without_refs(jaxpr).jaxpr, ins, name)


Seen = list[tuple[str, "ReferenceType[Trace]"]]
"""The rules that were traced, by name, and their traces, if somebody still has them."""

_WATCHERS: Final[ContextVar[Seen | None]] = ContextVar("watchers", default=None)


@contextmanager
def watching() -> Iterator[Seen]:
    """Tell of each rule that is traced in the block, so that leaks of its symbols are found."""
    seen: Seen = []
    token = _WATCHERS.set(seen)
    try:
        yield seen
    finally:
        _WATCHERS.reset(token)


def traced(
    rule: Callable[..., Handles], types: Sequence[Type], label: str, written: object
) -> tuple[Jaxpr, list[bool]]:
    """The program of a rule, and which of its results are None and left out of the program.

    A scalar or a small array that the rule closes over is written out. ``written`` is what the
    user wrote, whose line errors name.

    Raises:
        BadRule: the rule closes over a large array, or raises something.
    """
    trace = Trace(handle, label, None)
    watchers = _WATCHERS.get()
    if watchers is not None:
        watchers.append((label, ReferenceType(trace)))
    with blamed(label, written), tracing(trace):
        held = [trace.bind(t, None, f"argument {i}") for i, t in enumerate(types)]
        found = list(rule(*held))
        outs = [
            atom_in(trace, x if isinstance(x, Array | Ref) else as_value(x, f"result of {label}"))
            for x in found
            if x is not None
        ]
    jaxpr, consts = trace.finish(outs)
    with blamed(label, written):
        return _with_literals(jaxpr, consts, label), [x is None for x in found]


def _with_literals(jaxpr: Jaxpr, consts: Sequence[object], label: str) -> Jaxpr:
    if not consts:
        return jaxpr
    n = len(consts)
    b = Builder(jaxpr.in_types[n:])
    literals = [_literal(b, c, label) for c in consts]
    return b.finish(b.inline_jaxpr(jaxpr, [*literals, *b.binders]))


def _literal(b: Builder, const: object, label: str) -> Atom:
    made = literal_array(b, const) if isinstance(const, DeviceArray) else None
    if made is not None:
        return made
    raise BadRule(
        f"{label} closes over an array or a reference",
        expected="a rule of its arguments, of the primitive's fields, of scalars and of arrays of "
        f"at most {MAX_LITERAL_ELEMENTS} elements",
        found=shown(const),
        remedy="make it an argument of the primitive, or compute it in the rule (`arange`, `full`)",
    )


def _inlined(
    b: RuleBuilder,
    rule: Callable[..., Handles],
    atoms: Sequence[Atom],
    label: str,
    written: object,
) -> list[Atom | None]:
    """The rule's program, put into the builder on these arguments."""
    jaxpr, missing = traced(rule, [a.type for a in atoms], label, written)
    made = iter(b.inline_jaxpr(jaxpr, atoms))
    return [None if none else next(made) for none in missing]


def _flag(label: str, x: object) -> bool:
    if isinstance(x, bool | np.bool_):
        return bool(x)
    raise BadRule(
        f"{label} gives a flag that is no boolean",
        expected="whether a result has a batch axis, which is its leading one",
        found=shown(x),
    )


def _whole(type_: Type, is_ref: bool) -> Type:
    """The type of an argument whose contents are held in its place."""
    return ref_type(type_) if is_ref and isinstance(type_, ArrayType) else type_


def _cell(type_: Type) -> ArrayType:
    return type_.inner if isinstance(type_, RefType) else type_


def _lane(type_: Type, batched: bool) -> Type:
    return _reshaped(type_, type_.shape[1:]) if batched else type_


def _reshaped(type_: Type, shape: Shape) -> Type:
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=shape), type_.kind)
    return type_.update(shape=shape)


def _fitted(
    b: RuleBuilder, prim: ArrayPrimitive, rule: str, what: str, atom: Atom | None, type_: Type
) -> Atom:
    """What a rule gave, as weak as the primitive says. Raises IllTyped for another type."""
    found = None if atom is None else atom.type
    if found == type_ and atom is not None:
        return atom
    if (
        atom is None
        or not isinstance(found, ArrayType)
        or not isinstance(type_, ArrayType)
        or found.strong() != type_.strong()
    ):
        raise BadRule(
            f"the {rule} rule of {prim.name} gives a {what} of another type",
            expected=str(type_),
            found="None" if found is None else str(found),
            remedy=None if found is None else wide_remedy(type_, found.dtype.itemsize),
            source=defined_at(getattr(prim, rule)),
        )
    if isinstance(atom, Lit):
        return Lit(atom.value, type_)
    return b(ConvertElementType(type_.dtype, type_.weak), atom)
