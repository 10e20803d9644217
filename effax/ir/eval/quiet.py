"""Functions of arrays without NumPy's warnings: what is invalid is a nan, as on devices.

``numpy.errstate`` takes three times as long as a function of a small array. It sets a context
variable; here each thread has a context of its own in which that is set once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Final, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


class _Quiet(threading.local):
    def __init__(self) -> None:
        context = Context()
        context.run(np.seterr, all="ignore")
        self.run: Final = context.run


_quiet: Final = _Quiet()


def quietly(f: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return ``f(*args)``, a pure function that calls none of the user's."""
    try:
        return _quiet.run(f, *args, **kwargs)
    except RuntimeError:
        # A finalizer, or the handler of a signal, runs within another such call.
        with np.errstate(all="ignore"):
            return f(*args, **kwargs)
