"""Prove a primitive with one call: every law, on programs made of it."""

from __future__ import annotations

from collections.abc import Sequence
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
from effax.testing.statement import About, Law
from effax.testing.trying import Drawn, Given, run
from effax.transforms.rulebook import RuleBook, book_or_default
from effax.transforms.rules.common import zeros

Interval = tuple[float, float]


class Refused(NamedTuple):
    """A law that cannot be tried on some programs, since a rule says that it does not apply.

    Attributes:
        law: its name.
        reason: what the rule says.
        programs: on which programs; ``PROGRAMS`` has their names.
        held: on which it holds.
    """

    law: str
    reason: str
    programs: tuple[str, ...]
    held: tuple[str, ...]


class Checked(NamedTuple):
    """What :func:`check_primitive` found.

    Attributes:
        held: the laws that hold for every program.
        refused: the laws that a rule refuses for some of them; for the others they hold.
    """

    held: tuple[str, ...]
    refused: tuple[Refused, ...]


PROGRAMS: Final = ("alone", "among others", "in a scan", "in a branch")
"""What is done with the primitive in the programs on which laws are tried."""


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
        LawBroken: laws do not hold; the message has a program for the simplest of them, as a test
            to paste, and names the others.
        IllTyped: the primitive does not apply to the types.
        BadArgument: ``linear`` or ``domain`` has not one entry an argument.
    """
    __tracebackhide__ = True
    ins = [t.type if isinstance(t, ShapeDtypeStruct) else t for t in types]
    own, known = type(prim), registry()
    primitives = known if known.get(own.name) is own else registry(own)
    given = {"passes": Passes(book=book_or_default(book)), "primitives": primitives}
    intervals = _one_an_argument("domain", domain or [None] * len(ins), ins)
    tried = [law for law in laws.LAWS if law.of_primitives]
    programs = [(jaxpr,) for jaxpr in programs_of(prim, ins, intervals)]
    found = [_found(law, programs, seeds, given) for law in tried if law.about is About.PROGRAMS]
    if linear is not None:
        _one_an_argument("linear", linear, ins)
        alone = [(_alone(prim, ins), tuple(linear))]
        found += [_found(law, alone, seeds, given) for law in tried if law.about is About.LINEAR]
    order = [law.name for law in laws.LAWS]
    broken = [one for one in found if isinstance(one, LawBroken)]
    broken.sort(key=lambda one: order.index(one.law.name))
    if broken:
        raise broken[0].beside([other.law.name for other in broken[1:]]) from None
    return Checked(
        tuple([one for one in found if isinstance(one, str)]),
        tuple([one for one in found if isinstance(one, Refused)]),
    )


def _found(
    law: Law[...], programs: Sequence[Drawn], seeds: Sequence[int], given: Given
) -> str | Refused | LawBroken:
    """What became of a law: it holds (its name), a rule refuses programs, or it is broken."""
    held, refused = list[str](), dict[str, str]()
    # Of what costs much, other values say little more than the first.
    for name, drawn in zip(PROGRAMS, programs, strict=False):
        for seed in seeds[:1] if law.costly else seeds:
            try:
                run(law, drawn, seed, given)
            except LawBroken as broken:
                if not isinstance(broken.cause, NotApplicable):
                    return broken
                refused[name] = broken.cause.what
        if name not in refused:
            held.append(name)
    if not refused:
        return law.name
    return Refused(law.name, next(iter(refused.values())), tuple(refused), tuple(held))


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
