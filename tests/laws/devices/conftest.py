"""Run each law file of this folder in a process of its own, which has several CPU devices."""

from __future__ import annotations

from tests.unit.devices.conftest import pytest_pycollect_makemodule

__all__ = ["pytest_pycollect_makemodule"]
