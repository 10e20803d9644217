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
from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from effax.ir.axes import Axes, Axis
from effax.ir.dtypes import DType, as_dtype, is_float
from effax.ir.errors import BadArgument
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import ArrayType, Shape, Type, array_type, ref_type
from effax.testing.choices import Choices
from effax.testing.features import ANYTHING, COMPILED, NUMERIC, SHARDED, SMOOTH, Features
from effax.testing.grower import Grower
from effax.testing.growth import THEMES, check_features, grow, step_names
from effax.testing.planting import FORMS, with_instances
from effax.testing.redundant import with_redundancy
from effax.testing.statement import About
from effax.testing.steps.refs import consume_rest
from effax.transforms.rewrite import App

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

SHAPES: Final[tuple[Shape, ...]] = (
    (),
    (3,),
    (2,),
    (2, 3),
    (3, 2),
    (2, 2),
    (1,),
    (3, 3),
    (2, 1),
    (2, 3, 2),
    (4,),
    (0,),
    (0, 2),
)

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

seeds: Final[SearchStrategy[int]] = st.integers(0, 999)
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
    choose = Choices(draw)
    wanted = _in_types(choose, features) if in_types is None else in_types
    g = Grower(choose, features, wanted, theme=choose.below(len(THEMES)))
    grow(g, steps)
    consume_rest(g)
    return g.finish(_outs(g))


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
    return with_redundancy(draw(programs(features, steps=steps)), draw(seeds), patterns)


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
    return with_instances(draw(programs(features, steps=steps)), draw(seeds), patterns)


def varied_programs(features: Features = NUMERIC) -> SearchStrategy[Jaxpr]:
    """Programs of which each is full of one kind of step or another; of ``focus``, if there is."""
    if features.focus:
        return programs(features)
    names = [name for name in step_names() if _is_of(name, features)]
    kinds = st.sampled_from(["", *names])
    return kinds.flatmap(lambda name: programs(replace(features, focus=name)))


def _is_of(name: str, features: Features) -> bool:
    """Whether a kind of step is among what programs may contain."""
    family, _, rest = name.partition(".")
    if not rest:
        return name in features.control
    if family == "refs":
        return features.refs
    return bool(features.complexes) or rest != "complexes"


def _in_types(choose: Choices, features: Features) -> list[Type]:
    few = _few_shapes(choose)
    wanted: list[Type] = [_in_type(choose, features, few, float_only=True)]
    wanted += [_in_type(choose, features, few) for _ in range(choose.pick((1, 2, 0, 3)))]
    if features.refs:
        for _ in range(choose.pick((0, 1, 2, 1))):
            inner = _in_type(choose, features, few, float_only=choose.chance(75))
            wanted.insert(choose.below(len(wanted) + 1), ref_type(inner))
    return wanted


def _few_shapes(choose: Choices) -> tuple[Shape, ...]:
    """The shapes of one program's inputs: few, so that values of one type meet."""
    shape, other = choose.pick(SHAPES), choose.pick(SHAPES)
    return (shape, shape, shape, shape[1:], (), other)


def _in_type(
    choose: Choices, features: Features, few: Sequence[Shape], float_only: bool = False
) -> ArrayType:
    shape = choose.pick(few)
    floats = features.floats
    dtypes = floats if float_only else (*floats, *floats, *features.ints, as_dtype("bool"))
    dtype = choose.pick(dtypes)
    if features.complexes and not float_only and choose.chance(15):
        dtype = choose.pick(features.complexes)
    weak = features.weak and not shape and choose.chance(25)
    return array_type(shape, dtype, weak)


def _outs(g: Grower) -> list[Atom]:
    """Most of what nothing uses, and sometimes an input, a literal, or a result twice."""
    outs: list[Atom] = [*_most(g, g.leaves()[-12:])]
    if g.choose.chance(20) and g.arrays:
        outs.append(g.choose.pick(g.arrays))
    if g.choose.chance(5):
        outs.append(g.literal(g.features.floats[0]))
    return outs


