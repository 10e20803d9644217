"""Matching of patterns with equations, their operands, and the programs inside of them.

A match binds names. Those of a sequence are found backward from its last step: each earlier step
defines a value that later ones use, or accesses a reference of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from effax.effects import ArgIndex, Row
from effax.ir.analysis.queries import PathStep
from effax.ir.build import lit
from effax.ir.dtypes import family, int_bounds
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.indexing import Indexer, Mode
from effax.ir.primitive import Primitive, Region
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Scalar, Var
from effax.ir.types import Type
from effax.transforms.optimize.hole_types import hole_type
from effax.transforms.optimize.holes import AnyNumber, Hole, IndexHole, Number, Param, Rest, near
from effax.transforms.optimize.patterns import EFFECTS, App, Body, Pattern

T = TypeVar("T")

Path = tuple[int, ...]
"""The regions, by number, that lead from a matched equation to a program inside of it."""

OUTSIDE: Final[Path] = ()


class Bindings(dict[str, T]):
    """The parts of a match, by name. Raises BadArgument for a name that the left side lacks."""

    def __missing__(self, name: str) -> T:
        raise BadArgument(
            f"the left side of the rule has no name `{name}`",
            expected=", ".join(self) or "no name",
            found=name,
            remedy=near(name, self),
        )


class Index(NamedTuple):
    """The index of an access: the indexer and its operands."""

    indexer: Indexer
    operands: tuple[Atom, ...]


class Match:
    """The result of matching a pattern.

    Attributes:
        atoms: the variable or literal of each hole and number, by name.
        prims: the primitive of each named application.
        eqns: the equation of each named application.
        rests: the atoms of each ``Rest``.
        indices: the index of each ``IndexHole``.
        params: the value of each ``Param``.
        sizes: the named sizes of the types.
        path: the steps that lead to the program, outermost first, as those of a ``Place``.
        jaxpr: the program that contains the equations; None while it is being rewritten.
        positions: the positions of the matched equations there, in order.
    """

    __slots__ = (
        "atoms",
        "eqns",
        "indices",
        "inside",
        "jaxpr",
        "outside",
        "params",
        "path",
        "positions",
        "prims",
        "regions",
        "rests",
        "scopes",
        "sizes",
    )

    def __init__(self) -> None:
        self.atoms: Bindings[Atom] = Bindings()
        self.prims: Bindings[Primitive] = Bindings()
        self.eqns: Bindings[Eqn] = Bindings()
        self.rests: Bindings[tuple[Atom, ...]] = Bindings()
        self.indices: Bindings[Index] = Bindings()
        self.params: Bindings[object] = Bindings()
        self.sizes: Bindings[int] = Bindings()
        self.path: tuple[PathStep, ...] = ()
        self.jaxpr: Jaxpr | None = None
        self.positions: tuple[int, ...] = ()
        # The program in which a name is bound, the one outside excepted.
        self.scopes: dict[str, Path] = {}
        # Equations of the program that match applications inside of others.
        self.inside: list[Eqn] = []
        self.regions: dict[str, Path] = {}
        # Names that must be bound outside of regions.
        self.outside: frozenset[str] = frozenset()

    def value(self, name: str) -> Scalar:
        """Return the value of a literal. Raises BadArgument unless the name is one's."""
        atom = self.atoms[name]
        if not isinstance(atom, Lit):
            raise BadArgument(f"`{name}` is not a literal", f"`AnyNumber({name!r})`", str(atom))
        return atom.value

    def copy(self) -> Match:
        """Return a match that can be extended without changing this one."""
        made = Match()
        for name in ("atoms", "prims", "eqns", "rests", "indices", "params", "sizes"):
            setattr(made, name, Bindings(getattr(self, name)))
        made.scopes, made.regions = {**self.scopes}, {**self.regions}
        made.inside, made.outside = [*self.inside], self.outside
        return made

    def __repr__(self) -> str:
        names = {**self.atoms, **self.rests, **self.params, **self.prims}
        inner = ", ".join(f"{name}={found}" for name, found in names.items())
        at = "/".join([*map(str, self.path), ",".join(map(str, self.positions))])
        return f"Match({at}: {inner})" if self.jaxpr is not None else f"Match({inner})"


class Scope(NamedTuple):
    """A program in which patterns are matched.

    Attributes:
        by_var: the equation of each variable.
        path: where it is.
        outer: the scope outside, if there is one.
        given: by number, the atoms outside that are inputs in every iteration.
    """

    by_var: Mapping[int, Eqn]
    path: Path = OUTSIDE
    outer: Scope | None = None
    given: Mapping[int, Atom] = {}


