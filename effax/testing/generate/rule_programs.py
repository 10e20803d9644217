"""Programs to which a rule should apply, for rules on references, sequences, types and literals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from effax.ir.build import Builder
from effax.ir.dtypes import as_dtype, family
from effax.ir.errors import EffaxError
from effax.ir.indexing import Indexer, Mode, Pick, Span, whole
from effax.ir.prims import AddUpdate, FreeRef, Freeze, Get, Swap
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Shape, Type, array_type, ref_type
from effax.transforms.optimize.hole_types import hole_type
from effax.transforms.optimize.holes import AnyNumber, Hole, IndexHole, Number, Rest
from effax.transforms.optimize.matcher import number_as
from effax.transforms.optimize.patterns import App, Pattern, Sample, Seq, parts
from effax.transforms.optimize.rewrite_rule import RewriteRule, steps_of, with_parameters

SHAPE: Final[Shape] = (3, 2)
"""The shape of references."""

INDICES: Final = (whole(SHAPE), Indexer((Pick(1), Span(0, 2))), Indexer((Pick(None), Pick(0))))
"""The parts of references that are accessed: all, a row, and an element whose row is an operand."""

DROPPED: Final = (Indexer((Pick(None), Span(0, 2)), Mode.DROP),)
"""Further parts, whose elements may not exist."""

DTYPES: Final = ("float32", "int32", "bool", "bfloat16", "complex64")
REFS: Final = (Get, Swap, AddUpdate, Freeze, FreeRef)


def has_own_programs(rule: RewriteRule) -> bool:
    """Return whether a rule is tried on programs, since its left side is more than operations."""
    own = isinstance(rule.left, Seq) or any(isinstance(s, Jaxpr) for s in rule.samples)
    return own or any(
        isinstance(p, AnyNumber | Rest | IndexHole)
        or (isinstance(p, Hole) and p.type)
        or (isinstance(p, App) and (p.bodies or p.kind in REFS))
        for p in parts(rule.left)
    )


def rule_programs(rule: RewriteRule) -> Iterator[Jaxpr]:
    """Yield the programs among the samples of a rule; without samples, instances of its left side.

    Raises BadArgument for a left side whose primitives have parameters, and a rule without samples.
    """
    given = [s for s in rule.samples if isinstance(s, Jaxpr)]
    yield from given
    samples = [s for s in rule.samples if isinstance(s, Sample)]
    for sample in samples:
        dtypes = DTYPES if sample.dtype is None else (sample.dtype,)
        for dtype in dtypes:
            yield from _built(rule, sample.left, dtype, sample.shape, {})
    if not rule.samples:
        yield from _instances(rule)


def _instances(rule: RewriteRule) -> Iterator[Jaxpr]:
    holes = {p.name: p for p in parts(rule.left) if isinstance(p, IndexHole)}
    places = sorted(holes)
    for dtype in DTYPES:
        for chosen in product(
            *[INDICES if holes[n].distinct else (*INDICES, *DROPPED) for n in places]
        ):
            indices = dict(zip(places, chosen, strict=True))
            shapes = [_shape_of(i) for i in chosen[:1]] or [(3,), ()]
            for shape in shapes:
                yield from _built(rule, rule.left, dtype, shape, indices)


def _shape_of(index: Indexer) -> Shape:
    return tuple([dim.size for dim in index.dims if isinstance(dim, Span)])


def _built(
    rule: RewriteRule, left: App | Seq, dtype: str, shape: Shape, indices: Mapping[str, Indexer]
) -> Iterator[Jaxpr]:
    """Yield the program of the left side, if it type checks."""
    steps = steps_of(left)
    bound = {name for step in steps for name in step.names}
    refs = _refs(left)
    holes = [p for p in dict.fromkeys(parts(left)) if isinstance(p, Hole) and p.name not in bound]
    # A hole may have its type in one of its occurrences.
    typed = {h.name: h for h in sorted(holes, key=lambda h: bool(h.type))}
    types = {name: _type_of(h, dtype, shape, name in refs) for name, h in typed.items()}
    if any(t is None or family(t.dtype) not in rule.families for t in [*types.values()][:1]):
        return
    operands = {name: index for name, index in indices.items() if index.n_operands}
    b = Builder(
        [*[t for t in types.values() if t is not None], *[array_type((), "int32")] * len(operands)]
    )
    made = _Instance(rule, b, dict(zip([*types, *operands], b.binders, strict=False)), indices)
    try:
        results = [made.step(step.names, step.value) for step in steps]
    except EffaxError:
        return
    yield b.finish(_observed(rule, made, results))


def _observed(rule: RewriteRule, made: _Instance, results: Sequence[Sequence[Atom]]) -> list[Atom]:
    """Return the results that the right side defines; all those of an application."""
    if isinstance(rule.left, App):
        return list(results[-1])
    if not isinstance(rule.right, Seq):
        return []
    names = {name for step in rule.right.steps for name in step.names}
    bound = [name for step in rule.left.steps for name in step.names]
    return [made.atoms[name] for name in bound if name in names and _is_array(made.atoms[name])]


def _is_array(atom: Atom) -> bool:
    return str(atom.type)[:1].islower() or str(atom.type).startswith("~")


def _refs(left: Pattern | Seq) -> set[str]:
    found = [p.args[0] for p in parts(left) if isinstance(p, App) and p.kind in REFS and p.args]
    return {p.name for p in found if isinstance(p, Hole)}


def _type_of(hole: Hole, dtype: str, shape: Shape, is_ref: bool) -> Type | None:
    if not hole.type:
        plain = array_type(SHAPE if is_ref else shape, dtype)
        return ref_type(plain) if is_ref else plain
    wanted = hole_type(hole.type)
    own = wanted.dtype or dtype
    if wanted.families and family(as_dtype(own)) not in wanted.families:
        return None
    dims = SHAPE if is_ref else shape
    if wanted.dims is not None:
        dims = tuple([_size(dim) for dim in wanted.dims])
    plain = array_type(dims, own, wanted.weak)
    return ref_type(array_type(dims, own)) if wanted.is_ref or is_ref else plain


def _size(dim: int | str | None) -> int:
    return dim if isinstance(dim, int) else 2 if dim is None else 2 + sum(map(ord, dim)) % 3


class _Instance:
    """The atoms of an instance of a left side."""

    def __init__(
        self, rule: RewriteRule, b: Builder, atoms: dict[str, Atom], indices: Mapping[str, Indexer]
    ) -> None:
        self.rule = rule
        self.b = b
        self.atoms = atoms
        self.indices = indices

    def step(self, names: Sequence[str], value: Pattern) -> tuple[Atom, ...]:
        """Append a step, and bind its results."""
        assert isinstance(value, App), "a step of a left side"
        outs = self.results(value)
        self.atoms.update(zip(names, outs, strict=False))
        return outs

    def results(self, app: App) -> tuple[Atom, ...]:
        """Append an application, and return its results."""
        ins: list[Atom | None] = []
        for arg in app.args:
            match arg:
                case Hole(name):
                    ins.append(self.atoms[name])
                case App():
                    ins.append(self.results(arg)[0])
                case IndexHole(name):
                    ins += [self.atoms[name]] if self.indices[name].n_operands else []
                case Number() | AnyNumber():
                    ins.append(None)
                case Rest():
                    with_parameters(self.rule, App(app.kind, arg))
        like = next((a.type for a in ins if a is not None), array_type((), "float32"))
        numbers = iter([arg for arg in app.args if isinstance(arg, Number | AnyNumber)])
        filled = [self.number(next(numbers), like) if a is None else a for a in ins]
        last = app.args[-1] if app.args else None
        if isinstance(last, IndexHole) and isinstance(app.prim, type):
            prim = app.prim(**{**dict(app.params), "indexer": self.indices[last.name]})
        else:
            prim = with_parameters(self.rule, app)
        return self.b.emit(prim, filled)

    def number(self, number: Number | AnyNumber, like: Type) -> Atom:
        """Return a literal; numbers of one name are one."""
        value = number.value if isinstance(number, Number) else 2 + sum(map(ord, number.name)) % 5
        found = number_as(value, like)
        if found is None:
            raise EffaxError("the dtype lacks the number")
        return found
