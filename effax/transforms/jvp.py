"""Forward-mode differentiation: a program over primals and tangents.

Before::

    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }

After, with a tangent for ``a``::

    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = cos a
        e:f32[] = mul b d
      in (c, e) }
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from effax.effects import NO_EFFECTS
from effax.ir.analysis.dataflow import analyze, close_regions
from effax.ir.build import Template, template
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import EffaxError, TransformError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import NewRef
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import Type, is_inexact, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import (
    REF_ALLOCATORS,
    Mask,
    Property,
    mentions_refs,
)
from effax.transforms.framework.rules import JvpOut, RuleBuilder, RuleSet, Unsupported
from effax.transforms.framework.runner import located
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.smooth_squares import smooth_squares


class Jvp(NamedTuple):
    """The result of :func:`jvp`.

    Attributes:
        jaxpr: ``(*primals, *tangents of inputs with one) -> (*primals, *tangents with one)``.
        out_tangents: which results have a tangent.
        in_tangents: which inputs have a tangent; the argument.
    """

    jaxpr: Jaxpr
    out_tangents: Mask
    in_tangents: Mask


class JvpTemplate(NamedTuple):
    """One differentiated equation. The operands of ``body`` are primals, then nonzero tangents."""

    body: Template
    n_outs: int
    out_tangents: Mask


def _jvp(jaxpr: Jaxpr, tangents: Mask, instantiate: bool | Mask, rules: RuleSet) -> Jvp:
    forced = (instantiate,) * len(jaxpr.outs) if isinstance(instantiate, bool) else instantiate
    check_tangents(jaxpr, tangents)
    if len(forced) != len(jaxpr.outs):
        raise TransformError(
            "jvp needs one entry of `instantiate` for each result",
            expected=str(len(jaxpr.outs)),
            found=str(len(forced)),
        )
    return _Differentiator(smooth_squares(jaxpr), tangents, rules).run(forced)


def check_tangents(jaxpr: Jaxpr, tangents: Sequence[bool]) -> None:
    """Raise TransformError if an entry is missing, or an input without tangents is marked."""
    if len(tangents) != len(jaxpr.binders):
        raise TransformError(
            "jvp needs one entry for each input",
            expected=str(len(jaxpr.binders)),
            found=str(len(tangents)),
        )
    for i, (v, has) in enumerate(zip(jaxpr.binders, tangents, strict=True)):
        if has and not is_inexact(v.type):
            raise TransformError(
                f"{jaxpr.name_of(i)} has no tangents: only floats and complex numbers do",
                found=str(v.type),
            )


@jaxpr_pass(_jvp, maxsize=1024)
def jvp(
    jaxpr: Jaxpr,
    tangents: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
    rules: RuleSet | None = None,
) -> Jvp:
    """Differentiate ``jaxpr`` forward, with respect to the inputs that have tangents.

    Type:     (a..., b...) -> c  =>  (a..., b..., ta...) -> (c, tc)     a has tangents
    Effects:  those of the program, and the same on the tangent of each differentiated ref.
    Laws:     tests/laws/test_jvp.py
    Raises:   TransformError: a rule is missing; a differentiated value is written to a reference
              that has no tangent.
    Source:   autodidax, part 1.

    Args:
        jaxpr: the program.
        tangents: one entry an input: whether it has a tangent (its type: the input's, strong).
        instantiate: for which results a zero tangent is returned as an array of zeros.
        rules: the rules; the registered ones where it is None.
    """
    forced = instantiate if isinstance(instantiate, bool) else tuple(instantiate)
    return _jvp(jaxpr, tuple(tangents), forced, rules_or_default(rules))


class _Differentiator(Rewriter):
    """One run of the pass: each variable is bound to a primal and a tangent, or None for zero."""

    def __init__(self, jaxpr: Jaxpr, tangents: Mask, rules: RuleSet) -> None:
        super().__init__(jaxpr)
        self.mask = tangents
        self.rules = rules
        self.tangent: list[Atom | None] = [None] * jaxpr.size
        # The variables of allocated references to which differentiated values are written.
        self.active = active_refs(jaxpr, tangents, rules)

    def run(self, forced: Mask) -> Jvp:
        jaxpr, b = self.jaxpr, self.b
        for v, has in zip(jaxpr.binders, self.mask, strict=True):
            if has:
                self.tangent[v.id] = b.bind(tangent_type(v.type))
        for eqn in jaxpr.eqns:
            self.step(eqn)
        outs = self.results()
        tangents = [None if isinstance(a, Lit) else self.tangent[a.id] for a in jaxpr.outs]
        for i, (type_, is_forced) in enumerate(zip(jaxpr.out_types, forced, strict=True)):
            if is_forced and tangents[i] is None and is_inexact(type_):
                tangents[i] = zeros(b, tangent_type(type_))
        present = [t for t in tangents if t is not None]
        return Jvp(self.build([*outs, *present]), tuple(t is not None for t in tangents), self.mask)

    def step(self, eqn: Eqn) -> None:
        prim, ins, outs, effects, source = eqn
        primal, tangent = self.env, self.tangent
        args = [a if type(a) is Lit else primal[a.id] for a in ins]
        given = [None if type(a) is Lit else tangent[a.id] for a in ins]
        present = [t for t in given if t is not None]
        # `active` has references only, and an allocation has an effect.
        if effects is not NO_EFFECTS and any(v.id in self.active for v in outs):
            self._allocate(eqn, args, given)
            return
        if not present:
            self.keep(eqn, tuple(args))
            return
        types, mask = tuple([a.type for a in args]), tuple([t is not None for t in given])
        try:
            body, n_outs, out_tangents = jvp_template(self.rules, prim, types, mask)
        except EffaxError as error:
            located(error, eqn)
            raise
        args += present
        results = self.b.inline(body, args, source)
        if len(results) == 2 and n_outs == 1:
            # The common case: one result, which has a tangent.
            at = outs[0].id
            primal[at], tangent[at] = results
            return
        for v, result in zip(outs, results, strict=False):
            primal[v.id] = result
        for v, has in zip(outs, out_tangents, strict=True):
            if has:
                tangent[v.id] = results[n_outs]
                n_outs += 1

    def _allocate(self, eqn: Eqn, args: Sequence[Atom], present: Sequence[Atom | None]) -> None:
        """Allocate a reference to which differentiated values are written, and its tangent."""
        (out,) = eqn.outs
        self.env[out.id] = self.b.emit(eqn.prim, args, eqn.source)[0]
        if isinstance(eqn.prim, NewRef):
            given = present[0]
            first = zeros(self.b, args[0].type) if given is None else given
            self.tangent[out.id] = self.b.emit(NewRef(eqn.prim.kind), [first], eqn.source)[0]
        else:
            self.tangent[out.id] = self.b.emit(eqn.prim, args, eqn.source)[0]


@memoize(maxsize=1 << 14)
def jvp_template(
    rules: RuleSet, prim: Primitive, types: tuple[Type, ...], mask: Mask
) -> JvpTemplate:
    """Return the template of one equation; ``mask`` marks the operands with a tangent."""
    rule = rules.of(prim).jvp
    if isinstance(rule, Unsupported):
        raise rule.error(prim, "jvp")
    b = RuleBuilder(rules, types)
    primals = tuple(b.binders)
    tangents = [
        b.bind(tangent_type(t)) if has else None for t, has in zip(types, mask, strict=True)
    ]
    outs, out_tangents = rule(b, prim, primals, tangents)
    present = [t for t in out_tangents if t is not None]
    body = template(b.finish([*outs, *present]))
    return JvpTemplate(body, len(outs), tuple(t is not None for t in out_tangents))


def close_tangents(
    b: RuleBuilder, prim: Primitive, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> list[Atom | None]:
    """Return the tangents with zeros for carries that get a nonzero tangent in an iteration.

    A reference to which differentiated values are written has its tangent already.
    """
    types = tuple([p.type for p in primals])
    mask = tuple([t is not None for t in tangents])
    grown, _ = close_regions(HasTangent(b.rules), prim, mask)
    return [
        zeros(b, tangent_type(type_)) if now and not before else t
        for t, type_, before, now in zip(tangents, types, mask, grown, strict=True)
    ]


def with_tangents(results: Sequence[Atom], has_tangent: Mask) -> JvpOut:
    """Return results ``(*outs, *nonzero tangents)`` as the output of a rule."""
    n = len(has_tangent)
    rest = iter(results[n:])
    return JvpOut(results[:n], [next(rest) if has else None for has in has_tangent])


def regrouped(mask: Mask, cuts: Sequence[int]) -> list[int]:
    """Return the order in which each group of primals is followed by its nonzero tangents.

    Positions are those in ``(*primals, *nonzero tangents)``. Group ``i`` has the primals from
    ``cuts[i]`` up to ``cuts[i + 1]``.
    """
    marked = [i for i, has in enumerate(mask) if has]
    slot = {i: len(mask) + n for n, i in enumerate(marked)}
    order: list[int] = []
    for low, high in pairwise(cuts):
        order += range(low, high)
        order += [slot[i] for i in range(low, high) if i in slot]
    return order


@dataclass(frozen=True)
class HasTangent(Property):
    """The property that a value has a tangent, under a set of rules."""

    rules: RuleSet

    def outs(self, prim: Primitive, types: tuple[Type, ...], ins: Mask) -> Mask:
        return jvp_template(self.rules, prim, types, ins).out_tangents

    def tracks(self, type_: Type) -> bool:
        return is_inexact(type_)


def active_refs(jaxpr: Jaxpr, tangents: Mask, rules: RuleSet) -> frozenset[int]:
    """Return the variables of allocated references to which differentiated values are written.

    Raises TransformError if one is written to an input reference without a tangent.
    """
    if not mentions_refs(jaxpr):
        return frozenset()
    found = analyze(HasTangent(rules), jaxpr, tangents)
    for i, (before, after) in enumerate(zip(tangents, found.ins, strict=True)):
        if after and not before:
            error = TransformError(
                f"a differentiated value is written to {jaxpr.name_of(i)}, "
                "a reference that is not differentiated",
                expected="a value that is not differentiated",
                found=str(jaxpr.binders[i].type),
                remedy="write `stop_gradient(value)`, or differentiate with respect to the ref too",
            )
            error.position = i
            raise error
    made = (v.id for eqn in jaxpr.eqns if type(eqn.prim) in REF_ALLOCATORS for v in eqn.outs)
    return frozenset(i for i in made if found.variables[i])
