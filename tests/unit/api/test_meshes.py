"""Meshes in use, types of axes, and constraints on shardings."""

from __future__ import annotations

from typing import Any

import pytest

import effax
import effax.numpy as jnp
from effax import lax as _lax
from effax.ir.errors import BadArgument, IllTyped
from effax.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    P,
    SingleDeviceSharding,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    reshard,
    set_mesh,
)

jax: Any = effax
lax: Any = _lax

MESH = make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))


def test_a_mesh_is_in_use_until_the_end_of_its_context() -> None:
    assert get_abstract_mesh().empty and get_mesh().empty
    with set_mesh(MESH):
        assert get_mesh() is MESH
        with AbstractMeshes.small:
            assert get_abstract_mesh() == AbstractMesh((2,), "y")
        assert get_abstract_mesh() == AbstractMesh((1,), ("x",), AxisType.Explicit)
    assert get_abstract_mesh() == AbstractMesh((), ())
    with pytest.raises(BadArgument, match="set_mesh takes a mesh"):
        set_mesh("x")  # type: ignore[arg-type]  # deliberately wrong


class AbstractMeshes:
    small = Mesh((2,), ("y",))


def test_types_of_axes() -> None:
    assert MESH.axis_types == (AxisType.Explicit,)
    assert Mesh((1,), "x").axis_types == (AxisType.Auto,)
    assert Mesh((1,), "x") != MESH
    with pytest.raises(BadArgument, match="one type for each of its axes"):
        Mesh((1, 1), ("x", "y"), (AxisType.Auto,))


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit])
def test_a_constraint_changes_no_value(transformed: Any) -> None:
    sharding = NamedSharding(MESH, P("x"))
    constrained = transformed(lambda x: lax.with_sharding_constraint(x * 2, sharding))
    assert constrained(jnp.arange(2.0)).tolist() == [0.0, 2.0]
    batched = jax.vmap(jax.grad(lambda x: lax.with_sharding_constraint(x**2, sharding).sum()))
    assert batched(jnp.ones((2, 3))).tolist() == [[2.0] * 3] * 2
    with set_mesh(MESH):
        assert transformed(lambda x: lax.with_sharding_constraint(x, P()))({"a": 1.0})["a"] == 1.0


def test_a_sharding_of_an_array_is_replaced() -> None:
    sharding = NamedSharding(MESH, P("x"))
    moved = reshard(jnp.asarray(1.0).reshape(1), sharding)
    assert moved.sharding == sharding
    single = SingleDeviceSharding(effax.devices()[0])
    tree: Any = [moved, 1.0]
    assert reshard(tree, single)[0].sharding == single


def test_constraints_that_do_not_fit() -> None:
    wide = NamedSharding(make_mesh((2,), ("x",)), P("x"))
    with pytest.raises(IllTyped):
        lax.with_sharding_constraint(jnp.ones(3), wide)
    with pytest.raises(BadArgument, match="with_sharding_constraint takes a sharding"):
        lax.with_sharding_constraint(jnp.ones(3), P("x"))
    with pytest.raises(BadArgument, match="not a prefix"):
        lax.with_sharding_constraint([jnp.ones(3)], [wide, wide])


def test_axes_of_meshes_change_no_function() -> None:
    f: Any = auto_axes(explicit_axes(abs, axes="x"))
    decorate: Any = auto_axes(out_sharding=P())
    assert f(-1) == decorate(f)(-1) == 1


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit])
def test_products_take_a_sharding_of_the_result(transformed: Any) -> None:
    sharding, eye = NamedSharding(MESH, P()), jnp.eye(2)
    products = {
        "dot": lambda x: jnp.dot(x, eye, out_sharding=sharding),
        "matmul": lambda x: jnp.matmul(x, eye, out_sharding=sharding),
        "tensordot": lambda x: jnp.tensordot(x, eye, 1, out_sharding=sharding),
        "einsum": lambda x: jnp.einsum("ij,jk", x, eye, out_sharding=sharding),
        "dot_general": lambda x: lax.dot_general(
            x, eye, (((1,), (0,)), ((), ())), out_sharding=jax.typeof(x).sharding
        ),
    }
    for product in products.values():
        assert transformed(product)(jnp.ones((2, 2))).tolist() == [[1.0, 1.0]] * 2


def test_a_type_has_no_sharding() -> None:
    found = jax.typeof(jnp.ones((2, 3))).sharding
    assert found.spec == (None, None) and found.mesh.empty
    assert found.update(spec=(None,)).spec == (None,)
    assert MESH.are_all_axes_explicit and not MESH.are_all_axes_auto
    assert AbstractMesh((), ()).are_all_axes_auto and not AbstractMesh((), ()).are_all_axes_manual
