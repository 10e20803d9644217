"""The functions behind the operators and methods of arrays and references.

The object model is below the functions of ``effax.numpy``, which are its operators and methods:
``effax.numpy.methods`` installs them when one is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from effax.lazy.dataclasses import dataclass

if TYPE_CHECKING:
    from types import ModuleType

    from effax.arrays.array import Array, ArrayLike, DTypeLike
    from effax.arrays.at import At
    from effax.arrays.ref import Ref
    from effax.arrays.ref_view import RefAt
    from effax.ir.dtypes import DType
    from effax.tree import PyTree

    Unary: TypeAlias = Callable[[ArrayLike], Array]
    Binary: TypeAlias = Callable[[ArrayLike, ArrayLike], Array]


@dataclass(frozen=True)
class Operators:
    """The functions behind each operator and method, and those that indexing uses."""

    absolute: Unary
    add: Binary
    all: Callable[..., Array]
    any: Callable[..., Array]
    apply_on_devices: Callable[..., list[Array] | None]
    argmax: Callable[..., Array]
    argmin: Callable[..., Array]
    argsort: Callable[..., Array]
    array_namespace: Callable[[], ModuleType]
    asarray: Callable[..., Array]
    astype: Callable[..., Array]
    bitwise_and: Binary
    bitwise_or: Binary
    bitwise_xor: Binary
    broadcast_to: Callable[..., Array]
    clip: Callable[..., Array]
    conj: Unary
    constrain: Callable[..., Array]
    copy: Unary
    cumprod: Callable[..., Array]
    cumsum: Callable[..., Array]
    default_dtype: Callable[[DTypeLike | None], DType]
    diagonal: Callable[..., Array]
    divmod: Callable[[ArrayLike, ArrayLike], tuple[Array, Array]]
    dot: Callable[..., Array]
    equal: Binary
    filled: Callable[..., Array]
    floor_divide: Binary
    getitem: Callable[..., Array]
    greater: Binary
    greater_equal: Binary
    imag: Unary
    invert: Unary
    left_shift: Binary
    less: Binary
    less_equal: Binary
    matmul: Binary
    matrix_transpose: Unary
    max: Callable[..., Array]
    maximum: Binary
    mean: Callable[..., Array]
    min: Callable[..., Array]
    minimum: Binary
    moveaxis: Callable[..., Array]
    multiply: Binary
    negative: Unary
    not_equal: Binary
    placed_array: Callable[..., Array]
    power: Binary
    prod: Callable[..., Array]
    ptp: Callable[..., Array]
    ravel: Callable[..., Array]
    read: Callable[..., Array]
    real: Unary
    remainder: Binary
    repeat: Callable[..., Array]
    run_on_devices: Callable[..., list[Array] | None]
    reshape: Callable[..., Array]
    right_shift: Binary
    round: Callable[..., Array]
    scan: Callable[..., tuple[PyTree, PyTree]]
    sort: Callable[..., Array]
    squeeze: Callable[..., Array]
    std: Callable[..., Array]
    subtract: Binary
    sum: Callable[..., Array]
    swapaxes: Callable[..., Array]
    take: Callable[..., Array]
    transpose: Callable[..., Array]
    true_divide: Binary
    var: Callable[..., Array]
    view: Callable[..., Array]
    where: Callable[..., Array]
    zeros_like: Callable[..., Array]
    at: Callable[[Array], At]
    new_ref: Callable[[object], Ref]
    ref_at: Callable[[Ref], RefAt]
    get_ref: Callable[[Ref, object], Array]
    write_ref: Callable[[Ref, object, object], None]
    swap_ref: Callable[[Ref, object, object], Array]
    addupdate_ref: Callable[[Ref, object, object], None]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            # By name, because the module is in a room above; a field is found without this method.
            import_module("effax.numpy.methods")
            return object.__getattribute__(self, name)


ops: Final = object.__new__(Operators)
"""The functions, installed on first use."""


def install(functions: Operators) -> None:
    """Install the functions for all arrays and references."""
    vars(ops).update(vars(functions))
