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
from effax.api import export_trees
from effax.experimental import io_callback
from effax.export import (
    Exported,
    deserialize,
    export,
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from effax.ir.errors import BadArgument, IllTyped, LoweringError, RefError
from effax.lowering import artifact

jax: Any = effax

OLD = Path(__file__).parents[2] / "golden" / "exported-1.zip"
"""An export that an older jaxlib made: it must be read for ever."""

TABLE = jnp.arange(3.0)


def step(params: Any, x: Any, *, scale: Any = 1.0) -> Any:
    """The exported function: trees, a reference, a closed-over array, a number."""
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
    for args, kwargs, message in (
        ((params, x), {}, "another structure"),
        ((params, x, 2.0), {}, "another structure"),
        (({"v": params["w"]}, x), {"scale": 2.0}, "another structure"),
        ((params, x[:2]), {"scale": 2.0}, "x of an exported function"),
        ((params, x > 0), {"scale": 2.0}, "x of an exported function"),
        (({"w": x}, x), {"scale": 2.0}, re.escape("params['w'] of an exported function")),
        ((params, params["w"]), {"scale": 2.0}, "x of an exported function"),
    ):
        with pytest.raises(IllTyped, match=message):
            exported.call(*args, **kwargs)
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


def test_functions_that_cannot_be_serialized_are_reported() -> None:
    r = jax.new_ref(0.0)
    with pytest.raises(RefError, match="closes over a reference"):
        export(lambda x: x + r[...])(1.0)
    with pytest.raises(LoweringError, match="Python functions"):
        export(lambda x: io_callback(print, None, x))(1.0)
    with pytest.raises(BadArgument, match="callable"):
        export(3)  # type: ignore[arg-type]  # that is the point
    for tree, what in ((Pair(1.0, 2.0), "Pair"), ({(1, 2): 1.0}, "dict")):
        made = export(lambda x: 1.0)(tree)
        assert float(made.call(tree)) == 1.0
        with pytest.raises(BadArgument, match=what):
            made.serialize()


def test_invalid_files_are_reported(exported: Exported) -> None:
    with pytest.raises(LoweringError, match="not a valid exported function"):
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


class Point(NamedTuple):
    """A node that is registered for files."""

    x: Any
    y: Any


class Tagged:
    """A node with auxiliary data."""

    def __init__(self, tag: str, value: Any) -> None:
        self.tag = tag
        self.value = value


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_trees, "_nodes", type(export_trees._nodes)())
    register_namedtuple_serialization(Point, serialized_name="tests.Point")
    register_pytree_node_serialization(
        Tagged,
        serialized_name="tests.Tagged",
        serialize_auxdata=str.encode,
        deserialize_auxdata=bytes.decode,
    )


jax.tree_util.register_pytree_node(
    Tagged, lambda t: ((t.value,), t.tag), lambda tag, children: Tagged(tag, *children)
)


@pytest.mark.usefixtures("registered")
def test_nodes_of_the_users_own_classes_are_written_under_their_names() -> None:
    def f(p: Point, t: Tagged) -> OrderedDict[str, object]:
        return OrderedDict(b=Tagged(t.tag + "!", p.x * t.value), a=Point(p.y, None))

    point, tagged = Point(2.0, jnp.ones(2)), Tagged("é", 3.0)
    data = export(f)(point, tagged).serialize()
    made = deserialize(data).call(point, tagged)
    assert list(made) == ["b", "a"] and type(made) is OrderedDict
    assert (made["b"].tag, float(made["b"].value)) == ("é!", 6.0)
    assert type(made["a"]) is Point and made["a"].y is None
    with pytest.raises(IllTyped, match="another structure"):
        deserialize(data).call(point, Tagged("other", 3.0))
    with pytest.raises(IllTyped, match="another structure"):
        deserialize(data).call(tuple(point), tagged)
    export_trees._nodes.by_name.pop("tests.Point")
    with pytest.raises(LoweringError, match="not registered"):
        deserialize(data)


@pytest.mark.usefixtures("registered")
def test_classes_have_one_name_in_files() -> None:
    register_namedtuple_serialization(Point, serialized_name="tests.Point")
    for cls, name, message in (
        (Pair, "tests.Point", "one class"),
        (Point, "tests.Other", "one class"),
        (Pair, "", "name of a class in files"),
        (dict, "tests.dict", "not a named tuple"),
    ):
        with pytest.raises(BadArgument, match=message):
            register_namedtuple_serialization(cls, serialized_name=name)
    with pytest.raises(BadArgument, match="register_pytree_node"):
        register_pytree_node_serialization(
            int, serialized_name="i", serialize_auxdata=bytes, deserialize_auxdata=bytes
        )


def test_numbers_are_given_where_no_digit_is_lost() -> None:
    made = deserialize(export(lambda x, n: x * n)(1.0, 2).serialize())
    assert float(made.call(3, 4)) == 12.0
    assert float(made.call(True, 4)) == 4.0
    for args in ((3.0, 4.5), (3.0, 2**40), (1j, 4)):
        with pytest.raises(IllTyped, match="a number that its type does not represent"):
            made.call(*args)


def test_static_arguments_are_filled_in() -> None:
    power = jax.jit(lambda x, n: x**n, static_argnums=1)
    assert float(deserialize(export(power)(1.0, 3).serialize()).call(2.0)) == 8.0
    assert float(power.lower(1.0, 3).compile()(2.0)) == 8.0


def test_files_with_a_flipped_bit_are_reported() -> None:
    data = export(lambda x: {"a": x + jnp.arange(3.0)})(jnp.ones(3)).serialize()
    wrong = 0
    for i in range(0, len(data), 3):
        try:
            deserialize(data[:i] + bytes([data[i] ^ 0x11]) + data[i + 1 :])
        except LoweringError:
            wrong += 1
    assert wrong > 100
    with pytest.raises(BadArgument, match="from bytes"):
        deserialize(None)  # type: ignore[arg-type]  # that is the point
