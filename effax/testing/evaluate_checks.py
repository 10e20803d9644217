"""Check that the evaluation of a primitive is a function with the declared effects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from effax.effects import Accum, Read, SideEffect, Write
from effax.extend.guard import annotate_errors, results_of, typed
from effax.ir.dtypes import DType, family, int_bounds, is_integer
from effax.ir.errors import BadRule, Unfinished
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.types import ArrayType, RefType, Type
from effax.testing.generate.special_values import identical, special_values
from effax.testing.generate.values import (
    Differs,
    check_equal,
    elided,
    largest,
    random_inputs,
    random_value,
    single_run,
)


def shown_types(types: Sequence[Type]) -> str:
    """Return types as they print in messages."""
    return f"({', '.join(map(str, types))})"


def check_evaluation(prim: Primitive, types: Sequence[Type], typing: Typing) -> None:
    """Raise BadRule unless ``evaluate`` returns the declared types and has the declared effects.

    Operands on which it does not end within its bounds are skipped.
    """
    label = f"the evaluation of {prim.name}"
    for inputs in _points(types):
        with suppress(Unfinished):
            _check_writes(prim, types, inputs, typing)
    with suppress(Unfinished):
        outs = _check_writes(prim, types, _inputs(types, 0), typing)
        results = [np.array(x) for x in outs]
        with suppress(Unfinished):
            _evaluated(prim, label, _inputs(types, 1), typing)
        for j, (x, y) in enumerate(zip(outs, results, strict=True)):
            if x.tobytes() != y.tobytes():
                raise BadRule(
                    f"result {j} of {label} changes at the next call",
                    expected="a new array each time",
                )
    # With side effects, results may differ between calls.
    if not any(isinstance(e, SideEffect) for e in typing.effects):
        for inputs in (*[_inputs(types, seed) for seed in range(3)], *_points(types)):
            with suppress(Unfinished):
                _check_repeatable(prim, label, inputs, typing)
                _check_reads(prim, types, inputs, typing)
        for inputs in _far(types):
            if _is_defined(prim, label, inputs, typing):
                with suppress(Unfinished):
                    _check_reads(prim, types, inputs, typing)


POINTS: Final = (0, 1, -1)
"""Values at which a primitive may do what it does at no other."""


def _points(types: Sequence[Type]) -> Iterator[list[Value]]:
    """Yield inputs with arrays of one value: all of them, and each of a few alone."""
    arrays = [
        i for i, t in enumerate(types) if isinstance(t, ArrayType) and family(t.dtype) != "void"
    ]
    alone = [(i,) for i in arrays] if 1 < len(arrays) < 4 else []
    for chosen in (tuple(arrays), *alone):
        for point in POINTS:
            inputs = _inputs(types, 0)
            for i in chosen:
                inputs[i] = np.full(types[i].shape, point).astype(types[i].dtype)
                inputs[i].flags.writeable = False
            yield inputs


FAR: Final = (16.0, -16.0, 1024.0, -1024.0, np.inf, -np.inf)
"""Values at which a reference may be read though it is not at moderate ones."""


def _far(types: Sequence[Type]) -> Iterator[list[Value]]:
    """Yield inputs with large operands, for primitives with references."""
    if not any(isinstance(t, RefType) for t in types):
        return
    for point in FAR:
        inputs = _inputs(types, 0)
        for i, t in enumerate(types):
            if isinstance(t, ArrayType) and _has(t.dtype, point):
                inputs[i] = np.full(t.shape, point).astype(t.dtype)
                inputs[i].flags.writeable = False
        yield inputs


def _has(dtype: DType, point: float) -> bool:
    """Return whether a dtype of real numbers has a number."""
    if is_integer(dtype):
        least, most = int_bounds(dtype)
        return least <= point <= most
    return family(dtype) == "float"


def _is_defined(prim: Primitive, label: str, inputs: Sequence[Value], typing: Typing) -> bool:
    """Return whether the evaluation ends, and raises no error."""
    try:
        _observed(prim, label, inputs, typing)
    except Exception:  # noqa: BLE001  # a user-defined evaluation may raise anything
        return False
    return True


def depends_on(prim: Primitive, types: Sequence[Type], i: int, k: int) -> bool:
    """Return whether the value of an argument affects a result, at random values."""
    for seed in range(3):
        inputs = random_inputs(types, seed)
        others = [random_inputs(types, seed + 3)[i] if j == i else x for j, x in enumerate(inputs)]
        try:
            with single_run(), np.errstate(all="ignore"):
                first = np.array(prim.evaluate(*map(np.array, inputs))[k])
                second = np.array(prim.evaluate(*map(np.array, others))[k])
        except Exception:  # noqa: BLE001  # it is reported where the evaluation is checked
            return False
        if not identical(first, second):
            return True
    return False


def _check_writes(
    prim: Primitive, types: Sequence[Type], inputs: Sequence[Value], typing: Typing
) -> list[Value]:
    """Raise BadRule for undeclared writes and for views of references; return the results."""
    label = f"the evaluation of {prim.name}"
    before = [np.array(x) for x in inputs]
    outs = _evaluated(prim, label, inputs, typing)
    changes = {e.ref for e in typing.effects.effects if isinstance(e, Write | Accum)}
    for i, (x, y, t) in enumerate(zip(inputs, before, types, strict=True)):
        if not isinstance(t, RefType):
            continue
        if i not in changes and x.tobytes() != y.tobytes():
            raise BadRule(
                f"{label} writes to argument {i}, which its typing does not declare",
                expected=f"`Write(ArgIndex({i}))` or `Accum(ArgIndex({i}))` among the effects",
                found=str(typing.effects),
            )
        for j, out in enumerate(outs):
            if np.shares_memory(x, out):
                raise BadRule(
                    f"result {j} of {label} is a view of reference {i}",
                    expected="a copy (`np.array(...)`)",
                )
    return outs


def _check_repeatable(prim: Primitive, label: str, inputs: Sequence[Value], typing: Typing) -> None:
    """Raise BadRule unless equal arguments yield equal results and contents, bit by bit."""
    first, second = [_observed(prim, label, inputs, typing) for _ in range(2)]
    for what, x, y in zip(_parts(typing, inputs), first, second, strict=True):
        if x.tobytes() != y.tobytes():
            raise BadRule(
                f"{label} is not a function of its arguments: {what} differs for equal ones",
                expected=elided(x),
                found=elided(y),
                remedy="pass randomness or a count of calls as an argument: a key, a reference",
            )


def _parts(typing: Typing, inputs: Sequence[Value]) -> list[str]:
    """Return names for the values that :func:`_observed` returns."""
    outs = [f"result {j}" for j in range(len(typing.outs))]
    return [*outs, *[f"the final contents of argument {i}" for i in range(len(inputs))]]


def _observed(prim: Primitive, label: str, inputs: Sequence[Value], typing: Typing) -> list[Value]:
    """Return results and the final contents of copies of the arguments."""
    copies = [np.array(x) for x in inputs]
    for x, y in zip(copies, inputs, strict=True):
        x.flags.writeable = y.flags.writeable
    return [*[np.array(x) for x in _evaluated(prim, label, copies, typing)], *copies]


def _check_reads(
    prim: Primitive, types: Sequence[Type], inputs: Sequence[Value], typing: Typing
) -> None:
    """Raise BadRule if an undeclared read affects results, contents or increments.

    Passes remove stores to a reference that is written next without being read, and reorder
    accumulations. Several contents are tried, one reference at a time.
    """
    for i, t in enumerate(types):
        declared = {type(e) for e in typing.effects.effects if getattr(e, "ref", None) == i}
        if not isinstance(t, RefType) or Read in declared:
            continue
        rng = np.random.default_rng(i)
        first = _on_contents(prim, inputs, typing, i, np.array(inputs[i]))
        for other in _contents(rng, t, Write in declared):
            second = _on_contents(prim, inputs, typing, i, np.array(other))
            for j, part in enumerate(_parts(typing, inputs)):
                # Without `Write`, the contents are the previous ones or a sum with them.
                added = j == len(typing.outs) + i and Write not in declared
                x, y = first[j], second[j]
                if added:
                    same = Accum not in declared or _same_increment(x, y, inputs[i], other)
                else:
                    same = x.tobytes() == y.tobytes()
                if not same:
                    what = f"the increment of argument {i}" if added else part
                    raise BadRule(
                        f"the typing of {prim.name} does not declare that argument {i} is read",
                        expected=f"`Read(ArgIndex({i}))` among the effects"
                        + (f", and `Write(ArgIndex({i}))`" if Accum in declared else ""),
                        found=f"{typing.effects}; its previous contents affect {what}",
                    )


def _contents(rng: np.random.Generator, t: Type, is_written: bool) -> list[Value]:
    """Return contents of a reference; large ones too, where increments need no digits."""
    found = [*[random_value(rng, t) for _ in range(3)], np.zeros(t.shape, t.dtype)]
    if family(t.dtype) == "float" and is_written:
        found += [np.full(t.shape, x).astype(t.dtype) for x in (16.0, -1024.0, np.inf)]
    elif family(t.dtype) == "float":
        found.append(np.asarray(random_value(rng, t) * 8, t.dtype))
    return found


def _on_contents(
    prim: Primitive, inputs: Sequence[Value], typing: Typing, i: int, contents: Value
) -> list[Value]:
    given = [contents if j == i else x for j, x in enumerate(inputs)]
    return _observed(prim, f"the evaluation of {prim.name}", given, typing)


def _same_increment(x: Value, y: Value, before_x: Value, before_y: Value) -> bool:
    """Return whether two increments are equal, up to the rounding of the sums."""
    if x.dtype == bool:
        return True
    try:
        scale = max(largest(before_x), largest(before_y))
        check_equal("increment", x - before_x, y - before_y, scale=scale)
    except Differs:
        return False
    return True


def check_commuting(prim: Primitive, types: Sequence[Type], typing: Typing) -> None:
    """Raise BadRule unless a primitive that commutes does so bit by bit."""
    label = f"the evaluation of {prim.name}, which is declared to commute,"
    if len(types) != 2 or typing.effects.effects:
        raise BadRule(
            f"{prim.name} is declared to commute",
            expected="two arguments and no effects; or `commutes = False`",
            found=f"{shown_types(types)}, {typing.effects}",
        )
    turned = typed(prim, types[::-1])
    if turned.outs != typing.outs:
        raise BadRule(
            f"the typing of {prim.name}, which is declared to commute, depends on the order",
            expected=shown_types(typing.outs),
            found=shown_types(turned.outs),
        )
    rng = np.random.default_rng(0)
    several = [_inputs(types, 0), *([special_values(rng, t) for t in types] for _ in range(8))]
    for inputs in several:
        first = _evaluated(prim, label, inputs, typing)
        second = _evaluated(prim, label, inputs[::-1], turned)
        for x, y in zip(first, second, strict=True):
            if not identical(x, y):
                raise BadRule(
                    f"{label} depends on the order",
                    expected=f"{elided(x)}, as on {' and '.join(map(elided, inputs))}",
                    found=f"{elided(y)} in the other order",
                    remedy="`commutes = False`, or an evaluation that does not depend on the order",
                )


def _inputs(types: Sequence[Type], seed: int) -> list[Value]:
    values = random_inputs(types, seed)
    for x, t in zip(values, types, strict=True):
        # A write to an array raises.
        x.flags.writeable = isinstance(t, RefType)
    return values


def _evaluated(prim: Primitive, label: str, inputs: Sequence[Value], typing: Typing) -> list[Value]:
    with annotate_errors(label), np.errstate(all="ignore"):
        try:
            with single_run():
                given: object = prim.evaluate(*inputs)
        except ValueError as error:
            if "read-only" in str(error):
                raise BadRule(
                    f"{label} writes to an argument",
                    expected="new arrays; only references are written",
                    found=str(error),
                ) from error
            raise
        return results_of(label, given, typing.outs)
