"""Names of ``jax.export`` whose values are fixed here."""

from __future__ import annotations

from typing import Final

from effax.api.devices import default_backend

__all__ = [
    "DisabledSafetyCheck",
    "default_export_platform",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
]

minimum_supported_calling_convention_version: Final = 9
maximum_supported_calling_convention_version: Final = 10


def default_export_platform() -> str:
    """Return the platform for which programs are exported."""
    return default_backend()


class DisabledSafetyCheck:
    """A check of exported programs that a program would leave out; there is none to leave out."""

    def __init__(self, name: str) -> None:
        self._name: str = name

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Return the check of the platform."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Return the check of a custom call."""
        return cls(f"custom_call:{target_name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)
