"""Arrays as equations, where a program cannot get a further argument."""

from __future__ import annotations

import numpy as np

from effax.ir.build import Builder, lit
from effax.ir.prims import BroadcastInDim, Constant, ConstantArray
from effax.ir.syntax import Atom
from effax.ir.types import ArrayType


def constant(b: Builder, value: np.ndarray, type_: ArrayType) -> Atom:
    """Append equations for a concrete array, and return it.

    An array of equal elements is a literal, so that passes see its value.
    """
    flat = value.reshape(-1)
    # Bytes are compared: zeros of both signs differ, and nan equals itself.
    if flat.tobytes() != flat[:1].tobytes() * flat.size:
        return b(Constant(ConstantArray(value), type_.weak))
    scalar = type_.update(shape=())
    element = lit(flat[0].item() if flat.size else 0, scalar)
    return b(BroadcastInDim(value.shape, ()), element) if value.shape else element
