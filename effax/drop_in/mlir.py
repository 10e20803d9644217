"""Lowering rules, under the names of ``jax.interpreters.mlir``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Final

import numpy as np

from effax.arrays.conversion import as_value
from effax.drop_in.lowering import (
    LoweringRuleContext,
    ModuleContext,
    emit_python_callback,
    lower_fun,
    register_lowering,
)
from effax.ir.dtypes import as_dtype
from effax.ir.types import ArrayType
from effax.lowering.mlir_text import element, tensor
from effax.lowering.xla import mlir_rules

__all__ = [
    "LoweringRuleContext",
    "ModuleContext",
    "aval_to_ir_type",
    "dtype_to_ir_type",
    "emit_python_callback",
    "ir_constant",
    "lower_fun",
    "register_lowering",
]


class _Deferred(ModuleType):
    """A module of MLIR that is loaded when an attribute is used: `import jax` loads no XLA."""

    def __init__(self, name: str, load: Callable[[], ModuleType]) -> None:
        super().__init__(name)
        self._load: Callable[[], ModuleType] = load

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._load(), name)

    def __dir__(self) -> list[str]:
        return dir(self._load())


ir: Final[ModuleType] = _Deferred("ir", mlir_rules.ir)
hlo: Final[ModuleType] = _Deferred("hlo", partial(mlir_rules.dialect, "stablehlo"))
func: Final[ModuleType] = _Deferred("func", partial(mlir_rules.dialect, "func"))
chlo: Final[ModuleType] = _Deferred("chlo", partial(mlir_rules.dialect, "chlo"))


def aval_to_ir_type(aval: ArrayType) -> object:
    """Return the type of MLIR of a type of arrays."""
    return mlir_rules.type_of(tensor(aval))


def dtype_to_ir_type(dtype: object) -> object:
    """Return the type of MLIR of elements of a dtype."""
    return mlir_rules.type_of(element(as_dtype(dtype)))


def ir_constant(value: object) -> object:
    """Build a constant in a lowering rule, and return its value of MLIR."""
    array = np.asarray(as_value(value).numpy())
    return mlir_rules.constant_of(array, tensor(as_value(value).type.strong()))
