"""The rewriter: rebuilds a program in one walk, mapping old variables to new atoms.

Passes that decide about each equation in turn share this loop::

    made = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        if ...:
            made.replace(eqn, values)  # the results are other atoms
        else:
            made.keep(eqn, ins)  # the same equation, on the new operands
    return made.finish()
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from effax.ir.build import Builder
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var


class Rewriter:
    """A program under construction from another one.

    Attributes:
        jaxpr: the program that is rewritten.
        b: the builder of the new program.
        env: by number, the atom of the new program for each variable of the old one.
        changed: whether an equation was replaced; set by ``emit`` and ``replace``.
    """

    __slots__ = ("b", "changed", "env", "jaxpr")

    changed: bool

    def __init__(
        self, jaxpr: Jaxpr, b: Builder | None = None, args: Sequence[Atom] | None = None
    ) -> None:
        """Bind the inputs of ``jaxpr`` to ``args``, by default the inputs of ``b``.

        Without a builder, the new program has the inputs of the old one.
        """
        self.jaxpr: Jaxpr = jaxpr
        self.b: Builder = Builder(jaxpr.in_types) if b is None else b
        # None is never read by a well-formed program: a variable is bound before it is used.
        self.env: list[Atom] = cast("list[Atom]", [None] * jaxpr.size)
        self.changed = False
        self.bind(jaxpr.binders, self.b.binders if args is None else args)

    def nested(self, jaxpr: Jaxpr, args: Sequence[Atom]) -> Rewriter:
        """Return a rewriter of another program, on these arguments, into the same new program."""
        return Rewriter(jaxpr, self.b, args)

    def bind(self, variables: Iterable[Var], atoms: Iterable[Atom]) -> None:
        """Bind variables of the old program to atoms of the new one."""
        env = self.env
        for v, a in zip(variables, atoms, strict=True):
            env[v.id] = a

    def read(self, atom: Atom) -> Atom:
        """Return the atom of the new program for one of the old one."""
        if type(atom) is Lit:
            return atom
        found: Atom | None = self.env[atom.id]
        assert found is not None, "a variable is used before it is bound"
        return found

    def operands(self, eqn: Eqn) -> tuple[Atom, ...]:
        """Return the operands of an equation in the new program."""
        env = self.env
        return tuple([a if type(a) is Lit else env[a.id] for a in eqn.ins])

    def results(self) -> list[Atom]:
        """Return the results of the old program in the new one."""
        return [self.read(a) for a in self.jaxpr.outs]

    def keep(
        self, eqn: Eqn, ins: tuple[Atom, ...], prim: Primitive | None = None
    ) -> tuple[Var, ...]:
        """Append the equation on these operands, with its result types and effects.

        ``prim`` replaces its primitive and must have the same typing.
        """
        own, _, old, effects, source = eqn
        types = tuple([v.type for v in old])
        outs = self.b.emit_typed(own if prim is None else prim, ins, types, effects, source)
        env = self.env
        for v, w in zip(old, outs, strict=True):
            env[v.id] = w
        return outs

    def emit(self, eqn: Eqn, prim: Primitive, ins: Sequence[Atom]) -> tuple[Var, ...]:
        """Append another equation at the place of this one, without binding this one's results."""
        self.changed = True
        return self.b.emit(prim, ins, eqn.source)

    def replace(self, eqn: Eqn, values: Iterable[Atom]) -> None:
        """Remove an equation and bind its results to other atoms."""
        self.changed = True
        self.bind(eqn.outs, values)

    def finish(self) -> Jaxpr:
        """Return the new program, or the old one if it did not change."""
        return self.build(self.results()) if self.changed else self.jaxpr

    def build(self, outs: Sequence[Atom]) -> Jaxpr:
        """Return the new program with these results."""
        return self.b.finish(outs, self.jaxpr.n_consts, self.jaxpr.names)
