"""Executables: results, costs, errors."""

from __future__ import annotations

import gc
import re
import weakref

import numpy as np
import pytest

from effax.ir.errors import BadArgument, LoweringError
from effax.ir.types import array_type
from effax.lowering import xla
from tests.unit.lowering.programs import F32, accumulate, add_one, main, slow, store_one, tensor


def test_a_module_runs() -> None:
    call = xla.compile_module(add_one(), 1, [F32])
    (out,) = call([xla.put(np.float32(2))])
    assert xla.to_numpy(out) == 3
    assert xla.buffer_array_type(out) is F32


def test_outputs_have_the_declared_types() -> None:
    weak = array_type((), np.float32, weak=True)
    (out,) = xla.compile_module(add_one(), 1, [weak])([xla.put(np.float32(2), weak=True)])
    assert xla.buffer_array_type(out) is weak


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64], ids=lambda d: d.__name__)
def test_64_bits_stay_64_bits(dtype: type[np.generic]) -> None:
    type_ = array_type((2,), dtype)
    call = xla.compile_module(accumulate(type_), 2, [type_, type_])
    big = np.array([2**52, 1], dtype)
    _, total = call([xla.new_ref_buffer(big), xla.put(np.ones(2, dtype))])
    assert xla.to_numpy(total).dtype == dtype
    assert xla.to_numpy(total).tolist() == [2**52 + 1, 2]


def test_no_arguments_and_no_results() -> None:
    one = main([], "%c = stablehlo.constant dense<1.0> : tensor<f32>", ["%c"], ["tensor<f32>"])
    (out,) = xla.compile_module(one, 0, [F32])([])
    assert xla.to_numpy(out) == 1
    assert xla.compile_module(main(["%x: tensor<f32>"], "", [], []), 1, [])([out]) == []


def test_an_unused_argument_counts() -> None:
    text = main(["%x: tensor<f32>", "%y: tensor<7xf32>"], "", ["%x"], ["tensor<f32>"])
    (out,) = xla.compile_module(text, 2, [F32])(
        [xla.put(np.float32(2)), xla.put(np.zeros(7, np.float32))]
    )
    assert xla.to_numpy(out) == 2


@pytest.mark.parametrize("optimization", [0, 1, 2, 3])
def test_results_do_not_depend_on_the_optimization(optimization: xla.Optimization) -> None:
    call = xla.compile_module(slow(16), 1, [array_type((16, 16), np.float32)], optimization)
    value = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    (out,) = call([xla.put(value)])
    np.testing.assert_allclose(xla.to_numpy(out), value @ value @ value, rtol=1e-4, atol=1e-4)


# In place.


def test_storing_one_element_copies_nothing() -> None:
    size = 25_000_000
    type_ = array_type((size,), np.float32)
    call = xla.compile_module(store_one(size), 3, [type_])
    assert not re.findall(rf"f32\[{size}\]\S* copy", call.optimized_hlo())
    memory = call.memory_analysis()
    assert memory.alias_bytes == memory.output_bytes == 4 * size
    assert memory.temp_bytes < 1000
    assert memory.peak_bytes < 4 * size + 1000

    ref = xla.new_ref_buffer(np.zeros(size, np.float32))
    address, view = xla.pointer(ref), xla.raw_view(ref)
    for index in (0, 17, size - 1):
        value = xla.put(np.full(1, index + 1, np.float32))
        (ref,) = call([ref, value, xla.put(np.int32(index))])
        assert xla.pointer(ref) == address
        assert view[index] == index + 1
    assert np.count_nonzero(view) == 3


def test_without_an_alias_the_argument_lives() -> None:
    call = xla.compile_module(add_one(), 1, [F32])
    assert call.memory_analysis().alias_bytes == 0
    x = xla.put(np.float32(2))
    (out,) = call([x])
    assert not xla.is_deleted(x)
    assert xla.pointer(out) != xla.pointer(x)


def test_memory_analysis_adds_up() -> None:
    type_ = array_type((1000,), np.float32)
    memory = xla.compile_module(accumulate(type_), 2, [type_, type_]).memory_analysis()
    table = 16
    assert memory.argument_bytes == 8000
    assert memory.output_bytes == 8000 + table
    assert memory.alias_bytes == 4000
    assert memory.peak_bytes >= 12_000


def test_a_program_that_needs_room_says_so() -> None:
    type_ = array_type((64, 64), np.float32)
    assert xla.compile_module(slow(64), 1, [type_]).memory_analysis().temp_bytes >= 64 * 64 * 4


def test_cost_analysis_counts_operations() -> None:
    cost = xla.compile_module(slow(64), 1, [array_type((64, 64), np.float32)]).cost_analysis()
    assert cost["flops"] == pytest.approx(2 * 2 * 64**3, rel=0.1)


# Lifetimes.


