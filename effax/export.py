"""Serialization of functions, stable across versions: ``export`` and ``deserialize``."""

from effax.api.export import Exported, deserialize, export
from effax.api.export_shapes import symbolic_args_specs, symbolic_shape
from effax.api.export_trees import (
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from effax.ir.symbolic import SymbolicScope, is_symbolic_dim

__all__ = [
    "Exported",
    "SymbolicScope",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_shape",
]
