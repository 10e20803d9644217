"""User-defined rules, written with ``effax.numpy``, as rules of passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import ReferenceType

import numpy as np

from effax.arrays.array import Array
from effax.arrays.binding import atom_in, handle
from effax.arrays.config import config, enable_x64
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.ref import Ref
from effax.extend.guard import annotate_errors, least_wide, listed, paired, shown, wide_remedy
from effax.ir.build import Builder, typing_of
from effax.ir.edit.constants import constant
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

MAX_CONSTANT_ELEMENTS: Final = 256
"""The most elements of an array that a rule may close over."""

Handles = Sequence[PyTree]
"""Traced arrays and references."""


class Linear(NamedTuple):
    """A linear operand of an equation that is transposed.

    Attributes:
        type: its type.
        ref: the reference into which its cotangent is accumulated, ``ref[...] += ct``, instead of
            returned; None if it is returned. An operand that is a reference always has one.
        wanted: whether the cotangent is used.
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
    """Trace ``prim.jvp``, and check the types of its results."""
    label = f"the jvp rule of {prim.name}"
    types = typing_of(prim, tuple([a.type for a in primals])).outs
    moved = [t for t in tangents if t is not None]
    n = len(primals)

    def rule(*args: PyTree) -> Handles:
        rest = iter(args[n:])
        found = prim.jvp(args[:n], [None if t is None else next(rest) for t in tangents])
        outs, dots = paired(label, "results and of their tangents", found)
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
    """Trace ``prim.transpose``, and check the types of the cotangents."""
    label = f"the transpose rule of {prim.name}"
    atoms: list[Atom] = []

    def place(atom: Atom | None) -> int | None:
        if atom is None:
            return None
        atoms.append(atom)
        return len(atoms) - 1

    places = [place(x.ref if isinstance(x, LinearAtom) else x) for x in ins]
    ct_places = [place(ct) for ct in cts]

    def rule(*args: PyTree) -> Handles:
        def at(i: int | None) -> PyTree:
            return None if i is None else args[i]

        operands = [
            Linear(x.type, at(i), x.wanted) if isinstance(x, LinearAtom) else at(i)
            for x, i in zip(ins, places, strict=True)
        ]
        found = prim.transpose(operands, [at(i) for i in ct_places])
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
    """Trace ``prim.batch``. With effects it needs batched references and no mask."""
    typing = typing_of(
        prim, tuple([_element(a.type, flag) for a, flag in zip(ins, batched, strict=True)])
    )
    types = typing.outs
    if typing.effects.effects:
        _check_batched_effects(b, prim, ins)
    label = f"the batch rule of {prim.name}"
    flags: list[bool] = []

    def rule(*args: PyTree) -> Handles:
        found = prim.batch(args, tuple(batched), size)
        outs, axes = paired(label, "results and of flags", found)
        flags[:] = [_flag(label, x) for x in listed(label, "flags", axes, len(types))]
        return listed(label, "results", outs, len(types))

    made = _inlined(b, rule, ins, label, prim.batch)
    outs = [
        _fitted(b, prim, "batch", "result", x, _reshaped(t, (size, *t.shape)) if flag else t)
        for x, t, flag in zip(made, types, flags, strict=True)
    ]
    return BatchOut(outs, flags)


def _check_batched_effects(b: BatchBuilder, prim: ArrayPrimitive, ins: Sequence[Atom]) -> None:
    """Raise NotApplicable for an unbatched reference, or under a mask."""
    if b.unbatched_refs:
        shared = [f"argument {i}, {a.type}" for i, a in enumerate(ins) if i in b.unbatched_refs]
        raise NotApplicable(
            f"{prim.name} cannot be batched here: the batch elements share a reference",
            expected="a batched reference",
            found=", ".join(shared),
            remedy="add an axis to the reference, with `in_axes=0` for it; or run the batch "
            "elements in sequence: `lax.map`, `lax.scan`",
        )
    if b.mask is not None:
        raise NotApplicable(
            f"{prim.name} cannot be batched here: not all batch elements run it",
            expected="effects in every batch element",
            found="a `cond` or `while_loop` around it with a batched predicate",
            remedy="apply it to every batch element and select its operands (`numpy.where`); or "
            "run the batch elements in sequence: `lax.map`, `lax.scan`",
        )


