"""Outlining, the inverse of inlining: consecutive equations become a call.

Before::

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = cos b; d:f32[] = neg c in (d,) }

After ``outline(program, 0, 2, "f")``::

    { lambda ; a:f32[]. let
        b:f32[] = jit[
          name=f
          jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = cos b in (c,) }
        ] a
        c:f32[] = neg b
      in (c,) }
"""

from __future__ import annotations

from effax.effects import Free
from effax.ir.analysis.queries import effects_on_variables, free_variables
from effax.ir.edit.operations import equation
from effax.ir.edit.renumber import numbered
from effax.ir.errors import BadArgument, NotApplicable
from effax.ir.prims import Jit
from effax.ir.syntax import Jaxpr, Var
from effax.ir.text.printer import eqn_str
from effax.ir.types import RefType
from effax.transforms.framework.runner import as_result


@as_result
def outline(jaxpr: Jaxpr, start: int, stop: int, label: str = "f") -> Jaxpr:
    """Replace ``jaxpr.eqns[start:stop]`` by a call; later uses of their results are its results.

    Type:     a -> b  =>  a -> b
    Effects:  the same.
    Laws:     inline(outline(f)) = f

    Raises:
        TransformError: the range is invalid; a reference that the equations allocate is used after
            them; or they consume one that is allocated before.
    """
    if not 0 <= start < stop <= len(jaxpr.eqns):
        raise BadArgument(
            "the range of equations is invalid",
            expected=f"0 <= start < stop <= {len(jaxpr.eqns)}",
            found=f"{start}, {stop}",
        )
    before, inside, after = jaxpr.eqns[:start], jaxpr.eqns[start:stop], jaxpr.eqns[stop:]
    ins = free_variables(inside)
    made = {v.id for eqn in inside for v in eqn.outs}
    used = [a for eqn in after for a in eqn.ins] + list(jaxpr.outs)
    outs = [*dict.fromkeys(a for a in used if isinstance(a, Var) and a.id in made)]
    for v in outs:
        if isinstance(v.type, RefType):
            raise NotApplicable(
                "a reference that is allocated in the range is used after it",
                expected="references that are used in the range only",
                found=str(v.type),
                remedy="begin after its allocation, or end after its last use",
            )
    for eqn in inside:
        for effect in effects_on_variables(eqn):
            if isinstance(effect, Free) and effect.ref not in made:
                raise NotApplicable(
                    "the range consumes a reference that is allocated before it",
                    expected="references that are consumed where they are allocated",
                    found=eqn_str(eqn),
                    remedy="begin before its allocation, or end before it is consumed",
                )
    body = numbered(ins, inside, outs, jaxpr.size)
    call = equation(Jit(body, label), ins, outs)
    return numbered(
        jaxpr.binders,
        [*before, call, *after],
        jaxpr.outs,
        jaxpr.size,
        jaxpr.n_consts,
        jaxpr.names,
    )
