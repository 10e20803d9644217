"""Linearisation: a program's values, and its derivative as a linear program.

Before::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b a in (c,) }

The primal program gives the result and what the derivative needs; the linear program maps that
and tangents to tangents (an input that is needed is passed as it is)::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b a; d:f32[] = cos a in (c, d, b) }
    { lambda a:f32[] b:f32[] c:f32[] ; d:f32[]. let
        e:f32[] = mul d a
        f:f32[] = mul e b
        g:f32[] = mul c d
        h:f32[] = add f g
      in (h,) }

It is ``jvp``, of which partial evaluation takes the part that tangents do not decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.ir.errors import NotApplicable
from effax.ir.syntax import Jaxpr
from effax.transforms.framework.pass_ import jaxpr_pass, rules_or_default
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.framework.runner import located
from effax.transforms.jvp import jvp
from effax.transforms.optimize.dce import Sweep
from effax.transforms.partial_eval.engine import Partition, partition
from effax.transforms.partial_eval.partial_eval import FromInput, PartialEval, Residual, as_jaxprs


class Linearized(NamedTuple):
    """The result of :func:`linearize`.

    Attributes:
        primal: ``inputs -> (results, residuals that are neither inputs nor results)``.
        linear: ``(residuals, tangents of inputs with one) -> tangents of results with one``.
        in_tangents: which inputs have a tangent; the given mask.
        out_tangents: which results have a tangent.
        residuals: where each residual comes from: ``r.pick(inputs, primal's results)``.
    """

    primal: Jaxpr
    linear: Jaxpr
    in_tangents: Mask
    out_tangents: Mask
    residuals: tuple[Residual, ...]


def _linearize(
    jaxpr: Jaxpr, tangents: Mask, instantiate: bool | Mask, rules: RuleSet
) -> Linearized:
    pushed = jvp.uncached(jaxpr, tangents, instantiate, rules)
    n_ins, n_outs = len(jaxpr.binders), len(jaxpr.outs)
    known = (True,) * n_ins + (False,) * sum(tangents)
    late = (False,) * n_outs + (True,) * sum(pushed.out_tangents)
    halves = partition(pushed.jaxpr, known, None, late, rules)
    _check_early(halves, n_outs)
    pe = as_jaxprs(pruned(halves, rules))
    _check_references(pe)
    return Linearized(pe.known, pe.unknown, tangents, pushed.out_tangents, pe.residuals)


@jaxpr_pass(_linearize, maxsize=256)
def linearize(
    jaxpr: Jaxpr,
    tangents: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
    rules: RuleSet | None = None,
) -> Linearized:
    """Split the derivative of ``jaxpr`` in what its inputs decide, and a linear program.

    Type:     (a, b) -> c  =>  (a, b) -> (c, r)  and  (r, ta) -> tc     a has tangents
    Effects:  those of the program are in the primal one, those on tangent refs in the linear one.
    Laws:     tests/laws/test_linearize.py
    Raises:   TransformError: as for ``jvp``; NotApplicable: values cannot be computed before
              tangents, as in a ``while`` with host effects.
    Source:   autodidax, part 4.

    Args:
        jaxpr: the program.
        tangents: one entry an input: whether it has a tangent.
        instantiate: for which results a tangent of zero is given as an array of zeros.
        rules: the rules; the library's own where it is None.
    """
    wanted = instantiate if isinstance(instantiate, bool) else tuple(instantiate)
    return _linearize(jaxpr, tuple(tangents), wanted, rules_or_default(rules))


def pruned(halves: Partition, rules: RuleSet) -> Partition:
    """The halves without what the late one computes for nothing, and its residuals."""
    jaxpr, known = halves.jaxpr, halves.known_ins
    early_ins = [v for v, has in zip(jaxpr.binders, known, strict=True) if has]
    late_ins = [v for v, has in zip(jaxpr.binders, known, strict=True) if not has]
    late_ins = [*halves.residuals, *late_ins]
    late = Sweep(
        late_ins, halves.late, halves.late_outs, (True,) * len(late_ins), halves.size, rules
    )
    late_eqns, _ = late.run()
    residuals = [v for v in halves.residuals if late.needed[v.id]]
    outs = [*halves.early_outs, *residuals]
    early = Sweep(early_ins, halves.early, outs, (True,) * len(early_ins), halves.size, rules)
    early_eqns, _ = early.run()
    return halves._replace(early=early_eqns, late=late_eqns, residuals=residuals)


def _check_early(halves: Partition, n_outs: int) -> None:
    """Raises NotApplicable where a result, or an effect of a loop, would wait for tangents."""
    for eqn in halves.late:
        if eqn.effects.side_effects and eqn.prim.has_predicate():
            error = NotApplicable(
                "linearize: the derivative needs what the iterations of a while loop compute, and "
                "its effects on the world outside cannot happen a second time",
                expected="a loop without such effects, or one that keeps what it computes",
                found=str(eqn.effects),
                remedy="give the `while_loop` a bound (`max_steps`): it then keeps its values; "
                "or use jvp",
            )
            raise located(error, eqn)
    for i, has in enumerate(halves.known_outs[:n_outs]):
        if not has:
            raise NotApplicable(
                f"linearize: result {i} cannot be computed before the tangents are there",
                remedy="use jvp, which computes values and tangents together",
            )


def _check_references(pe: PartialEval) -> None:
    """Raises NotApplicable where the linear program would act on a reference of the primal one."""
    for i in pe.unknown.effects.refs:
        if i < len(pe.residuals):
            source = pe.residuals[i]
            assert isinstance(source, FromInput), "a reference is never a result"
            raise NotApplicable(
                f"linearize: the derivative reads or changes {pe.known.name_of(source.index)}, "
                "a reference, after the program has run",
                remedy="use jvp, which computes values and tangents together",
            )
