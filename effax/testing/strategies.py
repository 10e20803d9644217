"""Hypothesis strategies for types, programs and inputs.

Programs are well typed by construction and shrink to few equations::

    from hypothesis import given
    from effax.testing import laws
    from effax.testing.strategies import programs


    @given(programs(), st.integers(0, 999))
    def test_my_pass(jaxpr, seed):
        laws.observationally_equal(jaxpr, my_pass(jaxpr), seed)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from effax.ir.axes import Axes, Axis
from effax.ir.dtypes import DType, as_dtype
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, Shape, Type, array_type, ref_type
from effax.testing.generate import random_programs
from effax.testing.generate.features import ANYTHING, COMPILED, NUMERIC, SHARDED, SMOOTH, Features
from effax.testing.generate.instances import FORMS
from effax.testing.generate.random_programs import SEEDS, SHAPES
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.steps import check_features, step_names
from effax.testing.laws.law import About
from effax.transforms.optimize.patterns import App
from effax.tree import PyTree

__all__ = [
    "ANYTHING",
    "COMPILED",
    "NUMERIC",
    "SHARDED",
    "SMOOTH",
    "Features",
    "array_types",
    "compositions",
    "linear_programs",
    "open_programs",
    "programs",
    "programs_with",
    "redundant_programs",
    "ref_types",
    "seeds",
    "shapes",
    "step_names",
    "subjects",
    "types",
    "varied_programs",
]

DTYPES: Final[tuple[DType, ...]] = tuple(
    map(
        as_dtype,
        (
            *("float32", "int32", "bool", "float64", "bfloat16", "float16", "complex64"),
            *("int8", "int16", "int64", "uint8", "uint32", "complex128"),
        ),
    )
)

shapes: Final[SearchStrategy[Shape]] = st.sampled_from(SHAPES)
"""Small shapes, the simplest first; empty ones and rank 0 among them."""

seeds: Final[SearchStrategy[int]] = st.integers(0, SEEDS - 1)
"""Seeds of the inputs and directions of laws; 0 differentiates and batches everything."""


def array_types(dtypes: Sequence[DType] = DTYPES, weak: bool = True) -> SearchStrategy[ArrayType]:
    """Types of arrays, weak scalars among them unless ``weak`` is false."""
    strong = st.builds(array_type, shapes, st.sampled_from(dtypes))
    if not weak:
        return strong
    return strong | st.builds(array_type, st.just(()), st.sampled_from(dtypes), st.just(True))


def ref_types(dtypes: Sequence[DType] = DTYPES) -> SearchStrategy[Type]:
    """Types of references."""
    return st.builds(ref_type, array_types(dtypes, weak=False))


def types(dtypes: Sequence[DType] = DTYPES) -> SearchStrategy[Type]:
    """Types of arrays and of references."""
    return array_types(dtypes) | ref_types(dtypes)


_RANDOMS: Final = st.randoms(use_true_random=False)


def _source(draw: DrawFn) -> RandomSource:
    """Return random choices that come from one random generator of Hypothesis.

    With a strategy a choice, Hypothesis would copy the choices of one place to others, and try
    variants of few programs.
    """
    return RandomSource(draw(_RANDOMS))


@st.composite
def programs(
    draw: DrawFn,
    features: Features = NUMERIC,
    in_types: Sequence[Type] | None = None,
    steps: int = 8,
) -> Jaxpr:
    """Well-typed programs of a few equations.

    Args:
        draw: passed by Hypothesis.
        features: what the programs may contain.
        in_types: the types of the inputs; drawn where it is None.
        steps: the largest number of generation steps of the outermost program.
    """
    return random_programs.program(_source(draw), features, in_types, steps)


@st.composite
def redundant_programs(
    draw: DrawFn, features: Features = NUMERIC, steps: int = 6, patterns: Sequence[App] = ()
) -> Jaxpr:
    """Programs with computations that are repeated, overwritten or undone.

    Args:
        draw: passed by Hypothesis.
        features: what the programs may contain.
        steps: the largest number of generation steps of the outermost program.
        patterns: patterns of which the programs contain instances.
    """
    return random_programs.redundant_program(_source(draw), features, steps, patterns)


@st.composite
def programs_with(
    draw: DrawFn, patterns: Sequence[App] = FORMS, features: Features = NUMERIC, steps: int = 3
) -> Jaxpr:
    """Small programs with instances of patterns.

    Args:
        draw: passed by Hypothesis.
        patterns: patterns such as the left sides of rewrite rules.
        features: what else the programs may contain.
        steps: the largest number of further generation steps.
    """
    return random_programs.program_with(_source(draw), patterns, features, steps)


@st.composite
def varied_programs(draw: DrawFn, features: Features = NUMERIC) -> Jaxpr:
    """Programs that are each full of one kind of step; of the focus of ``features``, if any."""
    return random_programs.varied_program(_source(draw), features)


@st.composite
def open_programs(draw: DrawFn, axis: Axis, features: Features = NUMERIC, steps: int = 6) -> Jaxpr:
    """Programs with collectives along ``axis``, which is free.

    Args:
        draw: passed by Hypothesis.
        axis: the free axis.
        features: what the programs may contain.
        steps: the largest number of generation steps of the outermost program.
    """
    return random_programs.open_program(_source(draw), axis, features, steps)


@st.composite
def linear_programs(
    draw: DrawFn, features: Features = NUMERIC, steps: int = 7, axes: Axes = ()
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """Programs whose results are linear in some of the inputs, with the mask of these inputs.

    References that are not linear are not written. Collectives may run along ``axes``.
    """
    return random_programs.linear_program(_source(draw), features, steps, axes)


@st.composite
def compositions(draw: DrawFn, features: Features = SMOOTH) -> tuple[Jaxpr, Jaxpr]:
    """Two programs; the second takes the results of the first, then its references."""
    return random_programs.composition(_source(draw), features)


@st.composite
def subjects(draw: DrawFn, about: About, features: Features = NUMERIC) -> tuple[PyTree, ...]:
    """The first arguments of laws.

    Args:
        draw: passed by Hypothesis.
        about: the kind of law.
        features: what the programs may contain.

    Raises:
        BadArgument: the features are unknown, or laws of the kind take explicit arguments.
    """
    check_features(features)
    return random_programs.subject(_source(draw), about, features)
