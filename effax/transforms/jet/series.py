"""Arithmetic of truncated power series, and the rule of a primitive by that of forward mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from effax.ir.errors import EffaxError, NotApplicable, TransformError
from effax.ir.primitive import Primitive
from effax.ir.prims import Add, ConvertElementType
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import ArrayType, Type, tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleBuilder, RuleSet
from effax.transforms.framework.runner import located
from effax.transforms.jvp import JvpTemplate, jvp_template
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.pointwise import const

Series = tuple[Atom | None, ...]
"""Coefficients from that of order 0, which exists, up to the last; None for zeros."""


def constant_series(x: Atom | None, order: int) -> Series:
    """Return the series without coefficients of higher order."""
    return (x, *[None] * order)


Nested = Callable[[Jaxpr, Mask, int, Mask, RuleSet], Jaxpr]
"""The pass on a subjaxpr: which inputs have series, the order, and which results must have one."""


class Taylor:
    """A builder of a program on series. Equal equations are one."""

    def __init__(
        self,
        b: RuleBuilder,
        rules: RuleSet,
        special: Mapping[type[Primitive], Rule],
        nested: Nested,
    ) -> None:
        self.b = b
        self.rules = rules
        self.special = special
        self.nested = nested
        self.made: dict[tuple[Primitive, tuple[Atom, ...]], Sequence[Atom]] = {}

    def emit(self, prim: Primitive, ins: Sequence[Atom]) -> Sequence[Atom]:
        """Append a pure equation, or return the results of an equal one."""
        key = (prim, tuple(ins))
        try:
            found = self.made.get(key)
        except TypeError:  # a parameter is not hashable
            return self.b.emit(prim, ins)
        if found is None:
            found = self.made[key] = self.b.emit(prim, ins)
        return found

    def one(self, prim: Primitive, *ins: Atom) -> Atom:
        """Append a pure equation of one result."""
        (out,) = self.emit(prim, ins)
        return out

    def typed(self, c: Atom, type_: Type) -> Atom:
        """Return a coefficient in the dtype of a type, strong."""
        if c.type == type_ or not isinstance(type_, ArrayType):
            return c
        return self.one(ConvertElementType(type_.dtype), c)

    def total(self, parts: Sequence[Atom | None]) -> Atom | None:
        """Return the sum; None where all are zero."""
        present = [x for x in parts if x is not None]
        if not present:
            return None
        found = present[0]
        for x in present[1:]:
            found = self.one(Add(), found, x)
        return found

    def scaled(self, x: Atom | None, factor: float) -> Atom | None:
        """Return a multiple of a coefficient."""
        from effax.ir.prims import Mul

        if x is None or factor == 1:
            return x
        return self.one(Mul(), x, const(factor, x))

    def run(self, jaxpr: Jaxpr, given: Sequence[Series], order: int) -> list[Series]:
        """Evaluate a program on series."""
        env = dict(zip([v.id for v in jaxpr.binders], given, strict=True))

        def read(a: Atom) -> Series:
            return constant_series(a, order) if isinstance(a, Lit) else env[a.id]

        for eqn in jaxpr.eqns:
            ins = [read(a) for a in eqn.ins]
            try:
                outs = self._equation(eqn, ins, order)
            except EffaxError as error:
                located(error, eqn)
                raise
            env.update(zip([v.id for v in eqn.outs], outs, strict=True))
        return [read(a) for a in jaxpr.outs]

    def _equation(self, eqn: Eqn, ins: Sequence[Series], order: int) -> list[Series]:
        if not eqn.effects.effects:
            return self.apply(eqn.prim, ins, order)
        # An effect without results, such as a print, is that of the primal values.
        is_moved = any(c is not None for x in ins for c in x[1:])
        if is_moved and (eqn.outs or eqn.effects.refs):
            raise NotApplicable(
                f"jet: {eqn.prim.name} has effects on a value with a series",
                expected="a program without references",
                remedy="discharge references first, or write `stop_gradient(value)`",
            )
        return [constant_series(y, order) for y in self.b.emit(eqn.prim, [primal(x) for x in ins])]

    def apply(self, prim: Primitive, ins: Sequence[Series], order: int) -> list[Series]:
        """Return the results of a pure primitive on series."""
        if not any(c is not None for x in ins for c in x[1:]):
            return [constant_series(y, order) for y in self.emit(prim, [primal(x) for x in ins])]
        rule = self.special.get(type(prim))
        return (
            self._by_derivative(prim, ins, order) if rule is None else rule(self, prim, ins, order)
        )

    def _by_derivative(self, prim: Primitive, ins: Sequence[Series], order: int) -> list[Series]:
        """Integrate y' = J(x)·x'."""
        primals = [primal(x) for x in ins]
        mask = tuple([any(c is not None for c in x[1:]) for x in ins])
        derived = jvp_template(self.rules, prim, tuple([x.type for x in primals]), mask)
        slopes = [self._slope(x, order) for x, has in zip(ins, mask, strict=True) if has]
        args = [*[x[:order] for x in ins], *slopes]
        moved = iter(self._tangents(derived, args, len(slopes), order - 1))
        outs = self.emit(prim, primals)
        return [
            (y, *[self.scaled(c, 1 / (k + 1)) for k, c in enumerate(next(moved))])
            if has
            else constant_series(y, order)
            for y, has in zip(outs, derived.out_tangents, strict=True)
        ]

    def _slope(self, x: Series, order: int) -> Series:
        """Return the derivative of a series, to an order less."""
        first = x[1]
        if first is None:
            first = zeros(self.b, tangent_type(primal(x).type))
        rest = [self.scaled(c, k) for k, c in enumerate(x[2 : order + 1], 2)]
        return (first, *rest)

    def _tangents(
        self, derived: JvpTemplate, args: Sequence[Series], slopes: int, order: int
    ) -> list[Series]:
        """Return the tangents of a differentiated equation on series, and compute no more."""
        lits, steps, outs = derived.body
        env: dict[int, Series] = dict(
            enumerate([*args, *[constant_series(x, order) for x in lits]])
        )
        asked = outs[derived.n_outs :]
        primals = len(args) - slopes
        first = [len(env)]
        for step in steps:
            first.append(first[-1] + len(step.out_types))
        needed = set(asked)
        kept: list[int] = []
        for i in reversed(range(len(steps))):
            if not needed.isdisjoint(range(first[i], first[i + 1])):
                needed.update(steps[i].slots)
                kept.append(i)
        for i in reversed(kept):
            step = steps[i]
            if step.effects.effects:
                raise TransformError(f"jet: the derivative has effects of {step.prim.name}")
            ins = [env[s] for s in step.slots]
            tangents = [primals <= s < len(args) for s in step.slots]
            if len(kept) == 1 and self._is_linear(step.prim, ins, tangents):
                found = self._by_coefficient(step.prim, ins, tangents, order)
            else:
                found = self.apply(step.prim, ins, order)
            env.update(zip(range(first[i], first[i + 1]), found, strict=True))
        return [env[s] for s in asked]

    def _is_linear(self, prim: Primitive, ins: Sequence[Series], tangents: Sequence[bool]) -> bool:
        """Return whether only tangents have series: all of a derivative is linear in these."""
        still = [x for x, is_tangent in zip(ins, tangents, strict=True) if not is_tangent]
        return type(prim) not in self.special and not any(
            c for x in still for c in x[1:] if c is not None
        )

    def _by_coefficient(
        self, prim: Primitive, ins: Sequence[Series], tangents: Sequence[bool], order: int
    ) -> list[Series]:
        rows: list[Sequence[Atom | None]] = [self.emit(prim, [primal(x) for x in ins])]
        for k in range(1, order + 1):
            if all(x[k] is None for x in ins):
                rows.append([None] * len(rows[0]))
                continue
            args = [
                self._coefficient(x, k if is_tangent else 0)
                for x, is_tangent in zip(ins, tangents, strict=True)
            ]
            rows.append(self.emit(prim, args))
        return [tuple(column) for column in zip(*rows, strict=True)]

    def _coefficient(self, x: Series, k: int) -> Atom:
        found = x[k]
        return zeros(self.b, primal(x).type) if found is None else found


def primal(x: Series) -> Atom:
    """Return the coefficient of order 0."""
    first = x[0]
    assert first is not None
    return first


Rule = Callable[[Taylor, Primitive, Sequence[Series], int], list[Series]]
"""The rule of a primitive: ``(builder, primitive, operands, order) -> results``."""
