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

from collections.abc import Callable, Sequence
from typing import Concatenate, Final, ParamSpec, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from effax.ir.dtypes import DType, as_dtype
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, Shape, Type, array_type, ref_type
from effax.testing.generate import random_programs
from effax.testing.generate.features import ANYTHING, COMPILED, NUMERIC, SHARDED, SMOOTH, Features
from effax.testing.generate.random_programs import SEEDS, SHAPES
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.steps import step_names
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

P = ParamSpec("P")
T = TypeVar("T")


def _strategy(
    generate: Callable[Concatenate[RandomSource, P], T],
) -> Callable[P, SearchStrategy[T]]:
    """Return the strategy of a generator.

    It draws one random generator, not a strategy a choice: Hypothesis would copy the choices of one
    place to others, and try variants of few programs.
    """

    @st.composite
    def strategy(draw: DrawFn, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return generate(RandomSource(draw(_RANDOMS)), *args, **kwargs)

    return strategy


programs: Callable[..., SearchStrategy[Jaxpr]] = _strategy(random_programs.program)
"""Well-typed programs of a few equations: ``features``, ``in_types``, ``steps``."""

redundant_programs: Callable[..., SearchStrategy[Jaxpr]] = _strategy(
    random_programs.redundant_program
)
"""Programs with redundant computations: ``features``, ``steps``, ``patterns``."""

programs_with: Callable[..., SearchStrategy[Jaxpr]] = _strategy(random_programs.program_with)
"""Small programs with instances of patterns: ``patterns``, ``features``, ``steps``."""

varied_programs: Callable[..., SearchStrategy[Jaxpr]] = _strategy(random_programs.varied_program)
"""Programs that are each full of one kind of step; of the focus of ``features``, if any."""

open_programs: Callable[..., SearchStrategy[Jaxpr]] = _strategy(random_programs.open_program)
"""Programs with collectives along a free axis: ``axis``, ``features``, ``steps``."""

linear_programs: Callable[..., SearchStrategy[tuple[Jaxpr, tuple[bool, ...]]]] = _strategy(
    random_programs.linear_program
)
"""Programs that are linear in some of their inputs, with the mask: ``features``, ``steps``."""

compositions: Callable[..., SearchStrategy[tuple[Jaxpr, Jaxpr]]] = _strategy(
    random_programs.composition
)
"""Two programs; the second takes the results of the first, then its references."""

subjects: Callable[..., SearchStrategy[tuple[PyTree, ...]]] = _strategy(random_programs.subject)
"""The first arguments of laws: ``about``, ``features``. Raises BadArgument for unknown features."""
