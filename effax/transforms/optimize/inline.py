"""Inlining: replace calls by the equations that they run.

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
"""Return whether an equation that is a call is inlined. A pure function."""


def _inline(jaxpr: Jaxpr, which: Which | None) -> Jaxpr:
    if not any(eqn.prim.subjaxprs() for eqn in jaxpr.eqns):
        return jaxpr
    b = Builder(jaxpr.in_types)
    calls = _Calls(b, which)
    outs = calls.run(jaxpr)
    return b.finish(outs, jaxpr.n_consts, jaxpr.names) if calls.changed else jaxpr


@jaxpr_pass(_inline, maxsize=1024)
def inline(jaxpr: Jaxpr, which: Which | None = None) -> Jaxpr:
    """Replace calls (``jit``) by the equations of their subjaxprs, at every depth.

    Type:     a -> b  =>  a -> b
    Effects:  the same; a reference that a call allocates is allocated by its caller.
    Laws:     tests/laws/test_inline.py

    Args:
        jaxpr: the program.
        which: the calls that are inlined; None: all.
    """
    return _inline(jaxpr, which)


class _Frame(NamedTuple):
    """A program in the course of inlining: its values, its remaining equations, and its call."""

    made: Rewriter
    eqns: Iterator[Eqn]
    call: Eqn | None


class _Calls:
    """One run of the pass, with an explicit stack: calls may nest deeper than Python's."""

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
        """Append equations up to the next call, and enter it; return False at the end."""
        for eqn in frame.eqns:
            ins = frame.made.operands(eqn)
            if eqn.prim.is_call and (self.which is None or self.which(eqn)):
                self.changed = True
                self.enter(eqn.prim.subjaxprs()[0], ins, eqn)
                return True
            frame.made.keep(eqn, ins, self.with_inlined_subjaxprs(eqn.prim))
        return False

    def with_inlined_subjaxprs(self, prim: Primitive) -> Primitive:
        """Return the primitive with calls inlined in its subjaxprs."""
        before = prim.subjaxprs()
        after = [inline.cached(jaxpr, self.which) for jaxpr in before]
        if all(old == new for old, new in zip(before, after, strict=True)):
            return prim
        self.changed = True
        return prim.with_subjaxprs(after)


def convert_weak_type(b: Builder, atom: Atom, type_: Type) -> Atom:
    """Append a conversion to the type of a binder, which may differ in weakness."""
    if atom.type is type_ or not isinstance(type_, ArrayType):
        return atom
    if isinstance(atom, Lit):
        return Lit(atom.value, type_)
    return b(ConvertElementType(type_.dtype, type_.weak), atom)
