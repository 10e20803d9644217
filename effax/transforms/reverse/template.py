"""One equation differentiated in reverse: both of its halves, made once and kept as templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from effax.effects import Accum
from effax.ir.build import Builder, Template, template
from effax.ir.errors import NotApplicable
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.syntax import Jaxpr
from effax.ir.types import Type, tangent_type
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


class Later(NamedTuple):
    """An application whose template depends on which of its results have a cotangent."""

    out_tangents: Mask


@memoize(maxsize=1 << 14)
def first_template(
    rules: RuleSet, prim: Primitive, types: tuple[Type, ...], mask: Mask
) -> ReverseTemplate | Later | None:
    """What is known of an application on the way forward; None where nothing has a tangent.

    For most primitives, which have one result and hold no programs, that is the template.
    """
    out_tangents = jvp_template(rules, prim, types, mask).out_tangents
    if prim.subjaxprs() or len(out_tangents) != 1:
        return Later(out_tangents)
    if not out_tangents[0]:
        return None
    made = reverse_template(rules, prim, types, mask, (True,), (True,))
    return made if made.given else None


@memoize(maxsize=1 << 14)
def reverse_template(
    rules: RuleSet,
    prim: Primitive,
    types: tuple[Type, ...],
    mask: Mask,
    cts: Mask,
    needed: Mask,
    places: tuple[int, ...] = (),
) -> ReverseTemplate:
    """The template of one application.

    Args:
        rules: the rules.
        prim: the primitive.
        types: of its arguments.
        mask: which arguments have a tangent.
        cts: which results have a cotangent; only those have that have a tangent.
        needed: which results somebody uses.
        places: arguments with a tangent whose cotangents are added in place.

    Raises:
        NotApplicable: the halves have effects, or other types than the application.
    """
    b = Builder(types)
    whole = b.finish(b.emit(prim, b.binders))
    made = _of_whole(rules, whole, mask, cts, needed, places)
    return made._replace(plain=made.forward == template(whole))


def _of_whole(
    rules: RuleSet,
    whole: Jaxpr,
    mask: Mask,
    cts: Mask,
    needed: Mask,
    places: tuple[int, ...],
) -> ReverseTemplate:
    """The template of a program of one equation."""
    if True not in mask:
        return _joined(whole, (), (), cts, needed, Jaxpr((), (), ()), ())
    done = linearize.cached(whole, mask, False, rules)
    if done.primal.out_types[: len(cts)] != whole.out_types:
        raise NotApplicable("a jvp rule gives results of other types than the application")
    if True not in cts:
        return _joined(done.primal, (), (), cts, needed, Jaxpr((), (), ()), ())
    return _differentiated(rules, done, whole.in_types, cts, needed, places)


def _differentiated(
    rules: RuleSet,
    done: Linearized,
    types: tuple[Type, ...],
    cts: Mask,
    needed: Mask,
    places: tuple[int, ...],
) -> ReverseTemplate:
    marked = [i for i, has in enumerate(done.in_tangents) if has]
    n = len(done.residuals)
    how = [GradRef() if i in places else GradValue() for i in marked]
    ct_specs: CotangentSpecs = (*[NonLinear()] * n, *how)
    present = tuple([ct for ct, has in zip(cts, done.out_tangents, strict=True) if has])
    every = (True,) * len(ct_specs)
    # What only other tangents need is not there when uses are counted.
    linear = done.linear
    if not all(present):
        linear = dce.uncached(linear, present, every, every).jaxpr
    pulled = transpose.cached(linear, ct_specs, (True,) * sum(present), rules)
    values = [i for i in marked if i not in places]
    given = tuple([i for i, has in zip(values, pulled.nonzero, strict=True) if has])
    if pulled.jaxpr.out_types != tuple([tangent_type(types[i]) for i in given]):
        raise NotApplicable("the cotangent of an argument has another type than its tangent")
    own = range(n, n + len(places))
    if done.primal.effects or not all(
        isinstance(effect, Accum) and effect.ref in own for effect in pulled.jaxpr.effects
    ):
        raise NotApplicable("a derivative has effects that others may see")
    n_ins, n_outs = len(pulled.jaxpr.binders), len(pulled.jaxpr.outs)
    back = dce.uncached(pulled.jaxpr, (True,) * n_outs, (True,) * n_ins, (False,) * n_ins)
    added = [i for i in marked if i in places]
    places = tuple([i for i, k in zip(added, own, strict=True) if back.used_ins[k]])
    taken = iter(back.used_ins[n + len(added) :])
    cts = tuple([ct and next(taken) for ct in cts])
    residuals = [r for r, used in zip(done.residuals, back.used_ins, strict=False) if used]
    tangents = linear.binders[n:]
    numbers = used_in_part(linear, rules)
    in_part = tuple([i for i, v in zip(marked, tangents, strict=True) if v.id in numbers])
    made = _joined(done.primal, residuals, given, cts, needed, back.jaxpr, in_part)
    return made._replace(places=places)


def _joined(
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
    front = dce.uncached(primal, tuple(wanted), every, every)
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
