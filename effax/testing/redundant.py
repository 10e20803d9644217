"""Programs with much that is redundant in them: what optimisation passes are tried on.

Random programs seldom compute a thing twice, or overwrite what they have just stored. Here they do:
to a program, equations are added that repeat others, undo themselves, store and load the same part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from effax.effects import Alloc, changes_state
from effax.ir.build import Builder, lit
from effax.ir.dtypes import family, is_float
from effax.ir.edit import everywhere
from effax.ir.indexing import Indexer, Mode, Pick, Span, whole
from effax.ir.prims import elementwise as ew
from effax.ir.prims.refs import AddUpdate, FreeRef, Freeze, Get, Swap
from effax.ir.prims.shape import BroadcastInDim
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType


def with_redundancy(jaxpr: Jaxpr, seed: int) -> Jaxpr:
    """The program with redundant equations in it, and in the programs that it holds; well typed."""
    rng = np.random.default_rng(seed)
    return everywhere(lambda program: _Padder(program, rng).run(), jaxpr)


class _Padder:
    """One program: the builder of the new one, and what is in scope."""

    def __init__(self, jaxpr: Jaxpr, rng: np.random.Generator) -> None:
        self.jaxpr = jaxpr
        self.rng = rng
        self.b = Builder(jaxpr.in_types)
        self.env: list[Atom | None] = [None] * jaxpr.size
        self.refs: list[Var] = []
        self.arrays: list[Var] = []
        self.touched: set[int] = set()
        for v, w in zip(jaxpr.binders, self.b.binders, strict=True):
            self.bind(v, w)

    def bind(self, v: Var, w: Var) -> None:
        self.env[v.id] = w
        (self.refs if isinstance(w.type, RefType) else self.arrays).append(w)

    def value(self, a: Atom) -> Atom:
        found = a if isinstance(a, Lit) else self.env[a.id]
        assert found is not None, "a variable is used before it is bound"
        return found

    def run(self) -> Jaxpr:
        for eqn in self.jaxpr.eqns:
            self.equation(eqn)
            if self.rng.random() < 0.4:
                self.pad()
        outs = [self.value(a) for a in self.jaxpr.outs]
        return self.b.finish(outs, self.jaxpr.n_consts, self.jaxpr.names)

    def equation(self, eqn: Eqn) -> None:
        ins = [self.value(a) for a in eqn.ins]
        for v, w in zip(eqn.outs, self.b.emit(eqn.prim, ins, eqn.source), strict=True):
            self.bind(v, w)
        for place in eqn.effects.refs:
            ref = ins[place]
            assert isinstance(ref, Var), "a reference is a variable"
            self.touched.add(ref.id)
            if isinstance(eqn.prim, Freeze | FreeRef):
                self.refs.remove(ref)
        repeatable = not any(isinstance(e, Alloc) or changes_state(e) for e in eqn.effects)
        if repeatable and self.rng.random() < 0.3:
            # What follows uses the second results.
            for v, w in zip(eqn.outs, self.b.emit(eqn.prim, ins, eqn.source), strict=True):
                self.bind(v, w)

    def pad(self) -> None:
        """Add something that could be simpler, and let something else use it."""
        # References that this program may touch: it does so anyway.
        refs = [r for r in self.refs if r.id in self.touched]
        if refs and self.rng.random() < 0.7:
            self.about_references(refs[self.rng.integers(len(refs))])
        floats = [v for v in self.arrays if is_float(v.type.dtype)]
        if floats:
            self.about_arrays(floats[self.rng.integers(len(floats))])

    def about_arrays(self, x: Var) -> None:
        forms: list[Callable[[], Var]] = [
            lambda: self.b(ew.Neg(), self.b(ew.Neg(), x)),
            lambda: self.b(ew.Mul(), x, lit(1, x.type)),
            lambda: self.b(ew.Add(), x, self.b(ew.Neg(), x)),
            lambda: self.b(ew.Add(), x, self.b(ew.Mul(), lit(2, x.type), lit(0.25, x.type))),
        ]
        made = forms[self.rng.integers(len(forms))]()
        if made.type is x.type:
            # The program goes on with the new value in the place of the old one.
            self.env = [made if a is x else a for a in self.env]
            self.arrays.append(made)

    def about_references(self, ref: Var) -> None:
        assert isinstance(ref.type, RefType)
        indexer, operands = self.part(ref)
        get, swap = Get(indexer), Swap(indexer)
        value = self.stored(self.b(get, ref, *operands))
        numbers = family(ref.type.dtype) not in ("bool", "void")
        match self.rng.integers(5):
            case 0:
                self.b.emit(swap, [ref, value, *operands])
                self.b.emit(swap, [ref, self.b(get, ref, *operands), *operands])
            case 1 if numbers:
                old = self.b(get, ref, *operands)
                total = self.b(ew.Add(), old, lit(0.5, ref.type))
                if total.type is old.type:
                    self.b.emit(swap, [ref, total, *operands])
            case 2 if numbers:
                self.b.emit(AddUpdate(indexer), [ref, value, *operands])
                self.b.emit(AddUpdate(indexer), [ref, value, *operands])
            case 3 if numbers:
                self.b.emit(AddUpdate(indexer), [ref, value, *operands])
                self.b.emit(swap, [ref, value, *operands])
            case _:
                self.b.emit(swap, [ref, value, *operands])
                self.b.emit(
                    Swap(whole(ref.type.shape)), [ref, self.b(Get(whole(ref.type.shape)), ref)]
                )

    def stored(self, old: Var) -> Atom:
        """A value for a part of which this is the old one: moderate, and of its type."""
        assert isinstance(old.type, ArrayType)
        if self.rng.random() < 0.5:
            return old
        number: Atom = lit(1, old.type)
        return self.b(BroadcastInDim(old.type.shape, ()), number) if old.type.shape else number

    def part(self, ref: Var) -> tuple[Indexer, list[Atom]]:
        """A part of a reference: one position, known or not, or everything."""
        shape = ref.type.shape
        if not shape or not shape[0] or self.rng.random() < 0.3:
            return whole(shape), []
        rest = [Span(0, n) for n in shape[1:]]
        mode = Mode.DROP if self.rng.random() < 0.3 else Mode.CLIP
        scalars = [v for v in self.arrays if v.type.dtype.name == "int32" and not v.type.shape]
        if scalars and self.rng.random() < 0.5:
            return Indexer((Pick(None), *rest), mode), [scalars[self.rng.integers(len(scalars))]]
        return Indexer((Pick(int(self.rng.integers(shape[0]))), *rest)), []