def match_app(app: App, eqn: Eqn, scope: Scope, match: Match) -> bool:
    """Return whether an equation matches an application, and bind its names."""
    prim, expected = eqn.prim, app.prim
    fits = type(prim) is expected if isinstance(expected, type) else prim == expected
    if not fits or not _match_operands(app, eqn, scope, match):
        return False
    if app.name:
        match.prims[app.name] = prim
        match.eqns[app.name] = eqn
        match.regions[app.name] = scope.path
    return (
        (not app.type or (bool(eqn.outs) and _has_type(app.type, eqn.outs[0].type, match)))
        and (app.effects is None or _has_effects(app.effects, eqn.effects))
        and all(_match_param(prim, name, value, match) for name, value in app.params)
        and (not app.bodies or _match_bodies(app, eqn, scope, match))
    )


def _match_operands(app: App, eqn: Eqn, scope: Scope, match: Match) -> bool:
    args, ins = app.args, eqn.ins
    last = args[-1] if args else None
    if not isinstance(last, Rest | IndexHole):
        return len(args) == len(ins) and all(
            match_atom(p, a, scope, match) for p, a in zip(args, ins, strict=True)
        )
    if isinstance(last, Rest):
        n = len(args) - 1
        if len(ins) < n or not match_rest(last.name, ins[n:], scope, match):
            return False
    else:
        n = len(args) - 1
        if len(ins) < n or not _match_index(last, eqn, ins[n:], scope, match):
            return False
    return all(match_atom(p, a, scope, match) for p, a in zip(args[:n], ins[:n], strict=True))


def match_rest(name: str, atoms: Sequence[Atom], scope: Scope, match: Match) -> bool:
    """Bind several atoms, or compare with their binding; return whether they match."""
    several, path = _together(atoms, scope)
    return (
        _may_be_bound(name, path, match)
        and match.rests.setdefault(name, several) == several
        and match.scopes.setdefault(name, path) == path
    )


def _match_index(
    hole: IndexHole, eqn: Eqn, atoms: Sequence[Atom], scope: Scope, match: Match
) -> bool:
    name, indexer = hole.name, getattr(eqn.prim, "indexer", None)
    if not isinstance(indexer, Indexer):
        return False
    if hole.distinct and (indexer.mode is not Mode.CLIP or any(a.type.shape for a in atoms)):
        return False
    operands, path = _together(atoms, scope)
    index = Index(indexer, operands)
    return (
        _may_be_bound(name, path, match)
        and match.indices.setdefault(name, index) == index
        and match.scopes.setdefault(name, path) == path
    )


def _together(atoms: Sequence[Atom], scope: Scope) -> tuple[tuple[Atom, ...], Path]:
    """Return the atoms outside, if all are there in every iteration; else as they are."""
    found = [_outermost(a, scope) for a in atoms]
    if any(path for _, path in found):
        return tuple(atoms), scope.path
    return tuple([a for a, _ in found]), OUTSIDE


def match_atom(pattern: Pattern, atom: Atom, scope: Scope, match: Match) -> bool:
    """Return whether an atom matches a pattern, and bind its names."""
    match pattern:
        case Hole(name, type_):
            return (not type_ or _has_type(type_, atom.type, match)) and match_name(
                name, atom, scope, match
            )
        case Number(value):
            return isinstance(atom, Lit) and atom == number_as(value, atom.type)
        case AnyNumber(name, type_):
            fits = isinstance(atom, Lit) and (not type_ or _has_type(type_, atom.type, match))
            return fits and match_name(name, atom, scope, match)
        case App():
            eqn = scope.by_var.get(atom.id) if isinstance(atom, Var) else None
            if eqn is None or (len(eqn.outs) > 1 and eqn.outs[0] != atom):
                return False
            if not match_app(pattern, eqn, scope, match):
                return False
            if scope.path == OUTSIDE:
                match.inside.append(eqn)
            return True
        case _:
            return False


def match_name(name: str, atom: Atom, scope: Scope, match: Match) -> bool:
    """Bind a name, or compare with its binding; return whether it matches."""
    path = OUTSIDE
    if scope.outer is not None:
        atom, path = _outermost(atom, scope)
    known = match.atoms.get(name)
    if known is not None:
        # Equal variables of two programs are two.
        return known == atom and match.scopes.get(name, OUTSIDE) == path
    match.atoms[name] = atom
    if path:
        match.scopes[name] = path
    return _may_be_bound(name, path, match)


