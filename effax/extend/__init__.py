"""Declare a primitive of your own in one file, and use it under every transformation.

A primitive is a frozen dataclass: its fields are its parameters. It says its types and what it
means on NumPy, and how each transformation treats it; a class that lacks one of these is abstract,
which type checkers report. Rules are written with ``effax.numpy``, on traced arrays::

    @dataclass(frozen=True, slots=True)
    class Cube(extend.ArrayPrimitive):
        name: ClassVar[str] = "cube"

        def typing(self, x):
            return extend.Typing((x,))

        def evaluate(self, x):
            return [x**3]

        def jvp(self, primals, tangents):  # d(x³) = 3·x²·dx
            (x,), (dx,) = primals, tangents
            return [cube(x)], [dx and 3.0 * x * x * dx]

        def transpose(self, ins, cts):
            raise extend.NotApplicable("cube is not linear")

        def batch(self, ins, batched, size):
            return [cube(*ins)], batched

        def lower(self, w, ins):
            return extend.program(w, lambda x: x * x * x, ins, self.name)


    def cube(x):
        return Cube().bind(x)[0]

``effax.testing.check_primitive`` proves it: values, derivatives, batching, lowering, printing.

Source: docs/primitives.md; examples/softmax_cross_entropy.py.
"""

from __future__ import annotations

from effax.api.interpret import eval_eqn, eval_jaxpr
from effax.effects import Accum, Alloc, ArgIndex, Free, Host, Io, Read, Row, Write
from effax.extend.primitive import ArrayPrimitive, HostPrimitive, RefPrimitive
from effax.extend.rules import Linear, program
from effax.ir.errors import IllTyped, NotApplicable
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.registry import registry
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type
from effax.lowering.writer import Val, Writer

__all__ = [
    "Accum",
    "Alloc",
    "ArgIndex",
    "ArrayPrimitive",
    "ArrayType",
    "Free",
    "Host",
    "HostPrimitive",
    "IllTyped",
    "Io",
    "Linear",
    "NotApplicable",
    "Primitive",
    "Read",
    "RefPrimitive",
    "RefType",
    "Row",
    "Type",
    "Typing",
    "Val",
    "Value",
    "Write",
    "Writer",
    "array_type",
    "eval_eqn",
    "eval_jaxpr",
    "program",
    "ref_type",
    "registry",
]
