"""``import jax`` imports effax after ``install``, and as before after ``uninstall``."""

from __future__ import annotations

import pytest

from tests.unit.drop_in.running import output, python

pytestmark = pytest.mark.slow

IMPORTS = """
import effax.drop_in
effax.drop_in.install()
effax.drop_in.install()
import sys
import effax
import jax, jax.numpy as jnp, jax.numpy.linalg
import jax.experimental
from jax import lax, numpy, tree_util
from jax.nn.initializers import glorot_normal
from jax.numpy import *
assert jnp is numpy is jax.numpy is sys.modules["jax.numpy"]
assert jnp.sin is sin is effax.numpy.sin
assert jax.lax.add is effax.lax.add and jax.Array is effax.Array
for statement in ("import jax._src.unknown", "from jax import pmapp", "from jax.numpy import snh"):
    try:
        exec(statement)
    except ImportError as error:
        assert isinstance(error, effax.drop_in.MissingModule)
        print(str(error).split("\\n")[0])
assert not hasattr(jax, "pmapp")
effax.drop_in.uninstall()
effax.drop_in.uninstall()
assert not [m for m in sys.modules if m.split(".")[0] == "jax"]
assert jnp.sin(0.0) == 0.0
"""

REFUSAL = """
import sys, types
import effax.drop_in
sys.modules["jax"] = real = types.ModuleType("jax")
before = list(sys.meta_path)
try:
    effax.drop_in.install()
except ImportError as error:
    print(error)
assert sys.modules["jax"] is real and sys.meta_path == before
"""


def test_imports_of_modules_and_names() -> None:
    shown = output("-c", IMPORTS).splitlines()
    names = ["jax._src.unknown", "jax.pmapp", "jax.numpy.snh"]
    assert shown == [f"effax lacks {name}" for name in names]


def test_jax_that_is_imported_is_not_replaced() -> None:
    shown = output("-c", REFUSAL)
    assert shown.startswith("jax is imported already\n")
    assert "restart the notebook's kernel" in shown


def test_the_import_of_jax_loads_no_xla() -> None:
    code = "from effax.drop_in import install; install(); import jax, sys; print(*sys.modules)"
    assert "jaxlib" not in output("-c", code).split()


def test_usage() -> None:
    assert output("-m", "effax.drop_in", "--help").startswith("usage: ")
    failed = python("-m", "effax.drop_in", "-m")
    assert failed.returncode == 2
    assert failed.stderr.startswith("usage: ")
