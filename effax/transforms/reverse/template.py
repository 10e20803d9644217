"""The forward and backward templates of one equation, built once and cached."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from effax.effects import Accum
from effax.ir.build import Builder, Template, template
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.state import Cached
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet
from effax.transforms.jvp import jvp_template
from effax.transforms.linearize import Linearized, linearize
from effax.transforms.optimize.dce import dce
from effax.transforms.partial_eval.partial_eval import FromOutput, Residual
from effax.transforms.transpose.cotangent_spec import CotangentSpecs, GradRef, GradValue, NonLinear
from effax.transforms.transpose.engine import transpose
from effax.transforms.transpose.plan import used_in_part


class ReverseTemplate(NamedTuple):
    """One equation, run forward and backward.

    Attributes:
        forward: maps the operands to the used results, then other residuals.
        plain: whether ``forward`` is the equation, unchanged.
        outs: the positions of the used results.
        uses: the positions of the operands that ``forward`` uses, or that are residuals.
        picks: the positions of the residuals in ``(*operands, *results of forward)``.
        cts: the positions of the results whose cotangents ``backward`` takes.
        backward: maps (residuals, references, cotangents) to cotangents of operands.
        ct_operands: the positions of the operands whose cotangents ``backward`` returns.
        in_part: the positions of the operands of which the derivative uses only a part.
        ref_operands: the positions of the operands whose cotangents ``backward`` adds to
            references in place.
    """

    forward: Template
    plain: bool
    outs: tuple[int, ...]
    uses: tuple[int, ...]
    picks: tuple[int, ...]
    cts: tuple[int, ...]
    backward: Template
    ct_operands: tuple[int, ...]
    in_part: tuple[int, ...]
    ref_operands: tuple[int, ...] = ()


class NotFused(NamedTuple):
    """An equation that cannot be differentiated by itself.

    Attributes:
        reason: why.
    """

    reason: str


class Application:
    """The inputs of a template of which an operand has a tangent.

    Attributes:
        out_tangents: which results have a tangent.
    """

    def __init__(
        self, rules: RuleSet, prim: Primitive, types: tuple[Type, ...], mask: Mask
    ) -> None:
        self.out_tangents: Mask = jvp_template(rules, prim, types, mask).out_tangents
        self._args = (rules, prim, types, mask)

    @cached_property
    def template(self) -> ReverseTemplate | NotFused:
        """The template of an equation whose one result is used and has a cotangent.

        Raises:
            EffaxError: a rule fails.
        """
        return reverse_template(*self._args, (True,), (True,))


application: Final[Cached[Application]] = memoize(maxsize=1 << 14)(Application)
"""The application of ``(rules, prim, types, mask)``; one object for equal arguments."""


@memoize(maxsize=1 << 14)
def reverse_template(
    rules: RuleSet,
    prim: Primitive,
    types: tuple[Type, ...],
    mask: Mask,
    cts: Mask,
    needed: Mask,
    places: tuple[int, ...] = (),
) -> ReverseTemplate | NotFused:
    """Differentiate one equation.

    Args:
        rules: the rules.
        prim: the primitive.
        types: the types of its operands.
        mask: which operands have a tangent.
        cts: which results have a cotangent, among those with a tangent.
        needed: which results are used.
        places: the operands with a tangent whose cotangents are added in place.

    Raises:
        EffaxError: a rule fails.
    """
    b = Builder(types)
    whole = b.finish(b.emit(prim, b.binders))
    made = _of_whole(rules, prim, whole, mask, cts, needed, places)
    if isinstance(made, NotFused):
        return made
    return made._replace(plain=made.forward == template(whole))


def _of_whole(
    rules: RuleSet,
    prim: Primitive,
    whole: Jaxpr,
    mask: Mask,
    cts: Mask,
    needed: Mask,
    places: tuple[int, ...],
) -> ReverseTemplate | NotFused:
    """The template of a program of one equation."""
    if True not in mask:
        return _joined(rules, whole, (), (), cts, needed, Jaxpr((), (), ()), ())
    done = linearize.cached(whole, mask, False, rules)
    if done.primal.out_types[: len(cts)] != whole.out_types:
        return NotFused(f"the jvp rule of {prim.name} changes the type of a result")
    if done.primal.effects:
        return NotFused(f"the derivative of {prim.name} has effects")
    if True not in cts:
        return _joined(rules, done.primal, (), (), cts, needed, Jaxpr((), (), ()), ())
    return _differentiated(rules, prim, done, cts, needed, places)


def _differentiated(
    rules: RuleSet,
    prim: Primitive,
    done: Linearized,
    cts: Mask,
    needed: Mask,
    places: tuple[int, ...],
) -> ReverseTemplate | NotFused:
    marked = [i for i, has in enumerate(done.in_tangents) if has]
    n = len(done.residuals)
    how = [GradRef() if i in places else GradValue() for i in marked]
    ct_specs: CotangentSpecs = (*[NonLinear()] * n, *how)
    present = tuple([ct for ct, has in zip(cts, done.out_tangents, strict=True) if has])
    every = (True,) * len(ct_specs)
    # Dead code first: uses by other tangents must not be counted.
    linear = done.linear
    if not all(present):
        linear = dce.uncached(linear, present, every, every, rules).jaxpr
    pulled = transpose.cached(linear, ct_specs, (True,) * sum(present), rules)
    values = [i for i in marked if i not in places]
    ct_operands = tuple([i for i, has in zip(values, pulled.nonzero, strict=True) if has])
    own = range(n, n + len(places))
    if not all(isinstance(effect, Accum) and effect.ref in own for effect in pulled.jaxpr.effects):
        return NotFused(f"the derivative of {prim.name} has effects")
    n_ins, n_outs = len(pulled.jaxpr.binders), len(pulled.jaxpr.outs)
    back = dce.uncached(pulled.jaxpr, (True,) * n_outs, (True,) * n_ins, (False,) * n_ins, rules)
    added = [i for i in marked if i in places]
    places = tuple([i for i, k in zip(added, own, strict=True) if back.used_ins[k]])
    taken = back.used_ins[n + len(added) :]
    if not all(taken):
        return NotFused(f"{prim.name} does not use the cotangent of a result")
    residuals = [r for r, used in zip(done.residuals, back.used_ins, strict=False) if used]
    tangents = linear.binders[n:]
    numbers = used_in_part(linear, rules)
    in_part = tuple([i for i, v in zip(marked, tangents, strict=True) if v.id in numbers])
    made = _joined(rules, done.primal, residuals, ct_operands, cts, needed, back.jaxpr, in_part)
    return made._replace(ref_operands=places)


def _joined(
    rules: RuleSet,
    primal: Jaxpr,
    residuals: Sequence[Residual],
    ct_operands: tuple[int, ...],
    cts: Mask,
    needed: Mask,
    back: Jaxpr,
    in_part: tuple[int, ...],
) -> ReverseTemplate:
    """Return the template; its forward part is ``primal`` with the used results only."""
    n_ins, n_outs = len(primal.binders), len(needed)
    used = [*needed, *[False] * (len(primal.outs) - n_outs)]
    for r in residuals:
        if isinstance(r, FromOutput):
            used[r.index] = True
    kept = [j for j, has in enumerate(used) if has]
    place = {j: n_ins + rank for rank, j in enumerate(kept)}
    picks = tuple([place[r.index] if isinstance(r, FromOutput) else r.index for r in residuals])
    every = (True,) * n_ins
    front = dce.uncached(primal, tuple(used), every, every, rules)
    return ReverseTemplate(
        template(front.jaxpr),
        False,
        tuple([j for j in kept if j < n_outs]),
        tuple([i for i in range(n_ins) if front.used_ins[i] or i in picks]),
        picks,
        tuple([j for j, has in enumerate(cts) if has]),
        template(back),
        ct_operands,
        in_part,
    )
