"""The builder of a random program, with the variables in scope and the source of choices.

Values that a step takes from it fit by type, so that programs are well typed by construction.
Magnitudes are tracked approximately, so that numbers stay moderate in loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from effax.ir import prims as p
from effax.ir.axes import Axes
from effax.ir.build import Builder, lit
from effax.ir.dtypes import DType, family, is_float, is_inexact_dtype, is_integer, is_key_dtype
from effax.ir.primitive import Primitive
from effax.ir.prims import BroadcastInDim, ReduceSum
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Shape, Type, array_type, is_inexact
from effax.testing.generate.features import Features
from effax.testing.generate.random_source import RandomSource

MAX_ELEMENTS: Final = 48
"""The greatest number of elements of an array."""


LARGE: Final = 30.0
"""Values of a greater magnitude are squashed before they are used."""


UNSIGNED: Final = (0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 7, 8, 31, 100)
INTEGERS: Final = (0, 1, 2, 3, -1, 0, 1, 2, 3, -1, 4, 5, 7, 8, -2, -3, 31, 100)
NUMBERS: Final = (0.5, 1.0, 2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 2.0, -1.0, 3.0, 0.1, -0.7, 10.0)
"""Constants, the simplest first. Powers of two, whose products are exact, are frequent."""

DIVISORS: Final = (2.0, 3.0, 0.1, -1.0, 10.0, 1.0, -0.7, 0.5, 7.0)
EXPONENTS: Final = (2, 3, -1, 4, 0, 1, -2, 5, 7, -3)
SHIFTS: Final = (1, 2, 0, 3, 5, 7, 8, 31, 32, 40)
"""Constants in the place of divisors, exponents and shifts."""


Accept = Callable[[Var], bool]


class ProgramBuilder:
    """A random program under construction.

    Attributes:
        b: the builder.
        choose: the source of choices.
        features: the features of the program.
        depth: the depth of subjaxprs that it may have.
        budget: the number of steps left, one entry that subjaxprs share.
        is_nested: whether it builds a subjaxpr.
        theme: the index of the kinds of steps that are preferred.
        arrays: the arrays in scope, in order of binding.
        refs: the references in scope that are not consumed.
        made: the numbers of the references that this program allocates.
        linear: the numbers of variables that depend on the linear inputs.
        magnitudes: approximate magnitudes of variables, by number; 2 for others.
        used: the numbers of variables that are operands of an equation.
        sums: the numbers of references that are only added to.
        axes: the named axes of collectives.
    """

    def __init__(
        self,
        choose: RandomSource,
        features: Features,
        types: Sequence[Type],
        linear: Sequence[bool] = (),
        outer: ProgramBuilder | None = None,
        theme: int = 0,
    ) -> None:
        self.b: Builder = Builder(types)
        self.choose = choose
        self.features = features
        # Deep computations seldom reach the results: shallow programs test other paths.
        shallow = min(1, features.depth)
        self.depth: int = (
            choose.between(shallow, features.depth) if outer is None else outer.depth - 1
        )
        self.budget: list[int] = [features.steps] if outer is None else outer.budget
        self.is_nested: bool = outer is not None
        self.theme: int = theme if outer is None else outer.theme
        self.arrays: list[Var] = [v for v in self.b.binders if isinstance(v.type, ArrayType)]
        self.refs: list[Var] = [v for v in self.b.binders if isinstance(v.type, RefType)]
        self.made: set[int] = set()
        self.linear: set[int] = {
            v.id for v, flag in zip(self.b.binders, linear, strict=False) if flag
        }
        self.magnitudes: dict[int, float] = {}
        self.used: set[int] = set()
        self.axes: Axes = ()
        self.sums: set[int] = set()
        if outer is None:
            numbers = [r for r in self.refs if r.type.dtype.kind != "b"]
            self.sums = {r.id for r in numbers if choose.chance(40)}

    def emit(self, prim: Primitive, *ins: Atom, magnitude: float | None = None) -> tuple[Var, ...]:
        """Append an equation; its results are in scope."""
        outs = self.b.emit(prim, ins)
        largest = 1.0
        is_linear = False
        for a in ins:
            largest = max(largest, self.magnitude(a))
            if isinstance(a, Var):
                self.used.add(a.id)
                is_linear = is_linear or a.id in self.linear
        for v in outs:
            self.magnitudes[v.id] = largest if magnitude is None else magnitude
            # An integer result, such as the counter of a loop, depends on no linear value.
            if is_linear and is_inexact(v.type):
                self.linear.add(v.id)
            if isinstance(v.type, RefType):
                self.refs.append(v)
                self.made.add(v.id)
            else:
                self.arrays.append(v)
        return outs

    def one(self, prim: Primitive, *ins: Atom, magnitude: float | None = None) -> Var:
        """Append an equation of one result."""
        (out,) = self.emit(prim, *ins, magnitude=magnitude)
        return out

    def consume(self, ref: Var, prim: Primitive) -> None:
        """Append a ``freeze`` or ``free_ref``, which removes the reference from the scope."""
        self.emit(prim, ref)
        self.refs.remove(ref)

    def magnitude(self, atom: Atom) -> float:
        """Return the approximate magnitude of the elements."""
        if isinstance(atom, Lit):
            return abs(atom.value)
        return self.magnitudes.get(atom.id, 2.0)

    def is_linear(self, atom: Atom) -> bool:
        """Return whether the value depends on the linear inputs."""
        return isinstance(atom, Var) and atom.id in self.linear

    def maybe(self, accept: Accept) -> Var | None:
        """Return an array in scope that is accepted, or None."""
        found = [v for v in self.arrays if accept(v)]
        return self.choose.pick(found) if found else None

    def operand(self, min_ndim: int = 0) -> Var:
        """Return an array of floats in scope, linear or not."""
        found = self.maybe(lambda v: is_float(v.type.dtype) and len(v.type.shape) >= min_ndim)
        if found is not None:
            return found
        return self.wider(self.operand()) if min_ndim else self.fixed()

    def any_array(self, min_ndim: int = 0) -> Var:
        """Return an array in scope: of floats mostly, else of any dtype."""
        if self.choose.chance(60):
            return self.operand(min_ndim)
        found = self.maybe(lambda v: len(v.type.shape) >= min_ndim)
        return self.operand(min_ndim) if found is None else found

    def fixed(self, min_ndim: int = 0) -> Var:
        """Return an array of floats in scope that is not linear."""
        found = self.maybe(
            lambda v: (
                is_float(v.type.dtype) and v.id not in self.linear and len(v.type.shape) >= min_ndim
            )
        )
        if found is not None:
            return found
        if min_ndim:
            return self.wider(self.fixed())
        return self.one(p.Sin(), self.literal(self.features.floats[0]))

    def wider(self, x: Var) -> Var:
        """Return the array with a new leading axis."""
        shape = x.type.shape
        n = self.size_of_axis(MAX_ELEMENTS // max(_count(shape), 1))
        return self.one(BroadcastInDim((n, *shape), tuple(range(1, 1 + len(shape)))), x)

    def size_of_axis(self, most: int = 4) -> int:
        """Return the size of an axis: 2 or 3 mostly, sometimes 1, 4 or 0."""
        return min(self.choose.pick((2, 3, 2, 3, 2, 3, 1, 4, 0)), most)

    def literal(self, dtype: DType, value: float | None = None) -> Lit:
        """Return a scalar of the dtype."""
        type_ = array_type((), dtype)
        if value is not None:
            return lit(value, type_)
        match family(dtype):
            case "bool":
                return lit(self.choose.pick((True, False)), type_)
            case "key":
                return lit(0, type_)
            case "uint":
                return lit(self.choose.pick(UNSIGNED), type_)
            case "int":
                return lit(self.choose.pick(INTEGERS), type_)
            case _:
                return lit(self.choose.pick(NUMBERS), type_)

    def threshold(self, dtype: DType) -> Lit:
        """Return a float to compare with; no sum or difference equals it up to rounding."""
        return lit(
            self.choose.pick((0.3127, 0.9173, -0.5371, 1.7219, -1.1387)), array_type((), dtype)
        )

    def companion(self, x: Var, linear: bool | None = None) -> Atom:
        """Return an operand for elementwise primitives on ``x``: of its shape, or a scalar.

        Args:
            x: the other operand.
            linear: whether it is linear; if None, as ``x``.
        """
        ct_spec = self.is_linear(x) if linear is None else linear
        type_ = x.type
        found = self.maybe(
            lambda v: (
                v.type.dtype == type_.dtype
                and (v.type.shape == type_.shape or not v.type.shape or not type_.shape)
                and (v.id in self.linear) == ct_spec
                and v is not x
            )
        )
        if ct_spec:
            return x if found is None else found
        if found is None or self.choose.chance(20):
            return self.literal(type_.dtype)
        return found

    def value(self, type_: ArrayType, linear: bool = False) -> Atom:
        """Return a value of exactly this type, linear or not; a zero is both."""
        found = self.maybe(lambda v: v.type is type_ and (v.id in self.linear) == linear)
        if found is not None:
            return found
        scalar = self._scalar(type_.dtype, linear)
        if type_.weak != _is_weak(scalar):
            scalar = self.one(p.ConvertElementType(type_.dtype, type_.weak), scalar)
        return self.one(BroadcastInDim(type_.shape, ()), scalar) if type_.shape else scalar

    def _scalar(self, dtype: DType, linear: bool) -> Atom:
        """Return a scalar of the dtype: a literal, or one computed from an array in scope."""
        zero = 0.0 if linear else None
        if dtype.kind == "b" or is_key_dtype(dtype) or not (linear or self.choose.chance(60)):
            return self.literal(dtype, zero)
        x = self.maybe(lambda v: (v.id in self.linear) == linear and v.type.dtype == dtype)
        if x is None:
            return self.literal(dtype, zero)
        if not x.type.shape:
            return x
        count = max(_count(x.type.shape), 1)
        axes = tuple(range(len(x.type.shape)))
        return self.one(ReduceSum(axes), x, magnitude=count * self.magnitude(x))

    def integer(self) -> Atom:
        """Return a scalar to index with."""
        found = self.maybe(lambda v: is_integer(v.type.dtype) and not v.type.shape)
        if found is not None and not self.choose.chance(30):
            return found
        if self.choose.chance(60):
            x = self.maybe(
                lambda v: is_float(v.type.dtype) and not v.type.shape and v.id not in self.linear
            )
            if x is not None:
                x = self.squashed(x)
                return self.one(p.ConvertElementType(self.features.ints[0]), x)
        return self.literal(self.features.ints[0])

    def predicate(self) -> Atom:
        """Return a boolean scalar."""
        found = self.maybe(lambda v: v.type.dtype.kind == "b" and not v.type.shape)
        if found is not None:
            return found
        x = self.fixed()
        if x.type.shape:
            x = self.one(ReduceSum(tuple(range(len(x.type.shape)))), x)
        return self.one(p.Gt(), x, self.threshold(x.type.dtype))

    def squashed(self, x: Var) -> Var:
        """Return the array at a moderate magnitude."""
        if self.magnitude(x) <= LARGE or not is_inexact_dtype(x.type.dtype):
            return x
        if self.is_linear(x) or not is_float(x.type.dtype):
            factor = self.literal(x.type.dtype, 1 / self.magnitude(x))
            return self.one(p.Mul(), x, factor, magnitude=1.0)
        return self.one(p.Sin(), x, magnitude=1.0)

    def leaves(self) -> list[Var]:
        """Return the arrays that are no operand of an equation, and no inputs."""
        binders = {v.id for v in self.b.binders}
        return [v for v in self.arrays if v.id not in self.used and v.id not in binders]

    def finish(self, outs: Sequence[Atom]) -> Jaxpr:
        """Return the program with these results."""
        return self.b.finish(outs)


def _is_weak(atom: Atom) -> bool:
    return isinstance(atom.type, ArrayType) and atom.type.weak


def _count(shape: Shape) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def swapped(g: ProgramBuilder, x: Atom, y: Atom) -> tuple[Atom, Atom]:
    """Return two operands in either order."""
    return (y, x) if g.choose.chance(30) else (x, y)
