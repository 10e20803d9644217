"""Functions as files that survive versions: ``export``, ``deserialize``."""

from effax.api.export import Exported, deserialize, export

__all__ = ["Exported", "deserialize", "export"]
