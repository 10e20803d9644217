"""StableHLO operations as functions of a writer; a call writes at most one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effax.ir.dtypes import BOOL, INT32, DType, as_dtype, family, is_complex, real_dtype
from effax.ir.syntax import Scalar
from effax.ir.types import ArrayType, Shape, array_type
from effax.lowering.mlir_text import tensor
from effax.lowering.writer import Val, Writer

INT64: DType = as_dtype("int64")


def same(w: Writer, name: str, *xs: Val) -> Val:
    """Write an operation whose operands and result have one type: ``add``, ``chlo.erf``, ..."""
    dialect, _, short = name.rpartition(".")
    names = ", ".join([x.name for x in xs])
    if dialect == "chlo":
        types = ", ".join([x.text for x in xs])
        return w.op1(f"chlo.{short} {names} : {types} -> {xs[0].text}", xs[0].type)
    return w.op1(f"stablehlo.{short} {names} : {xs[0].text}", xs[0].type)


def mapped(w: Writer, name: str, type_: ArrayType, *xs: Val) -> Val:
    """Write an operation whose result has another type than its operands."""
    names = ", ".join([x.name for x in xs])
    return w.op1(f"stablehlo.{name} {names} : {signature(xs, type_)}", type_)


def signature(xs: Sequence[Val], *types: ArrayType) -> str:
    """Return a function type."""
    given = ", ".join([tensor(t) for t in types])
    return f"({', '.join([x.text for x in xs])}) -> {given if len(types) == 1 else f'({given})'}"


def numbers(xs: Sequence[int]) -> str:
    """Return a list of numbers."""
    return f"[{', '.join(map(str, xs))}]"


def array(xs: Sequence[int]) -> str:
    """Return an attribute of integers."""
    return f"array<i64: {', '.join(map(str, xs))}>" if xs else "array<i64>"


def compare(w: Writer, direction: str, x: Val, y: Val) -> Val:
    """Compare element by element."""
    kinds = {"int": "SIGNED", "uint": "UNSIGNED", "bool": "UNSIGNED", "void": "UNSIGNED"}
    kind = kinds.get(family(x.type.dtype), "FLOAT")
    type_ = array_type(x.shape, BOOL)
    text = f"stablehlo.compare {direction}, {x}, {y}, {kind} : {signature([x, y], type_)}"
    return w.op1(text, type_)


def select(w: Writer, which: Val, yes: Val, no: Val) -> Val:
    """Select ``yes`` where ``which`` (of the same shape, or a scalar) is true, else ``no``."""
    return w.op1(f"stablehlo.select {which}, {yes}, {no} : {which.text}, {yes.text}", yes.type)


def full(w: Writer, value: Scalar, like: Val) -> Val:
    """Return an array of the type of ``like`` whose elements all equal ``value``."""
    return w.constant(value, like.type)


def convert(w: Writer, x: Val, dtype: DType) -> Val:
    """Convert the elements to another dtype."""
    if x.type.dtype == dtype:
        return x
    if family(dtype) == "bool":
        return compare(w, "NE", x, full(w, 0, x))
    if is_complex(x.type.dtype) and not is_complex(dtype):
        return convert(w, real(w, x), dtype)
    return mapped(w, "convert", x.type.update(dtype=dtype), x)


def real(w: Writer, x: Val) -> Val:
    """Return the real part."""
    return mapped(w, "real", x.type.update(dtype=real_dtype(x.type.dtype)), x)


def imag(w: Writer, x: Val) -> Val:
    """Return the imaginary part."""
    return mapped(w, "imag", x.type.update(dtype=real_dtype(x.type.dtype)), x)


def bitcast(w: Writer, x: Val, dtype: DType) -> Val:
    """Reinterpret the bits as another dtype of the same width."""
    return mapped(w, "bitcast_convert", x.type.update(dtype=dtype), x)


def reshape(w: Writer, x: Val, shape: Shape) -> Val:
    """Reshape the operand."""
    return x if x.shape == shape else mapped(w, "reshape", x.type.update(shape=shape), x)


def broadcast(w: Writer, x: Val, shape: Shape, dims: Sequence[int]) -> Val:
    """Broadcast to a larger shape, in which operand axis ``i`` is axis ``dims[i]``."""
    if x.shape == shape:
        return x
    if not x.shape:
        return w.repeat(x, shape)
    type_ = x.type.update(shape=shape)
    text = f"stablehlo.broadcast_in_dim {x}, dims = {numbers(dims)} : {signature([x], type_)}"
    return w.op1(text, type_)


def transpose(w: Writer, x: Val, permutation: Sequence[int]) -> Val:
    """Permute axes: result axis ``i`` is operand axis ``permutation[i]``."""
    if tuple(permutation) == tuple(range(len(x.shape))):
        return x
    type_ = x.type.update(shape=tuple([x.shape[p] for p in permutation]))
    return w.op1(
        f"stablehlo.transpose {x}, dims = {numbers(permutation)} : {signature([x], type_)}", type_
    )


def reverse(w: Writer, x: Val, dims: Sequence[int]) -> Val:
    """Reverse the operand along axes."""
    return w.op1(f"stablehlo.reverse {x}, dims = {numbers(dims)} : {x.text}", x.type) if dims else x


def slice_(
    w: Writer, x: Val, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> Val:
    """Slice each axis: ``x[start:limit:stride]``."""
    shape = tuple([-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True)])
    if shape == x.shape:
        return x
    spans = ", ".join(
        [
            f"{a}:{b}" if s == 1 else f"{a}:{b}:{s}"
            for a, b, s in zip(starts, limits, strides, strict=True)
        ]
    )
    type_ = x.type.update(shape=shape)
    return w.op1(f"stablehlo.slice {x} [{spans}] : {signature([x], type_)}", type_)


def pad(w: Writer, x: Val, value: Val, config: Sequence[tuple[int, int, int]]) -> Val:
    """Pad each axis by ``(low, high, interior)`` elements of ``value``."""
    shape = tuple(
        [
            low + n + max(n - 1, 0) * inner + high
            for n, (low, high, inner) in zip(x.shape, config, strict=True)
        ]
    )
    type_ = x.type.update(shape=shape)
    low, high, inner = (numbers([c[i] for c in config]) for i in range(3))
    text = f"stablehlo.pad {x}, {value}, low = {low}, high = {high}, interior = {inner}"
    return w.op1(f"{text} : {signature([x, value], type_)}", type_)


def iota(w: Writer, type_: ArrayType, dimension: int) -> Val:
    """Return ``0, 1, 2, ...`` along an axis."""
    return w.op1(f"stablehlo.iota dim = {dimension} : {tensor(type_)}", type_)


def concatenate(w: Writer, xs: Sequence[Val], dimension: int) -> Val:
    """Concatenate the operands along an axis."""
    if len(xs) == 1:
        return xs[0]
    shape = list(xs[0].shape)
    shape[dimension] = sum([x.shape[dimension] for x in xs])
    type_ = xs[0].type.update(shape=tuple(shape))
    names = ", ".join([x.name for x in xs])
    text = f"stablehlo.concatenate {names}, dim = {dimension} : {signature(xs, type_)}"
    return w.op1(text, type_)


def dynamic_slice(w: Writer, x: Val, starts: Sequence[Val], sizes: Shape) -> Val:
    """Return the window of these sizes at these starts, which are clamped so that it fits."""
    if sizes == x.shape:
        return x
    type_ = x.type.update(shape=sizes)
    if w.divided:
        return _window_of_parts(w, x, starts, type_)
    names = ", ".join([x.name, *[s.name for s in starts]])
    text = f"stablehlo.dynamic_slice {names}, sizes = {numbers(sizes)}"
    return w.op1(f"{text} : {signature([x, *starts], type_)}", type_)


def _window_of_parts(w: Writer, x: Val, starts: Sequence[Val], type_: ArrayType) -> Val:
    """Return a window of an array that may be divided over devices.

    A ``dynamic_slice`` gathers the whole array first, a ``gather`` the window.
    """
    one = starts[0].type.update(shape=(1,))
    at = concatenate(w, [reshape(w, s, one.shape) for s in starts], 0)
    every = numbers(range(len(x.shape)))
    text = (
        f'"stablehlo.gather"({x}, {at}) <{{dimension_numbers = #stablehlo.gather<offset_dims = '
        f"{every}, start_index_map = {every}>, slice_sizes = {array(type_.shape)}}}>"
    )
    return w.op1(f"{text} : {signature([x, at], type_)}", type_)


def clamped(w: Writer, x: Val, low: int, high: int) -> Val:
    """Return integers moved into bounds."""
    scalar = x.type.update(shape=())
    return mapped(w, "clamp", x.type, w.constant(low, scalar), x, w.constant(high, scalar))


def dynamic_update_slice(w: Writer, x: Val, update: Val, starts: Sequence[Val]) -> Val:
    """Return ``x`` with ``update`` at these starts, which are clamped so that it fits."""
    if update.shape == x.shape:
        return update
    if w.divided:
        # XLA drops a window out of bounds if it divides the array.
        rooms = [n - m for n, m in zip(x.shape, update.shape, strict=True)]
        starts = [clamped(w, s, 0, room) for s, room in zip(starts, rooms, strict=True)]
    return mapped(w, "dynamic_update_slice", x.type, x, update, *starts)


def reduce(w: Writer, name: str, x: Val, start: Val, axes: Sequence[int]) -> Val:
    """Reduce along axes by an operation of the dialect."""
    shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
    type_ = x.type.update(shape=shape)
    text = f"stablehlo.reduce({x} init: {start}) applies stablehlo.{name} across dimensions = "
    return w.op1(f"{text}{numbers(axes)} : {signature([x, start], type_)}", type_)


def index_dtype(types: Sequence[ArrayType], sizes: Shape = ()) -> DType:
    """Return int32 if it represents every index of these types into these sizes, else int64."""
    wide = any(t.dtype.name in ("uint32", "int64", "uint64") for t in types)
    return INT64 if wide or any(n > 2**31 - 1 for n in sizes) else INT32


def index(w: Writer, i: Val, dtype: DType) -> Val:
    """Convert an index to a signed dtype; an index out of range stays out of range."""
    if i.type.dtype.name == "uint64":
        i = same(w, "minimum", i, full(w, 2**63 - 1, i))
    return convert(w, i, dtype)


def while_(
    w: Writer,
    state: Sequence[Val],
    again: Callable[..., Sequence[Val]],
    step: Callable[..., Sequence[Val]],
) -> tuple[Val, ...]:
    """Loop: ``state = step(*state)`` while ``again(*state)``; both may use outer values."""
    types = [v.type for v in state]
    condition = w.region(types, again, captures=True)
    body = w.region(types, step, captures=True)
    names = ", ".join([v.name for v in state])
    text = f'"stablehlo.while"({names}) ({condition}, {body}) : {signature(state, *types)}'
    return w.op(text, *types)
