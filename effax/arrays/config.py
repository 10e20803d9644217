"""Settings of the library: ``config.update("enable_x64", True)``.

Names are accepted with JAX's prefix too (``jax_enable_x64``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from effax.arrays.settings import checked_setting, initial_settings
from effax.ir.dtypes import DType, as_dtype, as_key_dtype, canonical, is_array_dtype
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.recursion import carried
from effax.ir.state import cached


class UnknownSetting(BadArgument, AttributeError):
    """No setting has this name."""


_initial: Final = initial_settings()


class Config(threading.local):
    """The settings: those of the process, which ``with enable_x64()`` replaces in its thread.

    Each setting is an attribute, with JAX's prefix too: ``config.jax_enable_x64``.

    Attributes:
        enable_x64: whether 64-bit dtypes are kept; else they become 32-bit ones.
        debug_nans: whether a call or operation that computes a nan raises ``FloatingPointError``.
        debug_infs: whether one that computes an infinity does.
        disable_jit: whether jitted functions, loops and branches run as Python.
        numpy_dtype_promotion: ``strict`` where different dtypes do not promote, or ``standard``.
        numpy_rank_promotion: whether operands of different ranks broadcast: ``allow``, ``warn``
            or ``raise``.
        default_matmul_precision: the precision of products that pass none.
        explicit_x64_dtypes: whether a request of a 64-bit dtype is granted (``allow``) or refused
            (``error``) where these are off; ``warn``: it becomes one of 32 bits, without a warning.
        check_tracer_leaks: whether a tracer that outlives its trace raises.
        watched: the names of the values that raise: ``nan``, ``inf``.
        call_key: a value that is equal where compiled calls have the same settings.
        user_contexts: the values of the contexts of users that have one, each with its owner.
    """

    # The setting of the process is the attribute of the class, that of a block the thread's own.
    enable_x64: bool = False
    debug_nans: bool = False
    debug_infs: bool = False
    disable_jit: bool = False
    numpy_dtype_promotion: str = "standard"
    numpy_rank_promotion: str = "allow"
    default_matmul_precision: str | None = None
    explicit_x64_dtypes: str = "warn"
    check_tracer_leaks: bool = False
    no_tracing: bool = False
    no_execution: bool = False
    log_compiles: bool = False
    explain_cache_misses: bool = False
    compilation_cache_dir: str | None = None
    enable_compilation_cache: bool = True
    watched: tuple[str, ...] = ()
    call_key: object = False
    user_contexts: Mapping[object, object] = MappingProxyType({})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> object: ...

    def update(self, name: str, value: object) -> None:
        """Set one setting of the process. Raises BadArgument for an unknown name or value.

        Within a block such as ``with enable_x64()``, its setting stays in effect until its end.
        """
        setting = _known(name)
        kind = type(self)
        setattr(kind, setting, _checked(setting, value))
        _derive_process()
        _derive()

    def set_mesh(self, key: object) -> None:
        """Set the mesh in use, on which programs depend, for this thread; None for no devices."""
        own = vars(self)
        if own.pop("mesh", None) is not None or key is not None:
            if key is not None:
                own["mesh"] = key
            _derive()

    def read(self, name: str) -> object:
        """Return a setting by its name. Raises BadArgument for an unknown one."""
        return getattr(self, _known(name))

    @property
    def values(self) -> Mapping[str, object]:
        """Return the settings by JAX's names."""
        return {f"jax_{name}": getattr(self, name) for name in _initial}

    @property
    def x64_enabled(self) -> bool:
        """Return whether 64-bit dtypes are kept."""
        return self.enable_x64

    def parse_flags_with_absl(self) -> None:
        """Do nothing: settings are not read from the command line."""

    def config_with_absl(self) -> None:
        """Do nothing: settings are not read from the command line."""


SETTINGS: Final = tuple(_initial)
"""The names of all settings."""

config: Final = carried(Config())

_KEYED: Final = (
    "disable_jit",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "default_matmul_precision",
    "check_tracer_leaks",
    "default_prng_impl",
    "no_execution",
    "explicit_x64_dtypes",
)
"""The further settings on which a program depends."""


