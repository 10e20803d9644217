"""The effects of both sides of a rule: which may be lost, and none may be gained."""

from __future__ import annotations

from typing import Final

from effax.effects import Accum, Free, Read, SideEffect, Write
from effax.ir.primitive import Primitive
from effax.ir.prims import AddUpdate, FreeRef, Freeze, Get, Swap
from effax.transforms.optimize.holes import Hole
from effax.transforms.optimize.patterns import App, Pattern, Seq, parts

Access = tuple[type, str]
"""A kind of effect, and the name of the reference."""

EFFECTS_OF: Final[dict[type[Primitive], tuple[type, ...]]] = {
    Get: (Read,),
    Swap: (Read, Write),
    AddUpdate: (Accum,),
    Freeze: (Read, Free),
    FreeRef: (Free,),
}
"""The kinds of effects of primitives on their first operand, whatever its type."""

CHANGES: Final = (Write, Accum, Free)


def accesses(pattern: Pattern | Seq) -> list[Access]:
    """Return the known accesses of references in a pattern, in order."""
    found: list[Access] = []
    for part in parts(pattern):
        if isinstance(part, App) and part.args and isinstance(part.args[0], Hole):
            found += [(kind, part.args[0].name) for kind in EFFECTS_OF.get(part.kind, ())]
    return found


def effects_fault(
    before: list[tuple[type, object]] | list[Access],
    after: list[tuple[type, object]] | list[Access],
) -> tuple[str, str] | None:
    """Return the fault of effects that are lost or gained, and what is expected; None if none is.

    Reads may be lost. A write may be lost if the reference was read too: it may store what is
    there. A write may become an accumulation.
    """
    old, new = set(before), set(after)
    for kind, ref in dict.fromkeys(after):
        allowed = {kind, Write} if kind is Accum else {kind}
        if not any((k, ref) in old for k in allowed):
            return f"has an effect that the left side lacks: {_access_text(kind, ref)}", _known(old)
    for kind, ref in dict.fromkeys(before):
        if issubclass(kind, SideEffect) or kind is Free:
            lost = (kind, ref) not in new
        elif kind in CHANGES:
            count = sum(1 for k, r in before if r == ref and k in (Read, Accum, Write))
            changed = any((k, ref) in new for k in CHANGES)
            lost = not changed and (count < 3 or (Read, ref) not in old)
        else:
            continue
        if lost:
            return f"loses an effect of the left side: {_access_text(kind, ref)}", _known(old)
    return None


def _access_text(kind: type, ref: object) -> str:
    return f"{getattr(kind, 'word', kind.__name__)} {ref}".rstrip()


def _known(found: set[tuple[type, object]] | set[Access]) -> str:
    return ", ".join(sorted(_access_text(*access) for access in found)) or "no effect"
