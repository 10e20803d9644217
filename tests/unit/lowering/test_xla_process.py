"""The adapter's effects on the process: modules that it loads, coexistence with jax."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

USE_EFFAX = '''
import ml_dtypes, numpy as np
from effax.ir.types import array_type
from effax.ir.prims.linalg import Lu
from effax.lowering import compile, xla
from tests.unit.lowering.compiled import applied
from tests.unit.lowering.programs import accumulate, add_one

def use_effax():
    """Whatever the adapter can do, 64-bit types among it."""
    f64 = array_type((100,), np.float64)
    call = xla.compile_module(accumulate(f64), 2, [f64, f64])
    ref, one = xla.new_ref_buffer(np.full(100, 2.0**40)), xla.put(np.ones(100))
    address, view = xla.pointer(ref), xla.raw_view(ref)
    _, ref = call([ref, one])
    view += 1
    assert xla.pointer(ref) == address
    assert xla.to_numpy(ref).dtype == np.float64
    assert (xla.to_numpy(ref) == 2.0**40 + 2).all()
    xla.block(ref, one)

    half = xla.put(np.ones(3, ml_dtypes.bfloat16))
    assert xla.to_numpy(half).dtype == ml_dtypes.bfloat16
    assert xla.to_dlpack(half) is not None
    assert xla.to_numpy(xla.from_dlpack(np.arange(3))).tolist() == [0, 1, 2]

    add = xla.compile_module(add_one(), 1, [array_type((), np.float32)])
    for number in range(3):
        assert xla.to_numpy(add([xla.put(np.float32(number))])[0]) == number + 1
    assert xla.from_portable(xla.to_portable(add_one()))
    assert add.optimized_hlo() and add.cost_analysis() and add.memory_analysis().output_bytes
    xla.load_executable(add.serialize(), 1, add.out_types)

    matrix = np.array([[1, 2], [3, 4.0]])
    factorise = compile(applied(Lu(), matrix))
    assert "lapack_dgetrf" in factorise.stablehlo
    assert factorise(matrix)[2].tolist() == [1, 0]
'''

USE_JAX = '''
import jax, jax.numpy as jnp

def use_jax(wide):
    """jax's own state is its own: 64 bits or not, transformations, donation, printing."""
    assert jax.config.jax_enable_x64 is wide
    dtype = jnp.float64 if wide else jnp.float32
    assert jnp.asarray(np.ones(3)).dtype == dtype
    assert jax.jit(lambda x: x + 1)(np.float64(1)).dtype == dtype
    assert jax.jit(jax.grad(lambda x: x**2))(3.0) == 6.0
    assert jnp.arange(3).sum() == 3 and repr(jnp.ones(2)).startswith("Array([1., 1.]")
    double = jax.jit(lambda x: x * 2, donate_argnums=0)
    x = jnp.ones(3)
    assert double(x).tolist() == [2, 2, 2] and x.is_deleted()
    assert jax.jit(jnp.linalg.inv)(2 * jnp.eye(2)).tolist() == [[0.5, 0], [0, 0.5]]
