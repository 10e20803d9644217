"""Costs of programs, by which rules are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from effax.ir.analysis.queries import free_variables, size
from effax.ir.edit.alpha import renumbered
from effax.ir.errors import BadArgument, TransformError
from effax.ir.primitive import Primitive
from effax.ir.recursion import postorder
from effax.ir.syntax import Eqn, Jaxpr
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.runner import wrap_errors


class CostFunction(Protocol):
    """A function that returns the cost of a program, such as the number of its equations.

    It must be a pure function: equal programs have equal costs.
    """

    def __call__(self, jaxpr: Jaxpr, /) -> float:
        """Return the cost."""
        raise NotImplementedError


def equation_count(jaxpr: Jaxpr, /) -> float:
    """Return the number of equations, those of a subjaxpr counted wherever it occurs."""
    return size(jaxpr)


@dataclass(frozen=True)
class PerEquation:
    """The sum of a cost over all equations, those of a subjaxpr counted wherever it occurs.

    Attributes:
        cost: the cost of an equation without that of its subjaxprs.
    """

    cost: Callable[[Eqn], float]

    def __call__(self, jaxpr: Jaxpr, /) -> float:
        """Return the sum."""
        sums: dict[Jaxpr, float] = {}
        for program in postorder(jaxpr):
            sums[program] = sum(
                self.cost(eqn) + sum(sums[inner] for inner in eqn.prim.subjaxprs())
                for eqn in program.eqns
            )
        return sums[jaxpr]


@dataclass(frozen=True)
class _Weights:
    weights: tuple[tuple[type[Primitive], float], ...]
    default: float

    def __call__(self, eqn: Eqn) -> float:
        return dict(self.weights).get(type(eqn.prim), self.default)


def weighted(weights: Mapping[type[Primitive], float], default: float = 1.0) -> CostFunction:
    """Return the cost that counts each equation with the weight of the class of its primitive.

    Raises BadArgument if a weight is negative, or a key is not a class of primitives.

    >>> from effax.ir import parse
    >>> from effax.ir.prims import Exp
    >>> jaxpr = parse("{ lambda ; a:f32[]. let b:f32[] = exp a; c:f32[] = neg b in (c,) }")
    >>> weighted({Exp: 10})(jaxpr)
    11.0
    """
    for kind, weight in [*weights.items(), (Primitive, default)]:
        given: object = kind
        if not isinstance(given, type) or not issubclass(given, Primitive) or not weight >= 0:
            raise BadArgument(
                "the weights of equations are not valid",
                expected="classes of primitives, with numbers that are not negative",
                found=f"{kind!r:.60}: {weight!r:.20}",
            )
    ordered = sorted(weights.items(), key=lambda item: item[0].name)
    return PerEquation(_Weights(tuple(ordered), float(default)))


def price(cost: CostFunction, jaxpr: Jaxpr) -> float:
    """Return the cost of a program. Raises TransformError if it is not a number."""
    with wrap_errors("the cost function"):
        found: object = cost(jaxpr)
    if isinstance(found, int | float):
        return float(found)
    raise TransformError(
        "the cost function does not return a number",
        expected="an int or a float",
        found=f"{found!r:.60}",
        remedy="return one field of a record: `lambda jaxpr: cost(jaxpr).flops`",
    )


def cheaper(cost: CostFunction, new: Sequence[Eqn], old: Sequence[Eqn]) -> bool:
    """Return whether equations cost less than others."""
    return price(cost, _program_of(new)) < price(cost, _program_of(old))


def _program_of(eqns: Iterable[Eqn]) -> Jaxpr:
    several = [*eqns]
    outs = [v for eqn in several for v in eqn.outs]
    free = sorted(free_variables(several), key=lambda v: v.id)
    return renumbered(Jaxpr(free, several, outs))
