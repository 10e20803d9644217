"""Linear and fixed operands of an application that is transposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.ir.errors import NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.transforms.framework.rules import Linear


class LinearOperand(NamedTuple):
    """The one operand in which an application is linear, and the others in order."""

    position: int
    operand: Linear
    others: tuple[Atom, ...]


def only(cts: Sequence[Atom | None]) -> Atom:
    """Return the cotangent of the only result; the engine transposes only what has one."""
    (ct,) = cts
    assert ct is not None
    return ct


def linear_operand(prim: Primitive, ins: Sequence[Atom | Linear]) -> LinearOperand:
    """Return the linear operand of a primitive that is linear in one operand at a time.

    Raises NotApplicable if several operands are linear.
    """
    found = [(i, x) for i, x in enumerate(ins) if isinstance(x, Linear)]
    if len(found) != 1:
        raise _not_linear(prim, "one operand at a time", ins)
    return LinearOperand(*found[0], tuple(x for x in ins if not isinstance(x, Linear)))


def fixed(prim: Primitive, ins: Sequence[Atom | Linear], start: int) -> list[Atom]:
    """Return the operands from ``start`` on, in which the primitive is not linear.

    Raises NotApplicable if one of them is a linear input.
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
        remedy="transpose a linear program, such as the tangent program of `linearize`",
    )


def at(position: int, ct: Atom | None, ins: Sequence[Atom | Linear]) -> list[Atom | None]:
    """Return one entry per operand: ``ct`` at ``position``, None elsewhere."""
    made: list[Atom | None] = [None] * len(ins)
    made[position] = ct
    return made
