"""Prove a primitive with one call: every law, on programs made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from effax.api.staging import ShapeDtypeStruct
from effax.ir.build import Builder, lit
from effax.ir.dtypes import BOOL, is_float
from effax.ir.errors import BadArgument, NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.prims.control import Cond, Scan
from effax.ir.prims.elementwise import Add, Mul, Tanh
from effax.ir.registry import registry
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import ArrayType, Type, array_type
from effax.testing import laws
from effax.testing.passes import Passes
from effax.testing.report import LawBroken
from effax.transforms.rulebook import RuleBook, book_or_default
from effax.transforms.rules.common import zeros

OfProgram = Callable[[Jaxpr, int, Passes], None]
"""A law of a program, a seed for its inputs, and the passes."""


Interval = tuple[float, float]


class Checked(NamedTuple):
    """What :func:`check_primitive` found.

    Attributes:
        held: the laws that hold, for every program to which the rules apply.
        refused: laws for which a rule says that it does not apply to a program, and its reason.
    """

    held: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


def check_primitive(
    prim: Primitive,
    *types: Type | ShapeDtypeStruct,
    linear: Sequence[bool] | None = None,
    domain: Sequence[Interval | None] = (),
    seeds: Sequence[int] = (0, 1, 2),
    book: RuleBook | None = None,
) -> Checked:
    """Hold a primitive to every law, on arguments of these types.

    The laws are about programs: the primitive alone, with arithmetic around it, and in the body of
    a scan and a branch. Values are random and of moderate size, integers from -2 to 4.

    Args:
        prim: the primitive.
        *types: the types of its arguments; small ones are quick.
        linear: arguments in which it is linear together, for the laws of transposition. Where it
            is left out these are tried only as far as derivatives need them.
        domain: where the primitive is differentiable, by argument, if that is not everywhere:
            values of an argument of floats are then taken from inside of an interval.
        seeds: seeds of values; with 0 all is differentiated and batched.
        book: the rules, where the primitive does not bring its own.

    Raises:
        LawBroken: laws do not hold; the message has a program for each, as a test.
        IllTyped: the primitive does not apply to the types.
        BadArgument: ``linear`` or ``domain`` has not one entry an argument.
    """
    ins = [t.type if isinstance(t, ShapeDtypeStruct) else t for t in types]
    passes = Passes(book=book_or_default(book))
    checks = [*_LAWS, *_laws_of_text(prim)]
    intervals = _one_an_argument("domain", domain or [None] * len(ins), ins)
    found = _check(checks, programs_of(prim, ins, intervals), seeds, passes)
    if linear is not None:
        _one_an_argument("linear", linear, ins)
        found += _check(_laws_of_linear(tuple(linear)), [_alone(prim, ins)], seeds, passes)
    broken = [one.report for one in found if one.report is not None]
    if broken:
        raise LawBroken("\n\n".join(broken))
    return Checked(
        tuple([one.law for one in found if one.applies]),
        tuple([(one.law, one.refused) for one in found if one.refused is not None]),
    )


class _Found(NamedTuple):
    """What became of one law.

    Attributes:
        law: its name.
        applies: whether it holds for a program at least.
        refused: why a rule does not apply to another.
        report: how it is broken.
    """

    law: str
    applies: bool
    refused: str | None
    report: str | None = None


def _check(
    checks: Sequence[tuple[str, OfProgram]],
    programs: Sequence[Jaxpr],
    seeds: Sequence[int],
    passes: Passes,
) -> list[_Found]:
    return [
        # These two cost much, and values say little more than they did before.
        _found(name, check, programs, seeds[:1] if name in _ONCE else seeds, passes)
        for name, check in checks
    ]


def _found(
    law: str, check: OfProgram, programs: Sequence[Jaxpr], seeds: Sequence[int], passes: Passes
) -> _Found:
    applies, refused = False, None
    for jaxpr in programs:
        for seed in seeds:
            try:
                check(jaxpr, seed, passes)
                applies = True
            except LawBroken as error:
                cause = error.__cause__
                if not isinstance(cause, NotApplicable):
                    return _Found(law, applies, refused, str(error))
                refused = cause.what
    return _Found(law, applies, refused)


T = TypeVar("T")


def _one_an_argument(what: str, entries: Sequence[T], ins: Sequence[Type]) -> Sequence[T]:
    if len(entries) != len(ins):
        raise BadArgument(
            f"{what} has one entry an argument", expected=str(len(ins)), found=str(len(entries))
        )
    return entries


def programs_of(
    prim: Primitive, types: Sequence[Type], domain: Sequence[Interval | None]
) -> list[Jaxpr]:
    """The application alone, among arithmetic, in a scan and in a branch."""
    b = Builder(types)
    alone = b.finish(b.emit(prim, _moved(b, domain)))
    return [alone, _among(prim, types, domain), _scanned(alone), _branch(alone)]


def _alone(prim: Primitive, types: Sequence[Type]) -> Jaxpr:
    b = Builder(types)
    return b.finish(b.emit(prim, b.binders))


def _among(prim: Primitive, types: Sequence[Type], domain: Sequence[Interval | None]) -> Jaxpr:
    """``y²`` where ``y = f(x/2)``, of what is floats; a domain is kept to."""
    b = Builder(types)
    inside = _moved(b, domain)
    ins = [
        b(Mul(), v, lit(0.5, v.type)) if _is_floats(v) and interval is None else v
        for v, interval in zip(inside, domain, strict=True)
    ]
    outs = b.emit(prim, ins)
    return b.finish([b(Mul(), v, v) if _is_floats(v) else v for v in outs])


def _moved(b: Builder, domain: Sequence[Interval | None]) -> list[Var]:
    """The arguments, with values inside of their intervals: ``middle + half·tanh(x)``."""
    moved = []
    for v, interval in zip(b.binders, domain, strict=True):
        if interval is None or not _is_floats(v):
            moved.append(v)
            continue
        low, high = interval
        middle, half = lit((low + high) / 2, v.type), lit((high - low) / 2, v.type)
        moved.append(b(Add(), b(Mul(), b(Tanh(), v), half), middle))
    return moved


def _scanned(alone: Jaxpr) -> Jaxpr:
    """Two iterations on the same arguments, results stacked."""
    n = len(alone.binders)
    prim = Scan(alone, n_consts=n, n_carry=0, length=2, reverse=False, unroll=1)
    b = Builder(alone.in_types)
    return b.finish(b.emit(prim, b.binders))


def _branch(alone: Jaxpr) -> Jaxpr:
    """The application if the first argument holds, else zeros."""
    b = Builder(alone.in_types)
    other = b.finish([zeros(b, t) for t in alone.out_types])
    whole = Builder([array_type((), BOOL), *alone.in_types])
    return whole.finish(whole.emit(Cond((other, alone)), whole.binders))


def _is_floats(atom: Atom) -> bool:
    return isinstance(atom.type, ArrayType) and is_float(atom.type.dtype)


def _laws_of_text(prim: Primitive) -> list[tuple[str, OfProgram]]:
    """The laws that read programs back, for which the primitive has to be known by name."""
    own, known = type(prim), registry()
    primitives = known if known.get(own.name) is own else registry(own)

    def parsed(jaxpr: Jaxpr, seed: int, passes: Passes) -> None:
        laws.parse_inverts_print(jaxpr, primitives)

    def copied(jaxpr: Jaxpr, seed: int, passes: Passes) -> None:
        laws.equality_is_structural(jaxpr, primitives)

    return [("parse_inverts_print", parsed), ("equality_is_structural", copied)]


def _of_program(check: Callable[[Jaxpr], None]) -> OfProgram:
    return lambda jaxpr, seed, passes: check(jaxpr)


def _of_values(check: Callable[[Jaxpr, int], None]) -> OfProgram:
    return lambda jaxpr, seed, passes: check(jaxpr, seed)


_LAWS: Final[tuple[tuple[str, OfProgram], ...]] = tuple(
    (name, check)
    for name, check in (
        ("check_accepts", _of_program(laws.check_accepts)),
        ("evaluation_fits_the_types", _of_values(laws.evaluation_fits_the_types)),
        ("lowering_agrees_with_evaluation", _of_values(laws.lowering_agrees_with_evaluation)),
        ("passes_are_pure", laws.passes_are_pure),
        ("jvp_keeps_values", laws.jvp_keeps_values),
        ("jvp_is_linear", laws.jvp_is_linear),
        ("jvp_is_the_derivative", laws.jvp_is_the_derivative),
        ("linearize_is_jvp", laws.linearize_is_jvp),
        ("vjp_is_adjoint_to_jvp", laws.vjp_is_adjoint_to_jvp),
        ("reverse_is_linearize_then_transpose", laws.reverse_is_linearize_then_transpose),
        ("partial_eval_recomposes", laws.partial_eval_recomposes),
        ("vmap_is_stacking", laws.vmap_is_stacking),
        ("vmap_commutes_with_jvp", laws.vmap_commutes_with_jvp),
        ("vmap_commutes_with_discharge", laws.vmap_commutes_with_discharge),
        ("discharge_is_observationally_equal", laws.discharge_is_observationally_equal),
        ("dce_keeps_what_is_observed", laws.dce_keeps_what_is_observed),
        ("inline_keeps_what_is_observed", laws.inline_keeps_what_is_observed),
    )
)
_ONCE: Final = frozenset({"lowering_agrees_with_evaluation", "passes_are_pure"})


def _laws_of_linear(linear: tuple[bool, ...]) -> list[tuple[str, OfProgram]]:
    return [
        (check.__name__, partial(_of_mask, check, linear))
        for check in (
            laws.transpose_is_adjoint,
            laws.transpose_is_its_own_inverse,
            laws.transpose_adds_into_references,
            laws.transpose_leaves_out_what_nobody_wants,
            laws.vmap_commutes_with_transpose,
        )
    ]


def _of_mask(
    check: Callable[[Jaxpr, tuple[bool, ...], int, Passes | None], None],
    linear: tuple[bool, ...],
    jaxpr: Jaxpr,
    seed: int,
    passes: Passes,
) -> None:
    check(jaxpr, linear, seed, passes)
