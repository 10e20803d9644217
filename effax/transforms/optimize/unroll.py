"""Unrolling of loops with a known number of iterations.

Before::

    { lambda ; a:f32[] b:f32[1]. let
        c:f32[] = scan[
          jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }
          length=1
          n_carry=1
          n_consts=0
          reverse=False
          unroll=1
        ] a b
      in (c,) }

After::

    { lambda ; a:f32[] b:f32[1]. let
        c:f32[] = gather[indexer=[0]] b
        d:f32[] = mul a c
      in (d,) }

The trip count of a ``while`` loop is known if its predicate depends on literals only: the part of
the body that determines the predicate is evaluated. Unless growth is allowed, only loops
are unrolled that do not become larger by it: those of few iterations or short bodies.
"""

from __future__ import annotations

from returns.result import Result

from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.transforms.framework.pass_ import rules_or_default
from effax.transforms.framework.rewriter import at_every_depth
from effax.transforms.framework.rules import RuleSet


def unroll(
    jaxpr: Jaxpr, growth: int = 0, rules: RuleSet | None = None
) -> Result[Jaxpr, TransformError]:
    """Unroll loops with a known number of iterations, in every program.

    Type:     a -> b  =>  a -> b
    Effects:  the same; those of a loop of no iterations are removed.
    Laws:     tests/laws/test_simplify.py

    Args:
        jaxpr: the program.
        growth: the number of equations by which the program may grow for each loop.
        rules: the rules; the registered ones where it is None.

    Raises:
        BadArgument: the growth is negative.
    """
    if growth < 0:
        raise BadArgument("the growth of unroll must not be negative", "at least 0", str(growth))
    used = rules_or_default(rules)

    def local(program: Jaxpr) -> Jaxpr:
        made = Rewriter(program)
        _unroll_equations(made, program, growth, used)
        return made.finish()

    return at_every_depth(local)(jaxpr)


def _unroll_equations(made: Rewriter, jaxpr: Jaxpr, growth: int, rules: RuleSet) -> None:
    """Unroll the loops of a program whose inputs are bound in ``made``."""
    for eqn in jaxpr.eqns:
        ins = made.operands(eqn)
        found = rules.find(eqn.prim)
        rule = None if found is None else found.unroll
        iterations = None if rule is None else rule(rules, eqn, ins, growth)
        if iterations is None:
            made.keep(eqn, ins)
            continue
        # An inner loop may have a known trip count now that its operands are literals.
        inner = made.nested(iterations, ins)
        _unroll_equations(inner, iterations, growth, rules)
        made.replace(eqn, inner.results())
