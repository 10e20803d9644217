"""Modules before they are compiled: portable bytecode, and XLA's estimates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from effax.ir.errors import BadArgument, LoweringError
from effax.lowering.xla.backend import backend
from effax.lowering.xla.executable import not_compiled, numeric_estimates
from effax.lowering.xla.host import context

if TYPE_CHECKING:
    from jaxlib import _jax


def to_portable(text: str, version: str | None = None) -> bytes:
    """Return StableHLO text as bytecode that other versions of XLA read.

    Args:
        text: the module.
        version: the target version of StableHLO, such as ``1.8.0``; by default the one 12 weeks
            older than the installed jaxlib's.

    Raises:
        BadArgument: the installed jaxlib does not write that version.
        LoweringError: the text is invalid, or that version cannot express it.
    """
    from jaxlib import _jax

    wanted = _twelve_weeks_ago() if version is None else _known_version(version)
    try:
        return _jax.mlir.serialize_portable_artifact(text, wanted)
    except (RuntimeError, ValueError) as error:
        what = f"this module cannot be written for StableHLO {wanted}"
        raise not_compiled(text, error, what) from error


def computation_of(text: str) -> _jax.XlaComputation:
    """Return a module as XLA's computation, before it is optimised.

    Raises:
        LoweringError: XLA cannot read the module.
    """
    from jaxlib import _jax

    try:
        return _jax.mlir.mlir_module_to_xla_computation(text)
    except (RuntimeError, ValueError) as error:
        raise LoweringError("XLA cannot read the module", found=str(error).strip()) from error


def module_cost(text: str) -> dict[str, float]:
    """Return XLA's estimates for a module before it is optimised, by name, as for an executable.

    Raises:
        LoweringError: XLA cannot read the module.
    """
    from jaxlib import _jax

    client = backend().client
    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(text)
        return numeric_estimates(_jax.hlo_module_cost_analysis(client, computation.as_hlo_module()))
    except (RuntimeError, ValueError) as error:
        raise LoweringError(
            "XLA cannot estimate the cost of the module", found=str(error).strip()
        ) from error


def from_portable(data: bytes) -> str:
    """Return the text of a module that :func:`to_portable` wrote.

    Raises:
        LoweringError: ``data`` is not such a module, or of a newer StableHLO.
    """
    from jaxlib import _jax

    try:
        return str(_jax.mlir.deserialize_portable_artifact(data, context()))
    except (RuntimeError, ValueError) as error:
        raise LoweringError(
            "the installed jaxlib cannot read this as a portable StableHLO module",
            found=str(error).strip(),
        ) from error


def _known_version(version: object) -> str:
    """Return the version. Raise BadArgument if the installed jaxlib does not write it."""
    from jaxlib.mlir.dialects import stablehlo

    first, last = stablehlo.get_minimum_version(), stablehlo.get_current_version()
    parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version) if isinstance(version, str) else None
    if parts is not None and _numbers(first) <= _numbers(parts.group()) <= _numbers(last):
        return parts.group()
    raise BadArgument(
        "the installed jaxlib does not write this version of StableHLO",
        expected=f"from {first} to {last}",
        found=repr(version),
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _twelve_weeks_ago() -> str:
    from jaxlib.mlir.dialects import stablehlo

    weeks = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    return stablehlo.get_version_from_compatibility_requirement(weeks)
