"""Operations that Python code builds with the MLIR of jaxlib, as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from effax.lowering.xla.host import context
from effax.lowering.xla.quiet import quieten

DEFERRED: Final = "effax_deferred_"
"""The prefix of the targets of calls that another writer replaces."""


_FORM: Final = re.compile(r"((?P<result>%[\w$.-]+)(:\d+)? = )?\"[\w.]+\"\((?P<operands>[^)]*)\)")
"""The beginning of an operation in the generic form."""


class WrittenOp(NamedTuple):
    """An operation as text.

    Attributes:
        text: the operation, in MLIR's generic form.
        deferred: the number of a deferred operation; None for another.
        operands: the names of its operands.
        result: the name of its results, without their numbers; empty for none.
        n_results: the number of results.
    """

    text: str
    deferred: int | None
    operands: tuple[str, ...]
    result: str
    n_results: int


class WrittenRule(NamedTuple):
    """The operations of a rule, and the names of its results."""

    ops: tuple[WrittenOp, ...]
    outs: tuple[str, ...]


def ir() -> ModuleType:
    """Return ``jaxlib.mlir.ir``."""
    quieten()
    return import_module("jaxlib.mlir.ir")


def dialect(name: str) -> ModuleType:
    """Return a dialect of ``jaxlib.mlir.dialects``, such as ``stablehlo``."""
    quieten()
    return import_module(f"jaxlib.mlir.dialects.{name}")


def operations_of(
    build: Callable[[list[object]], Sequence[object]], types: Sequence[str]
) -> WrittenRule:
    """Run a function that builds operations on values of these types, and return their text.

    Args:
        build: takes a value of MLIR for each type, and returns values.
        types: the types, such as ``tensor<3xf32>``.
    """
    m, func = ir(), dialect("func")
    ctx = _entered()
    with ctx, m.Location.unknown(ctx):
        module = m.Module.create()
        ins = [m.Type.parse(t) for t in types]
        with m.InsertionPoint(module.body):
            rule = func.FuncOp("rule", m.FunctionType.get(ins, []))
            block = rule.add_entry_block()
            with m.InsertionPoint(block):
                outs = list(build(list(block.arguments)))
                func.ReturnOp(outs)
        out_types = [v.type for v in block.operations[len(block.operations) - 1].operands]
        rule.attributes["function_type"] = m.TypeAttr.get(m.FunctionType.get(ins, out_types))
        *ops, last = [_written(op) for op in block.operations]
        return WrittenRule(tuple(ops), last.operands)


def _entered() -> Any:
    return context()


def _written(op: Any) -> WrittenOp:
    operation = op.operation
    asm: str = operation.get_asm(print_generic_op_form=True)
    # The names in the generic form are not those of `Value.get_name`.
    found = _FORM.match(asm)
    assert found is not None, asm
    operands = tuple([name.strip() for name in found["operands"].split(",") if name])
    deferred = None
    if operation.name == "stablehlo.custom_call":
        target = str(operation.attributes["call_target_name"].value)
        if target.startswith(DEFERRED):
            deferred = int(target.removeprefix(DEFERRED))
    return WrittenOp(asm, deferred, operands, found["result"] or "", len(operation.results))


def deferred_op(number: int, operands: Sequence[object], types: Sequence[str]) -> list[object]:
    """Build a deferred operation, and return its results."""
    m = ir()
    made = m.Operation.create(
        "stablehlo.custom_call",
        results=[m.Type.parse(t) for t in types],
        operands=list(operands),
        attributes={"call_target_name": m.StringAttr.get(f"{DEFERRED}{number}")},
    )
    return list(made.results)


def type_of(text: str) -> object:
    """Return a type of MLIR from its text."""
    return ir().Type.parse(text)


def constant_of(value: np.ndarray, text: str) -> object:
    """Build a constant of a type, and return it."""
    m = ir()
    bits = np.packbits(value, axis=None, bitorder="little") if value.dtype == np.bool_ else value
    element = m.RankedTensorType(m.Type.parse(text)).element_type
    attribute = m.DenseElementsAttr.get(
        np.ascontiguousarray(bits), type=element, shape=list(value.shape)
    )
    return dialect("stablehlo").constant(attribute)
