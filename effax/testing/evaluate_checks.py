"""Whether what a primitive means is a function, and touches no more than its effects say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.effects import Accum, Read, SideEffect, Write
from effax.extend.guard import blamed, results_of, typed
from effax.ir.errors import BadRule
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.types import RefType, Type
from effax.testing.generate.special_values import identical, special_values
from effax.testing.generate.values import (
    Differs,
    check_equal,
    largest,
    random_inputs,
    random_value,
    shown,
)


def shown_types(types: Sequence[Type]) -> str:
    """Types as in a message."""
    return f"({', '.join(map(str, types))})"


def check_evaluation(prim: Primitive, types: Sequence[Type], typing: Typing) -> None:
    """Raise BadRule unless ``evaluate`` gives what typing says, and does no more than it says."""
    label = f"the evaluation of {prim.name}"
    held = _inputs(types, 0)
    before = [np.array(x) for x in held]
    outs = _evaluated(prim, label, held, typing)
    changes = {e.ref for e in typing.effects.effects if isinstance(e, Write | Accum)}
    for i, (x, y, t) in enumerate(zip(held, before, types, strict=True)):
        if not isinstance(t, RefType):
            continue
        if i not in changes and x.tobytes() != y.tobytes():
            raise BadRule(
                f"{label} writes to argument {i}, and its typing does not say so",
                expected=f"`Write(ArgIndex({i}))` or `Accum(ArgIndex({i}))` among the effects",
                found=str(typing.effects),
            )
        for j, out in enumerate(outs):
            if np.shares_memory(x, out):
                raise BadRule(
                    f"result {j} of {label} is a view of reference {i}, and changes with it",
                    expected="an array of its own (`np.array(...)`)",
                )
    copies = [np.array(x) for x in outs]
    _evaluated(prim, label, _inputs(types, 1), typing)
    for j, (x, y) in enumerate(zip(outs, copies, strict=True)):
        if x.tobytes() != y.tobytes():
            raise BadRule(
                f"result {j} of {label} changes when it is run again",
                expected="a new array each time",
            )
    # What is outside may be another the next time, and gives another.
    if not any(isinstance(e, SideEffect) for e in typing.effects):
        for seed in range(3):
            inputs = _inputs(types, seed)
            _check_repeatable(prim, label, inputs, typing)
            _check_effects_told(prim, types, inputs, typing)


def _check_repeatable(prim: Primitive, label: str, inputs: Sequence[Value], typing: Typing) -> None:
    """Of equal arguments it gives the same, bit by bit, and leaves the same in references."""
    first, second = [_observed(prim, label, inputs, typing) for _ in range(2)]
    for what, x, y in zip(_parts(typing, inputs), first, second, strict=True):
        if x.tobytes() != y.tobytes():
            raise BadRule(
                f"{label} is no function of its arguments: {what} is another of equal ones",
                expected=shown(x),
                found=shown(y),
                remedy="what is random, or a count of calls, is an argument: a key, a reference",
            )


def _parts(typing: Typing, inputs: Sequence[Value]) -> list[str]:
    """What :func:`_observed` gives, in words."""
    outs = [f"result {j}" for j in range(len(typing.outs))]
    return [*outs, *[f"what is left in argument {i}" for i in range(len(inputs))]]


def _observed(prim: Primitive, label: str, inputs: Sequence[Value], typing: Typing) -> list[Value]:
    """Results, and what is left in each argument; ``inputs`` stay as they are."""
    held = [np.array(x) for x in inputs]
    for x, y in zip(held, inputs, strict=True):
        x.flags.writeable = y.flags.writeable
    return [*[np.array(x) for x in _evaluated(prim, label, held, typing)], *held]


def _check_effects_told(
    prim: Primitive, types: Sequence[Type], inputs: Sequence[Value], typing: Typing
) -> None:
    """Raise BadRule where something depends on contents that are not said to be read.

    Passes let go of what was stored before a reference is written and not read, and reorder what
    adds to it: so neither results nor what is left may depend on what was there; what is added
    may not either.

    Several contents are tried, one reference at a time.
    """
    for i, t in enumerate(types):
        told = {type(e) for e in typing.effects.effects if getattr(e, "ref", None) == i}
        if not isinstance(t, RefType) or Read in told:
            continue
        rng = np.random.default_rng(i)
        first = _on_contents(prim, inputs, typing, i, np.array(inputs[i]))
        for other in (*[random_value(rng, t) for _ in range(3)], np.zeros(t.shape, t.dtype)):
            second = _on_contents(prim, inputs, typing, i, np.array(other))
            for j, part in enumerate(_parts(typing, inputs)):
                # Without `Write` it is as it was, or something was added.
                added = j == len(typing.outs) + i and Write not in told
                x, y = first[j], second[j]
                if added:
                    same = Accum not in told or _same_increment(x, y, inputs[i], other)
                else:
                    same = x.tobytes() == y.tobytes()
                if not same:
                    what = f"what is added to argument {i}" if added else part
                    raise BadRule(
                        f"the typing of {prim.name} does not say that argument {i} is read",
                        expected=f"`Read(ArgIndex({i}))` among the effects"
                        + (f", and `Write(ArgIndex({i}))`" if Accum in told else ""),
                        found=f"{typing.effects}, and {what} depends on what was in it before",
                    )


def _on_contents(
    prim: Primitive, inputs: Sequence[Value], typing: Typing, i: int, contents: Value
) -> list[Value]:
    given = [contents if j == i else x for j, x in enumerate(inputs)]
    return _observed(prim, f"the evaluation of {prim.name}", given, typing)


def _same_increment(x: Value, y: Value, before_x: Value, before_y: Value) -> bool:
    """Whether two increments are the same, as far as they can be told from sums."""
    if x.dtype == bool:
        return True
    try:
        check_equal("increment", x - before_x, y - before_y, scale=largest(before_x))
    except Differs:
        return False
    return True


def check_commuting(prim: Primitive, types: Sequence[Type], typing: Typing) -> None:
    """It gives the same, bit by bit, when its arguments change places; or says that it does not."""
    label = f"the evaluation of {prim.name}, which says that it commutes,"
    if len(types) != 2 or typing.effects.effects:
        raise BadRule(
            f"{prim.name} says that it commutes",
            expected="two arguments and no effects; or `commutes = False`",
            found=f"{shown_types(types)}, {typing.effects}",
        )
    turned = typed(prim, types[::-1])
    if turned.outs != typing.outs:
        raise BadRule(
            f"the typing of {prim.name}, which says that it commutes, depends on the order",
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
                    expected=f"{shown(x)}, as on {' and '.join(map(shown, inputs))}",
                    found=f"{shown(y)} when they change places",
                    remedy="`commutes = False`, or compute so that no bit depends on the order",
                )


def _inputs(types: Sequence[Type], seed: int) -> list[Value]:
    values = random_inputs(types, seed)
    for x, t in zip(values, types, strict=True):
        # Writing to an array raises.
        x.flags.writeable = isinstance(t, RefType)
    return values


def _evaluated(prim: Primitive, label: str, inputs: Sequence[Value], typing: Typing) -> list[Value]:
    with blamed(label), np.errstate(all="ignore"):
        try:
            given: object = prim.evaluate(*inputs)
        except ValueError as error:
            if "read-only" in str(error):
                raise BadRule(
                    f"{label} writes to an argument",
                    expected="new arrays; a reference alone is written to",
                    found=str(error),
                ) from error
            raise
        return results_of(label, given, typing.outs)
