"""Calls of functions that XLA's runtime knows by name, as text."""

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
) -> str:
    """The right-hand side of a call.

    Args:
        target: the name.
        operands: names and types.
        types: those of the results.
        options: ``name = value : type`` each.
        columns_first: in arrays of so many axes or more, the last two are in column-major order.
        in_place: the number of an operand, and of the result that may take its memory.
        has_side_effects: whether it is never left out, and never done twice.
    """
    names = ", ".join([name for name, _ in operands])
    taken = ", ".join([tensor(t) for _, t in operands])
    given = ", ".join([tensor(t) for t in types])
    ins = ", ".join([_layout(t.shape, columns_first) for _, t in operands])
    outs = ", ".join([_layout(t.shape, columns_first) for t in types])
    attributes = [
        "api_version = 4 : i32",
        f"backend_config = {{{', '.join(options)}}}",
        *["has_side_effect = true"] * has_side_effects,
        f"operand_layouts = [{ins}]",
        *([] if in_place is None else [_aliases(*in_place, len(types))]),
        f"result_layouts = [{outs}]",
    ]
    called = f"stablehlo.custom_call @{target}({names})"
    return f"{called} {{{', '.join(attributes)}}} : ({taken}) -> ({given})"


def _aliases(operand: int, result: int, n_results: int) -> str:
    # A call of one result gives no tuple.
    place = f"[{result}]" if n_results > 1 else "[]"
    alias = f"output_tuple_indices = {place}, operand_index = {operand}, operand_tuple_indices = []"
    return f"output_operand_aliases = [#stablehlo.output_operand_alias<{alias}>]"


def _layout(shape: Shape, columns_first: int) -> str:
    """The axes from the innermost one outwards, as an attribute."""
    n = len(shape)
    order = list(reversed(range(n)))
    if n >= columns_first:
        order[0], order[1] = order[1], order[0]
    axes = f"[{', '.join(map(str, order))}]" if n else ""
    return f"dense<{axes}> : tensor<{n}xindex>"
