"""Random programs, well typed by construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir.axes import Axes, Axis
from effax.ir.dtypes import as_dtype, is_float
from effax.ir.errors import BadArgument
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import ArrayType, Shape, Type, array_type, ref_type
from effax.testing.generate.features import NUMERIC, SMOOTH, Features
from effax.testing.generate.instances import FORMS, with_instances
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.random_source import RandomSource
from effax.testing.generate.redundant import with_redundancy
from effax.testing.generate.refs import consume_rest
from effax.testing.generate.steps import THEMES, check_features, generate, step_names
from effax.testing.laws.law import About
from effax.transforms.optimize.rewrite import App
from effax.tree import PyTree

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

SEEDS: Final = 1000
"""The bound of the seeds of inputs."""

AXIS: Final = Axis("i", 3)
"""The axis of collectives in open programs."""

LOOPLESS: Final = ("jit", "remat", "cond", "scan")
"""The control flow of linear programs with collectives."""


def program(
    choose: RandomSource,
    features: Features = NUMERIC,
    in_types: Sequence[Type] | None = None,
    steps: int = 8,
    axes: Axes = (),
) -> Jaxpr:
    """Return a program of a few equations.

    Args:
        choose: the source of choices.
        features: the features of the program.
        in_types: the types of its inputs; random ones if None.
        steps: the greatest number of steps of the outermost program.
        axes: the axes of collectives.
    """
    wanted = _in_types(choose, features) if in_types is None else in_types
    g = ProgramBuilder(choose, features, wanted, theme=choose.below(len(THEMES)))
    g.axes = axes
    generate(g, steps)
    consume_rest(g)
    return g.finish(_outs(g))


def open_program(
    choose: RandomSource, axis: Axis, features: Features = NUMERIC, steps: int = 6
) -> Jaxpr:
    """Return a program with collectives along ``axis``, which is free in it."""
    return program(choose, features, steps=steps, axes=(axis,))


def redundant_program(
    choose: RandomSource, features: Features = NUMERIC, steps: int = 6, patterns: Sequence[App] = ()
) -> Jaxpr:
    """Return a program with repeated, overwritten and undone computations.

    Args:
        choose: where choices come from.
        features: what it may contain.
        steps: how many steps the outermost program grows by at most.
        patterns: of which it is to have instances.
    """
    made = program(choose, features, steps=steps)
    return with_redundancy(made, choose.below(SEEDS), patterns)


def program_with(
    choose: RandomSource,
    patterns: Sequence[App] = FORMS,
    features: Features = NUMERIC,
    steps: int = 3,
) -> Jaxpr:
    """Return a small program with instances of patterns.

    Args:
        choose: where choices come from.
        patterns: left sides of rules, and the like.
        features: what else it may contain.
        steps: how many steps it grows by beside that.
    """
    made = program(choose, features, steps=steps)
    return with_instances(made, choose.below(SEEDS), patterns)


def varied_program(choose: RandomSource, features: Features = NUMERIC) -> Jaxpr:
    """Return a program full of one kind of step; of ``focus``, if there is one."""
    if not features.focus:
        names = [name for name in step_names() if is_step_of(name, features)]
        # Loops and branches are preferred: passes do most of their work there.
        kinds = ["", *names, *(features.control * 6 if features.depth else ())]
        features = replace(features, focus=choose.pick(kinds))
    return program(choose, features)


def is_step_of(name: str, features: Features) -> bool:
    """Return whether the features allow a kind of step."""
    family, _, rest = name.partition(".")
    if not rest:
        return name in features.control
    if family == "refs":
        return features.refs
    return bool(features.complexes) or rest != "complexes"


def linear_program(
    choose: RandomSource, features: Features = NUMERIC, steps: int = 7, axes: Axes = ()
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """Return a program that is linear in some of its inputs, and their mask.

    All results are linear. Nonlinear references are not written.
    """
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
    g = ProgramBuilder(choose, features, wanted, linear, theme=choose.below(len(THEMES)))
    g.axes = axes
    generate(g, steps)
    consume_rest(g)
    leaves = [v for v in g.leaves() if g.is_linear(v) and is_float(v.type.dtype)]
    outs = _most(g, leaves[-8:])
    if choose.chance(20):
        outs += [v for v in g.b.binders if g.is_linear(v) and isinstance(v.type, ArrayType)][:1]
    return g.finish(outs), linear


def composition(choose: RandomSource, features: Features = SMOOTH) -> tuple[Jaxpr, Jaxpr]:
    """Return two programs; the second takes the results of the first, then its references."""
    first = program(choose, features, steps=4)
    return first, _after(choose, first, features)


def _after(choose: RandomSource, first: Jaxpr, features: Features) -> Jaxpr:
    """Return a program that takes the results of another, then its references."""
    refs = [t for t in first.in_types if not isinstance(t, ArrayType)]
    return program(choose, features, in_types=(*first.out_types, *refs), steps=4)


PLANTED: Final = (About.PROGRAMS, About.REDUNDANT, About.PAIRS, About.OPEN)
"""The subjects in which patterns can be inserted; others have linear programs."""


def subject(
    choose: RandomSource,
    about: About,
    features: Features = NUMERIC,
    patterns: Sequence[App] = (),
) -> tuple[PyTree, ...]:
    """Return the first arguments of a law of a kind, with instances of the patterns.

    Of a pair, the first program has them; linear programs have none. Raises BadArgument for a law
    whose arguments are explicit.
    """
    check_features(features)
    if patterns and about in PLANTED:
        return _planted(choose, about, features, patterns)
    linear = replace(features, differentiable=False)
    match about:
        case About.PROGRAMS:
            return (program(choose, features),)
        case About.REDUNDANT:
            return (redundant_program(choose, features),)
        case About.PAIRS:
            return composition(choose, features)
        case About.LINEAR:
            return linear_program(choose, linear)
        case About.OPEN:
            return open_program(choose, AXIS, features), AXIS
        case About.OPEN_LINEAR:
            control = tuple([name for name in features.control if name in LOOPLESS])
            return *linear_program(choose, replace(linear, control=control), axes=(AXIS,)), AXIS
        case About.EXPLICIT:
            raise BadArgument(
                "nothing is drawn for such a law", found=str(about), remedy="call the law itself"
            )


def _planted(
    choose: RandomSource, about: About, features: Features, patterns: Sequence[App]
) -> tuple[PyTree, ...]:
    match about:
        case About.REDUNDANT:
            return (redundant_program(choose, features, patterns=patterns),)
        case About.PAIRS:
            first = program_with(choose, patterns, features)
            return first, _after(choose, first, features)
        case About.OPEN:
            made = program(choose, features, axes=(AXIS,))
            return with_instances(made, choose.below(SEEDS), patterns), AXIS
        case _:
            return (program_with(choose, patterns, features, choose.pick((3, 8))),)


def seed_of(choose: RandomSource) -> int:
    """Return a seed for inputs: often 0, for which laws differentiate and batch everything."""
    return 0 if choose.chance(15) else choose.below(SEEDS)


def _in_types(choose: RandomSource, features: Features) -> list[Type]:
    few = _few_shapes(choose)
    wanted: list[Type] = [_in_type(choose, features, few, float_only=True)]
    wanted += [_in_type(choose, features, few) for _ in range(choose.pick((1, 2, 0, 3)))]
    if features.refs:
        for _ in range(choose.pick((0, 1, 2, 1))):
            inner = _in_type(choose, features, few, float_only=choose.chance(75))
            wanted.insert(choose.below(len(wanted) + 1), ref_type(inner))
    return wanted


def _few_shapes(choose: RandomSource) -> tuple[Shape, ...]:
    """Return the shapes of a program's inputs: few, so that values of one type meet."""
    shape, other = choose.pick(SHAPES), choose.pick(SHAPES)
    return (shape, shape, shape, shape[1:], (), other)


def _in_type(
    choose: RandomSource, features: Features, few: Sequence[Shape], float_only: bool = False
) -> ArrayType:
    shape = choose.pick(few)
    floats = features.floats
    dtypes = floats if float_only else (*floats, *floats, *features.ints, as_dtype("bool"))
    dtype = choose.pick(dtypes)
    if features.complexes and not float_only and choose.chance(15):
        dtype = choose.pick(features.complexes)
    weak = features.weak and not shape and choose.chance(25)
    return array_type(shape, dtype, weak)


def _outs(g: ProgramBuilder) -> list[Atom]:
    """Return most leaves, and sometimes an input, a literal, or a result twice."""
    outs: list[Atom] = [*_most(g, g.leaves()[-12:])]
    if g.choose.chance(20) and g.arrays:
        outs.append(g.choose.pick(g.arrays))
    if g.choose.chance(5):
        outs.append(g.literal(g.features.floats[0]))
    return outs


def _most(g: ProgramBuilder, values: Sequence[Var]) -> list[Var]:
    """Return the values with few exceptions; shrinks to none."""
    return [v for v in values if g.choose.below(20)]
