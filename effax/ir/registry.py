"""Registries: primitives by their printed names, for reading programs back."""

from __future__ import annotations

from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import Final, TypeAlias

from pyrsistent import PMap, pmap

from effax.ir import prims
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.state import cached

Registry: TypeAlias = PMap[str, type[Primitive]]


@cached(maxsize=None)
def own_primitives() -> Registry:
    """Return the built-in primitives."""
    found: dict[str, type[Primitive]] = {}
    for module in iter_modules(prims.__path__, f"{prims.__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Primitive) and is_concrete(value):
                assert found.setdefault(value.name, value) is value, value.name
    return pmap(found)


NEAR: Final = 0.65
"""The least similarity, from 0 to 1, of a name that is suggested for a misspelled one."""


def is_concrete(prim: type[Primitive]) -> bool:
    """Return whether the class is a primitive and not an abstract base."""
    return hasattr(prim, "name") and not isabstract(prim)


def own_remedy(reader: str) -> str:
    """Return the remedy for a primitive that a reader does not know."""
    return (
        f"for a user-defined primitive, pass its class: `{reader}(text, registry(Mine))`, "
        "with `effax.extend.registry`"
    )


def registry(*more: type[Primitive]) -> Registry:
    """Return the built-in primitives and these.

    Raises:
        BadArgument: an argument is not a concrete primitive class, or two have the same name.
    """
    made = own_primitives()
    for prim in more:
        given: object = prim
        if not isinstance(given, type) or not issubclass(given, Primitive):
            raise BadArgument(
                "registry takes classes of primitives",
                expected="the class of a primitive",
                found=f"{prim!r:.80}",
                remedy="pass the class, not an instance: `registry(Mine)`",
            )
        if not is_concrete(prim):
            raise BadArgument(
                "a base class cannot be read back",
                expected="a primitive with a `name` and all its methods",
                found=prim.__name__,
            )
        if made.get(prim.name, prim) is not prim:
            raise BadArgument(
                f"two primitives are called {prim.name}",
                expected="one primitive a name",
                found=f"{made[prim.name].__qualname__} and {prim.__qualname__}",
                remedy="rename one of them: its `name`",
            )
        made = made.set(prim.name, prim)
    return made
