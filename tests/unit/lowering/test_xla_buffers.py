"""Buffers: contents, ownership and addresses."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from effax.ir.errors import BadArgument, IllTyped, LoweringError
from effax.ir.types import array_type
from effax.lowering import xla
from effax.lowering.xla.dlpack import TYPE_CODES
from tests.unit.lowering.programs import accumulate

DTYPES = sorted(TYPE_CODES, key=str)
SHAPES = [(), (0,), (3, 0), (1,), (5, 7)]


def sample(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 2).astype(dtype).reshape(shape)


def aligned(shape: tuple[int, ...], dtype: str = "f4", offset: int = 0) -> np.ndarray:
    """Return zeros whose address is ``offset`` past a multiple of 64."""
    nbytes = np.empty(shape, dtype).nbytes
    memory = np.zeros(nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return np.ndarray(shape, dtype, memory, start)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("copy", [None, True])
def test_put_keeps_contents(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], copy: bool | None
) -> None:
    value = sample(shape, dtype)
    buffer = xla.put(value, copy=copy)
    out = xla.to_numpy(buffer)
    assert (out.dtype, out.shape) == (dtype, shape)
    assert out.tobytes() == value.tobytes()
    assert not out.flags.writeable
    assert xla.buffer_array_type(buffer) is array_type(shape, dtype)
    if value.size:
        assert out.ctypes.data == xla.pointer(buffer)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_raw_view_writes_into_the_buffer(
    shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> None:
    buffer = xla.new_ref_buffer(sample(shape, dtype))
    view = xla.raw_view(buffer)
    assert (view.dtype, view.shape, view.flags.writeable) == (dtype, shape, True)
    view[...] = np.ones(shape, dtype)
    assert xla.to_numpy(buffer).tobytes() == np.ones(shape, dtype).tobytes()


def test_weakness_is_part_of_the_type_and_types_are_interned() -> None:
    strong, weak = xla.put(np.float32(1)), xla.put(np.float32(1), weak=True)
    assert xla.buffer_array_type(weak) is array_type((), np.float32, weak=True)
    assert strong.aval is not weak.aval
    assert strong.aval is xla.put(np.ones((), np.float32)).aval
    assert strong.aval is xla.aval_of(array_type((), np.float32))


@pytest.mark.parametrize(
    "value",
    [
        np.arange(24.0)[::-2],
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
        np.broadcast_to(np.float32(3), (4, 5)),
        np.arange(4, dtype=">f8"),
        np.arange(4, dtype=">c16")[::-1],
        np.int64(2**40),
        ml_dtypes.bfloat16(1.5),
    ],
    ids=["reversed", "transposed", "broadcast", "foreign", "foreign reversed", "scalar", "bf16"],
)
@pytest.mark.parametrize("copy", [None, True])
def test_any_layout_and_byte_order_is_taken(
    value: np.ndarray | np.generic, copy: bool | None
) -> None:
    out = xla.to_numpy(xla.put(value, copy=copy))
    assert out.dtype == value.dtype.newbyteorder("=")
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, value)


@pytest.mark.parametrize("offset", [4, 16, 32])
@pytest.mark.parametrize("size", [3, 1_000_000])
def test_memory_that_cannot_be_shared_is_copied_before_put_returns(offset: int, size: int) -> None:
    value = aligned((size,), offset=offset)
    buffer = xla.put(value)
    value[:] = 5
    assert not xla.to_numpy(buffer).any()


@pytest.mark.parametrize("copy", [None, False])
@pytest.mark.parametrize("shape", [(), (3,), (1000, 3)])
def test_aligned_memory_is_shared(shape: tuple[int, ...], copy: bool | None) -> None:
    value = aligned(shape)
    buffer = xla.put(value, copy=copy)
    assert xla.pointer(buffer) == value.ctypes.data
    value[...] = 5
    assert (xla.to_numpy(buffer) == 5).all()


@pytest.mark.slow
def test_shared_memory_lives_as_long_as_the_buffer() -> None:
    value = aligned((1000,))
    alive = weakref.ref(value)
    buffer = xla.put(value, copy=False)
    del value
    gc.collect()
    assert alive() is not None
    del buffer
    gc.collect()
    assert alive() is None


def test_a_copy_is_the_buffers_own() -> None:
    value = aligned((1000,))
    buffer = xla.put(value, copy=True)
    value[:] = 5
    assert xla.pointer(buffer) != value.ctypes.data
    assert not xla.to_numpy(buffer).any()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (aligned((8,), offset=4), "address"),
        (aligned((8,))[::2], "contiguous"),
        (aligned((8,), ">f4"), "order"),
    ],
    ids=["address", "contiguous", "order"],
)
def test_memory_that_cannot_be_shared_is_rejected(value: np.ndarray, reason: str) -> None:
    with pytest.raises(BadArgument, match=reason):
        xla.put(value, copy=False)


@pytest.mark.parametrize("dtype", ["float6_e2m3fn"])
def test_dtypes_that_buffers_do_not_support_are_rejected(dtype: str) -> None:
    with pytest.raises(LoweringError, match="buffers do not support"):
        xla.put(np.zeros(3, getattr(ml_dtypes, dtype)))


@pytest.mark.parametrize("dtype", ["U3", "O"])
def test_dtypes_that_arrays_do_not_support_are_rejected(dtype: str) -> None:
    with pytest.raises(IllTyped):
        xla.put(np.zeros(3, dtype))


def test_a_deleted_buffer_is_an_error_that_says_so() -> None:
    buffer = xla.put(np.float32(1))
    assert not xla.is_deleted(buffer)
    xla.delete(buffer)
    xla.delete(buffer)
    assert xla.is_deleted(buffer)
    for use in (xla.to_numpy, xla.pointer, xla.raw_view, xla.block, xla.to_dlpack):
        with pytest.raises(LoweringError, match=r"was deleted or donated\n.*type f32\[\]"):
            use(buffer)


@pytest.mark.slow
def test_a_view_outlives_its_buffer() -> None:
    for dtype in (np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)):
        view = xla.to_numpy(xla.put(np.ones(1000, dtype), copy=True))
        again = [xla.put(np.zeros(1000, dtype), copy=True) for _ in range(10)]
        gc.collect()
        assert (view == 1).all()
        del again


# The address of a reference.


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_], ids=lambda d: d.__name__)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (5, 7), (25_000_000,)], ids=str)
def test_the_address_outlives_donation_with_writes_in_between(
    shape: tuple[int, ...], dtype: type[np.generic]
) -> None:
    type_ = array_type(shape, dtype)
    call = xla.compile_module(accumulate(type_), 2, [type_, type_])
    ref = xla.new_ref_buffer(np.zeros(shape, dtype))
    address, view = xla.pointer(ref), xla.raw_view(ref)
    one = xla.put(np.ones(shape, dtype))
    for step in range(3):
        given = ref
        _, ref = call([given, one])
        assert xla.is_deleted(given)
        assert xla.pointer(ref) == address
        expected = 1 if dtype is np.bool_ else 11 * step + 1
        assert (view == expected).all()
        view[...] += np.array(1 if dtype is np.bool_ else 10, dtype)
    assert (xla.to_numpy(ref) == view).all()


@pytest.mark.parametrize("make_view", [xla.to_numpy, xla.to_dlpack])
def test_a_live_view_keeps_its_contents_and_moves_the_reference(
    make_view: Callable[[xla.Buffer], object],
) -> None:
    type_ = array_type((1000,), np.float32)
    call = xla.compile_module(accumulate(type_), 2, [type_, type_])
    ref, one = xla.new_ref_buffer(np.zeros(1000, np.float32)), xla.put(np.ones(1000, np.float32))
    address, before = xla.pointer(ref), xla.to_numpy(ref).copy()
    view, snapshot = make_view(ref), xla.to_numpy(ref)
    _, ref = call([ref, one])
    assert xla.pointer(ref) != address
    assert (xla.to_numpy(ref) == 1).all()
    assert (snapshot == before).all()
    del view, snapshot
    address = xla.pointer(ref)
    _, ref = call([ref, one])
    assert xla.pointer(ref) == address


# DLPack.


class Exported:
    """An array that exports a buffer by DLPack."""

    def __init__(self, buffer: xla.Buffer, copy: bool = False) -> None:
        self.buffer = buffer
        self.copy = copy

    def __dlpack__(self, **_: object) -> object:
        return xla.to_dlpack(self.buffer, self.copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return xla.dlpack_device(self.buffer)


def test_numpy_imports_dlpack() -> None:
    buffer = xla.put(np.arange(6, dtype=np.int16).reshape(2, 3), copy=True)
    out = np.from_dlpack(Exported(buffer))  # type: ignore[arg-type]  # the protocol names more
    np.testing.assert_array_equal(out, xla.to_numpy(buffer))
    assert out.ctypes.data == xla.pointer(buffer)
    copied = np.from_dlpack(Exported(buffer, copy=True))  # type: ignore[arg-type]  # as above
    np.testing.assert_array_equal(copied, out)
    assert copied.ctypes.data != out.ctypes.data


class Foreign:
    """An array of another library: NumPy's, wrapped."""

    def __init__(self, array: np.ndarray, kind: int = 1) -> None:
        self.array = array
        self.kind = kind

    def __dlpack__(self) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.kind, 0)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.isbuiltin == 1], ids=str)
