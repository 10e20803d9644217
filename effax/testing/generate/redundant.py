"""Insert redundant equations into programs, for optimization passes.

Random programs seldom compute a value twice, or overwrite a store. Equations are added that repeat
others, undo themselves, and store and load the same part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from effax.effects import Alloc, changes_state
from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.dtypes import family, is_float, is_inexact_dtype
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import EffaxError
from effax.ir.indexing import Indexer, Mode, Pick, Span, whole
from effax.ir.prims import AddUpdate, BroadcastInDim, FreeRef, Freeze, Get, Jit, NewRef, Swap
from effax.ir.syntax import Atom, Eqn, Jaxpr, Var
from effax.ir.types import ArrayType, RefType, array_type
from effax.testing.generate.instances import FORMS, plant
from effax.transforms.optimize.rewrite import App


def with_redundancy(jaxpr: Jaxpr, seed: int, patterns: Sequence[App] = ()) -> Jaxpr:
    """Return the program with redundant equations at every depth; well typed.

    Args:
        jaxpr: the program.
        seed: determines the equations.
        patterns: patterns whose instances are preferred.
    """
    rng = np.random.default_rng(seed)
    return _Padder(jaxpr, rng, patterns, is_whole=True).run()


class _Padder(Rewriter):
    """Rewrites one program, with the variables in scope."""

    def __init__(
        self,
        jaxpr: Jaxpr,
        rng: np.random.Generator,
        patterns: Sequence[App],
        is_whole: bool = False,
    ) -> None:
        self.refs: list[Var] = []
        self.arrays: list[Var] = []
        super().__init__(jaxpr)
        self.rng = rng
        self.patterns = patterns
        # Unused values become results at the top level, where no equation fixes the results.
        self.more: list[Atom] | None = [] if is_whole else None
        self.touched: set[int] = set()

    def bind(self, variables: Iterable[Var], atoms: Iterable[Atom]) -> None:
        found = [*atoms]
        super().bind(variables, found)
        for a in found:
            if isinstance(a, Var):
                (self.refs if isinstance(a.type, RefType) else self.arrays).append(a)

    def run(self) -> Jaxpr:
        for eqn in self.jaxpr.eqns:
            self.equation(eqn)
            if self.rng.random() < (0.7 if self.patterns else 0.4):
                self.pad()
        if self.more is not None:
            self.pad()
            for ref in [*self.refs, *self.refs]:
                self.reference_steps(ref)
        return self.build([*self.results(), *(self.more or [])])

    def equation(self, eqn: Eqn) -> None:
        ins = self.operands(eqn)
        self.bind(eqn.outs, self.nested_equation(eqn, ins))
        for place in eqn.effects.refs:
            ref = ins[place]
            assert isinstance(ref, Var), "a reference is a variable"
            self.touched.add(ref.id)
            if isinstance(eqn.prim, Freeze | FreeRef):
                self.refs.remove(ref)
        if isinstance(eqn.prim, NewRef) and self.rng.random() < 0.4:
            self.twin(eqn, ins)
        repeatable = not any(isinstance(e, Alloc) or changes_state(e) for e in eqn.effects)
        if repeatable and self.rng.random() < 0.3:
            # Later equations use the second results.
            self.bind(eqn.outs, self.b.emit(eqn.prim, ins, eqn.source))

    def twin(self, eqn: Eqn, ins: Sequence[Atom]) -> None:
        """Append an allocation of the same contents, a store into it, and a load of the first."""
        (first,) = [self.read(v) for v in eqn.outs]
        (second,) = self.b.emit(eqn.prim, ins, eqn.source)
        everything = whole(first.type.shape)
        old = self.b(Get(everything), first)
        self.b.emit(Swap(everything), [second, self.stored(old)])
        self.use(self.b(Get(everything), first))

    def nested_equation(self, eqn: Eqn, ins: Sequence[Atom]) -> tuple[Var, ...]:
        """Append the equation, with redundant equations in its subjaxprs if these still fit."""
        programs = eqn.prim.subjaxprs()
        if programs:
            made = [_Padder(program, self.rng, self.patterns).run() for program in programs]
            try:
                return self.b.emit(eqn.prim.with_subjaxprs(made), ins, eqn.source)
            except EffaxError:
                # Some primitives also fix along which axes results vary.
                pass
        return self.b.emit(eqn.prim, ins, eqn.source)

    def pad(self) -> None:
        """Append a redundant computation, and let later equations use it."""
        # References that the program accesses already: no new effects.
        refs = [r for r in self.refs if r.id in self.touched]
        if refs and self.rng.random() < 0.7:
            self.reference_steps(refs[self.rng.integers(len(refs))])
        self.array_steps()

    def array_steps(self) -> None:
        """Append an instance of a pattern: of the preferred ones, if there are any."""
        arrays = [v for v in self.arrays if family(v.type.dtype) != "void"]
        floats = [v for v in arrays if is_float(v.type.dtype)]
        forms: Sequence[App] = FORMS
        if self.patterns and self.rng.random() < 0.8:
            forms = self.patterns
        elif floats and self.rng.random() < 0.7:
            arrays = floats
        made = plant(self.b, forms[int(self.rng.integers(len(forms)))], arrays, self.rng)
        if made is not None:
            self.use(made)

    def use(self, value: Var) -> None:
        """Replace a variable of the same type by the value in what follows, if there is one."""
        # An integer of a subjaxpr may count the iterations of a loop, which must end.
        fits = self.more is not None or is_inexact_dtype(value.type.dtype)
        olds = [a for a in self.env if fits and isinstance(a, Var) and a.type is value.type]
        if olds:
            old = olds[self.rng.integers(len(olds))]
            self.env = [value if a is old else a for a in self.env]
        elif self.more is not None:
            self.more.append(value)
        self.arrays.append(value)

    def reference_steps(self, ref: Var) -> None:
        assert isinstance(ref.type, RefType)
        indexer, operands = self.part(ref)
        get, swap = Get(indexer), Swap(indexer)
        modes = (indexer.mode, Mode.CLIP, Mode.DROP) if operands else (indexer.mode,)
        load = Get(indexer._replace(mode=modes[self.rng.integers(len(modes))]))
        old = self.b(load, ref, *operands)
        value = self.stored(old)
        place = [ref, value, *operands]
        choice = self.rng.integers(6)
        if family(ref.type.dtype) in ("bool", "void") or choice == 0:
            self.b.emit(swap, place)
            self.between(ref)
            self.use(self.b(get, ref, *operands))
        elif choice == 1:
            self.between(ref)
            total = self.b(p.Add(), old, lit(0.5, ref.type))
            if total.type is old.type:
                self.b.emit(swap, [ref, total, *operands])
        elif choice == 5:
            self.overlapping(ref, swap, place)
        else:
            self.b.emit(AddUpdate(indexer), place)
            self.between(ref)
            self.b.emit((AddUpdate(indexer), swap, swap)[choice - 2], place)
        if self.rng.random() < 0.5:
            # The old contents are observed after a write.
            if self.more is None:
                self.use(old)
            else:
                self.more.append(old)

    def overlapping(self, ref: Var, first: Swap, place: Sequence[Atom]) -> None:
        """Write two parts of the reference, which may overlap."""
        indexer, operands = self.part(ref)
        value = self.stored(self.b(Get(indexer), ref, *operands))
        self.b.emit(first, place)
        self.b.emit(Swap(indexer), [ref, value, *operands])

    def between(self, ref: Var) -> None:
        """Sometimes append another access to the reference."""
        everything = whole(ref.type.shape)
        match self.rng.integers(6):
            case 0:
                self.b.emit(Swap(everything), [ref, self.stored(self.b(Get(everything), ref))])
            case 1:
                inner = Builder([ref.type])
                read = inner.finish([inner(Get(everything), *inner.binders)])
                self.use(self.b(Jit(read, "read"), ref))
            case 2:
                self.use(self.b(Get(everything), ref))
            case _:
                pass

    def stored(self, old: Var) -> Atom:
        """Return a moderate value of the type of a part."""
        assert isinstance(old.type, ArrayType)
        if self.rng.random() < 0.3:
            return old
        number: Atom = lit(int(self.rng.integers(1, 4)), old.type)
        return self.b(BroadcastInDim(old.type.shape, ()), number) if old.type.shape else number

    def part(self, ref: Var) -> tuple[Indexer, list[Atom]]:
        """Return a part of a reference: a position or everything, static or dynamic."""
        shape = ref.type.shape
        if not shape or not shape[0] or self.rng.random() < 0.3:
            return whole(shape), []
        rest = [Span(0, n) for n in shape[1:]]
        mode = Mode.DROP if self.rng.random() < 0.4 else Mode.CLIP
        numbers = [v for v in self.arrays if v.type.dtype.name == "int32" and not v.type.shape]
        if self.rng.random() < 0.35:
            # A position out of range.
            return Indexer((Pick(None), *rest), mode), [lit(shape[0], array_type((), "int32"))]
        if numbers and self.rng.random() < 0.5:
            return Indexer((Pick(None), *rest), mode), [numbers[self.rng.integers(len(numbers))]]
        return Indexer((Pick(int(self.rng.integers(shape[0]))), *rest)), []
