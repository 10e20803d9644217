"""Yield smaller variants of a program, to shrink one that breaks a law.

A candidate may be ill typed, or keep the law; the search checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from effax.ir.build import Builder, lit
from effax.ir.dtypes import family
from effax.ir.errors import EffaxError
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import And, BroadcastInDim, Cond, While
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Shape, Type, ref_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.runner import unwrap
from effax.transforms.optimize.dce import dce
from effax.transforms.optimize.inline import inline

T = TypeVar("T")


class Subject(NamedTuple):
    """A program with the mask of its linear inputs."""

    jaxpr: Jaxpr
    linear: Mask


Edit = Callable[["Rebuilder", int, Eqn, tuple[Atom, ...]], Sequence[Atom | None]]
"""Return the values of an equation's results, given its operands; None: removed."""


class Rebuilder:
    """Rebuilds a program by an edit of each equation; removed variables in use become inputs."""

    def __init__(self, subject: Subject, types: Sequence[Type] | None = None) -> None:
        jaxpr = subject.jaxpr
        self.old = jaxpr
        self.b: Builder = Builder(jaxpr.in_types if types is None else types)
        self.env: dict[int, Atom] = {
            v.id: w for v, w in zip(jaxpr.binders, self.b.binders, strict=True)
        }
        self.linear: dict[int, bool] = dict(
            zip([v.id for v in self.b.binders], subject.linear, strict=True)
        )
        # Variables that depend on linear inputs, removed ones included.
        self.reached: set[int] = {
            v.id for v, has in zip(jaxpr.binders, subject.linear, strict=True) if has
        }
        for eqn in jaxpr.eqns:
            if any(isinstance(a, Var) and a.id in self.reached for a in eqn.ins):
                self.reached.update(v.id for v in eqn.outs)

    def value(self, atom: Atom) -> Atom:
        """Return the atom of the new program for one of the old program."""
        if isinstance(atom, Lit):
            return atom
        found = self.env.get(atom.id)
        if found is None:
            v = self.b.bind(atom.type)
            self.linear[v.id] = atom.id in self.reached
            found = self.env[atom.id] = v
        return found

    def run(self, edit: Edit, outs: Sequence[Atom] | None = None) -> Subject:
        """Return the new program, with other results if given. Raises IllTyped."""
        for i, eqn in enumerate(self.old.eqns):
            given = edit(self, i, eqn, eqn.ins)
            pairs = zip(eqn.outs, given, strict=True)
            self.env.update({v.id: a for v, a in pairs if a is not None})
        made = self.b.finish([self.value(a) for a in (self.old.outs if outs is None else outs)])
        return Subject(made, tuple([self.linear[v.id] for v in made.binders]))

    def keep(self, eqn: Eqn, prim: Primitive | None = None) -> Sequence[Atom]:
        """Append an equation, with another primitive if given."""
        return self.b.emit(prim or eqn.prim, [self.value(a) for a in eqn.ins], eqn.source)


