"""Checks of the parts of equations that users pass: a primitive, atoms, types."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.analysis.faults import literal_fault
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Primitive
from effax.ir.syntax import Lit, Var
from effax.ir.types import ArrayType, RefType


def check_parts(prim: object, ins: object) -> None:
    """Raise BadArgument unless these are a primitive and atoms."""
    if not isinstance(prim, Primitive):
        is_class = isinstance(prim, type) and issubclass(prim, Primitive)
        raise BadArgument(
            "an equation applies a primitive",
            expected="a Primitive, an instance of its class",
            found=f"the class {prim.__name__}" if isinstance(prim, type) else f"{prim!r:.80}",
            remedy=f"call the class: `{prim.__name__}()`"
            if is_class and isinstance(prim, type)
            else "primitives are in `effax.ir.prims`",
        )
    check_atoms(ins)


def check_atoms(atoms: object) -> None:
    """Raise unless these are a sequence of variables and of literals of their types.

    Raises:
        BadArgument: an element is not an atom, or this is not a sequence.
        IllTyped: a literal does not have its type.
    """
    if isinstance(atoms, Var | Lit) or not isinstance(atoms, Sequence):
        raise BadArgument(
            "variables and literals come in a sequence",
            expected="a list of Var and Lit",
            found=f"{atoms!r:.80}",
            remedy=f"`[{atoms}]`" if isinstance(atoms, Var | Lit) else None,
        )
    for a in atoms:
        if not isinstance(a, Var | Lit):
            raise BadArgument(
                "programs are made of variables and literals",
                expected="a sequence of Var and Lit",
                found=f"{a!r:.80}",
                remedy=_remedy(a),
            )
        reason = literal_fault(a) if isinstance(a, Lit) else None
        if reason is not None:
            raise IllTyped("a literal does not have its type", reason, repr(a))


def _remedy(found: object) -> str:
    if isinstance(found, (bool, int, float, complex)):
        return f"`effax.ir.lit({found!r}, x.type)` makes a literal of the dtype of `x`"
    if isinstance(found, (list, tuple)) and all(isinstance(a, Var | Lit) for a in found):
        return "pass them separately: `b(prim, *ins)`; or use `b.emit(prim, ins)`"
    return "`effax.ir.lit(2.0, x.type)` makes a literal; an array is an input, or a constant"


def check_type(given: object) -> None:
    """Raise BadArgument unless this is a type."""
    if not isinstance(given, ArrayType | RefType):
        raise BadArgument(
            "inputs are bound by their types",
            expected='a type, such as `array_type((3,), "float32")`',
            found=f"{given!r:.80}",
            remedy="the type of an atom is `.type`" if isinstance(given, Var | Lit) else None,
        )
