"""Symbolic sizes: arithmetic in a normal form, comparisons by bounds and constraints, text."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effax.ir.errors import BadArgument, InconclusiveDimension
from effax.ir.sizes import evaluated, joint_shape, sliced, symbols_of
from effax.ir.symbolic import (
    FREE,
    SymbolicScope,
    bounds,
    is_symbolic_dim,
    max_dim,
    min_dim,
    symbol,
)
from effax.ir.text.dims import read_dim, read_dims
from effax.ir.text.lexer import Lexer
from effax.ir.types import array_type

a, b = read_dims("a, b")

OPERATIONS = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    max_dim,
    min_dim,
)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[Any, Any]:
    """A size, and a function of values for its names to its value."""
    kind = draw(st.integers(0, 5))
    if kind < 2:
        name = "ab"[kind]
        return symbol(name), lambda values: values[name]
    if kind == 2:
        n = draw(st.integers(-3, 9))
        return n, lambda _: n
    operation = draw(st.sampled_from(OPERATIONS))
    x, y = draw(sizes()), draw(sizes())
    if operation in (operator.floordiv, operator.mod):
        n = draw(st.integers(1, 5))
        y = (n, lambda _: n)

    def value(values: Any) -> Any:
        plain = {max_dim: max, min_dim: min}.get(operation, operation)
        return plain(x[1](values), y[1](values))

    return operation(x[0], y[0]), value


VALUES = st.fixed_dictionaries({"a": st.integers(1, 7), "b": st.integers(1, 7)})


@given(sizes(), VALUES)
def test_the_value_of_a_size_is_that_of_its_operations(size: Any, values: Any) -> None:
    made, value = size
    assert evaluated(made, values) == value(values)
    low, high = bounds(made)
    assert low <= value(values) <= high
    if is_symbolic_dim(made):
        assert symbols_of(made) <= {"a", "b"}
        assert read_dim(str(made)) == made
        assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.slow
@given(sizes(), sizes(), VALUES)
def test_a_comparison_that_is_decided_holds_for_all_sizes(x: Any, y: Any, values: Any) -> None:
    for compare in COMPARISONS:
        try:
            found = compare(x[0], y[0])
        except InconclusiveDimension:
            continue
        assert found == compare(x[1](values), y[1](values))


def test_equal_polynomials_are_equal_values() -> None:
    assert (a + b) * (a - b) == a * a - b * b
    assert hash(2 * a + b) == hash(b + a + a)
    assert a - a == 0 and type(a - a) is int
    assert (4 * b) // 4 == b and (4 * b + 3) // 4 == b and (4 * b + 3) % 4 == 3
    assert (a * b) // a == b and (b * b + 2 * b) // (b + 2) == b
    assert b not in (a, 1) and b**2 == b * b
    assert copy.deepcopy(b) is not None and bool(b) and not bool(b - b)
    assert str(2 * b * b - 3 * a + 1) == "2*b^2 - 3*a + 1"


def test_constraints_decide_comparisons() -> None:
    scope = SymbolicScope(("n >= m", "m >= 8", "k <= 5", "c == 2*n"))
    n, m, k, c = read_dims("n, m, k, c", scope)
    assert n >= m and n >= 8 and n - m >= 0 and k < 6 and c == 2 * n and c > m
    with pytest.raises(InconclusiveDimension, match=r"a >= b.*inconclusive|b <= a.*inconclusive"):
        assert a >= b
    with pytest.raises(InconclusiveDimension, match="different scopes"):
        assert n + b
    for bad in ("n >", "2*n == m", "n == n + 1", "n ~ 3"):
        with pytest.raises(BadArgument, match="cannot be read"):
            _ = SymbolicScope((bad,)).equal, SymbolicScope((bad,)).at_least_zero
    for bad in ("", "b +", "b c", "f(b)", "b^c", "1.5", "floordiv(b)"):
        with pytest.raises(BadArgument, match="cannot be read"):
            read_dim(bad)


def test_a_size_is_no_python_integer() -> None:
    for use in (range, operator.index, int, float, [1, 2].__getitem__):
        with pytest.raises(InconclusiveDimension, match="as a Python integer"):
            use(b)
    with pytest.raises(AttributeError, match="immutable"):
        setattr(b, "scope", FREE)  # noqa: B010  as a user would


def test_types_have_symbolic_sizes() -> None:
    type_ = array_type((b, 2 * b + 1, 3), "float32")
    assert str(type_) == "f32[b,2*b + 1,3]" and type_.size == 6 * b * b + 3 * b
    assert Lexer(str(type_)).type() is type_
    for text in ("f32[max(a, b)]", "Ref{i32[mod(b, 2),1]}", "~f32[b]"):
        assert str(Lexer(text).type()) == text


def test_shapes_broadcast() -> None:
    assert joint_shape([(b, 1), (3,)]) == (b, 3)
    assert joint_shape([(1,), (b,), (b,)]) == (b,)
    for shapes in ([(a,), (b,)], [(b,), (3,)]):
        with pytest.raises(ValueError, match="do not broadcast"):
            joint_shape(shapes)


@given(st.slices(9), st.integers(1, 9))
def test_slices_of_a_symbolic_axis(entry: slice, n: int) -> None:
    try:
        start, count, step = sliced(entry, b)
    except InconclusiveDimension:
        return
    count = evaluated(count, {"b": n})
    found = range(n)[entry]
    assert count == len(found)
    if count:
        assert evaluated(start, {"b": n}) == found[0] and (step == found.step or count == 1)
