"""``debug.explore`` and ``debug.first``: the evaluation of a call, to look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TypeVar

import numpy as np

from effax.api.debugging.calls import EvaluatedCall, Function, call_of, check_function, static_of
from effax.api.debugging.display import path_text, place_text, short, shown_value
from effax.api.debugging.session import Session, first_session
from effax.arrays.tracing import like
from effax.ir.eval.stepping.programs import backward_slice, shortest, text_of
from effax.ir.eval.stepping.state import first_state
from effax.ir.eval.stepping.texts import EqnTexts
from effax.ir.eval.stepping.watch import TESTS, Hit, Test, search, test_of
from effax.ir.primitive import Value
from effax.ir.source import SavedSource, Source
from effax.ir.syntax import ClosedJaxpr, Eqn, Lit
from effax.lazy.dataclasses import dataclass

R = TypeVar("R")


def explore(fun: Function, static_argnums: int | Sequence[int] = ()) -> Callable[..., Session]:
    """Return a function that begins the evaluation of ``fun``, one equation at a time.

    The program is evaluated on NumPy. Contents of references are copied: the caller's references
    never change. Any function may be explored, such as a gradient or a batched function; a jitted
    one is explored with its passes, before it is compiled.

    Args:
        fun: a function of trees, or a program.
        static_argnums: positions of arguments that are not traced.

    Returns:
        A function of the arguments of ``fun`` that returns a :class:`Session`. A program has one
        argument for each input.

    Raises:
        BadArgument: ``fun`` is neither; when called, an argument has no value.

    Example::

        >>> import effax
        >>> import effax.numpy as jnp
        >>> session = effax.debug.explore(lambda x: jnp.sin(x) * 2)(0.0)
        >>> print(session.step().value("b"))
        0.0
    """
    check_function(fun, "explore")
    static = static_of(fun, static_argnums)

    def explored(*args: object, **kwargs: object) -> Session:
        return first_session(call_of(fun, args, kwargs, static, "explore"))

    return _named(explored, fun)


def first(
    fun: Function,
    predicate: str | Callable[[np.ndarray], object] = "nan",
    static_argnums: int | Sequence[int] = (),
) -> Callable[..., Found | None]:
    """Return a function that finds the first equation whose result has a property.

    The program is evaluated once on NumPy, and every result at every depth is tested, in order of
    evaluation: also what a later equation masks. The caller's references do not change.

    Args:
        fun: a function of trees, or a program.
        predicate: ``"nan"``; ``"inf"``; ``"out_of_bounds"``, for indices that are clamped or
            dropped; or a function of a NumPy array, true where or if it is found.
        static_argnums: positions of arguments that are not traced.

    Returns:
        A function of the arguments of ``fun`` that returns a :class:`Found`, or None.

    Raises:
        BadArgument: ``fun`` or ``predicate`` is not valid; when called, an argument has no value.

    Example::

        >>> import effax
        >>> import effax.numpy as jnp
        >>> found = effax.debug.first(lambda x: jnp.log(x - 1.0), "inf")(jnp.arange(3.0))
        >>> print(found.equation.prim.name, found.element)
        log (1,)
        >>> print(found.text)
        let a:f32[] = 0.0 in
        { lambda a:f32[]; . let b:f32[] = log a in (b,) }
    """
    check_function(fun, "first")
    test, static = test_of(predicate), static_of(fun, static_argnums)

    def found(*args: object, **kwargs: object) -> Found | None:
        return found_in(call_of(fun, args, kwargs, static, "first"), test)

    return _named(found, fun)


def found_in(call: EvaluatedCall, test: Test) -> Found | None:
    """Return the first equation of a call for which a test holds, or None."""
    hit = search(first_state(call.jaxpr, call.args, keeps=False), test).hit
    return None if hit is None else Found(call, test, hit)


def _named(made: Callable[..., R], fun: Function) -> Callable[..., R]:
    return like(fun)(made) if callable(fun) else made


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """The first equation whose result has a property.

    Attributes:
        call: the program and its arguments.
        test: the property.
        hit: the state before the equation, and what it computed.
    """

    call: EvaluatedCall
    test: Test
    hit: Hit

    @property
    def equation(self) -> Eqn:
        """The equation."""
        return self.hit.eqn

    @property
    def inputs(self) -> dict[str, Value]:
        """The values of its operands, by their printed names; of a reference, its contents."""
        pairs = zip(self.equation.ins, self.hit.operands, strict=True)
        return {str(a): x for a, x in pairs if not isinstance(a, Lit)}

    @property
    def value(self) -> Value:
        """The result that has the property; contents that were written, for a reference."""
        hit = self.hit
        if hit.value is not None:
            return hit.value
        return [*hit.results, *[c.after for c in hit.changes]][0]

    @property
    def element(self) -> tuple[int, ...] | None:
        """The index of the first such element; None if the property is not of elements."""
        if self.hit.value is None or self.test.of_value is None:
            return None
        where = np.asarray(self.test.of_value(self.hit.value))
        if where.shape != self.hit.value.shape or where.ndim == 0:
            return None
        return tuple(map(int, np.argwhere(where)[0]))

    @property
    def is_passed_on(self) -> bool:
        """True if an operand has the property already: an argument of the program does."""
        return any(map(self.test.holds_for, self.hit.operands))

    @property
    def path(self) -> tuple[str, ...]:
        """The runs that lead to the equation: ``scan, iteration 3``."""
        return self.hit.frame.path

    @property
    def iterations(self) -> tuple[int, ...]:
        """The iterations of the loops around the equation, outermost first, from 0."""
        return self.hit.frame.iterations

    @property
    def source(self) -> Source | SavedSource | None:
        """The user's line."""
        return self.equation.source

    @property
    def line(self) -> str | None:
        """The user's line as text: file, number and function."""
        return None if self.source is None else str(self.source)

    @property
    def program(self) -> ClosedJaxpr:
        """The shortest program that shows it: the equation, on constants.

        Of an elementwise equation, the one element. It has no arguments.
        """
        return shortest(self.hit, self.test)

    @property
    def sliced(self) -> ClosedJaxpr:
        """The equations of the innermost program that lead to the equation, on constants.

        The constants are the inputs of that program (in a loop, of the iteration), and values that
        were read from references.
        """
        return backward_slice(self.hit)

    @property
    def text(self) -> str:
        """The text of :attr:`program`, which ``parse`` reads back."""
        return text_of(self.program)

    def explore(self) -> Session:
        """Return the session before the equation."""
        test = self.test
        named = test.of_value is None or test.name in TESTS
        return first_session(self.call).find(test.name if named else test.of_value or test.name)

    def __str__(self) -> str:
        where = path_text(self.path, self.call.label)
        at = "" if self.element is None else f", at {list(self.element)}"
        text = EqnTexts().at(self.hit.frame.jaxpr, self.hit.frame.at)
        lines = [f"{self.test.name} in {where}{at}", f"  {text}"]
        if self.source is not None:
            lines.append(f"  at {place_text(self.source)}")
        for name, value in self.inputs.items():
            lines.append(f"  {name} = {short(value)}")
        lines.append(f"  result {short(self.value)}")
        if self.is_passed_on:
            lines.append("  (an operand has it already)")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the record, with the shortest program, for a notebook."""
        inputs = "\n".join(f"{k}: {shown_value(v)}" for k, v in self.inputs.items())
        parts = [("", str(self)), ("inputs", inputs), ("the shortest program", self.text)]
        return "\n".join(f"{name}<pre>{escape(text)}</pre>" for name, text in parts)