def test_dlpack_imports_numpy(dtype: np.dtype[np.generic]) -> None:
    base = sample((4, 6, 2), dtype)
    for array in (base, base[::-1, ::2], base.transpose(1, 2, 0)[::-3], base[:0], base[1, 1, 1:1]):
        np.testing.assert_array_equal(xla.to_numpy(xla.from_dlpack(Foreign(array))), array)
        np.testing.assert_array_equal(xla.to_numpy(xla.from_dlpack(array)), array)
    scalar = np.array(1, dtype)
    assert xla.to_numpy(xla.from_dlpack(Foreign(scalar))) == scalar


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_buffers_travel_through_dlpack(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    source = xla.put(sample(shape, dtype), copy=True)
    shared = xla.from_dlpack(Exported(source), copy=None)
    assert xla.buffer_array_type(shared) is xla.buffer_array_type(source)
    assert xla.to_numpy(shared).tobytes() == xla.to_numpy(source).tobytes()
    if sample(shape, dtype).size:
        assert xla.pointer(shared) == xla.pointer(source)
        assert xla.pointer(xla.from_dlpack(Exported(source), copy=True)) != xla.pointer(source)


@pytest.mark.slow
def test_imported_memory_is_kept_alive() -> None:
    array = aligned((1000,))
    alive = weakref.ref(array)
    imported = xla.from_dlpack(Foreign(array), copy=False)
    del array
    gc.collect()
    assert alive() is not None
    del imported
    gc.collect()
    assert alive() is None


def test_other_devices_and_element_types_are_rejected() -> None:
    with pytest.raises(BadArgument, match="not in the host's memory"):
        xla.from_dlpack(Foreign(np.zeros(3, np.float32), kind=2))

    class Odd(Foreign):
        def __dlpack__(self) -> object:
            capsule = super().__dlpack__()
            get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
            at = get(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"dltensor")
            # DLTensor: data 8, device 8, ndim 4, then the type's code.
            ctypes.c_uint8.from_address(at + 20).value = 3
            return capsule

    with pytest.raises(BadArgument, match="type code 3, 32 bits"):
        xla.from_dlpack(Odd(np.zeros(3, np.float32)))
