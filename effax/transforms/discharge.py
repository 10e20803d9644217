"""Discharge of references: a program on their contents, which it takes and returns.

Before, ``a`` is a reference::

    { lambda ; a:Ref{f32[3]} b:f32[]. let
        c:f32[] = a[0]
        d:f32[] = mul c b
        a[1] <- d
      in (c,) }

After, ``a`` is its initial contents, and the last result is its final contents::

    { lambda ; a:f32[3] b:f32[]. let
        c:f32[] = gather[0] a
        d:f32[] = mul c b
        e:f32[3] = scatter[1] a d
      in (c, e) }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.effects import Accum, Rule, Write
from effax.ir.build import Builder, Template, template
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import TransformError
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Eqn, Jaxpr, Lit, Var
from effax.ir.types import RefType, Type
from effax.transforms.framework.dead_code import used_variables, without_dead
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleBuilder, RuleSet, Unsupported


class Discharged(NamedTuple):
    """The result of :func:`discharge`.

    Attributes:
        jaxpr: ``inputs, with contents for refs -> (*results, *final contents)``.
        refs: the positions of the inputs that were references.
        changed: the positions of the references that the program writes or accumulates into, whose
            final contents are the last results, in this order.
    """

    jaxpr: Jaxpr
    refs: tuple[int, ...]
    changed: tuple[int, ...]

    @property
    def n_outs(self) -> int:
        """The number of results that are not final contents."""
        return len(self.jaxpr.outs) - len(self.changed)


class DischargeTemplate(NamedTuple):
    """One discharged equation: the used results, then the new contents of operands ``changed``."""

    body: Template
    changed: tuple[int, ...]


def _discharge(jaxpr: Jaxpr, rules: RuleSet) -> Discharged:
    if not has_refs(jaxpr):
        return Discharged(jaxpr, (), ())
    refs = tuple(i for i, v in enumerate(jaxpr.binders) if isinstance(v.type, RefType))
    changed = changed_refs(jaxpr)
    return Discharged(_Discharger(jaxpr, rules).run(changed), refs, changed)


@jaxpr_pass(_discharge, maxsize=1024)
def discharge(jaxpr: Jaxpr, rules: RuleSet | None = None) -> Discharged:
    """Replace the references of ``jaxpr`` by their contents.

    A program without references, in subjaxprs too, is returned unchanged: the same object. The
    initial contents of an uninitialised reference are zeros.

    Type:     (Ref a, b) -> c  =>  (a, b) -> (c, a)     for each Ref that the program changes
    Effects:  those on references are removed; side effects are kept, in order.
    Laws:     tests/laws/test_discharge.py
    Raises:   TransformError: a result is a reference; a rule is missing.

    Args:
        jaxpr: the program; the checker accepts it (no aliases, no use after free).
        rules: the rules; the registered ones where it is None.
    """
    # Nothing is built for a program without references: a cache entry would only keep it alive.
    run = discharge.cached if has_refs(jaxpr) else discharge.uncached
    return run(jaxpr, rules_or_default(rules))


def changed_refs(jaxpr: Jaxpr) -> tuple[int, ...]:
    """Return the positions of the inputs that the program writes or accumulates into."""
    positions = (e.ref for e in jaxpr.effects if isinstance(e, Write | Accum))
    return tuple(sorted(dict.fromkeys(map(int, positions))))


@memoize(maxsize=4096)
def has_refs(jaxpr: Jaxpr) -> bool:
    """Return whether the program or a subjaxpr has a reference."""
    if any(isinstance(v.type, RefType) for v in jaxpr.binders):
        return True
    return any(
        any(isinstance(v.type, RefType) for v in eqn.outs)
        or any(map(has_refs, eqn.prim.subjaxprs()))
        for eqn in jaxpr.eqns
    )


class _Discharger(Rewriter):
    """One run of the pass: variables are bound to values, references to their current contents.

    A write rebinds the reference, so program order of effects becomes data dependence. In loops and
    branches the rules thread the contents: one state for a condition and its body.
    """

    def __init__(self, jaxpr: Jaxpr, rules: RuleSet) -> None:
        super().__init__(jaxpr, Builder(map(contents_type, jaxpr.in_types)))
        self.rules = rules
        self.used = used_variables(jaxpr)

    def run(self, changed: Sequence[int]) -> Jaxpr:
        jaxpr = self.jaxpr
        for i, atom in enumerate(jaxpr.outs):
            if isinstance(atom.type, RefType):
                raise TransformError(
                    f"result {i} is a reference, which cannot be discharged",
                    expected="an array",
                    found=str(atom.type),
                    remedy=Rule.ESCAPE.remedy,
                )
        for eqn in jaxpr.eqns:
            self.step(eqn)
        last = [jaxpr.binders[i] for i in changed]
        return self.build([*self.results(), *map(self.read, last)])

    def step(self, eqn: Eqn) -> None:
        prim, ins, outs, _, source = eqn
        env = self.env
        args = [a if type(a) is Lit else env[a.id] for a in ins]
        refs = tuple([type(a.type) is RefType for a in ins])
        if not (
            True in refs
            or (outs and type(outs[0].type) is RefType)
            or any(map(has_refs, prim.subjaxprs()))
        ):
            self.keep(eqn, tuple(args))
            return
        used = tuple([v.id in self.used for v in outs])
        rule = discharge_template(self.rules, prim, tuple([a.type for a in args]), refs, used)
        results = iter(self.b.inline(rule.body, args, source))
        for v, flag in zip(outs, used, strict=True):
            if flag:
                env[v.id] = next(results)
        for position in rule.changed:
            ref = ins[position]
            assert isinstance(ref, Var)
            env[ref.id] = next(results)


@memoize(maxsize=1 << 14)
def discharge_template(
    rules: RuleSet, prim: Primitive, types: tuple[Type, ...], is_ref: Mask, used: Mask
) -> DischargeTemplate:
    """Return the template of one equation, without dead code for its unused results."""
    rule = rules.of(prim).discharge
    if isinstance(rule, Unsupported):
        raise rule.error(prim, "discharge")
    b = RuleBuilder(rules, types)
    outs, contents = rule(b, prim, tuple(b.binders), is_ref)
    kept = [a for a, flag in zip(outs, used, strict=True) if flag]
    new = [a for a in contents if a is not None]
    changed = tuple(i for i, a in enumerate(contents) if a is not None)
    return DischargeTemplate(template(without_dead(b.finish([*kept, *new]), rules)), changed)


def contents_type(type_: Type) -> Type:
    """Return the type of a reference's contents; an array's own type."""
    return type_.inner if isinstance(type_, RefType) else type_
