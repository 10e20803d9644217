from typing import final

@final
class PyTreeDef:
    num_leaves: int

@final
class PyTreeRegistry:
    def __init__(self) -> None: ...
    def flatten(self, tree: object) -> tuple[list[object], PyTreeDef]: ...
