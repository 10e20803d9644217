"""Python functions of trees as the functions of NumPy arrays that programs call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import final

import numpy as np

from effax import tree
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.config import allowed
from effax.arrays.conversion import as_value, from_numpy, is_python_scalar
from effax.arrays.ref import Ref
from effax.ir.late_text import LateText
from effax.ir.primitive import Value
from effax.ir.prims import HostFunction
from effax.ir.trace import eager
from effax.tree import PyTreeDef


@final
class TreeFunction(HostFunction):
    """A function of trees, as a function of those leaves that are arrays.

    Two are equal where function, structure and the other leaves are equal, so that equal calls
    are equal programs.
    """

    __slots__ = ("_errors", "_fixed", "_key", "arity", "fun", "label", "treedef")

    def __init__(
        self,
        fun: Callable[..., object],
        treedef: PyTreeDef,
        fixed: dict[int, object],
        label: str,
    ) -> None:
        self.fun: Callable[..., object] = fun
        self.treedef: PyTreeDef = treedef
        self._fixed = fixed
        self.label: str = label
        self.arity: int = treedef.num_leaves - len(fixed)
        # The evaluator silences NumPy's warnings, but not those of the user's code.
        self._errors = np.geterr()
        leaves = tuple([(i, _key(x)) for i, x in sorted(fixed.items())])
        self._key = (_key(fun), _key(treedef), leaves)

    def __call__(self, *args: Value) -> Sequence[Value]:
        arrays = iter([from_numpy(np.array(x)) for x in args])
        n = self.treedef.num_leaves
        leaves = [self._fixed[i] if i in self._fixed else next(arrays) for i in range(n)]
        given, named = tree.unflatten(self.treedef, leaves)
        with eager(), np.errstate(**self._errors):
            return [_as_numpy(x) for x in tree.leaves(self.fun(*given, **named))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeFunction) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"TreeFunction({self.label})"


def _key(x: object) -> Hashable:
    """Return a key to compare an object by: by value, or by identity if it has no hash."""
    try:
        hash(x)
    except TypeError:
        return ("id", id(x))
    return (type(x), x)


def _as_numpy(x: object) -> Value:
    """Return a result as a NumPy array; 64 bits become 32 where they are not enabled."""
    if isinstance(x, Array):
        return x.numpy()
    if is_python_scalar(x):
        return np.asarray(x, allowed(type(x)))
    found = np.asarray(x)
    if found.dtype.kind in "OUSMm":
        return found
    return np.asarray(found, allowed(found.dtype, of_value=True))


def array_leaves(
    args: Sequence[object], kwargs: dict[str, object], what: str, others: bool = False
) -> tuple[list[Operand], PyTreeDef, dict[int, object]]:
    """Return the leaves of the arguments that are arrays, the structure, and the other leaves.

    Raises:
        IllTyped: a leaf is a reference; or not an array, unless ``others`` are allowed.
    """
    leaves, treedef = tree.flatten((tuple(args), kwargs))
    operands: list[Operand] = []
    fixed: dict[int, object] = {}
    for i, x in enumerate(leaves):
        if others and not _is_array(x):
            fixed[i] = x
        else:
            operands.append(as_value(x, _name(args, kwargs, i, what)))
    return operands, treedef, fixed


def _name(args: Sequence[object], kwargs: dict[str, object], leaf: int, what: str) -> LateText:
    return LateText(lambda: f"argument {_path(args, kwargs, leaf)} of {what}")


def _is_array(x: object) -> bool:
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind not in "OUSMm"
    return isinstance(x, Array | Ref) or is_python_scalar(x)


def _path(args: Sequence[object], kwargs: dict[str, object], leaf: int) -> str:
    positional = [f"{i}{path}" for i, arg in enumerate(args) for path in tree.paths(arg)]
    named = [f"{k}{path}" for k in sorted(kwargs) for path in tree.paths(kwargs[k])]
    return [*positional, *named][leaf]
