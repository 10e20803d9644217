"""Debugging of running programs: ``debug.print`` and ``debug.callback``.

Both observe primal values, once each: no transformation drops or duplicates them, nor reorders
those that are ``ordered``.
"""

from __future__ import annotations

from effax.api.debugging import debug_callback as callback
from effax.api.debugging import debug_print as print

__all__ = ["callback", "print"]
