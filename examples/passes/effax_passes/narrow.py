"""Contract in a narrower dtype: float32 in bfloat16, float64 in float32.

The operands are rounded to the narrower dtype; the products are added in that of the program.

>>> from effax.ir import parse
>>> from effax.passes import unwrap
>>> before = parse('''{ lambda ; a:f32[2,3] b:f32[3]. let
...     c:f32[2] = dot_general[dimension_numbers=(((1,), (0,)), ((), ()))] a b
...   in (c,) }''')
>>> print(unwrap(narrow(before)))
{ lambda ; a:f32[2,3] b:f32[3]. let
    c:bf16[2,3] = convert_element_type[new_dtype=bfloat16 weak_type=False] a
    d:bf16[3] = convert_element_type[new_dtype=bfloat16 weak_type=False] b
    e:f32[2] = dot_general[
      dimension_numbers=(((1,), (0,)), ((), ()))
      preferred_element_type=float32
    ] c d
  in (e,) }
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from effax.ir import Atom, Builder, DType, Eqn, Jaxpr, array_type, everywhere, map_eqns
from effax.ir.prims import ConvertElementType, DotGeneral
from effax.passes import Guarantee, as_pass


def _dtype(name: str) -> DType:
    return array_type((), name).dtype


NARROWER = {
    _dtype("float32"): _dtype("bfloat16"),
    _dtype("float64"): _dtype("float32"),
}
"""The dtype of operands in contractions of a dtype."""

RTOL = {"float32": 2.0**-7, "float64": 2.0**-22, "complex64": 1e-6, "complex128": 1e-6}
"""Two roundings of an operand to the narrower dtype, by dtype of the result."""


def _narrowed(b: Builder, eqn: Eqn) -> Atom | None:
    if not isinstance(eqn.prim, DotGeneral):
        return None
    (out,) = eqn.outs
    narrower = NARROWER.get(out.type.dtype)
    if narrower is None or any(x.type.dtype != out.type.dtype for x in eqn.ins):
        return None
    operands = [b(ConvertElementType(narrower), x) for x in eqn.ins]
    made = b(replace(eqn.prim, preferred_element_type=out.type.dtype), *operands)
    return b(ConvertElementType(out.type.dtype, weak_type=True), made) if out.type.weak else made


@as_pass(laws=(Guarantee.SAME_MEANING, Guarantee.IDEMPOTENT))
def narrow(jaxpr: Jaxpr) -> Jaxpr:
    """Contract in the narrower dtype, at every depth; programs are the same up to ``RTOL``."""
    return everywhere(partial(map_eqns, _narrowed), jaxpr)