def discharge(
    b: RuleBuilder, prim: RefPrimitive, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Trace ``prim.discharge``, and check the types of results and contents."""
    n = len(ins)
    label = f"the discharge rule of {prim.name}"
    types = typing_of(
        prim, tuple([_whole(a.type, ref) for a, ref in zip(ins, is_ref, strict=True)])
    ).outs

    def rule(*args: PyTree) -> Handles:
        found = prim.discharge(args, tuple(is_ref))
        outs, contents = paired(label, "results and of new contents", found)
        return [
            *listed(label, "contents", contents, n),
            *listed(label, "results", outs, len(types)),
        ]

    made = _inlined(b, rule, ins, label, prim.discharge)
    for i, (x, ref) in enumerate(zip(made[:n], is_ref, strict=True)):
        if x is not None and not ref:
            raise BadRule(
                f"{label} returns new contents for argument {i}, which is not a reference",
                expected="None for each argument that is an array",
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
    """Lower an application as a call of the program of ``fun``.

    Args:
        w: the writer that ``lower`` takes.
        fun: a function of traced arrays, one for each of ``ins``, that returns an array or a
            sequence of arrays. It may use local references.
        ins: the operands.
        name: the name of the function in the module.

    Raises:
        BadRule: ``fun`` closes over an array, raises an error, or returns a value that is not an
            array.
        LoweringError: ``fun`` returns None for a result.
    """

    def rule(*args: PyTree) -> Handles:
        outs = fun(*args)
        return [outs] if isinstance(outs, Array) else listed(label, "results", outs)

    label = f"the program that {name} is lowered as"
    jaxpr, missing = traced(rule, [v.type for v in ins], label, fun)
    if any(missing):
        raise LoweringError(f"the program that {name} is lowered as returns None for a result")
    return w.call(without_refs(jaxpr).jaxpr, ins, name)


Seen = list[tuple[str, "ReferenceType[Trace]"]]
"""The rules that were traced, by name, with weak references to their traces."""

_WATCHERS: Final[ContextVar[Seen | None]] = ContextVar("watchers", default=None)


@contextmanager
def watching() -> Iterator[Seen]:
    """Record each rule that is traced in the block, to find leaked tracers."""
    seen: Seen = []
    token = _WATCHERS.set(seen)
    try:
        yield seen
    finally:
        _WATCHERS.reset(token)


def traced(
    rule: Callable[..., Handles], types: Sequence[Type], label: str, written: object
) -> tuple[Jaxpr, list[bool]]:
    """Return the program of a rule, and which of its results are None and not in the program.

    A scalar or a small array that the rule closes over becomes a constant. ``written`` is the
    user's function, whose line errors name. Types of 64 bits are enabled where an argument has one,
    so that the program of 64-bit arguments does not depend on the setting.

    Raises:
        BadRule: the rule closes over a large array, or raises an error.
    """
    trace = Trace(handle, label, None)
    watchers = _WATCHERS.get()
    if watchers is not None:
        watchers.append((label, ReferenceType(trace)))
    with annotate_errors(label, written), width_of(types), tracing(trace):
        args = [trace.bind(t, None, f"argument {i}") for i, t in enumerate(types)]
        found = list(rule(*args))
        outs = [
            atom_in(trace, x if isinstance(x, Array | Ref) else as_value(x, f"result of {label}"))
            for x in found
            if x is not None
        ]
    jaxpr, consts = trace.finish(outs)
    with annotate_errors(label, written):
        return _with_constants(jaxpr, consts, label), [x is None for x in found]


def width_of(types: Sequence[Type]) -> AbstractContextManager[None]:
    """Enable types of 64 bits where a type has them."""
    is_wide = any(t.dtype.kind in "fiuc" and t.dtype.itemsize >= least_wide(t) for t in types)
    return enable_x64() if is_wide and not config.enable_x64 else nullcontext()


def _with_constants(jaxpr: Jaxpr, consts: Sequence[object], label: str) -> Jaxpr:
    if not consts:
        return jaxpr
    n = len(consts)
    b = Builder(jaxpr.in_types[n:])
    made = [_constant(b, c, label) for c in consts]
    return b.finish(b.inline_jaxpr(jaxpr, [*made, *b.binders]))


def _constant(b: Builder, const: object, label: str) -> Atom:
    if isinstance(const, DeviceArray) and const.size <= MAX_CONSTANT_ELEMENTS:
        return constant(b, const.numpy(), const.type)
    raise BadRule(
        f"{label} closes over an array or a reference",
        expected="a function of its arguments, the primitive's fields, scalars and arrays of at "
        f"most {MAX_CONSTANT_ELEMENTS} elements",
        found=shown(const),
        remedy="make it an operand of the primitive, or compute it in the rule (`arange`, `full`)",
    )


def _inlined(
    b: RuleBuilder,
    rule: Callable[..., Handles],
    atoms: Sequence[Atom],
    label: str,
    written: object,
) -> list[Atom | None]:
    """Trace a rule, and inline its program at ``atoms``."""
    jaxpr, missing = traced(rule, [a.type for a in atoms], label, written)
    made = iter(b.inline_jaxpr(jaxpr, atoms))
    return [None if none else next(made) for none in missing]


def _flag(label: str, x: object) -> bool:
    if isinstance(x, bool | np.bool_):
        return bool(x)
    raise BadRule(
        f"{label} returns a flag that is not a boolean",
        expected="True if the result has a leading batch axis, else False",
        found=shown(x),
    )


def _whole(type_: Type, is_ref: bool) -> Type:
    """Return the type of an operand before discharge."""
    return ref_type(type_) if is_ref and isinstance(type_, ArrayType) else type_


def _cell(type_: Type) -> ArrayType:
    return type_.inner if isinstance(type_, RefType) else type_


def _element(type_: Type, batched: bool) -> Type:
    return _reshaped(type_, type_.shape[1:]) if batched else type_


def _reshaped(type_: Type, shape: Shape) -> Type:
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=shape), type_.kind)
    return type_.update(shape=shape)


def _fitted(
    b: RuleBuilder, prim: ArrayPrimitive, rule: str, what: str, atom: Atom | None, type_: Type
) -> Atom:
    """Convert a result of a rule to the declared weakness. Raise BadRule for another type."""
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
            f"the {rule} rule of {prim.name} returns a {what} of another type",
            expected=str(type_),
            found="None" if found is None else str(found),
            remedy=None if found is None else wide_remedy(type_, found.dtype.itemsize),
            source=defined_at(getattr(prim, rule)),
        )
    if isinstance(atom, Lit):
        return Lit(atom.value, type_)
    return b(ConvertElementType(type_.dtype, type_.weak), atom)