'''


def run(code: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_import_loads_no_jaxlib() -> None:
    code = "import sys, effax.lowering.xla; print(*{'jax', 'jaxlib'} & set(sys.modules))"
    assert run(code).split() == []


def test_nothing_imports_jax() -> None:
    watch = """
import sys
class Watch:
    tried = []
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "jax":
            self.tried.append(name)
sys.meta_path.insert(0, Watch())
"""
    code = f"{watch}{USE_EFFAX}\nuse_effax()\nprint(Watch.tried, 'jaxlib' in sys.modules)"
    assert run(code).split() == ["[]", "True"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("sys.modules['jaxlib'] = None", "XLA cannot be loaded"),
        ("jaxlib.version.__version_info__ = (0, 10, 1)", "this jaxlib is too old"),
    ],
    ids=["missing", "old"],
)
def test_a_jaxlib_that_is_missing_or_too_old_is_an_error(fault: str, message: str) -> None:
    code = f"""
import sys
import jaxlib.version
from effax.ir.errors import LoweringError
from effax.lowering import xla
{fault}
try:
    xla.devices()
except LoweringError as error:
    print(error)
"""
    printed = run(code)
    assert message in printed
    assert "pip install" in printed


def test_a_file_that_calls_lapack_runs_in_another_process(tmp_path: Path) -> None:
    """Its portable module calls no library, and returns the same results."""
    write, read = (
        """
import sys, numpy as np
from effax.ir.prims.linalg import Lu
from effax.lowering import compile
from tests.unit.lowering.compiled import applied
made = compile(applied(Lu(), np.eye(3)))
assert "lapack_" in made.stablehlo
open(sys.argv[1], "wb").write(made.serialize())
""",
        """
import sys, numpy as np
from effax.lowering import compile, load
read = load(open(sys.argv[1], "rb").read())
assert "lapack_" in read.as_text() and "lapack_" not in read.stablehlo
matrix = np.array([[1, 2, 3], [4, 5, 7], [7, 9, 9.0]])
portable = compile(read.portable())
assert "lapack_" not in portable.as_text()
for found, wanted in zip(read(matrix), portable(matrix), strict=True):
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
""",
    )
    for code in (write, read):
        run(code, str(tmp_path / "lu.zip"))


def test_asynchronous_calls_return_before_they_are_done() -> None:
    code = """
import numpy as np
from effax.ir.errors import BadArgument
from effax.ir.types import array_type
from effax.lowering import xla
from tests.unit.lowering.programs import slow

xla.start(asynchronous=ASYNCHRONOUS, num_devices=2)
assert xla.start() is xla.backend() is xla.start(asynchronous=ASYNCHRONOUS, num_devices=2)
assert [device.id for device in xla.devices()] == [0, 1]
assert {(device.platform, device.device_kind) for device in xla.devices()} == {("cpu", "cpu")}
try:
    xla.start(asynchronous=not ASYNCHRONOUS)
except BadArgument as error:
    assert "already" in str(error)
else:
    raise AssertionError("started twice")
size = 1000
call = xla.compile_module(slow(size), 1, [array_type((size, size), np.float32)])
x = xla.put(np.eye(size, dtype=np.float32))
(y,) = call([x])
early = y.is_ready()
xla.block(x, y)
assert y.is_ready() and (xla.to_numpy(y) == xla.to_numpy(x)).all()
(z,) = call([y])
assert (xla.raw_view(z) == xla.to_numpy(x)).all()
print(early)
"""
    assert run(code.replace("ASYNCHRONOUS", "True")).split() == ["False"]
    assert run(code.replace("ASYNCHRONOUS", "False")).split() == ["True"]


@pytest.mark.jax
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("first", ["effax", "jax"])
def test_effax_and_jax_live_in_one_process(first: str, wide: bool) -> None:
    widen = f"jax.config.update('jax_enable_x64', {wide})\n"
    if first == "effax":
        start = f"{USE_EFFAX}use_effax()\n{USE_JAX}{widen}use_jax({wide})\n"
    else:
        start = f"{USE_JAX}{widen}import numpy as np\nuse_jax({wide})\n{USE_EFFAX}use_effax()\n"
    both = f"""
for turn in range(2):
    use_jax({wide})
    use_effax()

class Exported:
    def __init__(self, buffer):
        self.buffer = buffer
    def __dlpack__(self, **_):
        return xla.to_dlpack(self.buffer)
    def __dlpack_device__(self):
        return xla.dlpack_device(self.buffer)

there = jax.dlpack.from_dlpack(Exported(xla.put(np.arange(3, dtype=np.float32))))
assert (jax.jit(lambda x: x + 1)(there)).tolist() == [1, 2, 3]
assert xla.to_numpy(xla.from_dlpack(jnp.arange(4.0))).tolist() == [0, 1, 2, 3]

with jax.disable_jit():
    use_effax()
jax.config.update("jax_debug_nans", True)
use_effax()
try:
    jnp.log(-jnp.ones(()))
except FloatingPointError:
    print("done")
"""
    # jax prints a message about the NaN.
    assert run(start + both).split()[-1] == "done"