def _most(g: Grower, values: Sequence[Var]) -> list[Var]:
    """The values with few exceptions; shrinks to none."""
    return [v for v in values if g.choose.below(20)]


@st.composite
def open_programs(draw: DrawFn, axis: Axis, features: Features = NUMERIC, steps: int = 6) -> Jaxpr:
    """Programs with collectives along ``axis``, which something around them is to bind.

    Args:
        draw: given by Hypothesis.
        axis: the axis.
        features: what they may contain.
        steps: how many steps the outermost program grows by at most.
    """
    choose = Choices(draw)
    g = Grower(choose, features, _in_types(choose, features), theme=choose.below(len(THEMES)))
    g.axes = (axis,)
    grow(g, steps)
    consume_rest(g)
    return g.finish(_outs(g))


@st.composite
def linear_programs(
    draw: DrawFn, features: Features = NUMERIC, steps: int = 7, axes: Axes = ()
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """Programs that are linear in some of their inputs, and which those are.

    All results are linear. References that are not linear are not written. ``axes`` are those
    along which there may be collectives.
    """
    choose = Choices(draw)
    dtype, few = features.floats[0], _few_shapes(choose)
    kinds: list[tuple[Type, bool]] = [
        (array_type(choose.pick(few), dtype), True) for _ in range(1 + choose.below(3))
    ]
    kinds += [(_in_type(choose, features, few), False) for _ in range(choose.below(3))]
    if features.refs:
        kinds += [
            (ref_type(array_type(choose.pick(few), dtype)), True)
            for _ in range(choose.pick((0, 1, 2)))
        ]
    wanted, linear = zip(*kinds, strict=True)
    g = Grower(choose, features, wanted, linear, theme=choose.below(len(THEMES)))
    g.axes = axes
    grow(g, steps)
    consume_rest(g)
    leaves = [v for v in g.leaves() if g.is_linear(v) and is_float(v.type.dtype)]
    outs = _most(g, leaves[-8:])
    if choose.chance(20):
        outs += [v for v in g.b.binders if g.is_linear(v) and isinstance(v.type, ArrayType)][:1]
    return g.finish(outs), linear


@st.composite
def compositions(draw: DrawFn, features: Features = SMOOTH) -> tuple[Jaxpr, Jaxpr]:
    """Two programs of which the second takes the results of the first, then its references."""
    first = draw(programs(features, steps=4))
    refs = [t for t in first.in_types if not isinstance(t, ArrayType)]
    second = draw(programs(features, in_types=(*first.out_types, *refs), steps=4))
    return first, second


AXIS: Final = Axis("i", 3)
"""The axis along which open programs have collectives, where laws are tried on them."""

LOOPLESS: Final = ("jit", "remat", "cond", "scan")
"""Which control flow linear programs with collectives use."""


def subjects(about: About, features: Features = NUMERIC) -> SearchStrategy[tuple[Any, ...]]:
    """What laws of a kind are about, as their first arguments.

    Args:
        about: the kind.
        features: what the programs have.

    Raises:
        BadArgument: there are no such features, or nothing of the kind is drawn.
    """
    check_features(features)
    linear = replace(features, differentiable=False)
    match about:
        case About.PROGRAMS:
            return programs(features).map(lambda jaxpr: (jaxpr,))
        case About.REDUNDANT:
            return redundant_programs(features).map(lambda jaxpr: (jaxpr,))
        case About.PAIRS:
            return compositions(features)
        case About.LINEAR:
            return linear_programs(linear)
        case About.OPEN:
            return open_programs(AXIS, features).map(lambda jaxpr: (jaxpr, AXIS))
        case About.OPEN_LINEAR:
            loopless = tuple(name for name in features.control if name in LOOPLESS)
            few = linear_programs(replace(linear, control=loopless), axes=(AXIS,))
            return few.map(lambda program: (*program, AXIS))
        case About.GIVEN:
            raise BadArgument(
                "nothing is drawn for such a law", found=str(about), remedy="call the law itself"
            )
