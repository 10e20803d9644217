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
from effax.transforms.optimize.rewrite import App
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
"""Seeds of the inputs and directions that laws take; 0 differentiates and batches everything."""


def array_types(dtypes: Sequence[DType] = DTYPES, weak: bool = True) -> SearchStrategy[ArrayType]:
    """Types of arrays.

    Args:
        dtypes: those that the arrays may have.
        weak: whether scalars may be weak.
    """
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


def _choices(draw: DrawFn) -> RandomSource:
    """RandomSource of Hypothesis's.

    They come from a random generator that is made of its choices, and not from strategies:
    Hypothesis would copy what strategies drew from one place of a program to others, and most
    programs that it tries would be variants of few.
    """
    return RandomSource(draw(_RANDOMS))


@st.composite
def programs(
    draw: DrawFn,
    features: Features = NUMERIC,
    in_types: Sequence[Type] | None = None,
    steps: int = 8,
) -> Jaxpr:
    """Programs of a few equations, well typed.

    Args:
        draw: given by Hypothesis.
        features: what they may contain.
        in_types: the types of their inputs; drawn where it is None.
        steps: how many steps the outermost program grows by at most.
    """
    return random_programs.program(_choices(draw), features, in_types, steps)


@st.composite
def redundant_programs(
    draw: DrawFn, features: Features = NUMERIC, steps: int = 6, patterns: Sequence[App] = ()
) -> Jaxpr:
    """Programs with much in them that is computed twice, overwritten, or undone.

    Args:
        draw: given by Hypothesis.
        features: what they may contain.
        steps: how many steps the outermost program grows by at most.
        patterns: of which they are to have instances.
    """
    return random_programs.redundant_program(_choices(draw), features, steps, patterns)


@st.composite
def programs_with(
    draw: DrawFn, patterns: Sequence[App] = FORMS, features: Features = NUMERIC, steps: int = 3
) -> Jaxpr:
    """Small programs that give instances of patterns: of what passes and rules look for.

    Args:
        draw: given by Hypothesis.
        patterns: left sides of rules, and the like.
        features: what else they may contain.
        steps: how many steps they grow by beside that.
    """
    return random_programs.program_with(_choices(draw), patterns, features, steps)


@st.composite
def varied_programs(draw: DrawFn, features: Features = NUMERIC) -> Jaxpr:
    """Programs of which each is full of one kind of step or another; of ``focus``, if there is."""
    return random_programs.varied_program(_choices(draw), features)


@st.composite
def open_programs(draw: DrawFn, axis: Axis, features: Features = NUMERIC, steps: int = 6) -> Jaxpr:
    """Programs with collectives along ``axis``, which something around them is to bind.

    Args:
        draw: given by Hypothesis.
        axis: the axis.
        features: what they may contain.
        steps: how many steps the outermost program grows by at most.
    """
    return random_programs.program(_choices(draw), features, steps=steps, axes=(axis,))


@st.composite
def linear_programs(
    draw: DrawFn, features: Features = NUMERIC, steps: int = 7, axes: Axes = ()
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """Programs that are linear in some of their inputs, and which those are.

    All results are linear. References that are not linear are not written. ``axes`` are those
    along which there may be collectives.
    """
    return random_programs.linear_program(_choices(draw), features, steps, axes)


@st.composite
def compositions(draw: DrawFn, features: Features = SMOOTH) -> tuple[Jaxpr, Jaxpr]:
    """Two programs of which the second takes the results of the first, then its references."""
    return random_programs.composition(_choices(draw), features)


@st.composite
def subjects(draw: DrawFn, about: About, features: Features = NUMERIC) -> tuple[PyTree, ...]:
    """What laws of a kind are about, as their first arguments.

    Args:
        draw: given by Hypothesis.
        about: the kind.
        features: what the programs have.

    Raises:
        BadArgument: there are no such features, or nothing of the kind is drawn.
    """
    check_features(features)
    return random_programs.subject(_choices(draw), about, features)
