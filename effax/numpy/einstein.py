"""Einstein summation: a contraction of many arrays as a path of pairwise contractions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, SupportsIndex, cast

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, DTypeLike
from effax.arrays.axes import no_out
from effax.arrays.conversion import as_value
from effax.arrays.placed import on_device
from effax.arrays.shapes import diagonal, transpose
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.sizes import typical
from effax.ir.state import cached
from effax.ir.types import Shape
from effax.numpy import ufuncs as uf
from effax.numpy.products import Axes, contract
from effax.numpy.reduce import sum

__all__ = [
    "einsum", "einsum_path",
]  # fmt: skip


class _PathInfo(Protocol):
    contraction_list: Sequence[tuple[object, ...]]


def _contract_path(*args: object, **options: object) -> tuple[list[object], _PathInfo]:
    from opt_einsum import contract_path

    # Its overloads lack explicit paths.
    return cast("Callable[..., tuple[list[object], _PathInfo]]", contract_path)(*args, **options)


Optimize = str | bool | None | Sequence[object] | Callable[..., object]
"""A strategy for the order of contractions: a name, a path, or an optimizer of opt_einsum."""

_Path = tuple[tuple[int, ...], ...]


class _Plan(NamedTuple):
    """A strategy, hashable.

    Attributes:
        how: the name of a strategy, an optimizer, a path, or None for the order as given.
        most: the number of elements of the largest intermediate result, if it is limited.
    """

    how: str | Callable[..., object] | _Path | None
    most: int | None = None


def _plan(optimize: Optimize) -> _Plan:
    """Return the strategy of an argument ``optimize``: of NumPy, JAX or opt_einsum."""
    if isinstance(optimize, str) or callable(optimize):
        return _Plan(optimize)
    if optimize is None or isinstance(optimize, bool | np.bool_):
        return _Plan("auto" if optimize is None or optimize else None)
    try:
        first, *rest = optimize
        if isinstance(first, str) and first != "einsum_path":
            (most,) = rest
            return _Plan(first, operator.index(cast("SupportsIndex", most)))
        steps = rest if isinstance(first, str) else optimize
        positions = cast("Iterable[Iterable[SupportsIndex]]", steps)
        return _Plan(tuple([tuple(map(operator.index, step)) for step in positions]))
    except (TypeError, ValueError):
        raise _no_path(optimize) from None


def _no_path(optimize: object) -> BadArgument:
    return BadArgument(
        "`optimize` of einsum is not an order of contractions",
        expected="a name, a bool, (name, size) or a list of positions that contracts all operands",
        found=repr(optimize),
    )


def _check_path(path: _Path, n: int) -> None:
    """Raise BadArgument unless the path contracts ``n`` operands to one."""
    left = n
    for step in path:
        if not step or len(set(step)) != len(step) or not all(0 <= i < left for i in step):
            raise _no_path(path)
        left -= len(step) - 1
    if left != 1:
        raise _no_path(path)


class _Step(NamedTuple):
    """Contract the operands at these positions; the result joins the end of the list."""

    positions: tuple[int, ...]
    inputs: tuple[str, ...]
    output: str


def einsum(
    subscripts: object,
    /,
    *operands: object,
    out: None = None,
    optimize: Optimize = "auto",
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
    _dot_general: Callable[..., Array] | None = None,
) -> Array:
    """Return a sum of products, with axes named by letters.

    Args:
        subscripts: one letter per axis of each operand, and of the result after ``->``; or the
            first operand, where operands and lists of axis numbers alternate.
        operands: arrays, in the order of the subscripts.
        out: unsupported.
        optimize: strategy for the order of contractions: a name of opt_einsum's, one with the size
            of the largest intermediate result, or a path, such as that of :func:`einsum_path`;
            False keeps the given order.
        precision: precision of the products: None, "high", "highest" or a ``lax.Precision``.
        preferred_element_type: dtype in which products accumulate, and of the result.
        out_sharding: sharding of the result.
        _dot_general: function of the form of ``lax.dot_general`` that contracts two operands.

    Returns:
        Array whose axes are those after ``->``.

    Raises:
        BadArgument: the subscripts do not fit the operands, or the path does not.
        IllTyped: axes of one letter differ in size.

    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    no_out(out, "einsum")
    text, arrays = _named(subscripts, operands)
    dtype, weak = pr.common_dtype(arrays, "einsum")
    values = [x if x.dtype == dtype else pr.converted(x, dtype, weak) for x in arrays]
    for step in _path(text, tuple(x.shape for x in values), _plan(optimize)):
        taken = [values[i] for i in step.positions]
        values = [x for i, x in enumerate(values) if i not in step.positions]
        names = [*step.inputs]
        sizes = _sizes(names, taken)
        parts = [_prepared(x, n, sizes) for x, n in zip(taken, names, strict=True)]
        if len(parts) == 2 and _free(*parts[::-1]) == _free(*parts, order=step.output):
            parts.reverse()  # so that the axes of the product are in order
        while len(parts) > 1:
            rest = [*(n for _, n in parts[2:]), step.output]
            made = _pair(
                *parts[0],
                *parts[1],
                set("".join(rest)),
                partial(
                    _dot_general or _contracted,
                    precision=precision,
                    preferred_element_type=preferred_element_type,
                ),
            )
            parts = [made, *parts[2:]]
        values.append(_in_order(*parts[0], step.output))
    (result,) = values
    if preferred_element_type is not None:
        result = uf.astype(result, preferred_element_type)
    return on_device(result, out_sharding, "einsum")


