"""Looking into programs while they run: ``debug.print`` and ``debug.callback``.

They show primal values, once each: nothing that transforms a program drops them, doubles them or
moves them over each other where they are ``ordered``.
"""

from __future__ import annotations

from effax.api.debugging import debug_callback as callback
from effax.api.debugging import debug_print as print

__all__ = ["callback", "print"]
