"""The modules of effax behind modules of JAX that effax has not under the same name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_SOURCE_INFO: Final = "drop_in.source_info"

_MESHES: Final = "sharding:get_abstract_mesh get_mesh reshard use_abstract_mesh"

SOURCES: Final[Mapping[str, Sequence[str]]] = {
    "jax": ("", "drop_in.names:host_count host_id host_ids", _MESHES),
    "jax.ad": ("ad",),
    "jax.ad_checkpoint": (
        "ad_checkpoint",
        "drop_in.names:Recompute Saveable",
        "drop_in.primitives:name_p",
        ":checkpoint_policies",
    ),
    "jax.errors": ("errors", "drop_in.names:KeyReuseError"),
    "jax.export": ("export", "drop_in.exporting"),
    "jax.api_util": ("drop_in.api_util",),
    "jax.core": ("core", "drop_in.core", "drop_in.private:pytype_aval_mappings"),
    "jax.custom_derivatives": ("custom_derivatives", "drop_in.custom_derivatives"),
    "jax.extend": (),
    "jax.extend.backend": (
        "drop_in.private:backends get_backend",
        "drop_in.names:clear_backends clear_in_memory_compilation_cache get_default_device",
        "drop_in.names:register_backend_cache",
    ),
    "jax.extend.core": ("core", "drop_in.core", "drop_in.names:AbstractToken Token array_types"),
    "jax.extend.core.primitives": ("drop_in.primitives",),
    "jax.extend.linear_util": ("drop_in.linear_util",),
    "jax.extend.random": ("drop_in.generators",),
    "jax.extend.source_info_util": (_SOURCE_INFO,),
    "jax.experimental.hijax": ("drop_in.hijax",),
    "jax.experimental.layout": ("arrays.layout",),
    "jax.experimental.xla_metadata": ("drop_in.xla_metadata",),
    "jax.interpreters": (),
    "jax.interpreters.ad": ("drop_in.ad",),
    "jax.interpreters.batching": ("drop_in.batching",),
    "jax.interpreters.mlir": ("drop_in.mlir", "drop_in.mlir:hlo ir"),
    "jax.interpreters.partial_eval": ("drop_in.partial_eval",),
    "jax.interpreters.pxla": ("drop_in.private:create_compile_options global_result_handlers",),
    "jax.interpreters.xla": (
        "drop_in.private:apply_primitive canonicalize_dtype_handlers",
        "drop_in.names:Backend",
    ),
    "jax.lax": ("lax", "drop_in.primitives", "drop_in.private:dtype"),
    "jax.lax.linalg": (
        "lax.linalg",
        "drop_in.primitives:cholesky_p eig_p eigh_p lu_p qr_p schur_p svd_p triangular_solve_p",
    ),
    "jax.lib": (),
    "jax.numpy": ("numpy", "drop_in.private:float8_e4m3fnuz float8_e5m2fnuz"),
    "jax.ref": ("ref", "drop_in.private:AbstractRef"),
    "jax._src": (),
    "jax._src.ad_util": ("drop_in.primitives", "drop_in.ad"),
    "jax._src.api": ("",),
    "jax._src.api_util": ("drop_in.api_util",),
    "jax._src.checkify": ("experimental.checkify", "drop_in.private:JaxException"),
    "jax._src.compiler": (),
    "jax._src.core": ("core", "drop_in.core", "drop_in.private:physical_aval"),
    "jax._src.dispatch": ("drop_in.private:apply_primitive wait_for_tokens",),
    "jax._src.dtypes": (
        "dtypes",
        "drop_in.private:DType ExtendedDType TypePromotionError supports_inf to_complex_dtype",
    ),
    "jax._src.earray": ("drop_in.private:EArray",),
    "jax._src.flatten_util": ("flatten_util",),
    "jax._src.interpreters": (),
    "jax._src.interpreters.ad": ("drop_in.ad",),
    "jax._src.interpreters.batching": ("drop_in.batching",),
    "jax._src.interpreters.mlir": ("drop_in.mlir", "drop_in.mlir:hlo ir"),
    "jax._src.interpreters.partial_eval": ("drop_in.partial_eval",),
    "jax._src.interpreters.pxla": (
        "drop_in.private:create_compile_options global_result_handlers",
    ),
    "jax._src.lax": ("lax", "drop_in.primitives"),
    "jax._src.lax.lax": ("lax", "drop_in.primitives"),
    "jax._src.lib": (),
    "jax._src.lib.mlir": ("drop_in.mlir:ir",),
    "jax._src.lib.mlir.dialects": ("drop_in.mlir:chlo func hlo",),
    "jax._src.linear_util": ("drop_in.linear_util",),
    "jax._src.literals": ("drop_in.private:LiteralArray TypedNdArray",),
    "jax._src.public_test_util": ("test_util",),
    "jax._src.source_info_util": (_SOURCE_INFO,),
    "jax._src.state": (),
    "jax._src.state.types": ("drop_in.private:AbstractRef",),
    "jax._src.traceback_util": (
        "drop_in.private:_exclude_paths api_boundary include_frame register_exclusion",
    ),
    "jax._src.tree_util": ("tree_util", "drop_in.private:_registry"),
    "jax._src.util": ("drop_in.private:safe_map safe_zip split_list unzip2 unzip3",),
    "jax._src.xla_bridge": ("drop_in.private:_backends backends get_backend",),
}
"""The modules of effax whose names a module of JAX has, if not those of the module of its name."""
