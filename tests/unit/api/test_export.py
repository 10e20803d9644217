"""effax.export: functions as files, references and all."""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.experimental import io_callback
from effax.export import Exported, deserialize, export
from effax.ir.errors import BadArgument, IllTyped, LoweringError, RefError
from effax.lowering import artifact

jax: Any = effax

OLD = Path(__file__).parents[2] / "golden" / "exported-1.zip"
"""An export that an older jaxlib made: it must be read for ever."""

TABLE = jnp.arange(3.0)


def step(params: Any, x: Any, *, scale: Any = 1.0) -> Any:
    """What is exported: trees, a reference, a closed-over array, a number."""
    params["w"][...] += x * scale
    return {"loss": jnp.sum(x * TABLE), "rest": (x > 0, None, [])}


def arguments() -> tuple[Any, Any]:
    return {"w": jax.new_ref(jnp.ones(3))}, jnp.array([1.0, 2.0, -3.0])


@pytest.fixture(scope="module")
def exported() -> Exported:
    params, x = arguments()
    return export(step)(params, x, scale=2.0)


def check(f: Exported) -> None:
    """The call does what the function does."""
    params, x = arguments()
    wanted_params, _ = arguments()
    wanted = step(wanted_params, x, scale=2.0)
    found = f.call(params, x, scale=2.0)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.type == b.type
    np.testing.assert_array_equal(params["w"][...], wanted_params["w"][...])


def test_a_call_is_a_call_of_the_function(exported: Exported) -> None:
    check(exported)
    check(exported)


def test_what_is_read_back_is_what_was_written(exported: Exported) -> None:
    data = exported.serialize()
    again = deserialize(data)
    check(again)
    assert again.serialize() == data
    for name in ("fun_name", "in_tree", "in_avals", "out_tree", "out_avals", "names", "changed"):
        assert getattr(again, name) == getattr(exported, name), name
    assert "stablehlo" in again.mlir_module() or "vhlo" in again.mlir_module()


def test_an_old_file_is_read() -> None:
    old = deserialize(OLD.read_bytes())
    check(old)
    assert old.fun_name == "step"


def test_nothing_is_computed_and_shapes_are_enough() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(type(x).__name__)
        return x @ x

    made = export(jax.jit(f))(jax.ShapeDtypeStruct((2, 2), "float32"))
    assert seen == ["TracedArray"]
    np.testing.assert_array_equal(made.call(jnp.eye(2) * 2), np.eye(2) * 4)
    assert made.fun_name == "f"


def test_dtypes_that_numpy_lacks_and_empty_arrays_are_written() -> None:
    half, empty = jnp.arange(3, dtype="bfloat16"), jnp.zeros((0, 2))
    made = export(lambda x: (x + half, empty))(jnp.ones(3, "bfloat16"))
    found, nothing = deserialize(made.serialize()).call(jnp.ones(3, "bfloat16"))
    assert found.dtype == "bfloat16" and nothing.shape == (0, 2)
    np.testing.assert_array_equal(found.astype("float32"), [1, 2, 3])


def test_a_call_with_other_arguments_is_refused_and_changes_nothing(exported: Exported) -> None:
    params, x = arguments()
    for args, kwargs, told in (
        ((params, x), {}, "another structure"),
        ((params, x, 2.0), {}, "another structure"),
        (({"v": params["w"]}, x), {"scale": 2.0}, "another structure"),
        ((params, x[:2]), {"scale": 2.0}, "another type as x"),
        ((params, x > 0), {"scale": 2.0}, "another type as x"),
        (({"w": x}, x), {"scale": 2.0}, re.escape("another type as params['w']")),
        ((params, params["w"]), {"scale": 2.0}, "another type as x"),
    ):
        with pytest.raises(IllTyped, match=told):
            exported.call(*args, **kwargs)
    with pytest.raises(IllTyped, match="part of no other program"):
        jax.jit(lambda x: exported.call(params, x, scale=2.0))(x)
    np.testing.assert_array_equal(params["w"][...], np.ones(3))


def test_a_reference_is_given_once() -> None:
    def f(r: Any, s: Any) -> None:
        r[...] += 1.0
        s[...] += 2.0

    r, s = jax.new_ref(0.0), jax.new_ref(0.0)
    made = deserialize(export(f)(r, s).serialize())
    made.call(r, s)
    assert (float(r[...]), float(s[...])) == (1.0, 2.0)
    with pytest.raises(RefError, match="as r and as s"):
        made.call(r, r)
    assert float(r[...]) == 1.0


class Pair(NamedTuple):
    """A node that files do not know."""

    x: Any
    y: Any


def test_what_cannot_be_written_is_told() -> None:
    r = jax.new_ref(0.0)
    with pytest.raises(RefError, match="closes over a reference"):
        export(lambda x: x + r[...])(1.0)
    with pytest.raises(LoweringError, match="Python functions"):
        export(lambda x: io_callback(print, None, x))(1.0)
    with pytest.raises(BadArgument, match="callable"):
        export(3)  # type: ignore[arg-type]  # that is the point
    for tree, what in ((Pair(1.0, 2.0), "Pair"), (OrderedDict(a=1.0), "OrderedDict")):
        made = export(lambda x: 1.0)(tree)
        assert float(made.call(tree)) == 1.0
        with pytest.raises(BadArgument, match=what):
            made.serialize()


def test_files_that_are_none_are_told(exported: Exported) -> None:
    with pytest.raises(LoweringError, match="no exported function"):
        deserialize(b"something else")
    kind = "exported function"
    header, parts = artifact.unpack(kind, exported.serialize())
    for wrong in (
        artifact.Artifact({**header, "in_tree": "?"}, parts),
        artifact.Artifact(header, {"module": parts["module"]}),
        artifact.Artifact({k: v for k, v in header.items() if k != "fun_name"}, parts),
        artifact.Artifact({**header, "names": None}, parts),
    ):
        with pytest.raises(LoweringError, match="damaged"):
            deserialize(artifact.pack(kind, wrong))