def _may_be_bound(name: str, path: Path, match: Match) -> bool:
    return not path or name not in match.outside


def _outermost(atom: Atom, scope: Scope) -> tuple[Atom, Path]:
    """Return the atom, of the outermost program that has it in every iteration, and the path."""
    while scope.outer is not None and isinstance(atom, Var) and atom.id in scope.given:
        atom, scope = scope.given[atom.id], scope.outer
    return atom, OUTSIDE if isinstance(atom, Lit) else scope.path


def _has_type(text: str, type_: Type, match: Match) -> bool:
    return hole_type(text).matches(type_, match.sizes)


def _has_effects(words: Iterable[str], row: Row[ArgIndex]) -> bool:
    kinds = tuple([EFFECTS[word] for word in words])
    return all(isinstance(effect, kinds) for effect in row)


def _match_param(prim: Primitive, name: str, value: object, match: Match) -> bool:
    found: object = getattr(prim, name)
    if isinstance(value, Param):
        return bool(match.params.setdefault(value.name, found) == found)
    return bool(found == value)


def _match_bodies(app: App, eqn: Eqn, scope: Scope, match: Match) -> bool:
    regions = eqn.prim.regions()
    if len(app.bodies) > len(regions) or len(regions) != len(eqn.prim.subjaxprs()):
        return False
    return all(
        _match_body(body, scope_of(eqn, regions, k, scope), regions[k].jaxpr, match)
        for k, body in enumerate(app.bodies)
    )


def scope_of(eqn: Eqn, regions: Sequence[Region], k: int, outer: Scope) -> Scope:
    """Return the scope of region ``k`` of an equation."""
    carried = {c for region in regions for c in region.carry_to if c is not None}
    region = regions[k]
    given = {
        v.id: eqn.ins[arg]
        for i, (v, arg) in enumerate(zip(region.jaxpr.binders, region.args, strict=True))
        if arg not in carried and i not in region.parts and v.type is eqn.ins[arg].type
    }
    by_var = {v.id: inner for inner in region.jaxpr.eqns for v in inner.outs}
    return Scope(by_var, (*outer.path, k), outer, given)


def _match_body(body: Body, scope: Scope, jaxpr: Jaxpr, match: Match) -> bool:
    if body.invariant:
        match.outside |= frozenset(body.invariant)
    return (
        (body.ins is None or _match_several(body.ins, jaxpr.binders, scope, match))
        and (body.outs is None or _match_several(body.outs, jaxpr.outs, scope, match))
        and all(_contains(app, jaxpr, scope, match) for app in body.contains)
    )


def _match_several(
    patterns: Sequence[Pattern], atoms: Sequence[Atom], scope: Scope, match: Match
) -> bool:
    last = patterns[-1] if patterns else None
    n = len(patterns) - isinstance(last, Rest)
    if len(atoms) < n or (len(atoms) > n and not isinstance(last, Rest)):
        return False
    if isinstance(last, Rest) and not match_rest(last.name, atoms[n:], scope, match):
        return False
    return all(match_atom(p, a, scope, match) for p, a in zip(patterns[:n], atoms, strict=False))


def _contains(app: App, jaxpr: Jaxpr, scope: Scope, match: Match) -> bool:
    """Match the first equation of a program that matches an application."""
    kind = app.kind
    for eqn in jaxpr.eqns:
        if type(eqn.prim) is kind:
            tried = match.copy()
            if match_app(app, eqn, scope, tried):
                for name in Match.__slots__:
                    setattr(match, name, getattr(tried, name))
                return True
    return False


def number_as(value: Scalar, like: Type) -> Lit | None:
    """Return the number in the dtype of ``like``; None if that dtype does not represent it."""
    kind = family(like.dtype)
    if isinstance(value, complex) and kind != "complex":
        return None
    if kind in ("bool", "int", "uint") and not _fits(value.real, like):
        return None
    try:
        return lit(value, like)
    except (EffaxError, OverflowError):
        return None


def _fits(value: float, like: Type) -> bool:
    """Return whether a dtype of integers or booleans represents a number."""
    least, most = (0, 1) if like.dtype.kind == "b" else int_bounds(like.dtype)
    return least <= value <= most and value % 1 == 0
