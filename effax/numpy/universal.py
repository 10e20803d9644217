"""Universal functions: functions of elements that reduce, accumulate and update arrays.

Those of JAX (``add``, ``maximum``, ...) stay functions, with the methods as attributes: their calls
cost no more than those of other functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Final, TypeVar, cast

from effax.arrays import shapes as sh
from effax.arrays.array import Array, ArrayLike, Axis, DTypeLike
from effax.arrays.axes import no_out, plain_axes, plain_axis
from effax.arrays.conversion import as_value
from effax.arrays.creation import asarray, ones
from effax.arrays.joining import concatenate
from effax.ir.errors import BadArgument, NotSupported
from effax.lax.associative import associative_scan
from effax.lax.control import scan
from effax.lax.reduce import cummax, cummin
from effax.lax.windows import combined_rows
from effax.numpy import predicates, reduce, special
from effax.numpy import ufuncs as uf
from effax.numpy.index import take
from effax.numpy.lift import vectorize
from effax.numpy.positions import where as choose
from effax.numpy.ranges import arange

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "frompyfunc", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "subtract", "ufunc",
]  # fmt: skip

F = TypeVar("F")


@dataclass(frozen=True)
class _Known:
    """Functions that do faster what a method does, and whether the function is associative."""

    reduce: Callable[..., Array] | None = None
    accumulate: Callable[..., Array] | None = None
    update: str | None = None
    associative: bool = False
    boolean: bool = False


@dataclass(frozen=True, repr=False)
class UfuncMethods:
    """The attributes and methods of a universal function.

    Attributes:
        nin: number of operands.
        nout: number of results.
        identity: result of the reduction of no elements, or None.
    """

    _func: Callable[..., object]
    nin: int
    nout: int
    identity: ArrayLike | None = None
    _known: _Known = field(default=_Known(), compare=False)

    @property
    def nargs(self) -> int:
        """Return the number of operands."""
        return self.nin

    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Return the elements along axes, combined from the first to the last.

        Args:
            a: array.
            axis: axis or axes, None for all; one only where there is no identity.
            dtype: dtype to which the array is converted first.
            out: unsupported.
            keepdims: whether the axes stay, with size 1.
            initial: first operand, the identity by default.
            where: mask of the elements to combine.

        Raises:
            BadArgument: there is no first operand, or the function is not one of two operands.
        """
        no_out(out, f"{self._name}.reduce")
        self._check_binary("reduce")
        x = as_value(a) if dtype is None else uf.astype(a, dtype)
        axes = plain_axes(axis, x.ndim, f"{self._name}.reduce")
        if self._known.reduce is not None and initial is None:
            return self._known.reduce(x, axes, keepdims=keepdims, where=where)
        if len(axes) > 1 and self.identity is None:
            raise BadArgument(f"{self._name}.reduce has no order of axes", "one axis", str(axes))
        start = self.identity if initial is None else initial
        if start is None and (where is not None or not all(x.shape[i] for i in axes)):
            raise BadArgument(f"{self._name}.reduce has no identity", "an operand `initial`")
        rows, mask = _rows(x, axes), None
        if where is not None:
            mask = _rows(sh.broadcast_to(as_value(where), x.shape), axes)
        folded = self._folded(rows, start, mask)
        return sh.expand_dims(folded, axes) if keepdims else folded

    def _folded(self, rows: Array, start: ArrayLike | None, mask: Array | None) -> Array:
        kind = self._kind(rows)
        if start is None:
            first, rows = uf.astype(rows[0], kind), rows[1:]
        else:
            first = sh.broadcast_to(uf.astype(start, kind), rows.shape[1:])
        if self._known.associative:
            neutral = uf.astype(cast("ArrayLike", self.identity), kind)
            parts = uf.astype(rows, kind) if mask is None else choose(mask, rows, neutral)
            rows = concatenate([sh.expand_dims(first, 0), parts])
            return combined_rows([rows], lambda xs, ys: [self._of(xs[0], ys[0])])[0]

        def step(carry: Array, xs: tuple[Array, ...]) -> tuple[Array, None]:
            made = uf.astype(self._of(carry, xs[0]), kind)
            return (made if len(xs) == 1 else choose(xs[1], made, carry)), None

        return scan(step, first, (rows,) if mask is None else (rows, mask))[0]

    def accumulate(
        self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Return the reductions of the elements up to each one along an axis.

        Raises:
            BadArgument: the function is not one of two operands, or ``a`` has no axis.
        """
        no_out(out, f"{self._name}.accumulate")
        self._check_binary("accumulate")
        x = as_value(a) if dtype is None else uf.astype(a, dtype)
        place = plain_axis(axis, x.ndim, f"{self._name}.accumulate")
        if self._known.accumulate is not None:
            return self._known.accumulate(x, place)
        kind = self._kind(x)
        if self._known.associative:
            return associative_scan(self._of, uf.astype(x, kind), axis=place)
        rows = sh.moveaxis(x, place, 0)
        if not rows.shape[0]:
            return uf.astype(x, kind)

        def step(carry: Array, row: Array) -> tuple[Array, Array]:
            made = uf.astype(self._of(carry, row), kind)
            return made, made

        first = uf.astype(rows[0], kind)
        later = scan(step, first, rows[1:])[1]
        return sh.moveaxis(concatenate([sh.expand_dims(first, 0), later]), 0, place)

    def at(
        self,
        a: ArrayLike,
        indices: object,
        b: ArrayLike | None = None,
        /,
        *,
        inplace: bool = True,
    ) -> Array:
        """Return the array with the function applied at an index, once for each occurrence.

        Args:
            a: array, the first operand.
            indices: index.
            b: second operand, which broadcasts to the part; None for a function of one.
            inplace: False; arrays are immutable.

        Raises:
            NotSupported: ``inplace`` is not False.
            BadArgument: the number of operands is another one.
        """
        if inplace:
            raise NotSupported(
                "arrays are immutable, and no function changes one in place",
                remedy=f"use the result of `{self._name}.at(x, index, value, inplace=False)`",
            )
        if self.nin != (1 if b is None else 2) or self.nout != 1:
            raise BadArgument(f"{self._name}.at takes {self.nin - 1} operands beside the array")
        x = as_value(a)
        if self._known.update is not None:
            updated: Array = getattr(x.at[indices], self._known.update)(b)
            return updated
        places = sh.reshape(arange(x.size), x.shape)[indices]
        operands = [] if b is None else [sh.ravel(sh.broadcast_to(as_value(b), places.shape))]

        def step(flat: Array, xs: tuple[Array, ...]) -> tuple[Array, None]:
            made = self._of(flat[xs[0]], *xs[1:])
            return flat.at[xs[0]].set(uf.astype(made, flat.dtype)), None

        flat, _ = scan(step, sh.ravel(x), (sh.ravel(places), *operands))
        return sh.reshape(flat, x.shape)

    def reduceat(
        self,
        a: ArrayLike,
        indices: ArrayLike | Sequence[int],
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """Return the reductions of the slices between successive indices, as NumPy's.

        Args:
            a: array.
            indices: first positions of slices, which end before the next one or at the end; a slice
                that would be empty has its first element.
            axis: axis.
            dtype: dtype to which the array is converted first.
            out: unsupported.

        Raises:
            BadArgument: the function is not one of two operands.
        """
        no_out(out, f"{self._name}.reduceat")
        self._check_binary("reduceat")
        x = as_value(a) if dtype is None else uf.astype(a, dtype)
        place = plain_axis(axis, x.ndim, f"{self._name}.reduceat")
        rows = sh.moveaxis(x, place, 0)
        starts = asarray(indices)
        stops = concatenate([starts[1:], sh.expand_dims(as_value(rows.shape[0]), 0)])
        kind = self._kind(x)
        column = (-1,) + (1,) * (rows.ndim - 1)

        def step(carry: Array, xs: tuple[Array, Array]) -> tuple[Array, None]:
            row, i = xs
            inside = sh.reshape((starts < i) & (i < stops), column)
            return choose(inside, uf.astype(self._of(carry, row), kind), carry), None

        first = uf.astype(take(rows, starts, 0), kind)
        made, _ = scan(step, first, (rows, arange(rows.shape[0])))
        return sh.moveaxis(made, 0, place)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:  # noqa: N803  NumPy's names
        """Return the results for each element of the one array and each of the other.

        Raises:
            BadArgument: the function is not one of two operands.
        """
        self._check_binary("outer")
        x, y = as_value(A), as_value(B)
        return self._of(sh.reshape(x, x.shape + (1,) * y.ndim), y)

    @property
    def _name(self) -> str:
        return getattr(self._func, "__name__", "ufunc")

    def _check_binary(self, what: str) -> None:
        if (self.nin, self.nout) != (2, 1):
            raise BadArgument(
                f"{self._name}.{what} expects a function of two operands with one result",
                found=f"{self.nin} operands and {self.nout} results",
            )

    def _of(self, *xs: Array) -> Array:
        return cast(Array, self._func(*xs))

    def _kind(self, x: Array) -> DTypeLike:
        one = ones((), x.dtype)
        return self._of(one, one).dtype


class _OfUfuncs(type):
    """The class of ``ufunc``, whose instances are the functions with its methods as well."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(getattr(instance, "_ufunc", instance), UfuncMethods)


@dataclass(frozen=True, repr=False)
class ufunc(UfuncMethods, metaclass=_OfUfuncs):  # noqa: N801  NumPy's name
    """A universal function, see :func:`frompyfunc`.

    >>> isinstance(jnp.add, jnp.ufunc), jnp.add.identity
    (True, 0)
    """

    def __call__(self, *args: ArrayLike, out: None = None, where: object = None) -> object:
        no_out(out, self._name)
        if where is not None or len(args) != self.nin:
            raise BadArgument(f"{self._name} takes {self.nin} operands and no mask", str(self.nin))
        return vectorize(self._func)(*args)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self._name}'>"

    def _of(self, *xs: Array) -> Array:
        return cast(Array, self(*xs))


