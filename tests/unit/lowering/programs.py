"""Hand-written StableHLO for the tests of the XLA adapter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from effax.ir.types import ArrayType, array_type

F32 = array_type((), np.float32)


def tensor(type_: ArrayType) -> str:
    """Return MLIR's name of an array type of plain floats, integers or booleans."""
    kinds = {"f": "f", "i": "i", "u": "ui", "b": "i"}
    bits = 1 if type_.dtype.kind == "b" else type_.dtype.itemsize * 8
    sizes = "".join(f"{size}x" for size in type_.shape)
    return f"tensor<{sizes}{kinds[type_.dtype.kind]}{bits}>"


def main(args: Sequence[str], body: str, results: Sequence[str], outs: Sequence[str]) -> str:
    """Return a module with one function, whose ``results`` are values of the types ``outs``."""
    returns = f"return {', '.join(results)} : {', '.join(outs)}" if results else "return"
    return f"""module @m {{
  func.func public @main({", ".join(args)}) -> ({", ".join(outs)}) {{
    {body}
    {returns}
  }}
}}
"""


def add_one() -> str:
    """x ↦ x + 1, of a float32 scalar."""
    body = """%c = stablehlo.constant dense<1.0> : tensor<f32>
    %r = stablehlo.add %x, %c : tensor<f32>"""
    return main(["%x: tensor<f32>"], body, ["%r"], ["tensor<f32>"])


def accumulate(type_: ArrayType) -> str:
    """(ref, x) ↦ (x, ref + x), in the memory of ref; for booleans ``or``."""
    t = tensor(type_)
    op = "or" if type_.dtype.kind == "b" else "add"
    args = [f"%ref: {t} {{tf.aliasing_output = 1 : i32}}", f"%x: {t}"]
    return main(args, f"%n = stablehlo.{op} %ref, %x : {t}", ["%x", "%n"], [t, t])


def store_one(size: int) -> str:
    """(ref, x, i) ↦ ref with x at i, in the memory of ref."""
    t = f"tensor<{size}xf32>"
    args = [f"%ref: {t} {{tf.aliasing_output = 0 : i32}}", "%x: tensor<1xf32>", "%i: tensor<i32>"]
    body = f"""%r = stablehlo.dynamic_update_slice %ref, %x, %i
      : ({t}, tensor<1xf32>, tensor<i32>) -> {t}"""
    return main(args, body, ["%r"], [t])


def slow(size: int) -> str:
    """A product of three square matrices, which takes milliseconds."""
    t = f"tensor<{size}x{size}xf32>"
    dot = f"contracting_dims = [1] x [0] : ({t}, {t}) -> {t}"
    body = f"""%a = stablehlo.dot_general %x, %x, {dot}
    %r = stablehlo.dot_general %a, %x, {dot}"""
    return main([f"%x: {t}"], body, ["%r"], [t])
