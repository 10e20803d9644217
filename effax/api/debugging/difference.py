"""``debug.first_difference``: two programs that should agree, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from effax.api.debugging.calls import EvaluatedCall, Function, call_of, check_function, static_of
from effax.api.debugging.display import path_text, place_text, short
from effax.api.jit import JitFunction
from effax.api.stages import compiled
from effax.arrays.device_array import DeviceArray
from effax.ir.dtypes import FLOAT0
from effax.ir.errors import IllTyped
from effax.ir.eval.stepping.differences import OnNumpy, Parting, Tolerance, Values, Walk
from effax.ir.primitive import Value
from effax.ir.syntax import Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Type
from effax.lazy.dataclasses import dataclass
from effax.transforms.discharge import discharge
from effax.transforms.framework.runner import unwrap
from effax.transforms.optimize.dce import dce


def first_difference(
    f: Function,
    g: Function,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[..., Difference | None]:
    """Return a function that finds where two functions of equal results begin to differ.

    Both are evaluated on NumPy, except for a jitted function, which is compiled, with its passes:
    ``first_difference(f, jit(f))`` compares the evaluation with the compiled program, of which all
    intermediate values are made results. If they then agree, shorter and shorter programs are
    compiled. A program is compared before and after a pass by ``first_difference(f, p(f))``.

    Programs of different structure are compared by values: an equation of which the other program
    has an equal value agrees. Loops, branches and calls of both are entered.

    Args:
        f: a function of trees, or a program.
        g: another one, of the same arguments and results.
        rtol: the relative tolerance; by default 1e-9 for 64 bits, 1e-4 for 32, 3e-2 for less.
        atol: the absolute tolerance; by default ``rtol`` times the greatest element. Both are 0
            for a comparison bit by bit, up to the signs of zeros and the payloads of nans.
        static_argnums: positions of arguments that are not traced.

    Returns:
        A function of the arguments that returns a :class:`Difference`, or None if all results and
        final contents of references agree.

    Raises:
        BadArgument: ``f`` or ``g`` is neither a function nor a program.
        IllTyped: when called: they have results or references of different types.

    Example::

        >>> import effax
        >>> import effax.numpy as jnp
        >>> found = effax.debug.first_difference(
        ...     lambda x: jnp.exp(jnp.sin(x)), lambda x: jnp.exp(jnp.cos(x))
        ... )(0.5)
        >>> print(found.left.prim.name, found.right.prim.name)
        sin cos
    """
    allowed, what = Tolerance(rtol, atol), "first_difference"
    for h in (f, g):
        check_function(h, what)
    static = [static_of(h, static_argnums) for h in (f, g)]

    def compared(*args: object, **kwargs: object) -> Difference | None:
        calls = [call_of(h, args, kwargs, s, what) for h, s in zip((f, g), static, strict=True)]
        return _difference(calls[0], calls[1], (_how(f), _how(g)), allowed)

    return compared


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """The place where two programs begin to differ.

    Attributes:
        parting: the equations and their values.
        labels: the names of the functions.
        allowed: the tolerance.
        alone: whether the compiled program differs only where intermediate values are not results.
    """

    parting: Parting
    labels: tuple[str, str]
    allowed: Tolerance
    alone: bool = False

    @property
    def left(self) -> Eqn | None:
        """The equation of the first program; None if it has none there."""
        return self.parting.left

    @property
    def right(self) -> Eqn | None:
        """The equation of the second program; None if it has none there."""
        return self.parting.right

    @property
    def values(self) -> tuple[Value, Value]:
        """The values of both programs that differ."""
        return self.parting.left_value, self.parting.right_value

    @property
    def path(self) -> tuple[str, ...]:
        """The runs that lead to the equations: ``scan, iteration 3``."""
        return self.parting.path

    @property
    def element(self) -> tuple[int, ...] | None:
        """The index of the first element that differs; None for scalars."""
        x, y = self.values
        if x.shape != y.shape or not x.ndim:
            return None
        return tuple(map(int, np.argwhere(self.allowed.errors(x, y))[0]))

    @property
    def line(self) -> str | None:
        """The user's line of the second program's equation, or of the first's."""
        eqns = [e for e in (self.right, self.left) if e is not None and e.source is not None]
        return str(eqns[0].source) if eqns else None

    def __str__(self) -> str:
        at = "" if self.element is None else f", at {list(self.element)}"
        where = path_text(self.path)
        lines = [f"different values{f' in {where}' if where else ''}{at}"]
        p = self.parting
        for label, eqn, value, operands in (
            (self.labels[0], p.left, p.left_value, p.left_operands),
            (self.labels[1], p.right, p.right_value, p.right_operands),
        ):
            lines.append(f"  {label}: {_eqn_text(eqn)}")
            if eqn is not None:
                lines += [
                    f"    {a} = {short(x)}"
                    for a, x in zip(eqn.ins, operands, strict=False)
                    if not isinstance(a, Lit)
                ]
            shown = short(value)
            if self.element is not None:
                shown += f", there {value[self.element]}"
            lines.append(f"    value {shown}")
        if self.alone:
            lines.append("  (they agree where all intermediate values are results)")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _eqn_text(eqn: Eqn | None) -> str:
    if eqn is None:
        return "no equation: the value is that of an argument, or is computed before"
    place = place_text(eqn.source)
    return f"{eqn}" + (f"   {place}" if place else "")


