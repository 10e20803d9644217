"""Lowering rules, under the names of ``jax.interpreters.mlir``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from types import ModuleType
from typing import Any, Final

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
from effax.ir.errors import IllTyped
from effax.ir.types import ArrayType
from effax.lowering.mlir_text import element, tensor
from effax.lowering.xla import mlir_rules

__all__ = [
    "LoweringRuleContext",
    "ModuleContext",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "emit_python_callback",
    "flatten_ir_types",
    "flatten_ir_values",
    "i32_attr",
    "i64_attr",
    "ir_attribute",
    "ir_constant",
    "ir_constants",
    "lower_fun",
    "module_to_bytecode",
    "module_to_string",
    "register_lowering",
    "shape_tensor",
    "unflatten_ir_values_like_types",
]


class _Deferred(ModuleType):
    """A module of MLIR that is loaded when an attribute is used: `import jax` loads no XLA."""

    def __init__(self, name: str, load: Callable[[], ModuleType]) -> None:
        super().__init__(name)
        self._load: Callable[[], ModuleType] = load

    def __getattr__(self, name: str) -> Any:
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


def ir_constant(val: object) -> object:
    """Build a constant in a lowering rule, and return its value of MLIR."""
    array = np.asarray(as_value(val).numpy())
    return mlir_rules.constant_of(array, tensor(as_value(val).type.strong()))


def ir_constants(val: object, **options: object) -> tuple[object, ...]:
    """Build a constant in a lowering rule, and return its values of MLIR."""
    return (ir_constant(val),)


def aval_to_ir_types(ctx: object, aval: ArrayType) -> tuple[object, ...]:
    """Return the types of MLIR of a type of arrays."""
    return (aval_to_ir_type(aval),)


def _integer(bits: int, value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), value)


def i32_attr(i: int) -> object:
    """Return an attribute of 32 bits, in a lowering rule."""
    return _integer(32, i)


def i64_attr(i: int) -> object:
    """Return an attribute of 64 bits, in a lowering rule."""
    return _integer(64, i)


def dense_int_array(xs: Sequence[int]) -> object:
    """Return an attribute of integers of 64 bits, in a lowering rule."""
    return ir.DenseI64ArrayAttr.get(list(xs))


def dense_int_elements(xs: Sequence[int]) -> object:
    """Return an attribute of the elements of a tensor of 64 bits, in a lowering rule."""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def ir_attribute(val: object) -> object:
    """Return the attribute of a value, in a lowering rule. Raise IllTyped if there is none."""
    match val:
        case bool():
            return ir.BoolAttr.get(val)
        case int():
            return i64_attr(val)
        case float():
            return ir.FloatAttr.get(ir.F64Type.get(), val)
        case str():
            return ir.StringAttr.get(val)
        case np.generic():
            kind = dtype_to_ir_type(val.dtype)
            if isinstance(kind, ir.IntegerType):
                return ir.IntegerAttr.get(kind, int(val))
            if isinstance(kind, ir.FloatType):
                return ir.FloatAttr.get(kind, float(val))
        case np.ndarray():
            return ir.DenseElementsAttr.get(val)
        case list() | tuple():
            return ir.ArrayAttr.get([ir_attribute(x) for x in val])
        case dict():
            return ir.DictAttr.get({name: ir_attribute(x) for name, x in val.items()})
        case _ if isinstance(val, ir.Attribute):
            return val
        case _:
            pass
    raise IllTyped("a value has no attribute of MLIR", "a number, a string or a tree", repr(val))


def _flat(xs: Iterable[object]) -> Iterator[object]:
    for x in xs:
        if isinstance(x, tuple | list):
            yield from _flat(x)
        else:
            yield x


def flatten_ir_values(xs: Iterable[object]) -> list[object]:
    """Return values of MLIR, of which several may represent one array, in one list."""
    return list(_flat(xs))


flatten_ir_types = flatten_ir_values


def unflatten_ir_values_like_types(xs: Iterable[object], ys: Sequence[object]) -> list[object]:
    """Return values of MLIR in the places of types."""
    rest = iter(xs)
    return [tuple([next(rest) for _ in y]) if isinstance(y, tuple) else next(rest) for y in ys]


def shape_tensor(ctx: object, sizes: Sequence[int]) -> object:
    """Build the constant of sizes in a lowering rule."""
    return ir_constant(np.asarray(sizes, np.int32))


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """Return the text of a module."""
    return str(module.operation.get_asm(enable_debug_info=bool(enable_debug_info)))


def module_to_bytecode(module: Any) -> bytes:
    """Return the bytecode of a module."""
    written = BytesIO()
    module.operation.write_bytecode(file=written)
    return written.getvalue()