def _named(subscripts: object, operands: Sequence[object]) -> tuple[str, list[Array]]:
    """Return the subscripts in full, as ``ij,jk->ik``, and the operands."""
    if isinstance(subscripts, str):
        arrays = [as_value(x, f"operand {i} of einsum") for i, x in enumerate(operands)]
        return _in_full(subscripts, tuple(x.shape for x in arrays)), arrays
    given = [
        x if isinstance(x, list | tuple) else as_value(x, f"operand {i} of einsum")
        for i, x in enumerate([subscripts, *operands])
    ]
    inputs, output, found = _parsed(given, shapes=False)
    return f"{inputs}->{output}", cast("list[Array]", list(found))


@cached(maxsize=512)
def _in_full(subscripts: str, shapes: tuple[Shape, ...]) -> str:
    inputs, output, _ = _parsed([subscripts, *shapes], shapes=True)
    return f"{inputs}->{output}"


def _parsed(operands: Sequence[object], shapes: bool) -> tuple[str, str, Sequence[object]]:
    try:
        from opt_einsum.parser import parse_einsum_input

        found: tuple[str, str, Sequence[object]] = parse_einsum_input(operands, shapes=shapes)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise BadArgument("einsum cannot parse the subscripts", found=str(error)) from None
    return found


@cached(maxsize=512)
def _path(text: str, shapes: tuple[Shape, ...], plan: _Plan) -> tuple[_Step, ...]:
    _, info = _contraction(text, shapes, plan)
    steps = []
    for positions, _, formula, *_ in info.contraction_list:
        inputs, output = str(formula).split("->")
        steps.append(
            _Step(tuple(cast("Iterable[int]", positions)), tuple(inputs.split(",")), output)
        )
    return tuple(steps)


def _contraction(text: str, shapes: Sequence[Shape], plan: _Plan) -> tuple[list[object], _PathInfo]:
    n = len(shapes)
    known = [tuple(map(typical, shape)) for shape in shapes]
    how: object = plan.how
    if how is None:
        how = [(0, 1), *((0, n - 2 - i) for i in range(n - 2))] if n > 1 else [(0,)]
    elif isinstance(how, tuple):
        _check_path(how, n)
    try:
        return _contract_path(text, *known, shapes=True, optimize=how, memory_limit=plan.most)
    except KeyError:
        raise _no_path(how) from None
    except ValueError as error:
        raise BadArgument(
            "the subscripts of einsum do not fit the operands", found=str(error)
        ) from None


