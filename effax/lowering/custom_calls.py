"""The text of custom calls: functions that XLA's runtime knows by name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from effax.ir.types import ArrayType, Shape
from effax.lowering.mlir_text import tensor

NEVER: Final = sys.maxsize
"""More axes than any array has."""


def custom_call(
    target: str,
    operands: Sequence[tuple[str, ArrayType]],
    types: Sequence[ArrayType],
    options: Sequence[str] = (),
    *,
    columns_first: int = NEVER,
    in_place: tuple[int, int] | None = None,
    has_side_effects: bool = False,
    attributes: Sequence[str] = (),
) -> str:
    """Return the right-hand side of a call.

    Args:
        target: the name of the function.
        operands: names and types.
        types: the types of the results.
        options: attributes, ``name = value : type`` each.
        columns_first: arrays of at least this many axes are column-major in the last two.
        in_place: the position of an operand, and of the result that may reuse its buffer.
        has_side_effects: whether XLA may neither remove nor repeat the call.
        attributes: further attributes of the operation.
    """
    names = ", ".join([name for name, _ in operands])
    taken = ", ".join([tensor(t) for _, t in operands])
    given = ", ".join([tensor(t) for t in types])
    ins = ", ".join([_layout(t.shape, columns_first) for _, t in operands])
    outs = ", ".join([_layout(t.shape, columns_first) for t in types])
    every = [
        "api_version = 4 : i32",
        f"backend_config = {{{', '.join(options)}}}",
        *["has_side_effect = true"] * has_side_effects,
        f"operand_layouts = [{ins}]",
        *([] if in_place is None else [_aliases(*in_place, len(types))]),
        f"result_layouts = [{outs}]",
        *attributes,
    ]
    called = f"stablehlo.custom_call @{target}({names})"
    return f"{called} {{{', '.join(every)}}} : ({taken}) -> ({given})"


def _aliases(operand: int, result: int, n_results: int) -> str:
    # A call of one result returns no tuple.
    place = f"[{result}]" if n_results > 1 else "[]"
    alias = f"output_tuple_indices = {place}, operand_index = {operand}, operand_tuple_indices = []"
    return f"output_operand_aliases = [#stablehlo.output_operand_alias<{alias}>]"


def _layout(shape: Shape, columns_first: int) -> str:
    """Return the layout as an attribute: the axes from minor to major."""
    n = len(shape)
    order = list(reversed(range(n)))
    if n >= columns_first:
        order[0], order[1] = order[1], order[0]
    axes = f"[{', '.join(map(str, order))}]" if n else ""
    return f"dense<{axes}> : tensor<{n}xindex>"
