"""Settings of the library: ``config.update("enable_x64", True)``.

Names are accepted with JAX's prefix too (``jax_enable_x64``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from effax.ir.dtypes import DType, as_dtype, canonical, is_array_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.recursion import carried
from effax.ir.state import cached


def _from_environment(name: str) -> bool:
    """Return the setting of an environment variable: JAX's name, off by default."""
    return os.environ.get(name, "").lower() in ("1", "y", "yes", "t", "true", "on")


def _watched(nans: bool, infs: bool) -> tuple[str, ...]:
    return ("nan",) * nans + ("inf",) * infs


class Config(threading.local):
    """The settings: those of the process, which ``with enable_x64()`` replaces in its thread.

    Attributes:
        enable_x64: whether 64-bit dtypes are kept; else they become 32-bit ones.
        debug_nans: whether a call or operation that computes a nan raises ``FloatingPointError``.
        debug_infs: whether one that computes an infinity does.
        watched: the names of the values that raise: ``nan``, ``inf``.
        call_key: a value that is equal where compiled calls have the same settings.
    """

    # The setting of the process is the attribute of the class, that of a block the thread's own.
    enable_x64: bool = False
    debug_nans: bool = _from_environment("JAX_DEBUG_NANS")
    debug_infs: bool = _from_environment("JAX_DEBUG_INFS")
    watched: tuple[str, ...] = _watched(debug_nans, debug_infs)
    call_key: object = (enable_x64, watched) if watched else enable_x64

    def update(self, name: str, value: object) -> None:
        """Set one setting of the process. Raises BadArgument for an unknown name or value.

        Within ``with enable_x64()`` the setting of the block stays in effect until its end.
        """
        setting = name.removeprefix("jax_")
        if setting not in SETTINGS:
            raise BadArgument(
                f"unknown setting {name!r}",
                expected=" or ".join(SETTINGS),
                remedy="check the spelling",
            )
        kind = type(self)
        setattr(kind, setting, _switch(setting, value))
        kind.watched = _watched(kind.debug_nans, kind.debug_infs)
        kind.call_key = (kind.enable_x64, kind.watched) if kind.watched else kind.enable_x64
        _derive()


SETTINGS: Final = ("enable_x64", "debug_nans", "debug_infs")

config: Final = carried(Config())


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadArgument(f"{name} is switched on or off", "a bool", repr(value))
    return value


def _derive() -> None:
    """Derive the other attributes from the settings of this thread, where it has its own."""
    own = vars(config)
    own.pop("watched", None)
    own.pop("call_key", None)
    if own:
        own["watched"] = watched = _watched(config.debug_nans, config.debug_infs)
        own["call_key"] = (config.enable_x64, watched) if watched else config.enable_x64


@contextmanager
def _with(name: str, enabled: bool) -> Iterator[None]:
    own = vars(config)
    before = own.get(name)
    own[name] = _switch(name, enabled)
    _derive()
    try:
        yield
    finally:
        if before is None:
            del own[name]
        else:
            own[name] = before
        _derive()


def enable_x64(enabled: bool = True) -> AbstractContextManager[None]:
    """Enable (or disable) 64-bit dtypes inside the ``with`` block, in its thread."""
    return _with("enable_x64", enabled)


def debug_nans(enabled: bool = True) -> AbstractContextManager[None]:
    """Raise ``FloatingPointError`` for nans inside the ``with`` block, in its thread.

    An operation outside of ``jit`` raises if a result is nan. A compiled call raises if a result
    or the new contents of a reference has one: the error names the first equation that computes a
    nan, and its line, found by an evaluation of the call on NumPy. References are then as before.

    Example::

        >>> import effax
        >>> import effax.numpy as jnp
        >>> with effax.debug_nans():
        ...     try:
        ...         effax.jit(lambda x: jnp.log(x) * 2)(-1.0)
        ...     except FloatingPointError as error:
        ...         print(error.what)
        invalid value (nan) encountered in log
    """
    return _with("debug_nans", enabled)


def debug_infs(enabled: bool = True) -> AbstractContextManager[None]:
    """Raise ``FloatingPointError`` for infinities inside the ``with`` block, in its thread.

    See :func:`debug_nans`.
    """
    return _with("debug_infs", enabled)


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
