"""Traversal of deeply nested programs: walks without recursion, and calls on a fresh stack.

:func:`postorder` lists each distinct subjaxpr once, innermost first. In that order the results for
a program's subjaxprs are always computed before its own: hash, equality and text work that way.

Passes, evaluation and tracing run rules and users' functions, so they recurse, a few Python frames
per level. Beyond a depth, :func:`call_with_fresh_stack` continues on the stack of another thread
and waits for it. Python's recursion limit and the size of C's stack belong to the user's process
and are not changed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from operator import itemgetter
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from effax.ir.errors import TooDeep

if TYPE_CHECKING:
    from effax.ir.primitive import Primitive
    from effax.ir.syntax import Eqn, Jaxpr

P = ParamSpec("P")
R = TypeVar("R")

FRAMES: Final = 400
"""The depth of a thread's stack that moves a call to another one: under half of Python's limit."""

STACKS: Final = 80
"""The most stacks of one computation; a recursion that needs more is taken for an infinite one."""


L = TypeVar("L", bound=threading.local)


class _Stacks(threading.local):
    count = 1


_stacks: Final = _Stacks()
_carried: Final[list[threading.local]] = [_stacks]


def carried(state: L) -> L:
    """Register thread-local state that moves with a computation to its further stacks and back."""
    _carried.append(state)
    return state


def _state() -> list[dict[str, object]]:
    return [dict(vars(local)) for local in _carried]


def _set_state(state: list[dict[str, object]]) -> None:
    for local, attributes in zip(_carried, state, strict=False):
        vars(local).update(attributes)


def call_with_fresh_stack(run: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return ``run(*args, **kwargs)``, on a fresh stack where much of this one is used.

    Raises:
        TooDeep: the nesting is deeper than any finite program's.
    """
    try:
        sys._getframe(FRAMES)
    except ValueError:
        # Not called here: an error of the call would have this one as its context.
        pass
    else:
        return _elsewhere(lambda: run(*args, **kwargs))
    return run(*args, **kwargs)


def with_fresh_stack(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that each call is a :func:`call_with_fresh_stack`."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            sys._getframe(FRAMES)
        except ValueError:
            pass
        else:
            return _elsewhere(lambda: function(*args, **kwargs))
        return function(*args, **kwargs)

    return called


def _elsewhere(run: Callable[[], R]) -> R:
    """Return the result of ``run`` in a new thread that has this thread's state and context."""
    if _stacks.count >= STACKS:
        raise TooDeep(
            "programs are nested too deeply, or a function calls itself without end",
            expected="some thousands of levels at most",
            found=f"{STACKS} full stacks of {FRAMES} of Python's frames",
            remedy="let the recursion end, or use a loop: `lax.scan`, `lax.while_loop`",
        )
    states = [_state()]
    context = copy_context()
    results: list[R] = []
    errors: list[BaseException] = []

    def go() -> None:
        _set_state(states[0])
        _stacks.count += 1
        try:
            results.append(context.run(run))
        except BaseException as error:  # noqa: BLE001  # raised again by the waiting thread
            errors.append(error)
        _stacks.count -= 1
        states.append(_state())

    thread = threading.Thread(target=go, name="effax, further down", daemon=True)
    thread.start()
    thread.join()
    _set_state(states[-1])
    if errors:
        raise errors.pop()
    return results[0]


def may_have_subjaxprs(prim: Primitive) -> bool:
    """Return whether primitives of the class of this one may have subjaxprs."""
    return _kinds[type(prim)]


def kind_may_have_subjaxprs(kind: type[Primitive]) -> bool:
    """Return whether primitives of this class may have subjaxprs."""
    return _kinds[kind]


class _Kinds(dict[type["Primitive"], bool]):
    def __missing__(self, kind: type[Primitive]) -> bool:
        from effax.ir.primitive import Primitive

        found = self[kind] = kind.subjaxprs is not Primitive.subjaxprs
        return found


_kinds: Final = _Kinds()


_prim_of: Final[Callable[[Eqn], Primitive]] = itemgetter(0)


def kinds_of(jaxpr: Jaxpr) -> frozenset[type[Primitive]]:
    """Return the classes of the primitives of the equations; cached on the program."""
    found = jaxpr._kinds
    if found is None:
        found = frozenset(map(type, map(_prim_of, jaxpr.eqns)))
        object.__setattr__(jaxpr, "_kinds", found)
    return found


def subjaxprs_of(jaxpr: Jaxpr) -> tuple[Jaxpr, ...]:
    """Return the subjaxprs of the equations, in order; cached on the program."""
    found = jaxpr._subjaxprs
    if found is None:
        kinds = _kinds
        prims = [eqn.prim for eqn in jaxpr.eqns]
        found = tuple([j for prim in prims if kinds[type(prim)] for j in prim.subjaxprs()])
        object.__setattr__(jaxpr, "_subjaxprs", found)
    return found


def postorder(jaxpr: Jaxpr, enter: Callable[[Jaxpr], bool] | None = None) -> list[Jaxpr]:
    """Return the program and all nested ones, each once, and after its own subjaxprs.

    Args:
        jaxpr: the program, which is last.
        enter: a predicate; a subjaxpr that it rejects is left out, with those nested in it.
    """
    found: list[Jaxpr] = []
    seen = {id(jaxpr)}
    waiting = [(jaxpr, iter(subjaxprs_of(jaxpr)))]
    while waiting:
        program, rest = waiting[-1]
        for inner in rest:
            if id(inner) not in seen and (enter is None or enter(inner)):
                seen.add(id(inner))
                waiting.append((inner, iter(subjaxprs_of(inner))))
                break
        else:
            waiting.pop()
            found.append(program)
    return found
