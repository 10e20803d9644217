from typing import Generic, TypeVar

T = TypeVar("T")

class Config(Generic[T]):
    def __init__(
        self,
        name: str,
        value: T,
        *,
        include_in_jit_key: bool = ...,
        include_in_trace_context: bool = ...,
    ) -> None: ...
    @property
    def value(self) -> T: ...
