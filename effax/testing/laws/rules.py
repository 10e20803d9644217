"""The law of rewrite rules: both sides give the same, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from returns.result import Success

from effax.ir.build import Builder, lit
from effax.ir.check import check
from effax.ir.diff import diff
from effax.ir.evaluate import evaluate
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, Shape, array_type
from effax.testing.specials import all_together, identical, special_values
from effax.testing.statement import About, law
from effax.testing.values import shown
from effax.transforms.patterns import orders, with_parameters
from effax.transforms.rewrite import App, Hole, Number, Pattern, Rule, Sample, rewriting
from effax.transforms.run import unwrap


@law(about=About.GIVEN)
def rule_is_true(rule: Rule, seed: int = 0) -> None:
    """left(x) = right(x), bit by bit, zeros' signs, infinities and nan included.

    The rule must apply to each of its instances, in every dtype of its families, and in every order
    of operands that commute. Where it has samples these are its instances; else all special values
    of the holes are tried together, as scalars and along an axis.
    """
    rng = np.random.default_rng(seed)
    for left, shape, dtype in instances(rule):
        jaxpr = program_of(rule, left, array_type(shape, dtype))
        made = unwrap(rewriting([rule])(jaxpr))
        assert made != jaxpr, f"the rule does not apply to an instance of its left side:\n{jaxpr}"
        assert isinstance(check(made), Success), f"the right side is ill typed:\n{made}"
        for inputs in inputs_of(rng, jaxpr, shape):
            for x, y in zip(evaluate(jaxpr, inputs), evaluate(made, inputs), strict=True):
                if not identical(np.asarray(x), np.asarray(y)):
                    raise AssertionError(
                        _unequal(inputs, np.asarray(x), np.asarray(y), jaxpr, made)
                    )


def inputs_of(rng: np.random.Generator, jaxpr: Jaxpr, shape: Shape) -> Iterator[list[np.ndarray]]:
    """Inputs of special values: each with each other where the holes may have any length."""
    if shape == (MANY,):
        together = all_together([t.dtype for t in jaxpr.in_types])
        count = len(together[0]) if together else 0
        picked: np.ndarray = rng.permutation(count)[:MANY]
        yield [np.resize(x[picked], MANY) for x in together]
        return
    for _ in range(8):
        yield [special_values(rng, t) for t in jaxpr.in_types]


def _unequal(
    inputs: list[np.ndarray], x: np.ndarray, y: np.ndarray, jaxpr: Jaxpr, made: Jaxpr
) -> str:
    """What is told of the first place where the sides differ."""
    if x.shape == (MANY,) == y.shape and x.dtype == y.dtype:
        at = next(i for i in range(MANY) if not identical(x[i : i + 1], y[i : i + 1]))
        inputs, x, y = [v[at] for v in inputs], x[at], y[at]
    return (
        f"on {', '.join(map(shown, inputs))}\nthe left side gives {shown(x)}"
        f"\nthe right one {shown(y)}\n{diff(jaxpr, made)}"
    )


MANY: Final = 256
"""How many combinations of special values are tried at once: those of two holes are fewer."""

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
    samples = rule.samples or tuple(Sample(rule.left, shape) for shape in ((), (MANY,)))
    for sample, shape, dtype in samples:
        for left in orders(sample):
            yield from ((left, shape, d) for d in ([dtype] if dtype else dtypes))


def program_of(rule: Rule, left: App, type_: ArrayType) -> Jaxpr:
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
        return b(with_parameters(rule, pattern), *map(build, pattern.args))

    return b.finish([build(left)])