def frompyfunc(
    func: Callable[..., object], /, nin: int, nout: int, *, identity: ArrayLike | None = None
) -> ufunc:
    """Return the universal function that applies a function of scalars to elements.

    Args:
        func: function of ``nin`` scalars that returns ``nout`` ones.
        nin: number of operands.
        nout: number of results.
        identity: result of the reduction of no elements; None for none.

    Returns:
        Function of arrays that broadcast, with the methods of NumPy's universal functions.

    >>> jnp.frompyfunc(lambda x, y: 10 * x + y, 2, 1).reduce(jnp.array([1, 2, 3]))
    Array(123, dtype=int32)
    """
    return ufunc(func, nin, nout, identity)


def _rows(x: Array, axes: Sequence[int]) -> Array:
    """Return the array with these axes as its first one."""
    front = sh.moveaxis(x, list(axes), list(range(len(axes))))
    return sh.reshape(front, (prod(front.shape[: len(axes)]), *front.shape[len(axes) :]))


if TYPE_CHECKING:

    class _UnaryUfunc(UfuncMethods):
        def __call__(self, x: ArrayLike, /) -> Array: ...

    class _BinaryUfunc(UfuncMethods):
        def __call__(self, x1: ArrayLike, x2: ArrayLike, /) -> Array: ...


