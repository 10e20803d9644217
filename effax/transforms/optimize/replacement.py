"""The right sides of rules: patterns become equations of the program that is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, cast

from effax.effects import Read
from effax.ir.build import Builder, typing_of
from effax.ir.errors import EffaxError
from effax.ir.primitive import Primitive, Region
from effax.ir.prims import BroadcastInDim
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Scalar, Var
from effax.ir.types import ArrayType, Type
from effax.transforms.optimize.fold import folded
from effax.transforms.optimize.holes import AnyNumber, Hole, IndexHole, Number, Param, Rest
from effax.transforms.optimize.matcher import OUTSIDE, Match, Path, Scope, number_as, scope_of
from effax.transforms.optimize.patterns import App, Body, Pattern

T = TypeVar("T")

Emit = Callable[[Primitive, tuple[Atom, ...]], tuple[Atom, ...]]
"""A function that appends an equation and returns its results. Raises EffaxError."""

Find = Callable[[Atom, Path], Atom | None]
"""A function that returns the atom, in the program that is built, of a matched one there."""


class Unfit(Exception):
    """The right side does not fit a match: the rule does not apply."""


UNFIT: Final = (Unfit, EffaxError)


def _as_it_is(atom: Atom, path: Path) -> Atom | None:
    return None if path else atom


class Replacement:
    """The right side of a rule for one match.

    Attributes:
        values: the results that steps of the right side have named.
    """

    def __init__(
        self, match: Match, emit: Emit, find: Find = _as_it_is, path: Path = OUTSIDE
    ) -> None:
        self.match = match
        self.emit = emit
        self.find = find
        self.path = path
        self.values: dict[str, Atom] = {}
        self._shared: dict[App, tuple[Atom, ...]] = {}

    def atom(self, pattern: Pattern, like: Type | None) -> Atom:
        """Return the atom of a pattern, after its equations. Raises Unfit or EffaxError."""
        match pattern:
            case Hole(name) | AnyNumber(name):
                return self._named(name)
            case Number(value):
                return self._number(value, like)
            case App():
                outs = self.results(pattern, like)
                if len(outs) == 1:
                    return outs[0]
            case Rest() | IndexHole():
                pass
        raise Unfit

    def whole(self, pattern: Pattern, type_: Type) -> Atom:
        """Return the atom of this type; a number is broadcast. Raises Unfit or EffaxError."""
        found = self.atom(pattern, type_)
        if isinstance(pattern, Number) and isinstance(type_, ArrayType) and type_.shape:
            (found,) = self.emit(BroadcastInDim(type_.shape, ()), (found,))
        if found.type is not type_:
            raise Unfit
        return found

    def results(self, app: App, like: Type | None) -> tuple[Atom, ...]:
        """Return the results of an application, whose equal ones without effects are one."""
        known = self._shared.get(app)
        if known is not None:
            return known
        prim, ins = self.application(app, like)
        typing = typing_of(prim, tuple([a.type for a in ins]))
        if not typing.effects and all(isinstance(a, Lit) for a in ins):
            outs = tuple([Var(i, t) for i, t in enumerate(typing.outs)])
            literals = folded(Eqn(prim, ins, outs))
            if literals is not None:
                return tuple(literals)
        made = self.emit(prim, ins)
        if not typing.effects:
            self._shared[app] = made
        return made

    def application(self, app: App, like: Type | None) -> tuple[Primitive, tuple[Atom, ...]]:
        """Return the primitive and the operands of an application, after their equations."""
        ins: list[Atom | None] = []
        for arg in app.args:
            match arg:
                case Rest(name):
                    atoms = self.match.rests[name]
                    ins += [self._found(a, self.match.scopes.get(name, OUTSIDE)) for a in atoms]
                case IndexHole(name):
                    path = self.match.scopes.get(name, OUTSIDE)
                    ins += [self._found(a, path) for a in self.match.indices[name].operands]
                case Number():
                    ins.append(None)
                case _:
                    ins.append(self.atom(arg, like))
        first = next((a.type for a in ins if a is not None), like)
        values = iter([arg.value for arg in app.args if isinstance(arg, Number)])
        filled = [self._number(next(values), first) if a is None else a for a in ins]
        return self._primitive(app, filled), tuple(filled)

    def _number(self, value: Scalar, like: Type | None) -> Lit:
        return _present(None if like is None else number_as(value, like))

    def _primitive(self, app: App, ins: Sequence[Atom]) -> Primitive:
        base = self.match.eqns.get(app.name) if app.name else None
        if base is not None and app.bodies:
            return self._with_bodies(app, base, ins)
        if base is not None and isinstance(app.prim, type):
            return base.prim
        if not isinstance(app.prim, type):
            return app.prim
        values = {
            name: self.match.params[value.name] if isinstance(value, Param) else value
            for name, value in app.params
        }
        if app.args and isinstance(app.args[-1], IndexHole):
            values["indexer"] = self.match.indices[app.args[-1].name].indexer
        return app.prim(**values)

    def _named(self, name: str) -> Atom:
        known = self.values.get(name)
        if known is not None:
            return known
        return self._found(self.match.atoms[name], self.match.scopes.get(name, OUTSIDE))

    def _found(self, atom: Atom, path: Path) -> Atom:
        if isinstance(atom, Lit):
            return atom
        found = self.find(atom, path)
        if found is None:
            raise Unfit
        return found

    def _with_bodies(self, app: App, base: Eqn, ins: Sequence[Atom]) -> Primitive:
        """Return the matched primitive with its subjaxprs changed."""
        if self.match.regions[app.name] != self.path:
            raise Unfit
        regions = base.prim.regions()
        n = max([len(body.ins or ()) for body in app.bodies])
        start = 0 if base.prim.selector() is None else 1
        new = ins[start : start + n]
        bodies = [*app.bodies, *[Body()] * (len(regions) - len(app.bodies))]
        jaxprs = [self._changed(base, regions, k, body, new) for k, body in enumerate(bodies)]
        return (
            _present(base.prim.with_constants(jaxprs, n)) if n else base.prim.with_subjaxprs(jaxprs)
        )

    def _changed(
        self, base: Eqn, regions: Sequence[Region], k: int, body: Body, new: Sequence[Atom]
    ) -> Jaxpr:
        """Return region ``k`` with new first inputs, and with results replaced."""
        jaxpr = regions[k].jaxpr
        b = Builder([*[a.type for a in new], *jaxpr.in_types])
        # None is never read: a variable is bound before it is used.
        env = cast("list[Atom]", [None] * jaxpr.size)
        for v, w in zip(jaxpr.binders, b.binders[len(new) :], strict=True):
            env[v.id] = w
        inner = Replacement(
            self.match, b.emit, _inside(base, regions, k, env, self), (*self.path, k)
        )
        for hole, w in zip(body.ins or (), b.binders, strict=False):
            inner.values[hole.name] = w
        gone = {id(self.match.eqns[name]): pattern for name, pattern in body.replace}
        for eqn in jaxpr.eqns:
            pattern = gone.get(id(eqn))
            if pattern is None:
                b.replay([eqn], env)
                continue
            if len(eqn.outs) != 1 or not all(isinstance(e, Read) for e in eqn.effects):
                raise Unfit
            env[eqn.outs[0].id] = inner.whole(pattern, eqn.outs[0].type)
        outs = [a if isinstance(a, Lit) else env[a.id] for a in jaxpr.outs]
        if body.outs is not None:
            outs = inner.results_of_body(body.outs, outs)
        names = [*[""] * len(new), *jaxpr.names] if jaxpr.names else ()
        return b.finish(outs, jaxpr.n_consts + len(new), names)

    def results_of_body(self, patterns: Sequence[Pattern], old: Sequence[Atom]) -> list[Atom]:
        """Return the results of a program from patterns; those of a final ``Rest`` stay."""
        n = len(patterns) - bool(patterns and isinstance(patterns[-1], Rest))
        made = [self.whole(p, a.type) for p, a in zip(patterns[:n], old, strict=False)]
        return [*made, *old[n:]]


def _inside(
    base: Eqn, regions: Sequence[Region], k: int, env: Sequence[Atom], outside: Replacement
) -> Find:
    """Return the function that finds matched atoms in the changed program of a region."""
    scope = scope_of(base, regions, k, Scope({}, outside.path))
    binder_of = {a: env[number] for number, a in reversed(list(scope.given.items()))}

    def find(atom: Atom, path: Path) -> Atom | None:
        if path == scope.path and isinstance(atom, Var):
            return env[atom.id] if atom.id < len(env) else None
        return binder_of.get(atom)

    return find


def _present(found: T | None) -> T:
    if found is None:
        raise Unfit
    return found
