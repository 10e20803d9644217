"""Bugs in the rules of calls that bring rules of their own."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.prims import CustomJvp, CustomVjp, CustomVmap, Rev
from effax.ir.syntax import Atom
from effax.ir.types import RefType
from effax.transforms.framework.rules import BatchBuilder, BatchOut, JvpOut, Linear, RuleBuilder
from effax.transforms.rules.custom.jvp import custom_jvp_jvp, custom_vjp_jvp
from effax.transforms.rules.custom.transpose import custom_call_transpose
from effax.transforms.rules.custom.vmap import custom_vmap_batch
from tests.planted.planting import Bug, wrong_rule

Tangents = Sequence[Atom | None]


def _without_last(tangents: Tangents) -> list[Atom | None]:
    last = max(i for i, t in enumerate(tangents) if t is not None)
    return [None if i == last else t for i, t in enumerate(tangents)]


def forward_forgets(
    b: RuleBuilder, prim: CustomJvp, primals: Sequence[Atom], tangents: Tangents
) -> JvpOut:
    return custom_jvp_jvp(b, prim, primals, _without_last(tangents))


def reverse_forgets(
    b: RuleBuilder, prim: CustomVjp, primals: Sequence[Atom], tangents: Tangents
) -> JvpOut:
    return custom_vjp_jvp(b, prim, primals, _without_last(tangents))


def reverse_forgets_references(
    b: RuleBuilder, prim: CustomVjp, primals: Sequence[Atom], tangents: Tangents
) -> JvpOut:
    """No cotangent reaches a reference among the arguments."""
    pairs = zip(primals, tangents, strict=True)
    return custom_vjp_jvp(
        b, prim, primals, [None if isinstance(x.type, RefType) else t for x, t in pairs]
    )


def elements_change_places(
    b: BatchBuilder, prim: CustomVmap, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    outs, flags = custom_vmap_batch(b, prim, ins, batched, size)
    pairs = zip(outs, flags, strict=True)
    return BatchOut([b(Rev((0,)), x) if has else x for x, has in pairs], flags)


def cotangents_are_lost(
    b: RuleBuilder, prim: CustomJvp, ins: Sequence[Atom | Linear], cts: Tangents
) -> Tangents:
    """All but the first cotangent of an argument are lost."""
    found = list(custom_call_transpose(b, prim, ins, cts))
    first = next((i for i, x in enumerate(found) if x is not None), len(found))
    return [x if i <= first else None for i, x in enumerate(found)]


BUGS: tuple[Bug, ...] = (
    wrong_rule("a forward rule forgets a tangent", "jvp", "custom", CustomJvp, jvp=forward_forgets),
    wrong_rule(
        "rules for both derivatives forget a tangent",
        "jvp",
        "custom",
        CustomVjp,
        jvp=reverse_forgets,
    ),
    wrong_rule(
        "a reverse rule forgets its references",
        "custom rules",
        "custom_vjp",
        CustomVjp,
        jvp=reverse_forgets_references,
    ),
    wrong_rule(
        "elements of a batching rule change places",
        "vmap",
        "custom",
        CustomVmap,
        batch=elements_change_places,
    ),
    wrong_rule(
        "a transposed call loses cotangents",
        "transpose",
        "custom",
        CustomJvp,
        transpose=cotangents_are_lost,
    ),
)
