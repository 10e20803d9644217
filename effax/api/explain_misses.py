"""Reasons why a call of a jitted function is traced: what differs from the calls before."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence

from effax.api.call_cache import CallSignature
from effax.arrays.tracing import shown_tree
from effax.ir.types import ArrayType, Type


def explain_miss(
    fun: Callable[..., object],
    names: Sequence[str],
    new: CallSignature,
    seen: Iterable[CallSignature],
) -> str:
    """Return the reason why a call is traced, compared with the most similar call before.

    Args:
        fun: the function.
        names: the user's names of the leaves of its arguments.
        new: the signature of the call.
        seen: those of the calls before.
    """
    head = f"TRACING CACHE MISS of {getattr(fun, '__name__', fun)}"
    before = max(seen, key=lambda old: _likeness(old, new), default=None)
    if before is None:
        return f"{head}: never seen function {_defined(fun)}"
    return f"{head}, of which a call was traced with {'; with '.join(_reasons(names, new, before))}"


def _likeness(old: CallSignature, new: CallSignature) -> tuple[int, int]:
    parts = sum([x == y for x, y in zip(old, new, strict=True)])
    return parts, sum([x == y for x, y in zip(old.types, new.types, strict=False)])


def _reasons(names: Sequence[str], new: CallSignature, before: CallSignature) -> list[str]:
    found: list[str] = []
    if new.structure != before.structure:
        trees = f"now {shown_tree(new.structure)} and before {shown_tree(before.structure)}"
        found.append(f"different input pytree: {trees}")
    elif new.types != before.types:
        pairs = zip(names, new.types, before.types, strict=True)
        lines = [
            f"at {name}, now {_shown(x, y)} and before {_shown(y, x)}"
            for name, x, y in pairs
            if x != y
        ]
        found.append(f"different input types: {', '.join(lines)}")
    if new.static != before.static:
        found.append(f"different value of static args: now {new.static}, before {before.static}")
    if new.settings != before.settings:
        found.append(f"different tracing context: {_changed(new.settings, before.settings)}")
    if (new.axes, new.varying) != (before.axes, before.varying):
        found.append(f"different named axes: now {new.axes} and before {before.axes}")
    return found or ["a program that is no longer kept"]


def _shown(type_: Type, other: Type) -> str:
    """Return the text of a type, with its weakness where only that differs."""
    if not isinstance(type_, ArrayType) or not isinstance(other, ArrayType):
        return str(type_)
    strong = str(type_.update(weak=False))
    return strong if type_.weak == other.weak else f"{strong}{{weak_type={type_.weak}}}"


def _changed(now: object, before: object) -> str:
    """Return the values of two settings keys that differ."""
    new, old = (x if isinstance(x, tuple) else (x,) for x in (now, before))
    if len(new) != len(old):
        return f"now {now} and before {before}"
    pairs = [(x, y) for x, y in zip(new, old, strict=True) if x != y]
    return ", ".join([f"now {x} and before {y}" for x, y in pairs])


def _defined(fun: object) -> str:
    try:
        return f"defined at {inspect.getsourcefile(fun)}:{inspect.getsourcelines(fun)[1]}"  # type: ignore[arg-type]  # raises for others
    except (TypeError, OSError):
        return repr(fun)
