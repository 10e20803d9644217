"""effax.lowering.compile: programs and modules as functions of arrays, and as files."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.experimental import io_callback
from effax.ir.errors import BadArgument, EffaxError, IllTyped, LoweringError
from effax.ir.types import array_type
from effax.lowering import CompiledModule, artifact, compile, executables, load, xla
from effax.lowering.mlir_text import tensor, type_of_tensor
from effax.testing.strategies import DTYPES

jax: Any = effax
ONES = np.ones(3, np.float32)

ADD = """
func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<i1>) {
  %c = stablehlo.constant dense<true> : tensor<i1>
  %z = stablehlo.add %x, %y : tensor<3xf32>
  return %z, %c : tensor<3xf32>, tensor<i1>
}
"""


NEWER = """
func.func public @main(%x: tensor<3xf8E3M4>) -> tensor<3xf8E3M4> {
  return %x : tensor<3xf8E3M4>
}
"""


@pytest.fixture(scope="module")
def add() -> CompiledModule:
    return compile(ADD)


@pytest.fixture(scope="module")
def program() -> CompiledModule:
    def f(x: Any, r: Any) -> Any:
        r[...] += x
        return jnp.sum(x)

    return compile(jax.make_jaxpr(f)(jnp.ones(3), jax.new_ref(jnp.zeros(3))))


def test_a_module_as_text_is_a_function_of_arrays(add: CompiledModule) -> None:
    z, c = add(ONES, 2 * ONES)
    np.testing.assert_array_equal(z, 3 * ONES)
    assert c.dtype == bool and c.shape == ()
    assert add.in_types == (array_type((3,), "float32"),) * 2
    assert [str(t) for t in add.out_types] == ["f32[3]", "bool[]"]
    assert add.donated == () and add.changed == ()


def test_analyses_and_text(add: CompiledModule) -> None:
    assert "HloModule" in add.as_text()
    assert add.memory_analysis().argument_bytes == 24
    assert add.cost_analysis()["flops"] >= 3


def test_references_become_their_contents(program: CompiledModule) -> None:
    before = np.arange(3, dtype=np.float32)
    total, after = program(ONES, before)
    assert float(total) == 3.0
    np.testing.assert_array_equal(after, [1, 2, 3])
    # A copy of the argument is donated.
    np.testing.assert_array_equal(before, [0, 1, 2])
    assert program.donated == program.changed == (1,)


def test_scalars_are_converted_and_other_types_rejected(add: CompiledModule) -> None:
    scalars = compile(jax.make_jaxpr(lambda x, n: x * n)(jnp.float32(1), jnp.int32(2)).jaxpr)
    assert float(scalars(2, 3)[0]) == 6.0
    for args, message in (
        ((ONES,), "another number of arguments"),
        ((ONES, ONES.astype(np.float64)), "argument 1"),
        ((ONES, np.ones((3, 1), np.float32)), "argument 1"),
        ((1.0, ONES), "argument 0"),
    ):
        with pytest.raises(IllTyped, match=message):
            add(*args)


def test_bytecode_compiles_as_text_does(add: CompiledModule, program: CompiledModule) -> None:
    again = compile(add.portable())
    assert again.in_types == add.in_types and again.out_types == add.out_types
    np.testing.assert_array_equal(again(ONES, ONES)[0], 2 * ONES)
    assert compile(program.portable()).donated == (1,)


@pytest.mark.slow
def test_a_file_is_loaded_with_or_without_its_machine_code(
    program: CompiledModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = program.serialize()
    assert data == program.serialize()
    monkeypatch.setattr(xla, "compile_module", forbidden)
    fast = load(data)
    monkeypatch.undo()
    monkeypatch.setattr(executables, "_maker", lambda: ["another jaxlib"])
    monkeypatch.setattr(xla, "load_executable", forbidden)
    slow = load(data)
    monkeypatch.undo()
    monkeypatch.setattr(xla, "load_executable", refused)
    fallen_back = load(data)
    for found in (fast, slow, fallen_back):
        assert found.changed == found.donated == (1,)
        assert (found.in_types, found.out_types) == (program.in_types, program.out_types)
        np.testing.assert_array_equal(found(ONES, ONES)[1], 2 * ONES)


def forbidden(*_: object) -> None:
    raise AssertionError("this path must not be taken")


def refused(*_: object) -> None:
    raise LoweringError("of another processor")


def test_compile_errors(add: CompiledModule) -> None:
    closed = jax.make_jaxpr(lambda x: x + np.arange(3.0))(jnp.ones(3))
    for program, error, message in (
        (lambda x: x, BadArgument, "make_jaxpr"),
        (closed, BadArgument, "`.consts` first"),
        ("module @m {", LoweringError, "not a StableHLO module"),
        ("func.func @other() { return }", LoweringError, "no function `main`"),
        (ADD.replace("3xf32", "?xf32"), LoweringError, "not an array of static shape"),
        (b"no bytecode", LoweringError, "portable StableHLO"),
    ):
        with pytest.raises(error, match=message):
            compile(program)  # type: ignore[arg-type]  # the first one is none
    assert np.array_equal(compile(closed.jaxpr)(*closed.consts, ONES)[0], [1, 2, 3])


def test_callbacks_run_but_are_not_serialized() -> None:
    def f(x: Any) -> Any:
        io_callback(lambda _: None, None, x)
        return x + 1

    compiled = compile(jax.make_jaxpr(f)(1.0))
    assert float(compiled(1.0)[0]) == 2.0
    for write in (compiled.serialize, compiled.portable):
        with pytest.raises(LoweringError, match="Python functions"):
            write()


def test_load_errors(add: CompiledModule) -> None:
    data = add.serialize()
    for wrong in (b"", b"PK", data[: len(data) // 2], np.arange(100, dtype=np.uint8).tobytes()):
        with pytest.raises(LoweringError, match="this is not a valid compiled module"):
            load(wrong)
    kind, parts = executables.KIND, artifact.unpack(executables.KIND, data)
    with pytest.raises(LoweringError, match=r"expected: +something else"):
        artifact.unpack("something else", data)
    for header, message in (
        ({**parts.header, "format": 99}, "newer version"),
        ({**parts.header, "changed": None}, "damaged"),
    ):
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("header.json", json.dumps({**header, "kind": kind}))
            for name, part in parts.parts.items():
                archive.writestr(name, part)
        with pytest.raises(EffaxError, match=message):
            load(out.getvalue())


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 5)])
def test_types_parse_from_their_text(shape: tuple[int, ...]) -> None:
    for dtype in DTYPES:
        assert type_of_tensor(tensor(array_type(shape, dtype))) == array_type(shape, dtype)


@pytest.mark.parametrize(
    "text", ["tensor<*xf32>", "tensor<?xf32>", "tensor<3xf99>", "!stablehlo.token", "f32", ""]
)
def test_types_other_than_arrays_are_rejected(text: str) -> None:
    with pytest.raises(LoweringError, match="not an array of static shape"):
        type_of_tensor(text)


@pytest.mark.slow
def test_import_does_not_load_xla() -> None:
    code = "import effax.lowering, sys; print('jaxlib' in sys.modules)"
    root = Path(effax.__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"


def test_optimization_level() -> None:
    quick = compile(ADD, optimization=0)
    np.testing.assert_array_equal(quick(ONES, ONES)[0], 2 * ONES)
    assert isinstance(quick.executable, xla.Executable)


def test_scalars_convert_without_loss() -> None:
    halved = compile(jax.make_jaxpr(lambda x, n: (x / 2, n, x + 0j))(1.0, 1))
    assert [float(x.real) for x in halved(3, 4)] == [1.5, 4.0, 3.0]
    assert float(halved(True, True)[0]) == 0.5
    for args in ((1.0, 3.5), (1.0, 2**40), (1j, 1)):
        with pytest.raises(IllTyped, match="a number that its type does not represent"):
            halved(*args)
    for given in ("abc", None, object(), np.array([1, "a"], object)):
        with pytest.raises(IllTyped, match="argument 1 of a compiled module has another type"):
            halved(1.0, given)


def test_programs_are_checked(add: CompiledModule) -> None:
    jaxpr = jax.make_jaxpr(lambda x: x * 2)(1.0).jaxpr
    with pytest.raises(IllTyped, match="not in scope"):
        compile(jaxpr.replace(eqns=[]))
    for level in (4, "3", None):
        with pytest.raises(BadArgument, match="optimization"):
            compile(jaxpr, optimization=level)  # type: ignore[arg-type]  # that is the point
    assert "func.func" not in repr(add)


def test_pickle(add: CompiledModule) -> None:
    again = pickle.loads(pickle.dumps(add))
    np.testing.assert_array_equal(again(ONES, ONES)[0], 2 * ONES)


def test_versions_of_stablehlo(add: CompiledModule) -> None:
    assert b"StableHLO_v1.0.0" in add.portable("1.0.0")[:40]
    for version in ("abc", "99.0.0", "0.1.0", 3):
        with pytest.raises(BadArgument, match="does not write this version"):
            add.portable(version)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(LoweringError, match=r"written for StableHLO 0\.9\.0"):
        compile(NEWER).portable("0.9.0")


def test_damaged_bytes_are_reported(add: CompiledModule) -> None:
    data = add.serialize()
    for i in range(0, len(data), len(data) // 60):
        for wrong in (data[:i], data[:i] + bytes([data[i] ^ 0x11]) + data[i + 1 :]):
            try:
                load(wrong)
            except LoweringError as error:
                assert "no compiled module" in str(error) or "damaged" in str(error)  # noqa: PT017
    for given in (None, "abc"):
        with pytest.raises(BadArgument, match="from bytes"):
            load(given)  # type: ignore[arg-type]  # that is the point
