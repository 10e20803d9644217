"""Compiled calls as bytes, and back."""

from __future__ import annotations

from effax.api.serialized import deserialize_and_load, serialize

__all__ = ["deserialize_and_load", "serialize"]
