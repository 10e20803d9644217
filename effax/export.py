"""Serialization of functions, stable across versions: ``export`` and ``deserialize``."""

from effax.api.export import Exported, deserialize, export
from effax.api.export_trees import (
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)

__all__ = [
    "Exported",
    "deserialize",
    "export",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
]
