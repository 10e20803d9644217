"""What passes share that go over a program once and say what becomes of each equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import cast

from returns.result import Result

from effax.ir.build import Builder
from effax.ir.edit.operations import everywhere
from effax.ir.errors import TransformError
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.transforms.framework.runner import as_result

Local = Callable[[Jaxpr], Jaxpr]
Transform = Callable[[Jaxpr], Result[Jaxpr, TransformError]]
"""What makes a program of a program, or says why it cannot."""
"""Transforms one program and leaves those that it holds; gives the very same where none of it
changes."""


def at_every_depth(local: Local) -> Transform:
    """The pass that does to every program, innermost first, what ``local`` does to one."""

    @wraps(local)
    def whole(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        return as_result(everywhere)(local, jaxpr)

    return whole


class Rewrite:
    """A program that is built from another one, in whose place its atoms stand.

    Attributes:
        b: the builder of the new program.
        changed: whether anything became something else.
    """

    __slots__ = ("b", "changed", "env", "jaxpr")

    changed: bool

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr: Jaxpr = jaxpr
        self.b: Builder = Builder(jaxpr.in_types)
        # None is never read: bound before use.
        self.env: list[Atom] = cast("list[Atom]", [None] * jaxpr.size)
        self.changed = False
        for v, w in zip(jaxpr.binders, self.b.binders, strict=True):
            self.env[v.id] = w

    def inside(self, jaxpr: Jaxpr, args: Sequence[Atom]) -> Rewrite:
        """A rewrite of another program, on these arguments, into the program that is built."""
        inner = Rewrite.__new__(Rewrite)
        inner.jaxpr, inner.b, inner.changed = jaxpr, self.b, True
        inner.env = cast("list[Atom]", [None] * jaxpr.size)
        for v, a in zip(jaxpr.binders, args, strict=True):
            inner.env[v.id] = a
        return inner

    def value(self, atom: Atom) -> Atom:
        """What stands for an atom of the old program."""
        return atom if type(atom) is Lit else self.env[atom.id]

    def ins(self, eqn: Eqn) -> tuple[Atom, ...]:
        """What stands for the arguments of an equation."""
        env = self.env
        return tuple([a if type(a) is Lit else env[a.id] for a in eqn.ins])

    def keep(self, eqn: Eqn, ins: tuple[Atom, ...]) -> tuple[Var, ...]:
        """Append the equation on these arguments, of the types that it had."""
        types = tuple([v.type for v in eqn.outs])
        outs = self.b.emit_typed(eqn.prim, ins, types, eqn.effects, eqn.source)
        for v, w in zip(eqn.outs, outs, strict=True):
            self.env[v.id] = w
        return outs

    def put(self, eqn: Eqn, prim: Primitive, ins: Sequence[Atom]) -> tuple[Var, ...]:
        """Append another equation in the place of this one; nothing is bound."""
        self.changed = True
        return self.b.emit(prim, ins, eqn.source)

    def drop(self, eqn: Eqn, values: Sequence[Atom]) -> None:
        """Let other atoms stand for the results of an equation that goes."""
        self.changed = True
        for v, a in zip(eqn.outs, values, strict=True):
            self.env[v.id] = a

    def finish(self) -> Jaxpr:
        """The new program; the old one where nothing changed."""
        jaxpr = self.jaxpr
        if not self.changed:
            return jaxpr
        outs = [self.value(a) for a in jaxpr.outs]
        return self.b.finish(outs, jaxpr.n_consts, jaxpr.names)
