from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from effax.ir.axes import Axis
from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.strategies import (
    NUMERIC,
    SHARDED,
    SMOOTH,
    linear_programs,
    open_programs,
    programs,
    seeds,
)
from effax.transforms.dce import dce
from effax.transforms.inline import inline
from effax.transforms.run import unwrap

AXIS = Axis("i", 3)
LOOPLESS = replace(NUMERIC, control=("jit", "remat", "cond", "scan"))
MESHES = replace(SHARDED, focus="shard_map", depth=1)
SMOOTH_MESHES = replace(MESHES, differentiable=True, complexes=())


@given(open_programs(AXIS, NUMERIC), seeds)
def test_vmap_does_collectives(jaxpr: Jaxpr, seed: int) -> None:
    """vmap(f, axis_name)(xs) = f of each lane in step, values exchanged along the axis"""
    laws.vmap_does_collectives(jaxpr, AXIS, seed)


@given(open_programs(AXIS, SMOOTH), seeds)
def test_collectives_commute_with_jvp(jaxpr: Jaxpr, seed: int) -> None:
    """jvp(vmap(f, axis_name)) = vmap(jvp(f), axis_name)"""
    laws.collectives_commute_with_jvp(jaxpr, AXIS, seed)


@given(linear_programs(LOOPLESS, axes=(AXIS,)), seeds)
def test_collectives_commute_with_transpose(
    program: tuple[Jaxpr, tuple[bool, ...]], seed: int
) -> None:
    """transpose(vmap(f, axis_name)) = vmap(transpose(f), axis_name)"""
    laws.collectives_commute_with_transpose(*program, AXIS, seed)


@given(programs(MESHES), seeds)
def test_shard_map_is_lanes(jaxpr: Jaxpr, seed: int) -> None:
    """shard_map(f) on devices in step = f with the axes of the mesh as lanes"""
    laws.check_accepts(jaxpr)
    laws.parse_inverts_print(jaxpr)
    laws.shard_map_is_lanes(jaxpr, seed)


@given(programs(MESHES), seeds)
def test_passes_keep_what_shard_map_means(jaxpr: Jaxpr, seed: int) -> None:
    """discharge(p) = dce(p) = inline(p) = p, observed"""
    laws.discharge_is_observationally_equal(jaxpr, seed)
    laws.observationally_equal(jaxpr, unwrap(dce(jaxpr)).jaxpr, seed)
    laws.observationally_equal(jaxpr, unwrap(inline(jaxpr)), seed)


@given(programs(MESHES), seeds)
def test_shard_map_is_batched_by_stacking(jaxpr: Jaxpr, seed: int) -> None:
    """vmap(p)(xs) = stack(p(x) for x in xs), and vmap commutes with discharge"""
    laws.vmap_is_stacking(jaxpr, seed)
    laws.vmap_commutes_with_discharge(jaxpr, seed)


@given(programs(MESHES), seeds)
def test_halves_of_shard_map_recompose(jaxpr: Jaxpr, seed: int) -> None:
    """known half, then unknown half = the whole"""
    laws.partial_eval_recomposes(jaxpr, seed)


@given(programs(SMOOTH_MESHES), seeds)
def test_derivatives_of_shard_map(jaxpr: Jaxpr, seed: int) -> None:
    """jvp(p) is the derivative of p; linearize(p) is jvp(p), in two halves"""
    laws.jvp_is_the_derivative(jaxpr, seed)
    laws.linearize_is_jvp(jaxpr, seed)


@given(programs(replace(SMOOTH_MESHES, refs=False)), seeds)
def test_reverse_derivatives_of_shard_map(jaxpr: Jaxpr, seed: int) -> None:
    """reverse(p) = transpose(linearize(p))"""
    laws.reverse_is_linearize_then_transpose(jaxpr, seed)


@given(linear_programs(MESHES), seeds)
def test_transposes_of_shard_map(program: tuple[Jaxpr, tuple[bool, ...]], seed: int) -> None:
    """<transpose(p) y, x> = <y, p x>, with references too"""
    laws.transpose_is_adjoint(*program, seed)
    laws.transpose_adds_into_references(*program, seed)


@given(programs(replace(SMOOTH_MESHES, refs=False, depth=2)) | programs(SMOOTH_MESHES), seeds)
def test_derivatives_inside_are_those_outside(jaxpr: Jaxpr, seed: int) -> None:
    """shard_map(grad(f)) = grad(shard_map(f)), for a loss that all devices share"""
    laws.derivatives_inside_are_those_outside(jaxpr, seed)
