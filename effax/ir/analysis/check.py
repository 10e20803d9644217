"""The checker: reports all faults of a program that is not well formed.

A program is well formed when every variable is bound before it is used, once, with increasing
numbers; every equation has the types and effects of its primitive's typing rule; and references are
used linearly: never twice in one equation, never after they are consumed, consumed only by the
program that allocates them, never among results. Subjaxprs are checked by the same rules, each
distinct one once.
"""

from __future__ import annotations

from typing import Final

from returns.result import Failure, Result, Success

from effax.effects import Alloc, ArgIndex, Free, Row, Rule
from effax.ir.analysis.faults import Fault, FaultKind, kind_of, literal_fault
from effax.ir.build import typing_of
from effax.ir.errors import EffaxError
from effax.ir.recursion import call_with_fresh_stack
from effax.ir.syntax import Eqn, Jaxpr, Lit, Var
from effax.ir.text.names import VAR_NAMES
from effax.ir.text.printer import eqn_str
from effax.ir.types import RefType, Type

__all__ = ["Fault", "FaultKind", "check", "checked"]


def check(jaxpr: Jaxpr) -> Result[Jaxpr, tuple[Fault, ...]]:
    """Return the program itself, or all its faults in program order."""
    faults = _faults(jaxpr)
    return Failure(faults) if faults else Success(jaxpr)