def _known(name: str) -> str:
    setting = name.removeprefix("jax_")
    if setting not in SETTINGS:
        raise UnknownSetting(
            f"unknown setting {name!r}",
            expected="one of `config.values`, such as 'jax_enable_x64'",
            remedy="check the spelling",
        )
    return setting


def _checked(setting: str, value: object) -> object:
    value = checked_setting(setting, value)
    if setting == "default_device" and value is not None:
        _check_default_device(value)
    if setting == "num_cpu_devices" and isinstance(value, int) and value > 0:
        _set_num_devices(value)
    if setting == "platforms" and value is not None:
        check_platforms(str(value))
    return value


def _check_default_device(device: object) -> None:
    """Raise BadArgument unless the default device is the first one, or its platform."""
    from effax.lowering import xla

    first = xla.first_device()
    if device not in (first, first.platform):
        raise BadArgument(
            "default_device is the first device",
            expected=f"None or {first}",
            found=f"{device!r:.80}",
            remedy="place the arguments: `device_put(x, device)`",
        )


class BackendRunning(BadArgument, RuntimeError):
    """A setting is changed that has an effect before XLA starts only."""


def _set_num_devices(num_devices: int) -> None:
    """Set the number of devices. Raises BackendRunning where XLA runs with another one."""
    from effax.lowering import xla

    try:
        xla.set_num_devices(num_devices)
    except BadArgument as error:
        raise BackendRunning(
            "jax_num_cpu_devices config should be updated before backends are initialized",
            expected=error.expected,
            found=str(num_devices),
            remedy="set it, or JAX_NUM_CPU_DEVICES, before the first array",
        ) from None


def check_platforms(names: str) -> None:
    """Raise BadArgument where a list of platforms does not have the one that is supported."""
    if names and "cpu" not in names.split(","):
        raise BadArgument(
            "the platform is not supported",
            expected="'cpu'",
            found=repr(names),
            remedy="`config.update('jax_platforms', 'cpu')`, or JAX_PLATFORMS=cpu",
        )


def _watched() -> tuple[str, ...]:
    return ("nan",) * config.debug_nans + ("inf",) * config.debug_infs


def _call_key(watched: tuple[str, ...]) -> object:
    further = (*[getattr(config, name) for name in _KEYED], *config.user_contexts.items())
    mesh = vars(config).get("mesh")
    if not watched and further == _PLAIN and mesh is None:
        return config.enable_x64
    return (config.enable_x64, watched, mesh, *further)


def _derive_process() -> None:
    """Derive the other attributes of the process from its settings."""
    own = vars(config)
    before = dict(own)
    own.clear()
    kind = type(config)
    kind.watched = _watched()
    kind.call_key = _call_key(kind.watched)
    own.update(before)


def _derive() -> None:
    """Derive the other attributes from the settings of this thread, where it has its own."""
    own = vars(config)
    own.pop("watched", None)
    own.pop("call_key", None)
    if own:
        own["watched"] = watched = _watched()
        own["call_key"] = _call_key(watched)


_PLAIN: Final = tuple([checked_setting(name, _initial[name]) for name in _KEYED])
for _name, _value in _initial.items():
    setattr(Config, _name, _value)
    # A `__getattr__` would make each read of a setting twice as slow, and a call reads one.
    setattr(Config, f"jax_{_name}", property(attrgetter(_name)))
_derive_process()


@contextmanager
def _with(name: str, value: object) -> Iterator[None]:
    own = vars(config)
    before = own.get(name, _ABSENT)
    own[name] = _checked(name, value)
    _derive()
    try:
        yield
    finally:
        if before is _ABSENT:
            del own[name]
        else:
            own[name] = before
        _derive()


_ABSENT: Final = object()


def setting(name: str, value: object) -> AbstractContextManager[None]:
    """Change a setting inside the ``with`` block, in its thread. Raises BadArgument.

    Args:
        name: a setting of :class:`Config`.
        value: its value.
    """
    return _with(_known(name), value)


