"""The text of arrays, by NumPy's options."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final, cast

import numpy as np

from effax.arrays.array import ArrayLike
from effax.arrays.creation import asarray
from effax.arrays.shared_docs import shared_docs

__all__ = [
    "array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions",
]  # fmt: skip

_PARAMETERS: Final = {
    "arr": "array.",
    "a": "array.",
    "max_line_width": "length of lines; None for that of the options of printing.",
    "precision": "number of decimals, in the same way.",
    "suppress_small": "whether no number is in scientific notation, in the same way.",
}


def get_printoptions() -> dict[str, object]:
    """Return the options of printing, which are NumPy's.

    >>> jnp.get_printoptions()["threshold"]
    1000
    """
    return dict(np.get_printoptions())


def set_printoptions(**options: object) -> None:
    """Change options of printing, such as ``precision``, ``linewidth`` or ``threshold``.

    >>> jnp.set_printoptions(threshold=1000)
    """
    np.set_printoptions(**cast("dict[str, Any]", options))


def printoptions(**options: object) -> AbstractContextManager[object]:
    """Return a context in which options of printing are changed.

    >>> with jnp.printoptions(precision=2):
    ...     print(jnp.array([1 / 3]))
    [0.33]
    """
    return np.printoptions(**cast("dict[str, Any]", options))


@shared_docs(_PARAMETERS, "Text.")
def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the text of an array with its dtype.

    >>> jnp.array_repr(jnp.array([1 / 3]), precision=2)
    'Array([0.33], dtype=float32)'
    """
    with printoptions(**_options(max_line_width, precision, suppress_small)):
        return repr(asarray(arr))


@shared_docs(_PARAMETERS, "Text.")
def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the text of the elements of an array.

    >>> jnp.array_str(jnp.array([1 / 3]), precision=2)
    '[0.33]'
    """
    with printoptions(**_options(max_line_width, precision, suppress_small)):
        return str(asarray(a))


def _options(width: int | None, precision: int | None, suppress: bool | None) -> dict[str, int]:
    given = {"linewidth": width, "precision": precision, "suppress": suppress}
    return {name: value for name, value in given.items() if value is not None}