class _Compiled:
    """The evaluation of programs by XLA."""

    def run(self, jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
        """Return the results of a program without references."""
        program = compiled(jaxpr)
        operands = [_array(x, v.type).buffer for x, v in zip(args, jaxpr.binders, strict=True)]
        found = program.executable(operands)
        pairs = zip(found, jaxpr.out_types, strict=True)
        return [DeviceArray(None, _array_type(t), b).numpy() for b, t in pairs]

    def every(self, jaxpr: Jaxpr, args: Sequence[Value]) -> Values:
        """Return the values of all equations: the program with all of them as results."""
        variables = [v for eqn in jaxpr.eqns for v in eqn.outs if _is_shown(v)]
        found = self.run(jaxpr.replace(outs=variables), args)
        by_id = {v.id: x for v, x in zip(variables, found, strict=True)}
        outcomes = [[by_id.get(v.id, _nothing(v)) for v in eqn.outs] for eqn in jaxpr.eqns]
        return Values(jaxpr, [np.asarray(x) for x in args], outcomes)


def _is_shown(v: Var) -> bool:
    return isinstance(v.type, ArrayType) and v.type.dtype != FLOAT0


def _nothing(v: Var) -> Value:
    return np.zeros(v.type.shape, v.type.dtype)


def _array(x: Value, type_: Type) -> DeviceArray:
    return DeviceArray(np.array(x), _array_type(type_))


def _array_type(type_: Type) -> ArrayType:
    assert isinstance(type_, ArrayType), "references are discharged"
    return type_


def _how(f: Function) -> OnNumpy | _Compiled:
    return _Compiled() if isinstance(f, JitFunction) else OnNumpy()


def _difference(
    left: EvaluatedCall,
    right: EvaluatedCall,
    how: tuple[OnNumpy | _Compiled, OnNumpy | _Compiled],
    allowed: Tolerance,
) -> Difference | None:
    labels = (_label(left, how[0]), _label(right, how[1]))
    programs = left.jaxpr, right.jaxpr
    _check_same(programs, labels)
    if any(isinstance(h, _Compiled) for h in how):
        # Compiled programs have no references: their contents are arguments and results.
        programs = _discharged(left.jaxpr), _discharged(right.jaxpr)
    walk = Walk(*how, allowed)
    args = left.args, right.args
    every = [h.every(j, xs) for h, j, xs in zip(how, programs, args, strict=True)]
    found = walk.parting(every[0], every[1])
    if found is not None:
        return Difference(found, labels, allowed)
    if isinstance(how[0], _Compiled) == isinstance(how[1], _Compiled):
        return None
    side = 0 if isinstance(how[0], _Compiled) else 1
    alone = _of_prefixes(programs[side], every[side], allowed)
    if alone is None:
        return None
    label = labels[side]
    return Difference(alone, (f"{label}, with all values", label), allowed, alone=True)


def _label(call: EvaluatedCall, how: OnNumpy | _Compiled) -> str:
    return f"{call.label}, {'compiled' if isinstance(how, _Compiled) else 'evaluated'}"


def _discharged(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program without references: the final contents of the changed ones are results."""
    live = unwrap(dce(jaxpr, (True,) * len(jaxpr.outs))).jaxpr
    return unwrap(discharge(live)).jaxpr


def _check_same(programs: tuple[Jaxpr, Jaxpr], labels: tuple[str, str]) -> None:
    """Raise IllTyped unless results and references have the same shapes."""
    left, right = [
        [t.shape for t in (*j.out_types, *[v.type for v in j.binders if _is_ref(v)])]
        for j in programs
    ]
    if left != right:
        raise IllTyped(
            "first_difference takes functions of the same results and references",
            expected=f"the shapes of {labels[0]}: {left}",
            found=f"those of {labels[1]}: {right}",
        )


def _is_ref(v: Var) -> bool:
    return isinstance(v.type, RefType)


class _Prefixes(NamedTuple):
    """A compiled program, of which one equation's value is the result, and the right values."""

    jaxpr: Jaxpr
    values: Values
    allowed: Tolerance

    def wrong(self, n: int) -> Value | None:
        """Return the value of equation ``n`` in the program that ends with it, if it differs."""
        eqn = self.jaxpr.eqns[n]
        outs = [v for v in eqn.outs if _is_shown(v)]
        if not outs:
            return None
        prefix = self.jaxpr.replace(eqns=self.jaxpr.eqns[: n + 1], outs=outs)
        made = _Compiled().run(prefix, self.values.args)
        expected = [self.right(v) for v in outs]
        pairs = zip(made, expected, strict=True)
        return next((x for x, y in pairs if not self.allowed.allows(y, x)), None)

    def wrong_result(self) -> int | None:
        """Return the equation of the first result of the whole program that differs."""
        results = _Compiled().run(self.jaxpr, self.values.args)
        for a, x in zip(self.jaxpr.outs, results, strict=True):
            if isinstance(a, Var) and not self.allowed.allows(self.right(a), np.asarray(x)):
                return self.maker(a)
        return None

    def maker(self, v: Var) -> int | None:
        """Return the equation that binds a variable."""
        return next((i for i, eqn in enumerate(self.jaxpr.eqns) if v in eqn.outs), None)

    def right(self, v: Var) -> Value:
        """Return the value of a variable where all values are results."""
        at = self.maker(v)
        if at is None:
            return np.asarray(self.values.args[self.jaxpr.binders.index(v)])
        return np.asarray(self.values.outcomes[at][self.jaxpr.eqns[at].outs.index(v)])


def _of_prefixes(jaxpr: Jaxpr, values: Values, allowed: Tolerance) -> Parting | None:
    """Compare the compiled program whose intermediate values are no results, and its prefixes.

    Of two neighbouring prefixes, found by bisection, the shorter agrees and the longer does not.
    ``left`` is the program of which all values are results.
    """
    prefixes = _Prefixes(jaxpr, values, allowed)
    high = prefixes.wrong_result()
    found = None if high is None else prefixes.wrong(high)
    if high is None or found is None:
        return None
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        value = prefixes.wrong(middle)
        if value is None:
            low = middle
        else:
            high, found = middle, value
    eqn = jaxpr.eqns[high]
    agreed = next(prefixes.right(v) for v in eqn.outs if v.type.shape == found.shape)
    return Parting((), eqn, eqn, agreed, found, (), ())
