"""Settings of the library: ``config.update("enable_x64", True)``.

Names are accepted with JAX's prefix too (``jax_enable_x64``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from effax.ir.dtypes import DType, as_dtype, canonical, is_array_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.recursion import carried
from effax.ir.state import cached


class Config(threading.local):
    """The settings: those of the process, which ``with enable_x64()`` replaces in its thread.

    Attributes:
        enable_x64: whether 64-bit dtypes are kept; else they become 32-bit ones.
    """

    # The setting of the process is the attribute of the class, that of a block the thread's own.
    enable_x64: bool = False

    def update(self, name: str, value: object) -> None:
        """Set one setting of the process. Raises BadArgument for an unknown name or value.

        Within ``with enable_x64()`` the setting of the block stays in effect until its end.
        """
        if name.removeprefix("jax_") != "enable_x64":
            raise BadArgument(
                f"unknown setting {name!r}", expected="enable_x64", remedy="check the spelling"
            )
        type(self).enable_x64 = _switch(value)


config: Final = carried(Config())


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadArgument("enable_x64 is switched on or off", "a bool", repr(value))
    return value


@contextmanager
def enable_x64(enabled: bool = True) -> Iterator[None]:
    """Enable (or disable) 64-bit dtypes inside the ``with`` block, in its thread."""
    own = vars(config)
    before = own.get("enable_x64")
    own["enable_x64"] = _switch(enabled)
    try:
        yield
    finally:
        if before is None:
            del own["enable_x64"]
        else:
            own["enable_x64"] = before


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
