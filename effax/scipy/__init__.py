"""SciPy's functions of arrays, with JAX's names and signatures. Modules are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.scipy import cluster as cluster
    from effax.scipy import fft as fft
    from effax.scipy import integrate as integrate
    from effax.scipy import interpolate as interpolate
    from effax.scipy import linalg as linalg
    from effax.scipy import ndimage as ndimage
    from effax.scipy import optimize as optimize
    from effax.scipy import signal as signal
    from effax.scipy import sparse as sparse
    from effax.scipy import spatial as spatial
    from effax.scipy import special as special
    from effax.scipy import stats as stats
else:
    __getattr__, __dir__ = _lazy(__name__)

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
]  # fmt: skip
