"""Passes that rewrite each program by itself, applied at every depth."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from returns.result import Result

from effax.ir.edit.operations import everywhere
from effax.ir.errors import TransformError
from effax.ir.syntax import Jaxpr
from effax.transforms.framework.runner import as_result

Local = Callable[[Jaxpr], Jaxpr]
"""Rewrites one program and keeps its subjaxprs; returns the very same where nothing changes."""

Transform = Callable[[Jaxpr], Result[Jaxpr, TransformError]]
"""Returns a program, or the error that says why there is none."""


def at_every_depth(local: Local) -> Transform:
    """Return the pass that applies ``local`` to every program, innermost first."""

    @wraps(local)
    def whole(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        return as_result(everywhere)(local, jaxpr)

    return whole
