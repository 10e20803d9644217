"""Types of values and of programs, under JAX's names."""

from __future__ import annotations

import effax.api.operations  # noqa: F401  # `eqn.primitive` is set there
from effax.api.interpret import eval_closed as eval_jaxpr
from effax.arrays.binding import folding as ensure_compile_time_eval
from effax.arrays.traced_array import TracedArray as Tracer
from effax.ir.syntax import Atom
from effax.ir.types import ArrayType as ShapedArray

__all__ = ["Atom", "ShapedArray", "Tracer", "ensure_compile_time_eval", "eval_jaxpr"]
