"""LAPACK routines, which jaxlib provides as custom calls of XLA's CPU runtime.

The routines are SciPy's, on which jaxlib depends. Loading them takes a few tenths of a second, so
it is delayed until the first module that calls one is compiled or read.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from effax.ir.dtypes import DType
from effax.ir.errors import LoweringError
from effax.ir.state import cached

_PREFIX: Final = "lapack_"

_LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
"""The letter of a dtype in the names of LAPACK's routines."""


def lapack_target(routine: str, dtype: DType) -> str:
    """Return the custom call of a routine, named without its letter: ``getrf`` is ``sgetrf``, ...

    Operands and results are matrices in column-major order, with leading batch axes. Options are
    the attributes of the call: letters, as unsigned bytes.
    """
    letter = _LETTERS[dtype.name]
    if letter in "cz":
        routine = {"orgqr": "ungqr", "syevd": "heevd"}.get(routine, routine)
    return f"{_PREFIX}{letter}{routine}_ffi"


@cached(maxsize=None)
def has_lapack() -> bool:
    """Return whether the routines can be loaded, without loading them."""
    return find_spec("scipy") is not None and find_spec("jaxlib.lapack") is not None


def prepare_for(module: str | bytes) -> None:
    """Load the routines if a module, or its machine code, calls one.

    Raises:
        LoweringError: they cannot be loaded.
    """
    found = _PREFIX in module if isinstance(module, str) else _PREFIX.encode() in module
    if found:
        load_lapack()


@cached(maxsize=None)
def load_lapack() -> None:
    """Load the routines and register them with XLA; jax may register them again.

    Raises:
        LoweringError: they cannot be loaded.
    """
    try:
        from jaxlib import lapack, xla_client
        from jaxlib.cpu import _lapack

        _lapack.initialize()
    except ImportError as error:
        raise LoweringError(
            "LAPACK cannot be loaded", found=str(error), remedy="pip install scipy"
        ) from error
    for platform, targets in lapack.registrations().items():
        for name, target, version in targets:
            xla_client.register_custom_call_target(
                name, target, platform=platform, api_version=version
            )
