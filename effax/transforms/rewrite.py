"""A small language of rewrite rules: patterns over equations, as values, and their pass.

A rule says that one form of equations gives the same as another::

    x, y = Hole("x"), Hole("y")
    Rule("x + (-y) = x - y", App(Add, x, App(Neg, y)), App(Sub, x, y), REALS)

Before and after, under this rule; what nothing uses any more is left to ``dce``::

    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b; d:f32[] = add a c in (d,) }
    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b; d:f32[] = sub a b in (d,) }

A rule applies where the right side has the very type of what it replaces, and puts one equation at
most in the place of one, so that no program grows. Only equations without effects match. That a
rule is true, bit by bit, is a law that ``effax.testing.laws.rule_is_true`` tries on random inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from returns.result import Result

from effax.ir.build import lit, typing_of
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument, EffaxError, TransformError
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Scalar, Var
from effax.ir.types import Shape, Type
from effax.transforms.rewriting import Rewrite, at_every_depth

ROUNDS: Final = 16
"""How many rules may apply to one equation, one after the other."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Matches anything; where it occurs again, the same."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Number:
    """Matches a literal of this value, in whatever dtype; 0.0 is not -0.0."""

    value: Scalar

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True, init=False)
class App:
    """Matches an equation of this primitive, or of any primitive of this class, on such arguments.

    ``name`` gives conditions and right sides access to the primitive that was matched.
    """

    prim: Primitive | type[Primitive]
    args: tuple[Pattern, ...]
    name: str

    def __init__(self, prim: Primitive | type[Primitive], *args: Pattern, name: str = "") -> None:
        object.__setattr__(self, "prim", prim)
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "name", name)

    @property
    def kind(self) -> type[Primitive]:
        """The class of primitives that it matches."""
        return self.prim if isinstance(self.prim, type) else type(self.prim)

    def __str__(self) -> str:
        return f"{self.prim.name}({', '.join(map(str, self.args))})"


Pattern = Hole | Number | App


class Match:
    """What a pattern matched: an atom a hole, a primitive a named application."""

    __slots__ = ("atoms", "prims")

    def __init__(self) -> None:
        self.atoms: dict[str, Atom] = {}
        self.prims: dict[str, Primitive] = {}


Right = Pattern | Callable[[Match], Pattern]


class Sample(NamedTuple):
    """An instance of the left side of a rule: what its law is tried on.

    Attributes:
        left: the application; its primitives have all parameters.
        shape: of what the holes stand for.
        dtype: of what the holes stand for; those of the rule's families in turn where it is None.
    """

    left: App
    shape: Shape
    dtype: str | None = None


@dataclass(frozen=True)
class Rule:
    """``left = right``, for operands whose dtype is of one of these families.

    Attributes:
        name: the equation, for people.
        left: what is replaced.
        right: what comes in its place: a hole, a number (for scalars), one application of holes and
            numbers, or a function that gives one of these for a match.
        families: of the dtype of the first argument: "bool", "int", "uint", "float", "complex".
        where: a further condition.
        samples: instances of the left side with the shape of its holes, for rules whose primitives
            have parameters; the law tries them.
    """

    name: str
    left: App
    right: Right
    families: frozenset[str]
    where: Callable[[Match], bool] | None = None
    samples: tuple[Sample, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.right, App):
            check_flat(self.name, self.right)

    def __str__(self) -> str:
        return self.name


def check_flat(name: str, right: Pattern) -> None:
    """Raises BadArgument where a right side is more than one equation."""
    if isinstance(right, App) and any(isinstance(a, App) for a in right.args):
        raise BadArgument(
            f"the right side of the rule {name} is more than one equation",
            expected="an application of holes and numbers",
            found=str(right),
            remedy="make several rules of it",
        )


def rewriting(rules: Iterable[Rule]) -> Callable[[Jaxpr], Result[Jaxpr, TransformError]]:
    """The pass that applies these rules wherever they match, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same.
    Laws:     tests/laws/test_simplify.py
    """
    book: dict[type[Primitive], list[Rule]] = {}
    for rule in rules:
        book.setdefault(rule.left.kind, []).append(rule)

    def local(jaxpr: Jaxpr) -> Jaxpr:
        return _Engine(jaxpr, book).run()

    return at_every_depth(local)


