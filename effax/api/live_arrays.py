"""``live_arrays``: the arrays of the process."""

from __future__ import annotations

import gc

from effax.api.devices import devices
from effax.arrays.array import Array
from effax.arrays.device_array import DeviceArray


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return the arrays that exist and are not deleted, in no particular order.

    Args:
        platform: None, or the platform of the devices.

    Raises:
        NoBackend: the platform has no device.

    >>> x = jnp.ones(3)
    >>> any(found is x for found in effax.live_arrays())
    True
    """
    devices(platform)
    return [x for x in gc.get_objects() if type(x) is DeviceArray and not x.is_deleted()]
