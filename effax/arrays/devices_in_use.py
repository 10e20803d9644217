"""A flag by which operations of programs on one device skip what is for several."""

from __future__ import annotations

from typing import Final


class _InUse:
    """A flag: an array or a mesh over several devices was made, and eager operations look."""

    several_devices: bool = False


in_use: Final = _InUse()
