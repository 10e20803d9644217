"""What transposition does with each equation of a linear program: the plan of the pass.

Three kinds of values: those that depend on no linear input, those that depend on one, and those
that depend on one whose cotangent is wanted. Equations of the first kind run first, as they are;
those of the last kind run backward, transposed; the rest is not run at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from effax.effects import Alloc, ArgIndex, Io, Row
from effax.ir.build import Builder, typing_of
from effax.ir.errors import TransformError
from effax.ir.primitive import Primitive
from effax.ir.prims.refs import EmptyRef, NewRef
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Type, is_inexact
from effax.transforms.rulebook import RuleBook, SplitOut, WholeOnly
from effax.transforms.run import located
from effax.transforms.spread import Flow, Mask, spread, spread_call

Kind = int
"""How a value depends on the linear inputs; the greatest of several wins."""

FIXED: Final[Kind] = 0
UNWANTED: Final[Kind] = 1
WANTED: Final[Kind] = 2

Kinds = tuple[Kind, ...]


class Backward(NamedTuple):
    """An equation to transpose.

    Attributes:
        eqn: the equation.
        kinds: of its arguments; what a loop feeds back joins what it is fed back to.
        acts: whether it has effects that are due even where every cotangent is zero.
    """

    eqn: Eqn
    kinds: Kinds
    acts: bool


class Plan(NamedTuple):
    """What the engine does.

    Attributes:
        jaxpr: the program; calls that are linear only in part have been split.
        forward: the equations that run as they are, in order.
        backward: the equations that are transposed, the last one first.
        kinds: by variable number.
        accumulated: the numbers of the arrays whose cotangent gets a reference: those that are
            used more than once, and at least once in a part only.
    """

    jaxpr: Jaxpr
    forward: Sequence[Eqn]
    backward: Sequence[Backward]
    kinds: Sequence[Kind]
    accumulated: frozenset[int]


def _all_results(prim: Primitive, types: tuple[Type, ...], mask: Mask) -> Mask:
    return (True in mask,) * len(typing_of(prim, types).outs)


LINEAR = Flow(_all_results, is_inexact, control=False)
"""How linearity spreads: every result of an equation with a linear argument is linear."""


def plan(jaxpr: Jaxpr, ins: Kinds, cts: Mask, threaded: Mask, book: RuleBook) -> Plan:
    """Decide what is run forward, what backward, and what not at all.

    Args:
        jaxpr: a program that is linear in the inputs that are not fixed.
        ins: the kinds of the inputs.
        cts: which results have a cotangent.
        threaded: which inputs are references whose final contents have one.
        book: the rules.
    """
    found = _Linearity(jaxpr, ins, book)
    if found.splits:
        jaxpr = _separated(jaxpr, found)
        found = _Linearity(jaxpr, ins, book, split=False)
    return _Liveness(jaxpr, found, book).plan(cts, threaded)


class _Linearity:
    """The kind of every value, in one sweep forward."""

    def __init__(self, jaxpr: Jaxpr, ins: Kinds, book: RuleBook, split: bool = True) -> None:
        self.book = book
        self.split = split
        self.kinds = _with_refs(jaxpr, ins)
        # One entry an equation; None: it is fixed.
        self.steps: list[Kinds | None] = []
        self.splits: dict[int, tuple[SplitOut, Kinds]] = {}
        # Whether a linear equation also has effects that do not depend on linear inputs.
        self.plumbing = False
        kinds, push = self.kinds, self.steps.append
        for eqn in jaxpr.eqns:
            given = tuple([FIXED if type(a) is Lit else kinds[a.id] for a in eqn.ins])
            top = max(given, default=FIXED)
            if top and eqn.prim.subjaxprs():
                push(self._call(eqn, given))
                continue
            for v in eqn.outs:
                if kinds[v.id] < top:
                    kinds[v.id] = top
            # A reference that is made of fixed contents may take linear values.
            made = bool(eqn.effects) and any(kinds[v.id] for v in eqn.outs)
            push(given if top or made else None)

    def _call(self, eqn: Eqn, given: Kinds) -> Kinds:
        types = tuple([a.type for a in eqn.ins])
        linear, outs = spread_call(eqn.prim, types, tuple([k > 0 for k in given]), LINEAR)
        wanted, wanted_outs = linear, outs
        if UNWANTED in given:
            mask = tuple([k == WANTED for k in given])
            wanted, wanted_outs = spread_call(eqn.prim, types, mask, LINEAR)
        closed = _joined(linear, wanted)
        for v, kind in zip(eqn.outs, _joined(outs, wanted_outs), strict=True):
            self.kinds[v.id] = kind
        self.plumbing = self.plumbing or bool(fixed_effects(eqn, closed))
        if self.split and is_mixed(eqn, closed, outs):
            self._split(eqn, types, closed)
        return closed

    def _split(self, eqn: Eqn, types: tuple[Type, ...], closed: Kinds) -> None:
        rule = self.book.of(eqn.prim).split
        if isinstance(rule, WholeOnly):
            return
        known = tuple([k == FIXED for k in closed])
        found = rule(self.book, eqn.prim, types, known)
        if found is not None:
            self.splits[len(self.steps)] = (found, closed)


def _joined(linear: Mask, wanted: Mask) -> Kinds:
    return tuple([WANTED if w else int(has) for has, w in zip(linear, wanted, strict=True)])


def _with_refs(jaxpr: Jaxpr, ins: Kinds) -> list[Kind]:
    """Kinds by variable number: of the inputs, and of all references and what is read of them.

    Raises TransformError where a linear value is written to a reference that is fixed.
    """
    kinds = [FIXED] * jaxpr.size
    for v, kind in zip(jaxpr.binders, ins, strict=True):
        kinds[v.id] = kind
    if not any(isinstance(v.type, RefType) for v in jaxpr.binders) and not any(
        isinstance(eqn.prim, NewRef | EmptyRef) for eqn in jaxpr.eqns
    ):
        return kinds
    linear = spread(jaxpr, tuple([k > 0 for k in ins]), LINEAR)
    for i, (kind, now) in enumerate(zip(ins, linear.ins, strict=True)):
        if now and not kind:
            raise TransformError(
                f"a linear value is written to {jaxpr.name_of(i)}, which is not linear",
                found=str(jaxpr.binders[i].type),
                remedy="mark it as linear too: GradRef() to have its gradient, or DontWant()",
            )
    wanted = linear
    if UNWANTED in ins:
        wanted = spread(jaxpr, tuple([k == WANTED for k in ins]), LINEAR)
    for i in linear.variables:
        kinds[i] = WANTED if i in wanted.variables else UNWANTED
    return kinds


def fixed_effects(eqn: Eqn, kinds: Kinds) -> Row[ArgIndex]:
    """The effects of an equation on what is not linear, allocations aside."""
    return Row(
        e for e in eqn.effects if isinstance(e, Io) or not (isinstance(e, Alloc) or kinds[e.ref])
    )


def is_mixed(eqn: Eqn, kinds: Kinds, linear_outs: Mask) -> bool:
    """Whether a call does something that does not depend on its linear arguments.

    It gives a fixed result, feeds a fixed value back, or has an effect on a fixed reference.
    """
    fed = (feed for region in eqn.prim.regions() for feed in region.feeds)
    return (
        not all(linear_outs)
        or any(feed is not None and not kinds[feed] for feed in fed)
        or bool(fixed_effects(eqn, kinds))
    )


def _separated(jaxpr: Jaxpr, found: _Linearity) -> Jaxpr:
    """The program with calls that do two things replaced by two, inlined."""
    b = Builder(jaxpr.in_types)
    env: list[Atom | None] = [None] * jaxpr.size
    for v, w in zip(jaxpr.binders, b.binders, strict=True):
        env[v.id] = w

    def value(atom: Atom) -> Atom:
        bound = atom if isinstance(atom, Lit) else env[atom.id]
        assert bound is not None, "a variable is used before it is bound"
        return bound

    for i, eqn in enumerate(jaxpr.eqns):
        args = [value(a) for a in eqn.ins]
        results: Sequence[Atom]
        if i in found.splits:
            results = _halves(b, *found.splits[i], args)
        else:
            types = tuple([v.type for v in eqn.outs])
            results = b.emit_typed(eqn.prim, tuple(args), types, eqn.effects, eqn.source)
        for v, result in zip(eqn.outs, results, strict=True):
            env[v.id] = result
    return b.finish([value(a) for a in jaxpr.outs], jaxpr.n_consts, jaxpr.names)


def _halves(b: Builder, split: SplitOut, kinds: Kinds, args: Sequence[Atom]) -> list[Atom]:
    """Both halves of a split call, the known one first; the results of the call."""
    given = [a for a, kind in zip(args, kinds, strict=True) if not kind]
    first = b.inline_jaxpr(split.known, given)
    n = len(first) - split.n_residuals
    rest = b.inline_jaxpr(split.unknown, [*first[n:], *[args[i] for i in split.unknown_args]])
    known, unknown = iter(first[:n]), iter(rest)
    return [next(known) if has else next(unknown) for has in split.known_outs]


class _Liveness:
    """Which equations matter, in one sweep backward."""

    def __init__(self, jaxpr: Jaxpr, found: _Linearity, book: RuleBook) -> None:
        self.jaxpr = jaxpr
        self.found = found
        self.book = book
        # By variable number: whether a fixed value is used, or a cotangent may be nonzero.
        self.live = [False] * jaxpr.size
        self.uses = [0] * jaxpr.size
        self.in_part: set[int] = set()

    def plan(self, cts: Mask, threaded: Mask) -> Plan:
        jaxpr, found, live = self.jaxpr, self.found, self.live
        for atom, has in zip(jaxpr.outs, cts, strict=True):
            if has and isinstance(atom, Var) and found.kinds[atom.id] == WANTED:
                live[atom.id] = True
                self.uses[atom.id] += 1
        for v, has in zip(jaxpr.binders, threaded, strict=True):
            live[v.id] = live[v.id] or has
        forward: list[Eqn] = []
        backward: list[Backward] = []
        for eqn, kinds in zip(reversed(jaxpr.eqns), reversed(found.steps), strict=True):
            if kinds is None:
                if eqn.effects.changes_state or any(live[v.id] for v in eqn.outs):
                    forward.append(eqn)
                    for a in eqn.ins:
                        if type(a) is not Lit:
                            live[a.id] = True
                continue
            acts = found.plumbing and fixed_effects(eqn, kinds).changes_state
            if acts or self._matters(eqn, kinds):
                backward.append(Backward(eqn, kinds, acts))
                self._use(eqn, kinds)
        forward.reverse()
        if found.plumbing:
            _check_order(forward, backward, jaxpr)
        accumulated = frozenset(i for i in self.in_part if self.uses[i] > 1)
        return Plan(jaxpr, forward, backward, found.kinds, accumulated)

    def _matters(self, eqn: Eqn, kinds: Kinds) -> bool:
        live, own = self.live, self.found.kinds
        if eqn.prim.subjaxprs() and any(live[v.id] and not own[v.id] for v in eqn.outs):
            raise located(_half_linear(eqn), eqn)
        if WANTED not in kinds:
            return False
        if any(live[v.id] for v in eqn.outs):
            return True
        return bool(eqn.effects) and any(
            isinstance(a, Var) and type(a.type) is RefType and live[a.id] for a in eqn.ins
        )

    def _use(self, eqn: Eqn, kinds: Kinds) -> None:
        live, uses = self.live, self.uses
        sparse: Sparse | None = None
        for i, (a, kind) in enumerate(zip(eqn.ins, kinds, strict=True)):
            if type(a) is Lit:
                continue
            own = self.found.kinds[a.id]
            if not kind or own == WANTED:
                live[a.id] = True
            if own == WANTED and type(a.type) is ArrayType:
                uses[a.id] += 1
                if sparse is None:
                    sparse = sparse_operands(self.book, eqn.prim)
                if i in sparse.in_part:
                    self.in_part.add(a.id)


def _check_order(forward: Sequence[Eqn], backward: Sequence[Backward], jaxpr: Jaxpr) -> None:
    """Raises TransformError where an effect of a linear equation would move over a later one."""
    place = {id(eqn): i for i, eqn in enumerate(jaxpr.eqns)}
    rows = [
        (place[id(eqn)], eqn.effects.rename(lambda i, ins=eqn.ins: _number(ins[i])))  # type: ignore[misc]  # default binds the loop variable
        for eqn in forward
        if eqn.effects
    ]
    for eqn, kinds, _ in backward:
        own = fixed_effects(eqn, kinds).rename(lambda i, ins=eqn.ins: _number(ins[i]))  # type: ignore[misc]  # default binds the loop variable
        if own and any(at > place[id(eqn)] and not own.commutes(row) for at, row in rows):
            error = TransformError(
                f"{eqn.prim.name} uses a reference that is not linear, and a later equation "
                "that does not depend on linear inputs changes or observes it: transposed, the "
                "later one would run first",
                remedy="split off what does not depend on the linear inputs (`partial_eval`)",
            )
            raise located(error, eqn)


def _half_linear(eqn: Eqn) -> TransformError:
    return TransformError(
        f"{eqn.prim.name} gives a result that does not depend on the linear inputs, beside one "
        "that does, and its rules cannot split it",
        remedy="split off what does not depend on the linear inputs (`partial_eval`)",
    )


def _number(atom: Atom) -> ArgIndex | None:
    return ArgIndex(atom.id) if isinstance(atom, Var) else None


class Sparse(NamedTuple):
    """Operands of a primitive by how their cotangent is best summed up.

    Attributes:
        in_part: the primitive uses a part only, also inside of what it calls: a reference pays.
        in_place: a reference is used where there is one already.
    """

    in_part: frozenset[int]
    in_place: frozenset[int]


@lru_cache(maxsize=1 << 12)
def sparse_operands(book: RuleBook, prim: Primitive) -> Sparse:
    """Which operands of a primitive are used in part, or can add into a reference."""
    regions = prim.regions()
    sparse = book.of(prim).sparse
    if not regions:
        first = frozenset({0} if sparse else ())
        return Sparse(first, first)
    # What a loop feeds back is carried, whole.
    fed = {feed for region in regions for feed in region.feeds}
    all_of_them = frozenset(arg for region in regions for arg in region.args if arg not in fed)
    if sparse:
        return Sparse(all_of_them, all_of_them)
    found = {
        arg
        for region in regions
        for v, arg in zip(region.jaxpr.binders, region.args, strict=True)
        if v.id in _used_in_part(region.jaxpr, book)
    }
    return Sparse(frozenset(found), all_of_them)


@lru_cache(maxsize=1 << 12)
def _used_in_part(jaxpr: Jaxpr, book: RuleBook) -> frozenset[int]:
    return frozenset(
        a.id
        for eqn in jaxpr.eqns
        for i in sparse_operands(book, eqn.prim).in_part
        if isinstance(a := eqn.ins[i], Var)
    )
