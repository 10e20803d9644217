"""Debugging: prints and callbacks in programs, and the exploration of a call.

``print`` and ``callback`` observe primal values, once each: no transformation drops or duplicates
them, nor reorders those that are ``ordered``. ``explore`` evaluates a call an equation at a time,
forward and back; ``prompt`` does so by commands, and
``breakpoint`` stops a run at a line. ``first`` finds the first equation whose result
is nan, infinite, out of bounds, or has another property; ``first_difference`` where two programs
part. ``visualize_array_sharding`` draws which device has which part of an array.
"""

from __future__ import annotations

from effax.api.debugging.breakpoints import debug_breakpoint as breakpoint
from effax.api.debugging.difference import Difference, first_difference
from effax.api.debugging.display import Stats
from effax.api.debugging.explore import Found, explore, first
from effax.api.debugging.printing import debug_callback as callback
from effax.api.debugging.printing import debug_print as print
from effax.api.debugging.prompt import prompt
from effax.api.debugging.session import RefWrite, Session
from effax.api.debugging.shardings import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)
from effax.ir.eval.stepping.origins import Origin

__all__ = [
    "Difference",
    "Found",
    "Origin",
    "RefWrite",
    "Session",
    "Stats",
    "breakpoint",
    "callback",
    "explore",
    "first",
    "first_difference",
    "inspect_array_sharding",
    "print",
    "prompt",
    "visualize_array_sharding",
    "visualize_sharding",
]
