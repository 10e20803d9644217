"""Declare a user-defined primitive in one file, and use it under every transformation.

A primitive is a frozen dataclass: its fields are its parameters. It declares its typing, its
evaluation on NumPy, and a rule for each transformation; a class that lacks one of these is
abstract, which type checkers report. Rules are written with ``effax.numpy``, on traced arrays.

Bases, by the methods that remain: :class:`FunctionPrimitive` (a function, which may run
subjaxprs), :class:`Elementwise` (a function and its derivatives), :class:`LinearPrimitive` (an
adjoint instead of derivatives), :class:`ArrayPrimitive` (every rule), :class:`RefPrimitive` (takes
references), :class:`HostPrimitive` (has side effects)::

    @dataclass(frozen=True, slots=True)
    class Cube(extend.Elementwise):
        name: ClassVar[str] = "cube"

        def function(self, x: Array) -> Array:
            return x * x * x

        def derivatives(self, x: Array) -> Array:  # d(x³) = 3·x²·dx
            return 3.0 * x * x


    cube = Cube()
    cube(2.0)  # 8.0

``effax.testing.check_primitive`` tests it: values, derivatives, batching, lowering, printing.

Source: docs/primitives.md; examples/softmax_cross_entropy.py.
"""

from __future__ import annotations

from effax.api.interpret import eval_eqn, eval_jaxpr
from effax.effects import Accum, Alloc, ArgIndex, Free, Io, Read, Row, SideEffect, Write
from effax.extend.bases import Elementwise, FunctionPrimitive, LinearPrimitive, with_batch_axis
from effax.extend.primitive import ArrayPrimitive, Handle, HostPrimitive, RefPrimitive
from effax.extend.regions import RegionPrimitive
from effax.extend.rules import Linear, program
from effax.ir.dtypes import family, is_complex, is_float, is_inexact_dtype, is_integer
from effax.ir.errors import BadRule, IllTyped, NotApplicable
from effax.ir.primitive import Primitive, Region, Typing, Value
from effax.ir.regions.forms import branch_regions, call_region, loop_region, while_regions
from effax.ir.registry import registry
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type
from effax.ir.work import Work, moved
from effax.lowering.writer import Val, Writer

__all__ = [
    "Accum",
    "Alloc",
    "ArgIndex",
    "ArrayPrimitive",
    "ArrayType",
    "BadRule",
    "Elementwise",
    "Free",
    "FunctionPrimitive",
    "Handle",
    "HostPrimitive",
    "IllTyped",
    "Io",
    "Linear",
    "LinearPrimitive",
    "NotApplicable",
    "Primitive",
    "Read",
    "RefPrimitive",
    "RefType",
    "Region",
    "RegionPrimitive",
    "Row",
    "SideEffect",
    "Type",
    "Typing",
    "Val",
    "Value",
    "Work",
    "Write",
    "Writer",
    "array_type",
    "branch_regions",
    "call_region",
    "eval_eqn",
    "eval_jaxpr",
    "family",
    "is_complex",
    "is_float",
    "is_inexact_dtype",
    "is_integer",
    "loop_region",
    "moved",
    "program",
    "ref_type",
    "registry",
    "while_regions",
    "with_batch_axis",
]
