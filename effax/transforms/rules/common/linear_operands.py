"""The operands of a linear application: which are linear, which are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.ir.errors import NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import Linear


class LinearOperand(NamedTuple):
    """The one operand in which an application is linear, and the others, in their order."""

    position: int
    operand: Linear
    others: tuple[Atom, ...]


def only(cts: Sequence[Atom | None]) -> Atom:
    """The cotangent of the one result; an application without one is not transposed."""
    (ct,) = cts
    assert ct is not None
    return ct


def linear_operand(prim: Primitive, ins: Sequence[Atom | Linear]) -> LinearOperand:
    """The operand that is transposed, of a primitive that is linear in any one at a time.

    Raises NotApplicable where there are several.
    """
    found = [(i, x) for i, x in enumerate(ins) if isinstance(x, Linear)]
    if len(found) != 1:
        raise _not_linear(prim, "one operand at a time", ins)
    return LinearOperand(*found[0], tuple(x for x in ins if not isinstance(x, Linear)))


def fixed(prim: Primitive, ins: Sequence[Atom | Linear], start: int) -> list[Atom]:
    """The operands from ``start`` on, in which the primitive is not linear.

    Raises NotApplicable where one of them is to be transposed.
    """
    atoms = [x for x in ins[start:] if not isinstance(x, Linear)]
    if len(atoms) != len(ins) - start:
        raise _not_linear(prim, f"operands before operand {start}", ins)
    return atoms


def _not_linear(prim: Primitive, expected: str, ins: Sequence[Atom | Linear]) -> NotApplicable:
    found = ", ".join(str(i) for i, x in enumerate(ins) if isinstance(x, Linear))
    return NotApplicable(
        f"{prim.name} is transposed where it is not linear",
        expected=f"{prim.name} to depend linearly on {expected}",
        found=f"linear inputs reach operands {found}",
        remedy="transpose a program that is linear, such as the tangent half of `linearize`",
    )


def at(position: int, ct: Atom | None, ins: Sequence[Atom | Linear]) -> list[Atom | None]:
    """One entry an operand: ``ct`` for the one at ``position``."""
    made: list[Atom | None] = [None] * len(ins)
    made[position] = ct
    return made