_ATTRIBUTES: Final = (
    *("nin", "nout", "nargs", "identity", "_func"),
    *("reduce", "accumulate", "at", "reduceat", "outer"),
)


def _with_methods(methods: UfuncMethods) -> Callable[..., object]:
    """Return the function itself, with the methods of a universal function."""
    function = methods._func
    vars(function)["_ufunc"] = methods
    for name in _ATTRIBUTES:
        vars(function)[name] = getattr(methods, name)
    return function


def _binary(
    function: uf.BinaryFunction,
    identity: ArrayLike | None,
    reduce: Callable[..., Array] | None = None,
    accumulate: Callable[..., Array] | None = None,
    update: str | None = None,
) -> _BinaryUfunc:
    known = _Known(reduce, accumulate, update, associative=identity is not None)
    return cast("_BinaryUfunc", _with_methods(UfuncMethods(function, 2, 1, identity, known)))


_MINUS_INFINITY: Final = float("-inf")

add: Final = _binary(uf.add, 0, reduce.sum, reduce.cumsum, "add")
multiply: Final = _binary(uf.multiply, 1, reduce.prod, reduce.cumprod, "multiply")
subtract: Final = _binary(uf.subtract, None, update="subtract")
maximum: Final = _binary(uf.maximum, None, reduce.max, cummax, "max")
minimum: Final = _binary(uf.minimum, None, reduce.min, cummin, "min")
bitwise_and: Final = _binary(uf.bitwise_and, -1)
bitwise_or: Final = _binary(uf.bitwise_or, 0)
bitwise_xor: Final = _binary(uf.bitwise_xor, 0)
logical_and: Final = _binary(predicates.logical_and, True, reduce.all)
logical_or: Final = _binary(predicates.logical_or, False, reduce.any)
logical_xor: Final = _binary(predicates.logical_xor, False)
logaddexp: Final = _binary(special.logaddexp, _MINUS_INFINITY)
logaddexp2: Final = _binary(special.logaddexp2, _MINUS_INFINITY)
negative: Final = cast("_UnaryUfunc", _with_methods(UfuncMethods(uf.negative, 1, 1)))
