"""Arrays of devices for meshes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from effax.api.devices import devices as all_devices
from effax.ir.errors import BadArgument

__all__ = ["create_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[object] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return an array of devices in the shape of a mesh, in their order.

    Args:
        mesh_shape: the sizes of the axes.
        devices: the devices; None: those of the process.
        contiguous_submeshes: has no effect: devices are not placed by their network.
        allow_split_physical_axes: has no effect.

    Raises:
        BadArgument: the number of devices is not the product of the sizes.

    >>> from effax.experimental.mesh_utils import create_device_mesh
    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    given = list(all_devices() if devices is None else devices)
    if len(given) != prod(mesh_shape):
        raise BadArgument(
            "create_device_mesh: the number of devices does not fit the shape",
            expected=f"{prod(mesh_shape)}, for the shape {tuple(mesh_shape)}",
            found=str(len(given)),
        )
    placed = np.empty(len(given), object)
    placed[:] = given
    return placed.reshape(tuple(mesh_shape))