class _Engine:
    """One program: what it becomes, and the equation of each variable in it."""

    def __init__(self, jaxpr: Jaxpr, book: dict[type[Primitive], list[Rule]]) -> None:
        self.made = Rewrite(jaxpr)
        self.book = book
        self.by_var: dict[int, Eqn] = {}

    def run(self) -> Jaxpr:
        made = self.made
        for eqn in made.jaxpr.eqns:
            ins = made.ins(eqn)
            if len(eqn.outs) == 1 and not eqn.effects:
                self.rewritten(eqn, ins)
            else:
                made.keep(eqn, ins)
        return made.finish()

    def rewritten(self, eqn: Eqn, ins: tuple[Atom, ...]) -> None:
        """What becomes of one equation, after all the rules that apply to it in turn."""
        prim, (out,) = eqn.prim, eqn.outs
        for _ in range(ROUNDS):
            found = self.applied(prim, ins, out)
            if found is None:
                break
            if not isinstance(found, _Applied):
                self.made.drop(eqn, [found])
                return
            prim, ins = found.prim, found.ins
            self.made.changed = True
        (new,) = self.made.keep(eqn._replace(prim=prim), ins)
        self.by_var[new.id] = Eqn(prim, ins, (new,))

    def applied(self, prim: Primitive, ins: tuple[Atom, ...], out: Var) -> Atom | _Applied | None:
        """The atom or the application that a rule puts in the place of this one, if one does."""
        for rule in self.book.get(type(prim), ()):
            match = self.matched(rule, prim, ins)
            if match is None:
                continue
            right = rule.right if isinstance(rule.right, Pattern) else rule.right(match)
            made = _instance(right, match, out)
            if made is not None:
                return made
        return None

    def matched(self, rule: Rule, prim: Primitive, ins: tuple[Atom, ...]) -> Match | None:
        if not ins or family(ins[0].type.dtype) not in rule.families:
            return None
        match = Match()
        if not self.app(rule.left, prim, ins, match):
            return None
        return match if rule.where is None or rule.where(match) else None

    def app(self, pattern: App, prim: Primitive, ins: Sequence[Atom], match: Match) -> bool:
        wanted = pattern.prim
        fits = type(prim) is wanted if isinstance(wanted, type) else prim == wanted
        if not fits or len(ins) != len(pattern.args):
            return False
        if pattern.name:
            match.prims[pattern.name] = prim
        return all(self.atom(p, a, match) for p, a in zip(pattern.args, ins, strict=True))

    def atom(self, pattern: Pattern, atom: Atom, match: Match) -> bool:
        match pattern:
            case Hole(name):
                return match_hole(match, name, atom)
            case Number(value):
                return isinstance(atom, Lit) and atom == _literal(value, atom.type)
            case App():
                eqn = self.by_var.get(atom.id) if isinstance(atom, Var) else None
                return eqn is not None and self.app(pattern, eqn.prim, eqn.ins, match)


class _Applied(NamedTuple):
    """An application that a rule puts somewhere."""

    prim: Primitive
    ins: tuple[Atom, ...]


def match_hole(match: Match, name: str, atom: Atom) -> bool:
    """Bind a hole, or compare with what it is bound to."""
    return match.atoms.setdefault(name, atom) == atom


def _instance(right: Pattern, match: Match, out: Var) -> Atom | _Applied | None:
    """The right side for a match; None where it does not have the type of what it replaces."""
    if not isinstance(right, App):
        atom = _leaf(right, match, out.type)
        return atom if atom is not None and atom.type is out.type else None
    prim = right.prim() if isinstance(right.prim, type) else right.prim
    holes = [match.atoms[a.name] for a in right.args if isinstance(a, Hole)]
    like = holes[0].type if holes else out.type
    ins = [_leaf(a, match, like) for a in right.args]
    atoms = tuple([a for a in ins if a is not None])
    if len(atoms) < len(ins):
        return None
    try:
        typing = typing_of(prim, tuple([a.type for a in atoms]))
    except EffaxError:
        return None
    same = typing.outs == (out.type,) and not typing.effects
    return _Applied(prim, atoms) if same else None


def _leaf(pattern: Pattern, match: Match, like: Type) -> Atom | None:
    """What a hole stands for; a number in the dtype of ``like``."""
    if isinstance(pattern, Hole):
        return match.atoms[pattern.name]
    return _literal(pattern.value, like) if isinstance(pattern, Number) else None


def _literal(value: Scalar, like: Type) -> Lit | None:
    try:
        return lit(value, like)
    except (EffaxError, OverflowError):
        return None
