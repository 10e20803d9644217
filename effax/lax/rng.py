"""XLA's generators of random numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from ml_dtypes import finfo

from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_shape
from effax.arrays.binding import bind, bind1
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.shapes import broadcast_to, reshape
from effax.ir.build import typing_of
from effax.ir.dtypes import UINT32, DType, as_dtype, family, is_float, width
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.primitive import Value
from effax.ir.prims import IoCallback, RngBitGenerator
from effax.ir.prims.host import HostFunction
from effax.ir.types import array_type
from effax.lax import elementwise as el
from effax.lax.bits import bitcast_convert_type
from effax.lax.threefry import bits_of_state

__all__ = ["RandomAlgorithm", "rng_bit_generator", "rng_uniform"]


class RandomAlgorithm(IntEnum):
    """Algorithm of :func:`rng_bit_generator`."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: ArrayLike,
    shape: int | Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: int = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: object = None,
) -> tuple[Array, Array]:
    """Return the next state of XLA's generator, and random bits.

    Args:
        key: state, u32[4] or u64[2].
        shape: shape of the bits.
        dtype: unsigned dtype of the bits.
        algorithm: RNG_DEFAULT, that of the platform, which is RNG_PHILOX on CPU, or RNG_THREE_FRY.
        out_sharding: sharding of the bits.

    Returns:
        Pair of the next state, like ``key``, and the bits.

    Raises:
        IllTyped: ``key`` has another shape or dtype, or ``dtype`` is not unsigned.
        BadArgument: an unknown algorithm.

    >>> state, bits = lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (2,))
    >>> bits.shape, state.shape
    ((2,), (4,))
    """
    if algorithm not in tuple(RandomAlgorithm):
        raise BadArgument("unknown algorithm", "a RandomAlgorithm", repr(algorithm))
    state = as_value(key, "the state of rng_bit_generator")
    wide = state.type.dtype.name == "uint64" and state.shape == (2,)
    words = reshape(bitcast_convert_type(state, UINT32), (4,)) if wide else state
    prim = RngBitGenerator(allowed(dtype), plain_shape(shape, "rng_bit_generator"))
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        typing_of(prim, (words.type,))  # The same operands are refused.
        after, bits = bits_of_state(words, prim.shape, prim.dtype)
    else:
        after, bits = _next(prim, words)
    if wide:
        after = bitcast_convert_type(reshape(after, (2, 2)), state.dtype)
    return after, on_device(bits, out_sharding, "rng_bit_generator")


def _next(prim: RngBitGenerator, state: Array) -> tuple[Array, Array]:
    after, bits = bind(prim, state)
    assert isinstance(after, Array) and isinstance(bits, Array)
    return after, bits


@dataclass(frozen=True)
class _Entropy(HostFunction):
    """A function that returns a new state of the generator at each call."""

    label: str = "rng_uniform"
    arity: int = 0

    def __call__(self, *args: Value) -> Sequence[Value]:
        return (np.frombuffer(os.urandom(16), np.uint32),)


_ENTROPY: Final = _Entropy()


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: int | Sequence[int]) -> Array:
    """Return random numbers of [a, b), others at each call: a side effect. It takes no key.

    Args:
        a: scalar, the least value.
        b: scalar of the same dtype.
        shape: shape of the result.

    Returns:
        Array of shape ``shape``, dtype of ``a``.

    Raises:
        IllTyped: the bounds are not scalars of one dtype of floats or integers.

    >>> lax.rng_uniform(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    low, high = as_value(a, "a bound"), as_value(b, "a bound")
    kind = family(low.dtype)
    if low.shape or high.shape or low.dtype != high.dtype or kind not in ("int", "uint", "float"):
        raise IllTyped(
            "rng_uniform takes two scalars", "floats or integers", f"{low.type}, {high.type}"
        )
    sizes = plain_shape(shape, "rng_uniform")
    state = bind1(IoCallback(_ENTROPY, (array_type((4,), UINT32),)), *())
    needed = bits_of_unit(low.dtype) if is_float(low.dtype) else max(32, width(low.dtype))
    word = as_dtype(f"uint{needed}")
    bits = rng_bit_generator(state, sizes, word)[1]
    span = broadcast_to(el.sub(high, low), sizes)
    if not is_float(low.dtype):
        drawn = el.rem(bits, el.convert_element_type(span, word))
        return el.add(el.convert_element_type(drawn, low.dtype), low)
    unit = unit_of_bits(bits, low.dtype)
    return el.max(el.add(el.mul(unit, span), low), low)


def unit_of_bits(bits: Array, dtype: DType) -> Array:
    """Return numbers of [0, 1) of a float dtype: random mantissas of [1, 2), minus 1.

    Args:
        bits: random bits, of as many bits as :func:`bits_of_unit` returns.
        dtype: the dtype of the result.
    """
    limits = finfo(dtype)  # type: ignore[no-untyped-call]  # it has no types
    word = as_dtype(f"uint{limits.bits}")
    kept = el.shift_right_logical(bits, width(bits.dtype) - int(limits.nmant))
    one = int(np.ones((), dtype).view(word))
    mantissa = el.bitwise_or(el.convert_element_type(kept, word), one)
    return el.sub(bitcast_convert_type(mantissa, dtype), 1.0)


def bits_of_unit(dtype: DType) -> int:
    """Return the number of random bits of which a float dtype's samples are made."""
    limits = finfo(dtype)  # type: ignore[no-untyped-call]  # it has no types
    return 8 if int(limits.nmant) < 8 else int(limits.bits)
