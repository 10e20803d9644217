from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from effax.ir.syntax import Jaxpr
from effax.testing import laws
from effax.testing.generate.features import MESHES, SMOOTH_MESHES
from effax.testing.strategies import linear_programs, programs, seeds
from effax.transforms.framework.runner import unwrap
from effax.transforms.optimize.dce import dce
from effax.transforms.optimize.inline import inline
from tests.laws.trying import holds

test_vmap_evaluates_collectives = holds(laws.vmap_evaluates_collectives)
test_collectives_commute_with_jvp = holds(laws.collectives_commute_with_jvp)
test_collectives_commute_with_transpose = holds(laws.collectives_commute_with_transpose)
test_shard_map_is_vmap = holds(laws.shard_map_is_vmap)
test_programs_of_shard_map_are_valid = holds(laws.check_accepts, MESHES)
test_shard_map_is_read_back = holds(laws.parse_inverts_print, MESHES)


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
def test_partial_eval_of_shard_map_recomposes(jaxpr: Jaxpr, seed: int) -> None:
    """known half, then unknown half = the whole"""
    laws.partial_eval_recomposes(jaxpr, seed)


@given(programs(SMOOTH_MESHES), seeds)
def test_derivatives_of_shard_map(jaxpr: Jaxpr, seed: int) -> None:
    """jvp(p) is the derivative of p; linearize(p) is jvp(p), in two programs"""
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
    laws.transpose_accumulates_into_references(*program, seed)


@given(programs(replace(SMOOTH_MESHES, refs=False, depth=2)) | programs(SMOOTH_MESHES), seeds)
def test_shard_map_commutes_with_grad(jaxpr: Jaxpr, seed: int) -> None:
    """shard_map(grad(f)) = grad(shard_map(f)), for a loss that all devices share"""
    laws.shard_map_commutes_with_grad(jaxpr, seed)