@pytest.mark.slow
def test_an_executable_keeps_no_argument_alive() -> None:
    call = xla.compile_module(add_one(), 1, [F32])
    x = xla.put(np.float32(2))
    alive = weakref.ref(x)
    outs = call([x])
    del x
    gc.collect()
    assert alive() is None
    assert xla.to_numpy(outs[0]) == 3


@pytest.mark.slow
def test_buffers_do_not_pile_up() -> None:
    type_ = array_type((), np.float32)
    call = xla.compile_module(accumulate(type_), 2, [type_, type_])
    ref, one = xla.new_ref_buffer(np.float32(0)), xla.put(np.float32(1))
    live = xla.backend().client.live_arrays
    gc.collect()
    before = len(live())
    for _ in range(20):
        _, ref = call([ref, one])
    assert len(live()) <= before + 1


# Errors.


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%x, %c", "%x, %d", "undeclared SSA value.*\n.*equation: %r = stablehlo.add %x, %d"),
        ("stablehlo.add", "stablehlo.frob", "frob.*\n.*equation: %r = stablehlo.frob"),
        ("@main", "@other", "must have a main function"),
        ("-> (tensor<f32>)", "-> (tensor<i32>)", "equation: return %r"),
    ],
    ids=["scope", "operation", "main", "type"],
)
def test_a_wrong_module_is_an_error_at_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        xla.compile_module(add_one().replace(old, new), 1, [F32])


@pytest.mark.parametrize(("n_args", "n_outs"), [(0, 1), (2, 1), (1, 0), (1, 2)])
def test_wrong_counts_are_rejected(n_args: int, n_outs: int) -> None:
    with pytest.raises(LoweringError, match=r"found: +1 arguments, 1 results"):
        xla.compile_module(add_one(), n_args, [F32] * n_outs)


def test_arguments_that_do_not_fit_are_rejected_and_nothing_is_donated() -> None:
    type_ = array_type((4,), np.float32)
    t = tensor(type_)
    args = [
        f"%a: {t} {{tf.aliasing_output = 0 : i32}}",
        f"%b: {t} {{tf.aliasing_output = 1 : i32}}",
    ]
    text = main(args, "", ["%a", "%b"], [t, t])
    call = xla.compile_module(text, 2, [type_, type_])
    a, b = (xla.new_ref_buffer(np.ones(4, np.float32)) for _ in range(2))
    short = xla.put(np.ones(3, np.float32))
    for wrong in ([a], [a, b, b], [a, short], [short, a], [a, a]):
        with pytest.raises(LoweringError, match=r"failed.*(.|\n)*found:    \(f32"):
            call(wrong)
        assert not xla.is_deleted(a)
    xla.delete(b)
    with pytest.raises(LoweringError, match=r"\(f32\[4\], f32\[4\] \(deleted or donated\)\)"):
        call([a, b])
    assert xla.to_numpy(a).tolist() == [1, 1, 1, 1]


# Serialization.


def test_portable_bytecode_is_the_same_program() -> None:
    data = xla.to_portable(add_one())
    assert "stablehlo.add" in xla.from_portable(data)
    assert xla.to_portable(xla.from_portable(data)) == xla.to_portable(xla.from_portable(data))
    (out,) = xla.compile_module(data, 1, [F32])([xla.put(np.float32(2))])
    assert xla.to_numpy(out) == 3


def test_portable_bytecode_keeps_aliases() -> None:
    type_ = array_type((1000,), np.float32)
    data = xla.to_portable(accumulate(type_), version="1.8.0")
    assert b"StableHLO_v1.8.0" in data
    call = xla.compile_module(data, 2, [type_, type_])
    assert call.memory_analysis().alias_bytes == 4000


def test_a_compiled_program_can_be_stored() -> None:
    data = xla.compile_module(store_one(100), 3, [array_type((100,), np.float32)]).serialize()
    call = xla.load_executable(data, 3, [array_type((100,), np.float32)])
    ref = xla.new_ref_buffer(np.zeros(100, np.float32))
    address = xla.pointer(ref)
    (ref,) = call([ref, xla.put(np.ones(1, np.float32)), xla.put(np.int32(3))])
    assert xla.pointer(ref) == address
    assert np.flatnonzero(xla.to_numpy(ref)).tolist() == [3]


def test_invalid_bytes_are_rejected() -> None:
    with pytest.raises(LoweringError, match="cannot load this executable"):
        xla.load_executable(b"nothing", 1, [F32])
    with pytest.raises(LoweringError, match="as a portable StableHLO"):
        xla.from_portable(b"nothing")
    with pytest.raises(LoweringError, match="cannot be written"):
        xla.to_portable("nothing")
    with pytest.raises(BadArgument, match=r"0\.0\.1"):
        xla.to_portable(add_one(), version="0.0.1")
    with pytest.raises(LoweringError, match="cannot compile"):
        xla.compile_module(xla.to_portable(add_one())[:-9], 1, [F32])
