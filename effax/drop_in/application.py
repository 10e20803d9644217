"""The applications of primitives in JAX's form as primitives of effax."""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Sequence
from typing import Final, NoReturn

from effax.arrays.array import Array
from effax.arrays.binding import bind
from effax.arrays.conversion import as_value
from effax.arrays.ref import Ref
from effax.arrays.traced_array import TracedArray
from effax.drop_in import rules
from effax.drop_in.lowering import lowered
from effax.drop_in.primitive import AppliedByName, Declared, Parameters
from effax.ir.errors import IllTyped
from effax.ir.operation import Operation
from effax.ir.trace import current_trace, eager
from effax.lowering.writer import HasLowering, Val, Writer
from effax.transforms.framework.rules import HasRules, Indivisible, Rules
from effax.transforms.rules.common.generic_rules import no_refs
from effax.tree import PyTree


class _PrimitiveType(ABCMeta):
    """Makes the operations of built-in primitives instances of ``Primitive``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Operation)


class NamedPrimitive(Declared, metaclass=_PrimitiveType):
    """A primitive with a name, as ``jax.extend.core.Primitive``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._cls: type[WithRules] = _class_of(self)

    def bind(self, *args: object, **params: object) -> PyTree:
        """Apply the primitive: evaluate it, or add it to the program that is traced.

        On arrays outside of programs that are compiled, ``impl`` is called.

        Raises:
            IllTyped: an operand is neither an array nor a number.
            NotRegistered: it has no implementation, or no abstract evaluation.
        """
        self.is_used = True
        operands = [x if isinstance(x, Array) else self._operand(x, i) for i, x in enumerate(args)]
        trace = current_trace()
        if trace is None or (trace.on_values and not any(type(x) is TracedArray for x in operands)):
            with eager():
                return self.impl(*args, **params)
        outs = bind(self._cls(Parameters(self.name, params)), *operands)
        return outs if self.multiple_results else outs[0]

    def _operand(self, x: object, i: int) -> Array:
        if isinstance(x, Ref):
            raise IllTyped(
                f"{self.name} takes arrays, and argument {i} is a reference",
                remedy="read it before; `effax.extend.RefPrimitive` takes references",
            )
        return as_value(x, f"argument {i} of {self.name}")


class WithRules(AppliedByName, HasRules, HasLowering):
    """An application of a primitive; one subclass for each primitive."""

    __slots__ = ()

    def rules(self) -> Rules[NoReturn]:
        """Return the rules that run those that are registered."""
        return _RULES

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        """Write the registered lowering."""
        return lowered(self, w, ins)


_RULES: Final[Rules[WithRules]] = Rules(
    jvp=rules.jvp,
    transpose=rules.transpose,
    batch=rules.batch,
    split=Indivisible(),
    discharge=no_refs,
)


def _class_of(declared: NamedPrimitive) -> type[WithRules]:
    """Return the class of the applications of a primitive."""
    name = re.sub(r"\W", "_", declared.name)
    body = {"__slots__": (), "__module__": __name__, "name": name, "declared": declared}
    return type(f"Application_{name}", (WithRules,), body)
