"""Linearization: the values of a program, and its derivative as a linear program.

Before::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b a in (c,) }

The primal program returns the results and residuals; the linear program maps residuals and tangents
to tangents. An input that is a residual is passed directly::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b a; d:f32[] = cos a in (c, d, b) }
    { lambda a:f32[] b:f32[] c:f32[] ; d:f32[]. let
        e:f32[] = mul d a
        f:f32[] = mul e b
        g:f32[] = mul c d
        h:f32[] = add f g
      in (h,) }

It is ``jvp``, then partial evaluation with known primals and unknown tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.ir.errors import NotApplicable
from effax.ir.syntax import Jaxpr
from effax.ir.types import RefType
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
        in_tangents: which inputs have a tangent; the argument.
        out_tangents: which results have a tangent.
        residuals: the origin of each residual: ``r.pick(inputs, primal's results)``.
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
    unknown_outs = (False,) * n_outs + (True,) * sum(pushed.out_tangents)
    parts = partition(pushed.jaxpr, known, None, unknown_outs, rules)
    _check_primals(parts, n_outs)
    pe = as_jaxprs(pruned(parts, rules))
    _check_references(pe)
    return Linearized(pe.known, pe.unknown, tangents, pushed.out_tangents, pe.residuals)


@jaxpr_pass(_linearize, maxsize=256)
def linearize(
    jaxpr: Jaxpr,
    tangents: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
    rules: RuleSet | None = None,
) -> Linearized:
    """Split the derivative of ``jaxpr`` into a primal and a linear program.

    Type:     (a, b) -> c  =>  (a, b) -> (c, r)  and  (r, ta) -> tc     a has tangents
    Effects:  those on primals are in the primal program, those on tangent refs in the linear one.
    Laws:     tests/laws/test_linearize.py
    Raises:   TransformError: as for ``jvp``; NotApplicable: a primal result needs tangents, or the
              linear program would repeat side effects or use a primal reference.
    Source:   autodidax, part 4.

    Args:
        jaxpr: the program.
        tangents: one entry an input: whether it has a tangent.
        instantiate: for which results a zero tangent is returned as an array of zeros.
        rules: the rules; the registered ones where it is None.
    """
    forced = instantiate if isinstance(instantiate, bool) else tuple(instantiate)
    return _linearize(jaxpr, tuple(tangents), forced, rules_or_default(rules))


def pruned(parts: Partition, rules: RuleSet) -> Partition:
    """Return the partition without dead unknown equations, and then dead residuals."""
    jaxpr, known = parts.jaxpr, parts.known_ins
    known_ins = [v for v, has in zip(jaxpr.binders, known, strict=True) if has]
    unknown_ins = [v for v, has in zip(jaxpr.binders, known, strict=True) if not has]
    unknown_ins = [*parts.residuals, *unknown_ins]
    observed = (True,) * len(unknown_ins)
    unknown = Sweep(
        unknown_ins, parts.unknown_eqns, parts.unknown_results, observed, parts.size, rules
    )
    unknown_eqns, _ = unknown.run()
    residuals = [v for v in parts.residuals if unknown.needed[v.id]]
    outs = [*parts.known_results, *residuals]
    observed = (True,) * len(known_ins)
    known_eqns, _ = Sweep(known_ins, parts.known_eqns, outs, observed, parts.size, rules).run()
    return parts._replace(known_eqns=known_eqns, unknown_eqns=unknown_eqns, residuals=residuals)


def _check_primals(parts: Partition, n_outs: int) -> None:
    """Raise NotApplicable if a result, or a side effect of a loop, depends on tangents."""
    for eqn in parts.unknown_eqns:
        if eqn.effects.side_effects and eqn.prim.has_predicate():
            error = NotApplicable(
                "linearize: the derivative needs values of the iterations of a while loop, and "
                "its side effects cannot happen a second time",
                expected="a loop without side effects, or one that saves its values",
                found=str(eqn.effects),
                remedy="bound the `while_loop` (`max_steps`), which then saves its values; or use "
                "jvp",
            )
            raise located(error, eqn)
    for i, is_known in enumerate(parts.known_outs[:n_outs]):
        if not is_known:
            raise NotApplicable(
                f"linearize: result {i} cannot be computed before tangents are known",
                remedy=_remedy(parts),
            )


def _remedy(parts: Partition) -> str:
    # An equation without effects that takes a reference accesses it when it is transposed.
    for eqn in parts.unknown_eqns:
        if not eqn.effects and any(isinstance(a.type, RefType) for a in eqn.ins):
            return (
                "return the contents of the reference (`ref[...]`) from the forward rule, as a "
                "residual: the function ends the reference before the backward rule runs"
            )
    return "use jvp, which computes values and tangents together"


def _check_references(pe: PartialEval) -> None:
    """Raise NotApplicable if the linear program reads or changes a reference of the primal one."""
    for i in pe.unknown.effects.refs:
        if i < len(pe.residuals):
            source = pe.residuals[i]
            assert isinstance(source, FromInput), "a reference is never a result"
            raise NotApplicable(
                f"linearize: the derivative reads or changes {pe.known.name_of(source.index)}, "
                "a reference, after the program has run",
                remedy="use jvp, which computes values and tangents together",
            )
