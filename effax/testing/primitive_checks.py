"""Check the typing, evaluation and rules of a primitive before any law is tried."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product

import numpy as np

from effax.api.staging import typeof
from effax.effects import SideEffect
from effax.extend import rules as traced
from effax.extend.guard import annotate_errors, check_parameters, located, results_of, typed
from effax.extend.parameters import check_written, normalised
from effax.extend.primitive import ArrayPrimitive, RefPrimitive
from effax.extend.rules import watching
from effax.ir.build import Builder, typing_of
from effax.ir.errors import BadArgument, BadRule, EffaxError, IllTyped, NotApplicable
from effax.ir.primitive import Primitive, Typing
from effax.ir.types import ArrayType, RefType, Type, is_inexact, ref_type, tangent_type
from effax.lowering.program import stablehlo_of
from effax.testing.check_effects import check_effects
from effax.testing.evaluate_checks import (
    check_commuting,
    check_evaluation,
    depends_on,
    shown_types,
)
from effax.testing.generate.values import random_inputs, single_run
from effax.testing.region_checks import check_regions
from effax.transforms.framework.rules import BatchBuilder, Linear, RuleBuilder, RuleSet
from effax.transforms.vmap.common import batched_type

BATCH_SIZE = 2


def as_primitive(prim: object) -> Primitive:
    """Return the primitive.

    Raises:
        BadArgument: it is no primitive, or a field cannot be hashed or printed.
        BadRule: it cannot be pickled, or is not equal to its copy.
    """
    if isinstance(prim, Primitive):
        check_parameters(prim)
        prim = normalised(prim)
        check_written(prim)
        try:
            again = pickle.loads(pickle.dumps(prim))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise BadRule(
                f"{prim.name} cannot be pickled, as programs are",
                expected="a class at the top of a module, with fields that can be pickled",
                found=str(error),
            ) from error
        if again != prim:
            raise BadRule(
                f"{prim.name} is not equal to a copy of itself",
                expected="primitives with equal fields are equal",
                remedy="declare the class with `@dataclass(frozen=True, slots=True)`",
            )
        return prim
    remedy = "of a function, `check_grads` compares the derivatives with differences"
    found = f"{prim!r:.80}"
    if isinstance(prim, type) and issubclass(prim, Primitive):
        found, remedy = f"the class {prim.__name__}", f"make one: `{prim.__name__}(...)`"
    raise BadArgument(
        "expected a primitive",
        expected="an instance of a subclass of a base of `effax.extend`",
        found=found,
        remedy=remedy,
    )


def as_types(prim: Primitive, types: Sequence[object]) -> tuple[Type, ...]:
    """Return the types of a primitive's arguments, given by types or arrays.

    Raises:
        BadArgument: an argument is no type, and no array.
        IllTyped: the primitive does not apply to them.
    """
    found = []
    for i, x in enumerate(types):
        try:
            found.append(x if isinstance(x, ArrayType | RefType) else typeof(x))
        except EffaxError:
            raise BadArgument(
                f"argument {i} of {prim.name} has no type",
                expected="a type, an array or a `ShapeDtypeStruct`",
                found=f"{type(x).__name__}: {x!r:.60}",
                remedy='`effax.extend.array_type((3,), "float32")`',
            ) from None
    try:
        typed(prim, found)
    except IllTyped as error:
        if not found:
            error.remedy = (
                f"say the types of its arguments: `check_primitive({prim.name}, "
                'effax.extend.array_type((3,), "float32"))`'
            )
        raise
    return tuple(found)


def check_behavior(
    prim: Primitive, types: tuple[Type, ...], linear: Sequence[bool] | None, rules: RuleSet
) -> None:
    """Check the typing, the evaluation and each rule; run rules for all combinations of a few.

    Raises:
        BadRule: one of them is wrong.
    """
    with located(prim.typing):
        typing = _check_typing(prim, types)
    check_effects(*[e for e in typing.effects.effects if isinstance(e, SideEffect)])
    with located(prim.evaluate):
        check_evaluation(prim, types, typing)
        if type(prim).commutes:
            check_commuting(prim, types, typing)
        _check_sizes(prim, types)
    check_regions(prim, types)
    if isinstance(prim, ArrayPrimitive):
        _check_rules(prim, types, linear, rules)


def _check_typing(prim: Primitive, types: tuple[Type, ...]) -> Typing:
    label = f"the typing of {prim.name}"
    found = typed(prim, types)
    again = prim.typing(*types)
    if again.outs != found.outs or not set(again.effects) <= set(found.effects):
        raise BadRule(
            f"{label} is not a function of the types",
            expected=f"the same for the same: {shown_types(found.outs)}",
            found=shown_types(again.outs),
        )
    _check_weakness(prim, label, types, found)
    return found


def _check_sizes(prim: Primitive, types: Sequence[Type]) -> None:
    """Compare the typing and the evaluation where an axis has the size 0 or 1.

    Types that the typing or the evaluation does not accept are not compared.
    """
    for old, new in product(dict.fromkeys(n for t in types for n in t.shape), (0, 1)):
        others = [_of_size(t, old, new) for t in types]
        if others == [*types]:
            continue
        try:
            typing = typed(prim, others)
            with single_run(), np.errstate(all="ignore"):
                found: object = prim.evaluate(*random_inputs(others, 0))
        except Exception:  # noqa: BLE001  # a user-defined evaluation may raise anything
            continue
        label = f"the evaluation of {prim.name} on {shown_types(others)}"
        results_of(label, found, typing.outs)


def _of_size(type_: Type, old: int, new: int) -> Type:
    inner = type_.inner if isinstance(type_, RefType) else type_
    made = inner.update(shape=tuple([new if n == old else n for n in inner.shape]))
    return ref_type(made, type_.kind) if isinstance(type_, RefType) else made


def _check_weakness(prim: Primitive, label: str, types: Sequence[Type], strong: Typing) -> None:
    """Raise BadRule unless the weakness of arguments affects only the weakness of results.

    ``evaluate`` cannot see it: a weak type is that of a Python number.
    """
    arrays = [t for t in types if isinstance(t, ArrayType)]
    if arrays and not any(t.weak for t in arrays):
        weak = [t for t in strong.outs if isinstance(t, ArrayType) and t.weak]
        if weak:
            raise BadRule(
                f"{label} returns a weak result for arguments that are not weak",
                expected="a result that is weak only where arguments are (`x.strong()`)",
                found=f"{shown_types(types)} -> {shown_types(strong.outs)}",
            )
    _check_mixed_weakness(prim, label, types)
    others = [t.update(weak=not t.weak) if isinstance(t, ArrayType) else t for t in types]
    try:
        found = prim.typing(*others)
    except IllTyped:
        return
    if [(t.shape, t.dtype) for t in found.outs] != [(t.shape, t.dtype) for t in strong.outs]:
        raise BadRule(
            f"{label} returns other shapes or dtypes if only the weakness of arguments differs",
            expected=f"{shown_types(others)} -> {shown_types(strong.outs)}, weak or not",
            found=shown_types(found.outs),
        )


def _check_mixed_weakness(prim: Primitive, label: str, types: Sequence[Type]) -> None:
    """Raise BadRule if a result is weak whose values depend on a strong operand of its dtype.

    A strong operand that selects, such as a mask or an index, has another dtype.
    """
    if sum(isinstance(t, ArrayType) for t in types) < 2:
        return
    for i, t in enumerate(types):
        if not is_inexact(t) or not isinstance(t, ArrayType):
            continue
        mixed = [
            x.update(weak=j != i) if isinstance(x, ArrayType) else x for j, x in enumerate(types)
        ]
        try:
            found = prim.typing(*mixed)
        except IllTyped:
            continue
        for k, out in enumerate(found.outs):
            is_weak = isinstance(out, ArrayType) and out.weak and out.dtype == t.dtype
            if is_weak and depends_on(prim, types, i, k):
                raise BadRule(
                    f"{label} returns a weak result {k}, which depends on a strong argument {i}",
                    expected="a result that is weak only where all of these are weak: "
                    "`x.update(weak=x.weak and y.weak)`",
                    found=f"{shown_types(mixed)} -> {shown_types(found.outs)}",
                )


def _check_rules(
    prim: ArrayPrimitive, types: tuple[Type, ...], linear: Sequence[bool] | None, rules: RuleSet
) -> None:
    found = rules.of(prim)
    with _no_leaks(prim):
        # Rules that follow from a definition are the library's.
        for moved in _masks([is_inexact(t) for t in types]) if found.jvp is traced.jvp else ():
            with suppress(NotApplicable):
                _run_jvp(prim, types, moved, rules)
        for batched in _masks([True for _ in types]) if found.batch is traced.batch else ():
            with suppress(NotApplicable):
                _run_batch(prim, types, batched, rules)
        with suppress(NotApplicable):
            if linear is not None and any(linear) and found.transpose is traced.transpose:
                _run_transpose(prim, types, linear, rules)
        with suppress(NotApplicable):
            if isinstance(prim, RefPrimitive) and found.discharge is traced.discharge:
                _run_discharge(prim, types, rules)
        with suppress(NotApplicable):
            if not any(isinstance(t, RefType) for t in types):
                _run_lowering(prim, types)


def _masks(may: Sequence[bool]) -> Iterator[tuple[bool, ...]]:
    """Yield the whole mask; then, of at most three entries, every smaller one."""
    whole = tuple(may)
    if any(whole):
        yield whole
    if sum(whole) > 3:
        return
    for mask in product(*[(False, True) if has else (False,) for has in whole]):
        if any(mask) and mask != whole:
            yield mask


def _run_jvp(
    prim: ArrayPrimitive, types: Sequence[Type], moved: Sequence[bool], rules: RuleSet
) -> None:
    b = RuleBuilder(rules, types)
    tangents = [
        b.bind(tangent_type(t)) if has else None for t, has in zip(types, moved, strict=True)
    ]
    traced.jvp(b, prim, b.binders[: len(types)], tangents)


def _run_batch(
    prim: ArrayPrimitive, types: Sequence[Type], batched: Sequence[bool], rules: RuleSet
) -> None:
    b = BatchBuilder(rules)
    ins = [
        b.bind(batched_type(t, BATCH_SIZE) if has else t)
        for t, has in zip(types, batched, strict=True)
    ]
    traced.batch(b, prim, ins, tuple(batched), BATCH_SIZE)


def _run_transpose(
    prim: ArrayPrimitive, types: Sequence[Type], linear: Sequence[bool], rules: RuleSet
) -> None:
    b = RuleBuilder(rules)
    ins = [
        Linear(t, b.bind(t) if isinstance(t, RefType) else None) if has else b.bind(t)
        for t, has in zip(types, linear, strict=True)
    ]
    outs = typing_of(prim, tuple(types)).outs
    cts = [b.bind(tangent_type(t)) if is_inexact(t) else None for t in outs]
    traced.transpose(b, prim, ins, cts)


def _run_discharge(prim: RefPrimitive, types: Sequence[Type], rules: RuleSet) -> None:
    b = RuleBuilder(rules)
    is_ref = [isinstance(t, RefType) for t in types]
    ins = [b.bind(t.inner if isinstance(t, RefType) else t) for t in types]
    traced.discharge(b, prim, ins, is_ref)


def _run_lowering(prim: ArrayPrimitive, types: Sequence[Type]) -> None:
    b = Builder(types)
    jaxpr = b.finish(b.emit(prim, b.binders))
    with annotate_errors(f"the lowering of {prim.name}", prim.lower):
        stablehlo_of(jaxpr)


@contextmanager
def _no_leaks(prim: Primitive) -> Iterator[None]:
    """Raise BadRule if a rule that ran in the block keeps a traced value."""
    with watching() as seen:
        yield
    kept = [label for label, trace in seen if trace() is not None]
    if kept:
        raise BadRule(
            f"{kept[0]} keeps an array of a finished trace",
            expected=f"rules without state: {prim.name} is equal to its fields",
            remedy="return the value, or compute it again",
        )