def _sizes(names: Iterable[str], arrays: Iterable[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, x in zip(names, arrays, strict=True):
        for letter, n in zip(name, x.shape, strict=True):
            have = sizes.get(letter, 1)
            if 1 not in (have, n) and have != n:
                raise IllTyped(f"axis {letter!r} of einsum has two sizes", str(have), str(n))
            sizes[letter] = n if have == 1 else have
    return sizes


def _prepared(x: Array, name: str, sizes: dict[str, int]) -> tuple[Array, str]:
    """Return the operand with one axis per letter, without axes that only broadcast."""
    for letter in dict.fromkeys(name):
        while name.count(letter) > 1:
            i = name.index(letter)
            j = name.index(letter, i + 1)
            x = diagonal(x, 0, i, j)
            name = "".join(c for k, c in enumerate(name) if k not in (i, j)) + letter
    stretched = tuple(i for i, c in enumerate(name) if x.shape[i] == 1 and sizes[c] != 1)
    if stretched:
        x = sum(x, stretched, x.dtype)
        name = "".join(c for i, c in enumerate(name) if i not in stretched)
    return x, name


def _free(*parts: tuple[Array, str], order: str = "") -> list[str]:
    """Return the letters of one operand only, operand by operand, or in another order."""
    (_, x), (_, y) = parts
    return [c for c in order or x + y if (c in x) != (c in y)]


def _summed(x: Array, name: str, kept: set[str]) -> tuple[Array, str]:
    """Return the operand summed over the letters that occur nowhere else."""
    gone = tuple(i for i, c in enumerate(name) if c not in kept)
    if not gone:
        return x, name
    return sum(x, gone, x.dtype), "".join(c for c in name if c in kept)


def _contracted(
    x: Array,
    y: Array,
    numbers: tuple[tuple[Axes, Axes], tuple[Axes, Axes]],
    precision: object,
    preferred_element_type: DTypeLike | None,
) -> Array:
    return contract(x, y, *numbers, precision, preferred_element_type)


def _pair(
    x: Array,
    x_name: str,
    y: Array,
    y_name: str,
    kept: set[str],
    product_of: Callable[..., Array],
) -> tuple[Array, str]:
    """Contract two operands over the letters that are not kept."""
    x, x_name = _summed(x, x_name, kept | set(y_name))
    y, y_name = _summed(y, y_name, kept | set(x_name))
    both = [c for c in x_name if c in y_name]
    batch = [c for c in both if c in kept]
    gone = [c for c in both if c not in kept]
    contracted = tuple(map(x_name.index, gone)), tuple(map(y_name.index, gone))
    batched = tuple(map(x_name.index, batch)), tuple(map(y_name.index, batch))
    product = product_of(x, y, (contracted, batched))
    rest = [c for c in x_name + y_name if c not in both]
    if product.dtype != x.dtype:
        product = uf.astype(product, x.dtype)
    return product, "".join(batch + rest)


def _in_order(x: Array, name: str, output: str) -> Array:
    x, name = _summed(x, name, set(output))
    return transpose(x, [name.index(c) for c in output])


def einsum_path(
    subscripts: object, /, *operands: object, optimize: Optimize = "greedy"
) -> tuple[list[object], str]:
    """Return the order of contractions of :func:`einsum`, and a description of it.

    Args:
        subscripts: as in :func:`einsum`.
        operands: arrays, in the order of the subscripts.
        optimize: strategy, as in :func:`einsum`.

    Returns:
        Pair of the path, a list that starts with "einsum_path", and text.

    Raises:
        BadArgument: as :func:`einsum`.

    >>> jnp.einsum_path("ij,jk", jnp.ones((2, 3)), jnp.ones((3, 2)))[0]
    ['einsum_path', (0, 1)]
    """
    text, arrays = _named(subscripts, operands)
    path, info = _contraction(text, [x.shape for x in arrays], _plan(optimize))
    return ["einsum_path", *path], str(info)
