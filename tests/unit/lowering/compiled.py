"""Helpers for tests of lowering: run a program through XLA, and compare with the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from effax.ir.build import Builder
from effax.ir.dtypes import as_dtype, family, is_inexact_dtype
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import Type, array_type, type_of_value
from effax.lowering import xla
from effax.lowering.rules.default import DEFAULT
from effax.lowering.stablehlo import Module, lower
from effax.lowering.writer import LoweringRules

Array = np.ndarray

RELATIVE: Final = {
    "bfloat16": 8e-3,
    "float16": 2e-3,
    "float32": 3e-6,
    "complex64": 2e-5,
    "float64": 1e-12,
    "complex128": 1e-12,
}
"""The error allowed: a few units in the last place."""

DTYPES: Final = ["float32", "bfloat16", "int32", "uint8", "bool", "complex64"]


def program(types: Sequence[Type], body: Callable[..., Sequence[Atom]]) -> Jaxpr:
    """Return a program over inputs of these types; ``body`` takes the builder and the binders."""
    b = Builder(types)
    return b.finish(body(b, *b.binders))


def applied(prim: Primitive, *values: Array) -> Jaxpr:
    """Return the program that applies ``prim`` to inputs of the types of these values."""
    return program([type_of_value(v) for v in values], lambda b, *ins: b.emit(prim, ins))


def in_each(prims: Sequence[Primitive], *values: Array) -> Jaxpr:
    """Return the program that applies each of these primitives of one result to the same inputs."""

    def body(b: Builder, *ins: Var) -> list[Atom]:
        return [b(prim, *ins) for prim in prims]

    return program([type_of_value(v) for v in values], body)


def module(
    jaxpr: Jaxpr, aliases: Sequence[tuple[int, int]] = (), rules: LoweringRules = DEFAULT
) -> Module:
    """Lower the program."""
    return lower(jaxpr, aliases=aliases, rules=rules).unwrap()


@lru_cache(maxsize=64)
def executable(
    jaxpr: Jaxpr, aliases: tuple[tuple[int, int], ...] = (), rules: LoweringRules = DEFAULT
) -> xla.Executable:
    """Compile the program at the lowest optimization level, which is fastest."""
    lowered = module(jaxpr, aliases, rules)
    return xla.compile_module(lowered.text, len(lowered.in_types), lowered.out_types, 0)


def run(jaxpr: Jaxpr, args: Sequence[Array], rules: LoweringRules = DEFAULT) -> list[Array]:
    """Return the results of the compiled program."""
    call = executable(jaxpr, rules=rules)
    return [xla.to_numpy(out) for out in call([xla.put(a) for a in args])]


def close(found: Array, wanted: Array, relative: float | None = None) -> Array:
    """Compare elements: integers exactly, floats up to rounding, nan equals nan."""
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if not is_inexact_dtype(wanted.dtype):
        return np.asarray(found == wanted)
    work = np.complex128 if family(wanted.dtype) == "complex" else np.float64
    a, b = found.astype(work), wanted.astype(work)
    bound = RELATIVE[wanted.dtype.name] if relative is None else relative
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= bound * np.abs(b) + 1e-37
    return np.asarray(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def agree(
    jaxpr: Jaxpr, args: Sequence[Array], relative: float | None = None, names: Sequence[str] = ()
) -> list[Array]:
    """Assert that XLA and the evaluator agree, and return the results."""
    found = run(jaxpr, args)
    wanted = evaluate(jaxpr, [np.array(a) for a in args])
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        same = close(a, np.asarray(b), relative)
        name = names[k] if names else f"result {k}"
        assert same.all(), f"{name}: {a[~same]} instead of {np.asarray(b)[~same]}"
    return found


def samples(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Random values of moderate size."""
    made = as_dtype(dtype)
    rng = np.random.default_rng(seed)
    kind = family(made)
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in ("int", "uint"):
        return rng.integers(0 if kind == "uint" else -9, 10, shape).astype(made)
    real = rng.normal(size=shape)
    return (real + 1j * rng.normal(size=shape) if kind == "complex" else real).astype(made)


def i32(*values: int) -> Array:
    """A vector of int32."""
    return np.array(values, np.int32)


def scalar(value: object, dtype: str = "int32") -> Array:
    """An array without axes."""
    return np.asarray(value, as_dtype(dtype))


def array(dtype: str, *shape: int) -> Type:
    """An array type."""
    return array_type(shape, dtype)
