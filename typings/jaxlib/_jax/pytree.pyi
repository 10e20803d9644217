from collections.abc import Sequence
from typing import final

@final
class PyTreeDef:
    num_leaves: int

@final
class PyTreeRegistry:
    def __init__(self) -> None: ...
    def flatten(self, tree: object) -> tuple[list[object], PyTreeDef]: ...
    def register_dataclass_node(
        self, type: type, data_fields: Sequence[str], meta_fields: Sequence[str], /
    ) -> object: ...
