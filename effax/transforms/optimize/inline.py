"""Inlining: the equations of a call in the place of the call.

Before::

    let f = { lambda ; a:f32[]. let b:f32[] = sin a in (b,) } in
    { lambda ; a:f32[]. let b:f32[] = jit[jaxpr=f] a in (b,) }

After::

    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from effax.ir.build import Builder
from effax.ir.edit.rewriter import Rewriter
from effax.ir.primitive import Primitive
from effax.ir.prims import ConvertElementType
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import ArrayType, Type
from effax.transforms.framework.pass_ import jaxpr_pass

Which = Callable[[Eqn], bool]
"""Says of an equation that is a call whether it is inlined. A pure function."""


def _inline(jaxpr: Jaxpr, which: Which | None) -> Jaxpr:
    if not any(eqn.prim.subjaxprs() for eqn in jaxpr.eqns):
        return jaxpr
    b = Builder(jaxpr.in_types)
    calls = _Calls(b, which)
    outs = calls.run(jaxpr)
    return b.finish(outs, jaxpr.n_consts, jaxpr.names) if calls.changed else jaxpr


@jaxpr_pass(_inline, maxsize=1024)
def inline(jaxpr: Jaxpr, which: Which | None = None) -> Jaxpr:
    """Replace calls (``jit``) by what they call, at every depth and in every program held.

    Type:     a -> b  =>  a -> b
    Effects:  the same; a reference that a call makes is made by its caller.
    Laws:     tests/laws/test_inline.py

    Args:
        jaxpr: the program.
        which: the calls that are inlined; all of them where it is None.
    """
    return _inline(jaxpr, which)


class _Frame(NamedTuple):
    """A program that is being inlined: what is left of it, its values, and who called it."""

    made: Rewriter
    eqns: Iterator[Eqn]
    call: Eqn | None


class _Calls:
    """One run, with a stack of its own: calls may nest deeper than Python's do."""

    def __init__(self, b: Builder, which: Which | None) -> None:
        self.b = b
        self.which = which
        self.stack: list[_Frame] = []
        self.changed = False

    def run(self, jaxpr: Jaxpr) -> list[Atom]:
        self.enter(jaxpr, self.b.binders, None)
        while True:
            frame = self.stack[-1]
            if self.advance(frame):
                continue
            self.stack.pop()
            outs = frame.made.results()
            if frame.call is None:
                return outs
            results = frame.call.outs
            values = [
                convert_weak_type(self.b, out, v.type) for v, out in zip(results, outs, strict=True)
            ]
            self.stack[-1].made.bind(results, values)

    def enter(self, jaxpr: Jaxpr, args: Sequence[Atom], call: Eqn | None) -> None:
        given = [
            convert_weak_type(self.b, a, v.type) for v, a in zip(jaxpr.binders, args, strict=True)
        ]
        self.stack.append(_Frame(Rewriter(jaxpr, self.b, given), iter(jaxpr.eqns), call))

    def advance(self, frame: _Frame) -> bool:
        """Emit equations up to the next call, and enter it. False at the program's end."""
        for eqn in frame.eqns:
            ins = frame.made.operands(eqn)
            if eqn.prim.is_call and (self.which is None or self.which(eqn)):
                self.changed = True
                self.enter(eqn.prim.subjaxprs()[0], ins, eqn)
                return True
            frame.made.keep(eqn, ins, self.with_inlined_subjaxprs(eqn.prim))
        return False

    def with_inlined_subjaxprs(self, prim: Primitive) -> Primitive:
        """The primitive with calls inlined in the programs that it holds."""
        before = prim.subjaxprs()
        after = [inline.cached(held, self.which) for held in before]
        if all(old == new for old, new in zip(before, after, strict=True)):
            return prim
        self.changed = True
        return prim.with_subjaxprs(after)


def convert_weak_type(b: Builder, atom: Atom, type_: Type) -> Atom:
    """The value at the type that a binder declares: a call may change whether it is weak."""
    if atom.type is type_ or not isinstance(type_, ArrayType):
        return atom
    if isinstance(atom, Lit):
        return Lit(atom.value, type_)
    return b(ConvertElementType(type_.dtype, type_.weak), atom)