def made_of(guesses: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Yield the results of the functions that do not fail."""
    for make in guesses:
        try:
            yield make()
        except (EffaxError, AssertionError, TypeError, ValueError, IndexError):
            # The candidate is ill typed.
            continue


Guesses = Iterator[Callable[[], Subject]]
"""Candidates of a kind, unbuilt: building one may fail."""


def parts(n: int) -> Iterator[tuple[int, int]]:
    """Yield ranges within ``range(n)`` from the end: all, then of half the length, and so on."""
    size = n
    while size:
        yield from ((max(0, stop - size), stop) for stop in range(n, 0, -size))
        size //= 2


def _alone(subject: Subject) -> Guesses:
    """Keep one equation, or one and those that define its operands; return its results."""
    eqns = list(subject.jaxpr.eqns)
    made = {v.id: i for i, eqn in enumerate(eqns) for v in eqn.outs}
    for deep in (False, True):
        for i, eqn in enumerate(eqns):
            before = {made[a.id] for a in eqn.ins if isinstance(a, Var) and a.id in made}
            if bool(before) >= deep:
                outs = [v for v in eqn.outs if isinstance(v.type, ArrayType)]
                yield partial(_only, subject, {i, *before} if deep else {i}, outs)


def _only(subject: Subject, kept: set[int], outs: Sequence[Atom]) -> Subject:
    def edit(r: Rebuilder, i: int, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom | None]:
        return r.keep(eqn) if i in kept else [None] * len(eqn.outs)

    return Rebuilder(subject).run(edit, outs)


def _fewer_results(subject: Subject) -> Guesses:
    jaxpr, linear = subject
    for start, stop in parts(len(jaxpr.outs)):
        kept = [*jaxpr.outs[:start], *jaxpr.outs[stop:]]
        yield partial(Subject, Jaxpr(jaxpr.binders, jaxpr.eqns, kept), linear)


def _dead(subject: Subject) -> Guesses:
    jaxpr, linear = subject
    yield lambda: Subject(unwrap(inline(jaxpr)), linear)

    def without_dead() -> Subject:
        made, used = unwrap(dce(jaxpr, keep_inputs=False))
        return Subject(made, tuple([x for x, has in zip(linear, used, strict=True) if has]))

    yield without_dead


def _cut(subject: Subject) -> Guesses:
    """Remove ranges of equations; replace single ones by an operand of the same type."""
    for start, stop in parts(len(subject.jaxpr.eqns)):
        gone = range(start, stop)
        if stop == start + 1:
            eqn = subject.jaxpr.eqns[start]
            for place, a in enumerate(eqn.ins):
                if len(eqn.outs) == 1 and a.type == eqn.outs[0].type:
                    yield partial(_without, subject, gone, place)
        yield partial(_without, subject, gone)


def _without(subject: Subject, gone: range, place: int | None = None) -> Subject:
    def edit(r: Rebuilder, i: int, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom | None]:
        if i not in gone:
            return r.keep(eqn)
        return [None if place is None else r.value(ins[place]) for _ in eqn.outs]

    return Rebuilder(subject).run(edit)


def _opened(subject: Subject) -> Guesses:
    """Replace an equation by one evaluation of a subjaxpr."""
    for i in reversed(range(len(subject.jaxpr.eqns))):
        eqn = subject.jaxpr.eqns[i]
        for region in eqn.prim.regions():
            yield partial(_open, subject, i, region)


def _open(subject: Subject, at: int, region: Region) -> Subject:
    def edit(r: Rebuilder, i: int, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom | None]:
        if i != at:
            return r.keep(eqn)
        args = []
        for v, place in zip(region.jaxpr.binders, region.args, strict=True):
            atom = ins[place]
            if atom.type == v.type:
                args.append(r.value(atom))
                continue
            # A scanned element of the operand becomes an input.
            new = r.b.bind(v.type)
            r.linear[new.id] = isinstance(atom, Var) and atom.id in r.reached
            args.append(new)
        outs: list[Atom | None] = [None] * len(eqn.outs)
        given = r.b.inline_jaxpr(region.jaxpr, args)
        for found, j in zip(given, region.results, strict=True):
            if j is not None and found.type == eqn.outs[j].type:
                outs[j] = found
        return outs

    return Rebuilder(subject).run(edit)


def _within(subject: Subject) -> Guesses:
    """Shrink a subjaxpr, without changing its types."""
    for i in reversed(range(len(subject.jaxpr.eqns))):
        prim = subject.jaxpr.eqns[i].prim
        for made in _smaller_prims(prim):
            yield partial(_with_prim, subject, i, made)


def _with_prim(subject: Subject, at: int, make: Callable[[], Primitive]) -> Subject:
    prim = make()

    def edit(r: Rebuilder, i: int, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom | None]:
        return r.keep(eqn, prim if i == at else None)

    return Rebuilder(subject).run(edit)


def _smaller_prims(prim: Primitive) -> Iterator[Callable[[], Primitive]]:
    subjaxprs = prim.subjaxprs()
    for k, program in enumerate(subjaxprs):
        for make in closed(program, isinstance(prim, While)):
            yield partial(_holding, prim, k, make)
        if isinstance(prim, Cond):
            for other in subjaxprs:
                if other is not program:
                    yield partial(prim.with_subjaxprs, [*subjaxprs[:k], other, *subjaxprs[k + 1 :]])


def _holding(prim: Primitive, k: int, make: Callable[[], Jaxpr]) -> Primitive:
    subjaxprs = prim.subjaxprs()
    return prim.with_subjaxprs([*subjaxprs[:k], make(), *subjaxprs[k + 1 :]])


def closed(jaxpr: Jaxpr, loops: bool = False) -> Iterator[Callable[[], Jaxpr]]:
    """Yield smaller programs with the same types of inputs and results.

    Args:
        jaxpr: the program.
        loops: whether it belongs to a loop without a fixed number of iterations.
    """
    yield lambda: unwrap(dce(jaxpr)).jaxpr
    yield lambda: unwrap(inline(jaxpr))
    eqns = list(jaxpr.eqns)
    counting = {i for i, eqn in enumerate(eqns) if loops and _counts(jaxpr, eqn)}
    for start, stop in parts(len(eqns)):
        if not counting.intersection(range(start, stop)):
            yield partial(_without_closed, jaxpr, range(start, stop))
    for i in sorted(counting):
        if isinstance(eqns[i].prim, And):
            # The first operand of the condition bounds the iterations.
            yield partial(_same_inputs, jaxpr, partial(_without, _plain(jaxpr), range(i, i + 1), 0))
    for i, eqn in enumerate(eqns):
        for region in eqn.prim.regions():
            yield partial(_same_inputs, jaxpr, partial(_open, _plain(jaxpr), i, region))
        for make in _smaller_prims(eqn.prim):
            yield partial(_same_inputs, jaxpr, partial(_with_prim, _plain(jaxpr), i, make))


def _counts(jaxpr: Jaxpr, eqn: Eqn) -> bool:
    """Return whether an equation may determine the number of iterations of a loop.

    Conditions are booleans, and counters are results.
    """
    condition = len(jaxpr.outs) == 1 and jaxpr.outs[0].type.dtype.kind == "b"
    return any(
        v.type.dtype.kind in "iub" and (v in jaxpr.outs or (condition and v.type.dtype.kind == "b"))
        for v in eqn.outs
    )


def _plain(jaxpr: Jaxpr) -> Subject:
    return Subject(jaxpr, (False,) * len(jaxpr.binders))


def _same_inputs(jaxpr: Jaxpr, make: Callable[[], Subject]) -> Jaxpr:
    made = make().jaxpr
    if made.in_types != jaxpr.in_types:
        raise ValueError("the inputs differ")
    return made


def _without_closed(jaxpr: Jaxpr, gone: range) -> Jaxpr:
    """Remove some equations; other values of the same types replace their results."""
    needed = {a.id for a in jaxpr.outs if isinstance(a, Var)}
    for i, eqn in enumerate(jaxpr.eqns):
        if i not in gone:
            needed |= {a.id for a in eqn.ins if isinstance(a, Var)}

    def edit(r: Rebuilder, i: int, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom | None]:
        if i not in gone:
            return r.keep(eqn)
        given = [r.value(a) for a in ins] + list(r.b.binders)
        return [_like(r.b, v.type, given) if v.id in needed else None for v in eqn.outs]

    return Rebuilder(_plain(jaxpr)).run(edit).jaxpr


def _like(b: Builder, type_: Type, given: Sequence[Atom]) -> Atom:
    """Return one of the values with the type; else ones of the type."""
    for atom in given:
        if atom.type == type_ and isinstance(atom, Var):
            return atom
    if not isinstance(type_, ArrayType):
        raise ValueError("no reference has this type")
    one = lit(True if family(type_.dtype) == "bool" else 1, type_.update(shape=()))
    return b(BroadcastInDim(type_.shape, ()), one) if type_.shape else one


def _fewer_inputs(subject: Subject) -> Guesses:
    """Remove unused inputs; replace an input by another of the same type."""
    jaxpr, linear = subject
    used = {a.id for a in jaxpr.outs if isinstance(a, Var)}
    used |= {a.id for eqn in jaxpr.eqns for a in eqn.ins if isinstance(a, Var)}
    yield partial(
        _without_inputs, subject, [i for i, v in enumerate(jaxpr.binders) if v.id not in used]
    )
    for i in reversed(range(len(jaxpr.binders))):
        yield partial(_without_inputs, subject, [i])
        for j in range(i):
            same = jaxpr.binders[i].type == jaxpr.binders[j].type and linear[i] == linear[j]
            if same and isinstance(jaxpr.binders[i].type, ArrayType):
                yield partial(_without_inputs, subject, [i], {i: j})


def _without_inputs(
    subject: Subject, gone: Sequence[int], others: Mapping[int, int] | None = None
) -> Subject:
    jaxpr, linear = subject
    kept = [i for i in range(len(jaxpr.binders)) if i not in gone]
    b = Builder([jaxpr.binders[i].type for i in kept])
    places = {i: b.binders[k] for k, i in enumerate(kept)}
    places |= {i: places[j] for i, j in (others or {}).items()}
    env: dict[int, Atom] = {jaxpr.binders[i].id: v for i, v in places.items()}

    def value(a: Atom) -> Atom:
        if isinstance(a, Lit):
            return a
        if a.id not in env:
            raise ValueError("an input is used")
        return env[a.id]

    for eqn in jaxpr.eqns:
        outs = b.emit(eqn.prim, [value(a) for a in eqn.ins], eqn.source)
        env.update({v.id: w for v, w in zip(eqn.outs, outs, strict=True)})
    made = b.finish([value(a) for a in jaxpr.outs])
    return Subject(made, tuple([linear[i] for i in kept]))


def _scalars(subject: Subject) -> Guesses:
    """Reduce a shape of inputs, wherever it occurs."""
    for shape in dict.fromkeys(v.type.shape for v in subject.jaxpr.binders):
        for other in dict.fromkeys([(), shape[1:], tuple(min(n, 1) for n in shape)]):
            if shape and other != shape:
                yield partial(_reshaped, subject, shape, other)


def _reshaped(subject: Subject, shape: Shape, other: Shape) -> Subject:
    def new(type_: Type) -> Type:
        if type_.shape != shape:
            return type_
        if isinstance(type_, RefType):
            return ref_type(type_.inner.update(shape=other), type_.kind)
        return type_.update(shape=other)

    def edit(r: Rebuilder, i: int, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom | None]:
        prim = eqn.prim
        if isinstance(prim, BroadcastInDim) and prim.shape == shape and not ins[0].type.shape:
            return [r.b(BroadcastInDim(other, ()), r.value(ins[0]))] if other else [r.value(ins[0])]
        return r.keep(eqn)

    return Rebuilder(subject, [new(t) for t in subject.jaxpr.in_types]).run(edit)


WAYS: Final = (*(_alone, _fewer_results, _dead, _cut, _opened, _within, _fewer_inputs, _scalars),)
"""The kinds of candidates, those that remove most first."""

INPUTS: Final = WAYS.index(_fewer_inputs)
"""The kind that removes inputs."""


def smaller(subject: Subject, way: int) -> Iterator[Subject]:
    """Yield the candidates of a kind that can be built."""
    return made_of(WAYS[way](subject))


CHEAP: Final = (BroadcastInDim,)


def measure(jaxpr: Jaxpr) -> tuple[int, int, int, int]:
    """Return the size of a program: equations, results, inputs, elements."""
    known: dict[Jaxpr, int] = {}

    def weight(program: Jaxpr) -> int:
        if program not in known:
            known[program] = sum(
                (1 if isinstance(eqn.prim, CHEAP) else 2) + sum(map(weight, eqn.prim.subjaxprs()))
                for eqn in program.eqns
            )
        return known[program]

    elements = 0
    for v in jaxpr.binders:
        count = 1
        for n in v.type.shape:
            count *= n + 1
        elements += count
    return weight(jaxpr), len(jaxpr.outs), len(jaxpr.binders), elements
