"""Settings of the library: ``config.update("enable_x64", True)``.

Names are accepted with JAX's prefix too (``jax_enable_x64``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from effax.ir.dtypes import DType, as_dtype, canonical, is_array_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.state import cached


class Config:
    """The settings.

    Attributes:
        enable_x64: whether 64-bit dtypes are kept; else they become 32-bit ones.
    """

    __slots__ = ("enable_x64",)

    enable_x64: bool

    def __init__(self) -> None:
        self.enable_x64 = False

    def update(self, name: str, value: object) -> None:
        """Set one setting. Raises BadArgument for a name or a value that does not exist."""
        if name.removeprefix("jax_") != "enable_x64":
            raise BadArgument(
                f"unknown setting {name!r}", expected="enable_x64", remedy="check the spelling"
            )
        if not isinstance(value, bool):
            raise BadArgument("enable_x64 is switched on or off", "a bool", repr(value))
        self.enable_x64 = value


config: Final = Config()


@contextmanager
def enable_x64(enabled: bool = True) -> Iterator[None]:
    """Enable (or disable) 64-bit dtypes inside the ``with`` block."""
    before = config.enable_x64
    config.update("enable_x64", enabled)
    try:
        yield
    finally:
        config.update("enable_x64", before)


def allowed(dtype: object) -> DType:
    """Return the dtype for a request under the current settings.

    Raises IllTyped where ``dtype`` is not a dtype of arrays.
    """
    try:
        found = _allowed(dtype, config.enable_x64)
    except TypeError:
        found = None
    if found is None:
        raise IllTyped(
            "this is not a dtype of arrays",
            expected="a dtype, such as `numpy.float32` or 'float32'",
            found=f"{dtype!r:.80}",
        )
    return found


@cached(maxsize=1 << 10)
def _allowed(dtype: object, wide: bool) -> DType | None:
    named = as_dtype(_PYTHON.get(dtype, dtype) if isinstance(dtype, type) else dtype)
    named = named.newbyteorder("=")
    if not is_array_dtype(named):
        return None
    return named if wide else canonical(named)


_PYTHON: dict[object, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    complex: "complex128",
}
