"""``evaluate``: runs a program on values after checking them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from effax.ir.errors import BadArgument, IllTyped
from effax.ir.eval.numpy import evaluate as run
from effax.ir.primitive import Value
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.ir.types import RefType, Type, type_of_value

MAKE: Final = "`numpy.asarray(x, dtype)`; for a reference, `numpy.array(...)`, which is written to"


def evaluate(jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
    """Run a program on NumPy values.

    Args:
        jaxpr: the program; its constants are among its binders.
        args: one array for each binder, of its shape and dtype; for a reference, its buffer, which
            is written in place.

    Returns:
        One array for each result.

    Raises:
        BadArgument: ``jaxpr`` is not a program.
        IllTyped: the number of values or the type of one is wrong; nothing is run.
        UnboundAxis: the program has free axes; nothing is run.
    """
    given: object = jaxpr
    if not isinstance(given, Jaxpr):
        closed = isinstance(given, ClosedJaxpr)
        raise BadArgument(
            "`evaluate` runs a program",
            expected="a `Jaxpr`",
            found=f"{given!r:.80}",
            remedy="its program is `.jaxpr`, of which the constants come first"
            if closed
            else "trace a function: `effax.make_jaxpr(f)(*args).jaxpr`",
        )
    if len(args) != len(jaxpr.binders):
        raise IllTyped(
            "a program is evaluated on the wrong number of values",
            expected=f"{len(jaxpr.binders)}: ({', '.join(map(str, jaxpr.in_types))})",
            found=str(len(args)),
        )
    for i, (x, t) in enumerate(zip(args, jaxpr.in_types, strict=True)):
        _check(jaxpr, i, x, t)
    return run(jaxpr, args)


def _check(jaxpr: Jaxpr, i: int, x: object, t: Type) -> None:
    wanted = t.inner if isinstance(t, RefType) else t.strong()
    kinds = np.ndarray if isinstance(t, RefType) else np.ndarray | np.generic
    if not isinstance(x, kinds):
        found = f"{type(x).__name__}: {x!r:.60}"
    elif cast("Value", x).shape == wanted.shape and cast("Value", x).dtype == wanted.dtype:
        return
    else:
        found = _shown(cast("Value", x))
    raise IllTyped(
        f"{jaxpr.name_of(i)} of an evaluated program has another type",
        expected=f"a NumPy array, {t}",
        found=found,
        remedy=MAKE,
    )


def _shown(x: Value) -> str:
    try:
        return str(type_of_value(x))
    except IllTyped:
        return f"an array of the dtype {x.dtype}"
