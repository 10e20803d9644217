"""The owners of the Python objects to which a program refers."""

from __future__ import annotations

from collections.abc import Iterable

from effax.ir.primitive import ByReference, Owner, Primitive
from effax.ir.recursion import kind_may_have_subjaxprs, kinds_of, postorder
from effax.ir.syntax import Jaxpr


def owner_in(values: Iterable[object]) -> Owner | None:
    """Return the newest owner of objects in programs, primitives and tuples of them, or None."""
    return _newest(map(_owner, values))


def _owner(value: object) -> Owner | None:
    match value:
        case Jaxpr():
            return owner_of(value)
        case Primitive():
            return _owner_of_prim(value)
        case ByReference():
            return value.owner()
        case tuple() if value:
            return owner_in(value)
        case _:
            return None


def owner_of(jaxpr: Jaxpr) -> Owner | None:
    """Return the newest owner of the objects in a program and its subjaxprs; cached on it."""
    if jaxpr._owner is None:
        for inner in postorder(jaxpr, _is_unknown):
            found = None
            if any(map(_may_have_owner, kinds_of(inner))):
                found = _newest([_owner_of_prim(eqn.prim) for eqn in inner.eqns])
            object.__setattr__(inner, "_owner", found or False)
    return jaxpr._owner or None


def _is_unknown(jaxpr: Jaxpr) -> bool:
    return jaxpr._owner is None


def _may_have_owner(kind: type[Primitive]) -> bool:
    return bool(kind.by_reference) or kind_may_have_subjaxprs(kind)


def _owner_of_prim(prim: Primitive) -> Owner | None:
    if not _may_have_owner(type(prim)):
        return None
    objects = [getattr(prim, field) for field in prim.by_reference]
    owners = [x.owner() for x in objects if isinstance(x, ByReference)]
    return _newest([*owners, *map(owner_of, prim.subjaxprs())])


def _newest(owners: Iterable[Owner | None]) -> Owner | None:
    return max([o for o in owners if o is not None], key=lambda o: o.serial, default=None)
