"""Pictures of programs in notebooks, by ``effax.show``.

A notebook shows the text of a value whose ``_repr_html_`` returns None.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from effax.ir.syntax import Jaxpr


def drawn(jaxpr: Jaxpr) -> str | None:
    """Return the HTML of a program, or None for its text."""
    # By name, because pictures are above the IR.
    return cast("str | None", import_module("effax.show").in_notebook(jaxpr))
