"""Insert instances of patterns into programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from effax.ir import prims as p
from effax.ir.build import Builder
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, Type
from effax.transforms.optimize.patterns import instance_of
from effax.transforms.optimize.rewrite import (
    AnyNumber,
    App,
    Hole,
    IndexHole,
    Number,
    Pattern,
    Rest,
    RewriteRule,
    Sample,
    number_as,
)
from effax.transforms.optimize.rewrite_rule import steps_of

x: Final = Hole("x")
y: Final = Hole("y")
_SQUARE: Final = App(p.Mul, x, x)

_CONSTANTS: Final = (
    *[App(p.Div, x, Number(c)) for c in (3, 0.1, -0.7, 10)],
    *[App(p.Mul, x, Number(c)) for c in (-1, 3, 0.1, 0.5)],
    *[App(p.Add, App(p.Add, x, Number(a)), Number(b)) for a, b in ((1, -1), (0.1, 0.2), (3, 7))],
    *[App(p.Rem, x, Number(c)) for c in (1, 2, 3, -4)],
    *[App(p.IntegerPow(n), x) for n in (0, 1, 3, 4, 5, -1, -2, -3)],
    *[App(p.Pow, x, Number(c)) for c in (0.5, 2, -1, 3, 0)],
    *[App(p.ShiftLeft, x, Number(n)) for n in (1, 5, 7, 31, 33)],
    *[App(p.ShiftRightLogical, x, Number(n)) for n in (1, 5, 31)],
    *[App(p.ShiftRightArithmetic, x, Number(n)) for n in (1, 5, 31)],
    *[App(p.Div, x, Number(n)) for n in (4, 5, -2)],
)
"""Applications to constants: a pass may be right for few of them."""

_STEPS: Final = (
    App(p.Floor, x),
    App(p.Ceil, x),
    App(p.RoundEven, x),
    App(p.Sign, x),
    App(p.Gt, x, y),
    App(p.Sign, App(p.Sub, x, y)),
)
"""Applications that jump: at integers, at ties, at zero."""

FORMS: Final = (
    App(p.Neg, App(p.Neg, x)),
    App(p.Mul, x, Number(1)),
    App(p.Add, x, App(p.Neg, x)),
    App(p.Sub, x, App(p.Neg, y)),
    App(p.Sub, x, x),
    App(p.Add, x, Number(0)),
    App(p.Sub, Number(0), x),
    App(p.Mul, Number(0), x),
    App(p.Mul, App(p.Neg, x), y),
    App(p.Add, App(p.Mul, x, y), App(p.Mul, x, y)),
    App(p.Sub, App(p.Add, x, y), y),
    App(p.Mul, x, Number(2)),
    App(p.Div, x, Number(2)),
    App(p.Div, x, x),
    App(p.Div, App(p.Mul, x, y), y),
    App(p.Max, x, x),
    App(p.Max, x, App(p.Min, x, y)),
    App(p.Abs, App(p.Abs, x)),
    App(p.Sqrt, _SQUARE),
    App(p.IntegerPow(2), x),
    App(p.Log, App(p.Exp, x)),
    App(p.Tanh, App(p.Sin, x)),
    App(p.Add, App(p.Mul, App(p.Sin, x), App(p.Sin, x)), App(p.Cos, x)),
    App(p.Not, App(p.Not, x)),
    App(p.And, x, x),
    App(p.Or, App(p.And, x, y), y),
    App(p.Xor, x, x),
    App(p.Eq, x, x),
    App(p.Ne, x, x),
    App(p.Lt, x, x),
    App(p.Not, App(p.Lt, x, y)),
    App(p.SelectN, App(p.Lt, x, y), x, y),
    App(p.SelectN, App(p.Gt, x, y), y, x),
    App(p.SelectN, App(p.Ge, x, y), y, x),
    App(p.SelectN, App(p.Ge, x, Number(0)), y, y),
    *_CONSTANTS,
    *_STEPS,
)
"""Patterns that passes commonly look for; some have a simpler equivalent, some only nearly."""

Wanted = Primitive | type[Primitive] | App | RewriteRule
"""A primitive, a pattern, or the left side of a rule, of which programs are full."""


def patterns_of(wanted: Wanted) -> tuple[App, ...]:
    """Return the patterns to insert. Raises BadArgument if there is none."""
    match wanted:
        case App():
            found = [wanted]
        case RewriteRule():
            found = [s.left for s in wanted.samples if isinstance(s, Sample)]
            if not found:
                found = [*_singles(wanted)]
        case _:
            found = [*_applications(wanted)]
    for pattern in found:
        _check_parameters(pattern)
    return tuple(found)


def _singles(rule: RewriteRule) -> Iterator[App]:
    """Yield the steps of the left side of a rule."""
    for step in steps_of(rule.left):
        if isinstance(step.value, App):
            yield step.value


def _applications(prim: Primitive | type[Primitive]) -> Iterator[App]:
    holes = [Hole(f"x{i}") for i in range(3)]
    for n in (1, 2, 3):
        try:
            yield App(prim, *holes[:n])
        except BadArgument:
            # The primitive has another arity.
            continue


def _check_parameters(pattern: Pattern) -> None:
    if isinstance(pattern, App):
        _primitive(pattern)
        for arg in pattern.args:
            _check_parameters(arg)


def _primitive(app: App) -> Primitive:
    found = instance_of(app)
    if found is None:
        raise BadArgument(
            f"programs cannot be full of {app.prim.name}, which has parameters, without them",
            expected=f"an instance, `{app.kind.__name__}(...)`, or the name of a kind of step",
            found=str(app),
        )
    return found


def with_instances(
    jaxpr: Jaxpr, seed: int, patterns: Sequence[App] = FORMS, count: int = 8
) -> Jaxpr:
    """Append instances of patterns to the program, as further results.

    Args:
        jaxpr: the program.
        seed: determines the patterns and operands; programs of successive seeds cover all patterns.
        patterns: the patterns.
        count: the number of instances, if so many fit.
    """
    rng = np.random.default_rng([seed, 3])
    b = Builder(jaxpr.in_types)
    outs = b.inline_jaxpr(jaxpr, b.binders)
    bound = [*b.binders, *(v for eqn in b.eqns for v in eqn.outs)]
    arrays = [v for v in bound if family(v.type.dtype) != "void" and isinstance(v.type, ArrayType)]
    for i in range(count):
        made = plant(b, patterns[(seed * count + i) % len(patterns)], arrays, rng)
        if made is not None:
            arrays.append(made)
            outs.append(made)
    return b.finish(outs, jaxpr.n_consts, jaxpr.names)


def plant(b: Builder, pattern: App, arrays: Sequence[Var], rng: np.random.Generator) -> Var | None:
    """Append an instance of a pattern on some of the arrays; None if none of eight tries fits."""
    for _ in range(8):
        holes: dict[str, Atom] = {}
        begun = len(b.eqns), b.next_id
        try:
            return _instance(b, pattern, _picker(arrays, rng), holes)
        except EffaxError:
            # The operands do not fit: remove the equations.
            del b.eqns[begun[0] :]
            b.next_id = begun[1]
    return None


Pick = Callable[[], Var]


def _picker(arrays: Sequence[Var], rng: np.random.Generator) -> Pick:
    """Return a choice of arrays: the first at random, then mostly others of its type."""
    first = arrays[int(rng.integers(len(arrays)))] if arrays else None
    same = [v for v in arrays if first is not None and v.type is first.type]
    picked: list[Var] = []

    def pick() -> Var:
        if first is None:
            raise BadArgument("no array is in scope")
        others = same if rng.random() < 0.8 else arrays
        v = others[int(rng.integers(len(others)))] if picked else first
        picked.append(v)
        return v

    return pick


def _number(number: Number, like: Type) -> Lit:
    """Return the number in a dtype. Raises BadArgument where the dtype lacks it, as -1 in uint8."""
    found = number_as(number.value, like)
    if found is None:
        raise BadArgument("the dtype lacks the number", str(like), str(number.value))
    return found


def holes_number(name: str) -> int:
    """Return a number for a literal of this name."""
    return 2 + len(name) % 3


def _instance(b: Builder, app: App, pick: Pick, holes: dict[str, Atom]) -> Var:
    args: list[Atom | None] = []
    for arg in app.args:
        match arg:
            case Hole(name):
                if name not in holes:
                    holes[name] = pick()
                args.append(holes[name])
            case App():
                args.append(_instance(b, arg, pick, holes))
            case Number():
                args.append(None)
            case AnyNumber():
                args.append(_number(Number(holes_number(arg.name)), pick().type))
            case Rest() | IndexHole():
                raise BadArgument(f"{app} has operands that are not given", "an instance")
    like = next((a.type for a in reversed(args) if a is not None), None)
    if like is None:
        like = pick().type
    ins = [
        _number(arg, like) if isinstance(arg, Number) else a
        for arg, a in zip(app.args, args, strict=True)
    ]
    outs = b.emit(_primitive(app), [a for a in ins if a is not None])
    found = [v for v in outs if isinstance(v.type, ArrayType)]
    if not found:
        raise BadArgument(f"{app} returns no array")
    return found[0]
