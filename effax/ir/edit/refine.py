"""Replace symbolic sizes by values: a program of all sizes becomes one of certain sizes.

Before::

    { lambda ; a:f32[b,3]. let c:f32[3*b] = reshape[new_sizes=(<3*b>,)] a in (c,) }

After, with ``b`` = 2::

    { lambda ; a:f32[2,3]. let c:f32[6] = reshape[new_sizes=(6,)] a in (c,) }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import NamedTuple, cast

from effax.ir.errors import IllTyped
from effax.ir.primitive import ByReference, Primitive
from effax.ir.recursion import postorder
from effax.ir.sizes import evaluated, symbols_of, typical
from effax.ir.symbolic import (
    SymbolicScope,
    inconclusive,
    is_symbolic_dim,
    least,
    symbolic,
    terms_of,
)
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Shape, Type, array_type, ref_type

Values = Mapping[str, int]
"""The sizes by name; they may be symbolic themselves."""


def refine(jaxpr: Jaxpr, values: Values) -> Jaxpr:
    """Return the program for these values of its symbolic sizes, at every depth."""
    if not values:
        return jaxpr
    done: dict[int, Jaxpr] = {}
    for program in postorder(jaxpr):
        done[id(program)] = _Refiner(values, done).program(program)
    return done[id(jaxpr)]


def refined_type(type_: Type, values: Values) -> Type:
    """Return the type for these values of its symbolic sizes."""
    if not any(is_symbolic_dim(n) for n in type_.shape):
        return type_
    shape = refined_shape(type_.shape, values)
    if isinstance(type_, RefType):
        return ref_type(type_.inner.update(shape=shape), type_.kind)
    return array_type(shape, type_.dtype, type_.weak)


def refined_shape(shape: Shape, values: Values) -> Shape:
    """Return the sizes for these values of their names."""
    return tuple([evaluated(n, values) for n in shape])


class _Refiner:
    """The refinement of one program, whose subjaxprs are refined."""

    def __init__(self, values: Values, done: Mapping[int, Jaxpr]) -> None:
        self.values = values
        self.done = done

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        eqns = [self._eqn(eqn) for eqn in jaxpr.eqns]
        binders = [self._var(v) for v in jaxpr.binders]
        return jaxpr.replace(binders, eqns, [self._atom(a) for a in jaxpr.outs])

    def _eqn(self, eqn: Eqn) -> Eqn:
        ins = tuple([self._atom(a) for a in eqn.ins])
        outs = tuple([self._var(v) for v in eqn.outs])
        return eqn._replace(prim=cast(Primitive, self._value(eqn.prim)), ins=ins, outs=outs)

    def _var(self, v: Var) -> Var:
        type_ = refined_type(v.type, self.values)
        return v if type_ is v.type else Var(v.id, type_)

    def _atom(self, a: Atom) -> Atom:
        return a if isinstance(a, Lit) else self._var(a)

    def _value(self, value: object) -> object:
        """Return a parameter, or a part of one, with sizes replaced; the same if it has none."""
        if is_symbolic_dim(value):
            return evaluated(cast(int, value), self.values)
        if isinstance(value, Jaxpr):
            return self.done[id(value)]
        if isinstance(value, ArrayType | RefType):
            return refined_type(value, self.values)
        if isinstance(value, tuple):
            parts = [self._value(x) for x in value]
            if all(a is b for a, b in zip(parts, value, strict=True)):
                return value
            make = cast("Callable[..., object]", type(value))
            return make(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, ByReference) or not is_dataclass(value) or isinstance(value, type):
            return value
        found = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        new = {name: self._value(x) for name, x in found.items()}
        changed = {name: x for name, x in new.items() if x is not found[name]}
        return replace(value, **changed) if changed else value


class Sized(NamedTuple):
    """A shape that a symbolic one is matched with, and the user's name of its value."""

    expected: Shape
    found: Shape
    name: str


def solved(arguments: Iterable[Sized]) -> dict[str, int]:
    """Return the sizes by name for which the shapes agree.

    Raises:
        IllTyped: there are none, a size is not determined, or a constraint does not hold.
    """
    given = list(arguments)
    values = _matched(given)
    dims = [symbolic(n) for sized in given for n in sized.expected]
    for scope in dict.fromkeys([dim.scope for dim in dims if dim is not None]):
        for difference in scope.at_least_zero:
            if symbols_of(difference) <= values.keys() and not evaluated(difference, values) >= 0:
                raise IllTyped(
                    "symbolic sizes do not satisfy a constraint",
                    expected=" and ".join(scope.constraints),
                    found=", ".join(f"{name} = {n}" for name, n in values.items()),
                )
    return values


def determined(arguments: Iterable[Sized]) -> SymbolicScope | None:
    """Return the scope of the symbolic sizes of arguments, or None where there are none.

    Raises:
        IllTyped: a call does not determine the sizes.
    """
    given = [sized._replace(found=tuple(map(typical, sized.expected))) for sized in arguments]
    _matched(given)
    dims = [symbolic(n) for sized in given for n in sized.expected]
    return next((dim.scope for dim in dims if dim is not None), None)


def _matched(arguments: Iterable[Sized]) -> dict[str, int]:
    """Return the sizes by name, constraints aside."""
    values: dict[str, int] = {}
    waiting = [
        (n, size, f"axis {axis} of {name}")
        for expected, found, name in arguments
        for axis, (n, size) in enumerate(zip(expected, found, strict=False))
        if is_symbolic_dim(n)
    ]
    while waiting:
        left = [entry for entry in waiting if not _solve(*entry, values)]
        if len(left) == len(waiting):
            n, _, where = left[0]
            raise IllTyped(
                f"the size of {where} does not determine its symbolic size",
                expected="each name alone, or as in 2*b + 1, in the shape of an argument",
                found=str(evaluated(n, values)),
                remedy="add an argument, or an axis, with this size alone",
            )
        waiting = left
    return values


def _solve(size: int, found: int, where: str, values: dict[str, int]) -> bool:
    """Match one size; return whether it was determined."""
    known = evaluated(size, values)
    names = symbols_of(known) - symbols_of(found)
    if not names:
        if known != found:
            raise _no_size(size, found, where, values)
        return True
    terms = terms_of(known)
    c = terms.pop(((name := min(names), 1),), 0)
    rest = sum([k for m, k in terms.items() if not m])
    if len(names) > 1 or not c or any(terms.keys() - {()}):
        return False
    value, remainder = divmod(found - rest, c)
    if is_symbolic_dim(remainder):
        raise inconclusive(f"{found} == {known}")
    if remainder or not value >= min(1, least(name, size)):
        raise _no_size(size, found, where, values)
    values[name] = value
    return True


def _no_size(size: int, found: int, where: str, values: Values) -> IllTyped:
    given = "".join(f", where {name} = {n}" for name, n in values.items())
    lows = ", ".join(f"{name} >= {min(1, least(name, size))}" for name in sorted(symbols_of(size)))
    return IllTyped(
        f"{where} of a call has another size than its symbolic size allows",
        expected=f"{size}{given}, for {lows}",
        found=str(found),
        remedy=None if found else "export the function with a constraint such as `b >= 0`",
    )
