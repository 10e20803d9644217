"""The law of rewrite rules: both sides give the same, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan, prod
from typing import Final

import numpy as np
from returns.result import Success

from effax.ir.build import Builder, lit
from effax.ir.check import check
from effax.ir.diff import diff
from effax.ir.dtypes import family
from effax.ir.evaluate import evaluate
from effax.ir.syntax import Atom, Jaxpr, Scalar
from effax.ir.types import ArrayType, Shape, Type, array_type
from effax.testing.report import law
from effax.testing.values import shown
from effax.transforms.rewrite import App, Hole, Number, Pattern, Rule, Sample, rewriting
from effax.transforms.run import unwrap

SPECIAL: Final[dict[str, tuple[Scalar, ...]]] = {
    "bool": (False, True),
    "int": (0, 1, -1, 2, -7, 127, -128),
    "uint": (0, 1, 2, 7, 255),
    "float": (0.0, -0.0, 1.0, -1.0, 0.1, -2.5, inf, -inf, nan, 3e38, 1e-40),
    "complex": (0j, 1 + 0j, -0.0 - 1j, complex(inf, -2.0), complex(0.5, nan), -0.3 + 0.7j),
}
"""Values on which wrong rules are seen: by dtype family, all of which every dtype has or rounds."""


@law
def rule_is_true(rule: Rule, seed: int = 0) -> None:
    """left(x) = right(x), bit by bit, zeros' signs, infinities and nan included.

    The rule must apply to each of its instances, in every dtype of its families.
    """
    rng = np.random.default_rng(seed)
    for left, shape, dtype in instances(rule):
        jaxpr = program_of(left, array_type(shape, dtype))
        made = unwrap(rewriting([rule])(jaxpr))
        assert made != jaxpr, f"the rule does not apply to an instance of its left side:\n{jaxpr}"
        assert isinstance(check(made), Success), f"the right side is ill typed:\n{made}"
        for _ in range(4):
            inputs = [special_values(rng, t) for t in jaxpr.in_types]
            for x, y in zip(evaluate(jaxpr, inputs), evaluate(made, inputs), strict=True):
                if not identical(np.asarray(x), np.asarray(y)):
                    raise AssertionError(
                        f"on {[shown(x) for x in inputs]}\nthe left side gives {shown(x)}"
                        f"\nthe right one {shown(y)}\n{diff(jaxpr, made)}"
                    )


DTYPES_OF: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("bool",),
    "int": ("int32", "int8"),
    "uint": ("uint8",),
    "float": ("float32", "float64", "bfloat16"),
    "complex": ("complex64",),
}


def instances(rule: Rule) -> Iterator[tuple[App, Shape, str]]:
    """The left sides on which a rule is tried, with the shape and the dtype of their holes."""
    dtypes = [d for name in sorted(rule.families) for d in DTYPES_OF[name]]
    scalar_only = isinstance(rule.right, Number)
    shapes: tuple[Shape, ...] = ((),) if scalar_only else ((), (5,))
    samples = rule.samples or tuple(Sample(rule.left, shape) for shape in shapes)
    for left, shape, dtype in samples:
        yield from ((left, shape, d) for d in ([dtype] if dtype else dtypes))


def program_of(left: App, type_: ArrayType) -> Jaxpr:
    """The program of a pattern, with an input of this type for each of its holes."""
    names: dict[str, int] = {}

    def holes(pattern: Pattern) -> None:
        if isinstance(pattern, Hole):
            names.setdefault(pattern.name, len(names))
        elif isinstance(pattern, App):
            for arg in pattern.args:
                holes(arg)

    holes(left)
    b = Builder([type_] * len(names))

    def build(pattern: Pattern) -> Atom:
        if isinstance(pattern, Hole):
            return b.binders[names[pattern.name]]
        if isinstance(pattern, Number):
            return lit(pattern.value, type_)
        prim = pattern.prim() if isinstance(pattern.prim, type) else pattern.prim
        return b(prim, *map(build, pattern.args))

    return b.finish([build(left)])


def special_values(rng: np.random.Generator, type_: Type) -> np.ndarray:
    """An array of special values, in random order."""
    values = SPECIAL[family(type_.dtype)]
    picked = [values[i] for i in rng.integers(0, len(values), max(prod(type_.shape), 1))]
    with np.errstate(all="ignore"):
        return np.array(picked).astype(type_.dtype)[: prod(type_.shape)].reshape(type_.shape)


def identical(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays have one type and equal bits; every nan is the same."""
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        return False
    if family(x.dtype) == "complex":
        return all(identical(part(x), part(y)) for part in (np.real, np.imag))
    if family(x.dtype) == "float":
        x, y = x.astype(np.float64), y.astype(np.float64)
        same_sign = np.signbit(x) == np.signbit(y)
        return bool(np.all(((x == y) & same_sign) | (np.isnan(x) & np.isnan(y))))
    return bool(np.array_equal(x, y))
