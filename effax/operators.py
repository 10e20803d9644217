"""The functions behind the operators and methods of arrays and references.

Arrays are what ``effax.numpy`` is made of, and their operators are functions of ``effax.numpy``:
the circle is cut here, where a function is looked up when it is first called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from effax.lax.elementwise import bitcast_convert_type as bitcast_convert_type
    from effax.numpy import *  # noqa: F403  these are effax.numpy's functions, under their names
    from effax.numpy.dtypes import default_dtype as default_dtype
    from effax.numpy.index import getitem as getitem
else:

    def __getattr__(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        found = globals()[name] = _find(name)
        return found


def _find(name: str) -> object:
    import effax.numpy
    from effax.lax import elementwise
    from effax.numpy import dtypes, index

    for module in (effax.numpy, index, dtypes, elementwise):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"effax.operators has no function {name!r}")