def enable_x64(new_val: bool = True) -> AbstractContextManager[None]:
    """Enable (or disable) 64-bit dtypes inside the ``with`` block, in its thread."""
    return _with("enable_x64", new_val)


def debug_nans(new_val: bool = True) -> AbstractContextManager[None]:
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
    return _with("debug_nans", new_val)


def debug_infs(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise ``FloatingPointError`` for infinities inside the ``with`` block, in its thread.

    See :func:`debug_nans`.
    """
    return _with("debug_infs", new_val)


def allowed(dtype: object, of_value: bool = False) -> DType:
    """Return the dtype for a request under the current settings.

    Args:
        dtype: the requested dtype.
        of_value: whether it is the dtype of a value, which the user does not request.

    Raises IllTyped where ``dtype`` is not a dtype of arrays, and BadArgument for a request of 64
    bits that the settings refuse.
    """
    wide, explicit = config.enable_x64, config.explicit_x64_dtypes
    if explicit != "warn" and not wide and not of_value and not _is_kind(dtype):
        wide = explicit == "allow" or _checked_request(dtype)
    try:
        found = _allowed(dtype, wide)
    except TypeError:
        found = None
    if found is None:
        raise IllTyped(
            "this is not a dtype of arrays",
            expected="a dtype, such as `numpy.float32` or 'float32'",
            found=f"{dtype!r:.80}",
        )
    return found


def _is_kind(dtype: object) -> bool:
    """Return whether a request is Python's type of numbers, which has no width."""
    return isinstance(dtype, type) and dtype in _PYTHON


def _checked_request(dtype: object) -> bool:
    """Return False. Raises BadArgument for a dtype of 64 bits."""
    if _allowed(dtype, True) != _allowed(dtype, False):
        raise BadArgument(
            "Explicitly requested dtype is not available: 64-bit dtypes are off",
            expected=str(_allowed(dtype, False)),
            found=str(_allowed(dtype, True)),
            remedy="request that dtype, or enable 64 bits: `with effax.enable_x64():`",
        )
    return False


@cached(maxsize=1 << 10)
def _allowed(dtype: object, wide: bool) -> DType | None:
    named = as_dtype(_PYTHON.get(dtype, dtype) if isinstance(dtype, type) else dtype)
    named = cast(DType, as_key_dtype(named) or named.newbyteorder("="))
    if not is_array_dtype(named):
        return None
    return named if wide else canonical(named)


_PYTHON: dict[object, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    complex: "complex128",
}


class UserContext:
    """A value of the user's on which traced programs depend; see :func:`make_user_context`."""

    def __init__(self, default_value: object) -> None:
        self._default = default_value

    @property
    def value(self) -> object:
        """Return the value in this thread."""
        return config.user_contexts.get(self, self._default)

    def __call__(self, value: object) -> AbstractContextManager[None]:
        """Change the value inside the ``with`` block, in its thread."""
        return _with("user_contexts", self._replaced(config.user_contexts, value))

    def get_global(self) -> object:
        """Return the value of the process."""
        return type(config).user_contexts.get(self, self._default)

    def set_global(self, value: object) -> None:
        """Set the value of the process. A block that is open keeps its values until its end."""
        kind = type(config)
        kind.user_contexts = self._replaced(kind.user_contexts, value)
        _derive_process()
        _derive()

    def _replaced(self, values: Mapping[object, object], value: object) -> Mapping[object, object]:
        rest = {owner: x for owner, x in values.items() if owner is not self}
        return MappingProxyType(rest if value is self._default else {**rest, self: value})


def make_user_context(default_value: object = None) -> UserContext:
    """Return a context whose value is part of the key under which programs are kept.

    Within ``with context(value):`` a jitted function is traced anew for each value, which it may
    read as ``context.value``.

    Args:
        default_value: the value outside of such blocks. Values are compared by ``==`` and have a
            hash.

    >>> scale = effax.make_user_context(1)
    >>> double = effax.jit(lambda x: x * scale.value)
    >>> with scale(2):
    ...     print(double(3))
    6
    >>> print(double(3))
    3
    """
    return UserContext(default_value)
