"""Functions that return ``(result, aux)``, of which only the result is differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from effax import tree
from effax.arrays.array import Array
from effax.arrays.ref import Ref
from effax.arrays.tracing import label_of
from effax.ir.errors import IllTyped
from effax.tree import PyTreeDef


class WithAux:
    """A function that returns the result and the arrays of ``aux``; other leaves are attributes."""

    def __init__(self, fun: Callable[..., object], what: str) -> None:
        self.__wrapped__ = fun
        self.__name__: str = label_of(fun)
        self._what = what
        self._kept: dict[int, object] = {}
        self._tree: PyTreeDef = tree.structure(None)

    def __call__(self, *args: object, **kwargs: object) -> tuple[object, list[object]]:
        """Return the result, and the array leaves of ``aux``. Raises IllTyped."""
        result = self.__wrapped__(*args, **kwargs)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise IllTyped(
                f"{self._what} with has_aux: {self.__name__} must return a pair (result, aux)",
                expected="(result, aux)",
                found=f"{type(result).__name__}: {result!r:.60}",
            )
        leaves, self._tree = tree.flatten(result[1])
        arrays = (Array, Ref, np.ndarray, np.generic)
        self._kept = {i: x for i, x in enumerate(leaves) if not isinstance(x, arrays)}
        return result[0], [x for i, x in enumerate(leaves) if i not in self._kept]

    def joined(self, arrays: Sequence[object]) -> object:
        """Return ``aux`` with these arrays for its array leaves."""
        rest = iter(arrays)
        n = self._tree.num_leaves
        return tree.unflatten(
            self._tree, [self._kept[i] if i in self._kept else next(rest) for i in range(n)]
        )
