"""The functions behind the operators and methods of arrays and references.

Arrays are what ``effax.numpy`` is made of, and their operators are functions of ``effax.numpy``:
the circle is cut here, where a function is looked up when it is first called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from effax.arrays.creation import filled as filled  # noqa: PLC0414
    from effax.arrays.promotion import default_dtype as default_dtype  # noqa: PLC0414
    from effax.lax.elementwise import bitcast_convert_type as bitcast_convert_type  # noqa: PLC0414
    from effax.numpy import *  # noqa: F403
    from effax.numpy.index import getitem as getitem  # noqa: PLC0414
else:

    def __getattr__(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        found = globals()[name] = _find(name)
        return found


def _find(name: str) -> object:
    import effax.numpy
    from effax.arrays import creation, promotion
    from effax.lax import elementwise
    from effax.numpy import index

    for module in (effax.numpy, index, creation, promotion, elementwise):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"effax.arrays.operators has no function {name!r}")