def checked(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program itself.

    Raises:
        IllTyped: it is not well formed; the error is the first fault.
        RefError: that fault is against a rule for references; the error has its code.
    """
    faults = _faults(jaxpr)
    if not faults:
        return jaxpr
    error = faults[0].error()
    if len(faults) > 1:
        error.add_note(f"and {len(faults) - 1} more faults: `check` lists them all")
    raise error


def _faults(jaxpr: Jaxpr) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    _Checker(faults).program(jaxpr, ())
    faults.extend(_unequal_axes(jaxpr))
    return tuple(faults)


def _unequal_axes(jaxpr: Jaxpr) -> list[Fault]:
    """Return a fault for each name of free axes of several sizes, which no one binder can bind."""
    sizes: dict[str, list[int]] = {}
    for axis in jaxpr.free_axes:
        sizes.setdefault(axis.name, []).append(axis.size)
    return [
        Fault(
            FaultKind.AXIS,
            f"the axis '{name}' is used at several sizes",
            expected="one size",
            found=", ".join(map(str, found)),
            remedy="use different names for different axes",
        )
        for name, found in sizes.items()
        if len(found) > 1
    ]


COMPUTED: Final = "`equation(prim, ins, outs)` computes the effects of an equation"
TYPED: Final = "`replace_eqn`, `insert` and a `Builder` check an equation when it is made"


class _Scope:
    """The variables that a program has bound so far, and the state of its references."""

    __slots__ = ("consumed", "made", "path", "refs", "top", "types")

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path
        self.types: dict[int, Type] = {}
        self.top = -1
        self.refs: set[int] = set()
        self.made: set[int] = set()
        self.consumed: dict[int, Eqn] = {}


class _Checker:
    """One run: the faults so far, and the programs and literals that were checked already."""

    __slots__ = ("faults", "good_lits", "seen")

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        # Keyed by identity: hashing a program costs as much as checking it.
        self.good_lits: set[int] = set()
        self.seen: dict[int, tuple[Jaxpr, frozenset[FaultKind]]] = {}

    def program(self, jaxpr: Jaxpr, path: tuple[str, ...]) -> frozenset[FaultKind]:
        """Check a program once, and return the kinds of its faults."""
        before = self.seen.get(id(jaxpr))
        if before is not None:
            return before[1]
        start = len(self.faults)
        scope = _Scope(path)
        if not 0 <= jaxpr.n_consts <= len(jaxpr.binders):
            self.fault(
                scope,
                None,
                FaultKind.BINDING,
                "a program has more constants than binders",
                expected=f"at most {len(jaxpr.binders)}",
                found=str(jaxpr.n_consts),
                remedy="`jaxpr.replace(n_consts=...)` sets their number",
            )
        for v in jaxpr.binders:
            self.bind(scope, v, None)
        for eqn in jaxpr.eqns:
            self.eqn(scope, eqn)
        self.results(scope, jaxpr)
        kinds = frozenset(fault.kind for fault in self.faults[start:])
        self.seen[id(jaxpr)] = (jaxpr, kinds)
        return kinds

    def eqn(self, scope: _Scope, eqn: Eqn) -> None:
        """Check one equation, and bring its results into scope."""
        prim, _, outs, row, _ = eqn
        types = self.operands(scope, eqn)
        inner = self.subjaxprs(scope, eqn) if prim.subjaxprs() else _NONE
        if FaultKind.EFFECT not in inner:
            try:
                out_types, row = typing_of(prim, types)
            except EffaxError as error:
                self.ill_typed(scope, eqn, error, inner)
            else:
                if row is not eqn.effects and row != eqn.effects:
                    self.wrong_effects(scope, eqn, row)
                if len(outs) != 1 or len(out_types) != 1 or outs[0][1] is not out_types[0]:
                    self.compare_results(scope, eqn, out_types)
        if scope.refs:
            self.uses(scope, eqn)
        if row:
            self.changes(scope, eqn, row, inner)
        for out in outs:
            v, type_ = out
            if v > scope.top and type(type_) is not RefType:
                scope.top = v
                scope.types[v] = type_
            else:
                self.bind(scope, out, eqn)

    def operands(self, scope: _Scope, eqn: Eqn) -> tuple[Type, ...]:
        """Return the types of the arguments, which must be in scope."""
        bound = scope.types
        types: list[Type] = []
        for a in eqn.ins:
            if type(a) is Lit:
                types.append(a.type)
                if id(a) not in self.good_lits:
                    self.literal(scope, eqn, a)
            else:
                v, type_ = a
                types.append(type_)
                if bound.get(v) is not type_:
                    self.unbound(scope, eqn, a)
        return tuple(types)

    def bind(self, scope: _Scope, v: Var, eqn: Eqn | None) -> None:
        """Bring a variable into scope."""
        if v.id in scope.types:
            self.fault(
                scope,
                eqn,
                FaultKind.BINDING,
                f"{VAR_NAMES[v.id]} is bound a second time",
                remedy="`insert`, `splice` and `map_eqns` number the results of new equations, and "
                "a `Builder` those of a new program",
            )
        elif v.id < scope.top or v.id < 0:
            self.fault(
                scope,
                eqn,
                FaultKind.NUMBERING,
                f"{VAR_NAMES[v.id]} is not numbered in the order of binding",
                expected=f"a number of at least {scope.top + 1}",
                found=str(v.id),
                remedy="`renumbered(jaxpr)` numbers the variables in order",
            )
        scope.types[v.id] = v.type
        scope.top = max(scope.top, v.id)
        if isinstance(v.type, RefType):
            scope.refs.add(v.id)
            if eqn is not None and v.id not in scope.made:
                self.fault(
                    scope,
                    eqn,
                    FaultKind.EFFECT,
                    f"{VAR_NAMES[v.id]} is a reference that the equation does not allocate",
                    expected="an `Alloc` effect for the result",
                    found=str(eqn.effects),
                    remedy=COMPUTED,
                )

    def literal(self, scope: _Scope, eqn: Eqn | None, lit: Lit) -> None:
        """Check that a literal is a Python scalar of its type's family."""
        reason = literal_fault(lit)
        if reason is None:
            self.good_lits.add(id(lit))
        else:
            self.fault(
                scope,
                eqn,
                FaultKind.LITERAL,
                "a literal does not have its type",
                expected=reason,
                found=repr(lit),
                remedy="`lit(value, type)` converts the value",
            )

    def unbound(self, scope: _Scope, eqn: Eqn | None, v: Var) -> None:
        """Report a use of a variable that is not in scope, or that has another type there."""
        declared = scope.types.get(v.id)
        name = VAR_NAMES[v.id]
        if declared is None:
            self.fault(
                scope,
                eqn,
                FaultKind.SCOPE,
                f"{name} is not in scope",
                expected="a variable that is bound before",
                found=f"{name}:{v.type}",
                remedy="`substitute(jaxpr, {v: atom})` replaces it; or move the equation that "
                "binds it to an earlier place",
            )
        else:
            self.fault(
                scope,
                eqn,
                FaultKind.TYPE,
                f"{name} is used at another type than it has",
                expected=str(declared),
                found=str(v.type),
                remedy="use the variable that the binder or the equation has, with its type; "
                "`map_eqns` passes on the types of changed results",
            )

    def subjaxprs(self, scope: _Scope, eqn: Eqn) -> frozenset[FaultKind]:
        """Check the subjaxprs of an equation, and return the kinds of their faults."""
        programs = eqn.prim.subjaxprs()
        kinds = frozenset[FaultKind]()
        for i, jaxpr in enumerate(programs):
            step = eqn.prim.name if len(programs) == 1 else f"{eqn.prim.name}, program {i}"
            kinds |= call_with_fresh_stack(self.program, jaxpr, (*scope.path, step))
        return kinds

    def ill_typed(
        self, scope: _Scope, eqn: Eqn, error: EffaxError, inner: frozenset[FaultKind]
    ) -> None:
        """Report the error of the typing rule, unless a subjaxpr has a fault of the same kind."""
        kind = kind_of(error)
        if kind is FaultKind.TYPE or kind not in inner:
            remedy = error.remedy or TYPED
            self.fault(scope, eqn, kind, error.what, error.expected, error.found, remedy)

    def wrong_effects(self, scope: _Scope, eqn: Eqn, row: Row[ArgIndex]) -> None:
        """Report stored effects that are not those of the typing rule."""
        self.fault(
            scope,
            eqn,
            FaultKind.EFFECT,
            f"{eqn.prim.name} does not have the recorded effects",
            expected=str(row),
            found=str(eqn.effects),
            remedy=COMPUTED,
        )

    def compare_results(self, scope: _Scope, eqn: Eqn, out_types: tuple[Type, ...]) -> None:
        """Report results whose types are not those of the typing rule."""
        found = tuple(v.type for v in eqn.outs)
        if found != out_types:
            self.fault(
                scope,
                eqn,
                FaultKind.TYPE,
                f"{eqn.prim.name} does not have results of the bound types",
                expected=", ".join(map(str, out_types)) or "no results",
                found=", ".join(map(str, found)) or "no results",
                remedy="`typing_of(prim, types)` returns the types of the results; `map_eqns` and "
                "`replace_eqn` compare them",
            )

    def uses(self, scope: _Scope, eqn: Eqn) -> None:
        """Report references that the equation takes twice, or after they were consumed."""
        once: set[int] = set()
        for a in eqn.ins:
            if type(a) is Lit or a.id not in scope.refs:
                continue
            if a.id in once:
                self.against(scope, eqn, Rule.ALIAS, a)
            elif a.id in scope.consumed:
                self.against(scope, eqn, Rule.USE_AFTER_FREE, a)
            once.add(a.id)

    def changes(
        self, scope: _Scope, eqn: Eqn, row: Row[ArgIndex], inner: frozenset[FaultKind]
    ) -> None:
        """Record allocated and consumed references; report the consumption of foreign ones."""
        for effect in row:
            if isinstance(effect, Alloc) and effect.ref < len(eqn.outs):
                scope.made.add(eqn.outs[effect.ref].id)
            elif isinstance(effect, Free) and effect.ref < len(eqn.ins):
                ref = eqn.ins[effect.ref]
                if type(ref) is Lit:
                    continue
                if ref.id not in scope.made and FaultKind.FOREIGN_FREE not in inner:
                    self.against(scope, eqn, Rule.FOREIGN_FREE, ref)
                scope.consumed.setdefault(ref.id, eqn)

    def against(self, scope: _Scope, eqn: Eqn | None, rule: Rule, ref: Var) -> None:
        """Report a use of a reference against a rule."""
        consumer = scope.consumed.get(ref.id)
        found = f"{VAR_NAMES[ref.id]}:{ref.type}"
        if rule is Rule.USE_AFTER_FREE and consumer is not None:
            found += f", consumed by `{eqn_str(consumer)}`"
        kind = FaultKind(rule.code)
        self.fault(scope, eqn, kind, rule.forbids, found=found, remedy=rule.remedy)

    def results(self, scope: _Scope, jaxpr: Jaxpr) -> None:
        """Check that results are in scope and are not references."""
        for a in jaxpr.outs:
            if isinstance(a, Lit):
                self.literal(scope, None, a)
            elif scope.types.get(a.id) is not a.type:
                self.unbound(scope, None, a)
            elif isinstance(a.type, RefType):
                self.against(scope, None, Rule.ESCAPE, a)

    def fault(
        self,
        scope: _Scope,
        eqn: Eqn | None,
        kind: FaultKind,
        message: str,
        expected: str | None = None,
        found: str | None = None,
        remedy: str | None = None,
    ) -> None:
        """Record a fault."""
        equation = None if eqn is None else eqn_str(eqn)
        source = None if eqn is None or eqn.source is None else str(eqn.source)
        self.faults.append(
            Fault(kind, message, expected, found, remedy, scope.path, equation, source)
        )


_NONE: Final = frozenset[FaultKind]()
