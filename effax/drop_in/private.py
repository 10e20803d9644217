"""Private names of JAX that libraries use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import numpy as np
from ml_dtypes import float8_e4m3fnuz, float8_e5m2fnuz

from effax.api.devices import default_backend, devices, effects_barrier
from effax.api.staging import typeof
from effax.arrays.array import Array, ArrayLike
from effax.arrays.conversion import as_value
from effax.arrays.promotion import dtype_of
from effax.drop_in.api_util import safe_map, safe_zip
from effax.ir.dtypes import DType, as_dtype, is_float
from effax.ir.errors import IllTyped, LoweringError
from effax.ir.source import SourceInfo
from effax.ir.types import RefType
from effax.lowering.xla import Device
from effax.tree.registry import is_tree_node

F = TypeVar("F")
T = TypeVar("T")

__all__ = [
    "AbstractRef",
    "DType",
    "EArray",
    "ExtendedDType",
    "JaxException",
    "LiteralArray",
    "TypePromotionError",
    "TypedNdArray",
    "_backends",
    "_exclude_paths",
    "_registry",
    "api_boundary",
    "apply_primitive",
    "backends",
    "canonicalize_dtype_handlers",
    "create_compile_options",
    "dtype",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "get_backend",
    "global_result_handlers",
    "include_frame",
    "new_source_info",
    "physical_aval",
    "pytype_aval_mappings",
    "register_exclusion",
    "safe_map",
    "safe_zip",
    "split_list",
    "summarize",
    "supports_inf",
    "to_complex_dtype",
    "unzip2",
    "unzip3",
    "wait_for_tokens",
]


class LiteralArray:
    """A class without instances: JAX's arrays of literals."""


class TypedNdArray:
    """A class without instances: JAX's constants with weak types."""


class EArray:
    """A class without instances: JAX's arrays of extended dtypes."""


class ExtendedDType:
    """The class of dtypes of a user, which no array has."""


AbstractRef = RefType
JaxException = LoweringError
TypePromotionError = IllTyped
_exclude_paths: Final[list[str]] = []


class _Registry:
    """The classes that are nodes of trees."""

    def __contains__(self, node_class: type) -> bool:
        return is_tree_node(node_class)


_registry: Final = _Registry()
_backends: Final[dict[str, object]] = {}
global_result_handlers: Final[dict[type, object]] = {Array: None}
canonicalize_dtype_handlers: Final[dict[type, object]] = {np.ndarray: as_value}
pytype_aval_mappings: Final[dict[type, object]] = {np.ndarray: typeof}


def dtype(x: ArrayLike) -> DType:
    """Return the dtype of a value."""
    return dtype_of(x)[0]


def register_exclusion(path: str) -> None:
    """Accept a file whose frames JAX hides in tracebacks; effax shows all."""
    if path not in _exclude_paths:
        _exclude_paths.append(path)


def include_frame(frame: object) -> bool:
    """Return True: tracebacks show all frames."""
    return True


def api_boundary(fun: F, **options: object) -> F:
    """Return the function: tracebacks show all frames."""
    return fun


def wait_for_tokens() -> None:
    """Wait until all started side effects have finished."""
    effects_barrier()


def apply_primitive(prim: object, *args: object, **params: object) -> object:
    """Apply a primitive by its lowering."""
    from effax.drop_in.lowering import compiled

    return compiled(prim, args, params)


class Client:
    """A platform and its devices, as JAX's clients."""

    def __init__(self, platform: str) -> None:
        self.platform: str = platform
        self.platform_version: str = "<unknown>"

    def devices(self) -> list[Device]:
        """Return the devices."""
        return devices()

    def local_devices(self) -> list[Device]:
        """Return the devices."""
        return devices()

    def device_count(self) -> int:
        """Return the number of devices."""
        return len(devices())

    def local_device_count(self) -> int:
        """Return the number of devices."""
        return len(devices())

    def process_index(self) -> int:
        """Return 0: there is one process."""
        return 0


def get_backend(platform: str | None = None) -> Client:
    """Return a platform. Raises NoBackend if it has no device."""
    devices(platform)
    return Client(platform or default_backend())


def backends() -> dict[str, Client]:
    """Return the platforms by name."""
    return {default_backend(): get_backend()}


def create_compile_options(*args: object, **options: object) -> dict[str, object]:
    """Return the options."""
    return options


def new_source_info() -> SourceInfo:
    """Return the source of no line."""
    return SourceInfo(None, "")


def summarize(info: SourceInfo, num_frames: int = 1) -> str:
    """Return a source as text."""
    return "<unknown>" if info.source is None else str(info.source)


def physical_aval(aval: T) -> T:
    """Return the type."""
    return aval


def supports_inf(dtype: object) -> bool:
    """Return whether a dtype has infinities."""
    found: DType = as_dtype(dtype)
    return bool(np.isinf(np.array(np.inf).astype(found))) if is_float(found) else False


def to_complex_dtype(dtype: object) -> DType:
    """Return the complex dtype of the precision of a dtype."""
    return np.dtype(np.complex128 if as_dtype(dtype).itemsize >= 8 else np.complex64)


def split_list(xs: Sequence[T], sizes: Sequence[int]) -> list[list[T]]:
    """Return the parts of a list of these lengths, and the rest."""
    rest, parts = list(xs), []
    for n in sizes:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


def unzip2(pairs: Iterable[tuple[object, object]]) -> tuple[tuple[object, ...], ...]:
    """Return the first and the second items of pairs."""
    found = list(pairs)
    return tuple([a for a, _ in found]), tuple([b for _, b in found])


def unzip3(triples: Iterable[tuple[object, object, object]]) -> tuple[tuple[object, ...], ...]:
    """Return the first, second and third items of triples."""
    found = list(triples)
    return tuple([tuple([x[i] for x in found]) for i in range(3)])
