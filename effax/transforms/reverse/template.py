"""One equation differentiated in reverse: both of its halves, made once and kept as templates."""

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
    """One application, run forward and backward.

    Attributes:
        forward: from the arguments to the results that somebody uses, then other residuals.
        plain: whether that is the application, as it is.
        outs: the positions of those results.
        uses: the positions of the arguments that the forward half or a residual uses.
        picks: where the residuals are in ``(*arguments, *what the forward half gives)``.
        cts: the positions of the results whose cotangents the backward half uses.
        backward: from the residuals and these cotangents to cotangents of arguments.
        given: the positions of those arguments.
        in_part: the arguments whose tangent the derivative uses in a part only.
        places: the arguments whose cotangent the backward half adds in place: to a reference each,
            which it takes after the residuals.
    """

    forward: Template
    plain: bool
    outs: tuple[int, ...]
    uses: tuple[int, ...]
    picks: tuple[int, ...]
    cts: tuple[int, ...]
    backward: Template
    given: tuple[int, ...]
    in_part: tuple[int, ...]
    places: tuple[int, ...] = ()


class NotFused(NamedTuple):
    """An application that cannot be differentiated by itself.

    Attributes:
        reason: why.
    """

    reason: str


class Application:
    """An application of which an operand has a tangent.

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
        """The template of an application whose one result is used and has a cotangent.

        Raises:
            EffaxError: a rule fails.
        """
        return reverse_template(*self._args, (True,), (True,))


application: Final[Cached[Application]] = memoize(maxsize=1 << 14)(Application)
"""The application of ``(rules, prim, types, mask)``; one value for equal arguments."""


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
    """Differentiate one application.

    Args:
        rules: the rules.
        prim: the primitive.
        types: of its arguments.
        mask: which arguments have a tangent.
        cts: which results have a cotangent; only those have that have a tangent.
        needed: which results are used.
        places: arguments with a tangent whose cotangents are added in place.

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
    # What only other tangents need is not there when uses are counted.
    linear = done.linear
    if not all(present):
        linear = dce.uncached(linear, present, every, every, rules).jaxpr
    pulled = transpose.cached(linear, ct_specs, (True,) * sum(present), rules)
    values = [i for i in marked if i not in places]
    given = tuple([i for i, has in zip(values, pulled.nonzero, strict=True) if has])
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
    made = _joined(rules, done.primal, residuals, given, cts, needed, back.jaxpr, in_part)
    return made._replace(places=places)


def _joined(
    rules: RuleSet,
    primal: Jaxpr,
    residuals: Sequence[Residual],
    given: tuple[int, ...],
    cts: Mask,
    needed: Mask,
    back: Jaxpr,
    in_part: tuple[int, ...],
) -> ReverseTemplate:
    """The template, whose forward half gives of ``primal`` only what is used."""
    n_ins, n_outs = len(primal.binders), len(needed)
    wanted = [*needed, *[False] * (len(primal.outs) - n_outs)]
    for r in residuals:
        if isinstance(r, FromOutput):
            wanted[r.index] = True
    kept = [j for j, has in enumerate(wanted) if has]
    place = {j: n_ins + rank for rank, j in enumerate(kept)}
    picks = tuple([place[r.index] if isinstance(r, FromOutput) else r.index for r in residuals])
    every = (True,) * n_ins
    front = dce.uncached(primal, tuple(wanted), every, every, rules)
    return ReverseTemplate(
        template(front.jaxpr),
        False,
        tuple([j for j in kept if j < n_outs]),
        tuple([i for i in range(n_ins) if front.used_ins[i] or i in picks]),
        picks,
        tuple([j for j, has in enumerate(cts) if has]),
        template(back),
        given,
        in_part,
    )
