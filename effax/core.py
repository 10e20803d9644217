"""Types of values and of programs, under JAX's names."""

from __future__ import annotations

from effax.api.interpret import eval_closed as eval_jaxpr
from effax.arrays.traced_array import TracedArray as Tracer
from effax.ir.syntax import Atom
from effax.ir.types import ArrayType as ShapedArray

__all__ = ["Atom", "ShapedArray", "Tracer", "eval_jaxpr"]
