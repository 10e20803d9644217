"""The Array API standard: inspection, devices, exchange, and its special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.ir.errors import BadArgument


def test_namespace_of_an_array() -> None:
    x = jnp.ones(2)
    assert x.__array_namespace__() is jnp
    assert x.__array_namespace__(api_version="2025.12") is jnp
    assert (jax.jit(lambda a: a.__array_namespace__().negative(a))(x) == -x).all()
    with pytest.raises(BadArgument, match="Array API"):
        x.__array_namespace__(api_version="2020.1")


def test_inspection() -> None:
    info = jnp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.capabilities()["boolean indexing"]
    assert info.default_dtypes()["indexing"] == jnp.int32
    assert set(info.dtypes(kind="real floating")) == {"float32"}
    with jax.enable_x64(True):
        assert set(info.dtypes(kind=("bool", "complex floating"))) == {
            *("bool", "complex64", "complex128")
        }
        assert info.default_dtypes()["integral"] == jnp.int64
    with pytest.raises(BadArgument, match="device"):
        info.dtypes(device="tpu")


def test_exchange_by_dlpack() -> None:
    x: Any = jnp.arange(3.0)
    assert (np.from_dlpack(x) == x.numpy()).all()
    shared: Any = np.from_dlpack(_Shared(x))
    assert shared.ctypes.data == x.unsafe_buffer_pointer()
    assert jnp.from_dlpack(jnp.ones(2, jnp.bfloat16), copy=True).dtype == jnp.bfloat16
    with pytest.raises(BufferError, match="host"):
        x.__dlpack__(dl_device=(2, 0))
    assert jnp.from_dlpack(x, device=x.device, copy=False) is x


class _Shared:
    """An array whose capsules share its memory."""

    def __init__(self, x: jax.Array) -> None:
        self.x: Any = x

    def __dlpack__(self, **_: object) -> Any:
        return self.x.__dlpack__(max_version=(1, 0), copy=False)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


QUOTIENTS = [
    *[(-0.0, 1.0, -0.0, 0.0), (-0.0, -1.0, 0.0, -0.0), (0.0, -1.0, -0.0, -0.0)],
    *[(jnp.inf, 2.0, jnp.inf, jnp.nan), (1.0, -jnp.inf, -0.0, -jnp.inf), (-1.0, -3.0, 0.0, -1.0)],
    *[(6.0, -3.0, -2.0, -0.0), (-6.0, 3.0, -2.0, 0.0), (1.0, 0.0, jnp.inf, jnp.nan)],
]
"""Two operands, the quotient and the remainder."""


def test_floor_divide_and_remainder_at_zeros_and_infinities() -> None:
    a, b, quotients, rests = (jnp.array(column) for column in zip(*QUOTIENTS, strict=True))
    for f, wanted in ((jnp.floor_divide, quotients), (jnp.remainder, rests)):
        for found in (f(a, b), jax.jit(f)(a, b)):
            assert _same(found, wanted), f.__name__
    assert jax.grad(jnp.remainder)(6.0, -3.0) == 1.0


def test_sign_of_zeros_is_zero() -> None:
    for x in (jnp.array([-0.0, 0.0, -2.0, jnp.nan]), jnp.array([complex(-0.0, -0.0), 3j])):
        for f in (jnp.sign, jax.jit(jnp.sign)):
            assert not np.signbit(np.real(f(x))[:1]).any()
            assert _same(f(x), jnp.sign(x))


INF, NAN = np.inf, np.nan
C99 = [
    ("exp", complex(INF, INF), complex(INF, NAN)),
    ("exp", complex(-INF, NAN), 0j),
    ("exp2", complex(INF, 0), complex(INF, 0)),
    ("expm1", complex(-INF, INF), complex(-1, 0)),
    ("log", complex(NAN, INF), complex(INF, NAN)),
    ("sqrt", complex(-INF, NAN), complex(NAN, INF)),
    ("sqrt", complex(NAN, -INF), complex(INF, -INF)),
    ("sin", complex(INF, INF), complex(NAN, INF)),
    ("cosh", complex(-INF, 0), complex(INF, -0.0)),
    ("sinh", complex(100, INF), complex(NAN, NAN)),
    ("tan", complex(NAN, 0), complex(NAN, 0)),
    ("tanh", complex(INF, 2), complex(1, 0)),
    ("arcsin", complex(-0.0, NAN), complex(-0.0, NAN)),
    ("arccos", complex(0, NAN), complex(np.pi / 2, NAN)),
    ("arctan", complex(1, -0.0), complex(np.pi / 4, -0.0)),
    ("arcsinh", complex(NAN, -0.0), complex(NAN, -0.0)),
    ("arctanh", complex(NAN, 1), complex(NAN, NAN)),
]


@pytest.mark.slow
def test_complex_functions_at_infinities_and_nan_follow_c99() -> None:
    run = jax.jit(lambda xs: [getattr(jnp, name)(x) for (name, *_), x in zip(C99, xs, strict=True)])
    compiled = run([jnp.complex64(x) for _, x, _ in C99])
    for (name, x, wanted), found in zip(C99, compiled, strict=True):
        assert _same(found, np.complex64(wanted)), (name, x)
        assert _same(getattr(jnp, name)(jnp.complex64(x)), np.complex64(wanted)), (name, x)


@pytest.mark.slow
def test_complex_powers_of_infinities_are_those_of_the_formula() -> None:
    x = jnp.array([complex(INF, 0), complex(-INF, -1), complex(NAN, 0), 2 + 1j])
    y = jnp.array([-0.5 + 0j, -0.5 + 0j, 0j, complex(-INF, 0)])
    assert _same(jax.jit(jnp.power)(x, y), np.array([0, 0, 1, 0], np.complex64), signed=False)
    assert _same(jnp.power(x, y), np.array([0, 0, 1, 0], np.complex64), signed=False)


def _same(x: Any, y: Any, signed: bool = True) -> bool:
    """Return whether values are near, nan equal nan, and signs of zeros equal beside numbers."""
    x, y = np.atleast_1d(x), np.atleast_1d(y)
    if x.dtype.kind == "c":
        known = signed and not np.isnan(x).any()
        return all(_same(part(x), part(y), known) for part in (np.real, np.imag))
    zeros = (x == 0) & (y == 0)
    return bool(
        np.allclose(x, y, equal_nan=True)
        and (not signed or (np.signbit(x) == np.signbit(y))[zeros].all())
    )
